"""punctuate: adds punctuations to a stream, from knowledge about the stream that it does not carry itself.

Meaning:    R; it changes no tuple.
Example:    Punctuate(ByOrder("hour"))
              over (hour INT, v INT) gives (hour INT, v INT)
              in   (3, 1) (5, 2)           | (5, 3) (7, 4) <*, 1>
              out  (3, 1) (5, 2) <(,4], *> | (5, 3) (7, 4) <(,6], *> <*, 1>
Step:       [t ∈ new | no punctuation that went out before t matches t], in the order of positions; the other tuples are
            ungrammatical.
Pass:       –
Keep:       what the rule needs: one value, one for each key, or one for each member of the roster; and the punctuations
            that it has added.
Propagate:  the input's punctuations, those of the rule, and what it derives from both, each if it closes something new.
Safe when:  always.
Source:     Tucker et al. 2003, §6.2; Tucker et al. 2007, §8.1 and §8.3.

`Streams` makes one stream of the document streams of a source, above the rules that hold in each of them:

              over (hour INT, __xs_stream BIGINT NOT NULL) gives (hour INT)
              in   (3, 0) (3, 1) <(,2], 0> | (4, 0) <(,3], 1>
              out  (3) (3)                 | (4) <(,2]>

Its tuples are those of all streams, without their numbers; its punctuations the meets of what all open streams have
closed (setCombine of Tucker et al. 2003, Table 3, over inputs that begin and end). The tuples of a slice stand one
stream behind the other: above, there is no order among them.

Each kind of knowledge is a rule: order, roster, domain, predicate or clock (`xmlstream.operators.punctuators`). The
iterators of §6.2 have the same kinds of knowledge: a stream that sort has put in ascending order is punctuated by
order, without slack. What select knows from its predicate, select punctuates itself.

Punctuate is responsible for the punctuations that it adds. It reports a tuple that breaks an earlier one, in this slice
or a slice before, and never emits it, whatever the rule assumes about the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Operator, Selection, own_terms
from xmlstream.operators.frames.expression import Order
from xmlstream.operators.punctuators.rule import AHEAD, ASIDE, CONTRADICTORY, DISTANCES, UNGRAMMATICAL, Rule, added
from xmlstream.operators.punctuators.streams import ByStreams, OpenStreams
from xmlstream.operators.required_punctuations import Held, Way
from xmlstream.operators.state.operator_state import NewPunctuations, OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, require_positions
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.operators.taking_over import Differs, Names, TakenOver, TakesOver, is_alike
from xmlstream.punct_ns.errors import UngrammaticalStream, UsageError, place
from xmlstream.punct_ns.grammar import MEND, sentence
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import over_first, placed
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import POSITION, STREAM, in_utc

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame

Ungrammatical = Literal["fail", "drop", "divert"]

_COUNTS = {
    "on": f"count_if({POSITION} IS NOT NULL AND {ASIDE} IS NULL)",
    "late": f"count_if({POSITION} IS NOT NULL AND {ASIDE} IN ('{UNGRAMMATICAL}', '{CONTRADICTORY}'))",
    "ahead": f"count_if({POSITION} IS NOT NULL AND {ASIDE} = '{AHEAD}')",
}
"""Counts of tuples. A rule's own rows have no position, and may have values that are late."""


@dataclass(frozen=True, slots=True)
class Punctuate(Operator):
    """The input, punctuated by a rule; `ungrammatical` decides on tuples that break an earlier punctuation.

    `fail` stops the query, `drop` counts them, `divert` also keeps them as dead letters. A tuple that is too far ahead
    breaks no punctuation, and is always diverted.
    """

    rule: Rule
    ungrammatical: Ungrammatical = "fail"
    keeps_order: ClassVar[bool] = True
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_TUPLES
    begins_empty: ClassVar[bool] = True
    declared_in: ClassVar[str] = "sent"

    def __post_init__(self) -> None:
        if self.ungrammatical not in get_args(Ungrammatical):
            raise UsageError(f"unknown option ungrammatical '{self.ungrammatical}'", hint="it is fail, drop or divert")

    def schema(self, *inputs: Schema) -> Schema:
        """The input's schema.

        Raises:
            QueryError, UsageError: the rule does not fit this schema.
        """
        self.rule.require(inputs[0])
        return inputs[0]

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        return tuple(dict.fromkeys((*inputs[0], *self.rule.promises(inputs[0]))))

    def parameters(self, output: Schema) -> str:
        return str(self.rule)

    def selection(self, *inputs: Schema) -> Selection:
        return Selection()

    def taken_over(self, before: Punctuate, called: Names) -> TakenOver:
        """All, of the same rule, with whatever distance."""
        if not is_alike(self.rule, before.rule, called, without=DISTANCES):
            raise Differs(f"it punctuated by {before.rule}")
        return TakenOver()

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [*self.rule.wanted(p), ((0, p),)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        return self.rule.state_schema(inputs[0]) | StateSchema(sets=dict.fromkeys(["added", "sent"], inputs[0]))

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        scratch, new = state.scratch(NewPunctuations), inputs[0].tuples
        if new is None:
            self._nothing_came(state)
            return None
        require_positions(new, f"punctuate by {self.rule.name}")
        here = new.frame.here()
        if here is not None and (known := self.rule.facts_of(here, state)) is not None:
            scratch.found = self.rule.new_punctuations(None, known, state)
            return Tuples(new.frame, here.num_rows) if here.num_rows else None
        aggregates = {**_COUNTS, **self.rule.aggregates(state.inputs[0])}
        flagged = self.rule.flagged(new.frame, state)
        observed, metrics = flagged.observed(aggregates)
        # Each tuple at most twice, and the rule's own rows: few, or as many as it keeps.
        computed = state.computed(Tuples(observed, 2 * new.at_most + state.rows, exact=False)).frame
        if not (facts := metrics()):
            self._nothing_came(state)
            return None
        if facts["late"] or facts["ahead"]:
            self._set_aside(computed, facts, state)
        scratch.found = self.rule.new_punctuations(computed if facts["on"] or facts["late"] else None, facts, state)
        if not facts["on"]:
            return None
        left = computed.where(f"{POSITION} IS NOT NULL AND {ASIDE} IS NULL").select(*new.frame.columns)
        return Tuples(left, facts["on"])

    def _nothing_came(self, state: OperatorState) -> None:
        state.scratch(NewPunctuations).found = self.rule.new_punctuations(None, {}, state)

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        new_ones, sent = state.scratch(NewPunctuations).found, state.punctuations("sent")
        out = sent.absorb([*inputs[0].punctuations, *new_ones])
        following = self.rule.following(out, state)
        added(state).absorb([*new_ones, *following])
        new = [*out, *sent.absorb(following)]
        self.rule.forget(new, state)
        return new

    def _set_aside(self, computed: Frame, facts: Mapping[str, Any], state: OperatorState) -> None:
        """Reports late tuples, as `ungrammatical` decides, and those too far ahead."""
        if facts["late"] and self.ungrammatical == "fail":
            first = (
                computed.where(f"{POSITION} IS NOT NULL AND {ASIDE} <> '{AHEAD}'").limit(1, Order(POSITION)).to_arrow()
            )
            raise self._offence(in_utc(first).to_pylist()[0], computed, state)
        state.set_aside += facts["late"] + facts["ahead"]
        schema = state.inputs[0]
        wanted = "true" if self.ungrammatical == "divert" else f"{ASIDE} = '{AHEAD}'"
        names = [a.name for a in schema if a.name in computed.columns]
        chosen = computed.where(f"{POSITION} IS NOT NULL AND {ASIDE} IS NOT NULL AND {wanted}")
        reasons = {
            UNGRAMMATICAL: f"{self.rule.closes} before it came",
            AHEAD: f"it is further ahead of the tuples before it than punctuate by {self.rule.name} allows",
        }
        for row in in_utc(chosen.to_arrow().sort_by(POSITION)).to_pylist():
            raw, kind = {name: row[name] for name in names}, row[ASIDE]
            reason = reasons.get(kind) or self.rule.contradiction(row, schema)
            kind = UNGRAMMATICAL if kind == CONTRADICTORY else kind
            state.letters.append(DeadLetter(position=row[POSITION], kind=kind, reason=reason, raw=raw))

    def _offence(self, row: Mapping[str, Any], computed: Frame, state: OperatorState) -> UngrammaticalStream:
        schema = state.inputs[0]
        # A pattern of an opaque type distinguishes null from other values only.
        values = tuple(
            value if (value := row.get(a.name)) is None or a.domain.opaque else a.domain.normal(value) for a in schema
        )
        punctuation = None
        if row[ASIDE] == CONTRADICTORY:
            what = self.rule.contradiction(row, schema)
        else:
            earlier = next((p for p in added(state).set if p.matches(values)), None)
            broken, words = self.rule.broken(row, computed, schema)
            punctuation = earlier or broken
            what = sentence(row, punctuation) + (f": {words}" if words else "")
        return UngrammaticalStream(
            what,
            values=[row.get(name) for name in schema.names],
            tuple_position=row[POSITION],
            punctuation=punctuation,
            where=f"punctuate by {self.rule.name}, {place(None, None, None, row[POSITION])}",
            hint=f"{MEND}; {self.rule.cure}",
        )


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

    def selection(self, *inputs: Schema) -> Selection:
        return Selection(columns=own_terms(_without(inputs[0])))

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [frozenset((*needed, STREAM))]

    @property
    def exact_inputs(self) -> bool:
        return False

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The same punctuation from the streams."""
        return [((0, each),) for each in placed([p], p.schema.names, inputs[0])]

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        state.scratch(OpenStreams)  # also where no slice of a run has begun
        came = Punctuate.step(self, inputs, state)
        return came and replace(came, frame=came.frame.drop(STREAM, *([] if self.positions else [POSITION])))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        self.rule.end(inputs[0].punctuations, state)
        return over_first(Punctuate.propagate(self, inputs, state), _without(state.inputs[0]))


def _without(schema: Schema) -> Schema:
    return Schema(tuple(attribute for attribute in schema if attribute.name != STREAM))
