"""Fixes and translations that are written in Python: what they see, what they change, and that they go away."""

import traceback

import onnx
import pytest
import torch
import transporters
from torch import nn
from transporters import DynamoConfig, DynamoExporter, ExportError, OnnxConfig, OnnxExporter


@pytest.fixture(autouse=True)
def own_registrations():
    with transporters.registrations():
        yield


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(6, 3)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Gate(nn.Module):
    def forward(self, x):
        return (x * x) * 2 + 1


def helper(x):
    return x - 5


class UsesHelper(nn.Module):
    def forward(self, x):
        return helper(x)


X = torch.linspace(-2, 3, 20).reshape(5, 4)


def eager(model, *args):
    with torch.no_grad():
        return model(*args)


def ops(exported):
    return exported.components["model"].program._component.program.ops


def onnx_ops(exported):
    return [node.op_type for node in exported.model_proto.graph.node]


# ── Node and program fixes ──


def test_a_node_fix_sees_every_node_and_replaces_one():
    seen = []

    @transporters.register_fx_node_fix("dynamo")
    def relu_as_clamp(program, node):
        seen.append((node.op, node.module_path, node.output.sizes))
        if node.op == "aten::relu":
            made = node.replace_with("aten::clamp_min", self=node.args["self"], min=0)
            assert made.op == "aten::clamp_min" and made.output.name == "relu"

    model = Net().eval()
    exported = DynamoExporter().export(model, (X,), DynamoConfig(dynamic=True))
    assert [op for op, _, _ in seen if "linear" in op or "relu" in op] == ["aten::linear", "aten::relu", "aten::linear"]
    assert seen[0][1] == "first"
    assert str(seen[0][2][0]) == "x_dim0" and seen[0][2][1] == 6
    assert "aten::relu" not in ops(exported) and ops(exported)["aten::clamp_min"] == 1
    assert torch.allclose(exported(X[:2]), eager(model, X[:2]), atol=1e-5)


def test_a_node_fix_for_onnx_leaves_dynamo_alone():
    @transporters.register_fx_node_fix("onnx")
    def relu_as_sigmoid(program, node):
        if node.op == "aten::relu":
            node.replace_with("aten::sigmoid", self=node.args["self"])
            return True

    model = Net().eval()
    assert torch.allclose(DynamoExporter().export(model, (X,))(X), eager(model, X), atol=1e-5)
    exported = OnnxExporter().export(model, (X,))
    assert "Sigmoid" in onnx_ops(exported) and "Relu" not in onnx_ops(exported)
    assert torch.allclose(exported(X), model.second(torch.sigmoid(model.first(X))), atol=1e-5)


def test_nodes_are_inserted_set_and_erased():
    class Scaled(nn.Module):
        def forward(self, x):
            return torch.softmax(x * 2.0, dim=-1), x.size(0)

    @transporters.register_fx_node_fix("dynamo")
    def rewrite(program, node):
        if node.op == "aten::softmax.int" or node.op == "aten::_softmax":
            node.set("dim", 0)
        if node.op == "aten::mul.Tensor":
            assert node.args["other"] == 2.0
            exp = node.insert_before("aten::exp", self=node.args["self"])
            assert exp.next is node and node.prev is exp
            assert [str(size) for size in exp.output.sizes] == ["n", "4"]
            total = node.insert_before("aten::add.Tensor", self=exp.output, other=node.args["self"], alpha=3)
            program.replace_all_uses(node.output, total.output)
            node.erase()

    exported = DynamoExporter().export(
        Scaled(), (X,), DynamoConfig(dynamic_shapes={"x": {0: torch.export.Dim("n", min=2)}})
    )
    actual, rows = exported(X[:3])
    assert torch.allclose(actual, torch.softmax(X[:3].exp() + 3 * X[:3], dim=0), atol=1e-5)
    assert rows == 3


def test_a_fix_may_erase_nodes_around_the_one_it_is_given():
    class Chain(nn.Module):
        def forward(self, x):
            return torch.tanh(torch.sigmoid(torch.exp(torch.sin(x))))

    @transporters.register_fx_node_fix("dynamo")
    def fuse(program, node):
        if node.op != "aten::sigmoid":
            return
        tail, head = node.next, node.prev
        assert (head.op, tail.op) == ("aten::exp", "aten::tanh")
        made = node.insert_before("aten::cos", self=head.args["self"])
        program.replace_all_uses(tail.output, made.output)
        for dead in (tail, node, head):
            dead.erase()

    exported = DynamoExporter().export(Chain(), (X,))
    assert list(ops(exported)) == ["aten::cos", "aten::sin"]
    assert torch.allclose(exported(X), torch.cos(torch.sin(X)), atol=1e-6)


def test_a_program_fix_sees_inputs_state_and_outputs():
    kept = {}

    @transporters.register_fx_program_fix("dynamo")
    def fix(program):
        kept.update(
            inputs=list(program.inputs),
            state=list(program.state),
            outputs=list(program.outputs),
            text=str(program),
            nodes=[node.op for node in program],
            bias=program.data(program.state["first.bias"]),
            nothing=program.data(program.inputs["x"]),
            count=len(program),
            users=[node.op for node in program.inputs["x"].users],
            missing=program.find("no_such_value"),
        )
        shift = program.add_constant("shift", torch.full((3,), 10.0))
        output = program.outputs["output"] if "output" in program.outputs else next(iter(program.outputs.values()))
        assert output.is_output and output.is_tensor and output.dtype == torch.float32 and output.number is None
        total = program.append("aten::add.Tensor", self=output, other=shift)
        program.replace_all_uses(output, total.output)
        total.set("self", output)

    model = Net().eval()
    exported = DynamoExporter().export(model, (X,))
    assert torch.allclose(exported(X), eager(model, X) + 10, atol=1e-5)
    assert kept["inputs"] == ["x"] and len(kept["outputs"]) == 1
    assert set(kept["state"]) == {"first.weight", "first.bias", "second.weight", "second.bias"}
    assert torch.equal(kept["bias"], model.first.bias) and kept["bias"].data_ptr() != model.first.bias.data_ptr()
    assert kept["nothing"] is None and kept["missing"] is None
    assert kept["nodes"] == ["aten::linear", "aten::relu", "aten::linear"] and kept["count"] == 3
    assert kept["users"] == ["aten::linear"] and "aten::relu" in kept["text"]


def test_arguments_come_and_go_as_python_values():
    class Many(nn.Module):
        def forward(self, x):
            y = torch.cat([x, x], dim=1).to(torch.float64)
            return torch.zeros(x.size(0), 2 * x.size(1), dtype=torch.float64) + y.sum([0, 1], keepdim=True)

    seen = {}

    @transporters.register_fx_node_fix("dynamo")
    def look(program, node):
        seen[node.op] = node.args
        if node.op == "aten::cat":
            seen["names"] = [value.name for value in node.args["tensors"]]
        for name, value in node.args.items():
            node.set(name, value)

    model = Many()
    exported = DynamoExporter().export(model, (X,), DynamoConfig(dynamic=True))
    assert torch.allclose(exported(X[:2, :3]), model(X[:2, :3]))
    assert seen.pop("names") == ["x", "x"] and seen["aten::cat"]["dim"] == 1
    assert torch.float64 in [
        value for args in seen.values() for value in args.values() if isinstance(value, torch.dtype)
    ]
    total = seen["aten::sum.dim_IntList"]
    assert total["dim"] == [0, 1] and total["keepdim"] is True and total["dtype"] is None


def test_expressions_compute():
    class Flat(nn.Module):
        def forward(self, x):
            return x.reshape(-1)

    kept = []

    @transporters.register_fx_program_fix("dynamo")
    def look(program):
        (rows, columns), (flat,) = program.inputs["x"].sizes, next(iter(program.outputs.values())).sizes
        kept.append(flat == rows * columns)
        kept.append(str(2 * rows + 1 - rows))
        kept.append((rows * 4) // 2 == 2 * rows)
        kept.append((rows - rows, (rows % 1), hash(rows) == hash(rows + 0)))
        kept.append((rows * columns).symbols)
        with pytest.raises(ExportError, match="the operand is a str, expected a number"):
            rows + "1"

    DynamoExporter().export(Flat(), (X,), DynamoConfig(dynamic=True))
    assert kept == [True, "x_dim0 + 1", True, (0, 0, True), ["x_dim0", "x_dim1"]]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda program, node: node.replace_with("aten::sum", self=node.args["self"]), "gives .* in place of"),
        (lambda program, node: node.replace_with("aten::nothing", self=node.args["self"]), "aten::nothing"),
        (lambda program, node: node.replace_with("aten::sigmoid", input=node.args["self"]), "no argument 'input'"),
        (lambda program, node: node.replace_with("aten::sigmoid"), "argument 'self' is missing"),
        (lambda program, node: node.replace_with("aten::sigmoid", self="x"), "'self' is a str, expected a Value"),
        (lambda program, node: node.set("slf", 1), "no argument 'slf'.*'self'"),
        (lambda program, node: node.erase(), "'%relu' is still used"),
    ],
)
def test_wrong_rewrites_are_refused_and_name_the_op(change, message):
    @transporters.register_fx_node_fix("dynamo")
    def fix(program, node):
        if node.op == "aten::relu":
            change(program, node)

    with pytest.raises(ExportError, match=message) as caught:
        DynamoExporter().export(Net().eval(), (X,))
    assert any("failed in pass" in note and "fix" in note for note in caught.value.__notes__)


def test_what_a_fix_raises_comes_out_as_it_was_raised():
    @transporters.register_fx_program_fix("dynamo")
    def broken(program):
        raise KeyError("missing table")

    with pytest.raises(KeyError, match="missing table") as caught:
        DynamoExporter().export(Net().eval(), (X,))
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "broken"
    assert any("[passes] failed in pass" in note for note in caught.value.__notes__)
    transporters.unregister(broken)
    DynamoExporter().export(Net().eval(), (X,))


def test_objects_of_a_graph_end_with_the_call():
    kept = []

    @transporters.register_fx_node_fix("dynamo")
    def keep(program, node):
        kept.extend([program, node, node.output])
        if node.op == "aten::relu":
            node.replace_with("aten::sigmoid", self=node.args["self"])
            with pytest.raises(ExportError, match="was erased"):
                node.op

    DynamoExporter().export(Net().eval(), (X,))
    for held in kept:
        with pytest.raises(ExportError, match="after the function that it was given to has returned"):
            str(held.name) if hasattr(type(held), "name") else str(held.op if hasattr(type(held), "op") else held)


def test_a_value_of_another_program_is_refused():
    kept = []

    @transporters.register_fx_node_fix("dynamo")
    def mix(program, node):
        kept.append(node.output)
        if len(kept) > 1:
            node.set("self", kept[0])

    with pytest.raises(ExportError, match="after the function"):
        DynamoExporter().export(Gate(), (X,))


# ── ONNX ──


@torch.library.custom_op("package_registry_test::halve", mutates_args=())
def halve(x: torch.Tensor, times: int) -> torch.Tensor:
    return x / 2**times


@halve.register_fake
def _(x, times):
    return torch.empty_like(x)


class Halves(nn.Module):
    def forward(self, x):
        return halve(x + 1, 3)


def test_an_op_of_the_users_own_is_translated():
    with pytest.raises(ExportError, match="no ONNX translation for 'package_registry_test::halve'"):
        OnnxExporter().export(Halves(), (X,))

    @transporters.register_onnx_translation("package_registry_test::halve")
    def translate(lowering, node):
        x = lowering.input(node, "x")
        return lowering.emit("Div", [x, lowering.scalar(2.0 ** node.args["times"], x.dtype)])

    exported = OnnxExporter().export(Halves(), (X,), OnnxConfig(dynamic=True))
    assert torch.allclose(exported(X[:2]), (X[:2] + 1) / 8)
    transporters.unregister(translate)
    with pytest.raises(ExportError, match="no ONNX translation"):
        OnnxExporter().export(Halves(), (X,))


def test_a_translation_wins_over_the_built_in_one():
    @transporters.register_onnx_translation("aten::relu")
    def translate(lowering, node):
        x = lowering.input(node, "self")
        return [lowering.emit("Max", [x, lowering.constant(torch.zeros(()))])]

    model = Net().eval()
    exported = OnnxExporter().export(model, (X,))
    assert "Max" in onnx_ops(exported) and "Relu" not in onnx_ops(exported)
    assert torch.allclose(exported(X), eager(model, X), atol=1e-5)


def test_the_lowering_does_what_translations_need():
    class Flipped(nn.Module):
        def forward(self, x, y):
            return torch.flip(x, [0, -1]), torch.stack([x, y], dim=-1), x.cumsum(1, dtype=torch.float64)

    @transporters.register_onnx_translation("aten::flip")
    def flip(lowering, node):
        assert lowering.opset == 21
        dims = lowering.dims(node, "dims")
        assert dims == [0, 1]
        x = lowering.input(node, "self")
        starts, ends = lowering.vector([-1] * len(dims)), lowering.vector([-(2**31)] * len(dims))
        sliced = lowering.emit("Slice", [x, starts, ends, lowering.vector(dims), lowering.vector([-1] * len(dims))])
        sizes = node.args["self"].sizes
        assert lowering.is_at_least(sizes[1], 4) and not lowering.is_at_least(sizes[0], 10**6)
        shape = lowering.shape([sizes[0] * sizes[1]])
        flat = lowering.emit("Reshape", [sliced, shape])
        return lowering.emit("Reshape", [flat, lowering.shape(sizes)])

    @transporters.register_onnx_translation("aten::stack")
    def stack(lowering, node):
        dim = node.args["dim"] + 3
        dim = node.args["dim"] + 3
        values = [lowering.unsqueeze(value, [dim]) for value in lowering.inputs(node, "tensors")]
        back = lowering.transpose(lowering.transpose(lowering.emit("Concat", values, axis=dim), [2, 0, 1]), [1, 2, 0])
        return lowering.squeeze(lowering.unsqueeze(back, [0]), [0])

    @transporters.register_onnx_translation("aten::cumsum")
    def cumsum(lowering, node):
        assert node.args["dtype"] == torch.float64
        x = lowering.cast(lowering.value(node.args["self"]), torch.float64)
        axis = lowering.once("axis", lambda: lowering.size(lowering.dim(node, "dim")))
        rows = lowering.number(node.args["self"].sizes[0], torch.float64)
        total = lowering.emit("CumSum", [x, axis])
        return lowering.emit("Sub", [lowering.emit("Add", [total, rows]), rows])

    model = Flipped()
    exported = OnnxExporter().export(
        model, (X, X + 1), OnnxConfig(dynamic_shapes=({0: torch.export.Dim("n", min=2)},) * 2, opset_version=21)
    )
    for actual, expected in zip(exported(X[:3], X[:3] * 2), model(X[:3], X[:3] * 2)):
        assert actual.dtype == expected.dtype and torch.allclose(actual, expected)


def test_nodes_of_other_domains_bring_their_opset():
    @transporters.register_onnx_translation("aten::relu")
    def translate(lowering, node):
        x = lowering.input(node, "self")
        value = lowering.emit(
            "Gate",
            [x, None, x],
            domain="my.domain",
            version=3,
            dtype=torch.float32,
            alpha=0.5,
            names=["a", "b"],
            flags=[1, 2],
            ratios=[0.5, 1],
            table=torch.arange(3),
            to=torch.float16,
            deep=True,
            left_out=None,
        )
        first, second = lowering.emit("Split", [value], outputs=2, axis=-1, num_outputs=2)
        return lowering.emit("Concat", [first, second], axis=-1)

    proto = OnnxExporter().export(Net().eval(), (X,)).model_proto
    assert {entry.domain: entry.version for entry in proto.opset_import}["my.domain"] == 3
    (gate,) = [node for node in proto.graph.node if node.op_type == "Gate"]
    assert gate.domain == "my.domain" and gate.input[1] == ""
    values = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in gate.attribute}
    assert values.pop("table").dims == [3]
    assert values == {"alpha": 0.5, "names": [b"a", b"b"], "flags": [1, 2], "ratios": [0.5, 1.0], "to": 10, "deep": 1}


@pytest.mark.parametrize(
    "translate, message",
    [
        (lambda lowering, node: None, "gives a NoneType"),
        (lambda lowering, node: [], "gives 0 values for 1 outputs"),
        (lambda lowering, node: node.output, "gives a GraphValue"),
        (lambda lowering, node: lowering.emit("Relu", [node.output]), r"lowering\.value\(\) gives the OnnxValue"),
        (
            lambda lowering, node: lowering.emit("Relu", [lowering.input(node, "self")], alpha=object()),
            "attribute 'alpha'",
        ),
        (lambda lowering, node: node.erase(), "fixes can change it"),
    ],
)
def test_wrong_translations_are_refused_at_their_place(translate, message):
    transporters.register_onnx_translation("aten::relu")(translate)
    with pytest.raises(ExportError, match=message) as caught:
        OnnxExporter().export(Net().eval(), (X,))
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "aten::relu" in text


def test_what_a_translation_raises_comes_out_with_its_place():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ReLU()

        def forward(self, x):
            return self.inner(x)

    @transporters.register_onnx_translation("aten::relu")
    def broken(lowering, node):
        raise ZeroDivisionError("in a translation")

    with pytest.raises(ZeroDivisionError) as caught:
        OnnxExporter().export(Outer(), (X,))
    assert any("op 'aten::relu' at inner" in note for note in caught.value.__notes__)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "broken"
    transporters.unregister(broken)

    @transporters.register_onnx_translation("aten::relu")
    def refused(lowering, node):
        raise lowering.error(node, "not for this target")

    with pytest.raises(ExportError, match=r"\[onnx\] op 'aten::relu' at inner: not for this target") as caught:
        OnnxExporter().export(Outer(), (X,))
    assert caught.value.op == "aten::relu" and caught.value.module == "inner"


def test_an_ir_fix_rewrites_the_model():
    seen = {}

    @transporters.register_onnx_ir_fix("relu to leaky relu")
    def fix(model):
        graph = model.graph
        seen.update(
            inputs=[(value.name, value.shape, value.dtype) for value in graph.inputs],
            outputs=[value.name for value in graph.outputs],
            initializers={value.name: value.tensor for value in graph.initializers},
            opsets=model.opsets,
            text=str(model),
        )
        model.set_metadata("fixed by", "test")
        for node in graph.nodes:
            if node.op == "Relu":
                assert node.domain == "" and node.inputs[0].producer is not None and node.attributes == {}
                assert [user.op for user in node.outputs[0].users] == [node.next.op]
                slope = graph.add_initializer("slope", torch.tensor([0.25]))
                made = graph.insert(node, "PRelu", [node.inputs[0], slope], dtype=torch.float32)
                graph.replace_all_uses(node.outputs[0], made.outputs[0])
                graph.erase(node)
            elif node.op == "Gemm":
                node.set("alpha", 2.0)
                assert node.attributes["alpha"] == 2.0

    model = Net().eval()
    exported = OnnxExporter().export(model, (X,), OnnxConfig(dynamic=True))
    linear = torch.nn.functional.linear
    hidden = torch.nn.functional.leaky_relu(2 * linear(X, model.first.weight) + model.first.bias, 0.25)
    expected = 2 * linear(hidden, model.second.weight) + model.second.bias
    assert torch.allclose(exported(X), expected, atol=1e-4)
    assert {entry.key: entry.value for entry in exported.model_proto.metadata_props}["fixed by"] == "test"
    assert seen["inputs"] == [("x", ["x_dim0", 4], torch.float32)]
    assert len(seen["outputs"]) == 1 and seen["opsets"] == {"": 20} and "Relu" in seen["text"]
    assert torch.equal(seen["initializers"]["first.bias"], model.first.bias)


def test_an_ir_fix_may_not_lose_an_output_of_the_model():
    @transporters.register_onnx_ir_fix()
    def fix(model):
        output = model.graph.outputs[0]
        model.graph.replace_all_uses(output, output.producer.inputs[0])

    with pytest.raises(ExportError, match="is an output of the model"):
        OnnxExporter().export(Net().eval(), (X,))


def test_a_block_takes_its_registrations_back():
    model = Net().eval()
    with transporters.registrations():

        @transporters.register_fx_node_fix("dynamo")
        @transporters.register_fx_node_fix("onnx")
        def fix(program, node):
            if node.op == "aten::relu":
                node.replace_with("aten::sigmoid", self=node.args["self"])

        transporters.register_patch("dynamo", f"{__name__}.helper")(lambda original: lambda x: x)
        assert "aten::sigmoid" in ops(DynamoExporter().export(model, (X,)))
        assert "Sigmoid" in onnx_ops(OnnxExporter().export(model, (X,)))
        assert torch.equal(DynamoExporter().export(UsesHelper(), (X,))(X), X)
    assert "aten::sigmoid" not in ops(DynamoExporter().export(model, (X,)))
    assert "Sigmoid" not in onnx_ops(OnnxExporter().export(model, (X,)))
    assert torch.equal(DynamoExporter().export(UsesHelper(), (X,))(X), X - 5)
