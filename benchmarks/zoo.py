#!/usr/bin/env python
"""In-process export times on a random sample of tiny models: this project's Python package and transformers' own
exporters, in turn, in one process. Both outputs are compared with eager and with each other."""

import argparse
import copy
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "coverage"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from harness import worker  # noqa: E402
from harness.exporters import MODES  # noqa: E402
from harness.pool import CannotStart, Limits, Pool  # noqa: E402

from page import write_section  # noqa: E402

SIDES = ("transporters", "transformers")
WARM_UP = "bert/BertModel"  # exported by both before anything is timed


def prepare(exporter_names: str):
    """In the worker: both exporters, warmed up, and what runs a case with them."""
    from harness import check, exporters

    worker.quiet()
    exporters.one_thread_sessions()
    both = {name: exporters.EXPORTERS[name]() for name in exporter_names.split("+")}
    case = check.Case(WARM_UP, dynamic=False)
    for exporter in both.values():
        for mode in MODES[1::2]:
            exporter.export(case.model, copy.deepcopy(case.inputs), mode)
    return both, run_case


def run_case(name: str, tasks: list[str], both: dict, emit, every: int) -> None:
    """Exports a case with both sides in every mode of `tasks`, which are "mode side". The side that begins alternates
    over the modes, so that none always finds the model's code warm."""
    from harness import check

    emit({"begin": "eager", "stage": "build"})
    try:
        case = check.Case(name, dynamic=False)
    except check.Failure as failure:
        emit({"case": name, "mode": "eager", "status": "excluded", "stage": failure.stage, "reason": failure.reason})
        return
    emit({"case": name, "mode": "eager", "status": "passed"})
    outputs: dict = {}
    for task in tasks:
        mode, side = task.split()
        emit({"begin": task, "stage": "export"})
        emit(measure(case, both[side], mode, task, outputs.setdefault(mode, {})))


def measure(case, exporter, mode: str, task: str, outputs: dict) -> dict:
    """One timed export, run once; its outputs are compared with eager's and with the other side's."""
    import torch
    from harness import check
    from harness.compare import compare, flatten

    record = {"case": case.name, "mode": task, "status": "passed"}
    try:
        inputs = copy.deepcopy(case.inputs)
        with check.stage("export"):
            start = time.perf_counter()
            exported = exporter.export(case.model, inputs, mode)
            record["export_s"] = time.perf_counter() - start
        with check.stage("run"), torch.no_grad():
            got = flatten(exported.call(exported.prepare(copy.deepcopy(case.inputs))))
        with check.stage("verify"):
            compare(case.sample.expected, got, case.level)
        for other in outputs.values():
            with check.stage("compare"):
                compare(other, got, case.level)
            record["same_as_other"] = True
        outputs[task] = got
    except check.Failure as failure:
        record.update(status="failed", stage=failure.stage, reason=failure.reason)
    return record


def tasks_of(names: list[str], modes: list[str], sides=SIDES) -> list[dict]:
    tasks = []
    for index, name in enumerate(names):
        order = [
            f"{mode} {side}"
            for place, mode in enumerate(modes)
            for side in (sides if (index + place) % 2 == 0 else sides[::-1])
        ]
        tasks.append({"case": name, "modes": order})
    return tasks


def table(records: dict, names: list[str], mode: str, limit: float, sides=SIDES) -> str:
    """A row per case, and the medians over the cases that both exported. A time limit counts as that many seconds."""
    ours, theirs = sides
    rows, pairs = [f"| {mode} | ours, s | theirs, s | theirs / ours | outputs |", "|---|---|---|---|---|"], []
    for name in names:
        if records.get((name, "eager"), {}).get("status") != "passed":
            continue
        first, second = (records.get((name, f"{mode} {side}"), {"status": "missing"}) for side in (ours, theirs))
        times = [limit if r["status"] == "timeout" else r.get("export_s") for r in (first, second)]
        ratio = times[1] / times[0] if all(times) else None
        if ratio and first["status"] == "passed":
            pairs.append((*times, ratio))
        equal = (
            "equal"
            if any(r.get("same_as_other") for r in (first, second))
            else "; ".join(
                f"{side}: {told(r)}" for side, r in (("ours", first), ("theirs", second)) if r["status"] != "passed"
            )
        )
        over = ">" if second["status"] == "timeout" else ""
        cells = ["–" if t is None else f"{t:.3f}" for t in times] + ["–" if ratio is None else f"{over}{ratio:.0f}"]
        rows.append(f"| `{name}` | {cells[0]} | {over}{cells[1]} | {cells[2]} | {equal or 'not compared'} |")
    if pairs:
        medians = [statistics.median(column) for column in zip(*pairs, strict=True)]
        rows.append(
            f"| **median of {len(pairs)}** | **{medians[0]:.3f}** | **{medians[1]:.3f}** | **{medians[2]:.0f}** "
            f"(of medians {medians[1] / medians[0]:.0f}) | |"
        )
    return "\n".join(rows)


def told(record: dict) -> str:
    reason = record.get("reason", "").replace("|", "/").replace("`", "")
    return f"{record['status']} in {record.get('stage', '?')}, {reason[:80]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="REGEX", help="sample from the cases whose name matches")
    parser.add_argument("--modes", default="dynamo-dynamic,onnx-dynamic")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for each export")
    parser.add_argument("--sides", default="+".join(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="write the section of docs/benchmarks.md")
    options = parser.parse_args()
    from harness import cases

    try:
        names, modes = cases.select(options.only, options.sample, options.seed), options.modes.split(",")
    except cases.ZooMissing as error:
        sys.exit(str(error))
    sides = tuple(options.sides.split("+"))
    records: dict = {}

    def on_record(record: dict) -> None:
        records[record["case"], record["mode"]] = record
        seconds = f" {record['export_s']:.3f} s" if "export_s" in record else ""
        print(f"{record['case']} {record['mode']} {record['status']}{seconds} {record.get('reason', '')}", flush=True)

    command = [sys.executable, str(Path(__file__).resolve()), "--worker"]
    limits = Limits(options.timeout, recycle_mb=6000, kill_mb=16000, cases=1000)
    start = time.monotonic()
    try:
        Pool(options.sides, 1, limits, on_record, command=command).run(tasks_of(names, modes, sides))
    except CannotStart as error:
        sys.exit(str(error))
    left = [name for name in names if records.get((name, "eager"), {}).get("status") != "passed"]
    again = f"python benchmarks/zoo.py --sample {options.sample} --seed {options.seed}"
    text = (
        f"Made by `{again} --write` in {(time.monotonic() - start) / 60:.0f} minutes: in-process seconds of `export`, once "
        f"each in turn, in one process of one thread after a warm-up; {options.timeout:g} s at most. Outputs of both are "
        "equal when each agrees with eager and with the other to 1e-4."
        + (f" Left out, since eager fails: {', '.join(left)}." if left else "")
    )
    text += "".join(f"\n\n{table(records, names, mode, options.timeout, sides)}" for mode in modes)
    print("\n" + text)
    if options.write:
        write_section("Tiny models of the zoo", text)


if __name__ == "__main__":
    if "--worker" in sys.argv:
        sys.argv.remove("--worker")
        worker.main(prepare)
    else:
        main()
