"""A part of a translated expression: its text in DuckDB, and what Spark's analyser says of it.

Spark computes operands from left to right, and leaves out those that cannot matter any more: the right side of an AND
whose left side is false, or the right operand of a sum whose left one is null. DuckDB computes all of them, in an order
of its own. Where an operand can raise an error this shows, so that such operands are guarded by a CASE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xmlstream.operators.expressions.operations.spark_type import INTEGERS, NotProven, Type, in_duckdb

VOID = Type("VOID")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an expression.

    Attributes:
        sql: DuckDB SQL, in brackets where an operator beside it could bind more tightly.
        type: Its type in Spark.
        nullable: Whether Spark's analyser takes it to be null somewhere.
        raises: Whether computing it in DuckDB can raise an error.
        refuses: Whether only DuckDB raises it, for values that are not proven to be equal.
        seems: Whether only Spark's analyser takes it to be null: it is an error there instead.
        constant: The text of a literal: a number or a string; None for anything else.
        typed: Whether it may be a literal with a suffix, or such a CAST: `2L` is read as CAST(2 AS BIGINT).
        rows: Whether it is an aggregate or a function over rows, or contains one.
    """

    sql: str
    type: Type
    nullable: bool
    raises: bool = False
    constant: str | None = None
    typed: bool = False
    rows: bool = False
    refuses: bool = False
    seems: bool = False

    @property
    def null(self) -> bool:
        """Whether it is null for some value."""
        return self.nullable and not self.seems

    @property
    def fails(self) -> bool:
        """Whether Spark raises an error for some value, under ANSI rules."""
        return self.raises and not self.refuses

    @property
    def whole(self) -> int | None:
        """The value of a literal integer without a sign; None for anything else."""
        is_whole = self.constant is not None and self.type.name in INTEGERS and self.constant.isdigit()
        return int(self.constant or 0) if is_whole else None

    @property
    def word(self) -> str | None:
        """The text of a literal string; None for anything else."""
        return self.constant if self.type.name == "STRING" else None

    @property
    def is_mark(self) -> bool:
        """Whether it stands for a literal, which is filled in later."""
        return self.sql.startswith("{{")

    def computed(
        self,
        sql: str,
        type_: Type | None = None,
        *,
        nullable: bool | None = None,
        seems: bool = False,
        raises: bool = False,
        refuses: bool = False,
    ) -> Part:
        """A part made of this one alone; see `joined`."""
        to = self.type if type_ is None else type_
        return joined(sql, to, [self], nullable=nullable, seems=seems, raises=raises, refuses=refuses)


def mark(name: str) -> str:
    """The DuckDB SQL that stands for a literal, which is filled in later.

    >>> mark("__xs_value0")
    '{{__xs_value0}}'
    """
    return f"{{{{{name}}}}}"


def error(condition: str, message: str) -> str:
    """DuckDB SQL that raises an error with a condition of Spark's.

    >>> error("DIVIDE_BY_ZERO", "Division by zero.")
    "error('[DIVIDE_BY_ZERO] Division by zero.')"
    """
    return f"error('[{condition}] {message}')"


def refused(what: str) -> str:
    """DuckDB SQL that raises an error: for this value, the result is not proven to be Spark's."""
    return error("NOT_PROVEN", f"{what} is not proven to be equal in DuckDB: leave out --engine duckdb")


def text(value: str) -> str:
    """A string as DuckDB SQL.

    >>> text("it's")
    "'it''s'"
    """
    quoted = "'" + value.replace("'", "''") + "'"
    return quoted if "\0" not in value else "(" + " || chr(0) || ".join(map(text, value.split("\0"))) + ")"


def null(type_: Type) -> str:
    """A null of a type as DuckDB SQL."""
    return "NULL" if type_.same(VOID) else f"CAST(NULL AS {in_duckdb(type_)})"


def joined(
    sql: str,
    type_: Type,
    parts: Sequence[Part],
    *,
    nullable: bool | None = None,
    null: bool | None = None,
    seems: bool = False,
    raises: bool = False,
    refuses: bool = False,
) -> Part:
    """A part made of several, that can raise what they can.

    Args:
        sql: DuckDB SQL.
        type_: The type of its values.
        parts: The operands.
        nullable: Whether Spark's analyser takes it to be null somewhere, if not just where an operand is.
        null: Whether it is, if that is another answer.
        seems: Whether the analyser takes it to be null somewhere, although it is only where an operand is.
        raises: Whether Spark raises an error for some operands.
        refuses: Whether DuckDB raises one for operands for which it is not proven.
    """
    if null is None:
        null = any(part.null for part in parts) if nullable is None else nullable
    if nullable is None:
        nullable = seems or any(part.nullable for part in parts)
    fails = raises or any(part.fails for part in parts)
    found = fails or refuses or any(part.raises for part in parts)
    rows = any(part.rows for part in parts)
    return Part(sql, type_, nullable, found, rows=rows, refuses=found and not fails, seems=nullable and not null)


def combined(
    sql: str,
    type_: Type,
    parts: Sequence[Part],
    *,
    nullable: bool | None = None,
    seems: bool = False,
    raises: bool = False,
    refuses: bool = False,
) -> Part:
    """A part made of several, see `joined`; those that can raise an error are guarded.

    Spark does not compute an operand behind one that is null, so that no error of it shows then.
    """
    behind = [i for i, part in enumerate(parts) if part.raises and any(before.nullable for before in parts[:i])]
    if behind:
        before = [part for part in parts[: behind[-1]] if part.nullable]
        # One by one, since the second of them may raise an error that the first one hides.
        tests = " ".join(f"WHEN {part.sql} IS NULL THEN {null(type_)}" for part in before)
        sql = f"CASE {tests} ELSE {sql} END"
    return joined(sql, type_, parts, nullable=nullable, seems=seems, raises=raises, refuses=refuses)


def require_silent(what: str, *parts: Part) -> None:
    """Refuses operands that can raise an error: whether they are null, DuckDB may know without computing them."""
    if any(part.raises for part in parts):
        raise NotProven(f"{what} of an operand that can raise an error")
