"""Patches of model code: exports are right for layouts of the data other than the sample's."""

import copy
import importlib
import random
import sys
import types

import pytest
import torch
import transformers
from transformers import vision_utils


@pytest.fixture(scope="module")
def transporters(build_dir):
    sys.path.insert(0, str(build_dir / "python"))
    yield importlib.import_module("transporters")
    sys.path.remove(str(build_dir / "python"))


def tensors(value):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def check(exported, model, inputs):
    """The program gives what eager gives."""
    with torch.no_grad():
        expected = tensors(model(**copy.deepcopy(inputs)))
    actual = tensors(exported(**copy.deepcopy(inputs)))
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected):
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4 * max(1.0, theirs.abs().max().item()))


@pytest.fixture(params=["dynamo", "onnx"])
def export(request, transporters):
    """export(model, inputs): with all sizes dynamic."""
    exporter, config = {
        "dynamo": (transporters.DynamoExporter, transporters.DynamoConfig),
        "onnx": (transporters.OnnxExporter, transporters.OnnxConfig),
    }[request.param]
    return lambda model, inputs: exporter().export(model, copy.deepcopy(inputs), config=config(dynamic=True))


# ── Images of different grids in one sequence ──

VISION = dict(
    depth=2, hidden_size=32, embed_dim=32, num_heads=4, patch_size=4, spatial_merge_size=2, temporal_patch_size=2
)  # fmt: skip
TEXT = dict(
    vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=128,
    rope_parameters={"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]},
)  # fmt: skip
PIXELS = 3 * 2 * 4 * 4


def packed(*grids):
    grid = torch.tensor(grids)
    return torch.randn(int(grid.prod(1).sum()), PIXELS), grid


def qwen2_vl():
    config = transformers.Qwen2VLConfig(
        text_config=TEXT, vision_config=VISION, image_token_id=5, video_token_id=6, vision_start_token_id=7
    )
    torch.manual_seed(0)
    return transformers.Qwen2VLForConditionalGeneration(config).eval()


def chat(*grids, before=2, after=3, padding=0):
    """One row of text around images."""
    pixels, grid = packed(*grids)
    row = [torch.full((padding,), 1)]
    for count in (grid.prod(1) // 4).tolist():
        row += [torch.randint(10, 99, (before,)), torch.full((count,), 5)]
    ids = torch.cat([*row, torch.randint(10, 99, (after,))])[None]
    mask = torch.ones_like(ids)
    mask[:, :padding] = 0
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "pixel_values": pixels,
        "image_grid_thw": grid,
        "mm_token_type_ids": (ids == 5).long(),
    }


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_a_vision_tower_takes_other_numbers_of_images_and_grids(export, implementation):
    tower = qwen2_vl().model.visual
    tower.config._attn_implementation = implementation
    pixels, grid = packed((1, 4, 4))
    exported = export(tower, {"hidden_states": pixels, "grid_thw": grid})
    for grids in ([(1, 4, 6), (1, 8, 4)], [(2, 4, 4), (1, 2, 2), (3, 6, 2)]):
        pixels, grid = packed(*grids)
        check(exported, tower, {"hidden_states": pixels, "grid_thw": grid})


def test_a_chat_with_an_image_takes_other_grids_and_places_of_the_image(export):
    """ailia-models#1566, executorch#17572, optimum-onnx#122: one grid is baked in."""
    model = qwen2_vl()
    exported = export(model, chat((1, 4, 4)))
    for other in (chat((1, 4, 6)), chat((1, 8, 4), before=1, after=6), chat((1, 8, 8), padding=3)):
        check(exported, model, other)


def grids_of(count, merge):
    sides = torch.randint(1, 6, (count, 2)) * merge
    return torch.cat([torch.randint(1, 4, (count, 1)), sides], dim=1)


@pytest.mark.parametrize("seed", range(40))
def test_places_in_grids(transporters, seed):
    from transporters.patches import vision_grids

    torch.manual_seed(seed)
    merge = 1 + seed % 2
    grid = grids_of(1 + seed % 4, merge)
    positions = vision_grids._position_ids(None)
    for merges in (merge, torch.full(grid.shape[:1], merge)):
        for temporal in (False, True):
            expected = vision_utils.get_vision_position_ids(grid, merges, temporal)
            assert torch.equal(positions(grid, merges, temporal), expected)
    for window in (2, 3, 4):
        actual = vision_grids._window_index(None)(grid, merge, window * merge * 4, 4)
        expected = vision_utils.get_vision_window_index(grid, merge, window * merge * 4, 4)
        for ours, theirs in zip(actual, expected):
            assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)
    sizes = grid[:, 1:]
    nearest = vision_grids._nearest_position_ids(None)(sizes, 7)
    assert torch.equal(nearest, vision_utils.get_vision_nearest_position_ids(sizes, 7))


# ── Positions of text, images and videos ──

SINGLE_FRAMES, CLIPS, MERGED = "frames apart", "clips", "clips merged in time"
ROPE = {
    "qwen3_vl.modeling_qwen3_vl.Qwen3VLModel": SINGLE_FRAMES,
    "glm4v.modeling_glm4v.Glm4vModel": SINGLE_FRAMES,
    "qwen2_vl.modeling_qwen2_vl.Qwen2VLModel": CLIPS,
    "qwen2_5_vl.modeling_qwen2_5_vl.Qwen2_5_VLModel": CLIPS,
    "ernie4_5_vl_moe.modeling_ernie4_5_vl_moe.Ernie4_5_VLMoeModel": MERGED,
}


def layout(chooser, kind):
    """Token types of one row, and the grids (merged by 2) of its images and videos."""
    row, images, videos = [], [], []
    for _ in range(chooser.randint(1, 4)):
        row += [0] * chooser.randint(1, 4)
        time, height, width = (chooser.randint(1, 3) for _ in range(3))
        what = chooser.choice(["text", "image", "video"])
        if what == "image":
            images.append([1, 2 * height, 2 * width])
            row += [1] * (height * width)
        elif what == "video" and kind == SINGLE_FRAMES:
            videos.append([time, 2 * height, 2 * width])
            row += ([2] * (height * width) + [0]) * time
        elif what == "video":
            videos.append([time * (2 if kind == MERGED else 1), 2 * height, 2 * width])
            row += [2] * (time * height * width)
    return row, images, videos


@pytest.mark.parametrize("path", ROPE)
@pytest.mark.parametrize("seed", range(20))
def test_multimodal_positions(transporters, path, seed):
    from transporters.patches import multimodal_rope

    chooser = random.Random(seed)
    module, name = path.rsplit(".", 1)
    cls = getattr(importlib.import_module(f"transformers.models.{module}"), name)
    vision = types.SimpleNamespace(spatial_merge_size=2, temporal_merge_size=2, tokens_per_second=2)
    model = types.SimpleNamespace(config=types.SimpleNamespace(vision_config=vision))
    model.get_vision_position_ids = types.MethodType(cls.get_vision_position_ids, model)

    rows, images, videos = zip(*(layout(chooser, ROPE[path]) for _ in range(chooser.randint(1, 3))))
    length, is_left = max(map(len, rows)), chooser.random() < 0.5

    def pad(row, value):
        filling = [value] * (length - len(row))
        return filling + row if is_left else row + filling

    inputs = {"mm_token_type_ids": torch.tensor([pad(row, 0) for row in rows])}
    inputs["input_ids"] = torch.zeros_like(inputs["mm_token_type_ids"])
    if len(rows) > 1 or seed % 2:
        inputs["attention_mask"] = torch.tensor([pad([1] * len(row), 0) for row in rows])
    for key, grids in (("image_grid_thw", sum(images, [])), ("video_grid_thw", sum(videos, []))):
        if grids:
            inputs[key] = torch.tensor(grids)
    if "video_grid_thw" in inputs and name.startswith("Qwen2_5"):
        seconds = [3 * chooser.random() for _ in inputs["video_grid_thw"]]
        inputs["second_per_grid_ts"] = torch.tensor(seconds) if seed % 3 else seconds

    expected = cls.get_rope_index(model, **copy.deepcopy(inputs))
    actual = multimodal_rope._MODELS[path](cls.get_rope_index)(model, **inputs)
    for ours, theirs in zip(actual, expected):
        assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)


# ── Loops over experts, chunks and sequences ──


def test_every_routing_of_a_loop_over_experts(transporters):
    """transformers#38518, #40114: the trace holds the sample's routing."""
    torch.manual_seed(0)
    config = transformers.SwitchTransformersConfig(
        vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_decoder_layers=2, num_heads=4, num_experts=4,
        num_sparse_encoder_layers=1, num_sparse_decoder_layers=1, expert_capacity=64, decoder_start_token_id=0,
    )  # fmt: skip
    model = transformers.SwitchTransformersEncoderModel(config).eval()

    def inputs(*shape):
        ids = torch.randint(3, 99, shape)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    exported = transporters.DynamoExporter().export(model, inputs(2, 5), config=dict(dynamic=True))
    for shape in ((1, 1), (3, 9)):
        check(exported, model, inputs(*shape))
    # All tokens to one expert, none to the others.
    router = next(module for module in model.modules() if type(module).__name__.endswith("Top1Router"))
    with torch.no_grad():
        router.classifier.weight.zero_()
    exported = transporters.DynamoExporter().export(model, inputs(2, 5), config=dict(dynamic=True))
    check(exported, model, inputs(2, 7))


RECURRENT = {
    "Qwen3NextForCausalLM": (transformers.Qwen3NextConfig, dict(
        num_key_value_heads=2, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8,
        linear_value_head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
        shared_expert_intermediate_size=16, layer_types=["linear_attention", "full_attention"],
    )),
    "MambaForCausalLM": (transformers.MambaConfig, dict(state_size=4)),
    "RwkvForCausalLM": (transformers.RwkvConfig, dict(attention_hidden_size=32, context_length=512)),
    "RecurrentGemmaForCausalLM": (transformers.RecurrentGemmaConfig, dict(
        num_key_value_heads=2, lru_width=32, block_types=["recurrent", "attention"], attention_window_size=64,
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", RECURRENT)
def test_other_lengths_of_recurrent_models(transporters, name):
    torch.manual_seed(0)
    config_class, fields = RECURRENT[name]
    sizes = dict(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, use_cache=False
    )
    model = getattr(transformers, name)(config_class(**{**sizes, **fields})).eval()
    sample = {"input_ids": torch.randint(3, 99, (2, 10))}
    with torch.no_grad():
        model(**sample)  # RWKV scales its weights in the first call
    exported = transporters.DynamoExporter().export(model, sample, config=dict(dynamic=True))
    for shape in ((1, 3), (3, 150)):
        check(exported, model, {"input_ids": torch.randint(3, 99, shape)})


@pytest.mark.parametrize("length", [1, 5, 64, 65, 200])
@pytest.mark.parametrize("has_state", [False, True])
def test_delta_attention(transporters, length, has_state):
    from transformers.models.kimi_linear.modeling_kimi_linear import chunk_kimi_delta_attention
    from transporters.patches import linear_attention

    torch.manual_seed(length)
    query, key = torch.nn.functional.normalize(torch.randn(2, 2, length, 3, 8), dim=-1)
    value, decay, beta = torch.randn(2, length, 3, 5), -0.3 * torch.rand(2, length, 3, 8), torch.rand(2, length, 3)
    state = torch.randn(2, 3, 8, 5) if has_state else None
    expected = chunk_kimi_delta_attention(query, key, value, decay, beta, initial_state=state, output_final_state=True)
    actual = linear_attention.delta_attention(query * 8**-0.5, key, value, decay, beta, state, 64)
    for ours, theirs in zip(actual, expected):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


# ── Merging of patches ──


@pytest.mark.parametrize("seed", range(10))
def test_merged_patches(transporters, seed):
    from transformers.models.ernie4_5_vl_moe import modeling_ernie4_5_vl_moe as ernie
    from transformers.models.paddleocr_vl import modeling_paddleocr_vl as paddleocr
    from transformers.models.video_llama_3 import modeling_video_llama_3 as video_llama
    from transporters.patches import vision_merging

    torch.manual_seed(seed)
    grid = grids_of(1 + seed % 4, 2)
    features = torch.randn(int(grid.prod(1).sum()), 8)
    config = types.SimpleNamespace(
        vision_config=types.SimpleNamespace(hidden_size=8, spatial_merge_size=2),
        text_config=types.SimpleNamespace(hidden_size=6),
    )
    projector = paddleocr.PaddleOCRProjector(config)
    ours = vision_merging._paddleocr_projector(None)(projector, features, grid)
    torch.testing.assert_close(ours, projector(features, grid), rtol=0, atol=1e-5)

    slicing = ernie.Ernie4_5_VLMoeVariableResolutionResamplerModel._temporal_slicing
    merged = torch.randn(len(features) // 4, 8)
    resampler = types.SimpleNamespace(spatial_merge_size=2)
    ours = vision_merging._ernie_temporal_slices(None)(resampler, merged, grid)
    assert torch.equal(ours, slicing(resampler, merged, grid))

    merges = torch.randint(1, 5, (len(grid),))
    grid[:, 1:] = torch.randint(1, 4, (len(grid), 2)) * merges[:, None]
    features = torch.randn(int(grid.prod(1).sum()), 8)
    ours = vision_merging._video_llama_3_unshuffle(None)(None, features, grid, merges)
    theirs = video_llama.VideoLlama3VisionModel.pixel_unshuffle(None, features, grid, merges)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


# ── Lists of images, local attention, masks that eager leaves out ──


def test_numbers_of_samples_and_image_sizes_of_idefics(transporters):
    torch.manual_seed(0)
    sizes = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    config = transformers.Idefics3Config(
        vision_config=dict(image_size=32, patch_size=4, **sizes),
        text_config=dict(model_type="llama", vocab_size=99, num_key_value_heads=2, pad_token_id=0, **sizes),
        image_token_id=98,
        scale_factor=2,
    )
    model = transformers.Idefics3Model(config).eval()

    def inputs(batch, images, side, text):
        ids = torch.randint(3, 90, (batch, text + images * side * side // 64))
        ids[:, 2 : 2 + images * side * side // 64] = 98
        return {"input_ids": ids, "pixel_values": torch.randn(batch, images, 3, side, side)}

    exported = transporters.DynamoExporter().export(model, inputs(2, 1, 16, 6), config=dict(dynamic=True))
    check(exported, model, inputs(2, 3, 16, 4))
    check(exported, model, inputs(2, 2, 32, 9))


def test_other_numbers_of_chunks_of_canine(export):
    torch.manual_seed(0)
    config = transformers.CanineConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_hash_buckets=64,
        local_transformer_stride=16, max_position_embeddings=128,
    )  # fmt: skip
    model = transformers.CanineModel(config).eval()

    def inputs(batch, length, padding):
        mask = torch.ones(batch, length, dtype=torch.int64)
        mask[0, length - padding :] = 0
        return {"input_ids": torch.randint(3, 999, (batch, length)), "attention_mask": mask}

    exported = export(model, inputs(2, 12, 2))
    check(exported, model, inputs(1, 37, 20))
    check(exported, model, inputs(3, 64, 0))


def test_paligemma_with_and_without_padding(export):
    """pytorch#147096, transformers#34390; without padding, eager attends to later tokens too."""
    torch.manual_seed(0)
    sizes = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    config = transformers.PaliGemmaConfig(
        vision_config=dict(model_type="siglip_vision_model", image_size=28, patch_size=14, projection_dim=32, **sizes),
        text_config=dict(model_type="gemma", vocab_size=99, num_key_value_heads=1, head_dim=8, **sizes),
        image_token_index=98,
        image_token_id=98,
        projection_dim=32,
        hidden_size=32,
    )
    model = transformers.PaliGemmaForConditionalGeneration(config).eval()

    def inputs(batch, text, padding):
        ids = torch.randint(3, 90, (batch, padding + 4 + text))
        ids[:, padding : padding + 4] = 98
        mask = torch.ones_like(ids)
        mask[0, :padding] = 0
        return {"input_ids": ids, "attention_mask": mask, "pixel_values": torch.randn(batch, 3, 28, 28)}

    exported = export(model, inputs(2, 5, 2))
    check(exported, model, inputs(1, 8, 0))
    check(exported, model, inputs(3, 3, 4))


# ── Images, sequences and audio of other sizes ──


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_shifted_windows(export, implementation):
    """One window covers the last feature map of the sample; others are padded, or need several."""
    torch.manual_seed(0)
    config = transformers.SwinConfig(
        image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 2], window_size=4,
        attn_implementation=implementation,
    )  # fmt: skip
    model = transformers.SwinModel(config).eval()
    for buffer in model.parameters():
        torch.nn.init.normal_(buffer, std=0.3)
    exported = export(model, {"pixel_values": torch.randn(2, 3, 32, 32)})
    for batch, height, width in ((1, 64, 48), (3, 32, 64), (1, 37, 70)):
        # Eager's layers keep what they clamped for a small image.
        check(exported, copy.deepcopy(model), {"pixel_values": torch.randn(batch, 3, height, width)})


def test_branches_that_ask_for_the_size_of_the_config(export):
    torch.manual_seed(0)
    config = transformers.TimesformerConfig(
        image_size=16, patch_size=4, num_frames=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48,
    )  # fmt: skip
    model = transformers.TimesformerModel(config).eval()
    torch.nn.init.normal_(model.embeddings.position_embeddings)
    torch.nn.init.normal_(model.embeddings.time_embeddings)
    exported = export(model, {"pixel_values": torch.randn(2, 4, 3, 16, 16)})
    for sizes in ((1, 4, 3, 16, 16), (1, 6, 3, 24, 16), (3, 2, 3, 16, 32)):
        check(exported, model, {"pixel_values": torch.randn(sizes)})


@pytest.mark.parametrize("seed", range(20))
def test_statistics_over_lengths(transporters, seed):
    from transporters.patches import length_statistics

    torch.manual_seed(seed)
    features, lengths = torch.randn(3, 9, 4), torch.randint(2, 12, (3,))
    lengths[0] = -3  # a slice takes it from the end
    for function, name in ((length_statistics.means, "mean"), (length_statistics.deviations, "std")):
        expected = torch.stack([getattr(features[i, :length], name)(dim=0) for i, length in enumerate(lengths)])
        torch.testing.assert_close(function(features, lengths), expected)


@pytest.mark.parametrize(
    "path", ["wav2vec2.Wav2Vec2", "data2vec.Data2VecAudio", "wavlm.WavLM", "unispeech_sat.UniSpeechSat",
             "wav2vec2_bert.Wav2Vec2Bert", "wav2vec2_conformer.Wav2Vec2Conformer"],
)  # fmt: skip
def test_the_loops_over_lengths_are_found(transporters, path):
    from transporters.patches import length_statistics, rewriting

    package, name = path.split(".")
    module = "data2vec_audio" if package == "data2vec" else package
    module = importlib.import_module(f"transformers.models.{package}.modeling_{module}")
    forward = getattr(module, f"{name}ForXVector").forward
    ((_, _, rewritten),) = rewriting.entries(forward, length_statistics._Rewrite)
    assert {"means", "deviations"} <= set(rewritten(None).co_names) and "append" not in rewritten(None).co_names


@pytest.mark.parametrize("seed", range(40))
def test_lists_of_places(transporters, seed):
    from transporters.patches.place_lists import Places

    chooser = random.Random(seed)
    length = chooser.randint(8, 30)
    expected, actual = list(range(length)), Places(0, 1, length)
    for _ in range(3):
        choice = chooser.randint(0, 2)
        if choice == 0 and len(expected) > 4:
            expected, actual = [-7] + expected, [-7] + actual
        elif choice == 1 and len(expected) > 8:
            part = slice(chooser.choice([0, 1, 2]), chooser.choice([None, -1]), chooser.choice([1, 2]))
            expected, actual = expected[part], actual[part]
        elif not actual.head:
            expected, actual = expected[::-1], actual[::-1]
    assert actual.tensor().tolist() == expected and len(actual) == len(expected)
    assert [actual[0], actual[-1]] == [expected[0], expected[-1]]


SEQUENCES = {
    "funnel": lambda: transformers.FunnelModel(transformers.FunnelConfig(
        vocab_size=99, d_model=32, n_head=4, d_head=8, d_inner=48, block_sizes=[1, 1, 1], num_decoder_layers=1,
    )),
    "longformer": lambda: transformers.LongformerModel(transformers.LongformerConfig(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        attention_window=4, max_position_embeddings=64,
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", SEQUENCES)
def test_other_lengths_of_sequences(export, name):
    torch.manual_seed(0)
    model = SEQUENCES[name]().eval()

    def inputs(batch, length, padding):
        ids = torch.randint(3, 99, (batch, length))
        mask = torch.ones_like(ids)
        mask[0, length - padding :] = 0
        return {"input_ids": ids, "attention_mask": mask}

    exported = export(model, inputs(2, 10, 2))
    for other in (inputs(1, 13, 0), inputs(3, 16, 3), inputs(2, 11, 1)):
        check(exported, model, other)


@pytest.mark.parametrize("dim", [3, 4])
def test_windows_that_overlap(transporters, dim):
    from transporters.patches import sliding_windows

    features = torch.randn(2, 12, 5)
    if dim == 4:
        features = features.view(2, 3, 4, 5)
        size, stride = (2, 5, 4, 5), (60, 10, 5, 1)
    else:
        size, stride = (2, 4, 3, 5), (60, 5, 5, 1)
    assert torch.equal(sliding_windows.overlapping(features, size), features.as_strided(size, stride))


def test_units_that_are_kept(transporters):
    from transporters.patches import masked_units

    patches = types.SimpleNamespace(mask_spatial_shape=(2, 4), mask_ratio=0.6)
    model = types.SimpleNamespace(
        embeddings=types.SimpleNamespace(patch_embeddings=patches),
        config=types.SimpleNamespace(masked_unit_size=(2, 2)),
    )
    kept = torch.stack([torch.randperm(8) < 3 for _ in range(2)])
    positions, features = kept.unsqueeze(-1).tile(1, 4, 5), torch.randn(2, 32, 5)
    expected = features[positions].view(2, -1, 5)
    assert torch.equal(masked_units.kept(model, features, positions), expected)


@pytest.mark.parametrize("kernel, stride, dilation", [(7, 1, 1), (4, 2, 1), (8, 4, 1), (3, 1, 2), (5, 3, 1)])
def test_padding_to_whole_frames(transporters, kernel, stride, dilation):
    from transformers.models.encodec import modeling_encodec
    from transporters.patches import audio_padding

    layer = modeling_encodec.EncodecConv1d(transformers.EncodecConfig(), 2, 2, kernel, stride, dilation)
    assert [entry[1] for entry in audio_padding.entries(layer)][0] == "_get_extra_padding_for_conv1d"
    for length in range(kernel * dilation, 40):
        hidden = torch.zeros(1, 2, length)
        expected = layer._get_extra_padding_for_conv1d(hidden)
        assert audio_padding._extra_padding(None)(layer, hidden) == expected.item()
    for name, read in audio_padding._PROPERTIES.items():
        if hasattr(layer, name):
            assert read(layer) == getattr(layer, name).item()


def test_texts_of_aimv2_with_and_without_padding(export):
    """Without padding, eager attends to later tokens too."""
    torch.manual_seed(0)
    from transformers.models.aimv2 import modeling_aimv2

    config = transformers.Aimv2TextConfig(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=32, eos_token_id=98,
    )  # fmt: skip
    model = modeling_aimv2.Aimv2TextModel(config).eval()

    def inputs(batch, length, padding):
        ids = torch.randint(3, 98, (batch, length))
        ids[:, -1] = 98
        mask = torch.ones_like(ids)
        mask[0, :padding] = 0
        return {"input_ids": ids, "attention_mask": mask}

    exported = export(model, inputs(2, 7, 2))
    for other in (inputs(1, 9, 0), inputs(2, 7, 0), inputs(3, 5, 1)):
        check(exported, model, other)


def test_images_that_are_cut_to_their_sizes(export):
    """Pixtral's."""
    config = transformers.PixtralVisionConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2, image_size=32, patch_size=4
    )
    torch.manual_seed(0)
    model = transformers.PixtralVisionModel(config).eval()

    def images(height, width, *sizes):
        pixels = torch.randn(len(sizes), 3, height, width, generator=torch.Generator().manual_seed(height))
        return {"pixel_values": pixels, "image_sizes": torch.tensor(sizes)}

    exported = export(model, images(16, 24, (16, 24), (12, 24)))
    for inputs in (images(16, 24, (8, 20), (16, 24)), images(32, 28, (32, 4), (20, 28))):
        check(exported, model, inputs)
