"""A worker for test_coverage_harness.py that speaks the pool's protocol without torch: each case is a behaviour."""

import faulthandler
import json
import os
import signal
import socket
import sys
import time

faulthandler.enable()
faulthandler.register(signal.SIGUSR1)
connection = socket.socket(fileno=int(sys.argv[sys.argv.index("--socket") + 1]))


def emit(**message):
    connection.sendall(json.dumps(message).encode() + b"\n")


def record(case, mode, **more):
    emit(case=case, mode=mode, status="passed", **more)


emit(ready=True)
for line in connection.makefile("r"):
    task = json.loads(line)
    case = task["case"]
    if case == "dies-building":
        os._exit(3)
    emit(begin="eager", stage="build")
    if case == "hangs-building":
        time.sleep(60)
    record(case, "eager", pid=os.getpid())
    for mode in task["modes"]:
        if mode.startswith("generate-") and case == "hangs-generating":
            emit(begin="generate", stage="build")
            time.sleep(60)
        emit(begin=mode, stage="export")
        if mode == "dynamo-dynamic":
            if case == "hangs":
                time.sleep(60)
            if case == "crashes":
                os.kill(os.getpid(), signal.SIGSEGV)
            if case == "grows":
                held = bytearray(os.urandom(1 << 20)) * 400
                time.sleep(60)
        record(case, mode)
    emit(done=case, resident_mb=5000 if case == "leaks" else 10)
