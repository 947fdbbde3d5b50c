"""The exception tree: one leaf for each party that can fix a fault (data supplier, query author, caller, operator).

Errors carry data; only `format_error` turns it into text, in three parts: what, where, hint.
All of them can be pickled, because they cross from Spark's workers to the driver.
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, requires
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xmlstream.punct_ns.punctuation import Punctuation
    from xmlstream.punct_ns.sql_type import Value

DISTRIBUTION = "punctuated-streams"
"""Name under which pip installs this project."""


class XmlStreamError(Exception):
    """Base class of every error that xmlstream raises on purpose.

    `what` describes the fault with its values, `where` locates it as precisely as known, `hint` suggests a remedy.
    Secrets of URLs are left out of all three.
    """

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what = without_secrets(what)
        self.where = where and without_secrets(where)
        self.hint = hint and without_secrets(hint)
        super().__init__(self.what)

    def __str__(self) -> str:
        return format_error(self)


class InputError(XmlStreamError):
    """The data is at fault; its supplier can fix it."""


class NotationError(InputError, ValueError):
    """A text cannot be parsed as a pattern, a punctuation or a scheme."""


class MalformedInput(InputError):
    """A document is not well-formed, a value is not of its type, or a punctuation cannot be parsed.

    `line` and `column` count from 1; `position` is the item's position in its source.
    """

    def __init__(
        self,
        what: str,
        *,
        document: str | None = None,
        line: int | None = None,
        column: int | None = None,
        position: int | None = None,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(what, where=where or place(document, line, column, position), hint=hint)
        self.document = document
        self.line = line
        self.column = column
        self.position = position


class UngrammaticalStream(InputError):
    """A tuple arrived after a punctuation of the same source that matches it."""

    def __init__(
        self,
        what: str,
        *,
        values: Sequence[Value | None] = (),
        tuple_position: int | None = None,
        punctuation: Punctuation | None = None,
        punctuation_position: int | None = None,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.tuple = tuple(values)
        self.tuple_position = tuple_position
        self.punctuation = punctuation
        self.punctuation_position = punctuation_position


class QueryError(XmlStreamError):
    """The query is at fault; its author can fix it. `line` and `column` count from 1."""

    def __init__(
        self,
        what: str,
        *,
        line: int | None = None,
        column: int | None = None,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(what, where=where or place(None, line, column, None), hint=hint)
        self.line = line
        self.column = column


class UnsafeQuery(QueryError):
    """Over unbounded inputs, the query would never answer or would keep ever more tuples; schemes fix that."""


class UsageError(XmlStreamError):
    """An option or an argument is at fault; the caller can fix it."""


def not_installed(package: str, extra: str) -> UsageError:
    """The error for an optional package that is missing, with the command that installs it."""
    return UsageError(f"{package} is not installed", hint=installs(extra))


def installs(extra: str) -> str:
    """The command that installs the packages of an extra, wherever this project itself was installed from."""
    with suppress(PackageNotFoundError):
        named = (re.split(r";.*extra == ", each) for each in requires(DISTRIBUTION) or ())
        if packages := [f"'{name}'" for name, *of in named if of and of[0].strip("'\"") == extra]:
            return f"pip install {' '.join(packages)}"
    return f"pip install '{DISTRIBUTION}[{extra}]'"


class StateError(XmlStreamError):
    """A checkpoint or an output directory is not in the expected state; the query's operator can fix it."""


def format_error(error: XmlStreamError) -> str:
    r"""Formats an error: what happened, then, if known, where and the hint on lines of their own.

    >>> print(format_error(UsageError("no option 'rowtag1'", where="table bids", hint="did you mean 'rowTag'?")))
    no option 'rowtag1'
      table bids
      Hint: did you mean 'rowTag'?
    """
    lines = [error.what]
    if error.where:
        lines.append(f"  {error.where}")
    if error.hint:
        lines.append(f"  Hint: {error.hint}")
    return "\n".join(lines)


def without_secrets(text: str) -> str:
    """A text whose URLs have no password, and no value of an option that may be one.

    >>> without_secrets("s3://ann:secret@bucket/in?region=r&secret_access_key=secret is refused")
    's3://ann@bucket/in?region=r&secret_access_key=… is refused'
    """
    if "://" not in text:
        return text
    return _SECRET_OPTION.sub(r"\1…", _PASSWORD.sub(r"\1@", text))


_PASSWORD = re.compile(r"(://[^\s/?#:@]*):[^\s/?#]*@")
_SECRET_OPTION = re.compile(
    r"([?&][^\s=&?#]*(?:secret|pass|pwd|token|key|sig|credential)[^\s=&?#]*=)[^\s&#]*", re.IGNORECASE
)


def reason(error: OSError) -> str:
    """What the system reports, in lower case, as the end of a sentence.

    >>> reason(OSError(2, "No such file or directory"))
    'no such file or directory'
    """
    return (error.strerror or str(error)).lower()


def place(document: str | None, line: int | None, column: int | None, position: int | None) -> str | None:
    """Describes a location in a document; None if nothing is known.

    >>> place("bids.xml", 12, 3, None)
    'bids.xml, line 12, column 3'
    >>> place(None, None, None, None) is None
    True
    """
    known = [
        document,
        None if line is None else f"line {line}",
        None if column is None else f"column {column}",
        None if position is None else f"item at position {position}",
    ]
    return ", ".join(part for part in known if part is not None) or None


_ENCODED = re.compile(r"xmlstream-error:([A-Za-z0-9+/=]+)")
_PLAIN = re.compile(r"^xmlstream\.punct_ns\.errors\.(\w+): (.*)((?:\n  .*)*)", re.MULTILINE)


def in_transport(error: XmlStreamError) -> str:
    """The text of an error with all its parts, for `original_error`: Spark preserves only the text of an exception.

    >>> original_error(RuntimeError(in_transport(InputError("no such file", hint="look")))).hint
    'look'
    """
    # Not a pickle: the text may contain text of documents.
    encoded = json.dumps([type(error).__name__, error.what, error.where, error.hint])
    return f"{error}\nxmlstream-error:{base64.b64encode(encoded.encode()).decode()}"


@contextmanager
def transported() -> Iterator[None]:
    """Converts an XmlStreamError in its body to an exception whose text encodes all its parts, for a query to decode.

    Readers for users of Spark raise the error itself, which is readable.
    """
    try:
        yield
    except XmlStreamError as error:
        raise RuntimeError(in_transport(error)) from error


def original_error(reported: BaseException) -> XmlStreamError | None:
    """Decodes the error of this project that made Spark report another; None if there was none."""
    encoded = _ENCODED.search(str(reported))
    try:
        name, what, where, hint = json.loads(base64.b64decode(encoded[1])) if encoded else _in_words(str(reported))
    except ValueError:
        return None
    kind = globals().get(name, XmlStreamError)
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
