"""Puts the coverage run's modules on the path for its tests, and marks the tests that need the zoo of tiny models."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "coverage"))

from harness import cases  # noqa: E402

try:
    cases.zoo_folder()
    missing = ""
except cases.ZooMissing as error:
    missing = str(error)
needs_zoo = pytest.mark.skipif(bool(missing), reason=missing)
