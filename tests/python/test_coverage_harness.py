"""The coverage run's cases: inputs of other sizes, and what is recorded of exports that go wrong."""

import copy

import pytest
import torch
from coverage_setup import needs_zoo
from harness import cases, check, compare, exporters, runtime, variations

MODES = list(exporters.FORWARD_MODES)


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
    "qwen2_vl/Qwen2VLForConditionalGeneration": ["grids"],
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
    "side, expected",
    [("left", [[0, 0, 1, 1], [1, 1, 1, 1]]), ("right", [[1, 1, 0, 0], [1, 1, 1, 0]]), ("none", [[1] * 4] * 2)],
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
def test_inputs_that_an_exporter_adds_are_made_for_other_inputs_too():
    from transformers.exporters.utils import prepare_for_export

    case = check.Case("glm4v_vision/Glm4vVisionModel")
    seen = []

    class Adding:
        def export(self, model, inputs, mode):
            given = dict(inputs)
            prepare_for_export(model, inputs)
            assert inputs.keys() > given.keys()

            def call(inputs):
                seen.append(inputs)
                return model(**inputs)

            return exporters.Exported(call, prepare=exporters.prepared_like(model, inputs, given))

    assert check.check_mode(case, Adding(), "dynamo-dynamic")["status"] == "passed"
    assert len({tuple(inputs) for inputs in seen}) == 1
    assert len({inputs["position_ids"].shape for inputs in seen}) == 4
    assert exporters.prepared_like(case.model, {"a": 1}, {"a": 2})({"a": 3}) == {"a": 3}


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
