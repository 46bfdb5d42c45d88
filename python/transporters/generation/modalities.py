"""The sub-modules of multimodal models that are graphs of their own."""

from __future__ import annotations

import torch

# No accessor of transformers tells a projector; these are its attribute's names.
PROJECTORS = ("multi_modal_projector", "connector", "embed_vision", "embed_audio")


def parts(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """Name -> sub-module of a model that has an encoder for images or audio and a language model; {} of others."""
    encoders = {}
    for modality in ("image", "audio"):
        encoder = model.get_encoder(modality=modality)
        if encoder is not None and encoder is not model:
            encoders[f"{modality}_encoder"] = encoder
    decoder = model.get_decoder()
    if not encoders or decoder is None or decoder is model:
        return {}
    found = {**encoders, "language_model": decoder}
    for name in (*PROJECTORS, "lm_head"):
        for owner in (model, model.base_model):
            module = getattr(owner, name, None)
            if isinstance(module, torch.nn.Module) and not any(module is other for other in found.values()):
                found.setdefault(name, module)
    return found
