"""The transport of this project's errors through Spark, which keeps nothing of an exception in Python but its text."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from punct_ns import errors
from punct_ns.errors import XmlStreamError

_TOLD = re.compile(r"xmlstream-error:([A-Za-z0-9+/=]+)")


@contextmanager
def transported() -> Iterator[None]:
    """Within it, an XmlStreamError is raised as an exception whose text tells all of it."""
    try:
        yield
    except XmlStreamError as error:
        # No pickle: the text may have come through documents.
        told = json.dumps([type(error).__name__, error.what, error.where, error.hint])
        raise RuntimeError(f"{error}\nxmlstream-error:{base64.b64encode(told.encode()).decode()}") from error


def original_error(reported: BaseException) -> XmlStreamError | None:
    """The error of this project that made Spark report another; None if there was none."""
    told = _TOLD.search(str(reported))
    if told is None:
        return None
    try:
        name, what, where, hint = json.loads(base64.b64decode(told[1]))
    except ValueError:
        return None
    kind = getattr(errors, name, XmlStreamError)
    if not (isinstance(kind, type) and issubclass(kind, XmlStreamError)):
        kind = XmlStreamError
    return kind(what, where=where, hint=hint)
