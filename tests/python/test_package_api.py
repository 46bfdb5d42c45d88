"""The exporters of the Python package: what can be given, what comes back, and what is refused."""

import copy
import dataclasses
import json
from collections import OrderedDict, namedtuple

import onnxruntime
import pytest
import torch
import transporters
from torch import nn
from transporters import (
    AutoExportConfig,
    AutoHfExporter,
    DynamoConfig,
    DynamoExporter,
    ExecutorchExporter,
    ExportError,
    ExportFormat,
    OnnxConfig,
    OnnxExporter,
    OpenVINOExporter,
)

EXPORTERS = {"dynamo": DynamoExporter, "onnx": OnnxExporter}
both = pytest.mark.parametrize("exporter", EXPORTERS.values(), ids=EXPORTERS)
X = torch.linspace(-2, 3, 20).reshape(5, 4)
Y = torch.linspace(1, 2, 20).reshape(5, 4)

Pair = namedtuple("Pair", ["left", "right"])


@dataclasses.dataclass
class Boxes:
    corners: torch.Tensor
    scores: torch.Tensor
    label: str = "box"


class Function(nn.Module):
    """A module whose forward is the given function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


class Add(nn.Module):
    def forward(self, x, y):
        return x + 2 * y


def leaves(value):
    return torch.utils._pytree.tree_leaves(value)


def check(exported, model, *args, **kwargs):
    """The export gives what eager gives, nested alike."""
    with torch.no_grad():
        expected = model(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    actual = exported(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    assert type(actual) is type(expected)
    wanted, spec = torch.utils._pytree.tree_flatten(expected)
    got, got_spec = torch.utils._pytree.tree_flatten(actual)
    assert got_spec == spec
    for a, b in zip(got, wanted):
        if isinstance(b, torch.Tensor):
            assert a.dtype == b.dtype and a.shape == b.shape and torch.allclose(a, b, atol=1e-5), (a, b)
        else:
            assert a == b and type(a) is type(b)


# ── Inputs ──


@both
def test_positional_inputs(exporter):
    exported = exporter().export(Add(), (X, Y))
    check(exported, Add(), X, Y)
    check(exporter().export(Add(), [X, Y]), Add(), X, Y)


@both
def test_keyword_inputs(exporter):
    model = Add()
    exported = exporter().export(model, {"y": Y, "x": X})
    check(exported, model, x=X, y=Y)
    check(exported, model, y=X, x=Y)


def test_inputs_of_the_onnx_model_have_the_names_of_the_parameters():
    for inputs in ((X, Y), {"x": X, "y": Y}):
        session = OnnxExporter().export(Add(), inputs).session()
        assert [value.name for value in session.get_inputs()] == ["x", "y"]


@both
def test_nested_inputs(exporter):
    class Nested(nn.Module):
        def forward(self, pair, many, *, options):
            return pair.left * many[0] + options["b"][1] - pair.right + sum(many[1:])

    model = Nested()
    inputs = {"pair": Pair(X, Y), "many": [X, Y, X + 1], "options": {"a": Y, "b": (X, Y + 3)}}
    exported = exporter().export(model, inputs, {"dynamic": True})
    other = {"pair": Pair(X[:2], Y[:2]), "many": [Y[:2], X[:2], X[:2]], "options": {"a": Y[:2], "b": (X[:2], Y[:2])}}
    check(exported, model, **inputs)
    check(exported, model, **other)


@both
def test_a_dataclass_goes_in_and_out(exporter):
    class Shift(nn.Module):
        def forward(self, boxes):
            return Boxes(boxes.corners + 1, boxes.scores.sigmoid())

    model = Shift()
    exported = exporter().export(model, (Boxes(X, Y),))
    actual, expected = exported(Boxes(Y, X)), model(Boxes(Y, X))
    assert type(actual) is Boxes and actual.label == "box"
    assert torch.equal(actual.corners, expected.corners) and torch.allclose(actual.scores, expected.scores)


@both
def test_variable_positional_and_keyword_parameters(exporter):
    class Sum(nn.Module):
        def forward(self, first, *rest, **named):
            return first + sum(rest) * named["scale"]

    model = Sum()
    with pytest.raises(ExportError, match="KeyError"):
        exporter().export(model, (X, Y))
    exported = exporter().export(model, {"first": X, "scale": Y})
    check(exported, model, first=Y, scale=X)


@both
def test_numbers_strings_and_none_become_constants_of_the_export(exporter):
    class Switch(nn.Module):
        def forward(self, x, times: int = 1, shift: float = 0.0, mode: str = "add", flag: bool = False, other=None):
            if other is not None:
                x = x + other
            x = x + shift if mode == "add" else x - shift
            return (-x if flag else x) * times

    model = Switch()
    inputs = {"x": X, "times": 3, "shift": 0.5, "mode": "subtract", "flag": True, "other": None}
    exported = exporter().export(model, inputs)
    check(exported, model, **inputs)
    # What was fixed need not be given again.
    assert torch.allclose(exported(x=Y), model(**{**inputs, "x": Y}))
    del inputs["x"]
    assert json.loads(exported.metadata["in_constants"]) == inputs


@both
def test_positional_constants(exporter):
    class Scale(nn.Module):
        def forward(self, x, k, name):
            return x * k

    exported = exporter().export(Scale(), (X, 2.5, "name"))
    check(exported, Scale(), X, 2.5, "name")


@both
def test_constants_inside_containers(exporter):
    class Scale(nn.Module):
        def forward(self, x, options):
            return x * options["k"] + options["y"]

    exported = exporter().export(Scale(), {"x": X, "options": {"k": 3, "y": Y}})
    check(exported, Scale(), x=Y, options={"k": 3, "y": X})


@both
def test_another_value_for_a_constant_is_refused(exporter):
    class Scale(nn.Module):
        def forward(self, x, k=2):
            return x * k

    exported = exporter().export(Scale(), {"x": X, "k": 3})
    with pytest.raises(ExportError, match=r"'k' is 3 in this export.*4"):
        exported(x=X, k=4)


@both
def test_optional_arguments_and_unused_tensors_are_kept(exporter):
    """pytorch#136179, #119180, #104949."""

    class Odd(nn.Module):
        def forward(self, x, y=None, k: float = 0.1, flag: bool = False, unused=None):
            return x + k, None, 2 * x

    model = Odd()
    inputs = {"x": X, "y": None, "k": 0.1, "flag": False, "unused": Y}
    exported = exporter().export(model, inputs)
    check(exported, model, **inputs)
    assert exported(**inputs)[1] is None
    program = exported.components["model"].program._component.program
    assert [target for _, target, value, *_ in program.inputs if value is not None] == ["x", "unused"]
    if exporter is OnnxExporter:
        assert [value.name for value in exported.session().get_inputs()] == ["x", "unused"]


@both
def test_one_tensor_given_for_several_inputs_is_several_inputs(exporter):
    """pytorch#139646, #139805, #144683."""

    class Mix(nn.Module):
        def forward(self, many, y, z):
            return many[0] + 10 * many[1] + 100 * many[2] + 1000 * y + 10000 * z

    one = torch.ones(3)
    exported = exporter().export(Mix(), ([one, one, one], one, one))
    a, b, c, d, e = (torch.full((3,), float(value)) for value in (1, 10, 100, 1000, 10000))
    assert torch.equal(exported([a, b, c], d, e), Mix()([a, b, c], d, e))


@both
def test_a_generator_that_reads_the_list_it_extends(exporter):
    """pytorch#130975."""

    class Lazy(nn.Module):
        def forward(self, x):
            y = [x]
            y.extend(y[-1] + 2 for _ in range(2))
            return torch.cat(y)

    exported = exporter().export(Lazy(), (torch.ones(1, 1),))
    assert exported(torch.ones(1, 1)).flatten().tolist() == [1, 3, 5]


# ── Outputs ──

OUTPUTS = {
    "tensor": lambda x: x + 1,
    "tuple": lambda x: (x, x + 1),
    "list": lambda x: [x + 1, (x * 2, [x])],
    "dict": lambda x: {"b": x + 1, "a": x * 2},
    "ordered dict": lambda x: OrderedDict(z=x + 1, a=x),
    "namedtuple": lambda x: Pair(x + 1, Pair(x, x * 2)),
    "none inside": lambda x: (None, x + 1, {"a": None}),
    "numbers": lambda x: (x + 1, 3, 2.5, True, "text"),
    "the input": lambda x: x,
    "one value twice": lambda x: [y := x + 1, y],
    "a size": lambda x: (x + 1, x.shape[1]),
    "scalar": lambda x: x.sum(),
    "integers": lambda x: (x > 0).long(),
    "booleans": lambda x: x > 0,
    "views": lambda x: (x.t(), x[1:], x.expand(2, 5, 4)),
}


@both
@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_nest_as_the_model_returns_them(exporter, name):
    model = Function(OUTPUTS[name])
    check(exporter().export(model, (X,)), model, Y)


@both
def test_sizes_that_are_returned_are_those_of_the_call(exporter):
    model = Function(lambda x: (x.shape[0], x.shape[0] * 2 + 1, x.sum()))
    exported = exporter().export(model, (X,), {"dynamic": True})
    assert exported(X[:3])[:2] == (3, 7)
    assert all(type(size) is int for size in exported(X[:3])[:2])


@both
def test_an_output_that_no_export_can_hold_is_named(exporter):
    with pytest.raises(ExportError, match="outputs hold a builtins.object"):
        exporter().export(Function(lambda x: (x, object())), (X,))


# ── What comes back ──


def test_a_dynamo_export_saves_loads_and_converts(tmp_path):
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
    exported = DynamoExporter().export(model, (X,), DynamoConfig(dynamic=True))
    exported.save(tmp_path / "net.pt2")
    loaded = torch.export.load(tmp_path / "net.pt2")
    expected = model(X[:2]).detach()
    assert torch.allclose(loaded.module()(X[:2]), expected, atol=1e-6)
    converted = exported.to_exported_program()
    assert isinstance(converted, torch.export.ExportedProgram)
    assert torch.allclose(converted.module()(X[:3]), model(X[:3]).detach(), atol=1e-6)
    module = exported.module()
    assert isinstance(module, nn.Module) and torch.allclose(module(X[:2]), expected, atol=1e-6)
    assert set(loaded.state_dict) == {"0.weight", "0.bias"}


def test_an_onnx_export_saves_and_has_a_proto(tmp_path):
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU()).eval()
    x = torch.randn(3, 64)
    exported = OnnxExporter().export(model, (x,), OnnxConfig(opset_version=18))
    exported.save(tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx.data").stat().st_size >= 64 * 64 * 4
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    (actual,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert torch.allclose(torch.from_numpy(actual), model(x).detach(), atol=1e-5)
    proto = exported.model_proto
    assert proto.opset_import[0].version == 18
    assert sum(len(tensor.raw_data) for tensor in proto.graph.initializer) >= 64 * 64 * 4
    (tmp_path / "whole").mkdir()
    OnnxExporter().export(model, (x,), OnnxConfig(external_data_threshold=10**6)).save(tmp_path / "whole" / "net.onnx")
    assert [path.name for path in (tmp_path / "whole").iterdir()] == ["net.onnx"]


@both
def test_buffers_keep_their_new_values(exporter):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.full((), 4.0))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count

    model = Counter()
    exported = exporter().export(model, (torch.zeros(2),))
    assert model.count.item() == 4.0
    assert [exported(torch.zeros(2))[0].item() for _ in range(3)] == [5.0, 6.0, 7.0]


@both
def test_inputs_that_the_model_writes_to_are_written(exporter):
    class Write(nn.Module):
        def forward(self, x, cache):
            cache[0] = x.sum()
            return cache * 2

    exported = exporter().export(Write(), (X, torch.zeros(3)))
    cache = torch.zeros(3)
    assert torch.allclose(exported(X, cache), torch.tensor([2 * X.sum(), 0, 0]))
    assert torch.allclose(cache, torch.tensor([X.sum(), 0, 0]))


@both
def test_the_export_prints_its_graph_and_itself(exporter):
    exported = exporter().export(Add(), (X, Y))
    assert "x" in exported.graph and "y" in exported.graph
    assert str(exporter.export_format) in repr(exported)


@both
def test_wrong_calls_are_told_what_is_expected(exporter):
    exported = exporter().export(Add(), {"x": X, "y": Y})
    with pytest.raises(ExportError, match="misses y"):
        exported(x=X)
    with pytest.raises(ExportError, match="does not take z"):
        exported(x=X, y=Y, z=X)
    with pytest.raises(ExportError, match="tensor is expected where a str is given"):
        exported(x=X, y="text")
    with pytest.raises(AttributeError):
        exported._nothing
    with pytest.raises(AttributeError):
        exported.nothing


# ── Configs ──


@pytest.mark.parametrize("name", ["dynamo", "onnx"])
def test_configs_and_exporters_by_name(name):
    fields = {"export_format": name, "dynamic": True}
    config = AutoExportConfig.from_dict(fields)
    assert config.dynamic and config.export_format is ExportFormat(name)
    assert AutoExportConfig.from_dict(config.to_dict()) == config
    assert AutoExportConfig.from_json(config.to_json_string()) == config
    for given in (config, fields):
        exporter = AutoHfExporter.from_config(given)
        assert type(exporter) is EXPORTERS[name]
        check(exporter.export(Add(), (X, Y), config), Add(), X[:2], Y[:2])


def test_onnx_fields_reach_the_export():
    config = OnnxConfig(opset_version=19, optimize=False)
    exported = OnnxExporter().export(nn.Identity(), (X,), config)
    assert exported.model_proto.opset_import[0].version == 19
    default = OnnxExporter().export(nn.Identity(), (X,), {"export_format": "onnx"})
    assert default.model_proto.opset_import[0].version == 20


def test_wrong_configs_are_refused():
    with pytest.raises(ExportError, match="has no field 'dinamic'; it has .*dynamic"):
        AutoExportConfig.from_dict({"export_format": "onnx", "dinamic": True})
    with pytest.raises(ExportError, match="has no field 'opset_version'"):
        AutoExportConfig.from_dict({"export_format": "dynamo", "opset_version": 18})
    with pytest.raises(ExportError, match="is missing: one of"):
        AutoExportConfig.from_dict({"dynamic": True})
    with pytest.raises(ExportError, match="not 'tensorrt'"):
        AutoExportConfig.from_dict({"export_format": "tensorrt"})
    with pytest.raises(ExportError, match="not 'tensorrt'"):
        AutoHfExporter.from_config({"export_format": "tensorrt"})
    with pytest.raises(ExportError, match="but DynamoConfig is for 'dynamo'"):
        DynamoConfig.from_dict({"export_format": "onnx"})
    with pytest.raises(ExportError, match="fallback is None or 'torch.export'"):
        DynamoConfig(fallback="torch.jit")
    with pytest.raises(ExportError, match="takes a OnnxConfig or a dict, not a DynamoConfig"):
        OnnxExporter().export(Add(), (X, Y), DynamoConfig())
    with pytest.raises(ExportError, match="opset"):
        OnnxExporter().export(Add(), (X, Y), OnnxConfig(opset_version=11))


@pytest.mark.parametrize("exporter", [ExecutorchExporter, OpenVINOExporter])
def test_targets_to_come_say_so(exporter):
    with pytest.raises(ExportError, match="not built yet"):
        exporter()


# ── Refused models and inputs ──


@both
def test_what_is_no_module_or_no_sample_is_refused(exporter):
    with pytest.raises(ExportError, match="a torch.nn.Module or an ExportedProgram is expected, not a function"):
        exporter().export(lambda x: x, (X,))
    with pytest.raises(ExportError, match="sample inputs are needed"):
        exporter().export(Add())
    with pytest.raises(ExportError, match=r"a single tensor goes into a tuple: \(x,\)"):
        exporter().export(Add(), X)
    with pytest.raises(ExportError, match="forward takes 2 positional arguments, 3 are given"):
        exporter().export(Add(), (X, Y, X))
    with pytest.raises(ExportError, match="unexpected keyword argument 'z'"):
        exporter().export(Add(), {"x": X, "y": Y, "z": X})
    with pytest.raises(ExportError, match="inputs hold a builtins.object"):
        exporter().export(Add(), {"x": X, "y": object()})


@both
def test_weights_without_values_are_named(exporter):
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)).eval()
    with pytest.raises(ExportError, match="meta device for '0.weight', '0.bias', '1.weight', '1.bias'"):
        exporter().export(model, (X,))


@both
def test_training_mode_is_refused_where_it_matters(exporter):
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    with pytest.raises(ExportError, match=r"training mode.*call eval\(\)"):
        exporter().export(model.train(), (X,))
    exporter().export(model.eval(), (X,))
    linear = nn.Linear(4, 4).train()
    check(exporter().export(linear, (X,)), linear, X)


@both
def test_an_error_of_the_model_names_its_line_and_module(exporter):
    class Inner(nn.Module):
        def forward(self, x):
            return x.reshape(7, 7)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([nn.Identity(), Inner()])

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    with pytest.raises(ExportError) as caught:
        exporter().export(Outer(), (X,))
    text = str(caught.value)
    assert "test_package_api.py" in text and "x.reshape(7, 7)" in text
    assert caught.value.source.endswith("return x.reshape(7, 7)")
    assert "blocks.1" in text


def test_a_branch_on_data_is_taken_as_for_the_sample_and_noted():
    class Branch(nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else -x

    assert X.sum() > 0
    for exporter in EXPORTERS.values():
        exported = exporter().export(Branch(), (X,))
        assert any("the data decides" in note and "test_package_api.py" in note for note in exported.notes)
        check(exported, Branch(), Y)


@both
def test_code_that_prints_tensors_is_traced(exporter, capsys):
    class Prints(nn.Module):
        def forward(self, x):
            print(x, f"{x + 1}", [x.sum()])
            if x.shape[1] > 100:
                raise ValueError(f"not {x}")
            return x + 1

    check(exporter().export(Prints(), (X,), {"dynamic": True}), Prints(), Y)
    assert "tensor(..., size=(" in capsys.readouterr().out
    with pytest.raises(ExportError, match=r"ValueError: not tensor\(\.\.\., size=\(2, 200\)"):
        exporter().export(Prints(), (torch.ones(2, 200),))


def test_the_version_is_told():
    assert transporters.__version__.count(".") == 2
