"""A PostgreSQL server for a test: Debian's, in a directory of its own, on 127.0.0.1, never as root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.harness.feeds import HOST, free_port, until_acknowledged, wait_for_listener

USER, PASSWORD = "ann", "what she alone knows"


def programs() -> Path | None:
    """Where `initdb` and `postgres` are, which Debian has beside PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "")]
    return found[-1].parent if found[-1].is_file() else None


@contextmanager
def postgres() -> Iterator[str]:
    """A server; the URL of its database, with user and password."""
    where = programs()
    if where is None:
        pytest.skip("postgresql is not installed: .ci/setup tested")
    port, home = free_port(), Path(tempfile.mkdtemp(prefix="xmlstream-postgresql-"))
    # Who is root has a user of the package's to be; anyone else is himself.
    other: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        other = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(home, user.pw_uid, user.pw_gid)
    secret = home / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": home, **other}
    made = [where / "initdb", "-D", home / "data", "-U", USER, "--pwfile", secret, "--auth", "scram-sha-256", "-N"]
    subprocess.run([*map(str, made), "-E", "UTF8", "--locale", "C"], check=True, **quiet)
    settings = {"listen_addresses": HOST, "port": port, "unix_socket_directories": "", "fsync": "off"}
    given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    with subprocess.Popen([str(where / "postgres"), "-D", str(home / "data"), *given], **quiet) as server:
        try:
            wait_for_listener(port)
            url = f"postgresql://{USER}:{PASSWORD.replace(' ', '%20')}@{HOST}:{port}/postgres"
            until_acknowledged(lambda: _answers(url))
            yield url
        finally:
            server.send_signal(signal.SIGINT)  # ends connections that are left
            server.wait()
            shutil.rmtree(home, ignore_errors=True)


def _answers(url: str) -> bool:
    """Whether it has started; it listens sooner."""
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True
