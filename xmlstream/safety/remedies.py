"""Remedies: the smallest promises that make a query emit all results and bound its state; and idle promises.

The search tries promises of one attribute. A source is *needed* if the query stays unsafe even if all other sources
promise everything. If the promises of the needed sources are not enough, sets with one or two further sources are
tried. For each source of a set, a binary search finds the promises that help if the other sources of the set promise
everything; then combinations of these, one per source, are tried. Verdicts are monotone in schemes, so a promise that
helps alone also helps with others. The last trial rejects combinations that do not fit together, such as different
attributes of two merged streams. Promises are tried on the query, not on the joins that were chosen without them.

A query benefits from a scheme that enables or cleanses it (Tucker et al. 2007, §3.3). A promise is *idle* if it does
neither, and no scheme of the result follows from it: then its source need not punctuate so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import combinations, islice, product
from typing import TypeAlias, TypeVar

from xmlstream.dataclasses import dataclass, field
from xmlstream.optimizer.choose_joins import joined_at_once
from xmlstream.plan.nodes import Node, Scan, results, topological
from xmlstream.punct_ns.numeric_type import NumericType
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Kind, Scheme, Term, format_schemes, is_finite
from xmlstream.punct_ns.temporal_type import TemporalType
from xmlstream.safety.verdicts import Additions, Promised, all_promises, judged, promises_above, verdict_on

T = TypeVar("T")

TRIED = 200
"""Most combinations of promises to try per set of sources."""

MOST_OTHERS, TRIED_OTHERS = 2, 20
"""Most sources to add to the needed ones, and most such sets to try."""

Promises: TypeAlias = tuple[tuple[str, Scheme], ...]
"""Pairs of a source's name and a scheme."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Promises that would make the query enabled and safe.

    Attributes:
        promises: The promises, one for each source that needs one.
        declared: Schemes that these sources declare already.
    """

    promises: Promises
    declared: Mapping[str, Sequence[Scheme]] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        """The condition on the sources, and the options to declare then, with their present schemes."""
        sources: dict[tuple[str, str], list[str]] = {}
        for source, scheme in self.promises:
            option = format_schemes(dict.fromkeys((*self.declared.get(source, ()), scheme)))
            sources.setdefault((_meaning(scheme), option), []).append(source)
        able = [f"{' and '.join(names)} can say {meaning}" for (meaning, _), names in sources.items()]
        options = [
            f"schemes '{option}' in the options of {' and '.join(names)}" for (_, option), names in sources.items()
        ]
        return f"if {' and '.join(able)}, declare {' and '.join(options)}"


def _meaning(scheme: Scheme) -> str:
    """The meaning of a scheme's punctuations, for readers who do not know the term."""
    (term,) = scheme.terms
    if term.kind == "prefix":
        return f"up to which {term.attribute} all tuples have come"
    return f"of each {term.attribute} when its last tuple has come"


def remedies(root: Node, *, follow: bool, most: int = 3, kinds: Collection[Kind] = ("each", "prefix")) -> list[Remedy]:
    """Returns the smallest promises that make a query safe; none if it is safe, or no promises of one term suffice.

    Args:
        root: The plan.
        follow: The run waits for more input, so that the sources have no known end.
        most: Most remedies to return.
        kinds: The kinds of terms to try.
    """
    sources = {
        node.operator.name: (node.operator, node.schema)
        for node in topological(root)
        if isinstance(node.operator, Scan)
    }
    everything = {
        name: tuple(scheme for scheme in single_terms(schema) if scheme.terms[0].kind in kinds)
        for name, (_, schema) in sources.items()
    }

    any_plan = joined_at_once(root)

    def mends(additions: Additions) -> bool:
        verdict = judged(any_plan, follow=follow, additions=additions)
        return verdict.is_enabled and verdict.is_safe

    if mends({}) or not mends(everything):
        return []
    declared = {name: scan.options.schemes for name, (scan, _) in sources.items()}
    for sets in _sources_that_mend(everything, mends):
        found = (chosen for chosen in _combined(sets, everything, mends) if mends(_by_source(chosen)))
        if some := [Remedy(chosen, declared) for chosen in islice(found, most)]:
            return some
    return []


def _by_source(promises: Promises) -> Additions:
    return {name: [scheme] for name, scheme in promises}


def _combined(
    sets: Sequence[Sequence[str]], everything: Additions, mends: Callable[[Additions], bool]
) -> list[Promises]:
    """Combinations of one promise for each source of a set; each helps if the other sources promise everything.

    Promises of the same attribute come first: it is the one that the sources are merged or joined by most often.
    """
    combined: list[Promises] = []
    for names in sets:
        choices: list[list[tuple[str, Scheme]]] = []
        for name in names:
            others = {other: everything[other] for other in names if other != name}
            helpful = _each_that(everything[name], partial(_mends_beside, mends, others, name))
            choices.append([(name, scheme) for scheme in helpful])
        combined += islice(product(*choices), TRIED)
    return sorted(
        combined,
        key=lambda chosen: (
            len({str(scheme) for _, scheme in chosen}),
            sum(scheme.terms[0].kind == "prefix" for _, scheme in chosen),
        ),
    )


def _sources_that_mend(everything: Additions, mends: Callable[[Additions], bool]) -> Iterator[list[list[str]]]:
    """The sets of sources whose promises suffice, the smallest first: the needed sources, and at most two others."""
    needed = _each_that(
        list(everything), lambda some: not mends({name: everything[name] for name in everything if name not in some})
    )
    others = [name for name in everything if name not in needed]
    for more in range(MOST_OTHERS + 1):
        sets = ([*needed, *chosen] for chosen in islice(combinations(others, more), TRIED_OTHERS))
        yield [names for names in sets if mends({name: everything[name] for name in names})]


def _mends_beside(mends: Callable[[Additions], bool], others: Additions, name: str, schemes: Sequence[Scheme]) -> bool:
    return mends({**others, name: schemes})


def _each_that(candidates: Sequence[T], does: Callable[[Sequence[T]], bool]) -> list[T]:
    """The candidates that suffice alone, by binary search: `does` must be monotone in its argument."""
    if not candidates or not does(candidates):
        return []
    if len(candidates) == 1:
        return [*candidates]
    half = len(candidates) // 2
    return _each_that(candidates[:half], does) + _each_that(candidates[half:], does)


def single_terms(schema: Schema) -> Iterator[Scheme]:
    """Schemes to try for a source: values of each attribute one by one, then prefixes of each ordered attribute."""
    attributes = [attribute for attribute in schema if not attribute.domain.opaque]
    for attribute in attributes:
        yield Scheme((Term(attribute.name, finite=is_finite("each", attribute.domain)),))
    for attribute in attributes:
        if isinstance(attribute.domain.sql, NumericType | TemporalType):
            yield Scheme((Term(attribute.name, "prefix", finite=is_finite("prefix", attribute.domain)),))


@dataclass(frozen=True, slots=True)
class IdlePromise:
    """A scheme of a source that a query does not benefit from."""

    source: str
    scheme: Scheme


def idle_promises(root: Node) -> list[IdlePromise]:
    """The schemes that sources need not promise: without them the verdict on the query is the same.

    Neither the chosen joins may need them, nor those that would be chosen without. Of two equally useful schemes of a
    source the second is idle. The result is in the order of the sources.
    """
    plans = [_Gains(plan) for plan in dict.fromkeys((root, joined_at_once(root)))]
    every: list[IdlePromise] = []
    for node in topological(root):
        if not isinstance(node.operator, Scan):
            continue
        schemes, idle = node.operator.options.schemes, []
        for scheme in reversed(schemes):
            fewer = tuple(other for other in schemes if other is not scheme)
            found = [known for plan in plans if (known := plan.under(node, fewer)) is not None]
            if len(found) == len(plans):
                for plan, known in zip(plans, found, strict=True):
                    plan.known = known
                schemes = fewer
                idle.append(IdlePromise(node.label, scheme))
        every += reversed(idle)
    return every


class _Gains:
    """What the schemes of sources bring to a plan: when each operator answers and purges, and what the results promise.

    Attributes:
        known: The schemes of each node.
    """

    def __init__(self, root: Node) -> None:
        self.known = all_promises(root, follow=True)
        self._results = frozenset(results(root))
        self._places = {node: place for place, node in enumerate(self.known)}
        self._nodes = list(self.known)
        self._above: dict[Node, list[int]] = {}
        for node, place in self._places.items():
            for below in node.inputs:
                self._above.setdefault(below, []).append(place)
        self._whole = {node: self._of(node, self.known) for node in self.known}

    def under(self, source: Node, schemes: tuple[Scheme, ...]) -> dict[Node, Promised] | None:
        """The schemes of each node where a source has these; None if an operator or a result does not gain the same.

        Only the nodes above the source are looked at, up to those for which nothing changes.
        """
        known, waiting, seen = dict(self.known), [self._places[source]] if source in self._places else [], set[int]()
        while waiting:
            place = heappop(waiting)
            if place in seen:
                continue
            seen.add(place)
            node = self._nodes[place]
            known[node] = Promised(schemes, schemes) if node == source else promises_above(node, known)
            if self._of(node, known) != self._whole[node]:
                return None
            for above in self._above.get(node, ()) if known[node] != self.known[node] else ():
                heappush(waiting, above)
        return known

    def _of(self, node: Node, known: Mapping[Node, Promised]) -> tuple[object, ...]:
        one = verdict_on(node, "", known)
        keeps = [(kept.until.when, kept.is_bounded) for kept in one.keeps]
        return one.answers.when, keeps, sorted(map(str, known[node].running)) if node in self._results else None
