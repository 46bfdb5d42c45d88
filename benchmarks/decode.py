"""Decode speed per token in ONNX Runtime: the decode graph of the command line's export against that of transformers'
exporter, on one checkpoint, in one process. They take turns, a whole generation each; ratios are of pairs.

    python benchmarks/decode.py CHECKPOINT [--tokens 64] [--prompt 64] [--rounds 7] [--folder DIR] [--write]
"""

import argparse
import os
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
from page import write_section

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("TRANSPORTERS_BUILD", ROOT / "build"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}


def export_ours(checkpoint: Path, out: Path, static: int | None) -> Path:
    command = [BUILD / "transporters", "export", checkpoint, "--to", "onnx", "--generation", "--dynamic", "--out", out]
    if static:
        command += ["--static-cache", str(static), "--multi-token-decode"]
    subprocess.run(command, check=True, capture_output=True)
    return out


def export_theirs(checkpoint: Path, out: Path) -> Path:
    """With a cache that grows: the graph for a cache of fixed size (transformers 5.24, torch 2.13) fails in ONNX
    Runtime 1.32 at an Expand."""
    import torch
    import transformers
    from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype="float32").eval()
    ids = torch.arange(3, 13).view(2, 5)
    mask = torch.ones_like(ids)
    mask[0, 0] = 0
    exported = OnnxExporter().export_for_generation(
        model, {"input_ids": ids, "attention_mask": mask}, OnnxConfig(dynamic=True)
    )
    exported.save_pretrained(out)
    return out


def bare(name: str) -> str:
    return name.removeprefix("input.").removeprefix("output.")


class Loop:
    """Greedy generation with the stages of a folder, one sequence without padding; values stay in ONNX Runtime."""

    def __init__(self, folder: Path, static: int | None, in_place: bool = False):
        self.static, self.in_place = static, in_place
        self.sessions = {}
        for name in ["decode"] if static else ["prefill", "decode"]:
            file = next(path for path in folder.rglob("*.onnx") if name in str(path.relative_to(folder)))
            self.sessions[name] = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])

    def feed(self, name: str, value, ids, past):
        count = ids.shape[1]
        if name == "input_ids":
            return ids
        if name == "position_ids":
            return np.arange(past, past + count)[None]
        if name == "attention_mask" and len(value.shape) == 4:
            allowed = (np.arange(self.static) <= np.arange(past, past + count)[:, None])[None, None]
            if value.type == "tensor(bool)":
                return allowed
            return np.where(allowed, 0, np.finfo(np.float32).min).astype(np.float32)
        if name == "attention_mask":
            return np.ones((1, past + count), np.int64)
        raise SystemExit(f"input {name!r} is not known")

    def empty(self, value):
        sizes = [size if isinstance(size, int) else 0 for size in value.shape]
        if len(sizes) == 4:
            sizes[0], sizes[2] = 1, self.static or 0
        return np.zeros(sizes, TYPES[value.type])

    def run(self, prompt: np.ndarray, tokens: int) -> tuple[list[int], list[float]]:
        """The new tokens, and the seconds of each call of the decode graph after the prompt."""
        ids, past, made, seconds, cache = prompt, 0, [], [], {}
        for step in range(tokens):
            session = self.sessions["prefill" if step == 0 and "prefill" in self.sessions else "decode"]
            feeds = {}
            for value in session.get_inputs():
                name = bare(value.name)
                if "cache." not in name:
                    feeds[value.name] = onnxruntime.OrtValue.ortvalue_from_numpy(self.feed(name, value, ids, past))
                else:
                    feeds[value.name] = cache.get(name) or onnxruntime.OrtValue.ortvalue_from_numpy(self.empty(value))
            names = [
                value.name for value in session.get_outputs() if "cache" in value.name or value.name.endswith("logits")
            ]
            start = time.perf_counter()
            outputs = self.call(session, names, feeds)
            elapsed = time.perf_counter() - start
            if step > 0:
                seconds.append(elapsed)
            cache = {bare(name): value for name, value in feeds.items() if "cache." in name}
            cache |= {bare(name): value for name, value in outputs.items()}
            past += ids.shape[1]
            ids = cache.pop("logits").numpy()[:, -1].argmax(-1)[:, None]
            made.append(int(ids[0, 0]))
        return made, seconds

    def call(self, session, names, feeds):
        if not self.in_place:
            return dict(zip(names, session.run_with_ort_values(names, feeds)))
        shared = session.get_modelmeta().custom_metadata_map.get("shared_buffers", "").split("\n")
        binding = session.io_binding()
        for name, value in feeds.items():
            binding.bind_ortvalue_input(name, value)
        for name in names:
            if bare(name) in shared:
                binding.bind_ortvalue_output(name, feeds[f"input.{bare(name)}"])
            else:
                binding.bind_output(name)
        session.run_with_iobinding(binding)
        # Buffers that were written in place stay those of the caller, who holds their memory.
        return {name: value for name, value in zip(names, binding.get_outputs()) if bare(name) not in shared}


def compare(loops: dict[str, Loop], prompt, tokens, rounds) -> dict[str, tuple[float, float]]:
    """For each loop: milliseconds a token (median over rounds of the mean over tokens), and the median of its ratio to
    the last loop in the same round. All must make the same tokens."""
    per_token = {name: [] for name in loops}
    made = {}
    for round in range(rounds + 1):
        order = list(loops) if round % 2 else list(reversed(loops))
        for name in order:
            made[name], seconds = loops[name].run(prompt, tokens)
            if round > 0:  # the first warms up
                per_token[name].append(statistics.mean(seconds) * 1e3)
    if len({tuple(row) for row in made.values()}) > 1:
        raise SystemExit(f"the graphs make different tokens: {made}")
    last = per_token[list(loops)[-1]]
    return {
        name: (statistics.median(times), statistics.median(a / b for a, b in zip(times, last)))
        for name, times in per_token.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="keeps the exports; those of transformers (minutes) are used again")
    parser.add_argument("--write", action="store_true", help="write the section of docs/benchmarks.md")
    parser.add_argument("--name", default="", help="what the checkpoint is, for the page")
    arguments = parser.parse_args()
    length = arguments.prompt + arguments.tokens
    prompt = (np.arange(arguments.prompt) * 37 + 100)[None] % 4000
    lines = ["| cache | ms a token | to transformers' |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as temporary:
        scratch = arguments.folder or Path(temporary)
        theirs = scratch / "theirs"
        if not theirs.is_dir():
            export_theirs(arguments.checkpoint, theirs)
        peer = Loop(theirs, None)
        loops = {"growing": Loop(export_ours(arguments.checkpoint, scratch / "growing", None), None)}
        static = export_ours(arguments.checkpoint, scratch / "static", length)
        loops[f"static, {length}"] = Loop(static, length)
        loops[f"static, {length}, in place"] = Loop(static, length, in_place=True)
        results = compare({**loops, "transformers' graph, growing": peer}, prompt, arguments.tokens, arguments.rounds)
        lines += [f"| {name} | {milliseconds:.2f} | {ratio:.2f} |" for name, (milliseconds, ratio) in results.items()]
        print("\n".join(lines), flush=True)
    table = "\n".join(lines)
    if arguments.write:
        write_section(
            "Decoding in ONNX Runtime",
            f"Made by `python benchmarks/decode.py CHECKPOINT --write`: {arguments.name or arguments.checkpoint.name}, float32, one "
            f"sequence, {arguments.tokens} tokens after a prompt of {arguments.prompt}; {arguments.rounds} rounds in turn, "
            f"{os.cpu_count()} cores, {platform.machine()}. All graphs make the same tokens.\n\n{table}",
        )


if __name__ == "__main__":
    main()
