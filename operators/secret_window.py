"""secret_window: the window contents that another engine would report, by the SECRET model, each tuple in each of them.

Meaning:    {| (t, o, c, x, τ) | Report(x, τ) has the content C of the window (o, c], t ∈ C |}: Tick says for which
            instants x the arrival of tuple τ makes the engine report, Report under which conditions, Scope which
            window it looks at, Content what lies in it (`xmlstream.secret.model`).
Step:       the contents that the new tuples make the engine report.
Pass:       –
Propagate:  [⊥, n] of τ, n the number of tuples so far: what a tuple makes the engine report, it does at once. All else
            only with the end of the input: to other engines punctuations are unknown.
Keep:       the tuples that a later content can hold: those of the last window, and the instant before.
Safe when:  always; as many tuples are kept as a window holds.
Source:     Botan et al. 2010, §3.2 and Appendix B.2.1.

Contents without a tuple are not put out, since no tuple stands for them; no engine of Table 2 reports them. Tuples must
come in the order of their time: SECRET's streams are in order. Time is a whole number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from operators.groupings import ALWAYS, StateModel
from operators.state.behaviour import Operator, Slice, Tuples
from operators.state.operator_state import OperatorState
from operators.state.state_schema import LogSchema, StateSchema
from operators.windows.contents import NUMBER, Contents, Tick
from punct_ns.domain import Domain
from punct_ns.errors import MalformedInput, QueryError, UsageError
from punct_ns.numeric_type import IntegerType
from punct_ns.pattern import Range
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from punct_ns.scheme import Scheme, Term
from punct_ns.slices import POSITION, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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

    def state_models(self, *inputs: Schema) -> Sequence[StateModel]:
        """The tuples of a window."""
        return [StateModel("the tuples of one window", 0, ALWAYS, (), inputs[0], is_fixed=True)]

    def parameters(self, output: Schema) -> str:
        """The windows, and how the engine treats them."""
        by = "tuples" if self.of_tuples else self.time
        when = [*(["window close"] * self.window_close), *(["content change"] * self.content_change), "non-empty"]
        return f"({self.size} by {self.slide} of {by}) {self.tick}-driven, reports {' & '.join(when)}"

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """The tuples that a later content can hold, their number, t₀, and the last time and batch."""
        log = LogSchema(Schema(()), lambda frame, _ages: self._contents(inputs[0]).needed(frame), of=None)
        return StateSchema({"tuples": log}, notes=["tuples", "start", "time", "batch"])

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """The contents that the new tuples make the engine report."""
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

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """Nothing: no report waits for a punctuation."""
        return None

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """What a later content can hold; nothing once the input is closed."""
        state.log("tuples").settle()
        if any(p.is_all and p.lifespan is None for p in inputs[0].punctuations):
            state.log("tuples").purge([Punctuation.all(Schema(()))])

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        """Up to the last tuple all is reported; with the input's end all is."""
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
