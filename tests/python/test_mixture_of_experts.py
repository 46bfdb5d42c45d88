"""Mixtures of experts of transformers through the Python package to ONNX: right for every routing, at every size."""

import sys

import pytest
import torch
import transformers


@pytest.fixture(scope="module")
def transporters(build_dir):
    sys.path.insert(0, str(build_dir / "python"))
    return pytest.importorskip("transporters")


TINY = dict(
    vocab_size=99,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)
MODELS = {
    "mixtral": dict(num_local_experts=4, num_experts_per_tok=2),
    "qwen3_moe": dict(num_experts=6, num_experts_per_tok=3, moe_intermediate_size=16, head_dim=8),
}


def tokens(batch, length):
    ids = torch.randint(0, 99, (batch, length), generator=torch.Generator().manual_seed(batch * length))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False}


@pytest.mark.parametrize("model_type", MODELS)
@pytest.mark.parametrize("routing", ["as_learned", "all_to_one", "none_to_one"])
def test_every_routing(transporters, model_type, routing):
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(model_type, **TINY, **MODELS[model_type])
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    # A feature that is large for every token lets one router weight decide for all of them.
    model.model.embed_tokens.weight.data[:, 0] = 5
    for layer in model.model.layers:
        gate = layer.mlp.gate.weight.data
        if routing != "as_learned":
            gate[1] = 0
            gate[1, 0] = 100 if routing == "all_to_one" else -100
    exported = transporters.OnnxExporter().export(model, tokens(2, 5), config=transporters.OnnxConfig(dynamic=True))
    for sizes in ((2, 5), (1, 1), (3, 9)):
        inputs = tokens(*sizes)
        with torch.no_grad():
            expected = model(**inputs).logits
        inputs.pop("use_cache")
        torch.testing.assert_close(exported(**inputs).logits, expected, rtol=0, atol=1e-4 * float(expected.abs().max()))


def test_weights_are_stored_once(transporters, tmp_path):
    config = transformers.AutoConfig.for_model("mixtral", **{**TINY, "hidden_size": 128}, **MODELS["mixtral"])
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    exported = transporters.OnnxExporter().export(model, tokens(2, 5), config=transporters.OnnxConfig(dynamic=True))
    exported.save(tmp_path / "model.onnx")
    stored = sum(file.stat().st_size for file in tmp_path.iterdir())
    weights = sum(parameter.numel() * 4 for parameter in model.parameters())
    assert weights < stored < weights * 1.05 + 100_000


def test_a_loop_with_other_names(transporters):
    """Step 3.7's experts, which call those that are hit by another name; index 4 is of tokens that go to none."""
    from transformers.models.step3p7.modeling_step3p7 import Step3p7Experts

    class Layer(transformers.PreTrainedModel):
        def __init__(self, config):
            super().__init__(config)
            self.experts = Step3p7Experts(config)

        def forward(self, hidden_states, top_k_index, top_k_weights):
            return self.experts(hidden_states, top_k_index, top_k_weights)

    torch.manual_seed(0)
    fields = dict(num_local_experts=4, hidden_size=32, moe_intermediate_size=16, hidden_act="silu")
    layer = Layer(transformers.PreTrainedConfig(**fields)).eval()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)

    def call(count, indices):
        generator = torch.Generator().manual_seed(count)
        chosen = torch.tensor(indices)[torch.randint(0, len(indices), (count, 2), generator=generator)]
        return {
            "hidden_states": torch.randn(count, 32, generator=generator),
            "top_k_index": chosen,
            "top_k_weights": torch.rand(count, 2, generator=generator),
        }

    exported = transporters.OnnxExporter().export(layer, call(6, [0, 1]), config=transporters.OnnxConfig(dynamic=True))
    for inputs in (call(6, [2, 3]), call(1, [4]), call(9, [0, 1, 2, 3, 4])):
        with torch.no_grad():
            expected = layer(**inputs)
        torch.testing.assert_close(
            exported(**inputs), expected, rtol=0, atol=1e-4 * max(1.0, float(expected.abs().max()))
        )
