"""A worker process: takes tasks as JSON lines from a socket, answers with stages and records."""

import argparse
import contextlib
import faulthandler
import json
import os
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def resident_mb(pid: int | str = "self") -> float:
    """Resident memory of a process, 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, IndexError):
        return 0.0


def serve(connection: socket.socket, exporter_name: str, every: int, prepare: Callable) -> None:
    """Handles tasks until the other side closes the socket. `prepare(exporter_name)` imports what is slow to import and
    returns the exporter and what runs a case with it, like harness.check.run_case."""
    stream = connection.makefile("r", encoding="utf-8")

    def emit(message: dict) -> None:
        connection.sendall(json.dumps(message).encode() + b"\n")

    try:
        exporter, run_case = prepare(exporter_name)
    except Exception as error:
        emit({"fatal": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()})
        return
    emit({"ready": True})
    for line in stream:
        task = json.loads(line)
        # A new line for each case, so that a crash report can be told from the cases' own warnings.
        print(f"case {task['case']}", file=sys.stderr, flush=True)
        run_case(task["case"], task["modes"], exporter, emit, every)
        emit({"done": task["case"], "resident_mb": round(resident_mb(), 1)})


def prepare(exporter_name: str):
    """The exporter of that name and harness.check.run_case."""
    from harness import check, exporters

    quiet()
    exporters.one_thread_sessions()
    return exporters.EXPORTERS[exporter_name](), check.run_case


def quiet() -> None:
    """One thread, and no warnings of the models' own."""
    import logging

    import torch
    import transformers

    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    with contextlib.suppress(RuntimeError):
        torch.set_num_interop_threads(1)


def main(prepare: Callable = prepare) -> None:
    """A worker's whole life, from its command line on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--exporter", required=True)
    parser.add_argument("--every", type=int, required=True)
    options = parser.parse_args()
    # Stacks go to stderr: at a crash by themselves, at a time limit when the pool asks.
    faulthandler.enable(all_threads=False)
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    with socket.socket(fileno=options.socket) as connection:
        try:
            serve(connection, options.exporter, options.every, prepare)
        except BrokenPipeError:
            pass
        sys.stderr.flush()
    # Nothing of the exporters' own clean-up at exit is part of the measure.
    os._exit(0)


if __name__ == "__main__":
    main()
