"""sort: the tuples in order, each as soon as no tuple can come that sorts before it.

Meaning:    Sort_K(R), a sequence: by the keys K lexicographically, ties by the remaining attributes.
Example:    Sort((SortKey("hour"),))
              over (hour INT NOT NULL, v INT; hour 0..) gives (hour INT, v INT)
              in   (4, 7) (2, 5) (5, 0) <[2,4], *> | <[0,1], *>
              out                                  | (2, 5) (4, 7) <(,4], *>
Step:       –
Pass:       [t ∈ kept ∪ new | init(K, P) matches t], sorted; init(K, P) is the largest prefix of the order that P
            covers. It begins at the order's first value: null where NULLS FIRST puts it, NaN first when descending.
Keep:       the other tuples.
Propagate:  the new part of init(K, P).
Safe when:  the schemes cover ever longer prefixes of the order: a prefix of the first key, ascending, its tiles, or its
            single values, if the domain has a first one in the order.
Source:     Tucker et al. 2003, §5.2 and Tables 2 to 4 (init).

Emitted tuples have positions. By these the operators above, and finally the sink, keep the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, ClassVar

from xmlstream.dataclasses import dataclass
from xmlstream.operators.behaviour import Terms, among, own_terms
from xmlstream.operators.ordered_rows import InOrder
from xmlstream.operators.sort_order import SortKey, keys_line, once, total
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import POSITION

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame

ALONE = 100_000
"""The number of tuples of a slice up to which one task sorts them; several tasks sort more."""


@dataclass(frozen=True, slots=True)
class Sort(InOrder):
    """The tuples of the input, sorted by `keys`, the first one first; further keys on an attribute are ignored."""

    keys: tuple[SortKey, ...]
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_TUPLES

    def __post_init__(self) -> None:
        if not self.keys:
            raise UsageError("sort without a key", hint="name an attribute to sort by")
        object.__setattr__(self, "keys", once(self.keys))

    def schema(self, *inputs: Schema) -> Schema:
        """The input's schema.

        Raises:
            QueryError: the values of a key have no order that punctuations can follow.
        """
        for key in self.keys:
            if (attribute := inputs[0].attribute(key.attribute)).domain.opaque:
                raise QueryError(f"{attribute.name} has type {attribute.domain.type}, by which tuples cannot be sorted")
        return inputs[0]

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """Ranges of the first key from its beginning, or its tiles, if the input promises these of this key alone.

        Single values form such ranges, too, if the domain has a first one (`Prefix.as_prefixes`).
        """
        return self.promised(self.keys[:1], *inputs)

    def parameters(self, output: Schema) -> str:
        return keys_line(self.keys)

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [needed | among((key.attribute for key in self.keys), inputs[0])]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        return [own_terms(inputs[0])]

    @property
    def sorts_by(self) -> Sequence[str]:
        return [key.attribute for key in self.keys]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        return self.tuples_of(inputs[0]) | StateSchema(notes=["position"])

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        begun = self.begin(inputs[0].punctuations, state).prefixes
        taken = state.log("tuples").take(begun) if begun else None
        return None if taken is None else Tuples(self._sorted(taken, state), taken.at_most, taken.exact)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        state.log("tuples").settle()

    def _sorted(self, tuples: Tuples, state: OperatorState) -> Frame:
        """The tuples in order, with positions that follow those of all earlier slices."""
        order = total(self.keys, state.inputs[0])
        begin = state.notes.get("position", 0)
        few = tuples.at_most <= ALONE
        state.notes["position"] = begin + max(tuples.at_most, 0 if few else tuples.frame.engine.most_numbers)
        return tuples.frame.numbered(order, POSITION, begin, few=few)
