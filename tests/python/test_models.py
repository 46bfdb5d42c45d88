"""Native models run eagerly, compared with transformers at several sizes, paddings, types and head classes."""

import itertools
import json
import shutil

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

TOLERANCE = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 5e-2}
SIZES = list(itertools.product((1, 2, 3), (1, 5, 11)))
PAD = 0


def padded_inputs(batch, length, side, vocab=99):
    """Ids and mask where row i has i padding tokens on one side, none when they would fill the row."""
    generator = torch.Generator().manual_seed(batch * 100 + length)
    ids = torch.randint(3, vocab, (batch, length), generator=generator)
    mask = torch.ones_like(ids)
    for row in range(batch):
        count = row if row < length else 0
        padding = slice(0, count) if side == "left" else slice(length - count, length)
        ids[row, padding] = PAD
        mask[row, padding] = 0
    return {"input_ids": ids, "attention_mask": mask}


def leaves(output):
    """Tensors of a transformers output by leaf path, as an export names them."""
    result = {}
    for name, value in output.items():
        if isinstance(value, torch.Tensor):
            result[name] = value
        elif isinstance(value, transformers.EncoderDecoderCache):
            for part in ("self_attention_cache", "cross_attention_cache"):
                result |= leaves({f"{name}.{part}": getattr(value, part)})
        elif isinstance(value, transformers.DynamicCache):
            for i, layer in enumerate(value.layers):
                result[f"{name}.layers.{i}.keys"] = layer.keys
                result[f"{name}.layers.{i}.values"] = layer.values
                if layer.is_sliding:
                    result[f"{name}.layers.{i}._sliding_window_tensor"] = layer._sliding_window_tensor
    return result


def close(found, expected, dtype, name=""):
    largest = expected.float().abs().max().item() if expected.numel() else 0.0
    torch.testing.assert_close(
        found.float(),
        expected.float(),
        atol=TOLERANCE[dtype] * max(largest, 1.0),
        rtol=0,
        msg=lambda text: f"{name}: {text}",
    )


def compare(model, folder, eager_forward, calls, dtype="float32", flags=None, names=True):
    """Runs `calls` (dicts of inputs) in both and compares every leaf, its type, and the parameters' names (where those
    of transformers' modules are the checkpoint's)."""
    results = eager_forward(folder, [(call, None) for call in calls], **(flags or {}))
    for call, (found, metadata) in zip(calls, results, strict=True):
        with torch.no_grad():
            expected = leaves(model(**call))
        assert set(found) == set(expected)
        for name, value in expected.items():
            if name.endswith(("keys", "values")):
                # A sliding layer keeps older states than eager transformers does, as in transformers' exports.
                found[name] = found[name][:, :, found[name].shape[2] - value.shape[2] :]
            assert found[name].shape == value.shape, name
            assert found[name].dtype == value.dtype, name
            close(found[name], value, dtype, name)
    if names:
        found_names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
        assert results[0][1]["parameters"].split() == found_names
    return results


def load(folder, dtype="float32", attention="sdpa", model_class=None):
    cls = getattr(transformers, model_class or transformers.AutoConfig.from_pretrained(folder).architectures[0])
    return cls.from_pretrained(folder, dtype=getattr(torch, dtype), attn_implementation=attention).eval()


def all_sizes():
    calls = [padded_inputs(b, n, side) for (b, n), side in itertools.product(SIZES, ("left", "right"))]
    return calls + [{"input_ids": call["input_ids"]} for call in calls[::6]]


BERT_CLASSES = [
    "BertModel",
    "BertForMaskedLM",
    "BertForPreTraining",
    "BertForNextSentencePrediction",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertForQuestionAnswering",
]


@pytest.mark.parametrize("model_class", BERT_CLASSES)
def test_bert(tiny_checkpoint, eager_forward, model_class):
    folder = tiny_checkpoint("bert", model_class)
    calls = all_sizes()
    ids = calls[-1]["input_ids"]
    calls.append({"input_ids": ids, "token_type_ids": (ids % 2), "position_ids": torch.arange(ids.shape[1])[None] + 3})
    compare(load(folder), folder, eager_forward, calls)


ROBERTA_CLASSES = [
    "RobertaModel",
    "RobertaForMaskedLM",
    "RobertaForSequenceClassification",
    "RobertaForTokenClassification",
    "RobertaForQuestionAnswering",
]


@pytest.mark.parametrize("model_class", ROBERTA_CLASSES)
def test_roberta(tiny_checkpoint, eager_forward, model_class):
    """Positions come from where the padding (id 1) is."""
    folder = tiny_checkpoint("roberta", model_class)
    calls = [{**call, "input_ids": call["input_ids"].clamp(min=1)} for call in all_sizes()]
    model = load(folder)
    call = padded_inputs(2, 5, "right")
    calls.append({"inputs_embeds": model.get_input_embeddings()(call["input_ids"]).detach()})
    compare(model, folder, eager_forward, calls)


@pytest.mark.parametrize("model_class", ["ViTModel", "ViTForImageClassification"])
@pytest.mark.parametrize("fields", [dict(), dict(image_size=[16, 24], qkv_bias=False, hidden_act="relu")], ids=str)
def test_vit(tiny_checkpoint, eager_forward, model_class, fields):
    folder = tiny_checkpoint("vit", model_class, **fields)
    height, width = fields.get("image_size", (24, 24))
    generator = torch.Generator().manual_seed(0)
    calls = [{"pixel_values": torch.randn(b, 3, height, width, generator=generator)} for b in (1, 2, 3)]
    compare(load(folder), folder, eager_forward, calls)


def test_vit_in_half_type_and_wrong_size(tiny_checkpoint, eager_forward):
    folder = tiny_checkpoint("vit", dtype="bfloat16")
    compare(load(folder, "bfloat16"), folder, eager_forward, [{"pixel_values": torch.randn(2, 3, 24, 24)}], "bfloat16")
    message = eager_forward(folder, [({"pixel_values": torch.zeros(1, 3, 24, 32)}, None)], error=True)
    assert message == ("'pixel_values': expected width 24, got 32; resize the image, positions are not interpolated\n")


DECODERS = {
    "llama": {
        "gqa": dict(),
        "tied": dict(tie_word_embeddings=True),
        "biases": dict(attention_bias=True, mlp_bias=True, head_dim=12, hidden_act="gelu_new"),
        "linear": dict(rope_scaling={"rope_type": "linear", "factor": 3.0}),
        "yarn": dict(
            rope_parameters={
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 16,
                "rope_theta": 5e3,
            }
        ),
        "llama3": dict(
            rope_parameters={
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
                "rope_theta": 1e4,
            }
        ),
    },
    "mistral": {"window": dict(), "full": dict(sliding_window=None)},
    "qwen2": {
        "gqa": dict(),
        "window": dict(use_sliding_window=True, sliding_window=4, max_window_layers=1),
    },
    "gemma3_text": {
        "tied": dict(),
        "untied": dict(
            tie_word_embeddings=False, attention_bias=True, query_pre_attn_scalar=16, final_logit_softcapping=5.0
        ),
        "ropes": dict(
            rope_parameters={
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e5},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e3},
            }
        ),
    },
    "gpt2": {
        "tied": dict(),
        "untied": dict(tie_word_embeddings=False, n_inner=40, scale_attn_by_inverse_layer_idx=True),
        "unscaled": dict(scale_attn_weights=False, activation_function="relu"),
    },
    "qwen3": {
        "tied": dict(),
        "untied": dict(tie_word_embeddings=False),
        "biases": dict(attention_bias=True),
        "window": dict(layer_types=["sliding_attention", "full_attention"], use_sliding_window=True, sliding_window=4),
    },
}
DECODER_CASES = [(m, name, fields) for m, cases in DECODERS.items() for name, fields in cases.items()]


@pytest.mark.parametrize(
    "model_type,fields", [(m, f) for m, _, f in DECODER_CASES], ids=[f"{m}-{n}" for m, n, _ in DECODER_CASES]
)
def test_decoder(tiny_checkpoint, eager_forward, model_type, fields):
    folder = tiny_checkpoint(model_type, **fields)
    compare(load(folder), folder, eager_forward, all_sizes())


DECODER_HEADS = ["Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"]


@pytest.mark.parametrize("head", DECODER_HEADS)
@pytest.mark.parametrize("model_type,prefix", [("llama", "Llama"), ("qwen3", "Qwen3"), ("gpt2", "GPT2")])
def test_decoder_heads(tiny_checkpoint, eager_forward, model_type, prefix, head):
    folder = tiny_checkpoint(model_type, prefix + head, pad_token_id=PAD, num_labels=3)
    compare(load(folder), folder, eager_forward, all_sizes())


EXPERTS = {
    "mixtral": {"top-2": dict(), "top-1": dict(num_experts_per_tok=1), "window": dict(sliding_window=4)},
    "qwen3_moe": {
        "top-2": dict(),
        "normalized": dict(norm_topk_prob=True, mlp_only_layers=[]),
        "every-other": dict(decoder_sparse_step=2, mlp_only_layers=[]),
    },
}
EXPERT_CASES = [(m, name, fields) for m, cases in EXPERTS.items() for name, fields in cases.items()]


@pytest.mark.parametrize(
    "model_type,fields", [(m, f) for m, _, f in EXPERT_CASES], ids=[f"{m}-{n}" for m, n, _ in EXPERT_CASES]
)
def test_mixture_of_experts(tiny_checkpoint, eager_forward, model_type, fields):
    """transformers stacks the experts' weights while it loads; the native models have them as the file does."""
    folder = tiny_checkpoint(model_type, **fields)
    compare(load(folder), folder, eager_forward, all_sizes(), names=False)


@pytest.mark.parametrize("model_type", ["mixtral", "qwen3_moe"])
def test_mixture_of_experts_in_half_type(tiny_checkpoint, eager_forward, model_type):
    folder = tiny_checkpoint(model_type, dtype="bfloat16")
    compare(load(folder, "bfloat16"), folder, eager_forward, [padded_inputs(2, 5, "left")], "bfloat16", names=False)


T5 = {
    "relu": dict(),
    "gated": dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "buckets": dict(relative_attention_num_buckets=8, relative_attention_max_distance=9),
}


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("fields", T5.values(), ids=T5)
def test_t5(tiny_checkpoint, eager_forward, fields, attention):
    """optimum-executorch#230: padding of the encoder, on either side, and positions at every length."""
    folder = tiny_checkpoint("t5", **fields)
    calls = []
    for (batch, length), side in itertools.product(SIZES, ("left", "right")):
        call = padded_inputs(batch, length, side)
        call["decoder_input_ids"] = padded_inputs(batch, 14 - length, side)["input_ids"]
        calls.append(call)
    compare(load(folder, attention=attention), folder, eager_forward, calls, flags={"attention": attention})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("model_type", ["bert", "llama", "qwen3", "mistral", "qwen2", "gemma3_text", "gpt2", "roberta"])
def test_half_types(tiny_checkpoint, eager_forward, model_type, dtype):
    """Stored in the type; and float32 weights converted on loading."""
    calls = [padded_inputs(2, 5, "left")]
    folder = tiny_checkpoint(model_type, dtype=dtype)
    compare(load(folder, dtype), folder, eager_forward, calls, dtype)
    folder = tiny_checkpoint(model_type)
    compare(load(folder, dtype), folder, eager_forward, calls, dtype, {"dtype": dtype})


@pytest.mark.parametrize("model_type", ["bert", "llama", "mistral", "gemma3_text", "gpt2", "roberta"])
def test_eager_attention(tiny_checkpoint, eager_forward, model_type):
    folder = tiny_checkpoint(model_type)
    compare(load(folder, attention="eager"), folder, eager_forward, all_sizes(), flags={"attention": "eager"})


@pytest.mark.parametrize("model_type", ["bert", "llama", "qwen3"])
def test_shards(tiny_checkpoint, eager_forward, model_type):
    folder = tiny_checkpoint(model_type, max_shard_size="20KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    compare(load(folder), folder, eager_forward, [padded_inputs(2, 5, "right")])


def test_dynamic_rope_follows_the_length(tiny_checkpoint, eager_forward):
    """The base grows past max_position_embeddings and returns; a fresh transformers model is the reference."""
    folder = tiny_checkpoint("llama", max_position_embeddings=8, rope_scaling={"rope_type": "dynamic", "factor": 4.0})
    calls = [padded_inputs(2, length, "right") for length in (6, 16, 8, 9, 6)]
    for call, (found, _) in zip(calls, eager_forward(folder, [(call, None) for call in calls]), strict=True):
        with torch.no_grad():
            close(found["logits"], load(folder)(**call).logits, "float32")


LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0, 1.1, 1.2, 1.5],
    "long_factor": [1.0, 2.0, 4.0, 8.0],
    "original_max_position_embeddings": 8,
}


def test_longrope_picks_by_the_length(tiny_checkpoint, eager_forward):
    folder = tiny_checkpoint("llama", rope_parameters=LONGROPE)
    calls = [padded_inputs(2, length, "left") for length in (5, 8, 9, 20, 5)]
    compare(load(folder), folder, eager_forward, calls)


def test_old_rope_spelling(tiny_checkpoint, eager_forward, tmp_path):
    """rope_theta and rope_scaling at the top level, as transformers 4 wrote them."""
    folder = tmp_path / "old"
    shutil.copytree(tiny_checkpoint("llama", rope_scaling={"rope_type": "linear", "factor": 3.0}), folder)
    config = json.loads((folder / "config.json").read_text())
    del config["rope_parameters"]
    config |= {"rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 2.0}}
    (folder / "config.json").write_text(json.dumps(config))
    compare(load(folder), folder, eager_forward, [padded_inputs(2, 11, "left")])


@pytest.mark.parametrize(
    "model_type,attention",
    [("llama", "sdpa"), ("llama", "eager"), ("mistral", "sdpa"), ("gemma3_text", "sdpa"), ("gpt2", "sdpa")],
)
def test_decode_with_cache(tiny_checkpoint, eager_forward, model_type, attention):
    """Each step equals a recompute of everything. Windows of 4 are passed, and one row is padded on the left."""
    folder = tiny_checkpoint(model_type)
    model = load(folder, attention=attention)
    whole = padded_inputs(2, 10, "left")
    cache, seen = {}, 0
    for count in (3, 1, 1, 3, 2):
        step = {
            "input_ids": whole["input_ids"][:, seen : seen + count],
            "attention_mask": whole["attention_mask"][:, : seen + count],
        }
        ((found, _),) = eager_forward(folder, [(step | cache, None)], attention=attention)
        seen += count
        with torch.no_grad():
            expected = model(**{k: v[:, :seen] for k, v in whole.items()}, use_cache=False).logits
        # Rows that are padding see nothing; implementations may differ there.
        visible = step["attention_mask"][:, -count:].bool()
        close(found["logits"][visible], expected[:, -count:][visible], "float32")
        cache = {k: v for k, v in found.items() if k.endswith(("keys", "values"))}
        assert cache["cache.layers.0.keys"].shape[2] == seen


def test_options_of_a_call(tiny_checkpoint, eager_forward):
    folder = tiny_checkpoint("llama")
    call = padded_inputs(2, 5, "right")
    (found, _), (full, _) = eager_forward(folder, [(call, {"logits_to_keep": "2", "use_cache": "false"}), (call, None)])
    assert set(found) == {"logits"}
    close(found["logits"], full["logits"][:, -2:], "float32")


def test_packed_sequences(tiny_checkpoint, eager_forward):
    """Without mask and cache, positions that start again start a new sequence."""
    folder = tiny_checkpoint("llama", use_cache=False)
    ids = padded_inputs(2, 6, "right")["input_ids"]
    positions = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 0, 1, 2, 0]])
    compare(load(folder), folder, eager_forward, [{"input_ids": ids, "position_ids": positions}])


def test_embeddings_and_ready_masks_as_inputs(tiny_checkpoint, eager_forward):
    folder = tiny_checkpoint("llama")
    model = load(folder)
    call = padded_inputs(2, 5, "right")
    embeds = model.get_input_embeddings()(call["input_ids"]).detach()
    mask = torch.rand(2, 1, 5, 5) < 0.7
    mask |= torch.eye(5, dtype=torch.bool)
    calls = [{"inputs_embeds": embeds, "attention_mask": call["attention_mask"]}, {**call, "attention_mask": mask}]
    compare(model, folder, eager_forward, calls)


def test_multiple_choice(tiny_checkpoint, eager_forward):
    folder = tiny_checkpoint("bert", "BertForMultipleChoice")
    calls = [{k: v.view(2, 3, -1) for k, v in padded_inputs(6, 5, "right").items()}]
    compare(load(folder), folder, eager_forward, calls)


def test_bert_as_decoder(tiny_checkpoint, eager_forward):
    folder = tiny_checkpoint("bert", "BertLMHeadModel", is_decoder=True)
    compare(load(folder), folder, eager_forward, all_sizes())


@pytest.mark.parametrize(
    "model_type,base,head",
    [
        ("bert", "BertModel", "BertForPreTraining"),
        ("llama", "LlamaModel", "LlamaForCausalLM"),
        ("gpt2", "GPT2Model", "GPT2ForTokenClassification"),
    ],
)
def test_head_checkpoint_into_base_model(tiny_checkpoint, eager_forward, model_type, base, head):
    folder = tiny_checkpoint(model_type, head)
    calls = [padded_inputs(2, 5, "left")]
    results = compare(load(folder, model_class=base), folder, eager_forward, calls, flags={"class": base})
    assert results[0][1]["unused"].split() != []


def test_base_checkpoint_into_tied_head(tiny_checkpoint, eager_forward):
    folder = tiny_checkpoint("llama", "LlamaModel", tie_word_embeddings=True)
    cls = "LlamaForCausalLM"
    compare(load(folder, model_class=cls), folder, eager_forward, [padded_inputs(2, 5, "left")], flags={"class": cls})


def test_base_checkpoint_has_no_head(tiny_checkpoint, eager_forward):
    folder = tiny_checkpoint("bert")
    message = eager_forward(
        folder, [(padded_inputs(1, 5, "left"), None)], error=True, **{"class": "BertForSequenceClassification"}
    )
    assert "2 tensors are missing" in message and "classifier.weight" in message and "classifier.bias" in message


def test_weights_named_as_tensorflow_named_them(tiny_checkpoint, eager_forward, tmp_path):
    source = tiny_checkpoint("bert")
    folder = tmp_path / "gamma"
    shutil.copytree(source, folder)
    tensors = load_file(folder / "model.safetensors")
    renamed = {
        k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
        for k, v in tensors.items()
    }
    assert renamed.keys() != tensors.keys()
    save_file(renamed, folder / "model.safetensors", {"format": "pt"})
    compare(load(source), folder, eager_forward, [padded_inputs(2, 5, "left")])


def test_head_saved_beside_its_tied_embedding(tiny_checkpoint, eager_forward, tmp_path):
    """Equal copies are one parameter; different ones stay apart whatever the config says."""
    source = tiny_checkpoint("llama", tie_word_embeddings=True)
    for name, change in (("equal", 0.0), ("different", 1.0)):
        folder = tmp_path / name
        shutil.copytree(source, folder)
        tensors = load_file(folder / "model.safetensors")
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone() + change
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        compare(load(folder), folder, eager_forward, [padded_inputs(2, 5, "left")])


def test_output_spec_equals_the_one_transformers_exports(tiny_checkpoint, eager_forward):
    from transformers.exporters.exporter_dynamo import _pytree_flatten

    for model_type in ("llama", "mistral", "gemma3_text"):
        folder = tiny_checkpoint(model_type)
        call = padded_inputs(2, 3, "left")
        ((found, metadata),) = eager_forward(folder, [(call, None)])
        with torch.no_grad():
            expected = load(folder)(**call)
        _, context = _pytree_flatten(expected.cache)
        for layer in context["s"]["layers"]:
            if "cumulative_length" in layer["s"]:
                layer["s"]["cumulative_length"] = 3
        spec = json.loads(metadata["spec"])[1]
        assert spec["type"] == "transformers.modeling_outputs.CausalLMOutputWithPast"
        assert spec["context"] == '["logits", "cache"]'
        assert spec["children_spec"][1]["context"] == json.dumps(context)
        assert len(spec["children_spec"][1]["children_spec"]) == len(found) - 1


TRACED = {
    "bert": ("bert", dict()),
    "bert-decoder": ("bert", dict(model_class="BertLMHeadModel", is_decoder=True)),
    "bert-choices": ("bert", dict(model_class="BertForMultipleChoice")),
    "roberta": ("roberta", dict(model_class="RobertaForMaskedLM")),
    "llama-classifier": (
        "llama",
        dict(model_class="LlamaForSequenceClassification", pad_token_id=PAD, num_labels=3),
    ),
    "llama-dynamic": (
        "llama",
        dict(max_position_embeddings=8, rope_scaling={"rope_type": "dynamic", "factor": 4.0}),
    ),
    "llama-longrope": ("llama", dict(rope_parameters=LONGROPE)),
    "mistral": ("mistral", dict()),
    "qwen2": ("qwen2", dict()),
    "qwen3": ("qwen3", dict()),
    "gemma3": ("gemma3_text", dict()),
    "gpt2": ("gpt2", dict()),
    "vit": ("vit", dict(model_class="ViTForImageClassification")),
}


@pytest.mark.parametrize("name", TRACED)
def test_one_trace_serves_every_size(cli, tiny_checkpoint, tmp_path, name):
    """The exported program, traced at one size, equals the eager model at others."""
    model_type, fields = TRACED[name]
    folder = tiny_checkpoint(model_type, **fields)
    cli("export", folder, "--to", "dynamo", "--dynamic", "--out", tmp_path / "out")
    result = json.loads(cli("verify", tmp_path / "out", "--reference", folder, "--json").stdout)
    assert result["ok"], result
    assert result["skipped"] == 0 and len({(run["batch"], run["length"]) for run in result["runs"]}) > 3
