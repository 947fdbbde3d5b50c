"""What a join of many inputs waits for at run time, read off its graph: of a kept row, and of what the output lacks.

A row goes once each other input has said that no partner of it comes, as far as equalities tell partners by what the
row has; chains could purge it sooner (`operators.joins.chained_purge`), but never later.
"""

from __future__ import annotations

from collections.abc import Sequence

from operators.joins.attribute_equivalence import narrower
from operators.joins.punctuation_graph import PunctuationGraph
from operators.wants import Held, Row, Way
from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema


def partners(graph: PunctuationGraph, i: int, row: Row, inputs: Sequence[Schema]) -> Way:
    """That no partner of a row of an input comes, of any other; of one that is not joined with it, no tuple at all."""
    mine = graph.keys(i)
    return tuple(
        (j, Punctuation.of(inputs[j], {name: Constant(row[mine[key]])
                                       for key, name in graph.keys(j).items() if key in mine}))
        for j in range(graph.inputs) if j != i
    )  # fmt: skip


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
                own[at] = narrower(own[at], p.patterns[p.schema.index(other)], schema[at].domain)
        said = Punctuation.at(schema, own)
        rows = held.rows(f"input-{i}", tuple(graph.keys(i).values()), said, f"waiting-{i}")
        if rows is not None:
            wants = (want for row in rows for want in partners(graph, i, row, inputs))
            ways.append(tuple(dict.fromkeys([(i, said), *wants])))
    return ways
