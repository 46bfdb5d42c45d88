"""The stages of a model that generates, each with what generate() calls it with."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch

from .. import state, transformers_support
from .._C import ExportError
from ..patches import cache_layers
from ..registry import replaced
from . import capture, modalities, multi_token

Stages = dict[str, tuple[torch.nn.Module, dict[str, Any]]]


def decompose_for_generation(
    model: torch.nn.Module, inputs: Mapping[str, Any], generation_config: Any = None, multi_token_decode: bool = False
) -> Stages:
    """Name -> (module, keyword arguments) of each stage, as one run of ``model.generate(**inputs)`` calls it.

    "prefill" and "decode" are the whole model with the prompt and with the token after it. A multimodal model has, in
    place of "prefill", its parts: "image_encoder", "audio_encoder", its projector under its own name, "language_model"
    and "lm_head"; an encoder-decoder has "encoder" besides. Where generate() hands over to a part of the model
    (BLIP-2), "prefill" and "decode" are that part; where it calls the model once for all tokens (CTC), there is
    "prefill" only.

    inputs: what generate takes. Sizes and types matter, values hardly.
    generation_config: the model's own when None. ``GenerationConfig(cache_implementation="static", max_cache_len=...)``
        gives caches of a fixed size.
    multi_token_decode: "decode" is called with two tokens, so that an export with dynamic sizes takes any number: the
        prompt, when the cache is empty, a chunk of it, or one token.

    Raises ExportError when the model can't generate from these inputs, and naming the stage that does not run. The
    model is left as it was.
    """
    if not transformers_support.is_transformers_model(model) or not hasattr(model, "generate"):
        raise ExportError(f"[generation] a transformers model that generates is expected, not a {type(model).__name__}")
    _check(inputs, generation_config)
    first, steps = _decode_steps(model, inputs, multi_token_decode)
    config = copy.deepcopy(generation_config if generation_config is not None else model.generation_config)
    # How tokens are chosen, and of how many sequences, is no matter of the stages.
    config.num_beams = config.num_return_sequences = 1
    config.do_sample = False
    config.max_new_tokens = config.min_new_tokens = steps
    config.max_length = config.min_length = None

    generators = modalities.generators(model)
    parts = modalities.parts(model)
    encoders = [module.get_encoder() for module in generators if module.config.is_encoder_decoder]
    with state.preserved(model), torch.random.fork_rng(devices=[]), replaced(cache_layers.entries()):
        modules = [*generators, *encoders, *parts.values()]
        padded = _with_padding(model, inputs)
        calls = _generate(model, padded, config, modules) or _generate(model, inputs, config, modules)
        generator = next((module for module in generators if len(calls[module]) >= steps), None)
        if generator is None and len(calls[model]) == 1 and not multi_token_decode:
            _run("prefill", model, calls[model][0])
            return {"prefill": (model, calls[model][0])}
        if generator is None:
            raise ExportError(
                f"[generation] {type(model).__name__}.generate calls the model {len(calls[model])} times for {steps} tokens, "
                "so it has no prefill and decode stage of its own"
            )
        if generator is not model:  # it generates with a part of itself, and gives that what its other parts make
            parts = {name: module for name, module in parts.items() if not _holds(generator, module)}
        is_split = generator is model and bool(parts)
        if generator.config.is_encoder_decoder and not is_split:
            parts["encoder"] = generator.get_encoder()
        stages: Stages = {name: (module, calls[module][0]) for name, module in parts.items() if calls[module]}
        whole = calls[generator]
        if not is_split:
            stages["prefill"] = (generator, whole[0])
        decode = whole[first:steps]
        stages["decode"] = (generator, multi_token.merged(decode) if multi_token_decode else decode[0])
        outputs = {name: _run(name, module, kwargs) for name, (module, kwargs) in stages.items()}
        if multi_token_decode:
            multi_token.check(generator, outputs["decode"], decode)
    return stages


def _check(inputs: Any, generation_config: Any) -> None:
    from transformers import GenerationConfig

    if not isinstance(inputs, Mapping):
        raise ExportError(
            f"[generation] inputs are the keyword arguments of generate() as a dict, not a {type(inputs).__name__}; ids go "
            'into one: {"input_ids": ids}'
        )
    for name, value in inputs.items():
        if type(value).__module__ == "numpy" or isinstance(value, (list, tuple)):
            raise ExportError(
                f"[generation] '{name}' is a {type(value).__name__}: generate() takes tensors; torch.as_tensor() makes one"
            )
    if generation_config is not None and not isinstance(generation_config, GenerationConfig):
        raise ExportError(
            f"[generation] generation_config is a transformers.GenerationConfig, not a {type(generation_config).__name__}; "
            "GenerationConfig(**fields) makes one"
        )


def _decode_steps(model: torch.nn.Module, inputs: Mapping[str, Any], multi_token_decode: bool) -> tuple[int, int]:
    """The call of the model that is its decode stage, and how many calls there are up to the end of that: after a
    prompt of one token (an encoder-decoder's start) the second, since a cache of one token tells less of the sizes."""
    ids = inputs.get("input_ids")
    is_short = model.config.is_encoder_decoder or (isinstance(ids, torch.Tensor) and ids.shape[-1] == 1)
    first = 2 if is_short else 1
    return first, first + (2 if multi_token_decode else 1)


def _holds(module: torch.nn.Module, other: torch.nn.Module) -> bool:
    return any(inner is other for inner in module.modules())


def _generate(
    model: torch.nn.Module, inputs: Mapping[str, Any] | None, config: Any, modules: list[torch.nn.Module]
) -> capture.Calls:
    """The calls of these modules; {} without inputs, or where changed inputs do not serve."""
    if inputs is None:
        return {}
    with capture.recorded(modules) as calls:
        try:
            model.generate(**copy.deepcopy(dict(inputs)), generation_config=copy.deepcopy(config))
        except Exception as error:
            if isinstance(inputs, _Padded):
                return {}
            raise ExportError(
                f"[generation] {type(model).__name__}.generate fails with {', '.join(inputs)}: "
                f"{type(error).__name__}: {error}"
            ) from error
    return calls


class _Padded(dict):
    """Inputs with padding where the caller's have none."""


def _with_padding(model: torch.nn.Module, inputs: Mapping[str, Any]) -> _Padded | None:
    """The inputs with a token of padding: generate() drops a mask that has none, so that a sample without padding would
    give stages for such prompts only. None where that is not so."""
    mask = inputs.get("attention_mask")
    if model.config.is_encoder_decoder or not isinstance(mask, torch.Tensor) or mask.dim() != 2 or mask.shape[1] < 2:
        return None
    if not (mask == 1).all():
        return None
    mask = mask.clone()
    mask[0, 0] = 0
    return _Padded(inputs, attention_mask=mask)


def _run(name: str, module: torch.nn.Module, kwargs: dict[str, Any]) -> Any:
    try:
        with torch.no_grad():
            return module(**copy.deepcopy(kwargs))
    except Exception as error:
        raise ExportError(
            f"[generation] stage '{name}' ({type(module).__name__}) does not run with {', '.join(kwargs)}: "
            f"{type(error).__name__}: {error}"
        ) from error
