"""Generation in the coverage run: prompts, stages that go wrong, tokens of equal scores, records, and the page's
section."""

import contextlib
import json
import sys

import pytest
import torch
from coverage_setup import HERE, needs_zoo
from harness import check, compare, exporters, generation, markdown, pool, summary, ties, variations
from harness.results import Results

import report

DYNAMO, ONNX = exporters.GENERATION_MODES
QWEN3 = "qwen3/Qwen3ForCausalLM"


@pytest.fixture
def qwen3():
    return generation.GenerationCase(QWEN3)


# ── a case ──


@needs_zoo
def test_prompts_of_a_decoder_are_padded_on_the_left(qwen3):
    assert [v.name for v in qwen3.other_sizes] == ["batch 1", "batch 3"]
    assert "labels" not in qwen3.inputs
    for variation in qwen3.variations(dynamic=True):
        mask = variation.inputs["attention_mask"]
        assert mask[:, -1].all()
        assert (mask == 0).any() == (variation.name != "batch 1")
        tokens = variation.expected["output"]
        assert tokens.shape == (len(mask), mask.shape[1] + generation.TOKENS)
    sizes = [variations.signature(v.inputs)["input_ids"] for v in qwen3.variations(dynamic=True)]
    assert sizes[0] == sizes[1] and len({tuple(size) for size in sizes}) == 3


@needs_zoo
def test_what_an_encoder_reads_is_padded_on_either_side():
    case = generation.GenerationCase("t5/T5ForConditionalGeneration")
    assert not any(name.startswith("decoder_") for name in case.inputs)
    assert (case.other_sizes[1].inputs["attention_mask"][:, -1] == 0).any()


class Fake:
    """An exporter whose stages are the model, with a hook on the layer that makes the scores."""

    def __init__(self, hook=None, components=(), calls=(), fails=()):
        self.hook, self.components, self.calls, self.fails = hook, dict.fromkeys(components), calls, fails

    def export_stages(self, model, inputs, mode, static=()):
        self.model = model
        for name in self.fails:
            if name not in static:
                error = RuntimeError(f"{name} has a size that the data decides")
                error.component = name
                raise error
        return self

    @contextlib.contextmanager
    def in_place(self):
        handle = self.model.lm_head.register_forward_hook(self.hook) if self.hook else None
        try:
            yield self
        finally:
            if handle:
                handle.remove()


@needs_zoo
@pytest.mark.parametrize("mode", exporters.GENERATION_MODES)
def test_eager_itself_passes(qwen3, mode):
    record = check.check_mode(qwen3, exporters.Eager(), mode)
    assert record["status"] == "passed", record
    assert record["verified"] == ["sample", "values", "batch 1", "batch 3"]
    assert "ties" not in record and "static" not in record


@needs_zoo
def test_another_token_fails_in_verify(qwen3):
    def hook(module, args, logits):
        if len(logits) == 3:
            logits[:, -1, 7] += 100
        return logits

    record = check.check_mode(qwen3, Fake(hook), DYNAMO)
    assert (record["status"], record["stage"]) == ("failed", "verify")
    assert record["reason"].startswith("batch 3: output: ") and "int64 values differ" in record["reason"]
    assert record["verified"] == ["sample", "values", "batch 1"]


@needs_zoo
@pytest.mark.parametrize("amount, passes", [(1e-7, True), (1e-2, False)])
def test_a_token_of_an_equal_score_is_no_failure(amount, passes, monkeypatch):
    """Every token has a twin of the same score, so that rounding decides between them."""
    build = generation.GenerationCase.build

    def twins(self):
        model, inputs = build(self)
        with torch.no_grad():
            model.lm_head.weight[64:] = model.lm_head.weight[:64]
        return model, inputs

    monkeypatch.setattr(generation.GenerationCase, "build", twins)
    case = generation.GenerationCase(QWEN3)

    def hook(module, args, logits):
        logits[..., 64:] += amount * logits.abs().max()
        return logits

    record = check.check_mode(case, Fake(hook), ONNX)
    if passes:
        assert record["status"] == "passed" and record["ties"] >= 1
    else:
        assert (record["status"], record["stage"]) == ("failed", "verify")


def test_choices_are_forced_only_among_the_best():
    kept, scores = ties.kept_choices(), torch.tensor([[0.0, 2, 2, -float("inf")], [5, 0, 0, 0]])
    assert kept(None, scores) is scores
    forced = ties.forced_choices(kept.scores)
    near = torch.tensor([[0.0, 2, 2.0001, -float("inf")], [5.0001, 0, 0, 0]])
    assert torch.equal(forced(None, near), scores) and (forced.steps, forced.others) == (1, 1)
    with pytest.raises(compare.Mismatch, match="token 1: one more than the model makes"):
        forced(None, near)
    with pytest.raises(compare.Mismatch, match="scores 0: 1 of 8 values differ"):
        ties.forced_choices(kept.scores)(None, torch.tensor([[0.0, 2, 2.01, -float("inf")], [5, 0, 0, 0]]))
    with pytest.raises(compare.Mismatch, match="sizes"):
        ties.forced_choices(kept.scores)(None, near[:1])


@needs_zoo
def test_a_component_that_never_runs_is_told(qwen3):
    record = check.check_mode(qwen3, Fake(components=["prefill", "decode"], calls=["prefill"]), DYNAMO)
    assert (record["stage"], record["reason"]) == ("verify", "generate never calls decode")


@needs_zoo
def test_components_with_fixed_sizes_are_told_and_a_cache_that_grows_has_none(qwen3):
    record = check.check_mode(qwen3, Fake(fails=["image_encoder", "lm_head"]), DYNAMO)
    assert record["status"] == "passed" and record["verified"] == ["sample", "values"]
    assert record["static"] == ["image_encoder", "lm_head"]
    assert record["static_reason"] == "RuntimeError: image_encoder has a size that the data decides"
    record = check.check_mode(qwen3, Fake(fails=["decode"]), DYNAMO)
    assert (record["stage"], record["reason"]) == ("export", "RuntimeError: decode has a size that the data decides")


@needs_zoo
def test_a_real_export():
    case = generation.GenerationCase("parakeet_ctc/ParakeetForCTC")
    record = check.check_mode(case, exporters.Transporters(), ONNX)
    assert record["status"] == "passed", record
    assert record["components"] == ["prefill"]


@needs_zoo
def test_records_say_which_classes_generate(monkeypatch):
    records = []
    check.run_case("qwen3/Qwen3Model", [DYNAMO], exporters.Eager(), records.append)
    assert records == [{"case": "qwen3/Qwen3Model", "mode": "generate", "status": "none"}]

    def build(self):
        raise ValueError("no prompt")

    monkeypatch.setattr(generation.GenerationCase, "build", build)
    check.run_case(QWEN3, [DYNAMO, ONNX], exporters.Eager(), records.append)
    reason = {"status": "excluded", "stage": "build", "reason": "ValueError: no prompt"}
    assert records[-1] == {"case": QWEN3, "mode": "generate", **reason}


@needs_zoo
def test_one_pass_and_generation_in_one_task():
    records = []
    check.run_case(QWEN3, ["dynamo-static", DYNAMO], exporters.Eager(), records.append)
    assert [r["mode"] for r in records if "case" in r] == ["eager", "dynamo-static", "generate", DYNAMO]


# ── a whole run ──


def test_a_case_that_hangs_in_generate_keeps_its_other_modes():
    records = []
    command = [sys.executable, str(HERE / "coverage_fake_worker.py")]
    limits = pool.Limits(seconds=2, eager_seconds=2)
    tasks = [{"case": "hangs-generating", "modes": ["dynamo-static", DYNAMO, ONNX]}]
    pool.Pool("fake", 1, limits, records.append, command=command).run(tasks)
    assert [(r["mode"], r["status"]) for r in records] == [
        ("eager", "passed"),
        ("dynamo-static", "passed"),
        ("generate", "timeout"),
    ]


def record(case, mode, status="passed", **more):
    return {"case": case, "mode": mode, "status": status, **more}


PASSED = dict(export_s=0.5, verified=["sample", "batch 3"])
RECORDS = [
    record("a/A", "eager", group="text", families=[]),
    record("a/A", "dynamo-static", **PASSED),
    record("a/A", "generate", group="text", families=[]),
    record("a/A", DYNAMO, **PASSED, ties=2),
    record("a/A", ONNX, "failed", stage="verify", reason="batch 3: output: 3 of 40 int64 values differ, first at [0]"),
    record("b/B", "eager", group="vision", families=[]),
    record("b/B", "generate", "none"),
    record("c/C", "generate", "excluded", stage="generate", reason="KeyError: no prompt"),
    record("d/D", "generate", group="multimodal", families=[]),
    record("d/D", DYNAMO, **PASSED, static=["image_encoder"], static_reason="ExportError: its size"),
]


def results(path, records) -> Results:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return Results(path)


def test_what_is_missing_of_generation(tmp_path):
    found = results(tmp_path / "r.jsonl", RECORDS)
    assert found.missing(["a/A", "b/B", "c/C", "d/D"], [DYNAMO, ONNX]) == [{"case": "d/D", "modes": [ONNX]}]
    assert found.missing(["b/B", "c/C"], ["dynamo-static"]) == [
        {"case": n, "modes": ["dynamo-static"]} for n in ("b/B", "c/C")
    ]
    assert (found.cases(), found.cases("generate")) == (["a/A", "b/B"], ["a/A", "d/D"])
    assert [r["case"] for r in found.excluded("generate")] == ["c/C"] and found.excluded() == []


def test_generation_that_worked_before_is_checked(tmp_path, capsys):
    before = summary.statuses(results(tmp_path / "before.jsonl", RECORDS))
    assert before["not generating"] == {"c/C": "[generate] KeyError: no prompt"}
    assert before["failing"][ONNX] == {
        "a/A": "failed [verify] batch 3: output: 3 of 40 int64 values differ, first at [0]"
    }

    def check_against(statuses, *records):
        (tmp_path / "statuses.json").write_text(json.dumps(statuses))
        results(tmp_path / "now.jsonl", records)
        code = report.main(
            ["--results", str(tmp_path / "now.jsonl"), "--list", str(tmp_path / "statuses.json"), "--check"]
        )
        return code, capsys.readouterr().out

    assert check_against(before, *RECORDS)[0] == 0
    failing = record("a/A", DYNAMO, "failed", stage="run", reason="KeyError: x")
    code, text = check_against(before, RECORDS[2], failing)
    assert code == 1 and f"FAILS NOW: a/A {DYNAMO}: failed [run] KeyError: x" in text
    code, text = check_against(before, record("a/A", "generate", "excluded", stage="generate", reason="ValueError: y"))
    assert code == 1 and "a/A: eager does not generate with it any more" in text
    # A list from before generation was a mode knows nothing of it.
    old = {"excluded": {}, "failing": {"dynamo-static": {}}}
    assert check_against(old, *RECORDS)[0] == 0


def test_the_section_on_generation(tmp_path):
    page = markdown.page(results(tmp_path / "r.jsonl", RECORDS))
    first, section = page.split("## Generation\n")
    section = section.split("\n## ")[0]
    assert "2 of the classes generate in eager" in section
    assert f"| models | {DYNAMO} | {ONNX} |" in section
    assert "| all | 2/2 (100.0 %) | 0/1 (0.0 %) |" in section
    assert "1 models have scores that are the largest" in section and "`a/A`." in section
    assert "- `d/D`: image_encoder (ExportError: its size)" in section
    assert f"### 1 × `verify: N of N intN values differ`\n\n- `a/A` ({ONNX})" in section
    assert "- `c/C` [generate] KeyError: no prompt" in section
    assert f"| {DYNAMO} | batch 3 | 2/2 (100.0 %) |" in section
    assert "int64 values differ" not in first and "c/C" not in first
    assert "| b | – |" not in page  # nothing was exported of it
    assert f"| model type | dynamo-static | {DYNAMO} | {ONNX} |" in page
    assert "| d | – | 1/1 | – |" in page
