"""secret_window: the window contents that another engine would report, by the SECRET model, each tuple in each of them.

Meaning:    {| (t, o, c, x, τ) | Report(x, τ) has the content C of the window (o, c], t ∈ C |}. Tick determines for
            which instants x the arrival of tuple τ makes the engine report, Report under which conditions, Scope which
            window it looks at, Content which tuples lie in it (`xmlstream.secret.model`).
Example:    SecretWindow("t", 3, 3, "rounded", "tuple", True, False, name="w")
              over (t INT NOT NULL) gives (t INT, w_start BIGINT, w_end BIGINT, w_at BIGINT, w_tuple BIGINT)
              in   (1) (2) (4)
              out  (1, -1, 2, 2, 3) (2, -1, 2, 2, 3) <*,(,1],*,*,*> <*,*,(,3],*,*> <*,*,*,(,3],*> <*,*,*,*,(,3]>
Step:       the contents that the new tuples make the engine report.
Pass:       –
Keep:       the tuples that a later content can hold: those of the last window, and the instant before.
Propagate:  [⊥, n] for τ, n the number of tuples so far, since the arrival of a tuple makes the engine report at once;
            [⊥, y) for x, y the time so far, since instants only ascend (Botan et al. 2010, B.2.2); and [⊥, b) for o and
            c, b those of the window at y: a later window neither begins nor ends earlier. Everything else only at the
            end of the input, since other engines do not know punctuations.
Safe when:  always; as many tuples are kept as a window holds.
Source:     Botan et al. 2010, §3.2 and Appendix B.2.1.

Contents without a tuple are not emitted, since no tuple stands for them; no engine of Table 2 reports them. Tuples must
come in the order of their time, as in SECRET's streams. Time is a whole number.

Spark computes the contents: it numbers the tuples, finds the calls of Report, and then the content of each call. The
numbers of tuples are SECRET's system time. Since streams are in order, a content is all tuples between two numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.behaviour import Operator
from xmlstream.operators.closing_conditions import ALWAYS, StateModel
from xmlstream.operators.frames.expression import Column, Copy, Equal, as_columns
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, require_positions
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import MalformedInput, QueryError, UsageError
from xmlstream.punct_ns.numeric_type import IntegerType
from xmlstream.punct_ns.pattern import Range
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme, Term
from xmlstream.punct_ns.slices import POSITION, own, quoted

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


Tick = Literal["tuple", "time", "batch"]

NUMBER = own("number")
"""BIGINT: the number of the tuple in the stream, from 1 on; SECRET's system time."""

_EARLIER = own("earlier")
"""BIGINT: the number of tuples in earlier slices."""

_BEFORE, _BATCH_BEFORE = own("before"), own("batch_before")
"""BIGINT: the time and the batch of the tuple before; the time is null before the first."""

_BY, _NOW, _AT = own("by"), own("now"), own("at")
"""BIGINT: the number of the tuple that triggers the report, its time, and the reported instant."""

_OPEN, _OPEN_THEN = own("open"), own("open_then")
"""BIGINT: the start of the scope at the instant, and at the instant before."""

_LOW, _HIGH, _LOW_THEN, _HIGH_THEN = own("low"), own("high"), own("low_then"), own("high_then")
"""BIGINT: the content is the tuples with numbers above low, up to high; the same for the instant before."""

_POINT, _COUNTED, _EACH = own("point"), own("counted"), own("each")
"""BIGINT: an instant, the number of tuples up to it, and the number of a tuple in a content."""


Start = Literal["before", "rounded", "aligned"]
_COUNT = Domain("BIGINT", nullable=False, low=0)
_MANY = 1 << 40
"""An upper bound on the number of tuples in all contents of a slice."""


@dataclass(frozen=True, slots=True)
class SecretWindow(Operator):
    """The contents of windows (o, c] over `time`, or over tuples, that an engine reports, with attributes behind them.

    These are, with the prefix `name`: `_start` and `_end` of the window's scope (numbers of tuples, for windows over
    tuples), the reported instant `_at`, and `_tuple`, the number of the tuple that triggers the report.

    Attributes:
        time: The application time.
        size: The size of a window.
        slide: The distance between the starts of windows.
        start: The start of the first window: one size before the first tuple; that time, rounded up to a slide; or the
            last slide with the first tuple in its window, less one.
        tick: The event that triggers reports.
        window_close: Whether only complete windows are reported.
        content_change: Whether only changed contents are reported.
        of_tuples: Whether windows are over tuples.
        batch: The attribute with the number of the batch; without it, each tuple is a batch.
        name: The prefix of the attributes.
    """

    time: str
    size: int
    slide: int
    start: Start
    tick: Tick
    window_close: bool
    content_change: bool
    of_tuples: bool = False
    batch: str | None = None
    name: str = "window"
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES

    def __post_init__(self) -> None:
        if self.size < 1 or self.slide < 1:
            raise UsageError(f"window of size {self.size} and slide {self.slide}", hint="both must be 1 or more")

    def schema(self, *inputs: Schema) -> Schema:
        """The input's attributes, and those that identify a report.

        Raises:
            QueryError: Time or batch is not an integer, or may be null.
        """
        for name in (self.time, *([self.batch] if self.batch else [])):
            domain = inputs[0].attribute(name).domain
            if not isinstance(domain.sql, IntegerType) or domain.nullable:
                hint = "declare it BIGINT NOT NULL; for a TIMESTAMP, use unix_seconds(ts)"
                raise QueryError(f"{name} must be an integer that is never null", hint=hint)
        domain = Domain("BIGINT", nullable=False)
        domains = (domain, domain, domain, _COUNT)
        beside = (Attribute(name, of) for name, of in zip(self.reported, domains, strict=True))
        return Schema((*inputs[0].attributes, *beside))

    @property
    def reported(self) -> tuple[str, str, str, str]:
        """The attributes that identify a report: start, end, instant, and tuple."""
        start, end, at, number = (f"{self.name}_{what}" for what in ("start", "end", "at", "tuple"))
        return start, end, at, number

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """Prefixes of all that identifies a report."""
        return tuple(Scheme((Term(name, "prefix"),)) for name in self.reported)

    def parameters(self, output: Schema) -> str:
        by = "tuples" if self.of_tuples else self.time
        when = [*(["window close"] * self.window_close), *(["content change"] * self.content_change), "non-empty"]
        return f"({self.size} by {self.slide} of {by}) {self.tick}-driven, reports {' & '.join(when)}"

    def state_schema(self, *inputs: Schema) -> StateSchema:
        content = StateModel("the tuples of one window", 0, ALWAYS, per=Schema(()), is_fixed=True)
        log = LogSchema(Schema(()), (content,), combine=lambda frame, _ages: self._needed(frame))
        return StateSchema({"tuples": log}, notes=["tuples", "start", "time", "batch"])

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        if new is None:
            return None
        require_positions(new, "a window of another engine")
        given = state.inputs[0]
        if "tuples" in state.notes:
            state.scratch(_OfSlice).closed = self._closed(state.notes)
        numbered = state.computed(Tuples(self._numbered(new.frame, given, state.notes), new.at_most, new.exact))
        if not self._noted(numbered.frame, state):
            return None
        log, arrived = state.log("tuples"), numbered.frame.select(*given.names, NUMBER)
        before = log.whole()
        known = arrived if before is None else before.frame.union_by_name(arrived)
        contents = self._contents(numbered.frame, known, given, state.notes["start"])
        reported = state.computed(Tuples(contents, _MANY, exact=False))
        log.add(Tuples(arrived, numbered.at_most, new.exact))
        return reported

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        state.log("tuples").settle()
        if any(p.is_all and p.lifespan is None for p in inputs[0].punctuations):
            state.log("tuples").purge([Punctuation.all(Schema(()))])

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        output = self.schema(*state.inputs)
        if any(p.is_all and p.lifespan is None for p in inputs[0].punctuations):
            return [Punctuation.all(output)]
        if inputs[0].tuples is None or "tuples" not in state.notes:
            return []
        closed, before = self._closed(state.notes), state.scratch(_OfSlice).closed
        return [
            Punctuation.at(output, {output.index(name): Range(None, last, low_closed=False, high_closed=True)})
            for name, last in closed.items()
            if last != before.get(name)
        ]

    def _closed(self, notes: Mapping[str, Any]) -> dict[str, int]:
        """Of start, end, instant and tuple the last that no later report has."""
        at, start = (notes["time"], 0) if self.of_tuples else (max(notes["time"], notes["start"]), notes["start"])
        end = notes["tuples"] if self.of_tuples else at
        slides = max(0, -((start + self.size - end) // self.slide))  # as `_open`
        begin = min(end, start + slides * self.slide)
        return dict(zip(self.reported, (begin - 1, end - 1, at - 1, notes["tuples"]), strict=True))

    def _noted(self, numbered: Frame, state: OperatorState) -> bool:
        """Notes t₀, the number of tuples, the last time and batch; returns whether there are any tuples.

        Raises:
            MalformedInput: Time or batch goes back.
        """
        facts = self._facts(numbered)
        if facts["tuples"] is None:
            return False
        if facts["back"] is not None:
            what = f"tuple {facts['back']} is behind the one before it in {self.time}"
            raise MalformedInput(
                f"{what} or batch" if self.batch else what,
                where="windows of other engines",
                hint="these engines require tuples in time order"
                + (", and batches numbered from 1" if self.batch else "")
                + ": sort the source, or remove late tuples",
            )
        if facts["torn"] is not None:
            what = f"tuple {facts['torn']} has another {self.time} than those before it in its batch"
            raise MalformedInput(
                what, where="windows of other engines", hint="the tuples of a batch must have the same time"
            )
        state.notes.setdefault("start", self._opening(facts["first"]))
        state.notes |= {name: facts[name] for name in ("tuples", "time", "batch")}
        return True

    def _opening(self, first: int) -> int:
        """t₀, from the first tuple's time."""
        if self.of_tuples:
            return 0
        match self.start:
            case "before":
                return first - self.size
            case "rounded":
                return -((self.size - first) // self.slide) * self.slide - 1
            case "aligned":
                return ((first - self.size) // self.slide + 1) * self.slide - 1

    def _numbered(self, frame: Frame, given: Schema, notes: Mapping[str, Any]) -> Frame:
        """The new tuples with their numbers, and the time and batch before each.

        Args:
            frame: The new tuples, with their positions.
            given: The input's schema.
            notes: From earlier slices, the number of `tuples`, the last `time` and the last `batch`.
        """
        time, batch = quoted(self.time), quoted(self.batch) if self.batch else NUMBER
        # A row, not literals: values change from slice to slice, and generated code must not.
        known = [[notes.get(name, none)] for name, none in (("tuples", 0), ("time", None), ("batch", 0))]
        columns = (_EARLIER, _BEFORE, _BATCH_BEFORE)
        row = pa.Table.from_arrays([pa.array(value, pa.int64()) for value in known], names=list(columns))
        ddl = ", ".join(f"{name} BIGINT" for name in columns)
        beside = frame.join(frame.engine.rows(row, ddl), "true", small="right")
        number = Column(NUMBER, f"CAST(row_number() OVER (ORDER BY {POSITION}) AS BIGINT) + {_EARLIER}")
        before = (
            Column(name, f"coalesce(lag(CAST({of} AS BIGINT)) OVER (ORDER BY {NUMBER}), {name})")
            for of, name in ((time, _BEFORE), (batch, _BATCH_BEFORE))
        )
        return beside.select(*given.names, number, _BEFORE, _BATCH_BEFORE).select(*given.names, NUMBER, *before)

    def _facts(self, numbered: Frame) -> Mapping[str, Any]:
        """Facts on the new tuples: the last number as `tuples`, null if there are none; the last `time` and `batch`.

        Also the `first` time, and the numbers of the first tuple that is `back` in time or batch, and of the first
        whose batch is `torn`.
        """
        time, batch = quoted(self.time), quoted(self.batch) if self.batch else NUMBER
        back = f"{time} < {_BEFORE} OR {batch} < {_BATCH_BEFORE} OR {batch} < 1"
        torn = f"{batch} = {_BATCH_BEFORE} AND {time} <> {_BEFORE}"
        aggregates = {
            "tuples": f"max({NUMBER})",
            "first": f"min_by({time}, {NUMBER})",
            "time": f"max({time})",
            "batch": f"max({batch})",
            "back": f"min(IF({back}, {NUMBER}, NULL))",
            "torn": f"min(IF({torn}, {NUMBER}, NULL))",
        }
        found = numbered.group_by((), aggregates)
        (facts,) = found.to_arrow().to_pylist()
        return dict(facts)

    def _contents(self, numbered: Frame, known: Frame, given: Schema, start: int) -> Frame:
        """Each tuple of each reported content, with the report.

        Args:
            numbered: The new tuples, from the method `_numbered`.
            known: The new and the kept tuples, with their numbers only.
            given: The input's schema.
            start: t₀.
        """
        reports = self._reports(numbered, start)
        counted = self._counted(reports, known)
        seen = counted.where(f"{_LOW} < {_HIGH}")
        if self.of_tuples and self.window_close:
            seen = seen.where(f"{_HIGH} - {_LOW} = {self.size}")
        if self.content_change:
            seen = seen.where(f"NOT ({_LOW} = {_LOW_THEN} AND {_HIGH} = {_HIGH_THEN})")
        begin, end = (_LOW, _HIGH) if self.of_tuples else (_OPEN, _AT)
        report = map(Column, self.reported, map(Copy, (begin, end, _AT, _BY)))
        each = seen.select(Column(_EACH, f"explode(sequence({_LOW} + 1, {_HIGH}))"), *report)
        return known.join(each, Equal(NUMBER, _EACH)).select(*(*given.names, *self.reported))

    def _reports(self, numbered: Frame, start: int) -> Frame:
        """The calls of Report that can have content: the triggering tuple, the instant, and the start of the scope."""
        time = quoted(self.time)
        batch = quoted(self.batch) if self.batch else NUMBER
        # A tuple that triggers no report has the time of an earlier one that did.
        alone = f"IF({time} = {_BEFORE}, array({_BEFORE}), {{}})"
        last = f"least({time} - 1, {_BEFORE} + {self.size - 1})"  # after it, all windows are empty
        if self.of_tuples:
            last = _BEFORE if self.content_change else f"{time} - 1"
        on = f"sequence({_BEFORE}, CAST({last} AS BIGINT))"
        instants = {
            "tuple": alone.format(on),
            "time": f"IF({time} > {_BEFORE}, {on}, CAST(array() AS ARRAY<BIGINT>))",
            "batch": f"IF({batch} > {_BATCH_BEFORE}, {alone.format(on)}, CAST(array() AS ARRAY<BIGINT>))",
        }[self.tick]
        # Before the first tuple, all windows are empty.
        calls = numbered.where(f"{_BEFORE} IS NOT NULL").select(
            Column(_BY, Copy(NUMBER)), Column(_NOW, f"CAST({time} AS BIGINT)"), Column(_AT, f"explode({instants})")
        )
        if self.of_tuples:
            return calls
        calls = calls.where(f"{_AT} >= {start}").with_columns(
            {_OPEN: self._open(_AT, start), _OPEN_THEN: self._open(f"({_AT} - 1)", start)}
        )
        return calls.where(f"{_AT} - {_OPEN} = {self.size} AND {_AT} < {_NOW}") if self.window_close else calls

    def _open(self, at: str, start: int) -> str:
        """The start of the earliest window that is open at an instant; at most the instant."""
        past = f"({at} - {start} - {self.size})"
        return f"least({at}, {start} + IF({past} <= 0, 0, ({past} + {self.slide - 1}) DIV {self.slide}) * {self.slide})"

    def _counted(self, reports: Frame, known: Frame) -> Frame:
        """Adds to each report the tuple numbers that bound its content, and the content one instant before."""
        bounds = [(_HIGH, _AT), (_HIGH_THEN, f"{_AT} - 1")]
        bounds += [] if self.of_tuples else [(_LOW, _OPEN), (_LOW_THEN, _OPEN_THEN)]
        points = ", ".join(f"named_struct('of', '{name}', 'at', {text})" for name, text in bounds)
        scope = [] if self.of_tuples else [_OPEN]
        keys = [_BY, _AT, *scope]
        points_ = reports.select(*keys, Column("point", f"explode(array({points}))"))
        points_ = points_.select(*keys, Column("of", "point.of"), Column(_POINT, "point.at"))
        tuples = known.select(Column(_POINT, f"CAST({quoted(self.time)} AS BIGINT)"), NUMBER)
        # The number up to an instant is the greatest of its tuples; before all kept tuples, one less than the first.
        numbers = points_.union_by_name(tuples).with_column(
            _COUNTED,
            f"coalesce(max({NUMBER}) OVER (ORDER BY {_POINT}, {NUMBER} NULLS LAST"
            f" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), min({NUMBER}) OVER () - 1)",
        )
        counts = {name: f"max(IF(of = '{name}', {_COUNTED}, NULL))" for name, _ in bounds}
        found = numbers.where("of IS NOT NULL").group_by(keys, counts)
        arrived = as_columns({name: f"least({name}, {_BY} - 1)" for name in (_HIGH, _HIGH_THEN)})
        if not self.of_tuples:
            return found.select(*keys, _LOW, _LOW_THEN, *arrived)
        found = found.select(*keys, *arrived)
        return found.with_columns({_LOW: self._open(_HIGH, 0), _LOW_THEN: self._open(_HIGH_THEN, 0)})

    def _needed(self, frame: Frame) -> Frame:
        """The tuples that a later content can hold, or that of the last two instants."""
        time = quoted(self.time)
        if not self.of_tuples:
            last = f"max({time}) OVER ()"
            return frame.with_column(_NOW, last).where(f"{time} >= {_NOW} - {self.size} - 1").drop(_NOW)
        timed = frame.with_column(_NOW, f"max({time}) OVER ()")
        least = f"min(IF({time} >= {_NOW} - 1, {NUMBER}, NULL)) OVER ()"
        return timed.with_column(_LOW, least).where(f"{NUMBER} >= {_LOW} - {self.size} - 1").drop(_NOW, _LOW)


@dataclass(slots=True)
class _OfSlice:
    """What reports had closed before the slice: of start, end, instant and tuple the last value."""

    closed: Mapping[str, int] = field(default_factory=dict)
