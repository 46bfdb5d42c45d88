"""A part of the zoo through the Python package: cases that passed before still pass. `make coverage` runs all of it."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "coverage"))

import report  # noqa: E402
from harness import cases, exporters, pool, summary  # noqa: E402
from harness.results import Results  # noqa: E402

EVERY = 60  # of the sorted cases; neighbours are alike


@pytest.mark.slow
def test_cases_that_passed_before_still_pass(tmp_path):
    if not report.LIST.is_file():
        pytest.skip(f"no list {report.LIST.name} yet: a whole run of make coverage and report.py --update make it")
    try:
        names = cases.select()[::EVERY]
    except cases.ZooMissing as error:
        pytest.skip(str(error))
    results = Results(tmp_path / "results.jsonl")
    tasks = results.missing(names, list(exporters.MODES))
    pool.Pool("transporters", 1, pool.Limits(), results.append).run(tasks)
    worse, _ = summary.compared(results, json.loads(report.LIST.read_text()))
    assert results.cases()
    assert worse == []
