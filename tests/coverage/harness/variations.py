"""Inputs of other sizes, padding and values for a case's model: the zoo's own input builder, run with other
constants."""

import contextlib
import dataclasses
from collections.abc import Callable

import torch

from harness.compare import flatten


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes that the zoo's input builder is run with; the defaults are its own."""

    batch: int = 2
    seq: int = 10
    dec_seq: int = 7
    text: int = 6  # text tokens around image and audio placeholders
    audio: int = 7680  # samples of raw audio
    frames: float = 1.0  # factor of a spectrogram's length
    image: tuple[float, float] = (1.0, 1.0)  # factors of height and width
    images: int = 1  # per sample, where a model takes several
    grids: tuple[tuple[int, int, int], ...] = ((1, 4, 4),)  # patch grids of one sample's images, where they are packed
    pad: str = "left"  # left, right, none
    seed: int = 0


# Per variation the sizes to try, from the farthest of the traced ones to the nearest; the first that eager takes
# counts.
OTHER_VALUES = ("values", (Sizes(seed=1, pad="right"), Sizes(seed=1)))
OTHER_SIZES = (
    (
        "batch 1",
        (
            Sizes(1, 13, 9, 9, 9600, 1.25, images=2, grids=((1, 4, 4), (1, 4, 8)), pad="none", seed=2),
            Sizes(1, 13, 9, 9, 9600, 1.25, grids=((1, 4, 8),), pad="none", seed=2),
            Sizes(1, 13, 9, 9, 9600, pad="none", seed=2),
            Sizes(1, 13, 9, 9, pad="none", seed=2),
            Sizes(1, 16, 8, 12, pad="none", seed=2),
            Sizes(1, pad="none", seed=2),
            Sizes(1, image=(4.5, 4.5), pad="none", seed=2),  # smaller, the last feature map is too small to normalise
        ),
    ),
    (
        "batch 3",
        (
            Sizes(3, 8, 5, 8, 6400, 0.75, grids=((1, 8, 4),), pad="right", seed=3),
            Sizes(3, 8, 5, 8, 6400, grids=((1, 8, 4),), pad="right", seed=3),
            Sizes(3, 8, 5, 8, 6400, 0.75, seed=3),
            Sizes(3, 16, 8, 12, pad="right", seed=3),
            Sizes(3, 16, 8, 12, seed=3),
            Sizes(3, pad="right", seed=3),
            Sizes(3, seed=3),
        ),
    ),
    (
        "image",
        (
            Sizes(image=(1.5, 2.0), seed=4),
            Sizes(image=(2.0, 2.0), seed=4),
            Sizes(image=(0.5, 0.5), seed=4),
        ),
    ),
    # As many images as traced, for models that return a tensor for each.
    ("grids", (Sizes(text=9, grids=((1, 8, 4),), seed=5), Sizes(grids=((1, 8, 4),), seed=5))),
)


@dataclasses.dataclass
class Variation:
    """Inputs that eager takes, and what it makes of them."""

    name: str
    inputs: dict
    expected: dict[str, torch.Tensor]
    sizes: Sizes | None = None


def signature(inputs: dict) -> dict[str, list[int]]:
    """Sizes of every tensor among the inputs, by name."""
    return {name: list(tensor.shape) for name, tensor in flatten(inputs).items()}


def rebuild(zoo, case: str, model, sizes: Sizes) -> dict:
    """Inputs of a case at other sizes, for the model as it is. Raises whatever the zoo's builder raises."""
    with using(zoo, sizes), torch.no_grad():
        return zoo.make_inputs(zoo.Ctx(case, model, sizes.seed))


def vary(
    zoo,
    case: str,
    model,
    inputs: dict,
    run: Callable[[dict], dict],
    dynamic: bool,
    outputs,
    change: Callable[[Sizes], Sizes] = lambda sizes: sizes,
    select: Callable[[dict], dict] = lambda inputs: inputs,
) -> list[Variation]:
    """Other values and padding at the traced sizes and, with dynamic, the other sizes: those that `run`, eager's
    function, takes. A model that takes only the traced sizes has none of the latter. Sizes for which eager returns
    others than the tensors named `outputs` are left out (models that return a tensor for each image): a program returns
    a fixed number of them. `change` makes other sizes of those tried here, `select` what `run` takes of the zoo's
    inputs."""
    base = signature(inputs)
    found = []
    for name, candidates in (OTHER_VALUES, *(OTHER_SIZES if dynamic else ())):
        tried = set()
        for sizes in map(change, candidates):
            try:
                if name == "grids" and not any("grid" in key for key in inputs):
                    continue
                other = select(rebuild(zoo, case, model, sizes))
                shapes = signature(other)
                if other.keys() != inputs.keys() or (shapes == base) != (name == "values") or repr(shapes) in tried:
                    continue
                if name != "values":
                    tried.add(repr(shapes))
                expected = run(other)
                if expected.keys() != set(outputs):
                    continue
            except Exception:  # whatever model code raises at sizes that it isn't made for
                continue
            found.append(Variation(name, other, expected, sizes))
            break
    return found


@contextlib.contextmanager
def using(zoo, sizes: Sizes):
    """The zoo's input builder with other constants, within the block. Weights and configs are none of its business."""
    with contextlib.ExitStack() as stack:

        def put(owner, name, value):
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)

        put(zoo, "BATCH", sizes.batch)
        put(zoo, "SEQ", sizes.seq)
        put(zoo, "DEC_SEQ", sizes.dec_seq)
        put(zoo, "AUDIO_LEN", sizes.audio)
        # Defaults hold the constants' values from when the functions were made.
        put(zoo.pixel_values, "__defaults__", (sizes.batch,))
        put(zoo.text_inputs, "__defaults__", (sizes.batch, sizes.seq, 2))
        put(zoo.placeholder_inputs, "__defaults__", (sizes.batch, sizes.text, 2))
        put(zoo.patches, "__defaults__", (sizes.grids * sizes.batch, None))
        put(zoo.Ctx, "mask", lambda ctx, b, n, left=2: padding_mask(b, n, left, sizes.pad))
        put(zoo.Ctx, "find", _find_scaled(zoo.Ctx.find, sizes.frames))
        put(zoo, "image_hw", _image_hw_scaled(zoo.image_hw, sizes.image))
        put(zoo, "audio_inputs", _audio_inputs(zoo, zoo.audio_inputs, sizes))
        put(zoo, "image_inputs", _image_inputs(zoo, zoo.image_inputs, sizes))
        overrides = {
            **zoo.INPUT_OVERRIDES,
            **dict.fromkeys(
                ("MllamaModel", "MllamaForConditionalGeneration", "MllamaVisionModel"), _mllama(zoo, sizes)
            ),
            **dict.fromkeys(("timesfm", "timesfm2_5"), _timesfm(zoo, sizes, zoo.INPUT_OVERRIDES["timesfm"])),
            "inkling2_vision": lambda ctx: _inkling(ctx, sizes),
            **_frames(zoo, sizes),
        }
        put(zoo, "INPUT_OVERRIDES", overrides)
        yield


def padding_mask(batch: int, length: int, amount: int, side: str) -> torch.Tensor:
    """Ones, and zeros at one side: most in the first row, one fewer in each next one."""
    mask = torch.ones(batch, length, dtype=torch.long)
    if side == "none":
        return mask
    if side == "left":
        mask[0, :amount] = 0
        return mask
    for row in range(min(batch, amount)):
        mask[row, length - (amount - row) :] = 0
    return mask


def _find_scaled(find, factor):
    def scaled(ctx, *names, **options):
        value = find(ctx, *names, **options)
        return int(value * factor) if names[:1] == ("max_source_positions",) else value

    return scaled


def _image_hw_scaled(image_hw, factors):
    def scaled(ctx):
        height, width = image_hw(ctx)
        return int(height * factors[0]), int(width * factors[1])

    return scaled


def _audio_inputs(zoo, audio_inputs, sizes):
    """The zoo's audio inputs, which take a second sample for granted; with right padding also the last sample is
    short."""

    def inputs(ctx):
        if sizes.batch > 1:
            out = audio_inputs(ctx)
        else:
            zoo.BATCH = 2
            out = {name: tensor[:1] for name, tensor in audio_inputs(ctx).items()}
            zoo.BATCH = 1
        for name, tensor in out.items():
            if name.endswith("mask") and sizes.pad == "right":
                tensor[-1, ..., -(tensor.shape[-1] // 4) :] = 0
        return out

    return inputs


def _image_inputs(zoo, image_inputs, sizes):
    """The zoo's image inputs where it takes two images for granted, or one of a sample."""

    def inputs(ctx):
        if ctx.model_type.startswith("inkling2") and "image_grid_thw" in ctx.params:
            return _inkling(ctx, sizes)
        out = image_inputs(ctx)
        grid = out.get("image_grid_thw", out.get("grid_thw"))
        for key in ("image_merge_sizes", "merge_sizes"):
            if key in out:
                out[key] = out[key][:1].repeat(len(grid))
        if ctx.model_type in zoo.MULTI_IMAGE and sizes.images > 1:
            pixels = out["pixel_values"]
            out["pixel_values"] = ctx.floats(pixels.shape[0], sizes.images, *pixels.shape[2:])
        return out

    return inputs


def _inkling(ctx, sizes):
    images = sizes.batch
    return {"pixel_values": ctx.floats(16 * images, 8, 8, 3), "image_grid_thw": torch.tensor([[1, 4, 4]] * images)}


def _frames(zoo, sizes):
    """Inputs with a time axis that the zoo gives one length."""
    batch, scaled = sizes.batch, lambda frames: int(frames * sizes.frames)

    def latents(ctx):
        return {"latents": ctx.floats(batch, zoo.H, scaled(8))}

    return {
        "mimi_decoder": latents,
        "pocket_tts_audio_tokenizer_decoder": latents,
        "gemma3n_audio": lambda ctx: {
            "audio_mel": ctx.floats(batch, scaled(32), ctx.config.input_feat_size),
            "audio_mel_mask": torch.zeros(batch, scaled(32), dtype=torch.bool),
        },
        "fun_asr_nano_encoder": lambda ctx: {
            "input_features": ctx.floats(batch, scaled(12), ctx.config.input_size),
            "input_features_mask": torch.ones(batch, scaled(12), dtype=torch.long),
        },
    }


def _timesfm(zoo, sizes, original):
    def inputs(ctx):
        out = original(ctx)
        if isinstance(out["past_values"], list):
            out["past_values"] = [ctx.floats(64) for _ in range(sizes.batch)]
        return out

    return inputs


def _mllama(zoo, sizes):
    """Images of one and of two tiles in turn."""

    def inputs(ctx):
        alone = ctx.cls_name == "MllamaVisionModel"
        vision = ctx.config if alone else ctx.config.vision_config
        tiles = vision.max_num_tiles
        used = [1 + row % 2 for row in range(sizes.batch)]
        out = {
            "pixel_values": ctx.floats(
                sizes.batch, 1, tiles, vision.num_channels, vision.image_size, vision.image_size
            ),
            "aspect_ratio_ids": torch.tensor([[count] for count in used]),
            "aspect_ratio_mask": torch.tensor([[[1] * count + [0] * (tiles - count)] for count in used]),
        }
        if not alone:
            out.update(zoo.text_inputs(ctx))
            mask = out["aspect_ratio_mask"].unsqueeze(1)
            out["cross_attention_mask"] = mask.expand(sizes.batch, sizes.seq, 1, tiles).contiguous()
        return out

    return inputs
