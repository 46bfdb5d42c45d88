"""Drives exported components: through transformers' own generate(), and token by token."""

import contextlib
import functools
import inspect
import json

import torch
from transformers.exporters.utils import prepare_for_export
from transporters import DynamoProgram
from transporters.generation import modalities


def runnable(program):
    return program.module() if isinstance(program, DynamoProgram) else program


def input_names(program):
    """Names of the keyword arguments that a component takes, without those that are fixed."""
    fixed = json.loads(program.metadata["in_constants"])
    return [name for name in json.loads(program.metadata["kwargs"]) if name not in fixed]


def as_kwargs(function, args, kwargs):
    bound = inspect.signature(function).bind(*args, **kwargs)
    named = {}
    for name, value in bound.arguments.items():
        is_rest = inspect.signature(function).parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        named.update(value if is_rest else {name: value})
    return named


class Driver:
    """While `in_place` lasts, exported components answer where the model or its parts would: the first call of the
    model goes to "prefill" (or stays with the model, whose parts are components then), all later ones to "decode"."""

    def __init__(self, model, exported):
        self.model = model
        self.components = {name: runnable(program) for name, program in exported.items()}
        self.takes = {name: input_names(program) for name, program in exported.items()}
        # A model that is called once (CTC) has no decode stage.
        self.decodes = exported["decode" if "decode" in exported else "prefill"].metadata["architecture"]
        self.calls = []
        self.last = None  # what the latest call returned

    def run(self, name, module, kwargs):
        self.calls.append(name)
        takes = self.takes[name]
        if not kwargs.keys() | {"attention_mask"} >= set(takes):
            # What transformers' exporters compute from the data of the inputs ahead of the trace.
            kwargs = {**prepare_for_export(module, dict(kwargs))[1], **kwargs}
        self.last = self.components[name](**{key: value for key, value in kwargs.items() if key in takes})
        return self.last

    @contextlib.contextmanager
    def in_place(self):
        generator = self.generator()
        parts = {name: module for name, module in modalities.parts(self.model).items() if name in self.components}
        if "encoder" in self.components:
            parts["encoder"] = generator.get_encoder()
        whole, first = generator.forward, [True]

        def forward(*args, **kwargs):
            named = as_kwargs(whole, args, kwargs)
            # Where the cache is made by the first call that has none, several may have none.
            no_cache = "cache" in self.takes.get("decode", ()) and named.get("cache") is None
            is_first, first[0] = first[0] or no_cache, False
            if is_first and "prefill" not in self.components:
                return whole(*args, **kwargs)
            return self.run("prefill" if is_first else "decode", generator, named)

        replaced = {generator: functools.wraps(whole)(forward)}
        for name, module in parts.items():
            replaced[module] = self.part(name, module)
        for module, function in replaced.items():
            module.forward = function
        try:
            yield self
        finally:
            for module in replaced:
                del module.forward

    def generator(self):
        """The module that "decode" is an export of."""
        return next(module for module in self.model.modules() if type(module).__name__ == self.decodes)

    def part(self, name, module):
        original = module.forward

        @functools.wraps(original)
        def forward(*args, **kwargs):
            return self.run(name, module, as_kwargs(original, args, kwargs))

        return forward


def greedy(model, inputs, count=20, **options):
    with torch.no_grad():
        return model.generate(**inputs, max_new_tokens=count, do_sample=False, **options)


def driven(model, exported, inputs, count=20, **options):
    """The tokens of generate() when the exported components do the work, and which of them ran."""
    driver = Driver(model, exported)
    with driver.in_place():
        tokens = greedy(model, inputs, count, **options)
    return tokens, driver.calls


class Steps:
    """Calls of one decode component of a decoder-only model with several tokens or one, its cache going along."""

    def __init__(self, model, component, cache):
        self.model, self.component, self.cache = model, runnable(component), cache
        self.takes = input_names(component)
        self.mask = None

    def __call__(self, ids, mask=None):
        """Logits of the tokens `ids`; `mask` has 0 for padding among them."""
        mask = torch.ones_like(ids) if mask is None else mask
        self.mask = mask if self.mask is None else torch.cat([self.mask, mask], dim=1)
        positions = (self.mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        inputs = self.model.prepare_inputs_for_generation(
            ids, attention_mask=self.mask, cache=self.cache, position_ids=positions, is_first_iteration=False
        )
        outputs = self.component(**{name: value for name, value in inputs.items() if name in self.takes})
        self.cache = outputs.cache
        return outputs.logits
