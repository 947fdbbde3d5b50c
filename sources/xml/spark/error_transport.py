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
_PLAIN = re.compile(r"^punct_ns\.errors\.(\w+): (.*)((?:\n  .*)*)", re.MULTILINE)


@contextmanager
def transported() -> Iterator[None]:
    """Within it, an XmlStreamError is raised as an exception whose text tells all of it, for a query to read.

    What reads for a user of Spark raises the error itself, which says it in words.
    """
    try:
        yield
    except XmlStreamError as error:
        # No pickle: the text may have come through documents.
        told = json.dumps([type(error).__name__, error.what, error.where, error.hint])
        raise RuntimeError(f"{error}\nxmlstream-error:{base64.b64encode(told.encode()).decode()}") from error


def original_error(reported: BaseException) -> XmlStreamError | None:
    """The error of this project that made Spark report another; None if there was none."""
    told = _TOLD.search(str(reported))
    try:
        name, what, where, hint = json.loads(base64.b64decode(told[1])) if told else _in_words(str(reported))
    except ValueError:
        return None
    kind = getattr(errors, name, XmlStreamError)
    if not (isinstance(kind, type) and issubclass(kind, XmlStreamError)):
        kind = XmlStreamError
    return kind(what, where=where, hint=hint)


def _in_words(text: str) -> tuple[str, str, str | None, str | None]:
    """The kind of the last error of this project in a traceback, and its parts; ValueError where there is none."""
    *_, (name, what, rest) = [("", "", ""), *_PLAIN.findall(text)]
    if not name:
        raise ValueError("no error of this project")
    where, _, hint = rest.partition("\n  Hint: ")
    return name, what, where.strip() or None, hint or None
