"""Tiny random models that generate, by name, and what to give to their generate()."""

import torch
import transformers

SIZES = dict(
    vocab_size=99,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    initializer_range=0.3,  # so that the tokens differ
    tie_word_embeddings=False,
    bos_token_id=1,
    eos_token_id=None,
    pad_token_id=0,
)
T5 = dict(
    vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0, eos_token_id=None,
    tie_word_embeddings=False, initializer_factor=4.0,
)  # fmt: skip
ENCODER_DECODER = dict(
    vocab_size=99,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=48,
    init_std=0.6,
    tie_word_embeddings=False,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=None,
    decoder_start_token_id=2,
)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24)
SSM = dict(
    vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=4, eos_token_id=None, initializer_range=0.3,
    tie_word_embeddings=False,
)  # fmt: skip
WHISPER = dict(
    ENCODER_DECODER, num_mel_bins=8, max_source_positions=20, max_target_positions=64,
    suppress_tokens=None, begin_suppress_tokens=None,
)  # fmt: skip
ALL_HEADS = {name: value for name, value in SIZES.items() if name != "num_key_value_heads"}
MIXED = dict(sliding_window=4, layer_types=["sliding_attention", "full_attention"])
# name -> (model_type, class, fields)
CONFIGS = {
    "llama": ("llama", "LlamaForCausalLM", SIZES),
    "qwen3": ("qwen3", "Qwen3ForCausalLM", dict(SIZES, head_dim=8)),
    "gemma2": ("gemma2", "Gemma2ForCausalLM", dict(SIZES, head_dim=8, **MIXED)),
    "gemma3": ("gemma3_text", "Gemma3ForCausalLM", dict(SIZES, head_dim=8, **MIXED)),
    "gpt2": ("gpt2", "GPT2LMHeadModel", dict(ALL_HEADS, n_positions=64)),
    "mistral": ("mistral", "MistralForCausalLM", dict(SIZES, sliding_window=4)),
    "smollm3": ("smollm3", "SmolLM3ForCausalLM", dict(SIZES, no_rope_layer_interval=2)),
    "bloom": ("bloom", "BloomForCausalLM", dict(ALL_HEADS, n_layer=2, n_head=4)),
    "mamba": ("mamba", "MambaForCausalLM", dict(SSM, conv_kernel=4)),
    "mamba2": (
        "mamba2",
        "Mamba2ForCausalLM",
        dict(SSM, conv_kernel=4, num_heads=4, head_dim=16, n_groups=2, chunk_size=4),
    ),
    "t5": ("t5", "T5ForConditionalGeneration", T5),
    "bart": ("bart", "BartForConditionalGeneration", dict(ENCODER_DECODER, max_position_embeddings=64)),
    "whisper": ("whisper", "WhisperForConditionalGeneration", WHISPER),
    "nllb_moe": (
        "nllb-moe",
        "NllbMoeForConditionalGeneration",
        dict(ENCODER_DECODER, num_experts=4, encoder_sparse_step=2, decoder_sparse_step=2, max_position_embeddings=64),
    ),
    "qwen3_moe": ("qwen3_moe", "Qwen3MoeForCausalLM", dict(SIZES, head_dim=8, **EXPERTS)),
    "mixtral": ("mixtral", "MixtralForCausalLM", dict(SIZES, num_local_experts=4, num_experts_per_tok=2)),
}
IMAGE_TOKEN = 98


def _language(model_type):
    return {**SIZES, "model_type": model_type, "max_position_embeddings": 128}


def _qwen2_vl():
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    vision = dict(depth=2, embed_dim=32, hidden_size=32, num_heads=4, mlp_ratio=2, patch_size=4, spatial_merge_size=2)
    config = transformers.Qwen2VLConfig(
        text_config={**_language("qwen2_vl_text"), "rope_parameters": rope},
        vision_config=vision,
        image_token_id=IMAGE_TOKEN,
        video_token_id=97,
        vision_start_token_id=96,
        vision_end_token_id=95,
    )
    return transformers.Qwen2VLForConditionalGeneration(config)


def _llava():
    vision = dict(
        model_type="clip_vision_model", hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        image_size=16, patch_size=8, projection_dim=32,
    )  # fmt: skip
    config = transformers.LlavaConfig(
        text_config=_language("llama"), vision_config=vision, image_token_index=IMAGE_TOKEN, image_seq_length=4
    )
    return transformers.LlavaForConditionalGeneration(config)


def build(name, **fields):
    """The model, in eval mode; the same weights each time."""
    torch.manual_seed(0)
    if name in ("qwen2_vl", "llava"):
        model = {"qwen2_vl": _qwen2_vl, "llava": _llava}[name]()
    else:
        model_type, class_name, known = CONFIGS[name]
        config = transformers.AutoConfig.for_model(model_type, **{**known, **fields})
        model = getattr(transformers, class_name)(config)
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model.eval()


def inputs(name, batch, length, padding=0, seed=0):
    """For generate(): `length` tokens (frames of speech), the first row with `padding` on its left."""
    generator = torch.Generator().manual_seed(seed + 31 * batch + length)
    if name == "whisper":
        return {"input_features": torch.randn(batch, 8, 40, generator=generator)}
    ids = torch.randint(5, 90, (batch, length), generator=generator)
    mask = torch.ones_like(ids)
    ids[0, :padding], mask[0, :padding] = 0, 0
    given = {"input_ids": ids, "attention_mask": mask}
    if name == "llava":
        given["input_ids"][:, padding + 1 : padding + 5] = IMAGE_TOKEN
        given["pixel_values"] = torch.randn(batch, 3, 16, 16, generator=generator)
    if name == "qwen2_vl":
        given["input_ids"][:, padding + 1 : padding + 5] = IMAGE_TOKEN
        given["pixel_values"] = torch.randn(batch * 16, 3 * 2 * 4 * 4, generator=generator)
        given["image_grid_thw"] = torch.tensor([[1, 4, 4]] * batch)
        given["mm_token_type_ids"] = (given["input_ids"] == IMAGE_TOKEN).long()
    return given
