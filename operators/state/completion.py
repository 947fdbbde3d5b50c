"""Completion: new punctuations that follow from those of one input, on some of its attributes, or of all inputs.

Completion of groups: one punctuation, or several together, cover every possible tuple of a group. The result is a set
of punctuations on some of the input's attributes, for project, group_by and others (`projPs` and `groupPs` of Tucker et
al. 2003, §5.2 and §5.3, in the more informative form that the paper leaves open). A punctuation that also restricts
another attribute completes nothing by itself; together with others it may.

Common to all inputs is what each of several streams has closed, over the same attributes (setCombine of Tucker et al.
2003, Table 3). A punctuation of one stream waits until all streams have closed the same; then it is emitted and
forgotten.

An operator forgets completed punctuations that it no longer needs. Lone punctuations that complete nothing, for example
closed ids when the operator ignores the id, could complete something only together with ranges that leave out exactly
these values. So only as many of them are kept as the search for a cover looks at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from xmlstream.operators.state.closed_set import ClosedSet
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.punct_ns.cover import EXACT_PUNCTUATIONS
from xmlstream.punct_ns.lifespan import shortest
from xmlstream.punct_ns.pattern import NULL, Range, values
from xmlstream.punct_ns.punctuation import Punctuation, listed
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.recast import placed, project, recast_pattern
from xmlstream.punct_ns.schema import Schema


def completion_sets(input_: Schema, names: Sequence[str] | Schema, number: int = 0) -> dict[str, Schema]:
    """The sets that `completed` keeps for an input; the operator declares them.

    Args:
        input_: The input's schema.
        names: The attributes of the completed punctuations; as a schema, with their new names and types.
        number: The input's number.
    """
    over = names if isinstance(names, Schema) else input_.only(names)
    return {f"input-{number}": input_, f"closed-{number}": over}


def completed(
    punctuations: Sequence[Punctuation], names: Sequence[str], state: OperatorState, input_: int = 0
) -> list[Punctuation]:
    """The new punctuations on the named attributes of an input, minimal; the others wait in the state."""
    held, closed = state.punctuations(f"input-{input_}"), closed_so_far(state, input_)
    new = held.absorb(punctuations)
    found: list[Punctuation] = []
    if new:
        found = project(held.set, names, closed.set.schema, new=[p.lasting(None) for p in new])
        found = closed.absorb(_for_their_time(found, names, held))
    bound(held, new, names)
    return found


def _for_their_time(found: list[Punctuation], names: Sequence[str], held: ClosedSet) -> list[Punctuation]:
    """The completed punctuations, each with the lifespan of those that it follows from."""
    if not held.passes:
        return found
    schema = held.set.schema
    places = [schema.index(name) for name in names]
    parts: list[Punctuation] = []
    for p in found:
        own = {at: recast_pattern(p.patterns[i], p.schema[i].domain, schema[at].domain) for i, at in enumerate(places)}
        whole = Punctuation.at(schema, own)
        alone = [part for part in held.for_its_time([whole]) if set(places).issuperset(part.restricted)]
        for part in alone:
            pairs = zip(places, p.schema, strict=True)
            over = (recast_pattern(part.patterns[at], schema[at].domain, a.domain) for at, a in pairs)
            parts.append(Punctuation(p.schema, tuple(over), part.lifespan))
        if not PunctuationSet(schema, (part.lasting(None) for part in alone)).covers(whole):
            parts.append(p.lasting(held.lifespan(whole)))
    return parts


def closed_so_far(state: OperatorState, input_: int = 0) -> ClosedSet:
    """The punctuations that `completed` has returned for an input, less the forgotten ones."""
    return state.punctuations(f"closed-{input_}")


def closed_together(ps: Iterable[Punctuation], places: Sequence[int], closed: PunctuationSet) -> list[Punctuation]:
    """What a set closes, by one punctuation or several together, of the values that others are about.

    Args:
        ps: Punctuations over the set's schema, of any attributes and values.
        places: The places of the attributes whose values count, for example a join's keys.
        closed: The set, for example what one side has closed of keys and of what is bounded beside them.

    Returns:
        Punctuations over the set's schema that restrict these attributes alone, minimal.
    """
    about = [Punctuation.at(closed.schema, {i: p.patterns[i] for i in places}) for p in ps]
    met = closed.meets(about) if about else []
    if all(set(places).issuperset(p.restricted) for p in met):
        return met
    names = [closed.schema[i].name for i in places]
    found = project(PunctuationSet(closed.schema, met), names, closed.schema.only(names))
    return placed(found, names, closed.schema)


def forget_completed(
    complete: Iterable[Punctuation], names: Sequence[str], state: OperatorState, input_: int = 0
) -> None:
    """Forgets punctuations that `completed` has returned, and those that they follow from: they have no further effect.

    An input never sends them again.
    """
    held, closed = state.punctuations(f"input-{input_}"), closed_so_far(state, input_)
    gone = list(complete)
    closed.forget(gone)
    schema = held.set.schema
    pairs = zip(names, closed.set.schema, strict=True)
    if all(schema.attribute(name).domain.type == over.domain.type for name, over in pairs):
        held.forget(placed(gone, names, schema))


def without_null(attributes: Schema, given: Schema) -> list[Punctuation]:
    """The punctuations that hold from the beginning: null, for each attribute that is never null in an input."""
    pairs = enumerate(zip(attributes, given, strict=True))
    never = [i for i, (attribute, own) in pairs if attribute.domain.nullable and not own.domain.nullable]
    return [Punctuation.at(attributes, {i: NULL}) for i in never]


def forget_closed(
    closed: Sequence[ClosedSet], new: Sequence[Sequence[Punctuation]], known: ClosedSet
) -> list[Punctuation]:
    """Forgets the punctuations that both inputs have sent for ever, one of them just now; returns them.

    Args:
        closed: The punctuations of each input, over the same attributes.
        new: The new ones among them.
        known: The set for parts of what one of them has sent as a whole.
    """
    lasting = [[p for p in newly if p.lifespan is None] for newly in new]
    both = [p for i, newly in enumerate(lasting) if newly for p in closed[1 - i].lasting.meets(newly)]
    with common_known(both, [held.lasting for held in closed], known) as common:
        for held in closed:
            held.forget(common)
    return common


def bound(held: ClosedSet, new: Sequence[Punctuation], names: Sequence[str]) -> None:
    """Keeps only the latest lone punctuations that complete nothing: as many as a cover can consist of."""
    places = frozenset(map(held.set.schema.index, names))

    def incomplete(ps: Iterable[Punctuation]) -> list[Punctuation]:
        return [p for p in ps if not places.issuperset(p.restricted) and _is_lone(p, places)]

    if new and _count(every := incomplete(held.set)) > EXACT_PUNCTUATIONS:
        held.forget(every)
        if _count(latest := incomplete(new)) <= EXACT_PUNCTUATIONS:
            held.absorb(latest)


def _is_lone(p: Punctuation, places: frozenset[int]) -> bool:
    """Whether the punctuation restricts an attribute of vastly many values, not at these places, to few of them.

    A range between two values counts as few if the punctuation restricts nothing else: it leaves out all values before
    and behind it, of all groups.
    """
    vast = [p.patterns[i] for i in p.restricted if i not in places and p.schema[i].domain.vast]
    ranges = (q for q in vast if isinstance(q, Range) and len(p.restricted) == 1)
    return any(listed(q) not in ((), (None,)) for q in vast) or any(None not in (q.low, q.high) for q in ranges)


def _count(ps: Iterable[Punctuation]) -> int:
    return sum(max(1, *(len(listed(pattern)) for pattern in p.patterns)) for p in ps)


def common_sets(streams: Sequence[str], attributes: Schema) -> dict[str, Schema]:
    """The sets that `common_to_inputs` keeps; the operator declares them: one for each stream, and the common one."""
    return dict.fromkeys([*streams, "sent"], attributes)


def common_to_inputs(
    streams: Sequence[str], arrived: Sequence[Iterable[Punctuation]], state: OperatorState
) -> list[Punctuation]:
    """The new punctuations that hold for all streams, minimal: the meets of new ones with all of the other streams.

    Args:
        streams: The names of the streams' sets in the state.
        arrived: The new punctuations of each stream, over the attributes of these sets.
        state: The operator's state, with the sets of `common_sets`.
    """
    every = [state.punctuations(name) for name in streams]
    new = [held.absorb(given) for held, given in zip(every, arrived, strict=True)]
    found: list[Punctuation] = []
    for i, narrowed in enumerate(new):
        for j, held in enumerate(every):
            if i != j and narrowed:
                narrowed = held.set.meets(narrowed)  # noqa: PLW2901  by one stream after the other
        found += narrowed
    if any(held.passes for held in every):
        found = [p.lasting(None) for p in found]
        for held in every:
            parts = [(p.lifespan, part) for p in found for part in held.for_its_time([p])]
            found = [part.lasting(shortest((lifespan, part.lifespan))) for lifespan, part in parts]
    sent = state.punctuations("sent")
    out = sent.absorb(found)
    # All streams have closed it, and it is emitted: nothing is left that could meet it.
    with common_known([p for p in found if p.lifespan is None], [held.lasting for held in every], sent) as common:
        for held in every:
            held.forget(common)
    return out


@contextmanager
def common_known(
    common: Sequence[Punctuation], closed: Sequence[PunctuationSet], known: ClosedSet
) -> Iterator[list[Punctuation]]:
    """What several inputs have closed in common, to be forgotten: new parts, and what these complete with older ones.

    One input may close a value by one punctuation, and another by several, part after part. Until the last part comes,
    the parts are known in a set of their own.

    Args:
        common: The new punctuations common to all inputs.
        closed: What each input has closed, of the same attributes first.
        known: The set of the parts.
    """
    known.absorb(common)
    wider = {places for of_input in closed for p in common for places in _wider(of_input, p)}
    every = [*common, *(p for places in wider for p in closed_together(common, places, known.lasting))]
    yield every
    known.forget(p for p in every if not any(_wider(of_input, p) for of_input in closed))


def _wider(closed: PunctuationSet, p: Punctuation) -> set[tuple[int, ...]]:
    """The attributes, fewer than a punctuation restricts, on which a set closes what it is about, value by value."""
    if len(p.restricted) < 2:
        return set()
    given = {i: p.patterns[i] for i in p.restricted}
    wanted = {i: values(pattern, p.schema[i].domain) for i, pattern in given.items()}
    parts = [
        {i: held.separable(wanted[i]).intersection(held) for i, held in entry.box.items()}
        for entry in closed.several(given)
        if entry.box.keys() < given.keys()
    ]
    alone = {i: single for i, single in closed.singles.items() if i in given}
    parts += [{i: single.separable(wanted[i]).intersection(single.value_set())} for i, single in alone.items()]
    return {tuple(part) for part in parts if not any(held.is_empty for held in part.values())}
