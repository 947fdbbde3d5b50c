"""Remedies: the smallest promises that would make a query answer, and its state stay bounded.

A source is *needed* if the query is in trouble although all other sources promise all that they could: then nothing but
a promise of its own helps. Where those that are needed do not suffice, one of several others does, or two together:
each smallest set of sources is tried. Which promises of a source help is tried by halves, against all that the others
of its set could say; what is found for each is tried together. Verdicts are monotone in schemes, so that what helps
alone helps in company; the trial at the end leaves out what does not fit together, such as different attributes of two
streams that are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, islice, product
from typing import TypeVar

from punct_ns.numeric_type import NumericType
from punct_ns.scheme import Kind, Scheme, Term, format_schemes, is_finite
from punct_ns.temporal_type import TemporalType
from xmlstream.plan.nodes import Node, Scan, topological
from xmlstream.safety.promises import Additions
from xmlstream.safety.verdicts import judged

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
