"""Native models of states (Mamba) and of images and text (CLIP's tower, LLaVA, Qwen2-VL): run eagerly, exported, and
generating, compared with transformers."""

import json

import generation_models as models
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from test_models import close
from transformers.exporters.base import ExportedModel

NAMES = ["mamba", "llava", "qwen2_vl"]
FORMATS = ["dynamo", "onnx"]
NEW = 20
DTYPES = ["float32", "float16", "bfloat16"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """checkpoint("mamba", dtype="bfloat16", conv_kernel=3): the folder of a tiny model."""
    made = {}

    def make(name, dtype="float32", **fields):
        key = (name, dtype, *sorted(fields.items()))
        if key not in made:
            made[key] = tmp_path_factory.mktemp(name)
            models.build(name, **fields).to(getattr(torch, dtype)).save_pretrained(made[key])
        return made[key]

    return make


def load(folder, dtype="float32", attention="sdpa"):
    config = transformers.AutoConfig.from_pretrained(folder)
    cls = getattr(transformers, config.architectures[0])
    options = {} if config.model_type == "mamba" else {"attn_implementation": attention}  # it has none
    return cls.from_pretrained(folder, dtype=getattr(torch, dtype), **options).eval()


def leaves(output):
    """The logits, and the cache by leaf path."""
    found = {name: value for name, value in output.items() if isinstance(value, torch.Tensor)}
    for i, layer in enumerate(output.cache.layers):
        if isinstance(layer, transformers.cache_utils.LinearAttentionLayer):
            found[f"cache.layers.{i}.conv_states.0"] = layer.conv_states[0]
            found[f"cache.layers.{i}.recurrent_states.0"] = layer.recurrent_states[0]
        else:
            found[f"cache.layers.{i}.keys"], found[f"cache.layers.{i}.values"] = layer.keys, layer.values
    return found


def compare(expected, found, dtype="float32"):
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name].shape == value.shape and found[name].dtype == value.dtype, name
        close(found[name], value, dtype, name)


def run_both(run, folder, calls, dtype="float32", attention="sdpa", **flags):
    model = load(folder, dtype, attention)
    results = run(folder, [(call, None) for call in calls], attention=attention, **flags)
    for call, (found, _) in zip(calls, results, strict=True):
        with torch.no_grad():
            expected = leaves(model(**call))
        if hasattr(getattr(model, "model", None), "rope_deltas"):
            model.model.rope_deltas = None  # it would place the next call's tokens
        compare(expected, found, dtype)
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    assert results[0][1]["parameters"].split() == names


SIZES = [(1, 7), (2, 9), (3, 12)]


def calls_of(name, dtype="float32"):
    calls = [models.inputs(name, batch, length, padding) for batch, length in SIZES for padding in (0, 2)]
    if name == "mamba":
        calls += [models.inputs(name, 2, length) for length in (1, 2)]  # shorter than the convolution
        calls.append({"input_ids": calls[0]["input_ids"]})
    for call in calls:
        for key, value in call.items():
            if value.is_floating_point():
                call[key] = value.to(getattr(torch, dtype))
    return calls


@pytest.mark.parametrize(
    "name,attention",
    [("mamba", "sdpa"), ("llava", "sdpa"), ("llava", "eager"), ("qwen2_vl", "sdpa"), ("qwen2_vl", "eager")],
)
def test_eager(checkpoint, eager_forward, name, attention):
    run_both(eager_forward, checkpoint(name), calls_of(name), attention=attention)


@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("name", NAMES)
def test_half_types(checkpoint, eager_forward, name, dtype):
    run_both(eager_forward, checkpoint(name, dtype), calls_of(name, dtype), dtype)


FIELDS = {
    "kernel": dict(conv_kernel=3, use_bias=True),
    "no-bias": dict(use_conv_bias=False, residual_in_fp32=False),
    "wide": dict(expand=3, state_size=5, time_step_rank=4, hidden_act="relu", tie_word_embeddings=True),
}


@pytest.mark.parametrize("fields", FIELDS.values(), ids=FIELDS)
def test_fields_of_mamba(checkpoint, eager_forward, fields):
    run_both(eager_forward, checkpoint("mamba", **fields), calls_of("mamba"))


@pytest.mark.parametrize("prompt", [5, 2, 1])
def test_steps_of_mamba(checkpoint, eager_forward, prompt):
    """huggingface/transformers#36403: also after prompts that are shorter than the convolution."""
    folder = checkpoint("mamba")
    model = load(folder)
    ids = models.inputs("mamba", 2, prompt + 5)["input_ids"]
    with torch.no_grad():
        output = model(input_ids=ids[:, :prompt])
    call, cache = {"input_ids": ids[:, :prompt]}, output.cache
    for i in range(6):
        found, _ = eager_forward(folder, [(call, None)])[0]
        compare(leaves(output), found)
        if i < 5:
            call = {name: value for name, value in found.items() if name.startswith("cache.")}
            call["input_ids"] = ids[:, prompt + i : prompt + i + 1]
            with torch.no_grad():
                output = model(input_ids=call["input_ids"], cache=cache)


def test_tokens_after_states_of_mamba(checkpoint, eager_forward):
    """Several tokens go on from a cache as they do one by one; transformers forgets the states then."""
    folder = checkpoint("mamba")
    ids = models.inputs("mamba", 2, 11)["input_ids"]
    whole, _ = eager_forward(folder, [({"input_ids": ids}, None)])[0]
    begun, _ = eager_forward(folder, [({"input_ids": ids[:, :4]}, None)])[0]
    rest = {name: value for name, value in begun.items() if name.startswith("cache.")} | {"input_ids": ids[:, 4:]}
    found, _ = eager_forward(folder, [(rest, None)])[0]
    compare(whole | {"logits": whole["logits"][:, 4:]}, found)


@pytest.mark.parametrize("layers", [-1, [-2], [0, 2]], ids=str)
@pytest.mark.parametrize("strategy", ["default", "full"])
def test_features_of_llava(tmp_path, eager_forward, layers, strategy):
    torch.manual_seed(0)
    config = models.build("llava").config
    config.vision_feature_layer, config.vision_feature_select_strategy = layers, strategy
    transformers.LlavaForConditionalGeneration(config).eval().save_pretrained(tmp_path)
    call = models.inputs("llava", 2, 9)
    if strategy == "full":
        call["input_ids"][:, 5] = models.IMAGE_TOKEN
    run_both(eager_forward, tmp_path, [call])


@pytest.mark.parametrize("text", ["mistral", "qwen2"])
def test_texts_of_llava(tmp_path, eager_forward, text):
    torch.manual_seed(0)
    config = models.build("llava").config.to_dict()
    config["text_config"] = {**models._language(text), "sliding_window": 4 if text == "mistral" else None}
    transformers.LlavaForConditionalGeneration(transformers.LlavaConfig(**config)).eval().save_pretrained(tmp_path)
    model, call = load(tmp_path), models.inputs("llava", 2, 9, 1)
    with torch.no_grad():
        expected = model(**call).logits
    found, _ = eager_forward(tmp_path, [(call, None)])[0]
    close(found["logits"], expected, "float32")


def grids(*rows):
    """For qwen2_vl: one image a row, each with its grid, as wide as it has to be with padding on the left."""
    generator = torch.Generator().manual_seed(3)
    length = 4 + max(h * w // 4 for _, h, w in rows)
    ids = torch.randint(5, 90, (len(rows), length), generator=generator)
    mask = torch.ones_like(ids)
    for row, (_, high, wide) in enumerate(rows):
        count = high * wide // 4
        start = length - 4 - count
        ids[row, :start], mask[row, :start] = 0, 0
        ids[row, start + 1 : start + 1 + count] = models.IMAGE_TOKEN
    patches = sum(t * h * w for t, h, w in rows)
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "pixel_values": torch.randn(patches, 96, generator=generator),
        "image_grid_thw": torch.tensor(rows),
        "mm_token_type_ids": (ids == models.IMAGE_TOKEN).long(),
    }


GRIDS = [[(1, 4, 4)], [(1, 4, 6), (1, 8, 4)], [(1, 2, 2), (1, 6, 4), (1, 4, 4)]]


def video():
    ids = torch.randint(5, 90, (1, 16), generator=torch.Generator().manual_seed(5))
    ids[0, 1:5], ids[0, 6:14] = models.IMAGE_TOKEN, 97
    generator = torch.Generator().manual_seed(6)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "pixel_values": torch.randn(16, 96, generator=generator),
        "image_grid_thw": torch.tensor([[1, 4, 4]]),
        "pixel_values_videos": torch.randn(32, 96, generator=generator),
        "video_grid_thw": torch.tensor([[2, 4, 4]]),
        "mm_token_type_ids": (ids == models.IMAGE_TOKEN).long() + 2 * (ids == 97).long(),
    }


def test_grids_of_qwen2_vl(checkpoint, eager_forward):
    calls = [grids(*rows) for rows in GRIDS] + [video()]
    run_both(eager_forward, checkpoint("qwen2_vl"), calls)


def test_configs_of_first_checkpoints_of_qwen2_vl(checkpoint, tmp_path, eager_forward):
    """The text's fields beside the others, with the rotation under its old name."""
    folder = checkpoint("qwen2_vl")

    def flatten(config):
        text = config.pop("text_config")
        rope = text.pop("rope_parameters")
        config |= text | {"model_type": "qwen2_vl", "rope_theta": rope["rope_theta"]}
        config["rope_scaling"] = {"type": "mrope", "mrope_section": rope["mrope_section"]}

    call = grids(*GRIDS[1])
    places = (folder, changed(folder, tmp_path, flatten))
    compare(*(eager_forward(place, [(call, None)])[0][0] for place in places))


def test_names_of_older_checkpoints_of_llava(checkpoint, tmp_path, eager_forward):
    folder = checkpoint("llava")
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    old = {name.replace("vision_tower.", "vision_tower.vision_model."): value for name, value in weights.items()}
    assert set(old) != set(weights)
    save_file(old, tmp_path / "model.safetensors", {"format": "pt"})
    call = models.inputs("llava", 1, 9)
    compare(*(eager_forward(place, [(call, None)])[0][0] for place in (folder, tmp_path)))


# ── Exports ──


@pytest.fixture(scope="module")
def exports(cli, checkpoint, tmp_path_factory):
    """exports("llava", "onnx", "--generation"): the folder of an export with dynamic sizes."""
    made = {}

    def make(name, format, *options):
        key = (name, format, *options)
        if key not in made:
            made[key] = tmp_path_factory.mktemp(f"{name}-{format}")
            cli("export", checkpoint(name), "--to", format, "--dynamic", "--out", made[key], *options)
        return made[key]

    return make


def export_calls(name):
    """At other sizes than the traced examples, which have two rows of five tokens."""
    calls = [models.inputs(name, batch, length, padding) for batch, length, padding in [(1, 7, 0), (3, 12, 2)]]
    if name == "mamba":
        calls += [models.inputs(name, 3, length) for length in (1, 2)]
    if name == "qwen2_vl":
        calls += [grids(*rows) for rows in GRIDS]
    return calls


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_dynamic_exports(cli, checkpoint, exports, tmp_path, name, format):
    folder = exports(name, format)
    for call in export_calls(name):
        model = load(checkpoint(name))
        with torch.no_grad():
            expected = leaves(model(**call))
        save_file(call, tmp_path / "in")
        cli("run", folder, "--input", tmp_path / "in", "--output", tmp_path / "out")
        compare(expected, load_file(tmp_path / "out"))


@pytest.mark.parametrize("format", FORMATS)
def test_image_tower_alone(cli, exports, tmp_path, eager_forward, format):
    torch.manual_seed(0)
    tower = transformers.CLIPVisionModel(models.build("llava").config.vision_config).eval()
    tower.save_pretrained(tmp_path / "tower")
    pixels = torch.randn(3, 3, 16, 16)
    with torch.no_grad():
        output = tower(pixels)
    expected = {name: output[name] for name in ("last_hidden_state", "pooler_output")}
    compare(expected, eager_forward(tmp_path / "tower", [({"pixel_values": pixels}, None)])[0][0])
    cli("export", tmp_path / "tower", "--to", format, "--dynamic", "--out", tmp_path / "out")
    save_file({"pixel_values": pixels}, tmp_path / "in")
    cli("run", tmp_path / "out", "--input", tmp_path / "in", "--output", tmp_path / "found")
    compare(expected, load_file(tmp_path / "found"))


@pytest.mark.parametrize("format", FORMATS)
def test_counts_are_asserted(cli, exports, tmp_path, format):
    call = models.inputs("llava", 2, 9)
    call["input_ids"][:, 5] = models.IMAGE_TOKEN
    save_file(call, tmp_path / "in")
    result = cli("run", exports("llava", format), "--input", tmp_path / "in", "--output", tmp_path / "out", code=1)
    # ONNX has no assert, but there is no feature for the last tokens.
    message = "expected a token 98 for each feature of the images" if format == "dynamo" else "indices element out of"
    assert message in result.stderr


@pytest.mark.parametrize("sample", [(2, 5), (1, 1)], ids=str)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_exports_in_transformers(cli, checkpoint, tmp_path, name, format, sample):
    """By the ExportedModel of transformers, in Python's torch and ONNX Runtime; traced at other sizes and at 1."""
    options = ["--dynamic", "--batch", sample[0], "--sequence", sample[1]]
    cli("export", checkpoint(name), "--to", format, "--out", tmp_path, *options)
    exported = ExportedModel.from_pretrained(tmp_path, trust_remote_code=True)
    for call in export_calls(name):
        with torch.no_grad():
            wanted, found = load(checkpoint(name))(**call).logits, exported(**call).logits
        assert found.shape == wanted.shape
        close(found, wanted, "float32")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_exports_in_half_types(cli, checkpoint, tmp_path, name, format):
    dtype = "bfloat16" if format == "dynamo" else "float16"
    folder = checkpoint(name, dtype)
    cli("export", folder, "--to", format, "--dynamic", "--out", tmp_path / "out")
    for call in calls_of(name, dtype)[2:4]:
        with torch.no_grad():
            expected = leaves(load(folder, dtype)(**call))
        save_file(call, tmp_path / "in")
        cli("run", tmp_path / "out", "--input", tmp_path / "in", "--output", tmp_path / "found")
        compare(expected, load_file(tmp_path / "found"), dtype)


@pytest.mark.parametrize("format", FORMATS)
def test_long_prompts_of_mamba(cli, checkpoint, exports, tmp_path, format):
    """The length is symbolic: one graph for what is far from the traced five tokens."""
    call = models.inputs("mamba", 2, 700, 40)
    with torch.no_grad():
        expected = leaves(load(checkpoint("mamba"))(**call))
    save_file(call, tmp_path / "in")
    cli("run", exports("mamba", format), "--input", tmp_path / "in", "--output", tmp_path / "out")
    compare(expected, load_file(tmp_path / "out"))


# ── Generation ──


def expected_tokens(folder, call):
    model = load(folder)
    config = transformers.GenerationConfig(max_new_tokens=NEW, do_sample=False, pad_token_id=0, eos_token_id=1000)
    return model.generate(**call, generation_config=config)[:, call["input_ids"].shape[1] :].tolist()


def generated(cli, folder, call, tmp_path, *more):
    rows = [ids[mask.bool()].tolist() for ids, mask in zip(call["input_ids"], call["attention_mask"])]
    ids = ";".join(",".join(map(str, row)) for row in rows)
    options = [*more, "--ids", ids, "--max-new-tokens", NEW, "--eos", "none"]
    rest = {name: value for name, value in call.items() if name not in ("input_ids", "attention_mask")}
    rest.pop("mm_token_type_ids", None)  # follow from the ids
    if rest:
        save_file(rest, tmp_path / "inputs.safetensors")
        options += ["--inputs", tmp_path / "inputs.safetensors"]
    return json.loads(cli("generate", folder, *options, "--json").stdout)["tokens"]


def prompts_of(name):
    calls = [models.inputs(name, *sizes) for sizes in [(1, 7, 0), (2, 9, 2), (3, 11, 1)]]
    if name == "mamba":
        calls.append(models.inputs(name, 2, 2))
    if name == "qwen2_vl":
        calls += [grids(*GRIDS[2]), video()]
    return calls


@pytest.mark.parametrize("name", NAMES)
def test_tokens_of_the_models_themselves(cli, checkpoint, tmp_path, name):
    for call in prompts_of(name):
        assert generated(cli, checkpoint(name), call, tmp_path) == expected_tokens(checkpoint(name), call)


KINDS = {
    "one-token": (),
    "multi-token": ("--multi-token-decode",),
    "static": ("--static-cache", 64),
    "static-multi-token": ("--static-cache", 64, "--multi-token-decode"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_tokens_of_exports(cli, checkpoint, exports, tmp_path, name, format, kind):
    if name == "mamba" and "static" in kind:
        arguments = ["export", checkpoint(name), "--to", format, "--generation", "--out", tmp_path, *KINDS[kind]]
        assert "MambaForCausalLM has no cache of fixed size" in cli(*arguments, code=1).stderr
        return
    folder = exports(name, format, "--generation", *KINDS[kind])
    for call in prompts_of(name):
        if "pixel_values_videos" not in call:  # which the traced example has not
            assert generated(cli, folder, call, tmp_path) == expected_tokens(checkpoint(name), call)


def test_images_that_the_prompt_has_no_place_for(cli, checkpoint, exports, tmp_path):
    def messages(name, ids, **tensors):
        save_file(tensors, tmp_path / "in")
        places = [checkpoint(name), *(exports(name, format, "--generation") for format in FORMATS)]
        arguments = ["--ids", ",".join(map(str, ids)), "--inputs", tmp_path / "in"]
        return [cli("generate", place, *arguments, code=1).stderr for place in places]

    call = models.inputs("llava", 1, 7)
    row, pixels = call["input_ids"][0].tolist(), call["pixel_values"]
    token = load(checkpoint("llava")).config.image_token_id
    text = [id for id in row if id != token]
    for ids in (text, [*text, token]):
        for message in messages("llava", ids, pixel_values=pixels):
            assert f"'input_ids': expected {row.count(token)} of the token {token} for the images" in message or (
                f"expected a token {token} for each feature of the images" in message
            )

    call = models.inputs("qwen2_vl", 1, 7)
    row, pixels, grid = call["input_ids"][0].tolist(), call["pixel_values"], call["image_grid_thw"]
    for wrong, what in [
        (torch.tensor([[1, 4, 8]]), "expected grids of"),
        (-grid, "expected a time above 0"),
        (torch.tensor([[1, 3, 3]]), "a height and width that 2 divides, got 1, 3, 3"),
        (grid[0], "expected integers [images, 3]"),
        (grid[:0], "without elements"),
    ]:
        for message in messages("qwen2_vl", row, pixel_values=pixels, image_grid_thw=wrong):
            assert what in message
    for message in messages("qwen2_vl", row[:1], pixel_values=pixels, image_grid_thw=grid):
        assert "tokens" in message and "in the prompt, got 0" in message
    for message in messages("qwen2_vl", row, pixel_values=pixels):
        assert "'image_grid_thw'" in message


@pytest.mark.parametrize("name", NAMES)
def test_beams(cli, checkpoint, exports, tmp_path, name):
    folder, call = checkpoint(name), models.inputs(name, 2, 9, 2)
    if name == "qwen2_vl":
        call = grids((1, 6, 4), (1, 4, 4))  # rows whose positions go on from other places
    config = transformers.GenerationConfig(
        max_new_tokens=NEW, do_sample=False, num_beams=3, pad_token_id=0, eos_token_id=1000
    )
    wanted = load(folder).generate(**call, generation_config=config)[:, call["input_ids"].shape[1] :].tolist()
    places = [folder, *(exports(name, format, "--generation") for format in FORMATS)]
    assert [generated(cli, place, call, tmp_path, "--num-beams", 3) for place in places] == [wanted] * 3


PARTS = {
    "mamba": ["prefill", "decode"],
    "llava": ["image_encoder", "multi_modal_projector", "language_model", "lm_head", "prefill", "decode"],
    "qwen2_vl": ["image_encoder", "language_model", "lm_head", "prefill", "decode"],
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_components_are_those_of_the_package(exports, name, format):
    """Names, classes, inputs and outputs, which transformers' ExportedModel goes by; "prefill" is besides."""
    from transporters import DynamoExporter

    components = json.loads((exports(name, format, "--generation") / "export.json").read_text())["components"]
    assert list(components) == PARTS[name]
    ours = DynamoExporter().export_for_generation(models.build(name), models.inputs(name, 2, 9, 1), {"dynamic": True})
    for part, program in ours.items():
        found, wanted = components[part]["metadata"], program.metadata
        assert found["architecture"] == wanted["architecture"]
        fixed = json.loads(wanted["in_constants"])
        names = [name for name in json.loads(wanted["kwargs"]) if name not in (*fixed, "mm_token_type_ids")]
        assert sorted(found["kwargs"]) == sorted(names), part
        spec = json.loads(wanted["out_spec"])
        if part != "prefill":
            assert json.loads(found["out_spec"]) == spec, part


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["llava", "qwen2_vl"])
def test_parts_give_what_the_model_gives(cli, checkpoint, exports, tmp_path, name, format):
    folder, model = exports(name, format, "--generation"), load(checkpoint(name))
    call = models.inputs(name, 3, 11, 1)

    def run(part, **inputs):
        save_file({key: value.contiguous() for key, value in inputs.items()}, tmp_path / "in")
        cli("run", folder, "--component", part, "--input", tmp_path / "in", "--output", tmp_path / "out")
        return load_file(tmp_path / "out")

    if name == "llava":
        states = run("image_encoder", pixel_values=call["pixel_values"])["hidden_states.1"]
        features = run("multi_modal_projector", image_features=states[:, 1:])["output"].flatten(0, 1)
        positions = {}
    else:
        patches = dict(hidden_states=call["pixel_values"], grid_thw=call["image_grid_thw"])
        features = run("image_encoder", **patches)["pooler_output"]
        rope = {key: value for key, value in call.items() if key != "pixel_values"}
        places = model.model.get_rope_index(**rope)[0]
        positions = {"position_ids": torch.cat([(call["attention_mask"].cumsum(-1) - 1).clamp(min=0)[None], places])}
        model.model.rope_deltas = None
    with torch.no_grad():
        embeds = model.get_input_embeddings()(call["input_ids"])
        embeds[call["input_ids"] == models.IMAGE_TOKEN] = features
        expected = model(**call).logits
    if not positions:
        positions = {"position_ids": (call["attention_mask"].cumsum(-1) - 1).clamp(min=0)}
    hidden = run("language_model", attention_mask=call["attention_mask"], inputs_embeds=embeds, **positions)
    close(run("lm_head", input=hidden["last_hidden_state"])["output"], expected, "float32")


# ── Errors ──


def test_images_without_their_tokens(checkpoint, eager_forward):
    call = models.inputs("llava", 2, 9)
    call["input_ids"][0, 2] = 7
    text = eager_forward(checkpoint("llava"), [(call, None)], error=True)
    assert "expected a token 98 for each feature of the images, of which there are 8, got 7" in text
    call = models.inputs("qwen2_vl", 2, 9)
    call["image_grid_thw"][0, 1] = 8
    text = eager_forward(checkpoint("qwen2_vl"), [(call, None)], error=True)
    assert "'image_grid_thw': expected grids of 32 patches, as 'pixel_values' has, got 48" in text
    del call["image_grid_thw"]
    assert "image_grid_thw" in eager_forward(checkpoint("qwen2_vl"), [(call, None)], error=True)


def changed(folder, out, change):
    config = json.loads((folder / "config.json").read_text())
    change(config)
    out.mkdir(exist_ok=True)
    (out / "config.json").write_text(json.dumps(config))
    (out / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    return out


CHANGES = {
    "vision_feature_layer": lambda config: config.update(vision_feature_layer=7),
    "vision_feature_select_strategy": lambda config: config.update(vision_feature_select_strategy="most"),
    "model_type": lambda config: config["vision_config"].update(model_type="vit"),
    "num_hidden_layers": lambda config: config["text_config"].update(num_hidden_layers=10**6),
}


@pytest.mark.parametrize("key", CHANGES)
def test_configs_that_make_no_sense(checkpoint, tmp_path, eager_forward, key):
    folder = changed(checkpoint("llava"), tmp_path, CHANGES[key])
    text = eager_forward(folder, [(models.inputs("llava", 1, 9), None)], error=True)
    assert key in text and "config.json" in text
