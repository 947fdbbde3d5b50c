"""Tuple counts of a slice: what each operator handed on, counted by Spark while the results are computed anyway.

To count takes Spark out of the code that it generates for a chain of operators. So what follows from the numbers of an
operator's inputs is not counted: what hands on its input, or so many tuples for each of its.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from operators.state.behaviour import Slice
from operators.state.observed import metrics_of
from xmlstream.plan.nodes import Node

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


@dataclass(slots=True)
class TupleCounts:
    """How many tuples the nodes of a plan handed on in one walk.

    Attributes:
        slices: What they handed on, as their consumers get it.
        results: How many tuples the results are, once they are computed.
    """

    slices: dict[Node, Slice] = field(default_factory=dict)
    results: dict[Node, int] = field(default_factory=dict)
    _observed: dict[Node, Observation] = field(default_factory=dict)
    _follows: dict[Node, tuple[int, Sequence[Node]]] = field(default_factory=dict)

    def hand_on(self, node: Node, slice_: Slice) -> None:
        """Notes what a node hands on; its tuples are counted while they are computed if nothing else tells of them."""
        tuples = slice_.tuples
        if tuples is not None and not tuples.exact:
            same = next((below for below in node.inputs if self.slices[below].tuples is tuples), None)
            if same is not None:
                self._follows[node] = 1, [same]
            elif tuples.of_each is not None:
                self._follows[node] = tuples.of_each, node.inputs
            else:
                tuples = replace(tuples, frame=self._observing(node, tuples.frame), computed=False)
        self.slices[node] = Slice(tuples and replace(tuples, of_each=None), slice_.punctuations)

    def _observing(self, node: Node, frame: DataFrame) -> DataFrame:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        observation = self._observed[node] = Observation()
        return frame.observe(observation, F.count(F.lit(1)).alias("tuples"))

    def of(self, node: Node) -> int:
        """How many tuples a node handed on, once the results are computed."""
        tuples = self.slices[node].tuples
        if tuples is None:
            return 0
        if node in self.results:
            return self.results[node]
        if tuples.exact:
            return tuples.at_most
        if node in self._follows:
            of_each, below = self._follows[node]
            return of_each * sum(map(self.of, below))
        # Where Spark saw that nothing would come of them, it has not counted them.
        return int(metrics_of(self._observed[node]).get("tuples", 0))
