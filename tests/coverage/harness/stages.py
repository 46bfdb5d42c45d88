"""The stages of a mode, and what fails in them."""

import traceback
from collections.abc import Callable
from pathlib import Path

from harness.compare import Mismatch

REASON = 300  # characters kept of a reason


class Failure(Exception):
    """A stage of a mode that failed, and why."""

    def __init__(self, stage: str, reason: str, where: str = ""):
        super().__init__(reason)
        self.stage, self.reason, self.where = stage, reason, where


class stage:
    """Whatever is raised within becomes a Failure of this stage."""

    def __init__(self, name: str, note: Callable | None = None):
        self.name, self.note = name, note

    def __enter__(self):
        if self.note:
            self.note(self.name)

    def __exit__(self, kind, error, trace):
        if error is None or isinstance(error, (Failure, KeyboardInterrupt)):
            return False
        raise Failure(self.name, reason_of(error), model_line(error)) from error


class labelled:
    """Failures within name the inputs they happened with, except the traced ones."""

    def __init__(self, label: str):
        self.label = label

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, Failure) and self.label != "sample":
            error.reason = f"{self.label}: {error.reason}"[:REASON]
        return False


def reason_of(error: BaseException) -> str:
    """The error's type and first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, Mismatch):
        return lines[0][:REASON]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:REASON]


def model_line(error: BaseException) -> str:
    """The innermost line of a model's code that an error, or what it was raised from, passed through."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if "/transformers/models/" in frame.filename:
                return f"{Path(frame.filename).name}:{frame.lineno} {(frame.line or '').strip()}"[:REASON]
        error = error.__cause__ or error.__context__
    return ""
