"""What a join of two inputs forgets: isolated punctuations on keys that both of its inputs have closed.

While one side alone has closed a key, its punctuation purges what may yet come of the other. Once both have, no tuple
of that key comes any more, none is kept, and what was said of it has gone out: nothing is left that could need it. What
has a lifespan is needed for as long as it holds: the other side's may end before.

Source: Li et al. 2006, §5.1: a punctuation is purged by the other stream's on the attributes that it restricts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from operators.joins.equi_join import EquiJoin
from operators.state.completion import closed_so_far, forget_completed
from operators.state.operator_state import OperatorState
from punct_ns.isolated import isolated
from punct_ns.pattern import Pattern
from punct_ns.punctuation import Punctuation
from punct_ns.recast import recast_pattern
from punct_ns.schema import Schema


def forget_keys(
    equi_join: EquiJoin,
    covered: Sequence[Sequence[Punctuation]],
    sent: Iterable[Punctuation],
    state: OperatorState,
    output: Schema,
) -> None:
    """Forgets the keys that both sides have closed, one of them in this slice; and what no side will say again.

    Args:
        equi_join: When tuples of the sides are partners.
        covered: For each side, the keys that the other side's punctuations newly cover, in its own terms.
        sent: What went out in this slice.
        state: That of the join, whose set `sent` holds what went out.
        output: The schema of that set.
    """
    both = _closed_by_both(covered, state, len(equi_join.left))
    for side, key in zip((1, 0), equi_join.bounded_keys, strict=True):
        schema = closed_so_far(state, side).set.schema
        forget_completed([_on_keys(p, schema) for p in both], key.names, state, side)
        if key.bounds:
            purging = state.punctuations(f"bounded-{side}")
            purging.forget([_on_keys(p, purging.set.schema) for p in both])
    there = {name.lower(): i for i, name in enumerate(output.names)}
    places = [
        [there[name.lower()] for name in pair if name.lower() in there] for pair in zip(*equi_join.on, strict=True)
    ]
    keys = {place for pair in places for place in pair}
    # Of its own attributes each side speaks alone, and once; of keys the other may yet say the same.
    gone = [p for p in sent if not keys.issuperset(p.restricted)]
    state.punctuations("sent").forget([*gone, *(written for p in both for written in _written(p, places, output))])


def _closed_by_both(covered: Sequence[Sequence[Punctuation]], state: OperatorState, width: int) -> list[Punctuation]:
    """The isolated keys, of so many attributes, over those of the left side."""
    found: list[Punctuation] = []
    keys = Schema(closed_so_far(state, 1).set.schema.attributes[:width])
    for newly in covered:
        new = isolated(p for p in newly if p.lifespan is None and all(i < width for i in p.restricted))
        for side in range(2):
            said = closed_so_far(state, side).lasting
            met = said.meets(_on_keys(p, said.schema) for p in new) if new and said else []
            new = isolated(p for p in met if all(i < width for i in p.restricted))
        found += (_on_keys(p, keys) for p in new)
    return found


def _on_keys(p: Punctuation, schema: Schema) -> Punctuation:
    """What is said of a key, over a schema that begins with the key's attributes, by whatever names and types."""
    patterns: dict[int, Pattern] = {
        i: recast_pattern(p.patterns[i], p.schema[i].domain, schema[i].domain) for i in p.restricted
    }
    return Punctuation.at(schema, patterns)


def _written(p: Punctuation, places: Sequence[Sequence[int]], output: Schema) -> Iterator[Punctuation]:
    """The key in the output's terms, in all the ways in which it may have gone out."""
    for chosen in product(*(places[i] for i in p.restricted)):
        yield Punctuation.at(output, dict(zip(chosen, (p.patterns[i] for i in p.restricted), strict=True)))
