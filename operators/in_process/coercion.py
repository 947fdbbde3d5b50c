"""The type in which Spark computes with values of different types, and the parts cast to it.

Only casts that lose nothing are made silently here, and those that Spark's ANSI rules make of integers to
floating-point numbers. A text beside a number is cast by Spark, too, but not here: that is refused, except for a
literal beside a date or a moment.
"""

from __future__ import annotations

from collections.abc import Sequence

from xmlstream.operators.in_process.casts import as_decimal, cast
from xmlstream.operators.in_process.part import VOID, Part
from xmlstream.operators.in_process.spark_type import (
    FLOATING,
    INTEGERS,
    NUMBERS,
    TEMPORAL,
    Field,
    NotProven,
    Type,
    array_of,
    read_type,
    struct_of,
)

WIDEST = 38


def common_type(types: Sequence[Type]) -> Type | None:
    """The type that Spark casts values of these types to, to compare them or to choose among them; None if not proven.

    >>> found = common_type([read_type(name) for name in ("INT", "DECIMAL(5,2)", "VOID")])
    >>> found and found.name
    'DECIMAL(12,2)'
    """
    found = VOID
    for type_ in types:
        wider = _wider(found, type_)
        if wider is None:
            return None
        found = wider
    return found


def _wider(one: Type, other: Type) -> Type | None:
    if one.same(other):
        return _with_nulls(one, other)
    if VOID in (one, other):
        return other if one == VOID else one
    kinds = {one.kind, other.kind}
    if kinds <= set(NUMBERS):
        return _wider_number(one, other)
    if one.element is not None and other.element is not None:
        element = _wider(one.element, other.element)
        return element and array_of(element, has_nulls=one.has_nulls or other.has_nulls)
    if kinds <= set(TEMPORAL):
        return read_type("TIMESTAMP" if "TIMESTAMP" in kinds else "TIMESTAMP_NTZ")
    return None


def _with_nulls(one: Type, other: Type) -> Type:
    """The type that both are, with nulls inside where one of them has some."""
    if one.element is not None and other.element is not None:
        return array_of(_with_nulls(one.element, other.element), has_nulls=one.has_nulls or other.has_nulls)
    if one.fields:
        pairs = zip(one.fields, other.fields, strict=True)
        return struct_of(Field(a.name, _with_nulls(a.type, b.type), a.nullable or b.nullable) for a, b in pairs)
    return one


def _wider_number(one: Type, other: Type) -> Type | None:
    kinds = {one.kind, other.kind}
    if kinds & set(FLOATING):
        return read_type("FLOAT" if kinds == {"FLOAT"} else "DOUBLE")
    if "DECIMAL" not in kinds:
        return max((one, other), key=lambda type_: INTEGERS.index(type_.name))
    (precision, scale), (digits, places) = (
        t.digits if t.kind == "DECIMAL" else as_decimal(t).digits for t in (one, other)
    )
    after = max(scale, places)
    whole = max(precision - scale, digits - places)
    return read_type(f"DECIMAL({whole + after},{after})") if whole + after <= WIDEST else None


def same_type(parts: Sequence[Part], what: str, zone: str) -> list[Part]:
    """The parts in the one type that Spark casts them to; literal texts beside dates and moments become such.

    Raises:
        NotProven: That type is not proven.
    """
    texts = [part for part in parts if part.word is not None]
    others = [part for part in parts if part not in texts]
    if texts and others and all(part.type.kind in TEMPORAL or part.type.same(VOID) for part in others):
        found = common_type([part.type for part in others])
    else:
        found = common_type([part.type for part in parts])
    if found is None:
        raise NotProven(f"{what} of {' and '.join(dict.fromkeys(part.type.name for part in parts))}")
    return [part if part.type.same(found) else cast(part, found, zone) for part in parts]
