"""`transporters export --generation` and `transporters generate` of native encoder-decoders: the tokens of
transformers, and graphs of a step that leave the encoder alone."""

import json

import pytest
import torch
import transformers
from safetensors.torch import save_file
from test_cli_generate import CACHE, FORMATS, NEW, NO_TOKEN, prompts_text, random_prompts

MODELS = ["t5", "bart", "nllb-moe", "whisper"]
KINDS = {
    "dynamic": (),
    "multi-token": ("--multi-token-decode",),
    "static": ("--static-cache", CACHE),
    "static-multi-token": ("--static-cache", CACHE, "--multi-token-decode"),
}
# Parts of the names of what makes an encoder's keys and values.
OF_ENCODER = {
    "t5": ("EncDecAttention.k", "EncDecAttention.v"),
    "bart": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "whisper": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "nllb-moe": ("cross_attention.k_proj", "cross_attention.v_proj"),
}


@pytest.fixture(scope="module")
def checkpoints(tiny_checkpoint):
    """checkpoints("bart"): a folder with weights that make various tokens."""
    various = dict(tie_word_embeddings=False, init_std=0.6)

    def make(model_type, **fields):
        return tiny_checkpoint(model_type, **({} if model_type == "t5" else various), **fields)

    return make


@pytest.fixture(scope="module")
def exports(cli, checkpoints, tmp_path_factory):
    """exports("bart", "onnx", "--static-cache", 40): the folder of an export for generation with dynamic sizes."""
    made = {}

    def make(model_type, format, *options):
        key = (model_type, format, *options)
        if key not in made:
            out = tmp_path_factory.mktemp(f"{model_type}-{format}")
            cli("export", checkpoints(model_type), "--to", format, "--generation", "--dynamic", "--out", out, *options)
            made[key] = out
        return made[key]

    return make


def load(checkpoint):
    name = transformers.AutoConfig.from_pretrained(checkpoint).architectures[0]
    return getattr(transformers, name).from_pretrained(checkpoint, dtype="float32").eval()


def prompts_of(model_type, lengths, path):
    """What the command line gets, and what transformers' generate gets; prompts are padded on the right."""
    if model_type == "whisper":
        features = torch.randn(len(lengths), 8, 40, generator=torch.Generator().manual_seed(len(lengths)))
        save_file({"input_features": features}, path)
        return ["--inputs", path], {"input_features": features}
    prompts, longest = random_prompts(*lengths), max(lengths)
    rest = [longest - len(prompt) for prompt in prompts]
    ids = torch.tensor([prompt + [0] * count for prompt, count in zip(prompts, rest)])
    mask = torch.tensor([[1] * len(prompt) + [0] * count for prompt, count in zip(prompts, rest)])
    return ["--ids", prompts_text(prompts)], {"input_ids": ids, "attention_mask": mask}


def generate(cli, folder, prompts, *options, count=NEW):
    arguments = [*prompts, "--max-new-tokens", count, "--eos", "none", "--json", *options]
    return json.loads(cli("generate", folder, *arguments).stdout)


def expected(checkpoint, given, count=NEW, **options):
    tokens = load(checkpoint).generate(
        **given, max_new_tokens=count, do_sample=False, eos_token_id=NO_TOKEN, pad_token_id=0, **options
    )
    return tokens[:, -count:].tolist()


CASES = [(m, kind) for m in MODELS for kind in KINDS if m != "nllb-moe" or "static" not in kind]


@pytest.mark.parametrize("model_type,kind", CASES)
@pytest.mark.parametrize("format", FORMATS)
def test_tokens_are_those_of_transformers(cli, exports, checkpoints, tmp_path, model_type, format, kind):
    """kcosta42/Marian-ONNX-Converter#2"""
    folder = exports(model_type, format, *KINDS[kind])
    manifest = json.loads((folder / "export.json").read_text())
    assert list(manifest["components"]) == ["encoder", "prefill", "decode"]
    for lengths in [(9,), (3, 7), (6, 1, 4)]:  # the sample has two prompts of five
        prompts, given = prompts_of(model_type, lengths, tmp_path / "prompt.safetensors")
        wanted = expected(checkpoints(model_type), given)
        result = generate(cli, folder, prompts)
        assert result["tokens"] == wanted
        assert result["stopped"] == "max_new_tokens" and result["steps"] == NEW - 1
    assert model_type == "t5" or len({token for row in wanted for token in row}) > 2  # tokens that tell something


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_goes_on_from_several_tokens(cli, exports, checkpoints, tmp_path, format, kind):
    """As Whisper's prompts of language and task are."""
    prompts, given = prompts_of("whisper", (9, 9), tmp_path / "prompt.safetensors")
    ids = random_prompts(4, 4)
    wanted = expected(checkpoints("whisper"), {**given, "decoder_input_ids": torch.tensor(ids)})
    for place in (checkpoints("whisper"), exports("whisper", format, *KINDS[kind])):
        assert generate(cli, place, [*prompts, "--ids", prompts_text(ids)])["tokens"] == wanted


def test_what_a_prompt_of_speech_can_not_be(cli, exports, checkpoints, tmp_path):
    def message(*options, **tensors):
        save_file(tensors, tmp_path / "in")
        return [cli("generate", place, "--inputs", tmp_path / "in", *options, code=1).stderr for place in places]

    places = [checkpoints("whisper"), *(exports("whisper", format) for format in FORMATS)]
    features = torch.randn(2, 8, 40)
    for text in message(input_features=torch.randn(0, 8, 40)):
        assert "'input_features': expected values, got a tensor without elements" in text
    for text in message(input_features=features.long()):
        assert "'input_features': " in text and "float32" in text and "got int64" in text
    for text in message(input_features=features, foo=features.clone()):
        assert "'foo' is no input of the model; besides ids it takes input_features" in text
    for text in message(input_features=features, decoder_input_ids=torch.ones(2, 1, dtype=torch.int64)):
        assert "'decoder_input_ids': tokens of the prompt are given as ids (--ids)" in text
    for text in message("--ids", "1,2;3", input_features=features):
        assert "the decoder's prompts have several lengths; give prompts of one length" in text
    for text in message("--ids", "1,2", input_features=features):
        assert "expected ids of 2 rows, as" in text
    for text in message(input_features=torch.full_like(features, torch.nan)):
        assert "are NaN" in text


def test_features_of_another_type(cli, exports, checkpoints, tmp_path):
    prompts, given = prompts_of("whisper", (1, 1), tmp_path / "prompt.safetensors")
    wanted = expected(checkpoints("whisper"), given)
    save_file({"input_features": given["input_features"].double()}, tmp_path / "prompt.safetensors")
    for place in (checkpoints("whisper"), *(exports("whisper", format) for format in FORMATS)):
        assert generate(cli, place, prompts)["tokens"] == wanted


@pytest.mark.parametrize("model_type", MODELS)
def test_a_native_model_as_it_is(cli, checkpoints, tmp_path, model_type):
    folder = checkpoints(model_type)
    prompts, given = prompts_of(model_type, (3, 7), tmp_path / "prompt.safetensors")
    assert generate(cli, folder, prompts)["tokens"] == expected(folder, given)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("model_type", ["bart", "nllb-moe"])
def test_beams_are_those_of_transformers(cli, exports, checkpoints, tmp_path, model_type, format):
    prompts, given = prompts_of(model_type, (3, 7), tmp_path / "prompt.safetensors")
    wanted = expected(checkpoints(model_type), given, count=8, num_beams=3)
    result = generate(cli, exports(model_type, format), prompts, "--num-beams", 3, count=8)
    assert result["tokens"] == wanted


@pytest.mark.parametrize("model_type,kind", [case for case in CASES if "multi" not in case[1]])
def test_a_step_reads_the_encoders_keys_and_leaves_them_alone(exports, model_type, kind):
    """huggingface/optimum-executorch#187, huggingface/optimum#869, #872, microsoft/onnxruntime#23549"""
    import onnx

    decode = onnx.load(exports(model_type, "onnx", *KINDS[kind]) / "decode.onnx", load_external_data=False)
    weights = {tensor.name for tensor in decode.graph.initializer}
    assert not any(name.startswith("encoder.") or part in name for name in weights for part in OF_ENCODER[model_type])
    cross = [value.name for value in decode.graph.input if "cross_attention_cache" in value.name]
    assert len([name for name in cross if name.endswith(("keys", "values"))]) == 4
    given_back = [value.name for value in decode.graph.output if "cross_attention_cache" in value.name]
    assert not any(name.endswith(("keys", "values")) for name in given_back)
    if kind == "dynamic":
        assert not given_back


@pytest.mark.parametrize("place", ["eager", *FORMATS])
@pytest.mark.parametrize("model_type", ["bart", "whisper"])
def test_positions_end(cli, checkpoints, tmp_path, model_type, place):
    """Models stop at their last position: the last token needs none."""
    field = "max_target_positions" if model_type == "whisper" else "max_position_embeddings"
    folder = checkpoints(model_type, **{field: 12})
    prompts, given = prompts_of(model_type, (5,), tmp_path / "prompt.safetensors")
    if place != "eager":
        out = tmp_path / "out"
        cli("export", folder, "--to", place, "--generation", "--dynamic", "--out", out)
    result = generate(cli, folder if place == "eager" else out, prompts)
    assert result["stopped"] == "positions_full" and len(result["tokens"][0]) == 12
    # The last of transformers' is the end that BART forces.
    assert result["tokens"][0][:10] == expected(folder, given, count=11)[0][:10]


def test_a_full_cache_stops_clearly(cli, exports, checkpoints, tmp_path):
    """huggingface/transformers#32503; the encoder's states may be more than the cache holds."""
    prompts, given = prompts_of("bart", (13,), tmp_path / "prompt.safetensors")
    for format in FORMATS:
        result = generate(cli, exports("bart", format, "--static-cache", 8), prompts)
        assert result["stopped"] == "cache_full"
        assert result["tokens"][0][:6] == expected(checkpoints("bart"), given)[0][:6]
        assert len(result["tokens"][0]) == 7


def test_a_model_whose_cache_grows_only(cli, checkpoints, tmp_path):
    """With one, transformers generates other tokens than without: places that are not filled yet count as padding."""
    folder = checkpoints("nllb-moe")
    arguments = ["--to", "onnx", "--generation", "--dynamic", "--static-cache", 8, "--out", tmp_path / "out"]
    assert (
        "NllbMoeForConditionalGeneration has no cache of fixed size" in cli("export", folder, *arguments, code=1).stderr
    )


@pytest.mark.parametrize("model_type", ["t5", "bart", "whisper"])
def test_static_caches_are_written_as_transformers_writes_them(exports, checkpoints, model_type):
    """The structure that the manifest tells of, with what is empty before the first call."""
    from transformers.exporters.exporter_dynamo import _pytree_flatten

    manifest = json.loads((exports(model_type, "dynamo", "--static-cache", CACHE) / "export.json").read_text())
    model = load(checkpoints(model_type))
    heads, size = 4, 8
    cache = transformers.EncoderDecoderCache(
        *(
            transformers.StaticCache(config=model.config.get_text_config(decoder=True), max_cache_len=n)
            for n in (CACHE, 0)
        )
    )
    for stage in ("prefill", "decode"):
        kwargs = json.loads(manifest["components"][stage]["metadata"]["in_spec"])[1]["children_spec"][1]
        place = json.loads(kwargs["context"]).index("cache")
        found = json.loads(kwargs["children_spec"][place]["context"])["s"]
        if stage == "decode":
            for part in (cache.self_attention_cache, cache.cross_attention_cache):
                part.early_initialization(2, heads, size, torch.float32, "cpu")
            cache.is_updated = dict.fromkeys(cache.is_updated, True)
            for layer in found["cross_attention_cache"]["s"]["layers"]:
                assert layer["s"].pop("max_cache_len") > 0
        else:
            cache.self_attention_cache.early_initialization(2, heads, size, torch.float32, "cpu")
        wanted = json.loads(json.dumps(_pytree_flatten(cache)[1]))["s"]
        if stage == "decode":
            for layer in wanted["cross_attention_cache"]["s"]["layers"]:
                del layer["s"]["max_cache_len"]
        assert found == wanted
