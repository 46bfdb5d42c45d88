"""Export time and peak memory on one checkpoint: `cp`, this project's command line, and (with --peer) transformers' own
exporters, in one run on one machine. Writes its section of docs/benchmarks.md with --write."""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from page import write_section

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("TRANSPORTERS_BUILD", ROOT / "build"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Exports like a user of transformers would: whole process, dynamic axes, saved to a folder.
PEER = """
import sys, torch, transformers
from transformers.exporters.exporter_dynamo import DynamoConfig, DynamoExporter
from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter
checkpoint, format, out = sys.argv[1:]
model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint).eval()
ids = torch.arange(3, 13).view(2, 5)
exporter, config = (OnnxExporter(), OnnxConfig(dynamic=True)) if format == "onnx" else (
    DynamoExporter(), DynamoConfig(dynamic=True))
exported = exporter.export(model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, config)
exported.save_pretrained(out)
"""


@dataclass
class Measure:
    seconds: float
    peak_mb: float  # resident, with mapped files
    peak_anonymous_mb: float  # resident, without them


def measure(command) -> Measure:
    """Runs a command as a whole process, then flushes what it wrote."""
    os.sync()
    start = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
    peak_anonymous = 0

    def watch():
        nonlocal peak_anonymous
        while process.poll() is None:
            try:
                for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                    if line.startswith("RssAnon:"):
                        peak_anonymous = max(peak_anonymous, int(line.split()[1]))
            except (FileNotFoundError, ProcessLookupError):
                return
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    os.sync()
    seconds = time.perf_counter() - start
    watcher.join()
    if process.returncode:
        sys.exit(f"failed with exit code {process.returncode}: {command}")
    return Measure(seconds, usage.ru_maxrss / 1e3, peak_anonymous / 1e3)


def make_checkpoint(folder: Path, layers: int, hidden: int) -> Path:
    """A Qwen3-shaped checkpoint with seeded random weights."""
    import torch
    import transformers

    config = transformers.Qwen3Config(
        vocab_size=4096,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=max(hidden // 128, 1),
        head_dim=128,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    transformers.Qwen3ForCausalLM(config).save_pretrained(folder, max_shard_size="100GB")
    return folder


def run_times(ours: Path, peer: Path, prompt=64, batches=(1, 4), rounds=20) -> str:
    """Both ONNX graphs in ONNX Runtime on one prompt. They take turns, each first in every other round; medians, and
    the median of each round's ratio."""
    import numpy as np
    import onnxruntime

    sessions = [onnxruntime.InferenceSession(folder / "model.onnx") for folder in (ours, peer)]

    def seconds(session, inputs):
        start = time.perf_counter()
        session.run(["logits"], inputs)
        return time.perf_counter() - start

    lines = [f"| prompt {prompt} | ours, ms | transformers' graph, ms | ours / theirs |", "|---|---|---|---|"]
    for batch in batches:
        ids = np.arange(3, 3 + batch * prompt).reshape(batch, prompt) % 4000
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        times = np.zeros((rounds + 1, 2))
        for i in range(rounds + 1):
            for which in (0, 1) if i % 2 else (1, 0):
                times[i, which] = seconds(sessions[which], inputs)
        times = times[1:]  # the first round warms up
        first, second = np.median(times, axis=0) * 1e3
        lines.append(f"| batch {batch} | {first:.0f} | {second:.0f} | {np.median(times[:, 0] / times[:, 1]):.2f} |")
    return "\n".join(lines)


def table(rows) -> str:
    lines = ["| what | seconds | times `cp` | peak MB | of it not mapped files, MB |", "|---|---|---|---|---|"]
    copy = rows[0][1].seconds
    for name, best in rows:
        lines.append(
            f"| {name} | {best.seconds:.2f} | {best.seconds / copy:.1f} | {best.peak_mb:.0f} | {best.peak_anonymous_mb:.0f} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--repeat", type=int, default=3, help="runs of cp and of ours; the fastest counts")
    parser.add_argument("--peer", action="store_true", help="also time transformers' exporters, once (minutes)")
    parser.add_argument("--write", action="store_true", help="write the section of docs/benchmarks.md")
    parser.add_argument("--folder", type=Path, help="where checkpoint and exports go (default: a temporary folder)")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        scratch = Path(scratch)
        checkpoint = make_checkpoint(scratch / "checkpoint", arguments.layers, arguments.hidden)
        weights = checkpoint / "model.safetensors"
        weights.read_bytes()  # into the page cache, for all alike

        def best(command, target: Path, repeat) -> Measure:
            measures = []
            for _ in range(repeat):
                shutil.rmtree(target, ignore_errors=True)
                measures.append(measure(command))
            shutil.rmtree(target, ignore_errors=True)
            return min(measures, key=lambda one: one.seconds)

        (scratch / "cp").mkdir()
        rows = [
            (
                "`cp` of the weights",
                min(
                    (measure(["cp", weights, scratch / "cp" / "w"]) for _ in range(arguments.repeat)),
                    key=lambda one: one.seconds,
                ),
            )
        ]
        shutil.rmtree(scratch / "cp")
        for format in ("onnx", "dynamo"):
            command = [
                BUILD / "transporters",
                "export",
                checkpoint,
                "--to",
                format,
                "--dynamic",
                "--out",
                scratch / "ours",
            ]
            rows.append((f"transporters, {format}", best(command, scratch / "ours", arguments.repeat)))
        times = ""
        if arguments.peer:
            peers = {
                format: [sys.executable, "-c", PEER, checkpoint, format, scratch / "peer"]
                for format in ("dynamo", "onnx")
            }
            rows.append(("transformers' exporter, dynamo", best(peers["dynamo"], scratch / "peer", 1)))
            rows.append(("transformers' exporter, onnx", measure(peers["onnx"])))
            export = [
                BUILD / "transporters",
                "export",
                checkpoint,
                "--to",
                "onnx",
                "--dynamic",
                "--out",
                scratch / "ours",
            ]
            measure(export)
            times = "\n" + run_times(scratch / "ours", scratch / "peer") + "\n"

        size = weights.stat().st_size / 1e9
        text = (
            f"Qwen3 shape, {arguments.layers} layers, hidden {arguments.hidden}, float32, {size:.2f} GB of weights; whole\n"
            f"processes, to the disk; {os.cpu_count()} cores, {platform.machine()}.\n\n{table(rows)}\n{times}"
        )
        print(text)
        if arguments.write:
            command = "make bench ARGS='--peer --write'"
            intro = f"Made by `{command}`; the fastest of {arguments.repeat} runs of `cp` and of ours, one of the peer."
            write_section("One large model", f"{intro}\n\n{text}")


if __name__ == "__main__":
    main()
