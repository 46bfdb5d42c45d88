"""Generation of one case: the exported stages, driven by transformers' own generate(), give the tokens of the model."""

import contextlib
import copy
import dataclasses
import time

import torch

from harness import cases
from harness.case import Case
from harness.compare import Mismatch, compare, flatten
from harness.stages import labelled, reason_of, stage
from harness.ties import first_of_equals, forced_choices, kept_choices
from harness.variations import Sizes, Variation, vary

TOKENS = 20


class GenerationCase(Case):
    """A model that generates with its prompt and eager's tokens, for this prompt and for others."""

    baseline = "generate"

    def build(self):
        zoo = cases.zoo()
        model, inputs = zoo.build(self.name)
        names = zoo.generate_inputs(self.name)
        _go_on(model)
        return model, {name: value for name, value in inputs.items() if name in names}

    def vary(self, outputs) -> list[Variation]:
        # Prompts are padded on the left, what an encoder reads on either side.
        is_decoder = not self.model.config.is_encoder_decoder

        def change(sizes: Sizes) -> Sizes:
            return dataclasses.replace(sizes, pad="left") if is_decoder and sizes.pad == "right" else sizes

        def select(inputs):
            return {name: value for name, value in inputs.items() if name in self.inputs}

        zoo, model, inputs = cases.zoo(), self.model, self.inputs
        return vary(zoo, self.name, model, inputs, self.eager, self.dynamic, outputs, change, select)

    def eager(self, inputs: dict, processors=()) -> dict[str, torch.Tensor]:
        """What generate() returns, by whatever answers in place of the model."""
        options = {"logits_processor": list(processors)} if processors else {}
        with torch.no_grad():
            return flatten(
                self.model.generate(**copy.deepcopy(inputs), max_new_tokens=TOKENS, do_sample=False, **options)
            )


def _go_on(model) -> None:
    """Greedy, and no token ends the text: random models choose any."""
    for module in model.modules():
        config = getattr(module, "generation_config", None)
        if config is not None:
            config.eos_token_id, config.num_beams = None, 1


def verify(case: GenerationCase, exporter, mode: str, note, record: dict) -> None:
    """Exports the stages of a case, generates with them at all its sizes, and compares; fills `record`. Raises
    Failure."""
    start = time.perf_counter()
    with stage("export", note):
        driver = _exported(case, exporter, mode, record)
    record["export_s"] = round(time.perf_counter() - start, 4)
    record["components"] = list(driver.components)
    record["verified"] = []
    start = time.perf_counter()
    try:
        for variation in case.variations(dynamic="static" not in record):
            with labelled(variation.name):
                with stage("run", note), driver.in_place():
                    got = case.eager(variation.inputs)
                with stage("verify"):
                    unused = [name for name in driver.components if name not in driver.calls]
                    if unused:
                        raise Mismatch(f"generate never calls {', '.join(unused)}")
                    _same_tokens(case, driver, variation, got, mode, record)
            record["verified"].append(variation.name)
    finally:
        record["verify_s"] = round(time.perf_counter() - start, 4)


def _exported(case, exporter, mode, record):
    """The stages with dynamic sizes; those that can't be exported so with the sample's, which `record` says."""
    static: list[str] = []
    while True:
        try:
            return exporter.export_stages(case.model, copy.deepcopy(case.inputs), mode, static)
        except Exception as error:
            name = getattr(error, "component", None)
            # A cache that grows has no fixed size.
            if name is None or name in static or name == "decode":
                raise
            static.append(name)
            record["static"] = static
            record.setdefault("static_reason", reason_of(error))


def _same_tokens(case, driver, variation: Variation, got, mode: str, record: dict) -> None:
    """Raises Mismatch when `got` isn't what eager generates. An ONNX stage may take the first of equal scores, and a
    token may be another one where all scores are eager's but for rounding."""
    try:
        compare(variation.expected, got, case.level)
        return
    except Mismatch as mismatch:
        wrong = mismatch
    for chosen in (contextlib.nullcontext, first_of_equals) if mode == "generate-onnx" else (contextlib.nullcontext,):
        with contextlib.suppress(Mismatch, TypeError, ValueError):
            kept, forced, expected = kept_choices(), None, None
            with chosen():
                expected = case.eager(variation.inputs, [kept])
            if chosen is first_of_equals and _equal(case, expected, got):
                record["first_of_equals"] = True
                return
            forced = forced_choices(kept.scores)
            with driver.in_place():
                again = case.eager(variation.inputs, [forced])
            compare(expected, again, case.level)
            if forced.others and forced.steps == len(kept.scores):
                record["ties"] = record.get("ties", 0) + forced.others
                record.update({"first_of_equals": True} if chosen is first_of_equals else {})
                return
    raise wrong


def _equal(case, expected, got) -> bool:
    try:
        compare(expected, got, case.level)
    except Mismatch:
        return False
    return True
