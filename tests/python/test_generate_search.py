"""`transporters generate` with beam search and with the logits processors of generation_config.json: the tokens of
transformers, from exports and from native models as they are."""

import json
import shutil

import pytest
import torch
import transformers

FORMATS = ["dynamo", "onnx", "eager"]
NEW = 12
PROMPTS = [[5, 9, 12], [8, 17, 3, 44, 6, 71, 28]]
EOS = [7, 23, 31]


def load(checkpoint):
    config = transformers.AutoConfig.from_pretrained(checkpoint)
    return getattr(transformers, config.architectures[0]).from_pretrained(checkpoint, dtype="float32").eval()


def expected(checkpoint, prompts, **settings):
    """New tokens of transformers' generate, up to the one that ends a row."""
    model = load(checkpoint)
    is_decoder = not model.config.is_encoder_decoder
    longest = max(map(len, prompts))
    pads = [[0] * (longest - len(prompt)) for prompt in prompts]
    ids = torch.tensor([pad + prompt if is_decoder else prompt + pad for pad, prompt in zip(pads, prompts)])
    ones = [[1] * len(prompt) for prompt in prompts]
    mask = torch.tensor([pad + one if is_decoder else one + pad for pad, one in zip(pads, ones)])
    config = transformers.GenerationConfig(
        **{"max_new_tokens": NEW, "do_sample": False, "pad_token_id": 0, "decoder_start_token_id": 0, **settings}
    )
    rows = model.generate(ids, attention_mask=mask, generation_config=config)[
        :, longest if is_decoder else 1 :
    ].tolist()
    ends = settings.get("eos_token_id") or []
    return [cut(row, ends) for row in rows]


def cut(row, ends):
    first = next((i for i, token in enumerate(row) if token in ends), len(row) - 1)
    return row[: first + 1]


def text(prompts):
    return ";".join(",".join(map(str, prompt)) for prompt in prompts)


@pytest.fixture(scope="module")
def folder(cli, tiny_checkpoint, tmp_path_factory):
    """folder("llama", "onnx", min_length=5): an export, or a checkpoint for "eager", with these generation settings."""
    made = {}

    def make(model_type, format, *options, **settings):
        key = repr((model_type, format, options, settings))
        if key in made:
            return made[key]
        checkpoint = tmp_path_factory.mktemp("checkpoint") / model_type
        shutil.copytree(tiny_checkpoint(model_type), checkpoint)
        if settings:
            (checkpoint / "generation_config.json").write_text(json.dumps(settings))
        made[key] = checkpoint
        if format != "eager":
            out = checkpoint.parent / format
            cli("export", checkpoint, "--to", format, "--generation", "--dynamic", "--out", out, *options)
            made[key] = out
        return made[key]

    return make


def generate(cli, folder, *options, prompts=PROMPTS):
    result = cli("generate", folder, "--ids", text(prompts), "--max-new-tokens", NEW, "--json", *options)
    return json.loads(result.stdout)


BEAMS = {
    "plain": (["--num-beams", 3], dict(num_beams=3)),
    "long": (["--num-beams", 4, "--length-penalty", 2.0], dict(num_beams=4, length_penalty=2.0)),
    "short": (
        ["--num-beams", 4, "--length-penalty", -1.0, "--early-stopping", "true"],
        dict(num_beams=4, length_penalty=-1.0, early_stopping=True),
    ),
    "never": (
        ["--num-beams", 2, "--early-stopping", "never", "--length-penalty", 0.5],
        dict(num_beams=2, early_stopping="never", length_penalty=0.5),
    ),
}


@pytest.mark.parametrize("beams", BEAMS)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("model_type", ["llama", "gemma3_text", "gpt2", "t5"])
def test_beam_search(cli, folder, tiny_checkpoint, model_type, format, beams):
    options, settings = BEAMS[beams]
    where = folder(model_type, format)
    for prompts in (PROMPTS, PROMPTS[1:]):
        result = generate(cli, where, "--eos", ",".join(map(str, EOS)), *options, prompts=prompts)
        wanted = expected(tiny_checkpoint(model_type), prompts, eos_token_id=EOS, **settings)
        assert result["tokens"] == wanted
        is_ended = all(row[-1] in EOS for row in wanted)
        assert result["stopped"] == ("eos" if is_ended else "max_new_tokens")


@pytest.mark.parametrize("format", FORMATS[:2])
def test_beams_reorder_a_cache_of_fixed_size(cli, folder, tiny_checkpoint, format):
    where = folder("llama", format, "--static-cache", 40, "--multi-token-decode")
    result = generate(cli, where, "--eos", "none", "--num-beams", 3)
    assert result["tokens"] == expected(tiny_checkpoint("llama"), PROMPTS, num_beams=3)


PROCESSORS = {
    "repetition": dict(repetition_penalty=1.5),
    "n-grams": dict(no_repeat_ngram_size=2),
    "shortest": dict(min_length=9, eos_token_id=EOS),
    "new": dict(min_new_tokens=6, eos_token_id=EOS),
    "last": dict(forced_eos_token_id=17),
    "suppressed": dict(suppress_tokens=list(range(40)), begin_suppress_tokens=list(range(40, 80))),
    "beams": dict(num_beams=3, repetition_penalty=1.3, no_repeat_ngram_size=3, eos_token_id=EOS, length_penalty=1.5),
}


@pytest.mark.parametrize("processor", PROCESSORS)
def test_generation_config_changes_the_choice(cli, folder, tiny_checkpoint, processor):
    settings = PROCESSORS[processor]
    result = generate(cli, folder("llama", "eager", **settings))
    assert result["tokens"] == expected(tiny_checkpoint("llama"), PROMPTS, **settings)


def test_a_decoder_begins_with_a_forced_token(cli, folder, tiny_checkpoint):
    settings = dict(forced_bos_token_id=42, forced_eos_token_id=1, eos_token_id=[1], num_beams=2)
    for format in FORMATS:
        result = generate(cli, folder("t5", format, decoder_start_token_id=0, **settings))
        assert result["tokens"] == expected(tiny_checkpoint("t5"), PROMPTS, **settings)
        assert all(row[0] == 42 for row in result["tokens"])


@pytest.mark.parametrize("place", FORMATS)
def test_a_model_stops_at_its_last_position(cli, folder, tiny_checkpoint, place):
    """The last token needs none."""
    for length, count in [(60, 5), (62, 3), (64, 1)]:  # gpt2 here has 64 positions
        prompts = [list(range(3, 3 + length))]
        result = generate(cli, folder("gpt2", place), "--eos", "none", prompts=prompts)
        assert result["stopped"] == "positions_full"
        assert result["tokens"] == expected(tiny_checkpoint("gpt2"), prompts, max_new_tokens=count, eos_token_id=[9999])
    long = ",".join(map(str, range(3, 68)))
    failed = cli("generate", folder("gpt2", place), "--ids", long, code=1).stderr
    assert "the prompt has 65 tokens, and there is room for 64; 'n_positions' of the model is 64" in failed


def test_what_is_not_known_is_refused(cli, folder):
    def message(**settings):
        return cli("generate", folder("llama", "eager", **settings), "--ids", "1,2", code=1).stderr

    assert "'bad_words_ids' is set, and generation here does not know it" in message(bad_words_ids=[[3]])
    assert "'num_beams': expected 1 to 1024, got 0" in message(num_beams=0)
    assert "'early_stopping' expected true, false" in message(early_stopping="sometimes")
    for ids in ("99", "5,1000"):
        failed = cli("generate", folder("llama", "eager"), "--ids", ids, code=1)
        assert "of the prompt: expected ids from 0 to 98" in failed.stderr
    assert "a prompt is missing" in cli("generate", folder("llama", "eager"), code=2).stderr
