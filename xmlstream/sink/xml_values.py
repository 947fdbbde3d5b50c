"""Names, types and values of results in XML: which of them XML can hold, and the text of each value.

Values read back the same, and column names become names of elements or attributes. The text of a column is computed
columnwise, without a loop over rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import date
from typing import TypeAlias
from xml.parsers import expat

import numpy as np
import pyarrow as pa

from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.schema import Attribute, Schema, schema_within
from xmlstream.punct_ns.slices import arrow_type
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.punct_ns.temporal_type import DateType, TemporalType, TimestampType
from xmlstream.punct_ns.xml_form import NAME
from xmlstream.sink.arrow_columns import ArrowColumn, pc, text_bytes, text_of

REPLACE = r"take them out, for instance with regexp_replace(…, '[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]', '')"
"""Hint for a string that XML cannot hold."""

Escapes: TypeAlias = Mapping[str, str]
"""Characters and the references that replace them."""

_FORBIDDEN = "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\ufffe\uffff]"


def value_text(values: ArrowColumn, attribute: Attribute, escapes: Escapes) -> ArrowColumn:
    """The text of each value, with references for characters that need them; null for null.

    Args:
        values: Values of a type that has a text.
        attribute: Attribute of the values.
        escapes: Characters to replace by references at the place of the text.

    Raises:
        QueryError: A value cannot be written so that it reads back the same.
    """
    type_ = attribute.domain.sql
    if isinstance(type_, StringType):
        return _escaped(values, attribute, escapes)
    if isinstance(type_, TemporalType):
        _require_years(values, attribute)
    return text_of(values)


_DAY = 86_400_000_000  # microseconds
_FIRST_DAY, _LAST_DAY = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
_MOMENTS = (pa.int64(), _FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1)
_YEARS = {DateType: (pa.int32(), _FIRST_DAY, _LAST_DAY), TimestampType: _MOMENTS}
"""Integer type that counts days or moments, with the first and the last one that can be read back."""


def _require_years(values: ArrowColumn, attribute: Attribute) -> None:
    kind, first, last = _YEARS[type(attribute.domain.sql)]
    counted = values.cast(pa.timestamp("us")) if kind == pa.int64() and values.type.unit != "us" else values
    ends = pc.min_max(counted.view(kind))
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is not None and (low < first or high > last):
        raise QueryError(
            f"a value of the result's column {attribute.name} lies beyond the years 1 to 9999, and cannot be read back",
            hint=f"leave it out with WHERE, or write it as text: CAST({attribute.name} AS STRING) AS {attribute.name}",
        )


def _escaped(values: ArrowColumn, attribute: Attribute, escapes: Escapes) -> ArrowColumn:
    """Replaces characters by their references; searches only for characters that occur in the bytes of all values."""
    bytes_ = np.frombuffer(memoryview(text_bytes(values)), np.uint8)
    if not bytes_.size:
        return values
    least, most = bytes_.min(), bytes_.max()
    if most >= 0x80:
        _require_text(values, attribute)
    # U+FFFE and U+FFFF begin with 0xEF in UTF-8.
    if (least < 0x20 or most >= 0xEF) and pc.any(pc.match_substring_regex(values, _FORBIDDEN)).as_py():
        raise QueryError(
            f"a string of the result's column {attribute.name} holds a control character, which XML cannot carry",
            hint=REPLACE,
        )
    for character, reference in escapes.items():
        if np.any(bytes_ == ord(character)):
            values = pc.replace_substring(values, character, reference)
    return values


def _require_text(values: ArrowColumn, attribute: Attribute) -> None:
    """Refuses strings that are not UTF-8: Spark accepts any bytes as a string."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raise QueryError(
            f"a string of the result's column {attribute.name} is not UTF-8 text",
            hint=f"encode its bytes as text, for instance with base64({attribute.name})",
        ) from None


ATTRIBUTE_PREFIX = "_"
"""Prefix of columns that become attributes of the row element, as in Spark's XML source."""

VALUE = "_VALUE"
"""Name of the column that a source fills with the text of the row element itself."""


def is_name(text: str, prefixes: Collection[str] = ()) -> bool:
    """Whether every XML parser accepts the text as the name of an element, without a prefix or with one of these.

    >>> is_name("maxtemp"), is_name("max(currtmp)"), is_name("2nd"), is_name("ª"), is_name("b:bill", {"b"})
    (True, False, False, False, True)
    """
    prefix, colon, local = text.partition(":")
    if colon and prefix in prefixes:
        return is_name(local)
    if re.fullmatch(NAME, text) is None:
        return False
    if text.isascii():
        return True
    # Editions of XML allow different letters; Python's own parser, which prints outputs, knows an older edition's.
    try:
        expat.ParserCreate().Parse(f"<{text}/>", True)
    except expat.ExpatError:
        return False
    return True


def is_computed(column: str) -> bool:
    """Whether a column has the name of an expression without AS, perhaps numbered as the second of that name."""
    return re.search(r"\)(_\d+)?$", column) is not None


def leaf_of(column: str) -> str:
    """Path of a column's values in the row element: the name of a child, or `@` and the name of an attribute.

    A computed column without AS has a name of its words.

    >>> leaf_of("hour"), leaf_of("_id"), leaf_of("count(1)"), leaf_of("max(price)"), leaf_of("count(1)_2")
    ('hour', '@id', 'count', 'max_price', 'count_2')
    """
    if is_computed(column):
        words = "_".join(re.findall(r"\w+", column.replace("count(1)", "count")))
        return words if words[:1].isalpha() else column
    return f"@{column.removeprefix(ATTRIBUTE_PREFIX)}" if column.startswith(ATTRIBUTE_PREFIX) else column


def require_writable(schema: Schema, row_tag: str, root_tag: str, prefixes: Collection[str] = ()) -> None:
    """Checks that a result can be written as XML and read back; names may have these prefixes.

    Raises:
        QueryError: A column has a name or a type that XML cannot hold.
        UsageError: A tag is not an XML name, or both tags are the same.
    """
    for tag, what in ((row_tag, "row tag"), (root_tag, "root tag")):
        if not is_name(tag, prefixes):
            hint = (
                f"{_DECLARE} '{tag.partition(':')[0]} urn:…'"
                if ":" in tag
                else "a letter, then letters, digits, -, _ and ."
            )
            raise UsageError(f"the {what} {tag!r} is not an XML name", hint=hint)
    if row_tag.rpartition(":")[2] == root_tag.rpartition(":")[2]:
        raise UsageError(f"row tag and root tag are both {row_tag}: a reader could not distinguish them")
    for attribute in schema:
        _require_nested(attribute, prefixes)
        name = attribute.name
        leaf = leaf_of(name).removeprefix("@")
        if name == VALUE:
            reason = "cannot be written: a source would fill it with the element's own text"
        elif not is_name(leaf, prefixes):
            reason = f"cannot be an XML {'element' if leaf == name else 'attribute'}: {leaf!r} is not an XML name"
        elif leaf == "xmlns" != name:
            reason = "cannot be an XML attribute: xmlns declares a namespace"
        else:
            reason = None
        if reason is not None:
            hint = f"name it with AS, as in {name if ' ' in name and '(' in name else f'`{name}`'} AS value"
            declare = f"; or {_DECLARE} '{leaf.partition(':')[0]} urn:…'" if ":" in leaf else ""
            raise QueryError(f"the result's column {name!r} {reason}", hint=hint + declare)
    require_text_types(Schema(tuple(attribute for attribute in schema if not is_nested(attribute))))


_DECLARE = "declare its prefix in the output's option namespaces, as in"


def element_type(attribute: Attribute) -> Domain | None:
    """The domain of an array's elements; None if the attribute is not an array.

    >>> element_type(Attribute("x", Domain("ARRAY<INT>")))
    Domain(type='INT', nullable=True, low=None, high=None, listed=None)
    """
    element = attribute.domain.sql.element
    return None if element is None else Domain(element.name)


def is_nested(attribute: Attribute) -> bool:
    """Whether the attribute is an array or a structure."""
    return element_type(attribute) is not None or schema_within(attribute.domain.sql) is not None


def _require_nested(attribute: Attribute, prefixes: Collection[str]) -> None:
    """Checks that the contents of an array or a structure can be written."""
    if not is_nested(attribute):
        return
    what = f"the result's column {attribute.name!r} of type {attribute.domain.type}"
    if attribute.name.startswith(ATTRIBUTE_PREFIX):
        raise QueryError(
            f"{what} cannot be an XML attribute, which holds one text",
            hint=f"name it with AS, without the {ATTRIBUTE_PREFIX}",
        )
    inner, fields = element_type(attribute), schema_within(attribute.domain.sql)
    parts = [Attribute(attribute.name, inner)] if inner is not None else list(fields or ())
    for part in parts:
        leaf = leaf_of(part.name).removeprefix("@")
        if inner is not None and element_type(part) is not None:
            raise QueryError(
                f"{what} cannot be written: XML does not show where an array within an array ends",
                hint=f"write flatten({attribute.name}) AS {attribute.name}, or an array of structures",
            )
        if part.name != VALUE and (not is_name(leaf, prefixes) or leaf == "xmlns"):
            hint = "give it a name as in named_struct('name', …)"
            raise QueryError(f"{what} cannot be written: {leaf!r} is not an XML name", hint=hint)
        _require_nested(part, prefixes)
    require_text_types(Schema(tuple(part for part in parts if not is_nested(part))))


def require_text_types(schema: Schema) -> None:
    """Checks that all values of a result can be written as text.

    Raises:
        QueryError: The type of a column has no text.
    """
    for attribute in schema:
        try:
            arrow_type(attribute.domain)
        except KeyError:
            as_text = _TEXT_OF.get(attribute.domain.sql.kind, "CAST({} AS STRING)")
            raise QueryError(
                f"the result's column {attribute.name!r} of type {attribute.domain.type} cannot be written as text",
                hint=f"write {as_text.format(attribute.name)} AS {attribute.name}",
            ) from None


# By the kind of a type, an expression that converts a column to text, with `{}` for the column.
_TEXT_OF = {**dict.fromkeys(("ARRAY", "MAP", "STRUCT", "VARIANT"), "to_json({})"), "BINARY": "base64({})"}
