"""Streams on one line, as the papers' tables have them: `(5, 77.0) <5, *> | (6, 75.5)`.

Tuples stand in parentheses, punctuations in angle brackets, a bar ends a slice; blanks do not count. A table has a line
for each input, one for the output, and one of numbers for what is kept after each slice. Arrays are written as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from punct_ns.notation import format_pattern, split_patterns
from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema

Tuple = tuple[object, ...]
Item = Tuple | Punctuation

_ITEM = re.compile(r'\s*(?:(?P<bar>\|)|\((?P<tuple>(?:[^")]|"[^"]*")*)\)|(?P<punctuation><(?:[^">]|"[^"]*")*>))')


def slices(text: str, schema: Schema) -> list[list[Item]]:
    """The slices of a stream, each a list of items in order.

    >>> schema = Schema.parse("hour INT, temp DOUBLE")
    >>> [[str(item) for item in items] for items in slices("(5, 77) <5, *> | (6, null)", schema)]
    [['(5, 77.0)', '<5, *>'], ['(6, None)']]
    """
    found: list[list[Item]] = [[]]
    end = 0
    while text[end:].strip():
        item = _ITEM.match(text, end)
        if item is None:
            raise ValueError(f"neither tuple nor punctuation nor bar: {text[end:]!r}")
        end = item.end()
        if item["bar"]:
            found.append([])
        elif item["punctuation"]:
            found[-1].append(Punctuation.parse(item["punctuation"], schema))
        else:
            found[-1].append(_tuple(item["tuple"], schema))
    return found


def inputs(lines: Sequence[str], schemas: Sequence[Schema]) -> list[list[tuple[list[Tuple], list[Punctuation]]]]:
    """By slice and input, the tuples and the punctuations of a table's lines.

    >>> schema = Schema.parse("hour INT")
    >>> [[tuples for tuples, _ in each] for each in inputs(["(1) | <1>", "(2) | (3)"], [schema, schema])]
    [[[(1,)], [(2,)]], [[], [(3,)]]]
    """
    streams = [[parted(items) for items in slices(line, schema)] for line, schema in zip(lines, schemas, strict=True)]
    return [list(each) for each in zip(*streams, strict=True)]


def shown(items: Sequence[Item], schema: Schema, *, in_order: bool = False) -> str:
    """A slice as text, tuples first, so that two can be compared: sorted, but with `in_order` tuples as they come.

    >>> schema = Schema.parse("hour INT, temp DOUBLE")
    >>> shown(slices("<5, *> (6, 77) (5, null)", schema)[0], schema)
    '(5, null) (6, 77.0) <5, *>'
    """
    tuples, punctuations = parted(list(items))
    texts = [f"({', '.join(_value(value, a) for value, a in zip(t, schema, strict=True))})" for t in tuples]
    return " ".join([*(texts if in_order else sorted(texts)), *sorted(map(str, punctuations))])


def numbers(line: str) -> list[int | None]:
    """The cells of a line of numbers; None where nothing is said.

    >>> numbers("2 | | 1")
    [2, None, 1]
    """
    return [int(cell) if cell.strip() else None for cell in line.split("|")]


def parted(items: list[Item]) -> tuple[list[Tuple], list[Punctuation]]:
    """The tuples and the punctuations of a slice (tups and puncts of Tucker et al. 2003, §3.1).

    >>> schema = Schema.parse("hour INT")
    >>> tuples, punctuations = parted(slices("<5> (6)", schema)[0])
    >>> tuples, [str(p) for p in punctuations]
    ([(6,)], ['<5>'])
    """
    tuples = [item for item in items if not isinstance(item, Punctuation)]
    return tuples, [item for item in items if isinstance(item, Punctuation)]


def _value(value: object, attribute: Attribute) -> str:
    if attribute.domain.opaque:
        return json.dumps(value)
    return format_pattern(Constant(attribute.domain.normal(value) if value is not None else None), attribute.domain)


def _tuple(text: str, schema: Schema) -> Tuple:
    texts = split_patterns(f"<{text}>")
    return tuple(
        None if part == "null" else json.loads(part) if a.domain.opaque else a.domain.read(part.strip('"'))
        for part, a in zip(texts, schema, strict=True)
    )
