"""streams: the document streams of a source as one stream.

Meaning:    R without the number of the stream
Example:    Streams(ByStreams())
              over (hour INT, __xs_stream BIGINT NOT NULL) gives (hour INT)
              in   (3, 0) (3, 0) <(,3], 0> | (4, 0)
              out  (3) (3) <(,3]>          | (4)
Step:       [t without its number | t ∈ new, no punctuation that went out in an earlier slice matches t]
Pass:       –
Keep:       no tuples; what each open stream has closed, as far as not all have.
Propagate:  the meets of what all open streams have closed (`xmlstream.operators.punctuators.streams`), without numbers.
Safe when:  always; no tuples are kept. A punctuation waits until the other open streams have closed the same.
Source:     Tucker et al. 2003, Table 3 (setCombine), over inputs that begin and end.

The tuples of a slice stand one stream behind the other: above, there is no order among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.streams import ByStreams
from xmlstream.operators.required_punctuations import Held, Way
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import placed
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import POSITION, STREAM


@dataclass(frozen=True, slots=True)
class Streams(Punctuate):
    """The streams of a source as one; the rule is `ByStreams`.

    With `positions`, tuples keep theirs for a roster above, which names the late ones by them.
    """

    rule: ByStreams
    positions: bool = False
    keeps_order: ClassVar[bool] = False

    def schema(self, *inputs: Schema) -> Schema:
        """The input's schema without the number of the stream."""
        self.rule.require(inputs[0])
        return _without(inputs[0])

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        whole = (scheme for scheme in inputs[0] if STREAM not in scheme.attributes)
        return tuple(dict.fromkeys((*whole, *self.rule.promises(inputs[0]))))

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [frozenset((*needed, STREAM))]

    @property
    def exact_inputs(self) -> bool:
        return False

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The same punctuation from the streams."""
        return [((0, each),) for each in placed([p], p.schema.names, inputs[0])]

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        came = Punctuate.step(self, inputs, state)
        return came and replace(came, frame=came.frame.drop(STREAM, *([] if self.positions else [POSITION])))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        at, schema = state.inputs[0].index(STREAM), _without(state.inputs[0])
        self.rule.end(inputs[0].punctuations, state)
        return [
            Punctuation.at(schema, {i: p.patterns[i] for i in p.restricted}, p.lifespan)
            for p in Punctuate.propagate(self, inputs, state)
            if at not in p.restricted
        ]


def _without(schema: Schema) -> Schema:
    return Schema(tuple(attribute for attribute in schema if attribute.name != STREAM))
