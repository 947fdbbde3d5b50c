"""Tuples that came too late, as rows of a staged range: what each is, what it breaks, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.violations import sentence
from sources.xml.parser.originals import originals
from sources.xml.splits.part import Part


@dataclass(frozen=True, slots=True)
class Late:
    """An ungrammatical tuple.

    Attributes:
        position: Its place in the source.
        row: Its values, of the attributes that were read.
        broken: A punctuation that came before and matches it.
    """

    position: int
    row: Mapping[str, Any]
    broken: Punctuation

    @staticmethod
    def of(position: int, row: Mapping[str, Any], said: Sequence[Punctuation], schema: Schema) -> Late:
        """The tuple with the first of the punctuations that matches it; one of them does."""
        values = [_normal(row.get(a.name), a.domain) for a in schema]
        known = (p for p in said if all(schema[i].name in row for i in p.restricted))
        return Late(position, row, next(p for p in known if p.matches(values)))


def _normal(value: Any, domain: Any) -> Any:
    # Of what is opaque, only that it is there matters.
    return value if value is None or domain.opaque else domain.normal(value)


def reported(late: Sequence[Late], part: Part) -> list[dict[str, Any]]:
    """The rows, as `MALFORMED`, each with its whole element unless such tuples are only counted."""
    wanted = [] if part.source.ungrammatical == "drop" else [one.position for one in late]
    found = originals(part, wanted) if wanted else {}
    rows = []
    for one in late:
        original = found.get(one.position)
        rows.append(
            {
                "_position": one.position,
                "document": original.document if original else _document(one.position, part),
                "line": original.line if original else None,
                "column": original.column if original else None,
                "kind": "ungrammatical",
                "reason": sentence(original.row if original else one.row, one.broken),
                "raw": original.raw if original else None,
                "within": original.within if original else None,
            }
        )
    return rows


def _document(position: int, part: Part) -> str:
    return [r.path for r in part.ranges if r.base + r.start <= position][-1]
