"""Violations of a stream's grammar: the tuples that an earlier punctuation matches, found columnwise, and exactly.

Punctuations that restrict one attribute part its values into cells, each with the position from which on it is
closed; a tuple is held against its value's cell. Those that restrict several are held one by one against the later
tuples that have their constant. What was said before a staged file is held against the file's tuples in the same way.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from punct_ns.pattern import WILDCARD, Constant, Pattern
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.slices import POSITION, arrow_type
from punct_ns.violations import sentence
from sources.xml.grammar.closed_cells import OPEN, ClosedCells
from sources.xml.grammar.punctuation_columns import EncodedPunctuations, PunctuationColumns
from sources.xml.options.arrow_text import Longs, Mask
from sources.xml.options.source import SourceOptions
from sources.xml.parser.originals import originals
from sources.xml.splits.part import Part

BEFORE_ALL = -1
"""A position below all others: of punctuations of earlier pieces."""

PositionedPunctuations = Sequence[tuple[int, Punctuation]]
"""Punctuations with their positions, in stream order."""


def violating_rows(
    tuples: pa.Table, said: PositionedPunctuations, schema: Schema, more: PunctuationColumns | None = None
) -> Longs:
    """The rows, in order, that a punctuation said before them matches.

    Args:
        tuples: In the order of `_position`; what punctuations restrict and is not among the columns is not looked at.
        said: In the order of their positions; a position below all others stands for an earlier piece.
        schema: Of the punctuations.
        more: More punctuations, in the order of their positions.
    """
    more = more or PunctuationColumns()
    if not (said or len(more.at)) or not tuples.num_rows:
        return np.empty(0, np.int64)
    at = tuples[POSITION].to_numpy()
    columns = {i: ClosedCells(tuples[a.name], a.domain) for i, a in enumerate(schema) if a.name in tuples.column_names}
    said = list(said)
    found = np.zeros(len(at), np.bool_)
    for encoded in more.encoded:
        constants = np.empty(0, np.int64)
        if columns.keys() >= encoded.patterns.keys():
            constants = _constants(encoded)
            found |= at > _closed_by(encoded, constants, more.at, columns, len(at))
        elif not any(WILDCARD in patterns for patterns in encoded.patterns.values()):
            continue
        others = np.delete(np.arange(len(encoded.rows)), constants)
        said += [(int(more.at[row]), p) for row, p in encoded.punctuations(schema, others)]
    said = [(position, p) for position, p in said if columns.keys() >= set(p.restricted)]
    for i in columns.keys() & more.constants.keys():
        each = more.constants[i]
        found |= at > columns[i].closed_by(each.values, more.at[each.rows])
    for i in columns.keys() & more.prefixes.keys():
        prefixes = more.prefixes[i]
        found |= at > columns[i].closed_up_to(prefixes.ends, more.at[prefixes.rows])
    return np.flatnonzero(found | _matched(sorted(said, key=itemgetter(0)), at, columns))


def _matched(said: PositionedPunctuations, at: Longs, columns: dict[int, ClosedCells]) -> Mask:
    """For each tuple, whether it comes after a punctuation that matches it; these restrict no other column."""
    found = np.zeros(len(at), np.bool_)
    singles: dict[int, list[tuple[int, Pattern]]] = {}
    for position, p in said:
        restricted = p.restricted
        if not restricted:
            found |= at > position
        elif len(restricted) == 1:
            singles.setdefault(restricted[0], []).append((position, p.patterns[restricted[0]]))
        else:
            found[_matching_later(p, position, at, columns)] = True
    for i, patterns in singles.items():
        found |= at > columns[i].closed_from(patterns)
    return found


def _constants(encoded: EncodedPunctuations) -> Longs:
    """Those of them that say a constant of each of several attributes."""
    constant = np.full(len(encoded.rows), len(encoded.patterns) > 1)
    for column, patterns in enumerate(encoded.patterns.values()):
        constant &= np.array([isinstance(pattern, Constant) for pattern in patterns])[encoded.codes[:, column]]
    return np.flatnonzero(constant)


def _closed_by(
    encoded: EncodedPunctuations, which: Longs, at: Longs, columns: Mapping[int, ClosedCells], count: int
) -> Longs:
    """For each tuple, the position from which on one of those combinations, which are of constants, has closed it."""
    if not len(which):
        return np.full(count, OPEN)
    said, mine, inside = np.zeros(len(which), np.int64), np.zeros(count, np.int64), np.ones(count, np.bool_)
    for column, (i, patterns) in enumerate(encoded.patterns.items()):
        place = columns[i].places(patterns)
        inside &= place >= 0
        # What the constants so far are together becomes one number, no larger than there are combinations.
        wide = said * len(patterns) + encoded.codes[which, column]
        different, first, said = np.unique(wide, return_index=True, return_inverse=True)
        mine = mine * len(patterns) + place
        found = np.minimum(np.searchsorted(different, mine), len(different) - 1)
        inside &= different[found] == mine
        mine = found
    return np.where(inside, at[encoded.rows[which[first]]][mine], OPEN)


def _matching_later(p: Punctuation, position: int, at: Longs, columns: dict[int, ClosedCells]) -> Longs:
    constants = [i for i in p.restricted if isinstance(p.patterns[i], Constant)]
    rows = columns[constants[0]].rows_of(p.patterns[constants[0]]) if constants else np.arange(len(at))
    rows = rows[np.searchsorted(at[rows], position, side="right") :]
    for i in p.restricted:
        if len(rows) and i not in constants[:1]:
            rows = rows[columns[i].matching(rows, p.patterns[i])]
    return rows


@dataclass(frozen=True, slots=True)
class LateTuple:
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
    def of(position: int, row: Mapping[str, Any], said: Sequence[Punctuation], schema: Schema) -> LateTuple:
        """The tuple with the first of the punctuations that matches it; one of them does."""
        late = LateTuple.found(position, row, said, schema)
        assert late is not None
        return late

    @staticmethod
    def found(position: int, row: Mapping[str, Any], said: Sequence[Punctuation], schema: Schema) -> LateTuple | None:
        """The same; None where none does."""
        values = [_normal(row.get(a.name), a.domain) for a in schema]
        known = (p for p in said if all(schema[i].name in row for i in p.restricted))
        broken = next((p for p in known if p.matches(values)), None)
        return None if broken is None else LateTuple(position, row, broken)


def _normal(value: Any, domain: Any) -> Any:
    # Of what is opaque, only that it is there matters.
    return value if value is None or domain.opaque else domain.normal(value)


def late_tuple_rows(late: Sequence[LateTuple], part: Part) -> list[dict[str, Any]]:
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


def missing_attributes(path: Path, said: Sequence[Punctuation], options: SourceOptions) -> frozenset[str]:
    """The attributes that the file has not, and without which it is not known whether its tuples come too late.

    Args:
        path: A staged Parquet file.
        said: What was said before it.
        options: Of the source.
    """
    schema = options.schema
    there = {i for i, name in enumerate(schema.names) if name in pq.read_schema(path).names}
    doubtful = [p for p in said if not there.issuperset(p.restricted)]
    if not doubtful:
        return frozenset()
    as_far = [Punctuation.at(schema, {i: p.patterns[i] for i in p.restricted if i in there}) for p in doubtful]
    if not len(_late(path, [(BEFORE_ALL, p) for p in as_far], options)):
        return frozenset()
    return frozenset(schema[i].name for p in doubtful for i in p.restricted if i not in there)


def late_tuples(path: Path, said: Sequence[Punctuation], options: SourceOptions) -> list[LateTuple]:
    """The tuples, in order; only the attributes that punctuations restrict are read to find them.

    Args:
        path: A staged Parquet file.
        said: Punctuations; what restricts attributes that the file has not (`missing_attributes`) is not looked at.
        options: Of the source.
    """
    found = _late(path, [(BEFORE_ALL, p) for p in said], options)
    if not len(found):
        return []
    if options.ungrammatical == "fail":
        found = found[:1]
    rows = pq.read_table(path, partitioning=None).take(found).to_pylist()
    return [LateTuple.of(row.pop(POSITION), row, said, options.schema) for row in rows]


def late_rows(
    path: Path, said: PositionedPunctuations, options: SourceOptions
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The tuples of a staged file that a punctuation said before them matches, in order, with their positions."""
    found = _late(path, said, options)
    if len(found):
        for row in pq.read_table(path, partitioning=None).take(found).to_pylist():
            yield row.pop(POSITION), row


def _late(path: Path, said: PositionedPunctuations, options: SourceOptions) -> Longs:
    """The rows, in order."""
    there = pq.read_schema(path).names
    restricted = sorted({i for _, p in said for i in p.restricted if options.schema[i].name in there})
    attributes = [options.schema[i] for i in restricted]
    names = [*(attribute.name for attribute in attributes), POSITION]
    table = pq.read_table(path, columns=names, partitioning=None).select(names)
    kinds = [table.schema.field(a.name).type if a.domain.opaque else arrow_type(a.domain) for a in attributes]
    fields = [pa.field(name, kind) for name, kind in zip(names, [*kinds, pa.int64()], strict=True)]
    return violating_rows(table.cast(pa.schema(fields)), said, options.schema)


def file_without(path: Path, positions: Sequence[int]) -> Path | None:
    """The file without the tuples at these positions, another one; None if no tuple is left."""
    table = pq.read_table(path, partitioning=None)
    stays = ~np.isin(table[POSITION].to_numpy(), np.array(positions, np.int64))
    if not stays.any():
        return None
    left = path.with_name(f"tuples-{uuid.uuid4().hex}.parquet")
    pq.write_table(table.filter(pa.array(stays)), left, compression="none", store_schema=False)
    return left
