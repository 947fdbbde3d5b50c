"""What a test gives to a stream: rows and punctuations as Python values or in the notation, checked by the schema.

A row is a mapping by names (an attribute that it lacks is null, as a leaf that XML lacks) or a Python tuple in the
order of the schema. A text has any number of items in the notation (`xmlstream.testing.notation`). Lists nest once: a
list of items is one slice, a list of lists has a slice in each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xmlstream.dataclasses import dataclass, field
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import NotationError, UsageError, XmlStreamError
from xmlstream.punct_ns.notation import parse_pattern
from xmlstream.punct_ns.numeric_type import DecimalType
from xmlstream.punct_ns.pattern import Constant, Pattern, canonical
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.temporal_type import DateType, TimestampType
from xmlstream.sources.xml.options.nested_values import element_of, fields_of
from xmlstream.testing import notation
from xmlstream.testing.notation import Item, Tuple

_NAMED = re.compile(
    r"""\s* (?: `(?P<quoted>[^`]+)` | (?P<name>[^\s=,`]+) ) \s*=\s*
        (?P<pattern> "(?:[^"]|"")*" | \{(?:[^}"]|"[^"]*")*\} | [\[(](?:[^\])"]|"[^"]*")*[\])]? | [^,\[({"][^,]* )
        \s* (?:,|\Z)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True, repr=False)
class Closing:
    """A punctuation that gets the schema of the stream in which it stands; made by `punctuation`."""

    text: str = ""
    patterns: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """As a test has written it."""
        named = (f"{name}={pattern!r}" for name, pattern in self.patterns.items())
        return f"punctuation({', '.join([*([repr(self.text)] if self.text else []), *named])})"

    def of(self, schema: Schema) -> Punctuation:
        """The punctuation of a stream of this schema.

        Raises:
            UsageError: There is no such attribute.
            NotationError, ValueError: A pattern cannot be read.
        """
        if self.text.lstrip().startswith("<"):
            return Punctuation.parse(self.text, schema)
        patterns: dict[str, str] = {}
        end = 0
        while self.text[end:].strip():
            part = _NAMED.match(self.text, end)
            if part is None:
                what = f"'{self.text[end:].strip()}' is not a valid pattern of an attribute"
                raise NotationError(what, hint="write hour=17, or <*, 17>")
            patterns[part["quoted"] or part["name"]] = part["pattern"]
            end = part.end()
        return Punctuation.of(
            schema,
            {name: _pattern(each, schema.attribute(name)) for name, each in {**patterns, **self.patterns}.items()},
        )


def punctuation(text: str = "", /, **patterns: Any) -> Closing:
    """A punctuation of a stream; attributes that are not named are wildcards, so that one without any closes all.

    Args:
        text: All patterns in the notation, `<*, 17>`, or those of some attributes, `hour=17, sid={S1,S2}`.
        patterns: Patterns by attribute: a text in the notation, or another Python value for a constant.

    >>> schema = Schema.parse("sid STRING, hour INT")
    >>> [str(p.of(schema)) for p in (punctuation("hour=[1,5]"), punctuation(hour=17), punctuation("<S1, *>"), END)]
    ['<*, [1,5]>', '<*, 17>', '<S1, *>', '<*, *>']
    """
    return Closing(text, patterns)


END = Closing()
"""The punctuation that closes a stream, as the end of a document does."""

Given = Mapping[str, Any] | tuple[Any, ...] | str | Closing | Punctuation
"""An item of a stream, or a text with several."""

Stream = str | Sequence[Any]
"""Slices: a text with bars between them, a list of items (`Given`) for one slice, or a list of such lists."""


def slices_of(given: Stream, schema: Schema, name: str) -> list[list[Item]]:
    """The slices of a stream.

    Args:
        given: What a test gives.
        schema: The attributes of the stream.
        name: What errors call it.

    Raises:
        UsageError: An item does not fit the schema; with its place, and what to write instead.
    """
    if isinstance(given, str):
        try:
            found = notation.slices(given, schema)
        except NotationError as error:
            raise UsageError(error.what, where=f"{name}, {error.where}", hint=error.hint) from None
        for number, items in enumerate(found, 1):
            for at, item in enumerate(items, 1):
                if not isinstance(item, Punctuation):
                    items[at - 1] = _checked(item, schema, f"{name}, slice {number}, item {at}")
        return found
    if not isinstance(given, Sequence):
        what = f"a {type(given).__name__} is not a stream"
        raise UsageError(what, where=name, hint="give a list of items, or a text such as '(1, 17) <*, 17> | (2, 18)'")
    lists = [isinstance(each, list) for each in given]
    if any(lists) and not all(lists):
        raise UsageError(
            "items stand beside lists",
            where=name,
            hint="give one slice as [item, …], or several as [[item, …], [item, …]]",
        )
    several: Sequence[Any] = given if any(lists) else [given]
    return [list(_items(each, schema, f"{name}, slice {number}")) for number, each in enumerate(several, 1)]


def _items(given: Sequence[Given], schema: Schema, where: str) -> Iterator[Item]:
    for number, each in enumerate(given, 1):
        place = f"{where}, item {number}"
        if isinstance(each, str):
            parts = slices_of(each, schema, place)
            if len(parts) > 1:
                raise UsageError("a bar within a slice", where=place, hint="give the stream as one text, or as lists")
            yield from parts[0]
            continue
        try:
            yield _item(each, schema, place)
        except UsageError as error:
            raise UsageError(error.what, where=error.where or f"{place}: {each!r}", hint=error.hint) from None
        except (ValueError, XmlStreamError) as error:
            what, hint = str(getattr(error, "what", error)), getattr(error, "hint", None)
            raise UsageError(what, where=f"{place}: {each!r}", hint=hint) from None


def _item(given: Any, schema: Schema, where: str) -> Item:
    match given:
        case Closing():
            return given.of(schema)
        case Punctuation():
            if given.schema != schema:
                raise UsageError(f"{given} is a punctuation of another stream", hint="write xt.punctuation('…')")
            return given
        case Mapping():
            row: list[Any] = [None] * len(schema)
            for name, value in given.items():
                row[schema.index(name)] = value
            return _checked(tuple(row), schema, f"{where}: {given!r}")
        case tuple():
            if len(given) != len(schema):
                what = f"{len(given)} value{'s' * (len(given) != 1)} for {len(schema)} attributes"
                raise UsageError(what, hint=f"in order: {', '.join(schema.names)}; or write a dict")
            return _checked(given, schema, f"{where}: {given!r}")
    what = f"a {type(given).__name__} is not an item of a stream"
    raise UsageError(what, hint="write a dict, a tuple, a text in the notation or xt.punctuation('hour=17')")


def _checked(row: Tuple, schema: Schema, where: str) -> Tuple:
    """The canonical values of a row, each of its domain; in a run the tuple would be malformed."""
    found: list[Any] = []
    for value, attribute in zip(row, schema, strict=True):
        try:
            found.append(_value(value, attribute))
        except ValueError as error:
            raise UsageError(f"{attribute.name}: {error}", where=where, hint=_hint(value, attribute)) from None
    return tuple(found)


def _value(value: Any, attribute: Attribute) -> Any:
    domain = attribute.domain
    if value is None:
        if not domain.nullable:
            raise ValueError("null, but it is NOT NULL")
        return None
    if domain.opaque:
        return _nested(value, domain)
    if isinstance(value, str) and isinstance(domain.sql, DateType | TimestampType):
        value = domain.read(value)
    value = domain.normal(value)
    if not domain.contains(value):
        if domain.listed is not None:
            raise ValueError(f"{domain.write(value)} is not one of the values that its domain lists")
        bounds = ("" if end is None else domain.write(end) for end in (domain.low, domain.high))
        raise ValueError(f"{domain.write(value)} lies outside its domain {'..'.join(bounds)}")
    return value


def _nested(value: Any, domain: Domain) -> Any:
    """An array or a structure of canonical values; any other value of an opaque type as it is."""
    element, fields = element_of(domain), fields_of(domain)
    if fields is not None:
        if not isinstance(value, Mapping):
            raise ValueError(f"{value!r} is not a structure, which has its fields as in {{{fields.names[0]!r}: …}}")
        if unknown := value.keys() - set(fields.names):
            raise ValueError(f"{domain.type} has no field {min(unknown)}")
        return {field.name: _within(value.get(field.name), field) for field in fields}
    if element is not None:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{value!r} is not an array, which stands in brackets")
        return [_within(each, Attribute(f"element {at}", element)) for at, each in enumerate(value, 1)]
    return value


def _within(value: Any, attribute: Attribute) -> Any:
    """A value within another; JSON has decimals as floats, or as texts."""
    try:
        is_decimal = isinstance(attribute.domain.sql, DecimalType) and isinstance(value, float | str)
        return _value(attribute.domain.read(str(value)) if is_decimal else value, attribute)
    except ValueError as error:
        raise ValueError(f"{attribute.name}: {error}") from None


def _hint(value: Any, attribute: Attribute) -> str | None:
    domain = attribute.domain
    if value is None or domain.opaque:
        return None
    try:
        meant = domain.normal(domain.read(str(value)))
    except ValueError:
        return f"{attribute.name} is {domain.type}"
    return f"{attribute.name} is {domain.type}{'' if meant == value else f': write {meant!r}'}"


def _pattern(given: Any, attribute: Attribute) -> Pattern:
    if isinstance(given, str):
        return parse_pattern(given, attribute.domain)
    return canonical(Constant(None if given is None else _value(given, attribute)), attribute.domain)
