"""Exports of models that generate: one graph per stage, with the cache going through it."""

from .decompose import decompose_for_generation

__all__ = ["decompose_for_generation"]
