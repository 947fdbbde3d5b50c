"""Records: frozen dataclasses that know their JSON by the types of their fields: segments, logs, dead letters.

A field is plain JSON, a moment, or a record; or a tuple, mapping, set or alternative (`X | None`) of these. What is
read may have more names than the class, and lack those with defaults: other versions have written it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

from xmlstream.dataclasses import dataclass, fields, replace
from xmlstream.punct_ns.errors import place

CHECKPOINT_FORMAT = 4
"""The format of all that a checkpoint has: it changes with what is recorded, but for fields that may be absent.

Who raises it adds a migration (`xmlstream.runtime.checkpoint.migrations`), changes the manual's page of it, and keeps a
checkpoint of the format before among the data of the tests.
"""


class Record:
    """A frozen dataclass that is written as a JSON object, and read back.

    Attributes:
        sparse: The fields that are not written while they are None or empty.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Known(Record):
    ...     rows: int = 0
    ...     since: tuple[datetime, ...] = ()
    ...     sparse = ("since",)
    >>> Known(3).json(), Known.from_json({"rows": 1, "since": ["2026-01-01T00:00:00+00:00"]}).since[0].year
    ({'rows': 3}, 2026)
    """

    __slots__ = ()
    sparse: ClassVar[Collection[str]] = ()

    def json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        named = ((name, getattr(self, name)) for name in self._readers())
        return {name: _plain(v) for name, v in named if name not in self.sparse or v or isinstance(v, int)}

    @classmethod
    def extending(cls, other: Any, **more: Any) -> Self:
        """The record with the fields of another one, of a class that it extends, and more or others."""
        return cls(**{each.name: getattr(other, each.name) for each in fields(other)} | more)

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> Self:
        """The record that `json` has written.

        Raises:
            TypeError: A name without a default is missing.
        """
        return cls(**{name: read(json[name]) for name, read in cls._readers().items() if name in json})

    @classmethod
    @cache
    def _readers(cls) -> dict[str, _Reader]:
        """What reads each field from JSON."""
        types = get_type_hints(cls)
        return {each.name: _reader(types[each.name]) for each in fields(cls)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    """A value of a field as JSON."""
    match value:
        case None | str() | int() | float():
            return value
        case Record():
            return value.json()
        case Mapping():
            return {name: _plain(one) for name, one in value.items()}
        case tuple() | list():
            return [_plain(one) for one in value]
        case frozenset():
            return sorted(value)
        case datetime():
            return value.isoformat()
    raise TypeError(f"{value!r} is not a valid part of a record")


_Reader = Callable[[Any], Any]


def _reader(type_: Any) -> _Reader:
    """What reads a value of a type from JSON."""
    origin, of = get_origin(type_) or type_, get_args(type_)
    parts = [_reader(part) for part in of]
    if origin is UnionType and NoneType in of:
        return lambda value: None if value is None else parts[0](value)
    if origin is tuple and Ellipsis in of:
        return lambda values: tuple(map(parts[0], values))
    if origin is tuple:
        return lambda values: tuple(read(value) for read, value in zip(parts, values, strict=True))
    if origin is Mapping:
        return lambda values: {name: parts[1](value) for name, value in values.items()}
    if isinstance(origin, type) and issubclass(origin, Record):
        return origin.from_json
    others: dict[Any, _Reader] = {frozenset: frozenset, datetime: datetime.fromisoformat}
    return others.get(origin, lambda value: value)


@dataclass(frozen=True, slots=True)
class SegmentRecord(Record):
    """A segment in a commit."""

    name: str
    rows: int
    struct: str
    checksum: str


@dataclass(frozen=True, slots=True)
class PartRecord(SegmentRecord):
    """A part of a log in a commit: its segment, the rows removed from it, and the purges of the log before it came."""

    removed: tuple[SegmentRecord, ...] = ()
    since: int = 0


@dataclass(frozen=True, slots=True)
class LogRecord(Record):
    """A log in a commit: its rows, its parts, the punctuations that have purged it, the age of its oldest row.

    If it is `unique`, the rows of each key are combined.
    """

    sparse = ("oldest", "unique")

    rows: int = 0
    segments: tuple[PartRecord, ...] = ()
    purging: tuple[str, ...] = ()
    oldest: tuple[int, int] | None = None
    unique: bool | None = None

    @property
    def checksums(self) -> dict[str, str]:
        """The checksums of its segments, by their names."""
        return {one.name: one.checksum for part in self.segments for one in (part, *part.removed)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter(Record):
    """An item or a tuple that is set aside: what `xmlstream/runtime/README.md` has in its table of dead letters.

    The `position` is -1 if it is not known.
    """

    sparse = ("document", "line", "column", "since", "within")

    position: int = -1
    document: str | None = None
    line: int | None = None
    column: int | None = None
    kind: str
    since: Mapping[str, Any] | None = None
    reason: str
    raw: Any = None
    within: str | None = None

    @property
    def of_document(self) -> str:
        """The place and the reason of a fault that ends the reading of its document."""
        return f"{place(self.document, self.line, self.column, None)}: {self.reason}"

    def line_of(self, source: str) -> str:
        """The letter as a line of the file of a source or an operator."""
        at = {"_position": self.position} if self.position >= 0 else {}
        found = {"source": source, **at, **replace(self, raw=None).json(), "raw": self.raw}
        del found["position"]
        return json.dumps(found, default=str)
