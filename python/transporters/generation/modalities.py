"""The sub-modules of multimodal models that are graphs of their own."""

from __future__ import annotations

import torch

# No accessor of transformers tells a projector; these are its attribute's names.
PROJECTORS = ("multi_modal_projector", "connector", "embed_vision", "embed_audio")


def parts(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """Name -> sub-module of a model that has an encoder for images or audio and a language model; {} of others."""
    encoders, decoder = {}, model.get_decoder()
    for modality in ("image", "audio"):
        encoder = model.get_encoder(modality=modality)
        # A model without one may answer with another of its parts.
        if encoder is not None and not any(encoder is other for other in (model, decoder, *encoders.values())):
            encoders[f"{modality}_encoder"] = encoder
    if not encoders or decoder is None or decoder is model:
        return {}
    found = {**encoders, "language_model": decoder}
    for name in (*PROJECTORS, "lm_head"):
        for owner in (model, model.base_model):
            module = getattr(owner, name, None)
            if isinstance(module, torch.nn.Module) and not any(module is other for other in found.values()):
                found.setdefault(name, module)
    return found


def generators(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The model and those of its parts that generate themselves."""
    return [module for module in model.modules() if module is model or _generates(module)]


def _generates(module: torch.nn.Module) -> bool:
    return hasattr(module, "generate") and hasattr(module, "can_generate") and module.can_generate()
