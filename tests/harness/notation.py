"""Streams on one line, as the papers' tables have them: `(5, 77.0) <5, *> | (6, 75.5)`.

Tuples stand in parentheses, punctuations in angle brackets, a bar ends a slice; blanks do not count.
"""

from __future__ import annotations

import re

from punct_ns.notation import split_patterns
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema

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


def parted(items: list[Item]) -> tuple[list[Tuple], list[Punctuation]]:
    """The tuples and the punctuations of a slice (tups and puncts of Tucker et al. 2003, §3.1).

    >>> schema = Schema.parse("hour INT")
    >>> tuples, punctuations = parted(slices("<5> (6)", schema)[0])
    >>> tuples, [str(p) for p in punctuations]
    ([(6,)], ['<5>'])
    """
    tuples = [item for item in items if not isinstance(item, Punctuation)]
    return tuples, [item for item in items if isinstance(item, Punctuation)]


def _tuple(text: str, schema: Schema) -> Tuple:
    texts = split_patterns(f"<{text}>")
    return tuple(
        None if part == "null" else attribute.domain.read(part.strip('"'))
        for part, attribute in zip(texts, schema, strict=True)
    )
