"""Guesses of what a source promises: keys, orders and schemes that would be true of a sample of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from punct_ns.slices import quoted
from sources.xml.inference.columns import InferredColumn
from sources.xml.inference.observed_values import MOST_TEXTS, ORDERED

_FEW = 3
"""Rows below which nothing is guessed."""

_LONG = 64
"""Characters of a text that is hardly a key."""


@dataclass(frozen=True, slots=True)
class Guess:
    """One option that may be true.

    Attributes:
        option: Its name.
        value: Its text.
        why: What was seen.
    """

    option: str
    value: str
    why: str


def guesses(found: Sequence[InferredColumn], rows: int, said: Sequence[str], *, is_single: bool) -> tuple[Guess, ...]:
    """What would be true of a sample.

    Args:
        found: Its columns.
        rows: How many tuples it has.
        said: What its punctuations restrict, each as a scheme.
        is_single: Whether it is of a single document.
    """
    guessed = []
    if said:
        guessed.append(Guess("schemes", "; ".join(said), "the punctuations that it has are of these schemes"))
    if rows < _FEW:
        return tuple(guessed)
    whole = [
        column
        for column in found
        if not column.leaf.is_repeated
        and not column.leaf.up
        and column.leaf.values.count == min(rows, MOST_TEXTS)
        and not any(text == "" for _, text in column.leaf.values.texts)
    ]
    unique = [column for column in whole if column.leaf.type in _KEY_TYPES and column.leaf.values.are_unique]
    unique = [column for column in unique if column.leaf.values.length <= _LONG * column.leaf.values.count]
    if unique and is_single:
        likely = min(unique, key=lambda column: (not column.name.lower().endswith(_KEYS), found.index(column)))
        others = ", ".join(column.name for column in unique if column is not likely)
        too = f", nor one of {others}" if others else ""
        guessed.append(Guess("uniqueIds", quoted_if(likely.name), f"a likely key: no value of it comes twice{too}"))
    ordered = [c for kind in ORDERED for c in whole if c.leaf.type == kind and c.leaf.values.ascend]
    if ordered and not said:
        others = ", ".join(column.name for column in ordered[1:])
        too = f"; so do {others}" if others else ""
        guessed.append(Guess("punctuate", f"order of {quoted_if(ordered[0].name)}", f"its values never fall{too}"))
    return tuple(guessed)


def quoted_if(name: str) -> str:
    """The name as schemes and rules have it, in back quotes if it needs them."""
    return name if name.isidentifier() and name.isascii() else quoted(name)


_KEY_TYPES = ("STRING", "BIGINT")
"""What keys are inferred as."""

_KEYS = ("id", "key", "guid", "uuid", "number", "ref", "code")
"""How names of keys mostly end."""
