"""Tables of streams, as the papers have them: a line in the notation for each input, one for the output.

A line of numbers has what is kept after each slice. The notation is the users' (`xmlstream.testing.notation`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.testing.notation import Item, Tuple, parted, shown, slices

__all__ = ["Item", "Tuple", "inputs", "numbers", "parted", "shown", "slices"]


def inputs(lines: Sequence[str], schemas: Sequence[Schema]) -> list[list[tuple[list[Tuple], list[Punctuation]]]]:
    """By slice and input, the tuples and the punctuations of a table's lines.

    >>> schema = Schema.parse("hour INT")
    >>> [[tuples for tuples, _ in each] for each in inputs(["(1) | <1>", "(2) | (3)"], [schema, schema])]
    [[[(1,)], [(2,)]], [[], [(3,)]]]
    """
    streams = [[parted(items) for items in slices(line, schema)] for line, schema in zip(lines, schemas, strict=True)]
    return [list(each) for each in zip(*streams, strict=True)]


def numbers(line: str) -> list[int | None]:
    """The cells of a line of numbers; None where nothing is said.

    >>> numbers("2 | | 1")
    [2, None, 1]
    """
    return [int(cell) if cell.strip() else None for cell in line.split("|")]
