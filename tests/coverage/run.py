#!/usr/bin/env python
"""Exports the zoo of tiny models in every mode, verifies each export against eager, and writes JSON lines."""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import cases  # noqa: E402
from harness.exporters import EXPORTERS, MODES  # noqa: E402
from harness.pool import CannotStart, Limits, Pool  # noqa: E402
from harness.results import Results  # noqa: E402

OUT = cases.ROOT / "out" / "coverage.jsonl"


def parse(arguments=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exporter", choices=EXPORTERS, default="transporters")
    parser.add_argument("--modes", default=",".join(MODES), help="some of the modes, with commas; default all")
    parser.add_argument("--only", metavar="REGEX", help="cases whose name matches")
    parser.add_argument("--sample", type=int, metavar="N", help="a random sample of the cases")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--shard", metavar="I/N", help="part I (from 0) of N of the cases")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for each mode of a case")
    parser.add_argument("--every", type=int, default=8, help="load the .pt2 file of one case in N; 0: of none")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--resume", action="store_true", help="keep the records in --out, run what is missing")
    options = parser.parse_args(arguments)
    options.modes = options.modes.split(",")
    for mode in options.modes:
        if mode not in MODES:
            parser.error(f"--modes: unknown mode {mode!r}; the modes are {', '.join(MODES)}")
    return options


def about(options) -> dict:
    """What a reader of the results needs to know of the run."""
    import torch
    import transformers

    commit = subprocess.run(
        ["git", "-C", str(cases.ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    return {
        "exporter": options.exporter,
        "jobs": options.jobs,
        "timeout": options.timeout,
        "modes": options.modes,
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "commit": commit,
    }


def main() -> int:
    options = parse()
    try:
        names = cases.select(options.only, options.sample, options.seed, options.shard)
    except (cases.ZooMissing, ValueError) as error:
        sys.exit(str(error))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if not options.resume:
        options.out.unlink(missing_ok=True)
    results = Results(options.out)
    tasks = results.missing(names, options.modes)
    start, seen = time.monotonic(), set()
    print(f"{len(tasks)} of {len(names)} cases to run, {len(options.modes)} modes, to {options.out}", flush=True)

    def on_record(record: dict) -> None:
        results.append(record)
        if record["case"] not in seen:
            seen.add(record["case"])
            if len(seen) % 50 == 0:
                print(f"{len(seen)}/{len(tasks)} cases after {time.monotonic() - start:.0f} s", flush=True)
        # Eager that fails excludes a case; that it hangs or crashes is worth a look.
        if record["status"] not in ("passed", "excluded", "none"):
            print(
                f"{record['status']} {record['case']} {record['mode']} [{record['stage']}] {record['reason']}",
                flush=True,
            )

    try:
        Pool(options.exporter, options.jobs, Limits(options.timeout), on_record, options.every).run(tasks)
    except CannotStart as error:
        sys.exit(str(error))
    results.append({"run": {**about(options), "seconds": round(time.monotonic() - start, 1)}})
    excluded = len(results.excluded()), len(results.excluded("generate"))
    print(
        f"{time.monotonic() - start:.0f} s for {len(tasks)} cases; eager fails in {excluded[0]}, its generate in {excluded[1]}"
    )
    for mode in options.modes:
        records = results.of_mode(mode)
        passed = sum(record["status"] == "passed" for record in records)
        print(f"{mode:15} {passed}/{len(records)} passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
