"""window: each tuple once for each time window that contains it, with the window's start and end.

Meaning:    ω(R) = {| (t, s, s + size) | t ∈ R, s ∈ S(t.of) |}, S(x) = {s = offset + k·slide | s ≤ x < s + size}. A
            tuple whose moment is null is in no window. Tumbling windows (slide = size) are a projection; hopping
            windows are the merge of size/slide projections, computed at once.
Example:    Window("ts", size=600_000_000, slide=300_000_000, name="w", replaces=True)
              over (sid INT, ts TIMESTAMP) gives (sid INT, w.start TIMESTAMP, w.end TIMESTAMP)
              in   (1, 09:07)                          | <*, (,09:12)>
              out  (1, 09:00, 09:10) (1, 09:05, 09:15) | <*, (,09:05), *> <*, *, (,09:15)>
Step:       ω(new)
Pass:       –
Keep:       no tuples; punctuations.
Propagate:  all punctuations, with wildcards for the window. Also, with {s | every x with s ∈ S(x) is closed} for the
            window's start in place of the moment's pattern, and the same moved by the size for its end: exactly the
            complete windows, wherever the moment's patterns begin and end.
Safe when:  always; no tuples are kept.
Source:     Tucker et al. 2007, §8.2 (windows by punctuations); Tucker et al. 2003, Table 3 (projPs, union).

Moments are counted in microseconds of UTC, or of local time where the type has no time zone, as in Spark's `window`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Operator, Terms, among, own_terms
from xmlstream.operators.frames.expression import Column, Present
from xmlstream.operators.required_punctuations import Held, Way, whole
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.domain import Cut, Domain, Value
from xmlstream.punct_ns.image import Function, image
from xmlstream.punct_ns.pattern import WILDCARD, Pattern, patterns, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import END, START, Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import is_own, own, quoted
from xmlstream.punct_ns.temporal_type import TimestampType
from xmlstream.punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


@dataclass(frozen=True, slots=True)
class Window(Operator):
    """The tuples of the input with the windows, named `name`, of their moment `of`; lengths are in microseconds.

    A window begins every `slide`, one of them at `offset` from 1970, and lasts for `size`, which is at least the slide.
    With `replaces`, the moment itself goes no further.
    """

    of: str
    size: int
    slide: int
    offset: int = 0
    name: str = "window"
    replaces: bool = False
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES

    @property
    def overlapping(self) -> int:
        """The largest number of windows of a tuple."""
        return -(-self.size // self.slide)

    def schema(self, *inputs: Schema) -> Schema:
        moment = inputs[0].attribute(self.of)
        of_window = Domain(moment.domain.type, nullable=False)
        ends = (Attribute(f"{self.name}{end}", of_window) for end in (START, END))
        return Schema((*(a for a in inputs[0] if not (self.replaces and a is moment)), *ends))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The input's schemes; those on stretches of moments also as schemes on starts, and on ends."""
        found: dict[Scheme, None] = {}
        for scheme in inputs[0]:
            of = next((term for term in scheme.terms if term.attribute.lower() == self.of.lower()), None)
            if of is None or not self.replaces:
                found[scheme] = None
            if of is not None and of.kind != "tiles" and of.fills(counted=False):
                for end in (START, END):
                    moved = replace(of, attribute=f"{self.name}{end}", null=True)
                    found[Scheme(tuple(moved if term is of else term for term in scheme.terms))] = None
        return tuple(found)

    def parameters(self, output: Schema) -> str:
        lengths = (f"{length / 1_000_000:g} s" for length in (self.size, self.slide, self.offset))
        return f"`{self.of}` by {' / '.join(lengths)} AS `{self.name}`"

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [among({*needed, self.of}, inputs[0])]

    def pruned(self, needed: AbstractSet[str]) -> Window:
        return replace(self, replaces=self.replaces or self.of.lower() not in {name.lower() for name in needed})

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """The input's own terms: a predicate without the window selects all or none of an input tuple's outputs."""
        return [own_terms(inputs[0])]

    def passes_duplicates(self, needed: AbstractSet[str], *inputs: Schema) -> bool:
        return True

    def lineage(self, names: Collection[str], *inputs: Schema) -> Sequence[Sequence[str]] | None:
        own_names = {f"{self.name}{end}".lower() for end in (START, END)}
        of_input = {self.of if name.lower() in own_names else name for name in names}
        return [tuple(among(of_input, inputs[0]))]

    def in_panes(
        self, keys: Collection[str], operands: Collection[str], *inputs: Schema
    ) -> tuple[Window, Window, str] | None:
        """Overlapping windows, over panes of the greatest common divisor of size and slide."""
        schema, used = inputs[0], {name.lower() for name in operands}
        ends = {f"{self.name}{end}".lower() for end in (START, END)}
        if self.overlapping == 1 or used & ends or self.of.lower() in map(str.lower, keys):
            return None
        name, taken = "pane", {name.lower().removesuffix(START) for name in schema.names}
        while name in taken:
            name += "_"
        length = math.gcd(self.size, self.slide)
        cut = Window(self.of, length, length, self.offset % length, name, self.of.lower() not in used)
        pane = f"{name}{START}"
        return cut, replace(self, of=pane, replaces=True), pane

    @property
    def keeps_order(self) -> bool:
        return self.overlapping == 1

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        schema, moments = inputs[0], inputs[0].attribute(self.of).domain
        names = [name for name in p.schema.names[:-2] if name.lower() != self.of.lower()]
        within = ValueSet.everything(moments)
        if not self.replaces:
            within = values(p.patterns[p.schema.index(self.of)], moments)
        for pattern, back in zip(p.patterns[-2:], (0, self.size), strict=True):
            if pattern != WILDCARD:
                spans = values(pattern, p.schema[len(p.schema) - 1].domain).intervals()
                pairs = [self._moments_of(span, back, moments) for span in spans]
                within = within.intersection(ValueSet.of_intervals(moments, pairs))
        if within.is_empty:  # no window begins there, which is known only at the end
            return [whole(*inputs)]
        others, place = {schema.index(name): p.patterns[p.schema.index(name)] for name in names}, schema.index(self.of)
        return [tuple((0, Punctuation.at(schema, {**others, place: part})) for part in patterns(within))]

    def _moments_of(self, span: tuple[Cut, Cut], back: int, moments: Domain) -> tuple[Cut, Cut]:
        """The moments in windows whose starts lie in a span; for `back` equal to the size, whose ends do."""
        low, high = span
        # From the first window that begins in the span to the last one.
        begin = -(-(low - back - self.offset) // self.slide) * self.slide + self.offset if low > moments.bottom else low
        last = (high - 1 - back - self.offset) // self.slide * self.slide + self.offset
        end = last + self.size if high < moments.top else high
        return max(begin, moments.bottom), min(end, moments.top)

    def state_schema(self, *inputs: Schema) -> StateSchema:
        return StateSchema(sets={"closed": inputs[0], "sent": self.schema(*inputs)})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """The new tuples with their windows, and the columns beside attributes: positions, or partial aggregates."""
        new = inputs[0].tuples
        if new is None:
            return None
        schema = state.inputs[0]
        names = [*self.schema(schema).names[:-2]]
        names += filter(is_own, new.frame.columns)
        moment = schema.attribute(self.of).domain
        call = self.call(schema)
        in_windows = (
            partial(self._counted, may_be_null=moment.nullable) if call is None else partial(self._cut, call=call)
        )
        of_each = self.overlapping if self.size % self.slide == 0 and not moment.nullable else None
        is_exact = new.exact and of_each is not None
        return Tuples(in_windows(new.frame, names), new.at_most * self.overlapping, is_exact, of_each=of_each)

    def call(self, schema: Schema) -> str | None:
        """The call of Spark's own `window` that cuts local times; moments are cut by integers."""
        moment = schema.attribute(self.of).domain.sql
        if isinstance(moment, TimestampType) and moment.zoned:
            return None
        lengths = ", ".join(f"'{length} microseconds'" for length in (self.size, self.slide, self.offset))
        return f"window({quoted(self.of)}, {lengths})"

    def _cut(self, frame: Frame, names: Sequence[str], call: str) -> Frame:
        """The tuples with their windows, by Spark's own `window`."""
        cut = frame.select(*names, Column(own("window"), call))
        return cut.select(*names, *(Column(self.name + end, f"{own('window')}{end}") for end in (START, END)))

    def _counted(self, frame: Frame, names: Sequence[str], *, may_be_null: bool) -> Frame:
        """The tuples with their windows, by integers: Spark's `window` makes structures, which takes longer."""
        micros = f"unix_micros({quoted(self.of)})"
        last, back = own("last"), own("back")
        cut = frame.where(Present(self.of)) if may_be_null else frame
        begin = f"{micros} - pmod({micros} - {self.offset}L, {self.slide}L)"
        if self.overlapping > 1:
            farthest = (self.overlapping - 1) * self.slide
            backs = f"explode(sequence(0L, {farthest}L, {self.slide}L))"
            cut = cut.select(*dict.fromkeys((*names, self.of)), Column(last, begin), Column(back, backs))
            begin = f"{last} - {back}"
        if self.size % self.slide:
            cut = cut.where(f"{micros} < {begin} + {self.size}L")
        ends = zip((begin, f"{begin} + {self.size}L"), (START, END), strict=True)
        return cut.select(*names, *(Column(self.name + end, f"timestamp_micros({at})") for at, end in ends))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        schema, closed = state.inputs[0], state.punctuations("closed")
        new = closed.absorb(inputs[0].punctuations)
        if not new:
            return []
        output, place = self.schema(schema), schema.index(self.of)
        gone = place if self.replaces else None
        out = [self._placed(p, output, gone) for p in new if gone not in p.restricted]
        ends = output.attributes[-2:]
        over = Schema(tuple(ends[0] if i == place else a for i, a in enumerate(schema)))
        for at, shift in zip((len(output) - 2, len(output) - 1), (0, self.size), strict=True):
            first, last = (self._image(over[place].domain, shift, back) for back in (self.size - self.slide, 0))
            images = closed.following(new, partial(image, place=place, schema=over, f=first, last=last))
            out += [self._placed(p, output, gone, at=at) for p in images]
        sent = state.punctuations("sent")
        newly = sent.absorb(out)
        sent.forget(newly)
        closed.forget(p for p in new if place not in p.restricted)  # these went out, and complete nothing
        return newly

    def _image(self, domain: Domain, shift: int, back: int) -> Function:
        """The function from moments to the shifted start of the last window that begins `back` or more before."""
        moments = domain.sql
        assert isinstance(moments, TimestampType)

        def function(of: Sequence[Value]) -> Mapping[Value, Value]:
            starts: dict[Value, Value] = {}
            for value in of:
                since = (moments.ordinal(value) - back - self.offset) // self.slide * self.slide + self.offset
                with suppress(OverflowError):
                    starts[value] = moments.value(since + shift)
            return starts

        return function

    def _placed(self, p: Punctuation, output: Schema, gone: int | None, at: int | None = None) -> Punctuation:
        """The input's punctuation over the output; with `at`, its pattern for the moment moves to that place."""
        place = output.index(self.of) if gone is None else gone
        patterns: list[Pattern] = [*p.patterns, WILDCARD, WILDCARD]
        if at is not None:
            whole = len(patterns) - len(output) + at
            patterns[whole], patterns[place] = patterns[place], WILDCARD
        if gone is not None:
            del patterns[gone]
        return Punctuation(output, tuple(patterns), p.lifespan)
