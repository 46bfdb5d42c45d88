#!/usr/bin/env python
"""Writes docs/coverage.md and out/coverage.json from a run's records, and checks them against the checked-in list
statuses.json: the cases that fail, with reasons. All others pass.

Exits with 1 with --check when a case that passed before fails."""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import cases, markdown, summary  # noqa: E402
from harness.exporters import MODES  # noqa: E402
from harness.results import Results  # noqa: E402

LIST = Path(__file__).with_name("statuses.json")


def parse(arguments=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=cases.ROOT / "out" / "coverage.jsonl")
    parser.add_argument("--doc", type=Path, help="default: docs/coverage.md, or out/coverage.md of a run of some cases")
    parser.add_argument("--json", type=Path, default=cases.ROOT / "out" / "coverage.json")
    parser.add_argument("--list", type=Path, default=LIST, help="the statuses that are checked in")
    parser.add_argument("--check", action="store_true", help="compare with the list, write nothing")
    parser.add_argument("--update", action="store_true", help="write the list anew")
    return parser.parse_args(arguments)


def check(results: Results, path: Path) -> int:
    """Prints what changed against the list; the exit code."""
    if not path.is_file():
        print(f"no list {path} to check against: make it with report.py --update", file=sys.stderr)
        return 1
    worse, better = summary.compared(results, json.loads(path.read_text()))
    for line in better:
        print(f"passes now: {line}")
    for line in worse:
        print(f"FAILS NOW: {line}")
    print(f"{len(worse)} worse, {len(better)} better than {path.name}")
    if better and not worse:
        print("keep the better ones with report.py --update")
    return 1 if worse else 0


def complete(results: Results) -> str:
    """ "" when the run holds every case in every mode, else what is missing."""
    names = cases.zoo().list_cases()
    seen = {name for name, mode in results.records if mode == "eager"}
    left = len(set(names) - seen) + len(results.missing(sorted(seen), results.modes()))
    lacking = [mode for mode in MODES if mode not in results.modes()]
    if left or lacking:
        return f"{left} of {len(names)} cases are missing" + (
            f", and the modes {', '.join(lacking)}" if lacking else ""
        )
    return ""


def main(arguments=None) -> int:
    options = parse(arguments)
    if not options.results.is_file():
        print(f"no results {options.results}: make them with run.py", file=sys.stderr)
        return 1
    results = Results(options.results)
    if options.check:
        return check(results, options.list)
    partly = complete(results)
    if options.update:
        if partly:
            print(f"the list is made from a whole run: {partly}", file=sys.stderr)
            return 1
        options.list.write_text(json.dumps(summary.statuses(results), indent=1, ensure_ascii=False) + "\n")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(summary.as_json(results), indent=1) + "\n")
    doc = options.doc or cases.ROOT / ("out" if partly else "docs") / "coverage.md"
    doc.write_text(markdown.page(results, partly))
    print(f"wrote {doc} and {options.json}" + (f"; not the whole zoo: {partly}" if partly else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
