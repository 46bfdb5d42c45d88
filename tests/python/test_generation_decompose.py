"""decompose_for_generation: the stages, what they are called with, and the model left as it was."""

import copy

import generation_models as models
import pytest
import torch
import transformers
from transformers import GenerationConfig
from transformers.exporters.utils import decompose_for_generation as reference
from transporters import ExportError, decompose_for_generation, masks
from transporters.generation import modalities

STAGES = {
    "llama": ["prefill", "decode"],
    "mamba": ["prefill", "decode"],
    "t5": ["encoder", "prefill", "decode"],
    "whisper": ["encoder", "prefill", "decode"],
    "qwen2_vl": ["image_encoder", "language_model", "lm_head", "decode"],
    "llava": ["image_encoder", "language_model", "multi_modal_projector", "lm_head", "decode"],
}


@pytest.mark.parametrize("name", STAGES)
def test_the_stages_run_as_they_are(name):
    model = models.build(name)
    stages = decompose_for_generation(model, models.inputs(name, 2, 7, 2))
    assert list(stages) == STAGES[name]
    for module, kwargs in stages.values():
        assert any(module is other for other in model.modules())
        with torch.no_grad():
            module(**copy.deepcopy(kwargs))


# Of encoder-decoders and of models that can't go on with several tokens, transformers' multi-token stage has one token.
CASES = [(name, False) for name in ("llama", "gpt2", "mamba", "t5", "bart", "qwen3_moe", "llava")]
CASES += [(name, True) for name in ("llama", "gpt2", "qwen3_moe", "llava")]


@pytest.mark.parametrize("name, multi_token", CASES)
def test_names_and_sizes_are_those_of_transformers(name, multi_token):
    """Besides "encoder" and what generate() computes before it calls the model."""
    model, inputs = models.build(name), models.inputs(name, 2, 7, 2)
    ours = decompose_for_generation(model, inputs, multi_token_decode=multi_token)
    theirs = reference(model, inputs, multi_token_decode=multi_token)
    assert set(theirs) <= set(ours)
    for stage, (_, expected) in theirs.items():
        actual = ours[stage][1]
        assert set(actual) == set(expected), stage
        for key, value in expected.items():
            if isinstance(value, torch.Tensor):
                assert (actual[key].shape, actual[key].dtype) == (value.shape, value.dtype), (stage, key)


def test_the_cache_of_a_stage_is_as_before_the_call():
    stages = decompose_for_generation(models.build("llama"), models.inputs("llama", 2, 7))
    assert stages["prefill"][1]["cache"].get_seq_length() == 0
    assert stages["decode"][1]["cache"].get_seq_length() == 7
    assert stages["decode"][1]["attention_mask"].shape == (2, 8)


def test_the_mask_stays_an_input_without_padding_in_the_sample():
    """generate() drops a mask of ones."""
    inputs = models.inputs("llama", 2, 7)
    assert inputs["attention_mask"].all()
    stages = decompose_for_generation(models.build("llama"), inputs)
    assert stages["prefill"][1]["attention_mask"].shape == (2, 7) and inputs["attention_mask"].all()
    del inputs["attention_mask"]
    assert "attention_mask" not in decompose_for_generation(models.build("llama"), inputs)["prefill"][1]


def test_a_static_cache_has_its_size():
    config = GenerationConfig(cache_implementation="static", max_cache_len=24)
    stages = decompose_for_generation(
        models.build("llama"), models.inputs("llama", 2, 7), config, multi_token_decode=True
    )
    _, decode = stages["decode"]
    assert decode["cache"].layers[0].keys.shape[2] == 24 and int(decode["cache"].layers[0].cumulative_length) == 7
    assert decode["input_ids"].shape == (2, 2) and decode["attention_mask"].shape == (2, 1, 2, 24)
    assert config.max_new_tokens is None and config.cache_implementation == "static"


def snapshot(model):
    attributes = {
        (name, key): (id(value), copy.copy(value) if isinstance(value, (dict, list)) else None)
        for name, module in model.named_modules()
        for key, value in vars(module).items()
    }
    return attributes, model.config.to_dict(), model.generation_config.to_dict(), torch.get_rng_state().tolist()


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2_vl", "t5"])
def test_the_model_is_as_before(name):
    model, inputs = models.build(name), models.inputs(name, 2, 7, 2)
    given = {key: (id(value), value.clone()) for key, value in inputs.items()}
    before = snapshot(model)
    decompose_for_generation(model, inputs)
    assert snapshot(model) == before
    with pytest.raises(ExportError):
        decompose_for_generation(model, {**inputs, "no_such_input": torch.ones(1)})
    assert snapshot(model) == before
    assert all(inputs[key] is not None and torch.equal(inputs[key], value) for key, (_, value) in given.items())
    assert transformers.cache_utils.StaticSlidingWindowLayer.update.__module__ == "transformers.cache_utils"


def test_sampling_makes_no_difference():
    model, inputs = models.build("llama"), models.inputs("llama", 2, 7)
    state = torch.get_rng_state()
    decompose_for_generation(model, inputs, GenerationConfig(do_sample=True, temperature=2.0))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", ["llama", "t5"])
def test_beams_make_no_difference(name):
    """Facebook's BART says num_beams=4 in its generation_config.json: stages have the caller's batch."""
    model, inputs = models.build(name), models.inputs(name, 2, 7)
    beams = decompose_for_generation(
        model, inputs, GenerationConfig(num_beams=4, num_return_sequences=2, bos_token_id=0)
    )
    for stage, (_, kwargs) in decompose_for_generation(model, inputs).items():
        for key, value in kwargs.items():
            if isinstance(value, torch.Tensor):
                assert torch.equal(beams[stage][1][key], value), (stage, key)


def test_errors_say_what_to_give():
    model = models.build("llama")
    with pytest.raises(ExportError, match=r"generate fails with input_ids, attention_mask, pixels: ValueError"):
        decompose_for_generation(model, {**models.inputs("llama", 2, 7), "pixels": torch.ones(1)})
    with pytest.raises(ExportError, match="a transformers model that generates is expected, not a Linear"):
        decompose_for_generation(torch.nn.Linear(2, 2), {})
    bert = transformers.BertModel(transformers.BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2))
    with pytest.raises(ExportError, match="expected, not a BertModel"):
        decompose_for_generation(bert, {})
    with pytest.raises(ExportError, match="generation_config is a transformers.GenerationConfig, not a dict"):
        decompose_for_generation(model, models.inputs("llama", 2, 7), {"max_cache_len": 8})
    with pytest.raises(ExportError, match="generate.. as a dict, not a list"):
        decompose_for_generation(model, [1])
    with pytest.raises(ExportError, match="'input_ids' is a ndarray"):
        decompose_for_generation(model, {"input_ids": torch.ones(2, 3, dtype=torch.int64).numpy()})


def test_a_stage_that_does_not_run_is_named(monkeypatch):
    model = models.build("llama")
    original, calls = model.forward, []

    def forward(*args, **kwargs):
        calls.append(kwargs)
        if len(calls) > 3:
            raise RuntimeError("no more")
        return original(*args, **kwargs)

    monkeypatch.setattr(model, "forward", forward)
    with pytest.raises(
        ExportError, match="stage 'decode' .LlamaForCausalLM. does not run with .*: RuntimeError: no more"
    ):
        decompose_for_generation(model, models.inputs("llama", 2, 7))


def test_a_model_that_forgets_its_state_has_no_multi_token_decode():
    """Mamba scans several tokens from an empty state, whatever its cache holds."""
    with pytest.raises(ExportError, match="several tokens.*without multi_token_decode"):
        decompose_for_generation(models.build("mamba"), models.inputs("mamba", 2, 7), multi_token_decode=True)


def test_a_part_that_answers_for_several_is_one():
    """SeamlessM4T and Idefics have no encoder of images of their own, and answer with their language model."""

    class Model(torch.nn.Module):
        def __init__(self, encoder):
            super().__init__()
            self.decoder, self.encoder = torch.nn.Linear(2, 2), encoder

        base_model = property(lambda self: self)

        def get_decoder(self):
            return self.decoder

        def get_encoder(self, modality=None):
            return self.encoder or self.decoder

    assert modalities.parts(Model(None)) == {}
    encoder = torch.nn.Linear(2, 2)
    model = Model(encoder)
    assert modalities.parts(model) == {"image_encoder": encoder, "language_model": model.decoder}


def test_masks_that_generate_leaves_out():
    ids, two = torch.ones(2, 3, dtype=torch.int64), {"rank": 2, "dtype": "int64"}
    assert masks.fill({"input_ids": ids}, two)["attention_mask"].tolist() == [[1, 1, 1]] * 2
    assert masks.fill({"pixel_values": ids}, two) == {} == masks.fill({"input_ids": ids}, None)
    mamba = transformers.MambaConfig(hidden_size=8, num_hidden_layers=1)
    given = {"input_ids": ids, "cache": transformers.DynamicCache(config=mamba)}
    assert masks.fill(given, two)["attention_mask"].shape == (2, 3)
    cache = transformers.DynamicCache()
    cache.update(torch.zeros(2, 1, 4, 8), torch.zeros(2, 1, 4, 8), 0)
    described = {"leaves": {"full_attention": {"rank": 4, "dtype": "bool"}}}
    call = {"inputs_embeds": torch.ones(2, 2, 8), "cache": cache}
    mask = masks.fill(call, described)["attention_mask"]["full_attention"]
    assert mask.shape == (2, 1, 2, 6) and mask[0, 0].int().tolist() == [[1, 1, 1, 1, 1, 0], [1] * 6]
    # A mask for all layers, as PaliGemma gives its language model; layers that slide would see less.
    one = {"rank": 4, "dtype": "bool"}
    assert torch.equal(masks.fill(call, one)["attention_mask"], mask)
    assert masks.fill({"inputs_embeds": call["inputs_embeds"]}, one) == {}
    sliding = transformers.MistralConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, sliding_window=4)
    assert masks.fill({**call, "cache": transformers.DynamicCache(config=sliding)}, one) == {}
