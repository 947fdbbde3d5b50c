"""What Spark starts for a process that plans slices: it has the fork server fork one, and ends as that does.

    python -I -S forked.py SOCKET -m pyspark.sql.streaming.python_streaming_source_runner

Where there is no server, or it refuses, this becomes the process itself. It imports next to nothing: it is started for
every query.
"""

import json
import os
import socket
import sys

PATIENCE_SECONDS = 10.0
"""How long the server may take to fork."""


def forked(address: str) -> int | None:
    """The status of the process that was forked, once it has ended; None where none was."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE_SECONDS)
            connection.connect(address)
            here = os.getcwd()  # noqa: PTH109  to import pathlib takes longer than all that is done here
            request = json.dumps({"environment": dict(os.environ), "directory": here}).encode()
            socket.send_fds(connection, [len(request).to_bytes(4, "big")], [1, 2])
            connection.sendall(request)
            if connection.recv(1) != b"y":
                return None
            connection.settimeout(None)
            status = connection.recv(1)
    except OSError:
        return None
    return status[0] if status else 1


if __name__ == "__main__":
    ended = forked(sys.argv[1])
    if ended is None:
        os.execv(sys.executable, [sys.executable, "-P", *sys.argv[2:]])  # noqa: S606  that is the point
    sys.exit(ended)
