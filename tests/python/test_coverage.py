"""A part of the zoo through the Python package: cases that passed before still pass. `make coverage` runs all of it."""

import json

import pytest
from coverage_setup import needs_zoo
from harness import cases, exporters, pool, summary
from harness.results import Results

import report

EVERY = 60  # of the sorted cases; neighbours are alike


@needs_zoo
@pytest.mark.slow
def test_cases_that_passed_before_still_pass(tmp_path):
    if not report.LIST.is_file():
        pytest.skip(f"no list {report.LIST.name} yet: a whole run of make coverage and report.py --update make it")
    names = cases.select()[::EVERY]
    results = Results(tmp_path / "results.jsonl")
    tasks = results.missing(names, list(exporters.MODES))
    pool.Pool("transporters", 1, pool.Limits(), results.append).run(tasks)
    worse, _ = summary.compared(results, json.loads(report.LIST.read_text()))
    assert results.cases()
    assert worse == []
