"""Sent and missing punctuations: what a source has sent, and when; and what it must still send.

What was sent is in the commit records since the last complete one. Traces a missing punctuation from an operator back
to the sources that must send it.

For a punctuation of its output each operator returns the punctuations of its inputs that it needs
(`xmlstream.operators.required_punctuations`). If there are several ways, the report has the one that closes least. At a
source, the punctuations that it has already sent are subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass, replace
from xmlstream.diagnosis.kept_rows import ClosedOnDisk, KeptRows, log_attributes
from xmlstream.operators.punctuate import Punctuate, Streams
from xmlstream.operators.required_punctuations import Row, Way
from xmlstream.operators.state.blocked_set import BlockedSet
from xmlstream.operators.state.closed_set import ClosedSet, added_punctuations
from xmlstream.operators.state.expiring_set import Entry
from xmlstream.operators.storage.records import Record
from xmlstream.plan.nodes import Node, Results, Scan, Static, declared_over
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.pattern import Range, Wildcard
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet, remainder
from xmlstream.punct_ns.recast import over_first
from xmlstream.punct_ns.schema import Attribute
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.sources.xml.grammar.lifespans import has_closed

if TYPE_CHECKING:
    from xmlstream.punct_ns.image import Function


@dataclass(frozen=True, slots=True)
class SliceTime(Record):
    """A slice and its recorded time; `or_before` if it may have been an earlier slice."""

    slice: int
    time: datetime
    or_before: bool = False

    @staticmethod
    def of(record: Commit, *, or_before: bool = False) -> SliceTime:
        return SliceTime(record.slice, record.time, or_before)


class SentPunctuations:
    """The punctuations that a source, or a rule, has sent, and when.

    Args:
        records: Commit records, from a complete one on.
    """

    def __init__(self, records: Sequence[Commit], name: str, node: Node) -> None:
        self._schema, self._over = node.schema, declared_over(node)
        self._added = [
            (SliceTime.of(record, or_before=i == 0 and record.slice > 0), record.state(name).sets.get("added", ()))
            for i, record in enumerate(records)
        ]
        every = (p for _, entries in self._added for p in self._read(entries))
        self._lasting = PunctuationSet(self._schema, (p for p in every if p.lifespan is None))
        self._now = self._added[-1][0].time
        self._held: ClosedSet | None = None

    def whole(self) -> PunctuationSet:
        """All punctuations that hold as of the last commit."""
        return PunctuationSet(self._schema, self._parsed(text for _, texts in self._added for text in texts))

    def when(self, ps: Iterable[Punctuation]) -> dict[Punctuation, SliceTime]:
        """The slice since which each punctuation is covered; those that are not covered are left out."""
        slices: dict[Punctuation, SliceTime] = {}
        open_, sent = list(dict.fromkeys(ps)), PunctuationSet(self._schema)
        for time, texts in self._added:
            sent.add_all(self._parsed(texts))
            slices |= {p: time for p in open_ if sent.covers(p)}
            open_ = [p for p in open_ if p not in slices]
            if not open_:
                break
        return slices

    def lifespan(self, p: Punctuation) -> Lifespan | None:
        """The lifespan of the punctuations that cover this one; None for ever."""
        if self._held is None:
            self._held = ClosedSet(self._schema)
            self._held.absorb(p for _, entries in self._added for p in self._read(entries))
            self._held.end(partial(Lifespan.is_over, now=self._now, has_closed=partial(has_closed, self._lasting)))
        return self._held.lifespan(p)

    def _read(self, entries: Iterable[Entry]) -> list[Punctuation]:
        return over_first(added_punctuations(entries, self._over), self._schema)

    def _parsed(self, entries: Iterable[Entry]) -> Iterator[Punctuation]:
        """The recorded punctuations that hold as of the last commit, without their lifespans."""
        for p in self._read(entries):
            if p.lifespan is None or not p.lifespan.is_over(self._now, partial(has_closed, self._lasting)):
                yield p.lasting(None)


Functions = Callable[[str, Attribute, Domain, bool], "Function | None"]
"""Computes an expression over one attribute: its text, the attribute, the domain of its values, whether it is local."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A punctuation that a source, or a rule that punctuates it, must send, and the parts that are still missing."""

    node: Node
    wanted: Punctuation
    missing: tuple[Punctuation, ...]


@dataclass(frozen=True, slots=True)
class HeldRows:
    """The kept rows of an operator, and its expressions as functions."""

    node: Node
    kept: KeptRows
    sets: Mapping[str, Sequence[Entry]]
    functions: Functions

    def rows(
        self,
        log: str,
        names: Sequence[str],
        like: Punctuation,
        waiting: str | None = None,
        beside: Sequence[Attribute] = (),
    ) -> Iterable[Row] | None:
        """See `xmlstream.operators.required_punctuations.Held`."""
        back = BlockedSet(like.schema, self.sets.get(waiting, ()) if waiting else ())
        # Of each blocked punctuation only the part within `like` matters: the rest goes out by itself.
        parts = ((p, p.meet(like)) for p in back)
        # Its wildcards stay wildcards.
        held = [
            like,
            *(Punctuation.at(like.schema, {i: part.patterns[i] for i in p.restricted}) for p, part in parts if part),
        ]
        attributes = log_attributes(names, [*(below.schema for below in self.node.inputs), self.node.schema])
        return self.kept.rows(log, [*attributes, *beside], held, like.schema)

    def function(self, expression: str, x: Attribute, y: Domain, *, local: bool) -> Function | None:
        """See `xmlstream.operators.required_punctuations.Held`."""
        return self.functions(expression, x, y, local)


class MissingPunctuations:
    """The missing punctuations of the nodes of a plan, as of a commit."""

    def __init__(
        self,
        kept: Mapping[Node, KeptRows],
        sets: Mapping[Node, Mapping[str, Sequence[Entry]]],
        sent: Mapping[Node, PunctuationSet],
        functions: Functions,
        on_disk: Mapping[Node, ClosedOnDisk] | None = None,
        rosters: Mapping[Node, Punctuate] | None = None,
    ) -> None:
        """Takes the state of a commit.

        Args:
            kept: The kept rows of each operator.
            sets: The recorded punctuations of each operator, by the names of its sets.
            sent: The punctuations that each source and rule has sent, except the closed strings in files.
            functions: Computes expressions.
            on_disk: The closed strings of sources that are in files.
            rosters: The operators that punctuate by a roster, with its members as of the commit.
        """
        self._kept, self._sets, self._sent_by, self._functions = kept, sets, sent, functions
        self._on_disk, self._rosters = on_disk or {}, rosters or {}
        self._sent: dict[Node, PunctuationSet] = {}
        self._known: dict[tuple[Node, Punctuation], tuple[Missing, ...]] = {}

    def of(self, node: Node, p: Punctuation) -> tuple[Missing, ...]:
        """The punctuations that each source must send before a node can emit `p`."""
        if p.is_empty:
            # No tuple of this input can match, so only the end of the input closes `p`.
            p = Punctuation.all(p.schema)
        if (node, p) not in self._known:
            self._known[node, p] = self._found(node, p)
        return self._known[node, p]

    def _of_ways(self, node: Node, ways: Sequence[Way]) -> tuple[Missing, ...]:
        """The missing punctuations of the cheapest of several ways."""
        every = [self._together(lack for i, p in way for lack in self.of(node.inputs[i], p)) for way in ways]
        return min(every, key=_burden)

    def _found(self, node: Node, p: Punctuation) -> tuple[Missing, ...]:
        operator = node.operator
        if isinstance(operator, Scan | Static):
            if node in self._on_disk:
                self._sent_by[node].add_all(self._on_disk[node].named(p))
            return (Missing(node, p, tuple(remainder(p, self._sent_by[node]))),)
        if isinstance(operator, Results):
            return ()
        if isinstance(operator, Streams):
            return (Missing(node, p, tuple(remainder(p, self._sent_by[node]))),)
        if isinstance(operator, Punctuate):
            left = remainder(p, self._sent_by[node])
            if not left:
                return (Missing(node, p, ()),)
            held, schema = self._held(node), node.inputs[0].schema
            ways = (self._rosters.get(node, operator).wanted(part, held, schema) for part in left)
            found = self._together(lack for each in ways for lack in self._of_ways(node, each))
            return tuple(_by_rule(lack, node, operator) for lack in found)
        lacks = self._of_ways(node, operator.wanted(p, self._held(node), *(below.schema for below in node.inputs)))
        # A punctuation that the operator has emitted lacks nothing, whatever else the operator waits for.
        return tuple(replace(lack, missing=()) for lack in lacks) if self._has_sent(node, p) else lacks

    def _has_sent(self, node: Node, p: Punctuation) -> bool:
        """Whether an operator has emitted a punctuation, as far as its state records that."""
        over = node.state_schema.sets.get("sent")
        if over is None or len(over) != len(node.schema):
            return False
        if node not in self._sent:
            entries = added_punctuations(self._sets[node].get("sent", ()), over)
            self._sent[node] = PunctuationSet(over, (p for p in entries if p.lifespan is None))
        return self._sent[node].covers(Punctuation(over, p.patterns))

    def of_row(self, node: Node, log: str, row: Row) -> tuple[Missing, ...]:
        """The punctuations that a kept row waits for, by source."""
        inputs = (below.schema for below in node.inputs)
        return self._of_ways(node, node.state_schema.logs[log].ways(row, self._held(node), *inputs))

    def _held(self, node: Node) -> HeldRows:
        return HeldRows(node, self._kept[node], self._sets[node], self._functions)

    @staticmethod
    def _together(lacks: Iterable[Missing]) -> tuple[Missing, ...]:
        """Merges the entries of each source into one: the punctuations that it must send, and those not sent yet."""
        wanted: dict[Node, PunctuationSet] = {}
        missing: dict[Node, PunctuationSet] = {}
        for lack in lacks:
            wanted.setdefault(lack.node, PunctuationSet(lack.wanted.schema)).add(lack.wanted)
            missing.setdefault(lack.node, PunctuationSet(lack.wanted.schema)).add_all(lack.missing)
        return tuple(Missing(node, p, tuple(missing[node].meets([p]))) for node, ps in wanted.items() for p in ps)


def _burden(lacks: Sequence[Missing]) -> tuple[int, int, int, int]:
    """Cost of a way: first the unbounded sides of its punctuations, since these close what no kept tuple needs."""
    missing = [lack for lack in lacks if lack.missing]
    parts = [p for lack in missing for p in lack.missing]
    return max(map(_unbounded_sides, parts), default=0), len(missing), len(parts), len(lacks)


def _unbounded_sides(p: Punctuation) -> int:
    """Number of sides on which a punctuation has no bound: two for each attribute that it does not restrict."""
    sides = 2 * sum(isinstance(pattern, Wildcard) for pattern in p.patterns)
    ranges = (pattern for pattern in p.patterns if isinstance(pattern, Range))
    return sides + sum((pattern.low is None) + (pattern.high is None) for pattern in ranges)


def _by_rule(lack: Missing, node: Node, operator: Punctuate) -> Missing:
    """Attributes a missing punctuation to the rule instead of its source, if only the rule promises it."""
    below = node.inputs[0]
    if lack.node != below or not lack.missing:
        return lack
    promised = below.operator.options.schemes if isinstance(below.operator, Scan) else ()
    by_source, by_rule = (any(helps(which, p) for p in lack.missing) for which in (promised, operator.rule.promises()))
    return Missing(node, lack.wanted, lack.missing) if by_rule and not by_source else lack


def helps(schemes: Iterable[Scheme], p: Punctuation) -> bool:
    """Whether one of the schemes promises punctuations that cover this one in the end."""
    restricted = {p.schema[i].name.lower() for i in p.restricted}
    every = (scheme.terms for scheme in schemes if scheme.terms)
    return any(all(term.finite or term.attribute.lower() in restricted for term in terms) for terms in every)
