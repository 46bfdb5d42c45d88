"""The zoo of tiny models: where it is, its cases, and what kind of model a case is."""

import functools
import importlib.util
import json
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ZOO_FILE = "tiny_models.py"

# By the class names of a model's own modules: configs name the same thing in too many ways.
MOE = re.compile(r"moe|experts|sparsemlp|switchtransformers|nllbmoe|mixtureof", re.IGNORECASE)
SSM = re.compile(
    r"mamba|ssm|deltanet|deltaattention|recurrentblock|rglru|rwkv|mlstm|slstm|lightningattention|shortconv|linearattn",
    re.IGNORECASE,
)


class ZooMissing(FileNotFoundError):
    """The folder with tiny_models.py is not where it is looked for."""


def zoo_folder() -> Path:
    """The folder of tiny_models.py: TRANSPORTERS_ZOO, or `../shared/zoo` beside the repository, also from a worktree.

    Raises ZooMissing, which lists the places looked at."""
    if os.environ.get("TRANSPORTERS_ZOO"):
        places = [Path(os.environ["TRANSPORTERS_ZOO"])]
    else:
        places = [root.parent / "shared" / "zoo" for root in (ROOT, main_worktree()) if root]
    for place in places:
        if (place / ZOO_FILE).is_file():
            return place
    looked = ", ".join(str(place / ZOO_FILE) for place in places)
    raise ZooMissing(f"the zoo of tiny models is missing: looked for {looked}. Set TRANSPORTERS_ZOO to its folder.")


def main_worktree() -> Path | None:
    """The folder of the repository that this worktree belongs to; None outside of git."""
    try:
        common = subprocess.run(
            ["git", "-C", str(ROOT), "rev-parse", "--path-format=absolute", "--git-common-dir"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return Path(common).parent


@functools.lru_cache(None)
def zoo():
    """The module tiny_models. Imports torch and transformers."""
    path = zoo_folder() / ZOO_FILE
    spec = importlib.util.spec_from_file_location("tiny_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.lru_cache(None)
def recorded() -> dict[str, dict]:
    """What results.json says of each case; a hint only: eager decides which cases count."""
    path = zoo_folder() / "results.json"
    return {record["case"]: record for record in json.loads(path.read_text())} if path.is_file() else {}


def select(only: str | None = None, sample: int | None = None, seed: int = 0, shard: str | None = None) -> list[str]:
    """Case ids, sorted: those that match a regular expression, a random sample of them, the shard "i/n" (from 0) of
    them. Cases stay beside others of their model type: a worker then imports each modelling file once."""
    import random

    names = [name for name in zoo().list_cases() if not only or re.search(only, name)]
    if sample is not None and sample < len(names):
        names = sorted(random.Random(seed).sample(names, sample))
    if shard:
        index, count = map(int, shard.split("/"))
        if not 0 <= index < count:
            raise ValueError(f"--shard {shard}: expected i/n with 0 <= i < n")
        names = names[index * len(names) // count : (index + 1) * len(names) // count]
    return names


def generates(name: str) -> bool:
    """Whether a case's class has a generate(); not when it can't be imported here."""
    try:
        return zoo().generative(name)
    except Exception:
        return False


def group(name: str) -> str:
    """text, vision, audio, multimodal or other; "other" also for classes that can't be imported here."""
    try:
        return zoo().group(name)
    except Exception:
        return recorded().get(name, {}).get("group", "other")


def families(model) -> list[str]:
    """Of MoE, SSM and encoder-decoder, those that a model is."""
    names = {type(module).__name__ for module in model.modules()}
    found = []
    if any(MOE.search(name) for name in names - {type(model).__name__}):
        found.append("MoE")
    if any(SSM.search(name) for name in names):
        found.append("SSM")
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        found.append("encoder-decoder")
    return found
