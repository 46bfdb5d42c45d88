"""Dynamic axes as torch.export writes them, through the Python package."""

import pytest
import torch
from torch import nn
from torch.export import Dim
from transporters import DynamoConfig, DynamoExporter, ExportError, OnnxConfig, OnnxExporter

EXPORTERS = {"dynamo": DynamoExporter, "onnx": OnnxExporter}
both = pytest.mark.parametrize("exporter", EXPORTERS.values(), ids=EXPORTERS)
X = torch.linspace(-2, 3, 24).reshape(6, 4)


class Net(nn.Module):
    def forward(self, x, y):
        return x.sum(-1, keepdim=True) + y


def export(exporter, dynamic_shapes, inputs=(X, X + 1), model=None, **fields):
    return exporter().export(model or Net(), inputs, {"dynamic_shapes": dynamic_shapes, **fields})


def check(exported, *args, model=None):
    assert torch.allclose(exported(*args), (model or Net())(*args), atol=1e-5)


@both
@pytest.mark.parametrize(
    "spec",
    [
        {"x": {0: Dim("n")}, "y": {0: Dim("n")}},
        {"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}},
        {"x": {0: Dim.DYNAMIC}, "y": {0: Dim.DYNAMIC}},
        {"x": {-2: Dim.AUTO}, "y": {-2: Dim.AUTO}},
        {"x": (Dim.AUTO, None), "y": [Dim.AUTO, Dim.STATIC]},
        ({0: Dim("n")}, {0: Dim("n")}),
        [(Dim("n"), None), (Dim("n"), None)],
    ],
    ids=["Dim", "AUTO", "DYNAMIC", "negative axis", "sequences", "tuple of dicts", "list of tuples"],
)
def test_an_axis_is_dynamic_and_the_others_are_fixed(exporter, spec):
    exported = export(exporter, spec)
    check(exported, X[:2], X[:2])
    check(exported, X[:1], X[:1])
    with pytest.raises(Exception, match="(?i)expected|invalid|size|dimension"):
        exported(X[:, :3].contiguous(), X)


@both
def test_an_input_that_is_left_out_or_none_is_static(exporter):
    model = nn.Module()
    model.forward = lambda x, y: (x * 2, y.sum())
    for spec in ({"x": {0: Dim("n")}}, {"x": {0: Dim("n")}, "y": None}, ({0: Dim("n")}, None)):
        exported = export(exporter, spec, model=model)
        doubled, total = exported(X[:2], X)
        assert torch.equal(doubled, X[:2] * 2) and torch.allclose(total, X.sum())
        with pytest.raises(Exception):
            exported(X, X[:2])


@both
def test_a_range_is_kept(exporter, tmp_path):
    n = Dim("n", min=2, max=8)
    exported = export(exporter, {"x": {0: n}, "y": {0: n}})
    check(exported, X[:2], X[:2])
    if exporter is DynamoExporter:
        exported.save(tmp_path / "net.pt2")
        loaded = torch.export.load(tmp_path / "net.pt2")
        (bounds,) = loaded.range_constraints.values()
        assert (bounds.lower, bounds.upper) == (2, 8)
        with pytest.raises(Exception):
            loaded.module()(torch.zeros(9, 4), torch.zeros(9, 4))


@both
def test_derived_dims(exporter):
    class Doubled(nn.Module):
        def forward(self, x, y):
            return x + torch.cat([y, y])

    n = Dim("n", min=1, max=100)
    exported = export(exporter, {"x": {0: 2 * n}, "y": {0: n}}, inputs=(X, X[:3]), model=Doubled())
    check(exported, X[:4], X[:2], model=Doubled())


@both
def test_a_dim_that_the_model_fixes_is_an_error_and_an_automatic_one_is_not(exporter):
    class Fixed(nn.Module):
        def forward(self, x, y):
            return x + y.reshape(6, 4)

    with pytest.raises(ExportError, match="'n'.*6|6.*'n'"):
        export(exporter, {"y": {0: Dim("n", min=2)}}, model=Fixed())
    exported = export(exporter, {"y": {0: Dim.AUTO}}, model=Fixed())
    assert any("fixed to 6" in note for note in exported.notes)
    check(exported, X, X, model=Fixed())


@both
def test_a_condition_on_a_dim_becomes_a_runtime_assert_when_asked_for(exporter):
    class Short(nn.Module):
        def forward(self, x, y):
            return x[:3] + y[:3]

    n = Dim("n", min=1, max=100)
    exported = export(
        exporter, {"x": {0: n}, "y": {0: n}}, model=Short(), prefer_deferred_runtime_asserts_over_guards=True
    )
    check(exported, X[:4], X[:4], model=Short())


class Longer(nn.Module):
    def forward(self, x, y):
        if x.shape[0] > y.shape[0]:
            return x.sum(0) * 2
        return y.sum(0)


@pytest.mark.parametrize("rows", [(6, 3), (2, 6), (1, 4)])
@both
def test_a_branch_on_two_sizes_holds_for_sizes_that_take_it(exporter, rows):
    inputs = tuple(X[:count] for count in rows)
    exported = export(exporter, None, inputs, Longer(), dynamic=True)
    check(exported, *inputs, model=Longer())
    check(exported, *(X[: count + 2].repeat(2, 1) for count in rows), model=Longer())
    # ONNX has no op that stops a run: there the condition reads past the end of a constant.
    with pytest.raises(Exception, match="expected .*x_dim0|out of data bounds"):
        exported(*(X[:count] for count in reversed(rows)))


@both
def test_nested_inputs_take_nested_axes(exporter):
    class Nested(nn.Module):
        def forward(self, pair, options):
            return pair[0] + pair[1][0] + options["a"]

    n = Dim("n", min=2)
    inputs = {"pair": (X, [X]), "options": {"a": X, "k": 3, "b": X}}
    specs = [
        {"pair": ({0: n}, [{0: n}]), "options": {"a": {0: n}, "k": None, "b": None}},
        {"pair": ({0: n}, [{0: n}]), "options": {"a": {0: n}}},
    ]
    for spec in specs:
        exported = export(exporter, spec, inputs=inputs, model=Nested())
        other = {"pair": (X[:3], [X[1:4]]), "options": {"a": X[:3], "k": 3, "b": X}}
        assert torch.allclose(exported(**other), Nested()(**other))


@both
def test_a_size_of_one_in_the_sample_does_not_fix_the_axis(exporter):
    exported = export(exporter, {"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}}, inputs=(X[:1], X[:1]))
    check(exported, X, X)


@both
def test_dynamic_makes_every_axis_dynamic(exporter):
    exported = exporter().export(Net(), (X, X), {"dynamic": True})
    check(exported, X[:2, :3].contiguous(), X[:2, :3].contiguous())
    check(exported, X, X[:, :1].contiguous())


@both
def test_dynamic_shapes_win_over_dynamic(exporter):
    exported = export(exporter, {"x": {0: Dim("n")}, "y": {0: Dim("n")}}, dynamic=True)
    check(exported, X[:2], X[:2])
    with pytest.raises(Exception):
        exported(X[:, :3].contiguous(), X)


def test_names_of_dims_are_those_of_the_onnx_model():
    batch = Dim("batch")
    exported = export(OnnxExporter, {"x": {0: batch}, "y": {0: batch}})
    shapes = {value.name: value.shape for value in exported.session().get_inputs()}
    assert shapes == {"x": ["batch", 4], "y": ["batch", 4]}
    assert exported.session().get_outputs()[0].shape == ["batch", 4]


@both
@pytest.mark.parametrize(
    "spec, message",
    [
        ({"z": {0: Dim("n")}}, "there is no input 'z'; the inputs are x, y"),
        ({"x": {2: Dim("n")}}, "input 'x': has rank 2, but a Dim is given for axis 2"),
        ({"x": (Dim("n"),)}, "input 'x': has rank 2, but 1 axes are given"),
        ({"x": Dim("n")}, "input 'x'"),
        ({"x": {0: 2.5}}, "axis 0 is given 2.5"),
        (({0: Dim("n")},), "axes are given for 1 inputs, but there are 2"),
        (3, "a dict or a sequence is expected, not int"),
    ],
)
def test_wrong_specs_name_the_input_and_the_axis(exporter, spec, message):
    with pytest.raises(ExportError, match=message):
        export(exporter, spec)


@both
def test_a_spec_that_nests_unlike_the_input_is_refused(exporter):
    class Nested(nn.Module):
        def forward(self, pair):
            return pair[0] + pair[1]

    with pytest.raises(ExportError, match="'pair'.*has 2 parts, but axes are given for 1"):
        export(exporter, {"pair": ({0: Dim("n")},)}, inputs={"pair": (X, X)}, model=Nested())


def test_configs_are_not_changed_by_an_export():
    n = Dim("n")
    config = OnnxConfig(dynamic_shapes={"x": {0: n}, "y": {0: n}})
    OnnxExporter().export(Net(), (X, X), config)
    assert config == OnnxConfig(dynamic_shapes={"x": {0: n}, "y": {0: n}})
    assert DynamoConfig(dynamic=True).to_dict()["dynamic"] is True


# ── What models do with sizes ──


def module(function, **parts):
    """A module whose forward is `function` of itself and the inputs."""

    class Module(nn.Module):
        def forward(self, *args):
            return function(self, *args)

    made = Module().eval()
    for name, part in parts.items():
        setattr(made, name, part)
    return made


SIZES = {
    "float factor": lambda self, x: x * (x.shape[0] * 0.5) + torch.full((1,), x.shape[1] / 4),
    "float bound": lambda self, x: x.clamp(max=x.shape[0] * 0.25),
    "linspace": lambda self, x: x[:, 0] + torch.linspace(0.5, x.shape[0] - 0.5, x.shape[0]),
    "linspace of one number": lambda self, x: (
        torch.linspace(0, 1, x.shape[0]) + torch.linspace(-1, 5, x.shape[0] // 9 + 1).sum()
    ),
    "scale of attention": lambda self, x: nn.functional.scaled_dot_product_attention(
        x[None], x[None], x[None], scale=x.shape[0] ** -0.5
    ),
    "torch.div": lambda self, x: x[: torch.div(x.shape[0], 2, rounding_mode="trunc")],
    "Python types": lambda self, x: (
        torch.ones(x.shape, dtype=int) + x.to(int) + torch.zeros(x.shape[0], 1, dtype=float)
    ),
    "last row": lambda self, x: x[: x.shape[0] // 2] / (x[: x.shape[0] // 2][-1:] + 9),
}


@both
@pytest.mark.parametrize("name", SIZES)
def test_numbers_made_of_sizes(exporter, name):
    model = module(SIZES[name])
    exported = exporter().export(model, (X,), {"dynamic": True})
    for inputs in (X[:4], torch.cat([X, X])):
        expected, actual = model(inputs), exported(inputs)
        assert actual.dtype == expected.dtype and torch.allclose(actual, expected, atol=1e-5)


@both
def test_a_feature_map_of_one_place_in_the_sample_grows(exporter):
    model = module(
        lambda self, x: self.conv(x).permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2).flatten(2).transpose(1, 2),
        conv=nn.Conv2d(3, 4, 3, stride=2, padding=1),
    )
    exported = exporter().export(model, (torch.randn(2, 3, 2, 2),), {"dynamic": True})
    for sizes in ((1, 3, 9, 6), (3, 3, 1, 2)):
        check(exported, torch.randn(sizes), model=model)


def _one_or_two_channels(self, x):
    if x.shape[1] > 2:
        raise ValueError(f"one or two channels, not {x.shape[1]}")
    return x.mean(1)


@both
def test_axes_of_size_1_are_fixed_where_the_model_refuses_more(exporter):
    model = module(_one_or_two_channels)
    exported = exporter().export(model, (torch.randn(2, 1, 6),), {"dynamic": True})
    check(exported, torch.randn(3, 1, 9), model=model)
    assert any("axis 1 of 'args_0' was fixed to 1" in note and "channels" in note for note in exported.notes)
    with pytest.raises(ExportError, match="loses values"):
        exporter().export(model, (torch.randn(2, 1, 6),), {"dynamic_shapes": ({1: Dim("channels")},)})


@both
def test_first_axes_are_one_where_the_model_needs_it(exporter):
    model = module(lambda self, x, y: x.reshape(y.shape[0], -1, x.shape[-1]) * y[:, None])
    exported = exporter().export(model, (torch.randn(2, 3, 4), torch.randn(2, 4)), {"dynamic": True})
    check(exported, torch.randn(5, 2, 4), torch.randn(5, 4), model=model)


def test_nodes_in_onnx_subgraphs_have_names_of_their_own():
    model = module(lambda self, x: self.part(x), part=module(lambda self, x: torch.cummax(x, 0).values))
    exported = OnnxExporter().export(model, (X,), {"dynamic": True})
    check(exported, X[:3], model=model)
