"""Remedies: the smallest promises that make a query emit all results and bound its state; and idle promises.

A source is *needed* if the query is in trouble although all other sources promise all that they could: then nothing but
a promise of its own helps. If the needed sources do not suffice, one of several others does, or two together: each
smallest set of sources is tried. Which promises of a source help is searched by halves, against all that the other
sources of the set could promise; the promises found for each source are tried together. Verdicts are monotone in
schemes, so a promise that helps alone helps with others; the last trial removes what does not fit together, such as
different attributes of two streams that are merged.

A query benefits from a scheme if the scheme enables it or cleanses it (Tucker et al. 2007, §3.3). A promise is *idle*
if it does neither, and no scheme of the result follows from it: its source punctuates for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, islice, product
from typing import Any, TypeVar

from punct_ns.numeric_type import NumericType
from punct_ns.scheme import Kind, Scheme, Term, format_schemes, is_finite
from punct_ns.temporal_type import TemporalType
from xmlstream.plan.nodes import Node, Scan, results, topological
from xmlstream.safety.verdicts import Additions, Promised, judged, promised

T = TypeVar("T")

TRIED = 200
"""Combinations of promises of several sources that are tried together."""

MOST_OTHERS, TRIED_OTHERS = 2, 20
"""Sources that are tried beside those without which nothing helps: how many together, and how many such sets."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Promises, by the sources' names, with which the query would be enabled and safe.

    `declared` is what these sources promise already.
    """

    promises: tuple[tuple[str, Scheme], ...]
    declared: Mapping[str, Sequence[Scheme]] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        """What a source must be able to say, and the option to write then, with what it has already."""
        sources: dict[tuple[str, str], list[str]] = {}
        for source, scheme in self.promises:
            option = format_schemes(dict.fromkeys((*self.declared.get(source, ()), scheme)))
            sources.setdefault((_said(scheme), option), []).append(source)
        able = [f"{' and '.join(names)} can say {said}" for (said, _), names in sources.items()]
        options = [
            f"schemes '{option}' in the options of {' and '.join(names)}" for (_, option), names in sources.items()
        ]
        return f"if {' and '.join(able)}, declare {' and '.join(options)}"


def _said(scheme: Scheme) -> str:
    """What punctuations of a scheme say, to who may not call them so."""
    (term,) = scheme.terms
    if term.kind == "prefix":
        return f"up to which {term.attribute} all tuples have come"
    return f"of each {term.attribute} when its last tuple has come"


def remedies(root: Node, *, follow: bool, most: int = 3, kinds: Collection[Kind] = ("each", "prefix")) -> list[Remedy]:
    """The smallest promises that mend a query, up to so many; none if it needs none, or none of one term suffices.

    Args:
        root: The plan.
        follow: Whether its sources are waited for, so that nobody knows of an end of theirs.
        most: How many.
        kinds: Which kinds of terms are tried.
    """
    sources = {node.operator.name: node for node in topological(root) if isinstance(node.operator, Scan)}
    everything = {
        name: tuple(s for s in _candidates(node) if s.terms[0].kind in kinds) for name, node in sources.items()
    }

    def mends(additions: Additions) -> bool:
        verdict = judged(root, follow=follow, additions=additions)
        return verdict.is_enabled and verdict.is_safe

    if mends({}) or not mends(everything):
        return []
    combined: list[tuple[tuple[str, Scheme], ...]] = []
    for names in _sources_that_mend(everything, mends):
        choices: list[list[tuple[str, Scheme]]] = []
        for name in names:
            others = {other: everything[other] for other in names if other != name}
            helpful = _each_that(everything[name], partial(_mends_beside, mends, others, name))
            choices.append([(name, scheme) for scheme in helpful])
        combined += islice(product(*choices), TRIED)
    # What all sources say of one attribute comes first: that is what is merged or joined most often.
    combined.sort(key=lambda chosen: (len({str(scheme) for _, scheme in chosen}), sum(map(_is_of_order, chosen))))
    declared = {
        name: node.operator.options.schemes for name, node in sources.items() if isinstance(node.operator, Scan)
    }
    found = (
        Remedy(chosen, declared) for chosen in combined if chosen and mends({name: [scheme] for name, scheme in chosen})
    )
    return list(islice(found, most))


def _sources_that_mend(everything: Additions, mends: Callable[[Additions], bool]) -> list[list[str]]:
    """The smallest sets of sources whose promises suffice: those that are needed, and of others one or two, if any."""
    needed = _each_that(list(everything), lambda some: not mends(_without(everything, some)))
    others = [name for name in everything if name not in needed]
    for more in range(MOST_OTHERS + 1):
        sets = ([*needed, *chosen] for chosen in islice(combinations(others, more), TRIED_OTHERS))
        if found := [names for names in sets if mends({name: everything[name] for name in names})]:
            return found
    return []


def _is_of_order(chosen: tuple[str, Scheme]) -> bool:
    return any(term.kind == "prefix" for term in chosen[1].terms)


def _without(additions: Additions, names: Collection[str]) -> Additions:
    return {name: said for name, said in additions.items() if name not in names}


def _mends_beside(mends: Callable[[Additions], bool], others: Additions, name: str, schemes: Sequence[Scheme]) -> bool:
    return mends({**others, name: schemes})


def _each_that(candidates: Sequence[T], does: Callable[[Sequence[T]], bool]) -> list[T]:
    """The candidates that do it alone, found by halves: where some do it together with others, all of these do, too."""
    if not candidates or not does(candidates):
        return []
    if len(candidates) == 1:
        return [*candidates]
    half = len(candidates) // 2
    return _each_that(candidates[:half], does) + _each_that(candidates[half:], does)


def _candidates(node: Node) -> Iterator[Scheme]:
    """Each attribute of a source: its values one by one, then ranges from the start."""
    attributes = [attribute for attribute in node.schema if not attribute.domain.opaque]
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
    """Those that can all be left out without making the query worse, the last ones of a source first.

    Of two that serve alike the first is not idle. Their order in the result is that of the sources.
    """
    scans = [node for node in topological(root) if isinstance(node.operator, Scan)]
    said = {node: [*node.operator.options.schemes] for node in scans if isinstance(node.operator, Scan)}
    whole = _gained(root, said)
    found: list[IdlePromise] = []
    for node in scans:
        idle = []
        for scheme in reversed(tuple(said[node])):
            fewer = {**said, node: [other for other in said[node] if other is not scheme]}
            if _gained(root, fewer) == whole:
                said = fewer
                idle.append(IdlePromise(node.label, scheme))
        found += reversed(idle)
    return found


def _gained(root: Node, said: dict[Node, list[Scheme]]) -> Any:
    """When each operator answers and forgets, and what is promised of the results."""
    known = promised(root, follow=True, instead=said)
    verdict = judged(root, follow=True, known=known)
    operators = [
        (one.answers.when, [(kept.until.when, kept.is_bounded) for kept in one.keeps]) for one in verdict.operators
    ]
    return operators, [_as_set(known[node]) for node in results(root)]


def _as_set(found: Promised) -> Sequence[str]:
    return sorted(map(str, found.running))
