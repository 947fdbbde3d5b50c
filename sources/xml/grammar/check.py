"""The check of a source's grammar, without Spark: its first tuple after a punctuation that matches it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from punct_ns.grammar import Offence
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.slices import POSITION
from punct_ns.xml_form import punctuation_from_texts
from sources.xml.grammar.violations import violating_rows
from sources.xml.options.source import SourceOptions
from sources.xml.parser.findings import Findings
from sources.xml.parser.originals import original
from sources.xml.parser.range_parser import Parsed
from sources.xml.parser.read_through import Reading

CHECK_WINDOW = 1 << 17
"""Tuples that are held against the punctuations before them at once."""


@dataclass(frozen=True, slots=True)
class GrammarFindings:
    """What was found in a source.

    Attributes:
        violation: The first tuple after a punctuation that matches it, where the reading ended; None without any.
        findings: What was noticed.
    """

    violation: Offence | None
    findings: Findings


def check_grammar(options: SourceOptions) -> GrammarFindings:
    """What is found in a source, read to its end or to its first violation.

    Raises:
        MalformedInput: An item cannot be read, and the source's mode is FAILFAST, or a document is not well-formed.
        InputError: There is no such source.
    """
    reading = Reading(options)
    return GrammarFindings(_first_violation(reading, options), reading.findings())


def _first_violation(reading: Reading, options: SourceOptions) -> Offence | None:
    closed = PunctuationSet(options.schema)
    told: list[tuple[int, Punctuation]] = []
    for window in _windows(reading):
        tuples = pa.Table.from_batches([parsed.tuples for parsed in window])
        for parsed in window:
            # A punctuation that is covered already cannot be the first to match anything.
            told += [(at, p) for at, p in _said(parsed, options) if closed.add(p)]
        found = violating_rows(tuples, told, options.schema)
        if len(found):
            return _violation(tuples.slice(found[0], 1), told, options, window)
    return None


def _windows(reading: Reading) -> Iterator[list[Parsed]]:
    window: list[Parsed] = []
    for parsed in reading.pieces():
        window.append(parsed)
        if sum(each.tuples.num_rows for each in window) >= CHECK_WINDOW:
            yield window
            window = []
    if window:
        yield window


def _said(parsed: Parsed, options: SourceOptions) -> Iterator[tuple[int, Punctuation]]:
    columns = [parsed.punctuations[name].to_pylist() for name in (POSITION, *options.schema.names)]
    for position, *texts in zip(*columns, strict=True):
        yield position, punctuation_from_texts(texts, options.schema)


def _violation(
    row: pa.Table, told: list[tuple[int, Punctuation]], options: SourceOptions, window: list[Parsed]
) -> Offence:
    (values,) = row.to_pylist()
    position = values.pop(POSITION)
    pairs = zip(values.values(), options.schema, strict=True)
    normal = tuple(
        value if value is None or attribute.domain.opaque else attribute.domain.normal(value)
        for value, attribute in pairs
    )
    at, broken = next((at, p) for at, p in told if at < position and p.matches(normal))
    piece = next(parsed for parsed in window if position in parsed.tuples[POSITION].to_numpy())
    where = original(piece, position, options)
    return Offence(normal, position, broken, at, where.document, where.line, where.column)
