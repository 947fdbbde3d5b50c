"""What a join of many inputs waits for at run time, read off its graph: of a kept row, and of what the output lacks.

A row goes once one input after the other has said that no partner comes of it, nor of the partners that are kept, as
chains purge it (`operators.joins.chained_purge`): along one order; others may purge it sooner, but never later.
"""

from __future__ import annotations

from collections.abc import Sequence

from operators.joins.attribute_equivalence import narrower
from operators.joins.punctuation_graph import PunctuationGraph
from operators.wants import Held, Row, Want, Way, whole
from punct_ns.domain import Value
from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema

_EACH = 20
"""Questions to an input up to which its tuples are looked for one by one."""


def partners(graph: PunctuationGraph, i: int, row: Row, held: Held, inputs: Sequence[Schema]) -> Way:
    """That no partner of an input's row comes: of one input after the other, by what it and its kept partners have."""
    chains: list[dict[int, Value | None]] = [{key: row[name] for key, name in graph.keys(i).items()}]
    wants: dict[Want, None] = {}
    for j in graph.order(i):
        names = graph.keys(j)
        asked = [{key: chain[key] for key in names if key in chain} for chain in chains]
        ps = [Punctuation.of(inputs[j], {names[key]: Constant(v) for key, v in known.items()}) for known in asked]
        wants |= dict.fromkeys((j, p) for p in ps)
        like = dict.fromkeys(ps) if len(ps) <= _EACH else [Punctuation.all(inputs[j])]
        found = [held.rows(f"input-{j}", tuple(names.values()), p) for p in like]
        if None in found:
            return whole(*inputs)
        kept = [{key: partner[name] for key, name in names.items()} for rows in found for partner in rows or ()]
        longer = (
            chain | partner
            for chain, known in zip(chains, asked, strict=True)
            for partner in kept
            if known.items() <= partner.items()
        )
        chains = list({tuple(sorted(chain.items())): chain for chain in longer}.values())
    return tuple(wants)


def ways_to(p: Punctuation, graph: PunctuationGraph, held: Held, inputs: Sequence[Schema]) -> list[Way]:
    """The ways to a punctuation of the output: what an input says of it, and what purges the input's tuples.

    None of an input of whose tuples too many would have to go.
    """
    ways: list[Way] = []
    for i, schema in enumerate(inputs):
        own = {at: p.patterns[p.schema.index(name)] for at, name in enumerate(schema.names)}
        for name, others in graph.equal_to(i).items():
            at = schema.index(name)
            for other in others:
                there = p.schema.index(other)
                own[at] = narrower(own[at], p.patterns[there], schema[at].domain, p.schema[there].domain)
        said = Punctuation.at(schema, own)
        rows = held.rows(f"input-{i}", tuple(graph.keys(i).values()), said, f"waiting-{i}")
        if rows is not None:
            wants = (want for row in rows for want in partners(graph, i, row, held, inputs))
            ways.append(tuple(dict.fromkeys([(i, said), *wants])))
    return ways
