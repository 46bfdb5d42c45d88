"""A project that uses find_package(transporters) from an install folder builds, exports its module, and the artefacts
give what the module gives."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CONSUMER = Path(__file__).parent / "consumer"
# cmake and ninja of the virtual environment.
TOOLS = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def run(*command, env=TOOLS):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=env)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def prefix(build_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("install folder")
    run("cmake", "--install", build_dir, "--prefix", folder)
    return folder


def test_installed_command_runs_without_the_build_and_without_python(prefix):
    environment = {key: value for key, value in os.environ.items() if key in ("HOME", "LANG")}
    assert run(prefix / "bin" / "transporters", "--version", env=environment).startswith("transporters ")
    targets = run(prefix / "bin" / "transporters", "list", "targets", env={**environment, "PATH": "/nonexistent"})
    assert "onnx" in targets


@pytest.mark.slow
def test_a_project_finds_the_package_and_exports(prefix, tmp_path):
    import onnxruntime
    import torch
    from safetensors.numpy import load_file

    source = tmp_path / "consumer source"
    shutil.copytree(CONSUMER, source)
    build = tmp_path / "build"
    run(
        "cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release"
    )
    run("cmake", "--build", build)
    out = tmp_path / "out"
    out.mkdir()
    run(build / "consumer", out)

    expected = load_file(out / "expected.safetensors")
    (actual,) = onnxruntime.InferenceSession(out / "net.onnx").run(None, {"x": expected["x"]})
    np.testing.assert_allclose(actual, expected["y"], rtol=0, atol=1e-5)
    program = torch.export.load(out / "net.pt2").module()
    actual = program(torch.from_numpy(expected["x"])).detach().numpy()
    np.testing.assert_allclose(actual, expected["y"], rtol=0, atol=1e-5)


@pytest.mark.slow
def test_an_older_or_newer_version_is_not_taken(prefix, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\nfind_package(transporters 0.2 REQUIRED)\n"
    )
    result = subprocess.run(
        ["cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"],
        capture_output=True,
        text=True,
        env=TOOLS,
    )
    assert result.returncode != 0
    assert "0.1.0" in result.stderr
