"""The coverage run as a whole: worker processes, records, the report, the check against the list, and
benchmarks/zoo.py."""

import json
import sys

import pytest
from coverage_setup import HERE, needs_zoo
from harness import exporters, markdown, pool, summary
from harness.results import Results

import report

MODES = list(exporters.MODES)


# ── the pool ──


def run_pool(names, **limits):
    records = []
    command = [sys.executable, str(HERE / "coverage_fake_worker.py")]
    limits = pool.Limits(**{"seconds": 2, **limits})
    pool.Pool("fake", 2, limits, records.append, command=command).run([{"case": n, "modes": MODES} for n in names])
    return {(r["case"], r["mode"]): r for r in records}


def test_time_limits_and_crashes_are_recorded_and_the_rest_goes_on():
    found = run_pool(["first", "hangs", "crashes", "dies-building", "hangs-building", "last"], eager_seconds=3)
    for name in ("first", "last"):
        assert {found[name, mode]["status"] for mode in MODES} == {"passed"}
    for name, status, reason in (("hangs", "timeout", "not done within 2 s"), ("crashes", "crash", "died of SIGSEGV")):
        assert found[name, "dynamo-dynamic"]["status"] == status
        assert found[name, "dynamo-dynamic"]["stage"] == "export"
        assert reason in found[name, "dynamo-dynamic"]["reason"]
        # The other modes of the case run in another worker.
        assert {found[name, m]["status"] for m in MODES if m != "dynamo-dynamic"} == {"passed"}
    assert found["hangs-building", "eager"]["reason"] == "not done within 3 s"
    # Whether it generates is asked on its own, and only once.
    assert not [mode for name, mode in found if name.endswith("-building") and mode not in ("eager", "generate")]
    assert found["dies-building", "eager"]["reason"] == "the process ended with exit code 3"


def test_memory_is_limited():
    found = run_pool(["grows"], seconds=30, kill_mb=300)
    assert found["grows", "dynamo-dynamic"]["reason"] == "more than 300 MB of memory"
    assert found["grows", "onnx-dynamic"]["status"] == "passed"


def test_workers_are_replaced_after_some_cases_and_when_they_grow():
    found = run_pool(["leaks", "leaks-not"], cases=1)
    assert len({r["pid"] for r in found.values() if "pid" in r}) == 2


def test_an_exporter_that_can_not_be_imported_is_an_error(tmp_path):
    with pytest.raises(pool.CannotStart, match="a worker can't start"):
        command = [sys.executable, "-c", "import sys; sys.exit('no such package')"]
        pool.Pool("fake", 1, pool.Limits(), print, command=command).run([{"case": "a", "modes": MODES}])


def test_the_innermost_model_line_of_a_stack():
    stack = (
        'Fatal Python error: Segmentation fault\n\n  File "/x/torch/nn/functional.py", line 7 in linear\n'
        '  File "/x/transformers/models/bert/modeling_bert.py", line 12 in forward\n'
        '  File "/x/transformers/models/bert/modeling_bert.py", line 99 in forward\n'
    )
    assert pool.model_line_of_stack(stack) == "modeling_bert.py:12 forward"
    assert pool.model_line_of_stack("") == ""


# ── results, report, check ──


def passed(case, mode, **more):
    return {"case": case, "mode": mode, "status": "passed", "export_s": 0.5, "verified": ["sample", "batch 3"], **more}


def failed(case, mode, reason="TypeError: no", stage="export"):
    return {"case": case, "mode": mode, "status": "failed", "stage": stage, "reason": reason, "where": ""}


def eager(case, group="text", families=()):
    return {"case": case, "mode": "eager", "status": "passed", "group": group, "families": list(families)}


def excluded(case):
    return {"case": case, "mode": "eager", "status": "excluded", "stage": "build", "reason": "ImportError: no"}


def results(path, *records) -> Results:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return Results(path)


def test_an_interrupted_run_is_resumed(tmp_path):
    path = tmp_path / "r.jsonl"
    found = results(path, eager("a/A"), passed("a/A", MODES[0]), excluded("b/B"))
    path.write_text(path.read_text() + '{"case": "a/A", "mo')
    found = Results(path)
    assert found.missing(["a/A", "b/B", "c/C"], MODES[:2]) == [
        {"case": "a/A", "modes": [MODES[1]]},
        {"case": "c/C", "modes": MODES[:2]},
    ]


def test_a_case_that_passed_before_and_fails_is_found(tmp_path, capsys):
    before = [eager("a/A"), eager("b/B"), passed("a/A", MODES[0]), failed("b/B", MODES[0]), excluded("c/C")]
    statuses = tmp_path / "statuses.json"
    statuses.write_text(json.dumps(summary.statuses(results(tmp_path / "before.jsonl", *before))))

    def check_against(*records):
        now = tmp_path / "now.jsonl"
        results(now, *records)
        code = report.main(["--results", str(now), "--list", str(statuses), "--check"])
        return code, capsys.readouterr().out

    assert check_against(*before)[0] == 0
    code, text = check_against(eager("a/A"), failed("a/A", MODES[0], "KeyError: x"))
    assert code == 1 and f"FAILS NOW: a/A {MODES[0]}: failed [export] KeyError: x" in text
    code, text = check_against(eager("b/B"), passed("b/B", MODES[0]))
    assert code == 0 and f"passes now: b/B {MODES[0]}" in text
    code, text = check_against(excluded("a/A"))
    assert code == 1 and "eager does not run it any more" in text
    # A case that didn't run before isn't worse when it fails, nor is a mode that is new.
    assert check_against(eager("c/C"), failed("c/C", MODES[0]), eager("a/A"), failed("a/A", MODES[1]))[0] == 0


@needs_zoo
def test_the_list_is_only_made_from_a_whole_run(tmp_path, capsys):
    results(tmp_path / "r.jsonl", eager("a/A"), passed("a/A", MODES[0]))
    code = report.main(["--results", str(tmp_path / "r.jsonl"), "--list", str(tmp_path / "s.json"), "--update"])
    assert code == 1 and not (tmp_path / "s.json").exists()
    assert (
        "and the modes dynamo-dynamic, onnx-static, onnx-dynamic, generate-dynamo, generate-onnx"
        in capsys.readouterr().err
    )


def test_the_page(tmp_path):
    found = results(
        tmp_path / "r.jsonl",
        eager("a/A", families=["MoE"]),
        eager("a/B", "vision"),
        excluded("c/C"),
        passed("a/A", MODES[1]),
        failed("a/B", MODES[1], "batch 3: logits: 3 of 40 values differ, by up to 0.5", "verify"),
    )
    page = markdown.page(found, "3 missing")
    assert "| all | 1/2 (50.0 %) |" in page
    assert "| MoE | 1/1 (100.0 %) |" in page
    assert "| vision | 0/1 (0.0 %) |" in page
    assert "### 1 × `verify: N of N values differ`" in page
    assert "- `a/B` (dynamo-dynamic)" in page
    assert "| a | **1/2** |" in page
    assert "- `c/C` [build] ImportError: no" in page
    assert "**Not the whole zoo: 3 missing.**" in page
    assert "| dynamo-dynamic | batch 3 | 1/1 (100.0 %) |" in page


def test_failures_of_one_cause_are_grouped():
    one = failed("a/A", MODES[0], "RuntimeError: sizes 3 and 10 differ at 0x7fabc12345")
    two = failed("b/B", MODES[1], "batch 1: RuntimeError: sizes 4 and 7 differ at 0x7fabc99999")
    assert summary.kind_of_reason(one) == summary.kind_of_reason(two)
    assert "0x7f" not in summary.stable(one["reason"])


# ── benchmarks ──


def test_a_benchmark_replaces_its_own_section_only(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(HERE.parents[1] / "benchmarks"))
    from page import write_section

    path = tmp_path / "benchmarks.md"
    write_section("One", "first\n\n### part\n", path)
    write_section("Two", "second", path)
    assert path.read_text() == "# Benchmarks\n\n## One\n\nfirst\n\n### part\n\n## Two\n\nsecond\n"
    write_section("One", "again", path)
    assert path.read_text() == "# Benchmarks\n\n## One\n\nagain\n\n## Two\n\nsecond\n"
    write_section("Two", "last", path)
    assert path.read_text() == "# Benchmarks\n\n## One\n\nagain\n\n## Two\n\nlast\n"


def test_the_zoo_benchmark_takes_turns_and_names_what_differs(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE.parents[1] / "benchmarks"))
    import zoo

    tasks = zoo.tasks_of(["a/A", "b/B"], ["dynamo-dynamic"])
    assert [task["modes"][0].split()[1] for task in tasks] == ["transporters", "transformers"]
    mode = "dynamo-dynamic"
    records = {(name, "eager"): {"status": "passed"} for name in ("a/A", "b/B", "c/C")}
    records["a/A", f"{mode} transporters"] = {"status": "passed", "export_s": 0.1}
    records["a/A", f"{mode} transformers"] = {"status": "passed", "export_s": 4.0, "same_as_other": True}
    records["b/B", f"{mode} transporters"] = {"status": "passed", "export_s": 0.2}
    records["b/B", f"{mode} transformers"] = {"status": "timeout", "stage": "export", "reason": "not done within 180 s"}
    records["c/C", f"{mode} transporters"] = {"status": "failed", "stage": "export", "reason": "TypeError: x | y"}
    records["c/C", f"{mode} transformers"] = {"status": "passed", "export_s": 3.0}
    table = zoo.table(records, ["a/A", "b/B", "c/C", "d/D"], mode, 180)
    assert "| `a/A` | 0.100 | 4.000 | 40 | equal |" in table
    assert "| `b/B` | 0.200 | >180.000 | >900 | theirs: timeout in export, not done within 180 s |" in table
    assert "| `c/C` | – | 3.000 | – | ours: failed in export, TypeError: x / y |" in table
    assert "| **median of 2** | **0.150** | **92.000** | **470** (of medians 613) | |" in table
