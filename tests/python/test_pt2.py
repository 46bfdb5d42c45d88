"""`.pt2` archives: what we write loads in torch and runs at other sizes; what torch writes is read, written again and
still computes the same."""

import inspect
import io
import logging
import subprocess

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.export import Dim, export
from torch.utils import _pytree as pytree


@pytest.fixture(scope="module")
def tool(build_dir):
    def run(*arguments, code=0):
        result = subprocess.run(
            [build_dir / "tests" / "pt2_tool", *map(str, arguments)], capture_output=True, text=True
        )
        assert result.returncode == code, f"exit code {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout if code == 0 else result.stderr

    return run


def assert_close(actual, expected):
    actual, actual_spec = pytree.tree_flatten(actual)
    expected, expected_spec = pytree.tree_flatten(expected)
    assert actual_spec == expected_spec
    for a, e in zip(actual, expected):
        if isinstance(e, torch.Tensor):
            assert a.dtype == e.dtype and a.shape == e.shape
            if e.is_floating_point() and e.numel():
                torch.testing.assert_close(a, e, rtol=0, atol=1e-4 * max(1.0, e.abs().max().item()))
            else:
                assert torch.equal(a, e)
        else:
            assert a == e


PROGRAM = """\
program Net
symbol batch in [1, 16] hint 3
symbol S in [1, inf] hint 5
input %w: f32[4, 8] = parameter "fc.weight"
input %b: f32[4] = parameter "fc.bias"
input %buf: f32[4] = buffer "stats"
input %np: f32[4] = buffer "pos" non_persistent
input %c: f32[] = constant "lifted.0"
input %x: f32[batch, S, 8] = user "x"
input %input: f32[batch, 2*S + 1] = user "input"
%linear: f32[batch, S, 4] = aten::linear(input=%x, weight=%w, bias=%b)  @ fc
%add: f32[batch, S, 4] = aten::add.Tensor(self=%linear, other=%buf)
%mul: f32[batch, S, 4] = aten::mul.Tensor(self=%add, other=%np)
%sub: f32[batch, S, 4] = aten::sub.Tensor(self=%mul, other=%c)
%masked: f32[batch, S, 4] = aten::clamp(self=%sub, min=-inf, max=3.5)
%view: f32[batch*S, 4] = aten::view(self=%masked, size=[batch*S, 4])
%arange: i64[2*S + batch] = aten::arange(end=2*S + batch, dtype=i64)
%s0: f32[2, 4], %s1: f32[batch*S - 2, 4] = aten::split_with_sizes(self=%view, split_sizes=[2, batch*S - 2])
%max_0: f32[batch*S, 1], %max_1: i64[batch*S, 1] = aten::max.dim(self=%view, dim=-1, keepdim=True)
%nz: i64[u0, 1] = aten::nonzero(self=%arange)
%zeros: f32[3*u0] = aten::zeros(size=[3*u0])
%nb: f32[4] = aten::add.Tensor(self=%buf, other=1)
output %nb = buffer_mutation "stats"
output %view = user "y"
output None = user "none"
output FloorDiv(S, 2) = user "half"
output %arange = user "arange"
output %zeros = user "zeros"
output %input = user "same"
output %s1 = user "rest"
output %max_1 = user "places"
"""


def test_program_runs_in_torch(tool, tmp_path):
    torch.manual_seed(0)
    state = {"fc.weight": torch.randn(4, 8), "fc.bias": torch.randn(4), "stats": torch.zeros(4)}
    constants = {"pos": torch.full((4,), 2.0), "lifted.0": torch.tensor(0.5)}
    inputs = {"input:x": torch.randn(3, 5, 8), "input:input": torch.randn(3, 11)}
    save_file({**state, **constants, **inputs}, tmp_path / "state.safetensors")
    (tmp_path / "net.txt").write_text(PROGRAM)
    tool("write", tmp_path / "net.txt", tmp_path / "state.safetensors", tmp_path / "net.pt2")

    program = torch.export.load(tmp_path / "net.pt2")
    assert list(program.state_dict) == list(state)
    assert sorted(program.constants) == sorted(constants)
    assert torch.equal(program.example_inputs[1]["x"], inputs["input:x"])
    module = program.module()
    for step, (batch, length) in enumerate([(3, 5), (1, 7), (16, 2)]):
        x, other = torch.randn(batch, length, 8), torch.randn(batch, 2 * length + 1)
        y = (torch.nn.functional.linear(x, state["fc.weight"], state["fc.bias"]) + step) * 2 - 0.5
        y = y.clamp(max=3.5).view(-1, 4)
        numbers = torch.arange(2 * length + batch)
        zeros = torch.zeros(3 * (len(numbers) - 1))
        assert_close(
            module(x=x, input=other), (y, None, length // 2, numbers, zeros, other, y[2:], y.argmax(-1, keepdim=True))
        )
        assert torch.equal(module.stats, torch.full((4,), step + 1.0))
    with pytest.raises(AssertionError, match=r"x.size\(\)\[0\] <= 16"):
        module(x=torch.randn(17, 5, 8), input=torch.randn(17, 11))
    with pytest.raises(AssertionError, match=r"input.size\(\)\[1\] == 2 \* x.size\(\)\[1\] \+ 1"):
        module(x=torch.randn(3, 5, 8), input=torch.randn(3, 12))
    torch.export.save(program, io.BytesIO())


def test_same_bytes(tool, tmp_path):
    save_file({"w": torch.randn(4, 8)}, tmp_path / "state.safetensors")
    (tmp_path / "net.txt").write_text(
        'program Net\nsymbol N in [1, 9] hint 2\ninput %w: f32[4, 8] = parameter "w"\ninput %x: f32[N, 8] = user "x"\n'
        '%y: f32[N, 4] = aten::linear(input=%x, weight=%w)\noutput %y = user "y"\n'
    )
    for name in ("a.pt2", "b.pt2"):
        tool("write", tmp_path / "net.txt", tmp_path / "state.safetensors", tmp_path / name)
    tool("rewrite", tmp_path / "a.pt2", tmp_path / "c.pt2")
    written = (tmp_path / "a.pt2").read_bytes()
    assert written == (tmp_path / "b.pt2").read_bytes() == (tmp_path / "c.pt2").read_bytes()
    assert "N" in tool("show", tmp_path / "a.pt2").split("f32[")[2]  # the user's name of the symbol came back


EXPRESSIONS = {  # text of ours: value in Python
    "a + 2*b + 3": lambda a, b: a + 2 * b + 3,
    "a*b - 1": lambda a, b: a * b - 1,
    "100 - a": lambda a, b: 100 - a,
    "FloorDiv(a*b, 3)": lambda a, b: a * b // 3,
    "Mod(a*b, 7)": lambda a, b: a * b % 7,
    "a**2": lambda a, b: a**2,
    "Max(a, b, 5)": lambda a, b: max(a, b, 5),
    "Min(a, 2*b)": lambda a, b: min(a, 2 * b),
    "FloorToInt(IntTrueDiv(a, 3))": lambda a, b: a // 3,
    "CeilToInt(IntTrueDiv(a*b, 4))": lambda a, b: -(-a * b // 4),
    "TruncToInt(1.5*ToFloat(a))": lambda a, b: int(1.5 * a),
    "RoundToInt(IntTrueDiv(a, 2))": lambda a, b: round(a / 2),
    "TruncToInt(sqrt(ToFloat(a*b)))": lambda a, b: int((a * b) ** 0.5),
    "Where(a < b, a, 2*b)": lambda a, b: a if a < b else 2 * b,
    "Where(And(a <= b, Ne(a, 3)), 1, b)": lambda a, b: 1 if a <= b and a != 3 else b,
}


def test_size_arithmetic(tool, tmp_path):
    """Every kind of expression as nodes: the same numbers as Python's, in torch and after torch saved it again."""
    lines = ["program Net", "symbol a in [1, inf] hint 4", "symbol b in [1, inf] hint 6"]
    lines += ['input %x: f32[a, b] = user "x"']
    lines += [f"%z{i}: f32[{e}] = aten::zeros(size=[{e}])" for i, e in enumerate(EXPRESSIONS)]
    lines += [f'output %z{i} = user "{i}"' for i in range(len(EXPRESSIONS))]
    (tmp_path / "net.txt").write_text("\n".join(lines) + "\n")
    save_file({"input:x": torch.zeros(4, 6)}, tmp_path / "state.safetensors")
    tool("write", tmp_path / "net.txt", tmp_path / "state.safetensors", tmp_path / "net.pt2")
    tool("rewrite", tmp_path / "net.pt2", tmp_path / "again.pt2")
    assert (tmp_path / "net.pt2").read_bytes() == (tmp_path / "again.pt2").read_bytes()
    program = torch.export.load(tmp_path / "net.pt2")
    torch.export.save(program, tmp_path / "torch.pt2")
    tool("rewrite", tmp_path / "torch.pt2", tmp_path / "ours.pt2")
    for file in ("net.pt2", "torch.pt2", "ours.pt2"):
        module = torch.export.load(tmp_path / file).module()
        for a, b in [(4, 6), (1, 1), (3, 3), (7, 2), (5, 11)]:
            sizes = [len(z) for z in module(x=torch.zeros(a, b))]
            assert sizes == [f(a, b) for f in EXPRESSIONS.values()], (file, a, b)


# ── archives of torch.export.save ──


class ConvBn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)
        self.bn = torch.nn.BatchNorm2d(4)
        self.bn.running_mean.uniform_(-1, 1)
        self.bn.running_var.uniform_(0.5, 2)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


class Training(torch.nn.Module):
    """Batch norm changes its statistics when it trains, of which its op's schema says nothing."""

    def __init__(self):
        super().__init__()
        self.bn = torch.nn.BatchNorm1d(3)
        self.eval = lambda: self  # stays in training mode

    def forward(self, x):
        return self.bn(self.bn(x) * 2 + 1)


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("cache", torch.ones(2, 4), persistent=False)

    def forward(self, x):
        self.count.add_(1)
        self.cache[0, 1] = x.sum()
        self.cache[:, 2:].mul_(2)
        row = self.cache.view(-1)[1:3]
        row += self.count
        return x + self.count, self.cache.clone()


class InputMutation(torch.nn.Module):
    def forward(self, x, y):
        x.add_(y)
        first = x[0]
        x.mul_(2)
        return first + y[0], x.sum()


class Outputs(torch.nn.Module):
    def forward(self, x, flag=True, scale=2.0, name="n", none=None):
        parts = torch.split(x, 2, dim=1)
        values, indices = x.max(dim=1)
        return {"none": none, "parts": list(parts), "max": (values * scale, indices), "n": x.shape[0] * 3, "x": x}


class Index(torch.nn.Module):
    def forward(self, x, i):
        return x[i], x[:, i, :1], torch.index_put(x, (i,), torch.tensor(-float("inf"))), x.unbind(0)[1], x.chunk(3)


class DataDependent(torch.nn.Module):
    def forward(self, x, k):
        z = torch.nonzero(x)
        n = k.item()
        torch._check(n >= 0)
        torch._check(n <= x.shape[0])
        return z * 2, torch.ones(n + 1), x[:n], z.shape[0] * 2


class Sizes(torch.nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y[::2]]) + x.shape[0], x.new_zeros(x.shape[0] // 2 + 1, y.shape[0])


class Scalar(torch.nn.Module):
    def forward(self, x, n):
        return x * n, x.new_ones(n)


class Nested(torch.nn.Module):
    def forward(self, state, *rest):
        return {"sum": state["a"] + state["b"][0], "rest": [r * 2 for r in rest]}


def encoder():
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=False)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


class NoGrad(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        y = self.linear(x)
        with torch.no_grad():
            z = y.relu() + x.shape[0]
        return z + y, z


AUTO = Dim.DYNAMIC
# name: module, sample arguments, dynamic shapes, further arguments to run with.
CASES = {
    "conv_bn": lambda: (
        ConvBn(),
        (torch.randn(2, 3, 8, 8),),
        ({0: AUTO, 2: AUTO, 3: AUTO},),
        [(torch.randn(5, 3, 12, 6),)],
    ),
    "training": lambda: (Training(), (torch.randn(4, 3),), ({0: AUTO},), [(torch.randn(9, 3),), (torch.randn(2, 3),)]),
    "encoder": lambda: (encoder(), (torch.randn(7, 2, 32),), ({0: AUTO, 1: AUTO},), [(torch.randn(11, 3, 32),)]),
    "counter": lambda: (Counter(), (torch.randn(3),), ({0: AUTO},), [(torch.randn(n),) for n in (5, 2, 1, 0)]),
    "input_mutation": lambda: (
        InputMutation(),
        (torch.randn(3, 2), torch.randn(3, 2)),
        ({0: AUTO}, {0: AUTO}),
        [(torch.randn(5, 2), torch.randn(5, 2))],
    ),
    "outputs": lambda: (Outputs(), (torch.randn(3, 6),), ({0: AUTO},), [(torch.randn(8, 6),), (torch.randn(1, 6),)]),
    "constant_inputs": lambda: (
        Outputs(),
        (torch.randn(3, 6), False, 0.5, "other"),
        ({0: AUTO}, None, None, None),
        [(torch.randn(8, 6), False, 0.5, "other")],
    ),
    "index": lambda: (
        Index(),
        (torch.randn(6, 5, 4), torch.tensor([0, 2])),
        ({2: AUTO}, {0: AUTO}),
        [(torch.randn(6, 5, 9), torch.tensor([3, 1, 0]))],
    ),
    "data_dependent": lambda: (
        DataDependent(),
        (torch.tensor([1, 0, 2, 3]), torch.tensor(2)),
        ({0: AUTO}, {}),
        [(torch.tensor([0, 0, 5, 1, 1]), torch.tensor(4)), (torch.zeros(3, dtype=torch.int64), torch.tensor(0))],
    ),
    "derived_dims": lambda: (
        Sizes(),
        (torch.randn(4), torch.randn(8)),
        (lambda n: ({0: n}, {0: 2 * n}))(Dim("n", min=3, max=50)),
        [(torch.randn(6), torch.randn(12))],
    ),
    "no_grad": lambda: (NoGrad(), (torch.randn(2, 3),), ({0: AUTO},), [(torch.randn(n, 3),) for n in (4, 1, 0)]),
    "symbolic_input": lambda: (Scalar(), (torch.randn(3), 5), ({0: AUTO}, AUTO), [(torch.randn(4), 7)]),
    "nested": lambda: (
        Nested(),
        ({"a": torch.randn(3), "b": [torch.randn(3)]}, torch.randn(2), torch.randn(2)),
        ({"a": {0: AUTO}, "b": [{0: AUTO}]}, ({0: AUTO}, None)),
        [({"a": torch.randn(6), "b": [torch.randn(6)]}, torch.randn(5), torch.randn(2))],
    ),
}


def clone(tree):
    return pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, tree)


@pytest.mark.parametrize("name", CASES)
def test_archives_of_torch(tool, tmp_path, name):
    torch.manual_seed(0)
    module, sample, dynamic_shapes, others = CASES[name]()
    module.eval()
    torch.export.save(export(module, sample, dynamic_shapes=dynamic_shapes), tmp_path / "torch.pt2")
    tool("rewrite", tmp_path / "torch.pt2", tmp_path / "ours.pt2")
    tool("rewrite", tmp_path / "ours.pt2", tmp_path / "again.pt2")
    assert (tmp_path / "ours.pt2").read_bytes() == (tmp_path / "again.pt2").read_bytes()
    theirs, ours = (torch.export.load(tmp_path / file) for file in ("torch.pt2", "ours.pt2"))
    # torch checks inputs by the guards only where there are samples.
    assert_close(ours.example_inputs, theirs.example_inputs)
    expected, actual = theirs.module(), ours.module()
    for arguments in [sample, *others]:
        theirs, ours = clone(arguments), clone(arguments)
        assert_close(actual(*ours), expected(*theirs))
        assert_close(ours, theirs)
        assert_close(dict(actual.named_buffers()), dict(expected.named_buffers()))


def leaves(path, value):
    """Leaves by path, as the reader names them."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        return {path: value}
    return {k: v for key, element in items for k, v in leaves(f"{path}.{key}" if path else str(key), element).items()}


def named_leaves(module, arguments):
    names = list(inspect.signature(type(module).forward).parameters)[1:]
    names = [name for name in names if name != "rest"] + [f"rest_{i}" for i in range(len(arguments))]
    return {k: v for name, value in zip(names, arguments) for k, v in leaves(name, value).items()}


def run_in_cpp(tool, folder, program, *runs, code=0):
    """Runs one after another, of inputs by leaf path: what each gave, by leaf path, "input:PATH" and "buffer:NAME".

    The error's text when it is to fail with an exit code."""
    files = []
    for i, inputs in enumerate(runs):
        save_file({path: torch.as_tensor(value) for path, value in inputs.items()}, folder / f"in{i}.safetensors")
        files += [folder / f"in{i}.safetensors", folder / f"out{i}.safetensors"]
    text = tool("run", program, *files, code=code)
    return text if code else [load_file(file) for file in files[1::2]]


@pytest.mark.parametrize("name", CASES)
def test_archives_of_torch_run_without_python(tool, tmp_path, name):
    torch.manual_seed(0)
    module, sample, dynamic_shapes, others = CASES[name]()
    module.eval()
    torch.export.save(export(module, sample, dynamic_shapes=dynamic_shapes), tmp_path / "torch.pt2")
    expected = torch.export.load(tmp_path / "torch.pt2").module()
    runs = [clone(sample), *others]
    # Constants are part of the program.
    inputs = [
        {
            path: value
            for path, value in named_leaves(module, arguments).items()
            if isinstance(value, torch.Tensor) or (name == "symbolic_input" and path == "n")
        }
        for arguments in runs
    ]
    for arguments, ours in zip(runs, run_in_cpp(tool, tmp_path, tmp_path / "torch.pt2", *inputs)):
        result = expected(*arguments)
        outputs = leaves("" if isinstance(result, dict) else "output", result)
        outputs = {k: v for k, v in outputs.items() if v is not None}
        assert {k for k in ours if not k.startswith(("input:", "buffer:"))} == set(outputs)
        for path, value in outputs.items():
            assert_close(ours[path] if isinstance(value, torch.Tensor) else ours[path].item(), value)
        for path, value in named_leaves(module, arguments).items():
            if isinstance(value, torch.Tensor):
                assert_close(ours[f"input:{path}"], value)
        for path, value in expected.named_buffers():
            assert_close(ours[f"buffer:{path}"], value)


def test_ranges_of_torch(tool, tmp_path):
    """Bounds that the user gave stay; "at least 2", which torch says of every dynamic size, is no bound."""
    n, free = Dim("n", min=3, max=50), Dim("free")
    program = export(Sizes(), (torch.randn(4), torch.randn(8)), dynamic_shapes=({0: n}, {0: 2 * n}))
    torch.export.save(program, tmp_path / "torch.pt2")
    tool("rewrite", tmp_path / "torch.pt2", tmp_path / "ours.pt2")
    ours = torch.export.load(tmp_path / "ours.pt2").module()
    refusals = [
        (2, 4, "'x' dim 0: expected s77 in [3, 50], got 2"),
        (51, 102, "'x' dim 0: expected s77 in [3, 50], got 51"),
        (4, 9, "'y' dim 0: expected 2*s77 = 8, got 9"),
    ]
    for x, y, message in refusals:
        inputs = (torch.randn(x), torch.randn(y))
        with pytest.raises(AssertionError, match="Guard failed"):
            program.module()(*inputs)
        with pytest.raises(AssertionError, match="Guard failed"):
            ours(*inputs)
        assert message in run_in_cpp(tool, tmp_path, tmp_path / "torch.pt2", dict(zip("xy", inputs)), code=1)

    class Twice(torch.nn.Module):
        def forward(self, x):
            return x * 2

    torch.export.save(export(Twice(), (torch.randn(4),), dynamic_shapes=({0: free},)), tmp_path / "torch.pt2")
    for x in (torch.randn(1), torch.randn(0)):
        assert_close(run_in_cpp(tool, tmp_path, tmp_path / "torch.pt2", {"x": x})[0]["output"], x * 2)


def test_argument_names(tool, tmp_path):
    """Names that Python code can't have: torch loads the program, and its guards read the right arguments."""
    (tmp_path / "net.txt").write_text(
        'program Net\nsymbol n in [0, inf] hint 2\ninput %x: f32[n] = user "x"\ninput %y: f32[2*n + 1] = user "for.0"\n'
        'input %z: f32[3*n] = user "x.torch"\n%cat: f32[6*n + 1] = aten::cat(tensors=[%x, %y, %z])\n'
        'output %cat = user "lambda"\n'
    )
    shapes = {"x": (2,), "for.0": (5,), "x.torch": (6,)}
    save_file({f"input:{name}": torch.zeros(shape) for name, shape in shapes.items()}, tmp_path / "state.safetensors")
    tool("write", tmp_path / "net.txt", tmp_path / "state.safetensors", tmp_path / "net.pt2")
    module = torch.export.load(tmp_path / "net.pt2").module()
    x, y, z = torch.randn(4), torch.randn(9), torch.randn(12)
    assert_close(module(x, y, z), torch.cat([x, y, z]))
    with pytest.raises(AssertionError, match="Guard failed"):
        module(x, torch.randn(10), z)
    with pytest.raises(AssertionError, match="Guard failed"):
        module(x, y, torch.randn(13))
    inputs = dict(zip(shapes, (x, y, z)))
    assert_close(run_in_cpp(tool, tmp_path, tmp_path / "net.pt2", inputs)[0]["lambda"], torch.cat([x, y, z]))


def test_many_weights(tool, tmp_path):
    """Hundreds of layers: each weight is stored once, tied ones too, and torch gets the same numbers and ties."""
    layers, width = 300, 48
    torch.manual_seed(0)
    state = {f"layers.{i}.weight": torch.randn(width, width) for i in range(layers)}
    lines = ["program Net", "symbol n in [1, inf] hint 2", 'input %head: f32[48, 48] = parameter "head.weight"']
    lines += [f'input %w{i}: f32[48, 48] = parameter "layers.{i}.weight"' for i in range(layers)]
    lines += ['input %y0: f32[n, 48] = user "x"']
    lines += [f"%y{i + 1}: f32[n, 48] = aten::linear(input=%y{i}, weight=%w{i})" for i in range(layers)]
    lines += [f"%y: f32[n, 48] = aten::linear(input=%y{layers}, weight=%head)", 'output %y = user "y"']
    (tmp_path / "net.txt").write_text("\n".join(lines) + "\n")
    save_file({**state, "input:x": torch.zeros(2, width)}, tmp_path / "state.safetensors")
    tie = "head.weight=layers.7.weight"
    tool("write", tmp_path / "net.txt", tmp_path / "state.safetensors", tmp_path / "net.pt2", tie)
    bytes_of_weights = layers * width * width * 4
    assert bytes_of_weights < (tmp_path / "net.pt2").stat().st_size < bytes_of_weights * 1.2
    loaded = torch.export.load(tmp_path / "net.pt2").state_dict
    assert set(loaded) == {"head.weight", *state}
    for name, weight in state.items():
        assert torch.equal(loaded[name], weight), name
    assert torch.equal(loaded["head.weight"], state["layers.7.weight"])
    assert loaded["head.weight"].data_ptr() == loaded["layers.7.weight"].data_ptr()
    assert len({weight.data_ptr() for weight in loaded.values()}) == layers


@pytest.fixture
def quiet_torch_load():
    """torch 2.13 warns of samples that are no plain data with too few arguments for its message, which pytest
    raises."""
    logger = logging.getLogger("torch._export.serde.serialize")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


@pytest.fixture(scope="module")
def llama_exports(tmp_path_factory):
    """A tiny llama, and folders that transformers' own exporter wrote: without a cache, and with one as input."""
    import transformers
    from transformers.exporters.exporter_dynamo import DynamoConfig, DynamoExporter

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    folder = tmp_path_factory.mktemp("llama")
    for name, length, past in [("prefill", 5, 0), ("decode", 3, 5)]:
        inputs = llama_inputs(model, 2, length, past)
        DynamoExporter().export(model, inputs, DynamoConfig(dynamic=True)).save_pretrained(folder / name)
    return model, folder


def llama_inputs(model, batch, length, past):
    inputs = {
        "input_ids": torch.randint(3, 99, (batch, length)),
        "attention_mask": torch.ones(batch, past + length, dtype=torch.int64),
    }
    if past:
        with torch.no_grad():
            inputs["cache"] = model(input_ids=torch.randint(3, 99, (batch, past))).past_key_values
    return inputs


def test_guards_on_caches(tool, llama_exports, quiet_torch_load, tmp_path):
    """Conditions between a cache and other inputs hold where torch's archive runs, and where ours does."""
    import copy

    model, folder = llama_exports
    original = folder / "decode" / "model.pt2"
    tool("rewrite", original, tmp_path / "ours.pt2")
    programs = [torch.export.load(file).module() for file in (original, tmp_path / "ours.pt2")]

    def leaves_of(inputs):
        layers = enumerate(inputs["cache"].layers)
        cache = {f"cache.layers.{i}.{key}": getattr(layer, key) for i, layer in layers for key in ("keys", "values")}
        return {**{k: v for k, v in inputs.items() if k != "cache"}, **cache}

    good = llama_inputs(model, 3, 4, 6)
    with torch.no_grad():
        expected = model(**copy.deepcopy(good))
    for file in (original, tmp_path / "ours.pt2"):
        actual = run_in_cpp(tool, tmp_path, file, leaves_of(good))[0]
        assert_close(actual["logits"], expected.logits)
        for i, layer in enumerate(expected.past_key_values.layers):
            assert_close(actual[f"cache.layers.{i}.keys"], layer.keys)
            assert_close(actual[f"cache.layers.{i}.values"], layer.values)
    bad = llama_inputs(model, 3, 4, 6)
    bad["attention_mask"] = torch.ones(3, 11, dtype=torch.int64)
    for program in programs:
        with pytest.raises((AssertionError, RuntimeError), match="Guard failed"):
            program(**copy.deepcopy(bad))
    for file in (original, tmp_path / "ours.pt2"):
        assert "Guard failed" in run_in_cpp(tool, tmp_path, file, leaves_of(bad), code=1)


@pytest.mark.parametrize("name, sizes", [("prefill", [(2, 5, 0), (1, 7, 0)]), ("decode", [(2, 3, 5), (3, 2, 6)])])
def test_transformers_loads_what_we_write(tool, llama_exports, quiet_torch_load, tmp_path, name, sizes):
    """A folder of transformers whose program we read and wrote again: caches in inputs, outputs and samples."""
    import copy
    import shutil

    from transformers.exporters.base import ExportedModel

    model, folder = llama_exports
    shutil.copytree(folder / name, tmp_path / name)
    tool("rewrite", folder / name / "model.pt2", tmp_path / name / "model.pt2")
    exported = ExportedModel.from_pretrained(tmp_path / name, trust_remote_code=True)
    for batch, length, past in sizes:
        inputs = llama_inputs(model, batch, length, past)
        with torch.no_grad():
            expected = model(**copy.deepcopy(inputs))
        actual = exported(**copy.deepcopy(inputs))
        assert_close(actual.logits, expected.logits)
        assert_close(
            [t for layer in actual.past_key_values.layers for t in (layer.keys, layer.values)],
            [t for layer in expected.past_key_values.layers for t in (layer.keys, layer.values)],
        )
    samples = torch.export.load(tmp_path / name / "model.pt2").example_inputs[1]
    theirs = torch.export.load(folder / name / "model.pt2").example_inputs[1]
    assert_close(pytree.tree_leaves(samples), pytree.tree_leaves(theirs))
