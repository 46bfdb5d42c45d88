"""torch.export's graphs as the text that parse_program reads, so that lowering can be tested without the tracer."""

import json
import operator

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

DTYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.bool: "b8",
    torch.complex64: "c64",
    torch.complex128: "c128",
}
ROLES = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
    InputKind.USER_INPUT: "user",
}
OUTPUT_ROLES = {
    OutputKind.USER_OUTPUT: "user",
    OutputKind.BUFFER_MUTATION: "buffer_mutation",
    OutputKind.USER_INPUT_MUTATION: "input_mutation",
}
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def expr_text(value) -> str:
    if isinstance(value, SYMBOLIC):
        return str(value.node.expr)
    return repr(value)


def type_text(value) -> str:
    if isinstance(value, torch.Tensor):
        return f"{DTYPES[value.dtype]}[{', '.join(expr_text(size) for size in value.shape)}]"
    return f"number({expr_text(value)})"


def is_number(node) -> bool:
    """Nodes whose value is an expression already; those that read a tensor's contents stay nodes."""
    value = node.meta.get("val")
    return isinstance(value, (*SYMBOLIC, int, float, bool)) and not str(node.target).startswith("aten._local_scalar_dense")


class Printer:
    def __init__(self, program: ExportedProgram, input_names=None, output_names=None):
        self.program = program
        self.lines = ["program Test"]
        self.values = {}  # fx node name -> text of each output
        self.input_names = input_names
        self.output_names = output_names

    def argument(self, value) -> str:
        if isinstance(value, torch.fx.Node):
            if is_number(value):
                return expr_text(value.meta["val"])
            return self.values[value.name][0]
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(self.argument(element) for element in value) + "]"
        if isinstance(value, torch.dtype):
            return DTYPES[value]
        if isinstance(value, torch.device):
            return value.type
        if isinstance(value, (torch.memory_format, torch.layout)):
            return str(value).removeprefix("torch.")
        if isinstance(value, str):
            return json.dumps(value)
        return repr(value)

    def op(self, node) -> None:
        target = node.target
        name = f"{target._schema.name}.{target._overloadname}".removesuffix(".default")
        arguments = []
        schema = target._schema.arguments
        given = dict(zip((argument.name for argument in schema), node.args)) | node.kwargs
        for argument in schema:
            if argument.name in given and given[argument.name] is not None and argument.name != "generator":
                arguments.append(f"{argument.name}={self.argument(given[argument.name])}")
        value = node.meta.get("val")
        outputs = list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]
        names = [f"%{node.name}"] if len(outputs) == 1 else [f"%{node.name}.{i}" for i in range(len(outputs))]
        self.values[node.name] = names
        left = ", ".join(f"{name}: {type_text(output)}" for name, output in zip(names, outputs))
        module = list(node.meta.get("nn_module_stack", {}).values())
        path = f"  @ {json.dumps(module[-1][0])}" if module and module[-1][0] else ""
        self.lines.append(f"{left}{' = ' if left else ''}{name}({', '.join(arguments)}){path}")

    def text(self) -> str:
        program = self.program
        for symbol, bounds in program.range_constraints.items():
            # Infinity comes as sympy's or torch's own, or as the largest number.
            upper = str(bounds.upper) if str(bounds.upper).isdigit() and int(bounds.upper) < 2**62 else "inf"
            self.lines.append(f"symbol {symbol} in [{bounds.lower if str(bounds.lower).isdigit() else 0}, {upper}]")
        placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        user_names = iter(self.input_names or [])
        for spec in program.graph_signature.input_specs:
            node = placeholders[spec.arg.name]
            target = spec.target or next(user_names, spec.arg.name)
            self.values[node.name] = [f"%{node.name}"]
            if node.meta.get("val") is None or not isinstance(node.meta["val"], (torch.Tensor, *SYMBOLIC)):
                self.lines.append(f"input {self.argument(node.meta.get('val'))} = user {json.dumps(target)}")
                continue
            self.lines.append(
                f"input %{node.name}: {type_text(node.meta['val'])} = {ROLES[spec.kind]} {json.dumps(target)}"
            )
        for node in program.graph.nodes:
            if node.op != "call_function":
                continue
            if node.target is operator.getitem:
                source, index = node.args
                self.values[node.name] = [self.values[source.name][index]]
            elif not is_number(node) and isinstance(node.target, torch._ops.OpOverload):
                self.op(node)
        output = next(node for node in program.graph.nodes if node.op == "output")
        names = iter(self.output_names or (f"out{i}" for i in range(1000)))
        for spec, value in zip(program.graph_signature.output_specs, output.args[0]):
            target = spec.target or next(names)
            self.lines.append(f"output {self.argument(value)} = {OUTPUT_ROLES[spec.kind]} {json.dumps(target)}")
        return "\n".join(self.lines) + "\n"


def program_text(program: ExportedProgram, input_names=None, output_names=None) -> str:
    return Printer(program, input_names, output_names).text()


def program_state(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """Parameters, buffers and constants by target."""
    state = {**program.state_dict, **program.constants}
    return {name: value.detach() for name, value in state.items() if isinstance(value, torch.Tensor)}
