"""secret_window: the window contents that another engine would report, by the SECRET model, each tuple in each of them.

Meaning:    {| (t, o, c, x, τ) | Report(x, τ) has the content C of the window (o, c], t ∈ C |}. Tick determines for
            which instants x the arrival of tuple τ makes the engine report, Report under which conditions, Scope which
            window it looks at, Content which tuples lie in it (`xmlstream.secret.model`).
Example:    SecretWindow("t", 3, 3, "rounded", "tuple", True, False, name="w")
              over (t INT NOT NULL) gives (t INT, w_start BIGINT, w_end BIGINT, w_at BIGINT, w_tuple BIGINT)
              in   (1) (2)            | (4)
              out  <*, *, *, *, (,2]> | (1, -1, 2, 2, 3) (2, -1, 2, 2, 3) <*, *, *, *, (,3]>
Step:       the contents that the new tuples make the engine report.
Pass:       –
Keep:       the tuples that a later content can hold: those of the last window, and the instant before.
Propagate:  [⊥, n] for τ, n the number of tuples so far, since the arrival of a tuple makes the engine report at once.
            Everything else only at the end of the input, since other engines do not know punctuations.
Safe when:  always; as many tuples are kept as a window holds.
Source:     Botan et al. 2010, §3.2 and Appendix B.2.1.

Contents without a tuple are not emitted, since no tuple stands for them; no engine of Table 2 reports them. Tuples must
come in the order of their time, as in SECRET's streams. Time is a whole number.

Spark computes the contents: it numbers the tuples, finds the calls of Report, and then the content of each call. The
numbers of tuples are SECRET's system time. Since streams are in order, a content is all tuples between two numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from operators.behaviour import Operator
from operators.closing_conditions import ALWAYS, StateModel
from operators.state.operator_state import OperatorState
from operators.state.slice_tuples import Slice, Tuples
from operators.state.state_schema import LogSchema, StateSchema
from punct_ns.domain import Domain
from punct_ns.errors import MalformedInput, QueryError, UsageError
from punct_ns.numeric_type import IntegerType
from punct_ns.pattern import Range
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from punct_ns.scheme import Scheme, Term
from punct_ns.slices import POSITION, own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Tick = Literal["tuple", "time", "batch"]

NUMBER = own("number")
"""BIGINT: which tuple of the stream it is, from 1 on; SECRET's system time."""

_TOLD = own("told")
"""BIGINT: how many tuples came in earlier slices."""

_BEFORE, _BATCH_BEFORE = own("before"), own("batch_before")
"""BIGINT: the time and the batch of the tuple before; the time is null before the first."""

_BY, _NOW, _AT = own("by"), own("now"), own("at")
"""BIGINT: the tuple that made the engine report, its time, and the instant that is reported of."""

_OPEN, _OPEN_THEN = own("open"), own("open_then")
"""BIGINT: where the scope begins at the instant, and at the one before."""

_LOW, _HIGH, _LOW_THEN, _HIGH_THEN = own("low"), own("high"), own("low_then"), own("high_then")
"""BIGINT: the content is tuples from one behind the low to the high; and that of the instant before."""

_POINT, _COUNTED = own("point"), own("counted")
"""BIGINT: an instant, and how many tuples there are up to it."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of windows (o, c] over `time`, or over tuples, that an engine reports.

    The parameters are those of `operators.secret_window`; `names` are the tuples' attributes, `reports` those that tell
    the reports apart.
    """

    time: str
    size: int
    slide: int
    tick: Tick
    window_close: bool
    content_change: bool
    of_tuples: bool
    batch: str | None
    names: tuple[str, ...]
    reports: tuple[str, str, str, str]

    def numbered(self, frame: DataFrame, notes: Mapping[str, Any]) -> DataFrame:
        """The new tuples with their numbers, and what was there before each.

        Args:
            frame: The new tuples, with their positions.
            notes: Of earlier slices the number of `tuples`, the last `time` and the last `batch`.
        """
        from pyspark.sql import functions as F

        time, batch = quoted(self.time), quoted(self.batch) if self.batch else NUMBER
        names = [quoted(name) for name in self.names]
        # A row, not literals: they change from slice to slice, and generated code does not.
        told = [[notes.get(name, none)] for name, none in (("tuples", 0), ("time", None), ("batch", 0))]
        columns = (_TOLD, _BEFORE, _BATCH_BEFORE)
        row = pa.Table.from_arrays([pa.array(value, pa.int64()) for value in told], names=list(columns))
        ddl = ", ".join(f"{name} BIGINT" for name in columns)
        beside = frame.crossJoin(F.broadcast(frame.sparkSession.createDataFrame(row, ddl)))
        number = f"CAST(row_number() OVER (ORDER BY {POSITION}) AS BIGINT) + {_TOLD} AS {NUMBER}"
        before = (
            f"coalesce(lag(CAST({of} AS BIGINT)) OVER (ORDER BY {NUMBER}), {name}) AS {name}"
            for of, name in ((time, _BEFORE), (batch, _BATCH_BEFORE))
        )
        return beside.selectExpr(*names, number, _BEFORE, _BATCH_BEFORE).selectExpr(*names, NUMBER, *before)

    def facts(self, numbered: DataFrame) -> Mapping[str, Any]:
        """Of the new tuples, by name: the last number, `tuples`, null where there are none, `time` and `batch`.

        And the `first` time; which tuple is `back` in time or batch, and which is of a `torn` batch, the first of such.
        """
        from pyspark.sql import functions as F

        time, batch = quoted(self.time), quoted(self.batch) if self.batch else NUMBER
        back = f"{time} < {_BEFORE} OR {batch} < {_BATCH_BEFORE} OR {batch} < 1"
        torn = f"{batch} = {_BATCH_BEFORE} AND {time} <> {_BEFORE}"
        asked = {
            "tuples": f"max({NUMBER})",
            "first": f"min_by({time}, {NUMBER})",
            "time": f"max({time})",
            "batch": f"max({batch})",
            "back": f"min(IF({back}, {NUMBER}, NULL))",
            "torn": f"min(IF({torn}, {NUMBER}, NULL))",
        }
        (found,) = numbered.agg(*(F.expr(text).alias(name) for name, text in asked.items())).toArrow().to_pylist()
        return dict(found)

    def reported(self, numbered: DataFrame, known: DataFrame, start: int) -> DataFrame:
        """Each tuple of each content that is reported, with the report.

        Args:
            numbered: The new tuples, as `numbered` gives them.
            known: These and the kept ones, with their numbers alone.
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
        told = [f"{text} AS {quoted(name)}" for name, text in zip(self.reports, (begin, end, _AT, _BY), strict=True)]
        each = seen.selectExpr(f"explode(sequence({_LOW} + 1, {_HIGH})) AS {NUMBER}", *told)
        return known.join(each, NUMBER).selectExpr(*map(quoted, self.names), *(quoted(name) for name in self.reports))

    def _reports(self, numbered: DataFrame, start: int) -> DataFrame:
        """The calls of Report that can be of some content: by which tuple, of which instant, and the scope's start."""
        time = quoted(self.time)
        batch = quoted(self.batch) if self.batch else NUMBER
        # Every tuple that the engine does not react to has the time of one before it to which it did.
        alone = f"IF({time} = {_BEFORE}, array({_BEFORE}), {{}})"
        last = f"least({time} - 1, {_BEFORE} + {self.size - 1})"  # behind it all windows are empty
        if self.of_tuples:
            last = _BEFORE if self.content_change else f"{time} - 1"
        on = f"sequence({_BEFORE}, CAST({last} AS BIGINT))"
        instants = {
            "tuple": alone.format(on),
            "time": f"IF({time} > {_BEFORE}, {on}, CAST(array() AS ARRAY<BIGINT>))",
            "batch": f"IF({batch} > {_BATCH_BEFORE}, {alone.format(on)}, CAST(array() AS ARRAY<BIGINT>))",
        }[self.tick]
        # Before the first tuple there is nothing to report.
        calls = numbered.where(f"{_BEFORE} IS NOT NULL").selectExpr(
            f"{NUMBER} AS {_BY}", f"CAST({time} AS BIGINT) AS {_NOW}", f"explode({instants}) AS {_AT}"
        )
        if self.of_tuples:
            return calls
        calls = calls.where(f"{_AT} >= {start}").selectExpr(
            "*", f"{self._open(_AT, start)} AS {_OPEN}", f"{self._open(f'({_AT} - 1)', start)} AS {_OPEN_THEN}"
        )
        return calls.where(f"{_AT} - {_OPEN} = {self.size} AND {_AT} < {_NOW}") if self.window_close else calls

    def _open(self, at: str, start: int) -> str:
        """Where the earliest window opens that is open at an instant, no later than that."""
        past = f"({at} - {start} - {self.size})"
        return f"least({at}, {start} + IF({past} <= 0, 0, ({past} + {self.slide - 1}) DIV {self.slide}) * {self.slide})"

    def _counted(self, reports: DataFrame, known: DataFrame) -> DataFrame:
        """The reports with the numbers between which their content lies, and that of the instant before."""
        asked = [(_HIGH, _AT), (_HIGH_THEN, f"{_AT} - 1")]
        asked += [] if self.of_tuples else [(_LOW, _OPEN), (_LOW_THEN, _OPEN_THEN)]
        points = ", ".join(f"named_struct('of', '{name}', 'at', {text})" for name, text in asked)
        scope = [] if self.of_tuples else [_OPEN]
        keys = [_BY, _AT, *scope]
        points_ = reports.selectExpr(*keys, f"inline(array({points}))").withColumnRenamed("at", _POINT)
        tuples = known.selectExpr(f"CAST({quoted(self.time)} AS BIGINT) AS {_POINT}", NUMBER)
        # The tuples up to an instant have numbers up to the greatest; before those that are kept, one less than theirs.
        numbers = points_.unionByName(tuples, allowMissingColumns=True).selectExpr(
            "*",
            f"coalesce(max({NUMBER}) OVER (ORDER BY {_POINT}, {NUMBER} NULLS LAST"
            f" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), min({NUMBER}) OVER () - 1) AS {_COUNTED}",
        )
        from pyspark.sql import functions as F

        counts = [F.expr(f"max(IF(of = '{name}', {_COUNTED}, NULL))").alias(name) for name, _ in asked]
        found = numbers.where("of IS NOT NULL").groupBy(*keys).agg(*counts)
        arrived = {name: f"least({name}, {_BY} - 1)" for name in (_HIGH, _HIGH_THEN)}
        if not self.of_tuples:
            return found.selectExpr(*keys, _LOW, _LOW_THEN, *(f"{text} AS {name}" for name, text in arrived.items()))
        found = found.selectExpr(*keys, *(f"{text} AS {name}" for name, text in arrived.items()))
        lows = (f"{self._open(of, 0)} AS {name}" for name, of in ((_LOW, _HIGH), (_LOW_THEN, _HIGH_THEN)))
        return found.selectExpr("*", *lows)

    def needed(self, frame: DataFrame) -> DataFrame:
        """The tuples that a content of the last instant, or the one before it, or a later one, can hold."""
        time = quoted(self.time)
        if not self.of_tuples:
            last = f"max({time}) OVER () AS {_NOW}"
            return frame.selectExpr("*", last).where(f"{time} >= {_NOW} - {self.size} - 1").drop(_NOW)
        marked = frame.selectExpr("*", f"max({time}) OVER () AS {_NOW}")
        least = f"min(IF({time} >= {_NOW} - 1, {NUMBER}, NULL)) OVER () AS {_LOW}"
        return marked.selectExpr("*", least).where(f"{NUMBER} >= {_LOW} - {self.size} - 1").drop(_NOW, _LOW)


Start = Literal["before", "rounded", "aligned"]
_COUNT = Domain("BIGINT", nullable=False, low=0)
_MANY = 1 << 40
"""A bound of the tuples in all contents of a slice."""


@dataclass(frozen=True, slots=True)
class SecretWindow(Operator):
    """The contents of windows (o, c] over `time`, or over tuples, that an engine reports, with attributes behind them.

    These are, named after `name`, `_start` and `_end` of the window's scope (numbers of tuples, for windows over
    tuples), `_at`, the instant that is reported of, and `_tuple`, the number of the tuple that made the engine report.

    Attributes:
        time: The application time.
        size: How long a window is.
        slide: How far apart windows are.
        start: Where the first window opens: by its size before the first tuple; that time, rounded up to a slide, or
            the last slide by which the first tuple is in a window, less one.
        tick: What the engine reacts to.
        window_close: Whether it reports complete windows alone.
        content_change: Whether it reports what has changed alone.
        of_tuples: Whether windows are over tuples.
        batch: The attribute with the batch's number; without it each tuple is one.
        name: What the windows are called.
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

    def __post_init__(self) -> None:
        if self.size < 1 or self.slide < 1:
            raise UsageError(f"windows of {self.size} by {self.slide}", hint="size and slide are 1 or more")

    def schema(self, *inputs: Schema) -> Schema:
        """The input's, and what tells the reports apart.

        Raises:
            QueryError: Time or batch are no whole numbers, or may be null.
        """
        for name in (self.time, *([self.batch] if self.batch else [])):
            domain = inputs[0].attribute(name).domain
            if not isinstance(domain.sql, IntegerType) or domain.nullable:
                hint = "declare it BIGINT NOT NULL; of a TIMESTAMP take unix_seconds(ts)"
                raise QueryError(f"{name} is no whole number that is never null", hint=hint)
        domain = Domain("BIGINT", nullable=False)
        told = (domain, domain, domain, _COUNT)
        beside = (Attribute(name, of) for name, of in zip(self.reported, told, strict=True))
        return Schema((*inputs[0].attributes, *beside))

    @property
    def reported(self) -> tuple[str, str, str, str]:
        """The attributes that tell reports apart: start, end, instant, and tuple."""
        start, end, at, number = (f"{self.name}_{what}" for what in ("start", "end", "at", "tuple"))
        return start, end, at, number

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """Ever more tuples by which nothing more is reported."""
        return (Scheme((Term(self.reported[-1], "prefix"),)),)

    def parameters(self, output: Schema) -> str:
        by = "tuples" if self.of_tuples else self.time
        when = [*(["window close"] * self.window_close), *(["content change"] * self.content_change), "non-empty"]
        return f"({self.size} by {self.slide} of {by}) {self.tick}-driven, reports {' & '.join(when)}"

    def state_schema(self, *inputs: Schema) -> StateSchema:
        content = StateModel("the tuples of one window", 0, ALWAYS, per=Schema(()), is_fixed=True)
        contents = self._contents(inputs[0])
        log = LogSchema(Schema(()), (content,), combine=lambda frame, _ages: contents.needed(frame))
        return StateSchema({"tuples": log}, notes=["tuples", "start", "time", "batch"])

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        if new is None:
            return None
        if POSITION not in new.frame.columns:
            raise QueryError(
                "windows as other engines have them need the order of a source, which is not there",
                hint="ask for them directly on a source, through select and project, before merge, join or group by",
            )
        contents, names = self._contents(state.inputs[0]), [*map(quoted, state.inputs[0].names), NUMBER]
        numbered = state.computed(Tuples(contents.numbered(new.frame, state.notes), new.at_most, new.exact))
        if not self._noted(numbered.frame, state):
            return None
        log, arrived = state.log("tuples"), numbered.frame.select(*names)
        before = log.whole()
        known = arrived if before is None else before.frame.unionByName(arrived)
        reported = contents.reported(numbered.frame, known, state.notes["start"])
        found = state.computed(Tuples(reported, _MANY, exact=False))
        log.add(Tuples(arrived, numbered.at_most, new.exact))
        return found

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
        told = Range(None, state.notes["tuples"], low_closed=False, high_closed=True)
        return [Punctuation.at(output, {output.index(self.reported[-1]): told})]

    def _contents(self, given: Schema) -> Contents:
        return Contents(
            self.time, self.size, self.slide, self.tick, self.window_close, self.content_change, self.of_tuples,
            self.batch, given.names, self.reported,
        )  # fmt: skip

    def _noted(self, numbered: DataFrame, state: OperatorState) -> bool:
        """Notes t₀, the number of tuples, the last time and batch; whether there are any tuples.

        Raises:
            MalformedInput: Time or batch goes back.
        """
        facts = self._contents(state.inputs[0]).facts(numbered)
        if facts["tuples"] is None:
            return False
        if facts["back"] is not None:
            what = f"tuple {facts['back']} is behind the one before it in {self.time}"
            raise MalformedInput(
                f"{what} or batch" if self.batch else what,
                where="windows as other engines have them",
                hint="to them streams are in the order of their time"
                + (", and batches count from 1" if self.batch else "")
                + ": sort the source, or leave out what comes late",
            )
        if facts["torn"] is not None:
            what = f"tuple {facts['torn']} has another {self.time} than those before it in its batch"
            raise MalformedInput(
                what, where="windows as other engines have them", hint="the tuples of a batch have one time"
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
