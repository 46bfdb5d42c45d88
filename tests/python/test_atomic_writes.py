"""Exports appear whole or not at all: full disks, kills, folders that can't be written, folders that hold an export."""

import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import time

import pytest

FORMATS = {"onnx": "model.onnx.data", "dynamo": "model.pt2"}

# Larger than what an export writes at once, and slow enough to be killed in the middle.
LARGE = dict(vocab_size=60_000, hidden_size=512, intermediate_size=512, tie_word_embeddings=False)


def listing(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def large(tiny_checkpoint):
    """A checkpoint of about 250 MB."""
    return tiny_checkpoint("llama", **LARGE)


def export(build_dir, source, out, format="onnx", limit=None, start=subprocess.run, **more):
    """Starts an export; files may grow to `limit` bytes."""

    def before():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing fails with EFBIG

    command = [build_dir / "transporters", "export", source, "--to", format, "--dynamic", "--out", out]
    return start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=before, **more)


def assert_one_line(result, *parts):
    assert result.returncode == 1, result.stderr
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: [write] "), result.stderr
    for part in parts:
        assert part in lines[0]


# ── No room ──


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_may_not_grow_leaves_nothing(build_dir, tiny_checkpoint, tmp_path, format):
    out = tmp_path / "new" / "out"
    result = export(build_dir, tiny_checkpoint("llama"), out, format, limit=40_000)
    assert_one_line(result, f"{out / FORMATS[format]}: cannot ", "File too large")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_may_not_grow_leaves_the_old_export(build_dir, cli, tiny_checkpoint, tmp_path, format):
    out = tmp_path / "out"
    cli("export", tiny_checkpoint("llama"), "--to", format, "--dynamic", "--out", out)
    before = listing(out)
    result = export(build_dir, tiny_checkpoint("qwen3"), out, format, limit=40_000)
    assert_one_line(result, FORMATS[format], "File too large")
    assert listing(out) == before


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, text=True
    )
    if not mounted or mounted.returncode != 0:
        reason = mounted.stderr.strip() if mounted else "there is no mount"
        pytest.skip("mounting a small file system is not permitted here: " + reason)
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_leaves_nothing(build_dir, tiny_checkpoint, small_disk, format):
    source = tiny_checkpoint("llama", vocab_size=9000)
    result = export(build_dir, source, small_disk / "out", format)
    assert_one_line(result, FORMATS[format], "No space left on device; nothing was written, free some space")
    assert list(small_disk.iterdir()) == []


# ── Killed ──


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_a_kill_in_the_middle_leaves_the_old_export(build_dir, cli, tiny_checkpoint, large, tmp_path, format):
    out = tmp_path / "out"
    cli("export", tiny_checkpoint("llama"), "--to", format, "--dynamic", "--out", out)
    before = listing(out)
    process = export(build_dir, large, out, format, start=subprocess.Popen)
    while process.poll() is None and not list(out.glob(".*.tmp")):
        time.sleep(0.0005)
    process.kill()
    process.communicate()
    if process.returncode == 0:
        pytest.skip("the export was done before it could be killed")
    left = listing(out)
    assert {name: data for name, data in left.items() if not name.endswith(".tmp")} == before
    assert len(left) > len(before)
    # The next export removes what the killed one left.
    cli("export", tiny_checkpoint("llama"), "--to", format, "--dynamic", "--out", out)
    assert listing(out) == before


def test_stale_temporaries_go_and_those_of_a_running_export_stay(cli, tiny_checkpoint, tmp_path):
    stale, running, other = [tmp_path / name for name in (".model.onnx.1-0.tmp", ".model.pt2.2-7.tmp", ".mine.tmp")]
    for file in (stale, running, other):
        file.write_text("part")
    # A writer holds a lock on what it writes.
    with open(running, "rb+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        cli("export", tiny_checkpoint("llama"), "--to", "onnx", "--out", tmp_path)
    assert not stale.exists() and running.exists() and other.exists()
    cli("export", tiny_checkpoint("llama"), "--to", "onnx", "--out", tmp_path)
    assert not running.exists() and other.exists()


@pytest.mark.slow
def test_two_exports_into_one_folder_at_once(build_dir, cli, tiny_checkpoint, large, tmp_path):
    """One that is done first leaves the other's files alone."""
    slow = export(build_dir, large, tmp_path, start=subprocess.Popen)
    while slow.poll() is None and not list(tmp_path.glob(".*.tmp")):
        time.sleep(0.0005)
    cli("export", tiny_checkpoint("llama"), "--to", "onnx", "--dynamic", "--out", tmp_path)
    _, errors = slow.communicate()
    assert slow.returncode == 0, errors
    assert not list(tmp_path.glob(".*.tmp"))


# ── Folders that can't be written ──


def test_an_output_folder_that_is_a_file(build_dir, tiny_checkpoint, tmp_path):
    (tmp_path / "out").write_text("x")
    result = export(build_dir, tiny_checkpoint("llama"), tmp_path / "out")
    assert_one_line(result, f"{tmp_path / 'out'}: cannot make the folder: Not a directory")
    assert (tmp_path / "out").read_text() == "x"


def test_an_output_file_that_is_a_folder(build_dir, tiny_checkpoint, tmp_path):
    (tmp_path / "out" / "model.onnx").mkdir(parents=True)
    result = export(build_dir, tiny_checkpoint("llama"), tmp_path / "out")
    assert_one_line(result, "model.onnx: cannot replace the file: Is a directory")
    assert list((tmp_path / "out").iterdir()) == [tmp_path / "out" / "model.onnx"]


def test_a_folder_without_permission(build_dir, tiny_checkpoint, tmp_path):
    """/proc stands for it where the tests run as root, whom permissions do not stop."""
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    place = folder / "out" if os.geteuid() != 0 else "/proc/transporters-out"
    result = export(build_dir, tiny_checkpoint("llama"), place)
    assert_one_line(result, f"{place}: cannot make the folder: ")
    assert list(folder.iterdir()) == []


# ── Exporting again ──


@pytest.mark.parametrize("format", FORMATS)
def test_exporting_again_replaces_the_export(cli, tiny_checkpoint, tmp_path, format):
    out = tmp_path / "out"
    data = out / FORMATS[format]
    cli("export", tiny_checkpoint("llama"), "--to", format, "--dynamic", "--out", out)
    first = listing(out)
    cli("export", tiny_checkpoint("llama"), "--to", format, "--dynamic", "--out", out)
    assert listing(out) == first
    size = data.stat().st_size
    smaller = tiny_checkpoint("llama", num_hidden_layers=1)
    cli("export", smaller, "--to", format, "--dynamic", "--out", out)
    assert data.stat().st_size < size
    assert set(listing(out)) == set(first)
    cli("verify", out, "--reference", smaller)


def test_every_byte_of_the_data_file_is_of_a_tensor(cli, tiny_checkpoint, tmp_path):
    import onnx

    out = tmp_path / "out"
    for layers in (2, 1):
        cli("export", tiny_checkpoint("llama", num_hidden_layers=layers), "--to", "onnx", "--out", out)
    ends = []
    for tensor in onnx.load(out / "model.onnx", load_external_data=False).graph.initializer:
        place = {entry.key: entry.value for entry in tensor.external_data}
        if place:
            ends.append(int(place["offset"]) + int(place["length"]))
    assert max(ends) == (out / "model.onnx.data").stat().st_size


@pytest.mark.parametrize("format", FORMATS)
def test_a_reader_of_the_old_export_keeps_it(cli, tiny_checkpoint, tmp_path, format):
    """The new file is another file: a process that has the old one open or mapped goes on reading it."""
    out = tmp_path / "out"
    cli("export", tiny_checkpoint("llama"), "--to", format, "--dynamic", "--out", out)
    with open(out / FORMATS[format], "rb") as held:
        before = (out / FORMATS[format]).read_bytes()
        cli("export", tiny_checkpoint("llama", num_hidden_layers=1), "--to", format, "--dynamic", "--out", out)
        assert held.read() == before
    assert (out / FORMATS[format]).read_bytes() != before


def test_an_export_onto_the_pt2_that_it_reads(cli, tiny_checkpoint, tmp_path):
    out = tmp_path / "out"
    cli("export", tiny_checkpoint("llama"), "--to", "dynamo", "--dynamic", "--out", out)
    before = (out / "model.pt2").read_bytes()
    cli("export", out / "model.pt2", "--to", "dynamo", "--out", out)
    assert len((out / "model.pt2").read_bytes()) == len(before)
    cli("verify", out, "--reference", tiny_checkpoint("llama"))


# ── Large weights ──


@pytest.mark.slow
def test_weights_beyond_the_limit_of_protobuf_go_to_a_data_file(cli, large, tmp_path):
    """The model file is small however large the weights are, so that a reader of protobuf takes it."""
    out = tmp_path / "out"
    report = json.loads(cli("export", large, "--to", "onnx", "--out", out, "--json").stdout)
    assert report["files"]["model.onnx"] < 1 << 20
    assert report["files"]["model.onnx.data"] > 200 << 20
