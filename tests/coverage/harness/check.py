"""One case through the modes: build, eager, export, save, run, verify."""

import copy
import gc
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path

import torch

from harness import cases, runtime
from harness.compare import Mismatch, compare, equal, flatten, repeatable
from harness.exporters import Exported, split
from harness.ties import first_of_equals
from harness.variations import Variation, signature, vary

REASON = 300  # characters kept of a reason


class Failure(Exception):
    """A stage of a mode that failed, and why."""

    def __init__(self, stage: str, reason: str, where: str = ""):
        super().__init__(reason)
        self.stage, self.reason, self.where = stage, reason, where


class Case:
    """A model with its inputs and what eager makes of them, at the traced sizes and at others."""

    def __init__(self, name: str, dynamic: bool = True):
        """Builds and runs eager. Raises Failure when the case doesn't run, which excludes it."""
        self.name, self.dynamic = name, dynamic
        self.prepare()

    def prepare(self) -> None:
        zoo = cases.zoo()
        with stage("build"):
            self.model, self.inputs = zoo.build(self.name)
        with stage("eager"):
            expected = self.eager(self.inputs)
            again = self.eager(self.inputs)
        if not expected:
            raise Failure("eager", "no tensor among the outputs")
        others = vary(zoo, self.name, self.model, self.inputs, self.eager, self.dynamic, expected)
        # Once more after the other sizes: a model that keeps something from them can't be compared by value.
        self.level = repeatable([expected, again, self.eager(self.inputs)])
        self.sample = Variation("sample", self.inputs, expected)
        self.state = {name: tensor.detach().clone() for name, tensor in tensors_of(self.model).items()}
        self.same_sizes = [v for v in others if v.name == "values"]
        self.other_sizes = [v for v in others if v.name != "values"]

    def eager(self, inputs: dict) -> dict[str, torch.Tensor]:
        with torch.no_grad():
            return flatten(self.model(**copy.deepcopy(inputs)))

    def variations(self, dynamic: bool) -> list[Variation]:
        """What an export is verified with: the traced inputs, others of the same sizes, and with dynamic other sizes."""
        return [self.sample, *self.same_sizes, *(self.other_sizes if dynamic else ())]

    def describe(self) -> dict:
        variations = [*self.same_sizes, *self.other_sizes]
        return {
            "group": cases.group(self.name),
            "families": cases.families(self.model),
            "compared": self.level,
            "inputs": signature(self.inputs),
            "variations": {v.name: signature(v.inputs) for v in variations if v.name != "values"},
        }


def tensors_of(model) -> dict[str, torch.Tensor]:
    """Parameters and all buffers, also those that no checkpoint holds."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


class stage:
    """Whatever is raised within becomes a Failure of this stage."""

    def __init__(self, name: str, note: Callable | None = None):
        self.name, self.note = name, note

    def __enter__(self):
        if self.note:
            self.note(self.name)

    def __exit__(self, kind, error, trace):
        if error is None or isinstance(error, (Failure, KeyboardInterrupt)):
            return False
        raise Failure(self.name, reason_of(error), model_line(error)) from error


def reason_of(error: BaseException) -> str:
    """The error's type and first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, Mismatch):
        return lines[0][:REASON]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:REASON]


def model_line(error: BaseException) -> str:
    """The innermost line of a model's code that an error, or what it was raised from, passed through."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if "/transformers/models/" in frame.filename:
                return f"{Path(frame.filename).name}:{frame.lineno} {(frame.line or '').strip()}"[:REASON]
        error = error.__cause__ or error.__context__
    return ""


def check_mode(case: Case, exporter, mode: str, note: Callable = lambda stage: None, every: int = 8) -> dict:
    """Exports a case in one mode and verifies it; the record of it. `note` is told each stage as it begins.

    A file is written by every mode. An .onnx is verified from it, in ONNX Runtime; a .pt2 through the program, and for
    one case in `every` also from the file (torch.export.load takes a second), as is the package's own ONNX call."""
    record: dict = {"case": case.name, "mode": mode, "status": "passed"}
    try:
        _check_mode(case, exporter, mode, note, every, record)
    except Failure as failure:
        record.update(status="failed", stage=failure.stage, reason=failure.reason, where=failure.where)
    changed = _changed(case)
    if changed:
        record["model_changed"] = changed
        if record["status"] == "passed":
            record.update(status="failed", stage="state", reason=changed, where="")
    return record


def _check_mode(case, exporter, mode, note, every, record) -> None:
    format, dynamic = split(mode)
    start = time.perf_counter()
    with stage("export", note):
        exported = exporter.export(case.model, copy.deepcopy(case.inputs), mode)
    record["export_s"] = round(time.perf_counter() - start, 4)
    start = time.perf_counter()
    record["verified"] = []
    sampled = every and zlib.crc32(case.name.encode()) % every == 0
    try:
        with tempfile.TemporaryDirectory(prefix="coverage-") as folder:
            path = Path(folder) / ("model.pt2" if format == "dynamo" else "model.onnx")
            if exported.save:
                with stage("save", note):
                    exported.save(str(path))
            runs = _runs(exported, format, path, sampled, note)
            worst = 0.0
            for door, run, all_sizes in runs:
                for variation in case.variations(dynamic) if all_sizes else [case.sample]:
                    label = f"{variation.name}{door}"
                    with labelled(label):
                        with stage("run", note), torch.no_grad():
                            got = flatten(run(exported.prepare(copy.deepcopy(variation.inputs))))
                        with stage("verify"):
                            worst = max(worst, _difference(case, variation, got, format, record))
                    record["verified"].append(label)
            record["difference"] = float(f"{worst:.3g}")
    finally:
        record["verify_s"] = round(time.perf_counter() - start, 4)


def _difference(case: Case, variation: Variation, got, format: str, record: dict) -> float:
    """How far `got` is from eager. Raises Mismatch; an ONNX file may also take the first of equal scores."""
    try:
        return compare(variation.expected, got, case.level)
    except Mismatch:
        if format != "onnx":
            raise
        with first_of_equals():
            expected = case.eager(variation.inputs)
        try:
            difference = compare(expected, got, case.level)
        except Mismatch:
            difference = None
        if difference is None:
            raise
        record["first_of_equals"] = True
        return difference


def _runs(exported: Exported, format, path, sampled, note):
    """(name of the way, function that runs inputs, whether at all sizes) for each way to run an export."""
    if not exported.save:
        return [("", exported.call, True)]
    if format == "dynamo":
        ways = [("", exported.call, True)]
        if sampled:
            ways.append((" from file", runtime.open_pt2(path), True))
        return ways
    with stage("load", note):
        session = runtime.open_onnx(path)
    ways = [("", lambda inputs: runtime.run_onnx(session, inputs), True)]
    if sampled and exported.call:
        ways.append((" by package", exported.call, False))
    return ways


class labelled:
    """Failures within name the inputs they happened with, except the traced ones."""

    def __init__(self, label: str):
        self.label = label

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, Failure) and self.label != "sample":
            error.reason = f"{self.label}: {error.reason}"[:REASON]
        return False


def _changed(case: Case) -> str:
    """"" when the model is bit for bit what it was before an export and still runs, else what is wrong with it."""
    now = {name: tensor.detach() for name, tensor in tensors_of(case.model).items()}
    if now.keys() != case.state.keys():
        return f"other tensors in the model after the export: {sorted(now.keys() ^ case.state.keys())[:4]}"
    for name, tensor in case.state.items():
        if type(now[name]) is not torch.Tensor or not equal({name: tensor}, {name: now[name]}):
            return f"{name} is changed after the export"
    if case.model.training:
        return "the model is in training mode after the export"
    try:
        compare(case.sample.expected, case.eager(case.inputs), case.level)
    except Exception as error:
        return f"eager after the export: {reason_of(error)}"
    return ""


def run_case(name: str, modes: list[str], exporter, emit: Callable[[dict], None], every: int = 8) -> None:
    """Checks a case in all modes. `emit` gets {"begin": mode, "stage": ...} as each stage starts and a record per mode;
    the first record is of mode "eager": whether the case counts at all, and what it is."""
    start = time.perf_counter()
    emit({"begin": "eager", "stage": "build"})
    try:
        case = Case(name, any(split(mode)[1] for mode in modes))
    except Failure as failure:
        emit({"case": name, "mode": "eager", "status": "excluded", "stage": failure.stage, "reason": failure.reason})
        return
    seconds = round(time.perf_counter() - start, 4)
    emit({"case": name, "mode": "eager", "status": "passed", **case.describe(), "eager_s": seconds})
    for mode in modes:
        emit({"begin": mode, "stage": "export"})
        record = check_mode(case, exporter, mode, lambda at, mode=mode: emit({"begin": mode, "stage": at}), every)
        emit(record)
        if record.get("model_changed") and mode != modes[-1]:
            case.prepare()
    del case
    gc.collect()
