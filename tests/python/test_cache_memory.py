"""A cache of fixed size is written in place: no run of the decode graph has a second copy of it, shown by the most
memory that a process had."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import ROOT

LAYERS, HEADS, HEAD_DIM = 8, 4, 16
SMALL, LARGE = 64, 200_000
# What attention may need besides: keys and values of one layer.
TEMPORARY = 2 / LAYERS
CACHE_BYTES = LAYERS * 2 * HEADS * HEAD_DIM * 4 * (LARGE - SMALL)


@pytest.fixture(scope="module")
def exports(cli, tiny_checkpoint, tmp_path_factory):
    """exports("onnx", length): an export with a cache for so many tokens."""
    made = {}

    def make(format, length):
        if (format, length) not in made:
            sizes = dict(hidden_size=HEADS * HEAD_DIM, num_attention_heads=HEADS, num_key_value_heads=HEADS)
            checkpoint = tiny_checkpoint("llama", num_hidden_layers=LAYERS, max_position_embeddings=LARGE, **sizes)
            out = tmp_path_factory.mktemp(format)
            options = ["--generation", "--dynamic", "--multi-token-decode", "--static-cache", length, "--batch", 1]
            cli("export", checkpoint, "--to", format, "--out", out, *options)
            made[format, length] = out
        return made[format, length]

    return make


def peak_bytes(command):
    """The most memory that a process of this command had, which must end well, and its output. Read from /proc: what
    wait4 tells counts the memory of the process that it was forked from."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    peak = 0

    def watch():
        nonlocal peak
        while process.poll() is None:
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
            except (FileNotFoundError, ProcessLookupError):
                return
            peak = max(
                [peak, *(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))]
            )
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    text, _ = process.communicate()
    watcher.join()
    assert process.returncode == 0, command
    return peak, text


@pytest.mark.parametrize("format", ["dynamo", "onnx"])
def test_generate_has_one_cache(build_dir, exports, format):
    def run(length):
        options = ["--ids", "5,6,7", "--max-new-tokens", 20, "--eos", "none", "--json"]
        peak, text = peak_bytes([build_dir / "transporters", "generate", exports(format, length), *options])
        return peak, json.loads(text)["tokens"]

    (small, some_tokens), (large, same_tokens) = run(SMALL), run(LARGE)
    assert some_tokens == same_tokens
    assert large - small < CACHE_BYTES * (1 + TEMPORARY)
    assert large - small > CACHE_BYTES / 2  # the cache was really there


def test_the_python_loop_has_one_cache(exports):
    def run(length):
        script = ROOT / "examples" / "decode_loop_onnxruntime.py"
        folder = exports("onnx", length)
        command = [sys.executable, script, folder, "--ids", "5,6,7", "--max-new-tokens", 20, "--cache-length", length]
        return peak_bytes(command)

    (small, some_tokens), (large, same_tokens) = run(SMALL), run(LARGE)
    assert some_tokens == same_tokens
    # NumPy's zeros are no memory until they are written to, which a copy would do.
    assert large - small < CACHE_BYTES * TEMPORARY
