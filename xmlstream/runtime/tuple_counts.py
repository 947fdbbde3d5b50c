"""Tuple counts of a slice: what each operator handed on, counted by Spark while the results are computed anyway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from operators.state.behaviour import Slice, Tuples
from operators.state.observed import metrics_of
from xmlstream.plan.nodes import Node
from xmlstream.runtime.computed_result import ComputedResult

if TYPE_CHECKING:
    from pyspark.sql import Observation


def counted_later(slice_: Slice, node: Node, observed: dict[Node, Observation]) -> Slice:
    """The slice, its tuples counted while they are computed where their number is not known."""
    if slice_.tuples is None or slice_.tuples.exact:
        return slice_
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    observation = observed[node] = Observation()
    frame = slice_.tuples.frame.observe(observation, F.count(F.lit(1)).alias("tuples"))
    return Slice(Tuples(frame, slice_.tuples.at_most, exact=False), slice_.punctuations)


def tuple_count(
    slice_: Slice, node: Node, observed: Mapping[Node, Observation], computed: Mapping[Node, ComputedResult]
) -> int:
    """How many tuples a node handed on, once the results are computed."""
    if slice_.tuples is None:
        return 0
    if (result := computed.get(node)) is not None:
        return result.rows
    if slice_.tuples.exact:
        return slice_.tuples.at_most
    # Where Spark saw that nothing would come of them, it has not counted them.
    return int(metrics_of(observed[node]).get("tuples", 0))
