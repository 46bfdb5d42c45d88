"""The coverage run's own logic: what it compares, the inputs it makes, and what it records of cases that go wrong."""

import copy
import json
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "coverage"))

import report  # noqa: E402
from harness import cases, check, compare, exporters, markdown, pool, runtime, summary, variations  # noqa: E402
from harness.results import Results  # noqa: E402

MODES = list(exporters.MODES)

try:
    cases.zoo_folder()
    missing = ""
except cases.ZooMissing as error:
    missing = str(error)
needs_zoo = pytest.mark.skipif(bool(missing), reason=missing)


# ── compare ──


def test_equal_outputs_have_no_difference():
    one = {"a": torch.tensor([1.0, float("nan"), float("inf")]), "b": torch.tensor([1, 2]), "c": torch.tensor([True])}
    assert compare.compare(one, {name: tensor.clone() for name, tensor in one.items()}) == 0


def test_rounding_is_no_difference_but_a_wrong_value_is():
    right = torch.linspace(-10, 10, 50)
    assert 0 < compare.compare({"a": right}, {"a": right + 5e-4}) < 1e-4
    wrong = right.clone()
    wrong[7] += 0.01
    with pytest.raises(compare.Mismatch, match=r"logits: 1 of 50 values differ.*first at \[7\]"):
        compare.compare({"logits": right}, {"logits": wrong})
    compare.compare({"logits": right}, {"logits": wrong}, compare.SIZES)


def test_tiny_tensors_have_an_absolute_floor():
    compare.compare({"a": torch.zeros(3)}, {"a": torch.full((3,), 5e-7)})
    with pytest.raises(compare.Mismatch):
        compare.compare({"a": torch.zeros(3)}, {"a": torch.full((3,), 5e-6)})


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "right, got, message",
    [
        (torch.tensor([1.0, 2]), torch.tensor([1.0, NAN]), "NaN or infinity at other places"),
        (torch.tensor([1.0, NAN]), torch.tensor([1.0, 2]), "NaN or infinity at other places"),
        (torch.tensor([1.0, INF]), torch.tensor([1.0, -INF]), "another kind"),
        (torch.tensor([1.0, INF]), torch.tensor([1.0, NAN]), "another kind"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "1 of 2 int64 values differ"),
        (torch.tensor([True]), torch.tensor([False]), "1 of 1 bool values differ"),
        (torch.ones(2), torch.ones(2, 1), r"sizes \[2, 1\] instead of \[2\]"),
        (torch.ones(2), torch.ones(2).double(), "torch.float64 instead of torch.float32"),
        (torch.tensor([1 + 1j]), torch.tensor([1 + 2j]), "1 of 2 values differ"),
    ],
)
def test_differences(right, got, message):
    with pytest.raises(compare.Mismatch, match=message):
        compare.compare({"x": right}, {"x": got})


def test_other_names_are_matched_by_order_and_a_missing_output_is_named():
    right = {"logits": torch.ones(1), "cache.0": torch.zeros(1)}
    compare.compare(right, {"output_0": torch.ones(1), "output_1": torch.zeros(1)})
    with pytest.raises(compare.Mismatch, match=r"1 outputs instead of 2; missing \['cache.0'\]"):
        compare.compare(right, {"logits": torch.ones(1)})


def test_numbers_are_compared_also_as_tensors():
    def cache(length):
        return {"cache": {"keys": torch.ones(2), "length": length}}

    right = compare.flatten(cache(5))
    compare.compare(right, compare.flatten(cache(5)))
    # A graph has no numbers, and may name what a cache keeps for itself.
    compare.compare(right, {"cache.keys": torch.ones(2)})
    compare.compare(right, {"cache.keys": torch.ones(2), "cache.length": torch.tensor(5), "cache._window": torch.ones(1)})
    with pytest.raises(compare.Mismatch, match="cache.length: the number 6 instead of 5"):
        compare.compare(right, compare.flatten(cache(6)))
    with pytest.raises(compare.Mismatch, match="cache.length: the number 6 instead of 5"):
        compare.compare(right, {"cache.keys": torch.ones(2), "cache.length": torch.tensor(6)})
    with pytest.raises(compare.Mismatch, match=r"extra \['cache.other'\]"):
        compare.compare(right, {"cache.keys": torch.ones(2), "cache.other": torch.ones(2)})


def test_what_repeats_of_a_model_that_is_random():
    one, two, three = {"x": torch.ones(2, 3)}, {"x": torch.zeros(2, 3)}, {"x": torch.ones(2, 4)}
    assert compare.repeatable([one, {"x": torch.ones(2, 3)}]) == compare.VALUES
    assert compare.repeatable([one, two]) == compare.SIZES
    assert compare.repeatable([one, three]) == compare.RANKS
    compare.compare(one, three, compare.RANKS)
    for wrong in (torch.ones(2), torch.ones(2, 4).int()):
        with pytest.raises(compare.Mismatch):
            compare.compare(one, {"x": wrong}, compare.RANKS)


def test_outputs_and_caches_are_flattened_by_name():
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache
    from transformers.modeling_outputs import Seq2SeqModelOutput

    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    cache.self_attention_cache.update(torch.ones(1, 2, 3, 4), torch.zeros(1, 2, 3, 4), 0)
    output = Seq2SeqModelOutput(last_hidden_state=torch.ones(1), cache=cache, decoder_attentions=(torch.ones(2),))
    flat = compare.flatten(output)
    assert list(flat) == [
        "last_hidden_state",
        "cache.self_attention_cache.layers.0.keys",
        "cache.self_attention_cache.layers.0.values",
        "decoder_attentions.0",
    ]
    assert flat.numbers["cache.self_attention_cache.layers.0.is_initialized"] is True
    assert list(compare.flatten({"a": [torch.ones(1), (None, 3, torch.ones(1))]})) == ["a.0", "a.1.2"]
    assert list(compare.flatten(torch.ones(1))) == ["output"]


# ── cases and variations ──


def test_missing_zoo_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSPORTERS_ZOO", str(tmp_path))
    with pytest.raises(cases.ZooMissing, match=f"{tmp_path}/tiny_models.py.*TRANSPORTERS_ZOO"):
        cases.zoo_folder()


@needs_zoo
def test_selection_is_repeatable_and_shards_are_disjoint():
    everything = cases.select()
    assert len(everything) > 1500
    assert cases.select(sample=5, seed=3) == cases.select(sample=5, seed=3) != cases.select(sample=5, seed=4)
    assert all("bert" in name for name in cases.select(only="^bert/"))
    shards = [cases.select(shard=f"{index}/3") for index in range(3)]
    assert sorted(sum(shards, [])) == everything
    with pytest.raises(ValueError, match="--shard 3/3"):
        cases.select(shard="3/3")


FAMILIES = {
    "qwen3/Qwen3ForCausalLM": ["batch 1", "batch 3"],
    "mixtral/MixtralForCausalLM": ["batch 1", "batch 3"],
    "t5/T5ForConditionalGeneration": ["batch 1", "batch 3"],
    "convnext/ConvNextModel": ["batch 1", "batch 3", "image"],
    "wav2vec2/Wav2Vec2Model": ["batch 1", "batch 3"],
    "qwen2_vl/Qwen2VLForConditionalGeneration": ["batch 1", "batch 3"],
    "mllama/MllamaForConditionalGeneration": ["batch 1", "batch 3"],
    "timesfm/TimesFmModelForPrediction": ["batch 1", "batch 3"],
}


@needs_zoo
@pytest.mark.parametrize("name", FAMILIES)
def test_variations_have_other_sizes_and_leave_the_model_alone(name):
    case = check.Case(name)
    fresh, inputs = cases.zoo().build(name)
    weights = dict(fresh.state_dict())
    assert all(torch.equal(tensor, weights[key]) for key, tensor in case.model.state_dict().items())
    assert [v.name for v in case.other_sizes] == FAMILIES[name]
    base = variations.signature(case.inputs)
    for variation in case.other_sizes:
        shapes = variations.signature(variation.inputs)
        assert shapes != base
        assert variation.inputs.keys() == case.inputs.keys()
        if variation.name.startswith("batch") and name != "qwen2_vl/Qwen2VLForConditionalGeneration":
            batch = int(variation.name.split()[1])
            first = next(iter(shapes.values()))
            assert first[0] == batch or name.startswith("timesfm") and len(shapes) >= batch
    [values] = case.same_sizes
    assert variations.signature(values.inputs) == base
    assert not compare.equal(compare.flatten(values.inputs), compare.flatten(case.inputs))
    # The zoo's constants are back: it builds what it built before.
    assert compare.equal(compare.flatten(cases.zoo().build(name)[1]), compare.flatten(inputs))


@needs_zoo
def test_default_sizes_rebuild_the_zoos_own_inputs():
    for name in ("llava/LlavaForConditionalGeneration", "mllama/MllamaModel", "gemma3n_audio/Gemma3nAudioEncoder"):
        model, inputs = cases.zoo().build(name)
        again = variations.rebuild(cases.zoo(), name, model, variations.Sizes())
        assert compare.equal(compare.flatten(inputs), compare.flatten(again)), name


@needs_zoo
def test_placeholders_follow_the_image_count():
    case = check.Case("llava/LlavaForConditionalGeneration")
    token = case.model.config.image_token_id
    for variation in [case.sample, *case.other_sizes]:
        per_image = int((variation.inputs["input_ids"] == token).sum()) / len(variation.inputs["pixel_values"])
        assert per_image == int(per_image) > 0


@pytest.mark.parametrize(
    "side, expected", [("left", [[0, 0, 1, 1], [1, 1, 1, 1]]), ("right", [[1, 1, 0, 0], [1, 1, 1, 0]]), ("none", [[1] * 4] * 2)]
)
def test_padding_masks(side, expected):
    assert variations.padding_mask(2, 4, 2, side).tolist() == expected


@needs_zoo
def test_families_are_told_by_modules():
    assert check.Case("mixtral/MixtralModel", dynamic=False).describe()["families"] == ["MoE"]
    assert check.Case("mamba/MambaModel", dynamic=False).describe()["families"] == ["SSM"]
    assert check.Case("t5/T5Model", dynamic=False).describe()["families"] == ["encoder-decoder"]
    assert check.Case("vit/ViTModel", dynamic=False).describe()["families"] == []


# ── one case ──


@pytest.fixture(scope="module")
def bert():
    return check.Case("bert/BertModel")


class Fake:
    """An exporter whose export calls `run(model, inputs)`."""

    def __init__(self, run):
        self.run = run

    def export(self, model, inputs, mode):
        return exporters.Exported(lambda inputs: self.run(model, inputs))


def checked(case, run, mode="dynamo-dynamic"):
    return check.check_mode(case, Fake(run), mode)


@needs_zoo
def test_eager_itself_passes(bert):
    record = checked(bert, lambda model, inputs: model(**inputs))
    assert record["status"] == "passed" and record["difference"] == 0
    assert record["verified"] == ["sample", "values", "batch 1", "batch 3"]
    assert checked(bert, lambda model, inputs: model(**inputs), "onnx-static")["verified"] == ["sample", "values"]


@needs_zoo
def test_a_wrong_value_fails_in_verify(bert):
    def run(model, inputs):
        output = model(**inputs)
        output.last_hidden_state[0, 0, 0] += 0.1
        return output

    record = checked(bert, run)
    assert (record["status"], record["stage"]) == ("failed", "verify")
    assert record["reason"].startswith("last_hidden_state: 1 of ")


@needs_zoo
def test_baked_in_sizes_are_found_at_other_sizes(bert):
    def run(model, inputs):
        inputs["attention_mask"] = inputs["attention_mask"][:2]
        return model(**inputs)

    assert checked(bert, run, "dynamo-static")["status"] == "passed"
    record = checked(bert, run)
    assert (record["stage"], record["verified"]) == ("run", ["sample", "values", "batch 1"])
    assert record["reason"].startswith("batch 3: ")


@needs_zoo
def test_baked_in_values_are_found(bert):
    constant = bert.sample.inputs["attention_mask"].clone()
    record = checked(bert, lambda model, inputs: model(**{**inputs, "attention_mask": constant}), "dynamo-static")
    assert (record["status"], record["stage"]) == ("failed", "verify")
    assert record["reason"].startswith("values: ")


@needs_zoo
def test_errors_name_the_models_line(bert):
    class Broken:
        def export(self, model, inputs, mode):
            model(input_ids=inputs["input_ids"].float())

    record = check.check_mode(bert, Broken(), "dynamo-static")
    assert (record["status"], record["stage"]) == ("failed", "export")
    assert record["where"].startswith("modeling_bert.py:")


@needs_zoo
def test_an_export_that_changes_the_model_fails(bert):
    case = copy.copy(bert)
    case.model = copy.deepcopy(bert.model)

    def run(model, inputs):
        output = model(**inputs)
        next(model.parameters()).data.add_(1)
        return output

    record = checked(case, run, "dynamo-static")
    assert (record["status"], record["stage"]) == ("failed", "state")
    assert record["model_changed"].endswith("is changed after the export")


@needs_zoo
def test_an_export_that_leaves_something_in_the_model_fails(bert):
    case = copy.copy(bert)
    case.model = copy.deepcopy(bert.model)

    def run(model, inputs):
        output = model(**inputs)
        model.forward = lambda **inputs: None
        return output

    record = checked(case, run, "dynamo-static")
    assert record["model_changed"].startswith("eager after the export: ")


@needs_zoo
def test_random_models_are_compared_by_size():
    case = check.Case("vilt/ViltModel", dynamic=False)
    assert case.level == compare.SIZES
    assert checked(case, lambda model, inputs: model(**inputs), "dynamo-static")["status"] == "passed"


@needs_zoo
def test_cases_that_eager_refuses_are_excluded():
    records = []
    check.run_case("xmod/XmodModel", MODES, exporters.Eager(), records.append)
    assert [r for r in records if "case" in r] == [records[-1]]
    assert (records[-1]["status"], records[-1]["stage"]) == ("excluded", "eager")


def test_onnx_inputs_are_found_by_dotted_names(tmp_path):
    from onnx import TensorProto, helper, save

    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("past.0", "input.x", "y")]
    graph = helper.make_graph([helper.make_node("Sub", ["past.0", "input.x"], ["y"])], "g", ports[:2], ports[2:])
    path = tmp_path / "model.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    session = runtime.open_onnx(path)
    got = runtime.run_onnx(session, {"x": torch.ones(2), "past": [torch.full((2,), 3.0)], "unused": torch.ones(1)})
    assert got["y"].tolist() == [2, 2]
    with pytest.raises(runtime.Misfit, match="'past.0'"):
        runtime.run_onnx(session, {"x": torch.ones(2)})


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
    assert not [mode for name, mode in found if name.endswith("-building") and mode != "eager"]
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
    assert "cases are missing, and the modes dynamo-dynamic, onnx-static, onnx-dynamic" in capsys.readouterr().err


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
