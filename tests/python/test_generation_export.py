"""export_for_generation: configs, errors, the mapping of components, folders that transformers loads, in-place
caches."""

import json

import generation_loops as loops
import generation_models as models
import onnx
import pytest
import torch
from transformers import DynamicCache, GenerationConfig, StaticCache
from transformers.exporters.base import ExportedModel
from transporters import (
    DynamoConfig,
    DynamoExporter,
    ExportError,
    OnnxConfig,
    OnnxExporter,
    OnnxProgram,
    register_patch,
)
from transporters import registrations

EXPORTERS = {"dynamo": DynamoExporter, "onnx": OnnxExporter}
both = pytest.mark.parametrize("exporter", EXPORTERS.values(), ids=EXPORTERS)
FIXED = GenerationConfig(cache_implementation="static", max_cache_len=24)


@pytest.fixture(scope="module")
def llama():
    return models.build("llama")


def sample(name="llama"):
    return models.inputs(name, 3, 7, 2)


def test_the_export_is_a_mapping_of_programs(llama):
    exported = OnnxExporter().export_for_generation(llama, sample(), OnnxConfig(dynamic=True))
    assert list(exported) == list(exported.keys()) == list(exported.components) == ["prefill", "decode"]
    assert len(exported) == 2 and "decode" in exported and "encoder" not in exported
    assert all(isinstance(program, OnnxProgram) for program in exported.values())
    assert exported["decode"] is exported.components["decode"].program is dict(exported.items())["decode"]
    with pytest.raises(KeyError, match="no component 'encoder'; the components are prefill, decode"):
        exported["encoder"]
    with pytest.raises(ExportError, match="2 components .prefill, decode."):
        exported.program
    assert len(DynamoExporter().export(llama, sample())) == 1


def test_a_config_for_each_component(llama):
    configs = {"prefill": OnnxConfig(opset_version=18), "decode": {"dynamic": True, "opset_version": 21}}
    exported = OnnxExporter().export_for_generation(llama, sample(), configs)
    opsets = {name: program.model_proto.opset_import[0].version for name, program in exported.items()}
    assert opsets == {"prefill": 18, "decode": 21}
    shapes = {name: [value.shape for value in program.session().get_inputs()][0] for name, program in exported.items()}
    assert shapes == {"prefill": [3, 7], "decode": ["batch", 1]}


@pytest.mark.parametrize("given", [OnnxConfig(), {"dynamic": False}, {}, None])
def test_a_config_for_all(llama, given):
    assert list(OnnxExporter().export_for_generation(llama, sample(), given)) == ["prefill", "decode"]


@pytest.mark.parametrize("inputs", [None, torch.ones(1, 3, dtype=torch.int64), (torch.ones(1, 3, dtype=torch.int64),)])
def test_inputs_that_are_no_dict(llama, inputs):
    with pytest.raises(ExportError, match="generate.. as a dict, not a (NoneType|Tensor|tuple)"):
        DynamoExporter().export_for_generation(llama, inputs)


def test_names_of_configs_that_are_missing_or_unknown(llama):
    with pytest.raises(
        ExportError, match="misses decode and there is no encoder, lm_head; components: prefill, decode"
    ):
        DynamoExporter().export_for_generation(
            llama, sample(), dict.fromkeys(["prefill", "encoder", "lm_head"], DynamoConfig())
        )
    with pytest.raises(ExportError, match="misses prefill; components: prefill, decode"):
        DynamoExporter().export_for_generation(llama, sample(), {"decode": {"dynamic": True}})
    with pytest.raises(ExportError, match="DynamoConfig has no field 'dynamics'"):
        DynamoExporter().export_for_generation(llama, sample(), {"dynamics": True})
    with pytest.raises(ExportError, match="takes a OnnxConfig or a dict, not a DynamoConfig"):
        OnnxExporter().export_for_generation(llama, sample(), {"prefill": OnnxConfig(), "decode": DynamoConfig()})


def test_a_component_that_fails_is_named(llama):
    def fails_for_tokens(original):
        def forward(self, hidden_states, *args, **kwargs):
            if hidden_states.shape[1] == 1:
                raise ValueError("no single tokens")
            return original(self, hidden_states, *args, **kwargs)

        return forward

    before = llama.state_dict()
    with registrations():
        register_patch("dynamo", "transformers.models.llama.modeling_llama.LlamaMLP.forward")(fails_for_tokens)
        with pytest.raises(
            ExportError, match=r"(?s)no single tokens.*in component 'decode' .LlamaForCausalLM, with input_ids"
        ):
            DynamoExporter().export_for_generation(llama, sample(), {"dynamic": True})
    assert all(torch.equal(value, llama.state_dict()[name]) for name, value in before.items())


@pytest.mark.parametrize("name", ["llama", "gemma3", "mamba", "t5", "llava"])
@both
def test_transformers_loads_every_component(exporter, name, tmp_path):
    model = models.build(name)
    exported = exporter().export_for_generation(model, sample(name), {"dynamic": True}, generation_config=None)
    exported.save_pretrained(tmp_path / "out")
    loaded = ExportedModel.from_pretrained(tmp_path / "out", trust_remote_code=True)
    assert set(loaded.components) == set(exported)
    manifest = json.loads((tmp_path / "out" / "export.json").read_text())
    assert set(manifest["components"]) == set(exported)
    driver = loops.Driver(model, exported)
    driver.components = loaded.runners
    given = models.inputs(name, 2, 9, 3, seed=1)
    with driver.in_place():
        actual = loops.greedy(model, given, count=1 if name == "t5" else 4)
    assert torch.equal(actual, loops.greedy(model, given, count=1 if name == "t5" else 4))


def test_the_folder_holds_the_generation_config(llama, tmp_path):
    DynamoExporter().export_for_generation(llama, sample(), generation_config=FIXED).save_pretrained(tmp_path / "out")
    config = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert config["cache_implementation"] == "static" and config["max_cache_len"] == 24
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == "llama"


def test_torch_updates_the_callers_cache(llama, tmp_path):
    """USER_INPUT_MUTATION: torch's module writes to the cache that it is given. It compares all attributes of the cache
    with the sample's, the batch among them."""
    exported = DynamoExporter().export_for_generation(
        llama, sample(), {"dynamic": True}, generation_config=FIXED, multi_token_decode=True
    )
    exported["decode"].save(tmp_path / "decode.pt2")
    program = torch.export.load(tmp_path / "decode.pt2")
    kinds = [spec.kind.name for spec in program.graph_signature.output_specs]
    assert kinds.count("USER_INPUT_MUTATION") == 6
    cache = StaticCache(config=llama.config, max_cache_len=24)
    cache.early_initialization(3, 2, 8, torch.float32, "cpu")
    addresses = [layer.keys.data_ptr() for layer in cache.layers]
    given = models.inputs("llama", 3, 5, 1)
    steps = loops.Steps(llama, exported["decode"], cache)
    steps.component = torch_module(program)
    chunks = zip(given["input_ids"].split([3, 1, 1], 1), given["attention_mask"].split([3, 1, 1], 1))
    logits = [steps(ids, mask)[:, -1] for ids, mask in chunks]
    assert [layer.keys.data_ptr() for layer in cache.layers] == addresses
    assert [int(layer.cumulative_length) for layer in cache.layers] == [5, 5]
    with torch.no_grad():
        expected = llama(**given).logits
    assert torch.allclose(logits[-1], expected[:, -1], atol=1e-4)


def torch_module(program):
    module, order = program.module(), program.call_spec.in_spec.children()[1].context
    return lambda **kwargs: module(**{name: kwargs[name] for name in order})


def test_onnx_pairs_share_a_buffer(llama, tmp_path):
    """Bound to one buffer, keys and values need no second one; ONNX Runtime alone."""
    import onnxruntime

    exported = OnnxExporter().export_for_generation(
        llama, sample(), {"dynamic": True}, generation_config=FIXED, multi_token_decode=True
    )
    exported["decode"].save(tmp_path / "decode.onnx")
    model = onnx.load(tmp_path / "decode.onnx")
    onnx.checker.check_model(model, full_check=True)
    shared = {entry.key: entry.value for entry in model.metadata_props}["shared_buffers"].splitlines()
    assert shared == [f"cache.layers.{layer}.{kind}" for layer in (0, 1) for kind in ("keys", "values")]
    session = onnxruntime.InferenceSession(str(tmp_path / "decode.onnx"), providers=["CPUExecutionProvider"])
    value = onnxruntime.OrtValue.ortvalue_from_numpy
    state = {name: value(torch.zeros(2, 2, 24, 8).numpy()) for name in shared}
    addresses = {name: state[name].data_ptr() for name in shared}
    lengths = [torch.zeros((), dtype=torch.int64).numpy() for _ in range(2)]
    given = models.inputs("llama", 2, 9)
    logits = None
    for at, ids in zip((0, 5, 6, 7, 8), given["input_ids"].split([5, 1, 1, 1, 1], 1)):
        rows = torch.arange(at, at + ids.shape[1])
        mask = (torch.arange(24) <= rows[:, None]).expand(2, 1, -1, -1)
        binding = session.io_binding()
        binding.bind_ortvalue_input("input_ids", value(ids.numpy()))
        binding.bind_ortvalue_input("attention_mask", value(mask.contiguous().numpy()))
        binding.bind_ortvalue_input("position_ids", value(rows.expand(2, -1).contiguous().numpy()))
        for layer, length in enumerate(lengths):
            binding.bind_ortvalue_input(f"input.cache.layers.{layer}.cumulative_length", value(length))
        for name in shared:
            binding.bind_ortvalue_input(f"input.{name}", state[name])
            binding.bind_ortvalue_output(f"output.{name}", state[name])
        binding.bind_output("logits", "cpu")
        for layer in range(2):
            binding.bind_output(f"output.cache.layers.{layer}.cumulative_length", "cpu")
        session.run_with_iobinding(binding)
        results = dict(
            zip([*[f"output.{name}" for name in shared], "logits", "length_0", "length_1"], binding.get_outputs())
        )
        logits, lengths = results["logits"].numpy(), [results["length_0"].numpy(), results["length_1"].numpy()]
    assert {name: state[name].data_ptr() for name in shared} == addresses
    with torch.no_grad():
        expected = llama(**given, cache=(cache := DynamicCache(config=llama.config))).logits
    assert torch.allclose(torch.from_numpy(logits)[:, -1], expected[:, -1], atol=1e-4)
    keys = torch.from_numpy(state["cache.layers.1.keys"].numpy())
    assert torch.allclose(keys[:, :, :9], cache.layers[1].keys, atol=1e-4) and not keys[:, :, 9:].any()
