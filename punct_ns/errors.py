"""The exception tree: one leaf for each party that can fix a fault (data supplier, query author, caller, operator).

Errors carry data; only `format_error` turns it into text, in three parts: what, where, hint. What and hint name options
as the command line does, `--keep-open`; in a program they are printed as its arguments, `keep_open=True`.
All of them can be pickled, because they cross from Spark's workers to the driver.
"""

from __future__ import annotations

import base64
import json
import linecache
import re
import sys
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import timedelta

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

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in the place of a traceback: the sentence, and the line of the notebook that raised it.

        `%xmode Verbose` before the cell shows the calls within the library, too.
        """
        shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
        if getattr(getattr(shell, "InteractiveTB", None), "mode", "") == "Verbose":
            full: list[str] = shell.InteractiveTB.structured_traceback(type(self), self, self.__traceback__)
            return full
        own = [(f, n) for f, n in walk_tb(self.__traceback__) if f.f_globals.get("__name__") == "__main__"]
        line = linecache.getline(own[-1][0].f_code.co_filename, own[-1][1]).strip() if own else ""
        at = [f"in line {own[-1][1]} of the cell: {line}"] if line and not line.startswith("get_ipython()") else []
        return [*at, f"{type(self).__name__}: {self}"]


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


def nearest(name: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """The known name that is most similar to a misspelt one, whatever its case; None if none is similar enough.

    >>> nearest("ROWTAGS", ["path", "rowTag"]), nearest("x", ["path", "rowTag"])
    ('rowTag', None)
    """
    from difflib import get_close_matches  # only a mistake needs it

    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=least)
    return by_lower[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "", least: float = 0.6) -> str:
    """The hint for a misspelt name: the nearest known one, or else another hint."""
    near = nearest(name, known, least)
    return f"did you mean {near}?" if near else otherwise


def not_installed(package: str, extra: str) -> UsageError:
    """The error for an optional package that is missing, with the command that installs it."""
    return UsageError(f"{package} is not installed", hint=installs(extra))


def installs(extra: str) -> str:
    """The command that installs the packages of an extra, wherever this project itself was installed from."""
    with suppress(PackageNotFoundError):
        named = (re.split(r";.*extra == ", each) for each in requires(DISTRIBUTION) or ())
        if packages := [f"'{name}'" for name, *of in named if of and of[0].strip("'\"") == extra]:
            return f"pip install {' '.join(packages)}"
    return f"pip install '{Path(__file__).resolve().parents[1]}[{extra}]'"  # a checkout on Python's path


@cache
def left_to_spark() -> str:
    """The hint for what only Spark computes; where Spark is missing, with the command that installs it."""
    return (
        "leave out --engine duckdb: Spark computes it"
        if find_spec("pyspark")
        else f"Spark computes it: {installs('spark')}"
    )


def is_left_to_spark(error: XmlStreamError) -> bool:
    """Whether an error is a refusal of DuckDB, which is not proven to compute a part of the query."""
    return left_to_spark() in f"{error.what}; {error.hint}"


def unproven(error: XmlStreamError) -> str:
    """What DuckDB is not proven to compute, of an error that is left to Spark: of a part of a query, or of a value.

    >>> unproven(QueryError(f"[NOT_PROVEN] lower of letters beyond ASCII is not proven: {left_to_spark()}"))
    'lower of letters beyond ASCII is not proven'
    """
    return error.what.removeprefix(_OF_VALUE).removesuffix(f": {left_to_spark()}")


def is_of_value(error: XmlStreamError) -> bool:
    """Whether an error that is left to Spark is one of a value: the expression is proven for others."""
    return error.what.startswith(_OF_VALUE)


_OF_VALUE = "[NOT_PROVEN] "


class StateError(XmlStreamError):
    """A checkpoint or an output directory is not in the expected state; the query's operator can fix it."""


def format_error(error: XmlStreamError) -> str:
    r"""Formats an error: what happened, then, if known, where and the hint on lines of their own.

    >>> print(format_error(UsageError("no option 'rowtag1'", where="table bids", hint="did you mean 'rowTag'?")))
    no option 'rowtag1'
      table bids
      Hint: did you mean 'rowTag'?
    """
    lines = [in_callers_words(error.what)]
    if error.where:
        lines.append(f"  {error.where}")
    if error.hint:
        lines.append(f"  Hint: {in_callers_words(error.hint)}")
    return "\n".join(lines)


class _Caller:
    """Whether a command of the command line runs in this process, and not a program."""

    is_command = False


@contextmanager
def on_command_line() -> Iterator[None]:
    """In its body, errors name options as the command line does."""
    before, _Caller.is_command = _Caller.is_command, True
    try:
        yield
    finally:
        _Caller.is_command = before


def in_callers_words(text: str, follow: str = "start()") -> str:
    """A text that names options of the command line; in a program, with the arguments of Python in their place.

    What stands in backquotes is a command for a shell, and stays as it is. `follow` replaces `--follow`.

    >>> in_callers_words("use --moved, or give it with -D DIR=VALUE; `xmlstream run --moved`")
    'use moved=True, or give it with variables={"DIR": "VALUE"}; `xmlstream run --moved`'
    >>> in_callers_words("run --change --continues 'out'; leave out --engine duckdb, or wait with --follow")
    'run(change=True, continues="out"); leave out engine="duckdb", or wait with start()'
    """
    if _Caller.is_command:
        return text

    def argument(option: re.Match[str]) -> str:
        name, quoted_, word = option["name"], option["quoted"], option["word"]
        if name == "follow":
            return follow
        if name in _FLAGS:
            return f"{name.replace('-', '_')}=True"
        value = quoted_ if quoted_ is not None else word
        called = "rowTag" if name == "row-tag" else name.replace("-", "_")
        return f"{called}=" + ("" if value is None else f'"{value}"')

    def arguments(found: re.Match[str]) -> str:
        if found["options"] is None:
            return found[0] if found["variable"] is None else f'variables={{"{found["variable"]}": "VALUE"}}'
        together = ", ".join(argument(each) for each in _OPTION.finditer(found["options"]))
        return f"run({together})" if found["run"] else together

    return _OPTIONS.sub(arguments, text)


_FLAGS = ("keep-open", "overwrite", "moved", "change", "undo", "adapt", "allow-unsafe", "strict", "as-written", "apart")
_WITH_VALUE = (
    *("engine", "checkpoint", "continues", "incomplete", "trigger", "metrics", "monitor", "work", "result", "key"),
    *("output", "row-tag", "root-tag", "purge-after", "warn-after", "schema", "master", "conf", "name"),
)
_OPTION = re.compile(
    rf"--(?P<name>follow|{'|'.join((*_FLAGS, *_WITH_VALUE))})(?![\w-])"
    rf"(?: '(?P<quoted>[^']*)'| (?P<word>[A-Z][A-Z_]+|duckdb|spark|none)\b)?"
)
_ONE = re.sub(r"\?P<\w+>", "?:", _OPTION.pattern)
_OPTIONS = re.compile(rf"`[^`]*`|(?P<run>\brun )?(?P<options>(?<![\w-]){_ONE}(?: {_ONE})*)|-D (?P<variable>\w+)=VALUE")


def few(texts: Sequence[object], separator: str = ", ") -> str:
    """The first three texts, and the number of the others.

    >>> few(["a", "b"]), few("abcde", "; ")
    ('a, b', 'a; b; c and 2 more')
    """
    return separator.join(map(str, texts[:3])) + (f" and {len(texts) - 3:,} more" if len(texts) > 3 else "")


def counted(number: int, word: str) -> str:
    """A number with its noun, in the singular or plural.

    >>> counted(1, "tuple"), counted(2000, "tuple")
    ('1 tuple', '2,000 tuples')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def in_units(span: timedelta) -> str:
    """A time span in the largest unit with at least two of it.

    >>> from datetime import timedelta
    >>> in_units(timedelta(seconds=40)), in_units(timedelta(minutes=90)), in_units(timedelta(days=3))
    ('40 s', '90 min', '3 days')
    """
    seconds = max(0, round(span.total_seconds()))
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


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
