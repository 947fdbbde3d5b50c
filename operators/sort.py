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
Safe when:  the schemes cover ever longer prefixes of the order: a prefix of the first key, ascending, or its tiles.
Source:     Tucker et al. 2003, §5.2 and Tables 2 to 4 (init).

Emitted tuples have positions. By these the operators above, and finally the sink, keep the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from operators.behaviour import Operator, Terms, among, own_terms
from operators.closing_conditions import Condition, Prefix, StateModel
from operators.required_punctuations import Held, Row, Way
from operators.sort_order import SortKey, keys_line, once, total
from operators.state.completion import closed_so_far, completed, completion_sets
from operators.state.operator_state import OperatorState
from operators.state.slice_tuples import Slice, Tuples
from operators.state.state_schema import LogSchema, StateSchema
from punct_ns.errors import QueryError, UsageError
from punct_ns.pattern import Constant, Pattern
from punct_ns.prefix import covered_prefix, prefix_until
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import POSITION, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ALONE = 100_000
"""The number of tuples of a slice up to which one task sorts them; several tasks sort more."""

_EACH = 1 << 33
"""The distance between the numbers that Spark gives to the rows of one partition and the next."""


@dataclass(frozen=True, slots=True)
class Sort(Operator):
    """The tuples of the input, sorted by `keys`, the first one first; further keys on an attribute are ignored."""

    keys: tuple[SortKey, ...]

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

        Other schemes give none: whether single values form a prefix in the end depends on the domain.
        """
        first = self.keys[0]
        alone = (scheme.renamed({first.attribute.lower(): first.attribute}) for scheme in inputs[0])
        kinds = {"tiles"} if first.descending else {"tiles", "prefix"}
        return tuple(dict.fromkeys(s for s in alone if s is not None and all(term.kind in kinds for term in s.terms)))

    def enabled_by(self, *inputs: Schema) -> Condition:
        return Prefix(0, self.keys[0].attribute, self.keys[0].descending)

    def parameters(self, output: Schema) -> str:
        return keys_line(self.keys)

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [needed | among((key.attribute for key in self.keys), inputs[0])]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        return [own_terms(inputs[0])]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [self._up_to(p.patterns[p.schema.index(self.keys[0].attribute)], inputs[0])]

    def _up_to(self, pattern: Pattern, schema: Schema) -> Way:
        """The prefix of the order that ends with these values of the first key."""
        key = self.keys[0]
        place = schema.index(key.attribute)
        prefix = prefix_until(pattern, schema[place].domain, key.direction)
        return tuple((0, Punctuation.at(schema, {place: part})) for part in prefix)

    def state_schema(self, *inputs: Schema) -> StateSchema:
        given, names = inputs[0], tuple(key.attribute for key in self.keys)
        keys = given.only(names)

        def awaits(row: Row, _: Held) -> list[Way]:
            return [self._up_to(Constant(row[names[0]]), given)]

        tuples = StateModel("tuples", 0, self.enabled_by(*inputs))
        log = LogSchema(keys, (tuples,), names=names, awaits=awaits)
        return StateSchema({"tuples": log}, {**completion_sets(given, keys), "begun": keys}, ["position"])

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        if (new := inputs[0].tuples) is not None:
            names = [quoted(name) for name in state.inputs[0].names]
            state.log("tuples").add(Tuples(new.frame.select(*names), new.at_most, new.exact))
        return None

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        begun = state.scratch(_OfSlice).begun = self._newly_begun(inputs[0].punctuations, state)
        taken = state.log("tuples").take(begun) if begun else None
        return None if taken is None else Tuples(self._sorted(taken, state), taken.at_most, taken.exact)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        state.log("tuples").settle()

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        schema = state.inputs[0]
        places = [schema.index(key.attribute) for key in self.keys]
        begun = state.scratch(_OfSlice).begun
        return [Punctuation.at(schema, dict(zip(places, p.patterns, strict=True)), p.lifespan) for p in begun]

    def _newly_begun(self, punctuations: Sequence[Punctuation], state: OperatorState) -> list[Punctuation]:
        """The part of the largest covered prefix, over the keys, that is new."""
        names = [key.attribute for key in self.keys]
        if not completed(punctuations, names, state):
            return []
        closed = closed_so_far(state)
        prefix = covered_prefix(closed.set, [key.direction for key in self.keys])
        return state.punctuations("begun").absorb(closed.for_its_time(prefix))

    def _sorted(self, tuples: Tuples, state: OperatorState) -> DataFrame:
        """The tuples in order, with positions that follow those of all earlier slices."""
        from pyspark.sql import functions as F

        order = total(self.keys, state.inputs[0])
        begin = state.notes.get("position", 0)
        if tuples.at_most <= ALONE:
            frame = tuples.frame.coalesce(1).sortWithinPartitions(*order)
            state.notes["position"] = begin + tuples.at_most
        else:
            frame = tuples.frame.orderBy(*order)
            tasks = int(str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))
            state.notes["position"] = begin + tasks * _EACH
        # Row numbers increase along the partitions, and orderBy has sorted these.
        return frame.withColumn(POSITION, F.monotonically_increasing_id() + F.lit(begin).cast("BIGINT"))


@dataclass(slots=True)
class _OfSlice:
    """Results of the behaviours for one slice: the new part of the covered prefix, over the keys."""

    begun: list[Punctuation] = field(default_factory=list)
