"""ExportedPrograms of torch as input, and torch.export in place of the engine's tracer."""

import json

import pytest
import torch
import transformers
from torch import nn
from torch.export import Dim
from transporters import DynamoConfig, DynamoExporter, ExportError, OnnxConfig, OnnxExporter

EXPORTERS = {"dynamo": DynamoExporter, "onnx": OnnxExporter}
both = pytest.mark.parametrize("exporter", EXPORTERS.values(), ids=EXPORTERS)
X = torch.linspace(-2, 3, 20).reshape(5, 4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 3)
        self.register_buffer("shift", torch.arange(3.0))

    def forward(self, x, *, options=None, k: float = 1.0):
        y = self.linear(x) * k + self.shift
        return {"y": y, "rest": (options["z"] * 2 if options else None, x.shape[0])}


class OnlyTorchTraces(nn.Module):
    """Looks into the tracer that runs: stands for what this engine can't trace."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x, y=None, k=2):
        if not isinstance(x, torch._subclasses.FakeTensor):
            raise LookupError("no fake tensor")
        x = self.linear(x) * k
        return (x if y is None else x + y), None


# ── ExportedPrograms ──


@both
def test_an_exported_program_is_taken_as_it_is(exporter, tmp_path):
    model = Net().eval()
    n = Dim("n", min=3, max=64)
    inputs = {"options": {"z": X}, "k": 3.0}
    traced = torch.export.export(model, (X,), inputs, dynamic_shapes={"x": {0: n}, "options": {"z": {0: n}}, "k": None})
    exported = exporter().export(traced)
    for rows in (3, 5):
        x = X[:rows]
        actual = exported(x, options={"z": x}, k=3.0)
        expected = model(x, options={"z": x}, k=3.0)
        assert torch.allclose(actual["y"], expected["y"], atol=1e-5)
        assert torch.equal(actual["rest"][0], expected["rest"][0]) and actual["rest"][1] == rows
    metadata = exported.metadata
    assert metadata["architecture"] == "Net"
    assert metadata["in_spec"] == torch.utils._pytree.treespec_dumps(traced.call_spec.in_spec)
    assert metadata["out_spec"] == torch.utils._pytree.treespec_dumps(traced.call_spec.out_spec)
    assert json.loads(metadata["in_constants"]) == {"k": 3.0}
    assert metadata["export_dtype"] == "float32"

    exported.save_pretrained(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "export.json").read_text())["components"]["model"]["metadata"]
    assert manifest["architecture"] == "Net" and manifest["in_spec"] == metadata["in_spec"]
    assert not (tmp_path / "out" / "config.json").exists()


def test_what_torch_recorded_is_kept_in_the_pt2(tmp_path):
    model = Net().eval()
    traced = torch.export.export(model, (X,), {"k": 2.0}, dynamic_shapes={"x": {0: Dim("n", min=3, max=64)}, "k": None})
    DynamoExporter().export(traced).save(tmp_path / "net.pt2")
    loaded = torch.export.load(tmp_path / "net.pt2")
    (args, kwargs) = loaded.example_inputs
    assert torch.equal(args[0], X) and kwargs == {"k": 2.0}
    (bounds,) = loaded.range_constraints.values()
    assert (bounds.lower, bounds.upper) == (3, 64)
    assert set(loaded.state_dict) == {"linear.weight", "linear.bias", "shift"}
    assert torch.allclose(loaded.module()(X[:3], k=2.0)["y"], model(X[:3], k=2.0)["y"], atol=1e-6)


@both
def test_a_mutated_buffer_of_an_exported_program(exporter):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count

    exported = exporter().export(torch.export.export(Counter(), (X,)))
    assert [exported(torch.zeros(5, 4))[0, 0].item() for _ in range(3)] == [1, 2, 3]


@both
def test_a_number_that_torch_kept_dynamic_is_an_input(exporter):
    class Rows(nn.Module):
        def forward(self, x, n):
            return x[:n] * n

    traced = torch.export.export(Rows(), (X, 3), dynamic_shapes={"x": None, "n": Dim.DYNAMIC})
    exported = exporter().export(traced)
    for n in (2, 4):
        assert torch.equal(exported(X, n), X[:n] * n)
    with pytest.raises(ExportError, match="'n': a number is expected where a str is given"):
        exported(X, "3")


@both
def test_an_exported_program_needs_no_samples(exporter):
    traced = torch.export.export(nn.Linear(4, 2), (X,))
    with pytest.raises(ExportError, match="leave sample inputs out"):
        exporter().export(traced, (X,))


# ── The fallback ──


@both
def test_torch_traces_what_the_engine_cannot(exporter, tmp_path):
    model = OnlyTorchTraces().eval()
    with pytest.raises(ExportError, match="LookupError: no fake tensor"):
        exporter().export(model, (X,))
    exported = exporter().export(model, (X,), {"fallback": "torch.export"})
    (note,) = exported.notes
    assert "traced with torch.export" in note and "LookupError: no fake tensor" in note
    expected = model.linear(X) * 2
    result, nothing = exported(X)
    assert nothing is None and torch.allclose(result, expected, atol=1e-5)
    assert exported.metadata["architecture"] == "OnlyTorchTraces"
    exported.save_pretrained(tmp_path / "out")
    assert (tmp_path / "out" / "export.json").exists()


@both
@pytest.mark.parametrize(
    "fields",
    [
        {"dynamic": True},
        {"dynamic_shapes": {"x": {0: Dim("n", min=2)}, "y": {0: Dim("n", min=2)}}},
        {"dynamic_shapes": {"x": (Dim.DYNAMIC, None), "y": {-2: Dim.AUTO}}},
        {"dynamic_shapes": {"x": {0: "n"}, "y": {0: "n"}}},
    ],
    ids=["dynamic", "Dim", "DYNAMIC and a negative axis", "a name"],
)
def test_the_fallback_has_the_same_dynamic_axes(exporter, fields):
    model = OnlyTorchTraces().eval()
    inputs = {"x": X, "y": X[:, :3].contiguous(), "k": 3}
    exported = exporter().export(model, dict(inputs), {**fields, "fallback": "torch.export"})
    small = {"x": X[:2], "y": X[:2, :3].contiguous(), "k": 3}
    for given in (inputs, small):
        result, _ = exported(**given)
        assert torch.allclose(result, model.linear(given["x"]) * 3 + given["y"], atol=1e-5)


@both
def test_the_fallback_is_not_taken_where_the_engine_traces(exporter):
    model = nn.Linear(4, 2)
    exported = exporter().export(model, (X,), {"fallback": "torch.export"})
    assert exported.notes == []


@both
def test_a_model_that_neither_traces_tells_both_reasons(exporter):
    class Never(nn.Module):
        def forward(self, x):
            raise LookupError("in no tracer")

    with pytest.raises(ExportError, match="LookupError: in no tracer") as caught:
        exporter().export(Never(), (X,), {"fallback": "torch.export"})
    assert any("torch.export can't trace it either" in note for note in caught.value.__notes__)


def test_one_tensor_for_several_inputs_is_several_inputs_there_too():
    class Mix(nn.Module):
        def forward(self, x, y):
            if not isinstance(x, torch._subclasses.FakeTensor):
                raise LookupError("no fake tensor")
            return x + 10 * y

    one = torch.ones(3)
    exported = DynamoExporter().export(Mix(), (one, one), DynamoConfig(fallback="torch.export"))
    assert torch.equal(exported(one, 2 * one), torch.full((3,), 21.0))


def test_a_transformers_model_falls_back(tiny_checkpoint, monkeypatch):
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_checkpoint("llama")).eval()
    forward = type(model.model.norm).forward

    def only_in_torch(self, hidden):
        if not isinstance(hidden, torch._subclasses.FakeTensor) and torch.compiler.is_exporting():
            raise LookupError("no fake tensor")
        return forward(self, hidden)

    monkeypatch.setattr(type(model.model.norm), "forward", only_in_torch)
    ids = torch.arange(10).reshape(2, 5)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False}
    batch, sequence = Dim("batch", max=16), Dim("sequence", max=64)
    shapes = {name: {0: batch, 1: sequence} for name in ("input_ids", "attention_mask")}
    exported = OnnxExporter().export(model, dict(inputs), OnnxConfig(dynamic_shapes=shapes, fallback="torch.export"))
    assert any("torch.export" in note for note in exported.notes)
    other = {"input_ids": ids[:, :3].repeat(2, 1), "attention_mask": torch.ones(4, 3, dtype=torch.int64)}
    with torch.no_grad():
        expected = model(**other, use_cache=False)
    assert torch.allclose(exported(**other).logits, expected.logits, atol=1e-4)
