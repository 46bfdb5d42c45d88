"""What the package uses of the engine. Only the classes that `transporters.graph` names, and the errors, are for users."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any

import torch

__version__: str

class ExportError(RuntimeError):
    """What an export can't do or was given wrong: stage, op and module say where."""

    message: str
    stage: str
    op: str
    module: str
    file: str
    source: str

class InternalError(RuntimeError):
    """A broken invariant of transporters: please report it."""

# ── The graph ──

class Expr:
    """A size that depends on the inputs' sizes: arithmetic over named symbols. What is constant is a number."""

    @property
    def symbols(self) -> list[str]:
        """Names of the symbols inside, sorted."""
    def __add__(self, other: int | Expr) -> int | Expr: ...
    def __radd__(self, other: int) -> int | Expr: ...
    def __sub__(self, other: int | Expr) -> int | Expr: ...
    def __rsub__(self, other: int) -> int | Expr: ...
    def __mul__(self, other: int | Expr) -> int | Expr: ...
    def __rmul__(self, other: int) -> int | Expr: ...
    def __floordiv__(self, other: int | Expr) -> int | Expr: ...
    def __rfloordiv__(self, other: int) -> int | Expr: ...
    def __mod__(self, other: int | Expr) -> int | Expr: ...
    def __rmod__(self, other: int) -> int | Expr: ...
    def __neg__(self) -> int | Expr: ...
    def __hash__(self) -> int: ...

class GraphValue:
    """What a node makes, or an input of the graph."""

    @property
    def name(self) -> str: ...
    @property
    def is_tensor(self) -> bool:
        """False for a number that the graph computes."""
    @property
    def dtype(self) -> torch.dtype | None: ...
    @property
    def sizes(self) -> list[int | Expr]:
        """An int where the size is fixed, an Expr where it is dynamic."""
    @property
    def number(self) -> Any:
        """A number's expression; None for a tensor."""
    @property
    def producer(self) -> GraphNode | None:
        """The node that makes it; None for an input of the graph."""
    @property
    def users(self) -> list[GraphNode]:
        """Nodes that read it, each once. Outputs of the program are not among them."""
    @property
    def is_output(self) -> bool: ...

class GraphNode:
    """One ATen op with its arguments by the schema's names."""

    @property
    def op(self) -> str:
        """ "aten::add.Tensor" """
    @property
    def args(self) -> dict[str, Any]:
        """All arguments by name, the schema's defaults among them: GraphValues, numbers, Exprs, dtypes, strings, None and
        lists."""
    @property
    def outputs(self) -> list[GraphValue]: ...
    @property
    def output(self) -> GraphValue:
        """The only output."""
    @property
    def module_path(self) -> str:
        """Dotted path of the submodule that ran it."""
    @property
    def source(self) -> str:
        """The model's source line: "modeling_llama.py:120"."""
    @property
    def next(self) -> GraphNode | None: ...
    @property
    def prev(self) -> GraphNode | None: ...
    def set(self, name: str, value: Any) -> None:
        """Replaces one argument."""
    def replace_with(node, op: str, /, **args: Any) -> GraphNode:  # `self` names an argument of most ops
        """Puts another op in the node's place, whose outputs take over names and uses. They must have the same dtypes and
        sizes. Returns the new node; this one is erased."""
    def insert_before(node, op: str, /, **args: Any) -> GraphNode:
        """A new node in front of this one; its output types follow from the op."""
    def erase(self) -> None:
        """Removes the node, whose outputs must have no uses left."""

class GraphProgram:
    """A traced program in the hands of a fix."""

    @property
    def nodes(self) -> list[GraphNode]:
        """The nodes as they stand now, in order."""
    @property
    def inputs(self) -> dict[str, Any]:
        """What callers give, by leaf path: values, and constants of the signature."""
    @property
    def state(self) -> dict[str, GraphValue]:
        """Values of parameters, buffers and constants, by name."""
    @property
    def outputs(self) -> dict[str, Any]:
        """What callers get, by leaf path: values and constants."""
    def __iter__(self) -> Iterator[GraphNode]: ...
    def __len__(self) -> int: ...
    def find(self, name: str) -> GraphValue | None:
        """The value of that name."""
    def data(self, value: GraphValue) -> torch.Tensor | None:
        """A copy of a parameter's, buffer's or constant's tensor; None for others."""
    def add_constant(self, name: str, tensor: torch.Tensor) -> GraphValue:
        """A new constant of the program."""
    def append(program, op: str, /, **args: Any) -> GraphNode:
        """A new node at the end; its output types follow from the op."""
    def replace_all_uses(self, old: GraphValue, new: GraphValue) -> None:
        """All that reads `old`, outputs of the program included, reads `new`."""

# ── ONNX ──

class OnnxValue:
    """What an ONNX node makes, an input or an initializer."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> torch.dtype | None:
        """None where the type is not known or torch has none like it."""
    @property
    def shape(self) -> list[int | str | None] | None:
        """Numbers, names of dynamic sizes, None for unknown; None without a rank."""
    @property
    def producer(self) -> OnnxNode | None: ...
    @property
    def users(self) -> list[OnnxNode]:
        """Nodes that read it, each once. Outputs of the graph are not among them."""
    @property
    def tensor(self) -> torch.Tensor | None:
        """A copy of an initializer's tensor; None for other values."""

class OnnxNode:
    op: str
    domain: str
    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> list[OnnxValue | None]:
        """None where an optional input is left out."""
    @property
    def outputs(self) -> list[OnnxValue]: ...
    @property
    def attributes(self) -> dict[str, Any]: ...
    @property
    def next(self) -> OnnxNode | None: ...
    @property
    def prev(self) -> OnnxNode | None: ...
    def set(self, attribute: str, value: Any) -> None:
        """Sets or replaces an attribute."""
    def set_input(self, index: int, value: OnnxValue | None) -> None: ...

class OnnxGraph:
    @property
    def nodes(self) -> list[OnnxNode]:
        """The nodes as they stand now, in order."""
    @property
    def inputs(self) -> list[OnnxValue]: ...
    @property
    def outputs(self) -> list[OnnxValue]: ...
    @property
    def initializers(self) -> list[OnnxValue]: ...
    def insert(
        self,
        before: OnnxNode | None,
        op: str,
        inputs: Sequence[OnnxValue | None],
        *,
        outputs: int = 1,
        domain: str = "",
        dtype: torch.dtype | None = None,
        **attributes: Any,
    ) -> OnnxNode:
        """A new node before another (None: at the end); `dtype` is that of its outputs."""
    def add_initializer(self, name: str, tensor: torch.Tensor) -> OnnxValue: ...
    def replace_all_uses(self, old: OnnxValue, new: OnnxValue) -> None:
        """All nodes that read `old` read `new`. Raises ExportError for an output of the model."""
    def erase(self, node: OnnxNode) -> None:
        """Removes a node, whose outputs must have no uses left."""

class OnnxModel:
    """An ONNX model in the hands of a fix."""

    @property
    def graph(self) -> OnnxGraph: ...
    @property
    def opsets(self) -> dict[str, int]:
        """Versions by domain."""
    def set_opset(self, domain: str, version: int) -> None: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    def set_metadata(self, key: str, value: str) -> None: ...

class Lowering:
    """Where a translation reads its node's arguments as ONNX values and emits ONNX nodes."""

    @property
    def opset(self) -> int:
        """Of ONNX's own domain."""
    def input(self, node: GraphNode, argument: str, dtype: torch.dtype | None = None) -> OnnxValue:
        """A tensor argument, cast to `dtype` where given; a number becomes a constant. None for None."""
    def inputs(self, node: GraphNode, argument: str, dtype: torch.dtype | None = None) -> list[OnnxValue | None]:
        """A list of tensors."""
    def value(self, value: GraphValue) -> OnnxValue:
        """What a value of the program became."""
    def dim(self, node: GraphNode, argument: str, tensor: str = "self") -> int:
        """A dimension counted from the front."""
    def dims(self, node: GraphNode, argument: str, tensor: str = "self") -> list[int]:
        """Dimensions counted from the front; all of them for none."""
    def emit(
        self,
        op: str,
        inputs: Sequence[OnnxValue | None],
        *,
        outputs: int = 1,
        domain: str = "",
        version: int = 1,
        dtype: torch.dtype | None = None,
        **attributes: Any,
    ) -> Any:
        """An ONNX node at the end of the model: its output, or a tuple of `outputs` of them. `domain` and its `version` are
        for ops that are not ONNX's own; `dtype` is that of the outputs where it is not the first input's."""
    def cast(self, value: OnnxValue, dtype: torch.dtype) -> OnnxValue:
        """The value itself where it has that type."""
    def once(self, key: str, make: Callable[[], OnnxValue]) -> OnnxValue:
        """What `make()` gave at the first call with this key: for values that many nodes read. The key names all that it
        depends on."""
    def constant(self, tensor: torch.Tensor) -> OnnxValue:
        """Equal ones are stored once."""
    def scalar(self, value: float, dtype: torch.dtype) -> OnnxValue: ...
    def vector(self, values: Sequence[int]) -> OnnxValue:
        """1-D int64: axes, constant shapes."""
    def shape(self, sizes: Sequence[int | Expr]) -> OnnxValue:
        """Sizes as a 1-D int64 tensor, computed where they are dynamic."""
    def size(self, size: int | Expr) -> OnnxValue:
        """One size as an int64 scalar."""
    def number(self, number: float | Expr, dtype: torch.dtype) -> OnnxValue:
        """A number or an Expr as a scalar of that type."""
    def is_at_least(self, size: int | Expr, bound: int) -> bool:
        """Whether the ranges of the dynamic sizes make it so."""
    def unsqueeze(self, value: OnnxValue, dims: Sequence[int]) -> OnnxValue: ...
    def squeeze(self, value: OnnxValue, dims: Sequence[int]) -> OnnxValue: ...
    def transpose(self, value: OnnxValue, order: Sequence[int]) -> OnnxValue: ...
    def error(self, node: GraphNode, message: str) -> ExportError:
        """An ExportError that names the op and its module, to raise."""

# ── Exports ──

class Program:
    architecture: str
    @property
    def inputs(self) -> list[tuple[str, str, str | None, Any, bool]]:
        """("parameter", name, value's name or None, constant, whether the value is a number) of each entry of the
        signature."""
    @property
    def outputs(self) -> list[tuple[str, str, str | None, Any, bool]]:
        """The same of the results; a number can be an expression without a value."""
    @property
    def in_spec(self) -> str: ...
    @property
    def out_spec(self) -> str: ...
    @property
    def ops(self) -> dict[str, int]: ...
    @property
    def example_inputs(self) -> dict[str, torch.Tensor]: ...
    def clone(self) -> Program: ...
    def verify(self) -> None: ...
    def save(self, path: str | PathLike[str]) -> None: ...

class Component:
    @property
    def program(self) -> Program: ...
    @property
    def metadata(self) -> dict[str, Any]: ...
    @property
    def onnx_text(self) -> str: ...
    def add_package(self, name: str, version: str) -> None:
        """Notes the version of a package that took part."""

class ExportedModel:
    def __init__(self, format: str, config: str) -> None: ...
    def add(self, name: str, component: Component) -> None: ...
    def set_config_files(self, files: dict[str, str]) -> None: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def save_pretrained(self, folder: str | PathLike[str], single_file: bool = False) -> list[str]: ...

class Interpreter:
    def __init__(self, program: Program) -> None: ...
    @property
    def input_names(self) -> list[str]: ...
    @property
    def output_names(self) -> list[str]: ...
    def buffer(self, name: str) -> torch.Tensor: ...
    def run(self, inputs: Sequence[torch.Tensor]) -> list[Any]: ...

def trace(
    forward: Callable[[list[torch.Tensor]], tuple[list[tuple[str, Any]], str]],
    inputs: Sequence[tuple[str, Any, Sequence[Any]]],
    state: Sequence[tuple[str, torch.Tensor, bool, bool]],
    in_spec: str,
    architecture: str,
    config: str,
    backends: Sequence[str],
    is_training: bool,
) -> tuple[Program, list[str]]: ...
def lower(program: Program, format: str, config: str) -> Component: ...
def load_program(path: str | PathLike[str]) -> Program: ...
def leaf_paths(spec: str) -> list[str]: ...

# ── Registry ──

def check_backend(backend: str) -> None: ...
def register_node_fix(backend: str, name: str, fix: Callable[..., Any]) -> int: ...
def register_program_fix(backend: str, name: str, fix: Callable[..., Any]) -> int: ...
def register_translation(ops: Sequence[str], translation: Callable[..., Any]) -> int: ...
def register_ir_fix(name: str, fix: Callable[..., Any]) -> int: ...
def unregister(registration: int) -> None: ...

# ── Tracing ──

def enter_module(path: str) -> None: ...
def leave_module() -> None: ...
def hide_source(folder: str) -> None: ...
def source_line() -> str: ...
def is_traced(tensor: torch.Tensor) -> bool: ...
def item(tensor: torch.Tensor) -> Any: ...
def maybe_as_int(node: Any) -> int | None: ...
def maybe_as_bool(node: Any) -> bool | None: ...
def sym_ite(condition: Any, if_true: Any, if_false: Any) -> Any: ...
def statically_known_true(node: Any) -> bool: ...
