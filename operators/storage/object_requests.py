"""Requests to object stores: repeated while a store does not answer, with its errors in words.

A store that does not answer is tried again for `PATIENCE` seconds. A message in the log names it after `QUIET` seconds,
also if it has accepted the connection and says nothing (`_Watch`), and another one once it answers.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.object_urls import (
    CREDENTIALS,
    SECONDS,
    bucket_of,
    client_error,
    client_package,
    is_sayable,
    opened,
    reason,
    shown,
)
from xmlstream.punct_ns.errors import StateError, UsageError

PATIENCE = 600.0
"""Seconds for which a request is repeated while a store does not answer."""

QUIET = 3.0
"""Seconds after which a message in the log names the store that does not answer; large requests are given more."""

_BYTES_PER_SECOND = 1e6
"""A store that takes or gives so many bytes a second counts as one that answers."""

ANNOUNCED = re.compile(r"\w+://\S* (does not answer; |has completed no request for |answers again, )")
"""Begins the messages about a store that does not answer: Spark's planning process can only print them."""

requests: Counter[str] = Counter()
"""The number of requests of this process, by kind: get, head, list, put, delete; without repetitions by the client."""

_LOG = logging.getLogger("xmlstream.objects")
WAIT, _LONGEST_WAIT = 0.1, 5.0
_LOOK = 0.25
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ObjectRequests:
    """Requests below a URL; `patience` is the time to wait for a store that is away, by default `PATIENCE`."""

    url: str
    patience: float | None = None

    def where(self, key: str = "") -> str:
        """See `Store.where`."""
        return f"{shown(self.url)}/{key}" if key else shown(self.url)

    def call(
        self, kind: str, action: Callable[[Any, Any, str], _Result], key: str, seconds: int = SECONDS, size: int = 0
    ) -> _Result:
        """Calls the client, again while the store does not answer; turns its errors into words."""
        patience = PATIENCE if self.patience is None else self.patience
        obstore = client_package()
        client, prefix = opened(self.url, seconds)
        if (name := "/".join(filter(None, (prefix, key.strip("/"))))) and not is_sayable(name):
            what = f"{self.where(key)!r} has an empty part, a part . or .., or a control character"
            raise UsageError(what, hint="write s3://bucket/path, with names between single slashes")
        begun, wait = time.monotonic(), WAIT
        with _WATCH.over(bucket_of(self.url), patience, QUIET + size / _BYTES_PER_SECOND) as request:
            while True:
                requests["put" if kind == "create" else kind] += 1
                try:
                    return action(obstore, client, prefix)
                except (client_error("PermissionDeniedError"), client_error("UnauthenticatedError")) as error:
                    raise self._denied(key, error) from None
                except _answers():
                    raise
                except client_error("BaseError") as error:
                    if kind == "create" and isinstance(error, client_error("AlreadyExistsError")):
                        raise  # any other request meets it as a conflict of two requests, which did nothing
                    refused = _refused(error)
                    if kind == "list" and refused == _NOT_FOUND:
                        raise FileNotFoundError(2, "no such bucket", self.where()) from None
                    if refused in _DENIED:  # the client knows these of some requests only
                        raise self._denied(key, error) from None
                    if refused is not None:
                        raise StateError(f"{self.where(key)} is refused: {reason(error)}", hint=_PLACE) from None
                    waited = time.monotonic() - begun
                    if waited >= patience:
                        request.is_answered = False
                        what = f"{self.where(key)} has not answered for {waited:.0f} s: {reason(error)}"
                        raise StateError(what, hint="start the run again once the store answers") from None
                    request.why = reason(error)
                    time.sleep(min(wait, max(patience - waited, 0.0)))
                    wait = min(2 * wait, _LONGEST_WAIT)

    def _denied(self, key: str, error: Exception) -> StateError:
        return StateError(f"access to {self.where(key)} is denied: {reason(error)}", hint=CREDENTIALS)


def _answers() -> tuple[type[Exception], ...]:
    """Errors that are a store's answer, which a repetition would not change."""
    names = ("PreconditionError", "NotModifiedError", "NotSupportedError", "InvalidPathError")
    return FileNotFoundError, *map(client_error, names)


_NOT_FOUND, _DENIED = 404, (401, 403)
_PLACE = "check the name of the bucket, its endpoint and its region"
_PASSING = {408, 409, 412, 425, 429}
"""Statuses of requests that may succeed later, or that the client knows."""


def _refused(error: BaseException) -> int | None:
    """The status by which a store refuses a request for good; None if the same request may succeed later."""
    found = re.search(r"status code: (4\d\d)", str(error))
    return int(found[1]) if found and int(found[1]) not in _PASSING else None


@dataclass(slots=True)
class _UnderWay:
    """A request, with its repetitions.

    Attributes:
        bucket: The URL of the bucket.
        patience: The seconds for which it is repeated.
        begun: When it began.
        due: When the log names its store, if no other request to the bucket is answered until then.
        why: Why it failed last.
        is_announced: Whether the log has named the store because of it.
        is_answered: Whether it does not end because nothing has answered it.
    """

    bucket: str
    patience: float
    begun: float
    due: float
    why: str = ""
    is_announced: bool = False
    is_answered: bool = True


class _Watch:
    """Names stores that answer no request, in the log; one thread of the process looks after all requests."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._requests: list[_UnderWay] = []
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, bucket: str, patience: float, quiet: float) -> Iterator[_UnderWay]:
        """Watches over a request while the body runs; it is due after `quiet` seconds."""
        now = time.monotonic()
        request = _UnderWay(bucket, patience, now, now + quiet)
        with self._changed:
            self._requests.append(request)
            self._changed.notify()
            # A process that was forked has no threads of its parent.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._look, name="objects-watch", daemon=True)
                self._thread.start()
        try:
            yield request
        finally:
            now = time.monotonic()
            with self._changed:
                self._requests = [one for one in self._requests if one is not request]
                if request.is_answered:
                    for one in self._requests:
                        if one.bucket == bucket:
                            one.due = max(one.due, now + QUIET)
            if request.is_announced and request.is_answered:
                _LOG.warning("%s answers again, after %.0f s", bucket, now - request.begun)

    def _look(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._requests)
                late = self._late(time.monotonic())
            for one, seconds in late:
                if one.why:
                    _LOG.warning("%s does not answer; waiting for up to %.0f s: %s", one.bucket, one.patience, one.why)
                else:
                    text = "%s has completed no request for %.0f s; waiting for up to %.0f s"
                    _LOG.warning(text, one.bucket, seconds, one.patience)
            time.sleep(_LOOK)

    def _late(self, now: float) -> list[tuple[_UnderWay, float]]:
        """One late request of each bucket that is not announced yet, and its seconds; notes that it is announced."""
        late = {one.bucket: one for one in self._requests if one.due <= now}
        for one in self._requests:
            if one.is_announced:
                late.pop(one.bucket, None)
        for one in late.values():
            one.is_announced = True
        return [(one, now - one.begun) for one in late.values()]


_WATCH = _Watch()
