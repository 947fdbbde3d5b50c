"""Sort order of rows: the keys that sort rows, and the numbers of rows in the order of their groups.

A sort key is an attribute, a direction, and the side on which null sorts. New rows continue the numbering of their
group: the last rows of each group are kept with their numbers, and the rows behind them need nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.aggregates import NUMBER
from xmlstream.operators.frames.expression import Order
from xmlstream.punct_ns.prefix import Direction
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import own, quoted

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


@dataclass(frozen=True, slots=True)
class SortKey:
    """An attribute to sort by; without `nulls_first`, null comes first when ascending and last when descending."""

    attribute: str
    descending: bool = False
    nulls_first: bool | None = None

    @property
    def direction(self) -> Direction:
        """The order of its values."""
        return Direction(self.descending, not self.descending if self.nulls_first is None else self.nulls_first)

    @property
    def item(self) -> Order:
        """The key as an item of ORDER BY."""
        return Order(self.attribute, self.direction.descending, self.direction.nulls_first)


def keys_line(keys: Sequence[SortKey]) -> str:
    """The keys in one line.

    >>> keys_line([SortKey("hour"), SortKey("min", descending=True)])
    'hour, min DESC'
    """
    return ", ".join(f"{key.attribute}{' DESC' if key.descending else ''}" for key in keys)


def once(keys: Sequence[SortKey]) -> tuple[SortKey, ...]:
    """The keys without further keys on the same attribute, which have no effect.

    >>> [key.descending for key in once([SortKey("hour"), SortKey("Hour", descending=True)])]
    [False]
    """
    each: dict[str, SortKey] = {}
    for key in keys:
        each.setdefault(key.attribute.lower(), key)
    return tuple(each.values())


def total(keys: Sequence[SortKey], schema: Schema, decided: Collection[str] = ()) -> list[Order]:
    """Items of ORDER BY for the keys and, for ties, all other attributes, ascending with null first.

    Attributes without an order are left out, and so are those in `decided`, which are equal in all compared tuples.
    """
    named = {key.attribute.lower() for key in keys} | {name.lower() for name in decided}
    others = [SortKey(a.name) for a in schema if a.name.lower() not in named and not a.domain.opaque]
    return [key.item for key in (*keys, *others)]


NEW, BEFORE = own("new"), own("before")
"""BOOLEAN: whether the row is new. BIGINT: the last number of the group among earlier rows, 0 for none."""

LATEST = own("latest")
"""BIGINT: the greatest number of the group."""


def numbered(new: Frame, earlier: Sequence[Frame], groups: Sequence[str], order: Sequence[Order]) -> Frame:
    """All rows, each with its number in its group, whether it is `NEW`, and the last number `BEFORE`.

    Args:
        new: The rows that follow in each group, in this order, without numbers.
        earlier: The last rows before them, with consecutive numbers, perhaps with further columns.
        groups: The grouping attributes.
        order: Items of ORDER BY that order the new rows of a group, without ties.
    """
    frame = new.with_columns({NEW: "true", NUMBER: "CAST(NULL AS BIGINT)"})
    for before in earlier:
        frame = frame.union_by_name(before.with_column(NEW, "false"))
    group = partition(groups)
    # Earlier rows come first.
    row = f"row_number() OVER ({group} ORDER BY {', '.join((f'{NUMBER} ASC NULLS LAST', *(by.text for by in order)))})"
    counted = frame.with_column(BEFORE, f"coalesce(max({NUMBER}) OVER ({group}), 0L)")
    return counted.with_column(NUMBER, f"{row} + coalesce(min({NUMBER}) OVER ({group}), 1L) - 1")


def with_latest(rows: Frame, groups: Sequence[str]) -> Frame:
    """Numbered rows, each with the greatest number of its group."""
    return rows.with_column(LATEST, f"max({NUMBER}) OVER ({partition(groups)})")


def partition(names: Sequence[str]) -> str:
    """The text behind OVER for rows that agree on these attributes.

    >>> partition(["sid"]), partition([])
    ('PARTITION BY `sid`', '')
    """
    return f"PARTITION BY {', '.join(map(quoted, names))}" if names else ""
