"""The check of a source's grammar, without Spark: finds the first tuple after a punctuation that matches it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import pyarrow as pa

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.grammar import Offence
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.slices import LIFESPAN, POSITION
from xmlstream.punct_ns.xml_form import punctuation_from_texts
from xmlstream.sources.xml.grammar.late_tuples import violating_rows
from xmlstream.sources.xml.grammar.lifespans import has_closed, noticed_bounds
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.findings_collector import Findings
from xmlstream.sources.xml.parser.item_batches import Parsed
from xmlstream.sources.xml.parser.range_parser import WholeReading, original

CHECK_WINDOW = 1 << 17
"""The number of tuples that are checked against earlier punctuations at once."""


@dataclass(frozen=True, slots=True)
class GrammarFindings:
    """The result of checking a source.

    Attributes:
        violation: The first tuple after a punctuation that matches it, where the reading ended; None if none.
    """

    violation: Offence | None
    findings: Findings


def check_grammar(options: SourceOptions) -> GrammarFindings:
    """Checks a source up to its end or to its first violation.

    Raises:
        MalformedInput: An item cannot be parsed, and the source's mode is FAILFAST, or a document is not well-formed.
        InputError: There is no such source.
    """
    reading = WholeReading(options)
    expiring = _Expiring(options)
    return GrammarFindings(_first_violation(reading, options, expiring), reading.findings() + expiring.noticed)


def _first_violation(reading: WholeReading, options: SourceOptions, expiring: _Expiring) -> Offence | None:
    closed = PunctuationSet(options.schema)
    seen: list[tuple[int, Punctuation]] = []
    for window in _windows(reading):
        tuples = pa.Table.from_batches([parsed.tuples for parsed in window])
        new = [p for parsed in window for p in _punctuations(parsed, options)]
        # A punctuation that is covered already cannot be the first to match anything.
        seen += [(at, p) for at, p in new if p.lifespan is None and closed.add(p)]
        expiring.add(new)
        first = 0
        while len(rows := violating_rows(tuples.slice(first), [*seen, *expiring.seen], options.schema)):
            first += int(rows[0])
            found = _violation(tuples.slice(first, 1), [*seen, *expiring.seen], options, window, expiring)
            if found is not None:
                return found
            # The next life of a key begins: punctuations that have ended match nothing that follows.
            expiring.forget(before=int(tuples[POSITION][first].as_py()))
        expiring.forget()
    return None


class _Expiring:
    """The punctuations with lifespans so far, with positions; no duration ends while a file is checked."""

    def __init__(self, options: SourceOptions) -> None:
        self.seen: list[tuple[int, Punctuation]] = []
        self._closed = PunctuationSet(options.schema)
        self._closing: deque[tuple[int, Punctuation]] = deque()
        self._before = PunctuationSet(options.schema)
        self.noticed = Findings()

    def add(self, punctuations: Sequence[tuple[int, Punctuation]]) -> None:
        """Adds a window's punctuations."""
        for _, p in punctuations:
            if p.lifespan is None:
                self._before.add(p)
            else:
                self.noticed += noticed_bounds([(p.lifespan, 1)], self._before)
        self.seen += [(at, p) for at, p in punctuations if p.lifespan is not None]
        closing = [(at, p) for at, p in punctuations if p.lifespan is None]
        if self.seen:
            self._closing += closing
        else:
            self._closed.add_all(p for _, p in closing)

    def holds(self, p: Punctuation, position: int) -> bool:
        """Whether a punctuation has not ended before a position; calls must have ascending positions."""
        while self._closing and self._closing[0][0] < position:
            self._closed.add(self._closing.popleft()[1])
        return p.lifespan is None or not any(has_closed(self._closed, bound) for bound in p.lifespan.bounds)

    def forget(self, before: int | None = None) -> None:
        """Removes punctuations that have ended: before a position, or all at the end of a window."""
        if before is None:
            self._closed.add_all(p for _, p in self._closing)
            self._closing.clear()
        self.seen = [
            (at, p) for at, p in self.seen if (before is not None and at > before) or self.holds(p, before or 0)
        ]


def _windows(reading: WholeReading) -> Iterator[list[Parsed]]:
    window: list[Parsed] = []
    for parsed in reading.pieces():
        window.append(parsed)
        if sum(each.tuples.num_rows for each in window) >= CHECK_WINDOW:
            yield window
            window = []
    if window:
        yield window


def _punctuations(parsed: Parsed, options: SourceOptions) -> Iterator[tuple[int, Punctuation]]:
    columns = [parsed.punctuations[name].to_pylist() for name in (POSITION, *options.schema.names)]
    punctuations = parsed.punctuations
    lifespans = (
        punctuations[LIFESPAN].to_pylist() if LIFESPAN in punctuations.schema.names else [None] * punctuations.num_rows
    )
    for lifespan, (position, *texts) in zip(lifespans, zip(*columns, strict=True), strict=True):
        p = punctuation_from_texts(texts, options.schema)
        yield position, p if lifespan is None else p.lasting(Lifespan.read(lifespan, options.schema))


def _violation(
    row: pa.Table,
    seen: list[tuple[int, Punctuation]],
    options: SourceOptions,
    window: list[Parsed],
    expiring: _Expiring,
) -> Offence | None:
    """Returns the offence of a tuple that earlier punctuations match; None if these have ended."""
    (values,) = row.to_pylist()
    position = values.pop(POSITION)
    pairs = zip(values.values(), options.schema, strict=True)
    normal = tuple(
        value if value is None or attribute.domain.opaque else attribute.domain.normal(value)
        for value, attribute in pairs
    )
    matching = ((at, p) for at, p in seen if at < position and p.matches(normal))
    first = next(((at, p) for at, p in matching if expiring.holds(p, position)), None)
    if first is None:
        return None
    at, broken = first
    piece = next(parsed for parsed in window if position in parsed.tuples[POSITION].to_numpy())
    where = original(piece, position, options)
    return Offence(normal, position, broken, at, where.document.where, where.line, where.column)
