"""Missing punctuations: traces a missing punctuation from an operator back to the sources that must send it.

Each operator gives the punctuations of its inputs from which one of its output follows
(`operators.required_punctuations`). If there are several ways, the one that closes least is reported. At a source, what
the source has already closed is subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from operators.punctuate import Punctuate
from operators.required_punctuations import Row, Way
from operators.state.blocked_set import BlockedSet
from operators.state.closed_set import said_anew
from operators.state.expiring_set import Entry
from punct_ns.domain import Domain
from punct_ns.pattern import Pattern, Range, Wildcard
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet, remainder
from punct_ns.schema import Attribute
from punct_ns.scheme import Scheme
from xmlstream.diagnosis.kept_rows import ClosedOnDisk, KeptRows, attributes_of
from xmlstream.plan.nodes import Node, Results, Scan, Static

if TYPE_CHECKING:
    from punct_ns.image import Function


Functions = Callable[[str, Attribute, Domain, bool], "Function | None"]
"""Computes an expression over one attribute: its text, the attribute, the domain of its values, whether it is local."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What is wanted of a source, or of a rule that punctuates it, and what of that was not said yet."""

    node: Node
    wanted: Punctuation
    missing: tuple[Punctuation, ...]


@dataclass(frozen=True, slots=True)
class HeldRows:
    """What one operator keeps, and what its expressions mean."""

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
        """See `operators.required_punctuations.Held`."""
        back = BlockedSet(like.schema, self.sets.get(waiting, ()) if waiting else ())
        # Of each that waits the part that speaks of the same: the rest of it goes out by itself.
        parts = ((p, p.meet(like)) for p in back)
        held = [like, *(_at(p.restricted, part) for p, part in parts if part is not None)]
        attributes = attributes_of(names, [*(below.schema for below in self.node.inputs), self.node.schema])
        return self.kept.rows(log, [*attributes, *beside], held, like.schema)

    def function(self, expression: str, x: Attribute, y: Domain, *, local: bool) -> Function | None:
        """See `operators.required_punctuations.Held`."""
        return self.functions(expression, x, y, local)


class MissingPunctuations:
    """What parts of a plan lack, as of a commit."""

    def __init__(
        self,
        kept: Mapping[Node, KeptRows],
        sets: Mapping[Node, Mapping[str, Sequence[Entry]]],
        said: Mapping[Node, PunctuationSet],
        functions: Functions,
        on_disk: Mapping[Node, ClosedOnDisk] | None = None,
    ) -> None:
        """Take up what operators keep, and hold of punctuations, what sources and rules have said, and who computes.

        What sources have said may lack strings that lie on disk.
        """
        self._kept, self._sets, self._said, self._functions = kept, sets, said, functions
        self._on_disk = on_disk or {}
        self._sent: dict[Node, PunctuationSet] = {}
        self._known: dict[tuple[Node, Punctuation], tuple[Missing, ...]] = {}

    def of(self, node: Node, p: Punctuation) -> tuple[Missing, ...]:
        """What a punctuation of a node's output lacks, of each source."""
        if p.is_empty:
            # What cannot come of this part is not said of it, either, before its end.
            p = Punctuation.all(p.schema)
        if (node, p) not in self._known:
            self._known[node, p] = self._found(node, p)
        return self._known[node, p]

    def _of_ways(self, node: Node, ways: Sequence[Way]) -> tuple[Missing, ...]:
        """What the least of several ways lacks, by which the inputs of a node meet something."""
        every = [self._together(lack for i, p in way for lack in self.of(node.inputs[i], p)) for way in ways]
        return min(every, key=_burden)

    def _found(self, node: Node, p: Punctuation) -> tuple[Missing, ...]:
        operator = node.operator
        if isinstance(operator, Scan | Static):
            if node in self._on_disk:
                self._said[node].add_all(self._on_disk[node].named(p))
            return (Missing(node, p, tuple(remainder(p, self._said[node]))),)
        if isinstance(operator, Results):
            return ()
        if isinstance(operator, Punctuate):
            left = remainder(p, self._said[node])
            if not left:
                return (Missing(node, p, ()),)
            found = self._together(lack for part in left for lack in self.of(node.inputs[0], part))
            return tuple(_by_rule(lack, node, operator) for lack in found)
        lacks = self._of_ways(node, operator.wanted(p, self._held(node), *(below.schema for below in node.inputs)))
        # What went out is lacking nothing, whatever waits beside it.
        return tuple(replace(lack, missing=()) for lack in lacks) if self._has_sent(node, p) else lacks

    def _has_sent(self, node: Node, p: Punctuation) -> bool:
        """Whether an operator has said a punctuation, as far as it remembers."""
        over = node.state_schema.sets.get("sent")
        if over is None or len(over) != len(node.schema):
            return False
        if node not in self._sent:
            entries = said_anew(self._sets[node].get("sent", ()), over)
            self._sent[node] = PunctuationSet(over, (said for said in entries if said.lifespan is None))
        return self._sent[node].covers(Punctuation(over, p.patterns))

    def of_row(self, node: Node, log: str, row: Row) -> tuple[Missing, ...]:
        """What a row of a log lacks, to be met."""
        inputs = (below.schema for below in node.inputs)
        return self._of_ways(node, node.state_schema.logs[log].ways(row, self._held(node), *inputs))

    def _held(self, node: Node) -> HeldRows:
        return HeldRows(node, self._kept[node], self._sets[node], self._functions)

    @staticmethod
    def _together(lacks: Iterable[Missing]) -> tuple[Missing, ...]:
        """Of each source all that is wanted; what is missing as one set."""
        wanted: dict[Node, PunctuationSet] = {}
        missing: dict[Node, PunctuationSet] = {}
        for lack in lacks:
            wanted.setdefault(lack.node, PunctuationSet(lack.wanted.schema)).add(lack.wanted)
            missing.setdefault(lack.node, PunctuationSet(lack.wanted.schema)).add_all(lack.missing)
        return tuple(Missing(node, p, tuple(remainder_of(p, missing[node]))) for node, ps in wanted.items() for p in ps)


def _at(places: Iterable[int], p: Punctuation) -> Punctuation:
    """What a punctuation says of these attributes alone."""
    return Punctuation.at(p.schema, {i: p.patterns[i] for i in places})


def remainder_of(p: Punctuation, missing: PunctuationSet) -> list[Punctuation]:
    """The missing parts that are of a punctuation."""
    return missing.meets([p])


def _burden(lacks: Sequence[Missing]) -> tuple[int, int, int, int]:
    """How much is asked: first of all on how many sides without a bound, which closes what nobody waits for."""
    missing = [lack for lack in lacks if lack.missing]
    parts = [p for lack in missing for p in lack.missing]
    return max(map(_unbounded_sides, parts), default=0), len(missing), len(parts), len(lacks)


def _unbounded_sides(p: Punctuation) -> int:
    """On how many sides a punctuation has no bound: two for each attribute that it does not restrict."""
    return sum(_open_sides(pattern) for pattern in p.patterns)


def _open_sides(pattern: Pattern) -> int:
    if isinstance(pattern, Range):
        return (pattern.low is None) + (pattern.high is None)
    return 2 if isinstance(pattern, Wildcard) else 0


def _by_rule(lack: Missing, node: Node, operator: Punctuate) -> Missing:
    """The lack, as one of the rule that promises to say so where its source does not."""
    below = node.inputs[0]
    if lack.node != below or not lack.missing:
        return lack
    promised = below.operator.options.schemes if isinstance(below.operator, Scan) else ()
    by_source, by_rule = (any(helps(which, p) for p in lack.missing) for which in (promised, operator.rule.promises()))
    return Missing(node, lack.wanted, lack.missing) if by_rule and not by_source else lack


def helps(schemes: Iterable[Scheme], p: Punctuation) -> bool:
    """Whether one of the schemes promises punctuations that close this one, in the end."""
    told = {p.schema[i].name.lower() for i in p.restricted}
    speaking = (scheme.terms for scheme in schemes if scheme.terms)
    return any(all(term.finite or term.attribute.lower() in told for term in terms) for terms in speaking)
