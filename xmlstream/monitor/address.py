"""Addresses that a monitor serves at: `PORT`, `HOST:PORT`, `[::1]:PORT`; port 0 is a free one."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from punct_ns.errors import UsageError

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port."""

    host: str
    port: int

    @staticmethod
    def parse(text: str) -> Address:
        """The address that a text says.

        Raises:
            UsageError: It says none.

        >>> Address.parse("8080"), Address.parse("[::1]:0")
        (Address(host='127.0.0.1', port=8080), Address(host='::1', port=0))
        """
        host, _, port = text.strip().rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            raise UsageError(f"the monitor cannot serve at {text!r}", hint="PORT or HOST:PORT; port 0 is a free one")
        return Address(host.removeprefix("[").removesuffix("]") or LOOPBACK, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def bound(self) -> socket.socket:
        """A socket there.

        Raises:
            UsageError: The port is taken, or the host is none of this machine's.
        """
        try:
            family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
            return socket.create_server((self.host, self.port), family=family)
        except OSError as error:
            what = f"the monitor cannot serve at {self}: {(error.strerror or str(error)).lower()}"
            raise UsageError(what, hint="port 0 takes a free one") from None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
