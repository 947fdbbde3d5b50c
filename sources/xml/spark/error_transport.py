"""The transport of this project's errors through Spark, which preserves only the text of a Python exception."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from xmlstream.punct_ns import errors
from xmlstream.punct_ns.errors import XmlStreamError

_TOLD = re.compile(r"xmlstream-error:([A-Za-z0-9+/=]+)")
_PLAIN = re.compile(r"^xmlstream\.punct_ns\.errors\.(\w+): (.*)((?:\n  .*)*)", re.MULTILINE)


@contextmanager
def transported() -> Iterator[None]:
    """Converts an XmlStreamError in its body to an exception whose text encodes all its parts, for a query to decode.

    Readers for users of Spark raise the error itself, which is readable.
    """
    try:
        yield
    except XmlStreamError as error:
        # Not a pickle: the text may contain text of documents.
        told = json.dumps([type(error).__name__, error.what, error.where, error.hint])
        raise RuntimeError(f"{error}\nxmlstream-error:{base64.b64encode(told.encode()).decode()}") from error


def original_error(reported: BaseException) -> XmlStreamError | None:
    """Decodes the error of this project that made Spark report another; None if there was none."""
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
    """Returns the kind and parts of the last error of this project in a traceback; ValueError if there is none."""
    *_, (name, what, rest) = [("", "", ""), *_PLAIN.findall(text)]
    if not name:
        raise ValueError("no error of this project")
    where, _, hint = rest.partition("\n  Hint: ")
    return name, what, where.strip() or None, hint or None
