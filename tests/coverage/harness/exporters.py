"""The exporters that the coverage run can drive, behind one interface."""

import contextlib
import dataclasses
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from harness.cases import ROOT

FORWARD_MODES = ("dynamo-static", "dynamo-dynamic", "onnx-static", "onnx-dynamic")
GENERATION_MODES = ("generate-dynamo", "generate-onnx")
MODES = FORWARD_MODES + GENERATION_MODES


@dataclasses.dataclass
class Exported:
    """One export: `call(inputs)` returns what the model returns, `save(path)` writes its file. Both the call and the
    file take `prepare(inputs)`."""

    call: Callable
    save: Callable | None = None
    prepare: Callable = lambda inputs: inputs


def prepared_like(model, sample: dict, given: dict) -> Callable:
    """What makes of other inputs what an exporter made of `sample`, in place, while it exported: transformers'
    exporters add to a caller's inputs what the model would compute from their data, and take flags out. `given` is the
    sample as it was; nothing is done when the exporter left it alone."""
    if sample.keys() == given.keys():
        return lambda inputs: inputs

    def prepare(inputs):
        from transformers.exporters.utils import prepare_for_export

        prepared = prepare_for_export(model, dict(inputs))[1]
        return {name: prepared[name] for name in sample}

    return prepare


class Transporters:
    """This project's Python package: the one in the build folder (TRANSPORTERS_BUILD, or `build`), or an installed
    one."""

    def __init__(self):
        build = Path(os.environ.get("TRANSPORTERS_BUILD", ROOT / "build")).resolve() / "python"
        if build.is_dir():
            sys.path.insert(0, str(build))
        import transporters

        # The folder of the C++ sources has the same name and imports as an empty package.
        if not hasattr(transporters, "DynamoExporter"):
            raise ImportError(f"the Python package transporters is neither in {build} nor installed")
        self.package = transporters

    def export(self, model, inputs, mode) -> Exported:
        package, (format, dynamic), given = self.package, split(mode), dict(inputs)
        if format == "dynamo":
            program = package.DynamoExporter().export(model, inputs, config=package.DynamoConfig(dynamic=dynamic))
            return Exported(lazily(program.module), program.save, prepared_like(model, inputs, given))
        program = package.OnnxExporter().export(model, inputs, config=package.OnnxConfig(dynamic=dynamic))
        return Exported(lambda inputs: program(**inputs), program.save, prepared_like(model, inputs, given))

    def export_stages(self, model, inputs, mode, static=()):
        """The stages of generation, which answer for the model while `in_place()` lasts
        (tests/python/generation_loops.py). Their sizes are dynamic but for the components named in `static`."""
        package = self.package
        exporter = package.DynamoExporter() if mode == "generate-dynamo" else package.OnnxExporter()
        config = {"dynamic": True}
        if static:
            names = package.decompose_for_generation(model, inputs)
            config = {name: {"dynamic": name not in static} for name in names}
        exported = exporter.export_for_generation(model, inputs, config)
        tests = str(ROOT / "tests" / "python")
        if tests not in sys.path:
            sys.path.append(tests)
        import generation_loops

        return generation_loops.Driver(model, exported)


class Transformers:
    """transformers' own exporters, to compare with."""

    def __init__(self):
        from transformers import exporters

        self.package = exporters

    def export(self, model, inputs, mode) -> Exported:
        package, (format, dynamic), given = self.package, split(mode), dict(inputs)
        if format == "dynamo":
            exporter, config = package.DynamoExporter(), package.DynamoConfig(dynamic=dynamic)
        else:
            exporter, config = package.OnnxExporter(), package.OnnxConfig(dynamic=dynamic)
        program = exporter.export(model, inputs, config=config)
        return Exported(
            lambda inputs: program(**inputs),
            lambda path: exporter.save_program(program.program, path),
            prepared_like(model, inputs, given),
        )


class Torch:
    """torch.export and torch.onnx, without anything for transformers' models."""

    def export(self, model, inputs, mode) -> Exported:
        format, dynamic = split(mode)
        shapes = None
        if dynamic:
            shapes = torch.utils._pytree.tree_map(
                lambda leaf: (
                    {axis: torch.export.Dim.AUTO for axis in range(leaf.dim())}
                    if isinstance(leaf, torch.Tensor)
                    else None
                ),
                dict(inputs),
            )
        with torch.no_grad():
            program = torch.export.export(model, (), kwargs=dict(inputs), dynamic_shapes=shapes, strict=False)
            if format == "dynamo":
                return Exported(lazily(program.module), lambda path: torch.export.save(program, str(path)))
            onnx = torch.onnx.export(program, verbose=False)
        return Exported(None, lambda path: onnx.save(str(path)))


def lazily(make: Callable) -> Callable:
    """A call of the module that `make` makes; it is made once, when it is first called."""
    module = functools.cache(make)
    return lambda inputs: module()(**inputs)


class Eager:
    """No export at all: what the harness itself costs."""

    def export(self, model, inputs, mode) -> Exported:
        return Exported(lambda inputs: model(**inputs))

    def export_stages(self, model, inputs, mode, static=()):
        return Undriven()


class Undriven:
    """Stages that leave everything to the model."""

    components: dict = {}
    calls: list = []

    def in_place(self):
        return contextlib.nullcontext()


EXPORTERS = {"transporters": Transporters, "transformers": Transformers, "torch": Torch, "eager": Eager}


def split(mode: str) -> tuple[str, bool]:
    """("dynamo" or "onnx", dynamic or not) of the name of a mode that exports the model as one graph."""
    format, sizes = mode.split("-")
    return format, sizes == "dynamic"


def one_thread_sessions() -> None:
    """From now on ONNX Runtime sessions, whoever makes them, have one thread each: workers share the cores."""
    import onnxruntime

    original = onnxruntime.InferenceSession.__init__

    @functools.wraps(original)
    def init(self, path_or_bytes, sess_options=None, *arguments, **options):
        sess_options = sess_options or onnxruntime.SessionOptions()
        sess_options.intra_op_num_threads = sess_options.inter_op_num_threads = 1
        original(self, path_or_bytes, sess_options, *arguments, **options)

    onnxruntime.InferenceSession.__init__ = init
