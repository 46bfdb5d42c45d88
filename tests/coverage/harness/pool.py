"""Worker processes that are killed at a time or memory limit, and replaced when they crash."""

import collections
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.results import baseline
from harness.worker import resident_mb

STARTUP = 180  # seconds for imports
BASELINES = ("eager", "generate")  # modes of records that say whether a case counts


class CannotStart(RuntimeError):
    """A worker can't import the exporter, or what the harness needs; the message says why."""


@dataclass
class Limits:
    """What a worker may use. `seconds` counts for each mode of a case."""

    seconds: float = 60
    eager_seconds: float = 180  # for building a case and all its eager runs: no part of what is measured
    recycle_mb: float = 3000  # replaced after a case that leaves more
    kill_mb: float = 8000  # killed in the middle of a case
    cases: int = 150  # replaced after as many

    def of(self, mode: str) -> float:
        """The seconds of a mode."""
        return self.eager_seconds if mode in BASELINES else self.seconds


class Worker:
    """One process. Its stderr goes to a file, for the stack of a crash."""

    def __init__(self, exporter: str, every: int, command: list[str] | None = None):
        ours, theirs = socket.socketpair()
        self.errors = tempfile.TemporaryFile("w+b", prefix="coverage-")
        command = command or [sys.executable, str(Path(__file__).with_name("worker.py"))]
        with theirs:
            self.process = subprocess.Popen(
                [*command, "--socket", str(theirs.fileno()), "--exporter", exporter, "--every", str(every)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self.errors,
                stderr=self.errors,
            )
        self.connection, self.buffer, self.cases = ours, b"", 0

    def send(self, message: dict) -> None:
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, deadline: float, kill_mb: float) -> dict | str:
        """The next message, or "timeout", "memory" or "closed"."""
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                return "timeout"
            if resident_mb(self.process.pid) > kill_mb:
                return "memory"
            if not select.select([self.connection], [], [], min(left, 0.5))[0]:
                continue
            try:
                data = self.connection.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                return "closed"
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def stack(self) -> str:
        """Asks the process for the Python stack it is in; "" when it doesn't answer."""
        before = os.fstat(self.errors.fileno()).st_size
        try:
            self.process.send_signal(signal.SIGUSR1)
        except OSError:
            return ""
        for _ in range(20):
            time.sleep(0.05)
            text = self.log()[before:]
            if "most recent call first" in text and text.endswith("\n"):
                return text
        return ""

    def log(self) -> str:
        size = os.fstat(self.errors.fileno()).st_size
        return os.pread(self.errors.fileno(), size, 0).decode(errors="replace")

    def close(self, kill: bool = False) -> int:
        """Ends the process; its exit code."""
        self.connection.close()
        if kill:
            self.process.kill()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Pool:
    """Runs cases on workers, each driven by a thread of its own. `on_record` is called under a lock."""

    def __init__(
        self,
        exporter: str,
        jobs: int,
        limits: Limits,
        on_record: Callable[[dict], None],
        every: int = 8,
        command: list[str] | None = None,
    ):
        self.exporter, self.jobs, self.limits, self.every, self.command = exporter, jobs, limits, every, command
        self.on_record, self.lock = on_record, threading.Lock()
        self.tasks: collections.deque = collections.deque()
        self.fatal: str | None = None

    def run(self, tasks: list[dict]) -> None:
        """Blocks until every task {"case", "modes"} has its records. Raises CannotStart."""
        self.tasks.extend(tasks)
        threads = [threading.Thread(target=self._drive, daemon=True) for _ in range(min(self.jobs, len(tasks)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.fatal:
            raise CannotStart(self.fatal)

    def _drive(self) -> None:
        worker = None
        while self.fatal is None:
            try:
                task = self.tasks.popleft()
            except IndexError:
                break
            worker = worker or self._start()
            if worker is None:
                break
            worker = self._run(worker, task)
        if worker:
            worker.close()

    def _start(self) -> Worker | None:
        worker = Worker(self.exporter, self.every, self.command)
        answer = worker.receive(time.monotonic() + STARTUP, self.limits.kill_mb)
        if isinstance(answer, dict) and answer.get("ready"):
            return worker
        reason = answer["fatal"] if isinstance(answer, dict) else f"{answer}; {worker.log()[-2000:]}"
        self.fatal = self.fatal or f"a worker can't start: {reason}"
        worker.close(kill=True)
        return None

    def _run(self, worker: Worker, task: dict) -> Worker | None:
        """Runs a case; the worker if it can take another."""
        mode, stage, left = baseline(task["modes"][0]), "build", list(task["modes"])
        log_start = len(worker.log())
        worker.send(task)
        deadline = time.monotonic() + self.limits.eager_seconds
        while True:
            message = worker.receive(deadline, self.limits.kill_mb)
            if isinstance(message, str):
                break
            if "begin" in message:
                if message["begin"] != mode:
                    deadline = time.monotonic() + self.limits.of(message["begin"])
                mode, stage = message["begin"], message["stage"]
            elif "done" in message:
                worker.cases += 1
                if message["resident_mb"] < self.limits.recycle_mb and worker.cases < self.limits.cases:
                    return worker
                worker.close()
                return None
            else:
                self._record(message)
                left = [name for name in left if name != message["mode"]]
        stack = worker.stack() if message == "timeout" else ""
        code = worker.close(kill=message != "closed")
        where = model_line_of_stack(stack or worker.log()[log_start:])
        status, reason = ended(message, code, self.limits, mode)
        self._record(
            {"case": task["case"], "mode": mode, "status": status, "stage": stage, "reason": reason, "where": where}
        )
        # A case that eager doesn't run has no other modes of that kind.
        left = [name for name in left if name != mode and (mode not in BASELINES or baseline(name) != mode)]
        if left and len(left) < len(task["modes"]):  # else it would end so again and again
            self.tasks.appendleft({**task, "modes": left})
        return None

    def _record(self, record: dict) -> None:
        with self.lock:
            self.on_record(record)


def ended(how: str, code: int, limits: Limits, mode: str) -> tuple[str, str]:
    """Status and reason of a case whose worker ended."""
    if how == "timeout":
        return "timeout", f"not done within {limits.of(mode):g} s"
    if how == "memory":
        return "crash", f"more than {limits.kill_mb:g} MB of memory"
    if code < 0:
        return "crash", f"the process died of {signal.Signals(-code).name}"
    return "crash", f"the process ended with exit code {code}"


def model_line_of_stack(text: str) -> str:
    """The innermost line of a model's code in a stack that faulthandler printed: "modeling_x.py:12 forward"."""
    found = re.search(r'File ".*/transformers/models/.*/([^/"]+\.py)", line (\d+) in (?!<module>)(\S+)', text)
    return f"{found[1]}:{found[2]} {found[3]}" if found else ""
