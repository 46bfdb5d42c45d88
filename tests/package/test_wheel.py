"""The wheel of the Python package: what it holds, that it needs torch alone, and that it exports."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Run with the package of one folder, as where nothing but torch is installed.
EXPORT = """
    import sys

    from importlib.machinery import PathFinder

    class Hiding(PathFinder):
        @classmethod
        def find_spec(cls, name, path=None, target=None):
            hidden = name.split(".")[0] in ("transformers", "onnx", "onnxruntime", "onnxscript")
            return None if hidden else PathFinder.find_spec(name, path, target)

    sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
    import transporters
    assert transporters.__file__.startswith(sys.argv[1]), transporters.__file__
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
    x = torch.randn(2, 4)
    exported = transporters.DynamoExporter().export(net, (x,), {"dynamic": True})
    exported.save(sys.argv[2] + "/net.pt2")
    wide = torch.randn(5, 4)
    assert torch.allclose(exported(wide), net(wide), atol=1e-6)
    assert torch.allclose(torch.export.load(sys.argv[2] + "/net.pt2").module()(wide), net(wide), atol=1e-6)
    transporters.OnnxExporter().export(net, (x,), {"dynamic": True}).save(sys.argv[2] + "/net.onnx")
    torch.save({"x": wide, "y": net(wide)}, sys.argv[2] + "/expected.pt")
    try:
        transporters.OnnxExporter().export(net, (x,))(x)
    except ImportError as error:
        assert "onnxruntime" in str(error)
        assert "transformers" not in sys.modules
    else:
        raise AssertionError("ran without ONNX Runtime")
"""


def run(*command, cwd=None, **variables):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | variables
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd, env=environment)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def check_package(folder, out):
    """Exports with the package of `folder` in a process of its own, and runs the files here."""
    import onnxruntime
    import torch

    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n" + textwrap.dedent(EXPORT)
    run(sys.executable, "-c", code, folder, out, cwd=out)
    expected = torch.load(out / "expected.pt")
    session = onnxruntime.InferenceSession(out / "net.onnx")
    (actual,) = session.run(None, {session.get_inputs()[0].name: expected["x"].numpy()})
    assert torch.allclose(torch.from_numpy(actual), expected["y"], atol=1e-5)


def run_path(library):
    """The library's own search path, as its dynamic section has it."""
    match = re.search(r"(?:RPATH|RUNPATH).*\[(.*)\]", run("readelf", "-d", library))
    return match.group(1).split(":") if match else []


def extension(folder):
    (library,) = (folder / "transporters").glob("_C.*.so")
    return library


def test_the_installed_package_works_away_from_the_build(build_dir, tmp_path):
    site, out = tmp_path / "site packages", tmp_path / "out"
    out.mkdir()
    shutil.copytree(
        ROOT / "python" / "transporters", site / "transporters", ignore=shutil.ignore_patterns("__pycache__")
    )
    run("cmake", "--install", build_dir, "--prefix", site, "--component", "python")
    assert run_path(extension(site)) == ["$ORIGIN", "$ORIGIN/../torch/lib"]
    check_package(site, out)


@pytest.mark.slow
@pytest.mark.timeout(3600)  # without ccache the whole library is compiled
def test_pip_builds_a_wheel_that_works(build_dir, tmp_path):
    # A copy, so that nothing is left in the repository. Built alike, it finds the objects of `build` in ccache.
    compiler = re.search(r"CMAKE_CXX_COMPILER:\w+=(.*)", (build_dir / "CMakeCache.txt").read_text()).group(1)
    source, site, out = tmp_path / "source", tmp_path / "site", tmp_path / "out"
    out.mkdir()
    source.mkdir()
    for name in ("CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("transporters", "python", "cmake", "cli"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    (source / ".venv").symlink_to(sys.prefix)
    python = source / ".venv" / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    options = ("--no-deps", "--no-build-isolation", "--no-index", "-C", "build-dir=build")
    run(*pip, "wheel", *options, "--wheel-dir", out, source, cwd=tmp_path, CXX=compiler, CMAKE_BUILD_PARALLEL_LEVEL="2")
    (wheel,) = out.glob("transporters-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
    files = [name for name in names if ".dist-info/" not in name]
    assert all(name.startswith("transporters/") for name in files)
    assert {"transporters/libtransporters.so", "transporters/py.typed", "transporters/_C.pyi"} <= set(files)
    assert len([name for name in files if ".so" in name]) == 2
    assert not any("tests" in name or name.endswith((".cpp", ".h")) for name in files)
    sources = (ROOT / "python" / "transporters").rglob("*.py")
    assert {f"transporters/{path.relative_to(ROOT / 'python' / 'transporters')}" for path in sources} <= set(files)
    assert "Requires-Dist: torch<2.14,>=2.13.0" in metadata

    run(*pip, "install", "--no-deps", "--no-index", "--target", site, wheel)
    assert run_path(extension(site)) == ["$ORIGIN", "$ORIGIN/../torch/lib"]
    assert run_path(site / "transporters" / "libtransporters.so") == ["$ORIGIN/../torch/lib"]
    check_package(site, out)
