"""Schemas that XML can carry: their values come back the same, and their names are names there."""

from __future__ import annotations

import re
from xml.parsers import expat

from punct_ns.domain import Domain
from punct_ns.errors import QueryError, UsageError
from punct_ns.schema import Attribute, Schema
from punct_ns.slices import arrow_type
from punct_ns.sql_type import OpaqueType, SqlType

ATTRIBUTE_PREFIX = "_"
"""A column so named is an attribute of the row element, as in Spark's XML source."""

VALUE = "_VALUE"
"""A source takes a column of this name for the text of the row element itself."""

_FIRST = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = re.compile(f"[{_FIRST}][{_FIRST}\\-.0-9\xb7\u0300-\u036f\u203f\u2040]*")


def is_name(text: str) -> bool:
    """Whether every XML parser takes the text for the name of an element, without a prefix (NCName).

    >>> is_name("maxtemp"), is_name("max(currtmp)"), is_name("2nd"), is_name("ª")
    (True, False, False, False)
    """
    if _NAME.fullmatch(text) is None:
        return False
    if text.isascii():
        return True
    # The editions of XML differ in letters, and Python's own parser, which prints outputs, knows those of an older one.
    try:
        expat.ParserCreate().Parse(f"<{text}/>", True)
    except expat.ExpatError:
        return False
    return True


def leaf_of(column: str) -> str:
    """Where a column's values stand in the row element: the name of a child, or `@` and that of an attribute.

    >>> leaf_of("hour"), leaf_of("_id")
    ('hour', '@id')
    """
    return f"@{column.removeprefix(ATTRIBUTE_PREFIX)}" if column.startswith(ATTRIBUTE_PREFIX) else column


def require_writable(schema: Schema, row_tag: str, root_tag: str) -> None:
    """Makes sure that a result can be written and read again.

    Raises:
        QueryError: A column has a name or a type that XML cannot have.
        UsageError: A tag is no name, or both are one.
    """
    for tag, what in ((row_tag, "row tag"), (root_tag, "root tag")):
        if not is_name(tag):
            raise UsageError(f"the {what} {tag!r} is no XML name", hint="a letter, then letters, digits, -, _ and .")
    if row_tag == root_tag:
        raise UsageError(f"row tag and root tag are both {row_tag}: no reader could tell them apart")
    for attribute in schema:
        _require_nested(attribute)
        name = attribute.name
        leaf = leaf_of(name).removeprefix("@")
        if name == VALUE:
            reason = "cannot be written: a source would read the element's own text"
        elif not is_name(leaf):
            reason = f"cannot be an XML {'element' if leaf == name else 'attribute'}: {leaf!r} is no XML name"
        elif leaf == "xmlns" != name:
            reason = "cannot be an XML attribute: xmlns declares a namespace"
        else:
            reason = None
        if reason is not None:
            raise QueryError(f"the result's column {name!r} {reason}", hint=f"name it with AS, as in `{name}` AS value")
    require_text_types(Schema(tuple(attribute for attribute in schema if not _is_nested(attribute))))


def element_type(attribute: Attribute) -> Domain | None:
    """The domain of an array's elements; None of what is no array.

    >>> element_type(Attribute("x", Domain("ARRAY<INT>")))
    Domain(type='INT', nullable=True, low=None, high=None)
    """
    name = attribute.domain.sql.element if isinstance(attribute.domain.sql, OpaqueType) else None
    return None if name is None else Domain(name)


def fields_of(attribute: Attribute) -> Schema | None:
    """The fields of a structure; None of what is none.

    >>> fields_of(Attribute("x", Domain("STRUCT<a: INT, b: ARRAY<STRING>>"))).names
    ('a', 'b')
    """
    type_ = attribute.domain.sql
    if not isinstance(type_, OpaqueType) or type_.constructor != "STRUCT":
        return None
    return Schema.parse(type_.name.partition("<")[2].rpartition(">")[0])


def _is_nested(attribute: Attribute) -> bool:
    return element_type(attribute) is not None or fields_of(attribute) is not None


def _require_nested(attribute: Attribute) -> None:
    """Makes sure that what is in an array or a structure can be written."""
    if not _is_nested(attribute):
        return
    what = f"the result's column {attribute.name!r} of type {attribute.domain.type}"
    if attribute.name.startswith(ATTRIBUTE_PREFIX):
        raise QueryError(
            f"{what} cannot be an XML attribute, which holds one text",
            hint=f"name it with AS, without the {ATTRIBUTE_PREFIX}",
        )
    inner, fields = element_type(attribute), fields_of(attribute)
    parts = [Attribute(attribute.name, inner)] if inner is not None else list(fields or ())
    for part in parts:
        leaf = leaf_of(part.name).removeprefix("@")
        if inner is not None and element_type(part) is not None:
            raise QueryError(
                f"{what} cannot be written: of arrays in an array nobody could tell where one ends",
                hint=f"write flatten({attribute.name}) AS {attribute.name}, or an array of structures",
            )
        if part.name != VALUE and (not is_name(leaf) or leaf == "xmlns"):
            hint = "give it a name as in named_struct('name', …)"
            raise QueryError(f"{what} cannot be written: {leaf!r} is no XML name", hint=hint)
        _require_nested(part)
    require_text_types(Schema(tuple(part for part in parts if not _is_nested(part))))


def require_text_types(schema: Schema) -> None:
    """Makes sure that all values of a result can be written as text.

    Raises:
        QueryError: A column has a type that has none.
    """
    for attribute in schema:
        try:
            arrow_type(attribute.domain)
        except KeyError:
            raise QueryError(
                f"the result's column {attribute.name!r} of type {attribute.domain.type} cannot be written as text",
                hint=f"write {_as_text(attribute.domain.sql).format(attribute.name)} AS {attribute.name}",
            ) from None


def _as_text(type_: SqlType) -> str:
    """What makes text of a type, of a name in braces."""
    constructor = type_.constructor if isinstance(type_, OpaqueType) else ""
    return _TEXT_OF.get(constructor, "CAST({} AS STRING)")


_TEXT_OF = {**dict.fromkeys(("ARRAY", "MAP", "STRUCT", "VARIANT"), "to_json({})"), "BINARY": "base64({})"}
