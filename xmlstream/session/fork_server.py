"""Fork server of the processes in which Spark plans slices: each is forked from one that has imported what they need.

    python -P -m xmlstream.session.fork_server SOCKET

Spark starts a process of Python for every streaming query that reads a Python source, and waits until it has imported
PySpark, Arrow and this project: a third of a second of processor time for each query. The server, a child of the
driver, has done that once. What Spark starts in its place (`xmlstream.session.forked`) hands over its environment and
its output, and waits for the end of the process that is forked for it. Spark's own daemon does so for workers.

The server refuses whoever imports from elsewhere, and ends when its standard input does: with the driver.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import traceback
from typing import Any

MODULE = "pyspark.sql.streaming.python_streaming_source_runner"
"""What Spark runs."""

PRELOADED = (MODULE, "sources.xml.spark.multi_source_reader")


def serve(address: str) -> None:
    """Forks a process for each connection at a path, until standard input ends."""
    for module in PRELOADED:
        importlib.import_module(module)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(address)
        listener.listen()
        for file in (listener, sys.stdin):
            selector.register(file, selectors.EVENT_READ)
        while not any(key.fileobj is sys.stdin for key, _ in selector.select()):
            with listener.accept()[0] as connection:
                _answer(connection, listener)


def _answer(connection: socket.socket, listener: socket.socket) -> None:
    size, outputs, *_ = socket.recv_fds(connection, 4, 2)
    request = json.loads(_received(connection, int.from_bytes(size, "big")))
    is_ours = _packages(request["environment"]) == _packages(os.environ)
    connection.sendall(b"y" if is_ours else b"n")
    if is_ours and os.fork() == 0:
        listener.close()
        _run(request, outputs, connection)
    for output in outputs:
        os.close(output)


def _packages(environment: Any) -> list[str]:
    """Where modules are imported from before those that are installed; Spark puts its own archives in front."""
    return [
        path for path in environment.get("PYTHONPATH", "").split(":") if path and not path.endswith((".jar", ".zip"))
    ]


def _received(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (more := connection.recv(size - len(found))):
        found += more
    return found


def _run(request: dict[str, Any], outputs: list[int], connection: socket.socket) -> None:
    """The forked process: it does what Spark has asked for, and tells how it ended."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for output, place in zip(outputs, (1, 2), strict=True):
            os.dup2(output, place)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["directory"])
        threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
        del sys.modules[MODULE]  # else runpy warns that it runs it once more
        runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  as Python itself tells it, whatever it is
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(bytes([status % 256]))
        os._exit(status % 256)


def _end_with(connection: socket.socket) -> None:
    """Ends this process when the one that Spark has started, and may stop, has ended."""
    connection.recv(1)
    os._exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    serve(sys.argv[1])
