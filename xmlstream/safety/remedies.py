"""Remedies: the smallest promises that would make a query answer, and its state stay bounded.

A source is *needy* if the query is in trouble although all other sources promise all that they could: then nothing but
a promise of its own helps. Which promises do is tried by halves, against that background; what is found for each needy
source is tried together. Verdicts are monotone in schemes, so that what helps alone helps in company; the trial at the
end leaves out what does not fit together, such as different attributes of two streams that are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, product
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

    if mends({}):
        return []

    def is_needed(some: Sequence[str]) -> bool:
        return not mends(_without(everything, some))

    choices: list[list[tuple[str, Scheme]]] = []
    for name in _each_that(list(everything), is_needed):
        others = _without(everything, [name])
        helpful = _each_that(everything[name], partial(_mends_beside, mends, others, name))
        choices.append([(name, scheme) for scheme in helpful])
    # What all sources say of one attribute comes first: that is what is merged or joined most often.
    combined = sorted(islice(product(*choices), TRIED), key=lambda chosen: len({str(scheme) for _, scheme in chosen}))
    declared = {
        name: node.operator.options.schemes for name, node in sources.items() if isinstance(node.operator, Scan)
    }
    found = (
        Remedy(chosen, declared) for chosen in combined if chosen and mends({name: [scheme] for name, scheme in chosen})
    )
    return list(islice(found, most))


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
