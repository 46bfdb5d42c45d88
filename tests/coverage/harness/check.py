"""One case through the modes: build, eager, export, save, run, verify."""

import copy
import gc
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import torch

from harness import cases, generation, runtime
from harness.case import Case, tensors_of
from harness.compare import Mismatch, compare, equal, flatten
from harness.exporters import GENERATION_MODES, Exported, split
from harness.stages import Failure, labelled, reason_of, stage
from harness.ties import first_of_equals
from harness.variations import Variation


def check_mode(case: Case, exporter, mode: str, note: Callable = lambda stage: None, every: int = 8) -> dict:
    """Exports a case in one mode and verifies it; the record of it. `note` is told each stage as it begins.

    A file is written by every mode. An .onnx is verified from it, in ONNX Runtime; a .pt2 through the program, and for
    one case in `every` also from the file (torch.export.load takes a second), as is the package's own ONNX call."""
    record: dict = {"case": case.name, "mode": mode, "status": "passed"}
    try:
        if mode in GENERATION_MODES:
            generation.verify(case, exporter, mode, note, record)
        else:
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


def _changed(case: Case) -> str:
    """ "" when the model is bit for bit what it was before an export and still runs, else what is wrong with it."""
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
    """Checks a case in all modes. `emit` gets {"begin": mode, "stage": ...} as each stage starts and a record per mode.
    Before those of one pass through the model is a record of mode "eager", before those of generation one of mode
    "generate": whether the case counts at all, and what it is."""
    forward = [mode for mode in modes if mode not in GENERATION_MODES]
    if forward:
        dynamic = any(split(mode)[1] for mode in forward)
        _run_modes(name, "eager", lambda: Case(name, dynamic), forward, exporter, emit, every)
    generating = [mode for mode in modes if mode in GENERATION_MODES]
    if generating and not cases.generates(name):
        emit({"case": name, "mode": "generate", "status": "none"})
    elif generating:
        _run_modes(name, "generate", lambda: generation.GenerationCase(name), generating, exporter, emit, every)


def _run_modes(name, baseline, make, modes, exporter, emit, every) -> None:
    start = time.perf_counter()
    emit({"begin": baseline, "stage": "build"})
    try:
        case = make()
    except Failure as failure:
        emit({"case": name, "mode": baseline, "status": "excluded", "stage": failure.stage, "reason": failure.reason})
        return
    seconds = round(time.perf_counter() - start, 4)
    emit({"case": name, "mode": baseline, "status": "passed", **case.describe(), "eager_s": seconds})
    for mode in modes:
        emit({"begin": mode, "stage": "export"})
        record = check_mode(case, exporter, mode, lambda at, mode=mode: emit({"begin": mode, "stage": at}), every)
        emit(record)
        if record.get("model_changed") and mode != modes[-1]:
            case.prepare()
    del case
    gc.collect()
