"""Tuples of a slice in Spark: bag unions, null-safe semi and anti joins, joins on a condition, and observed metrics.

Spark reports the result of an observation by an event, after the computation. If the Frame was never computed, or a
busy machine lost the event, none comes: the wait for it is long, but ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass
from xmlstream.operators.frames.expression import Equal, all_of, conditions_of
from xmlstream.operators.frames.held import FEW
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.slices import POSITION, own

if TYPE_CHECKING:
    from xmlstream.operators.frames.expression import Expression
    from xmlstream.operators.frames.frame import Frame, JoinKind, Side


HASHED = 500_000
"""The number of rows up to which one side of a join is broadcast; beyond it both sides are shuffled."""

_MANY = 1 << 62


@dataclass(frozen=True, slots=True)
class Tuples:
    """Tuples of one slice: a lazy frame with one column for each attribute, and an upper bound of their number.

    With `exact`, `at_most` is the number itself; with `computed`, reading the frame twice computes nothing twice.
    `of_each` is the number of output tuples for each input tuple, where it is the same for all.
    """

    frame: Frame
    at_most: int
    exact: bool = True
    computed: bool = False
    of_each: int | None = None

    def some(self, frame: Frame) -> Tuples:
        """Tuples that are computed from these, at most one from each."""
        return Tuples(frame, self.at_most, exact=False)


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice of a punctuated stream: its tuples, and the punctuations that came with them."""

    tuples: Tuples | None
    punctuations: tuple[Punctuation, ...] = ()


def require_positions(tuples: Tuples, what: str) -> None:
    """Checks that tuples have the positions that they had in their source.

    Raises:
        QueryError: They have none; `what` names what needs them.
    """
    if POSITION not in tuples.frame.columns:
        raise QueryError(
            f"{what} needs the order of a source, which its input has lost",
            hint="apply it to a source, or to a select or project above one, before merge, join or group by",
        )


def anti_join(rows: Tuples, others: Tuples | None, names: Sequence[str]) -> Tuples:
    """The rows that agree with none of the others on these attributes; null equals null."""
    return rows if others is None else _joined(rows, others, names, "left_anti")


def semi_join(rows: Tuples, others: Tuples, names: Sequence[str]) -> Tuples:
    """The rows that agree with one of the others on these attributes; null equals null."""
    return _joined(rows, others, names, "left_semi")


def theta_join(left: Tuples, right: Tuples, on: Expression, how: JoinKind = "inner") -> Tuples:
    """The join on a condition: `inner`, with the smaller side broadcast, `left_semi` or `left_anti`."""
    small: Side | None = None
    if max(left.at_most, right.at_most) <= FEW and any(isinstance(each, Equal) for each in conditions_of(on)):
        small = "both"
    elif right.at_most <= HASHED and (how != "inner" or right.at_most <= left.at_most):
        small = "right"
    elif how == "inner" and left.at_most <= HASHED:
        small = "left"
    at_most = min(left.at_most * right.at_most, _MANY) if how == "inner" else left.at_most
    return Tuples(left.frame.join(right.frame, on, how, small), at_most, exact=False)


def _joined(rows: Tuples, others: Tuples, names: Sequence[str], how: JoinKind) -> Tuples:
    renamed = others.frame.renamed({own(f"kept{i}"): name for i, name in enumerate(names)})
    same = all_of(*(Equal(name, own(f"kept{i}"), nulls=True) for i, name in enumerate(names)))
    small: Side | None = "right" if others.at_most <= HASHED else None
    if names and max(rows.at_most, others.at_most) <= FEW:
        small = "both"
    return rows.some(rows.frame.join(renamed, same, how, small))


def bag_union(parts: Iterable[Tuples | None]) -> Tuples | None:
    """The bag union of frames with equal columns; None where all parts are None."""
    present = [part for part in parts if part is not None]
    if len(present) < 2:
        return present[0] if present else None
    frame = present[0].frame
    for part in present[1:]:
        frame = frame.union(part.frame)
    exact, computed = all(part.exact for part in present), all(part.computed for part in present)
    return Tuples(frame, sum(part.at_most for part in present), exact, computed)
