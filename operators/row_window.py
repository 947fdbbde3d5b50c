"""row_window: functions over the rows around each tuple in the order of its group, once that order is closed up to it.

Meaning:    ω_{A; K; F}(R) = {| (t, f₁(w₁(t)), …) | t ∈ R |}, wᵢ(t) the rows of t's group, by A, in the order of the
            keys K, from a number of rows before t up to t, or up to a number of rows before t: SQL's OVER (PARTITION BY
            A ORDER BY K ROWS …). Where fᵢ can be merged, wᵢ(t) may begin with the group's first row. Without keys, the
            order is that of arrival.
Example:    RowWindow((Over(last2, "sum(v)", first=1),), (SortKey("ts"),), ("sid",))
              over (sid INT, ts INT NOT NULL, v INT) gives (sid INT, ts INT, v INT, last2 BIGINT)
              in   (7, 2, 20) (7, 1, 10) (8, 1, 5) <7, (,1], *> | (7, 3, 40) <*, (,2], *>
              out  (7, 1, 10, 10) <7, (,1], *, *>               | (7, 2, 20, 30) (8, 1, 5, 5) <*, (,2], *, *>
Step:       without keys, the new tuples; with keys, –
Pass:       {t ∈ kept ∪ new | init(A, K, P) matches t}; init(A, K, P) is, in each group, the largest prefix of the order
            of K that P covers. So `(sid, ts prefix)` closes the rows of each sid by themselves.
Keep:       the tuples that have not gone out; of each open group the last rows that the functions look back at. If
            all functions see a distance d back, {t | t + d is not in init(A, K, P)}, whatever the group.
Propagate:  the new part of init(A, K, P); without keys, all punctuations.
Safe when:  the schemes cover ever longer prefixes of the order in each group; n rows of each open group are kept, so
            that groups must close or be a list, unless all functions see a distance back.
Source:     Tucker et al. 2003, §5.2 (init); SQL:2003, window functions.

SQL leaves the order of tuples with equal keys open. Here the remaining attributes decide, ascending, null first, as in
sort, so that the result does not depend on the order of arrival.

For functions over all rows so far, the last row of a group stores their partial aggregates. It stands for all rows up
to it, however many there were.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.closing_conditions import ALWAYS, Condition, StateModel
from xmlstream.operators.expressions.aggregates import NUMBER, Over, Width
from xmlstream.operators.expressions.duration import lengthening
from xmlstream.operators.frames.expression import Column, Copy, Order
from xmlstream.operators.ordered_rows import Begun, OrderedRows
from xmlstream.operators.required_punctuations import Held, Row, Way, on
from xmlstream.operators.sort_order import BEFORE, LATEST, NEW, numbered, partition, total, with_latest
from xmlstream.operators.state.completion import completed, completion_sets, forget_completed
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, require_positions, semi_join
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.punct_ns.domain import Cut, Domain
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.image import neighbours
from xmlstream.punct_ns.numeric_type import FloatType
from xmlstream.punct_ns.pattern import Constant, Pattern, patterns, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import placed
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import POSITION, own, quoted
from xmlstream.punct_ns.temporal_type import DateType
from xmlstream.punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine, Frame


_UP_TO = own("up_to")
"""The greatest key of the group."""

_DENSE, _AMONG, _FIRST = own("dense"), own("among"), own("first")
"""The rank among different keys of the group, over all rows and over the rows of the slice; the first peer's number."""


@dataclass(frozen=True, slots=True)
class RowWindow(OrderedRows):
    """The tuples, each with these functions over rows of its group, in the order of `keys` or, without, of arrival."""

    def __post_init__(self) -> None:
        OrderedRows.__post_init__(self)
        for over in self.functions:
            if not over.is_rolling and not over.grows:
                raise UsageError(
                    f"{over.function} of all rows so far would have to keep all rows",
                    hint="use count, sum, min, max, or avg of non-decimals; or limit the rows, as in ROWS 9 PRECEDING",
                )

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """Those on groups, perhaps with ranges of the first key from its beginning, or its tiles; without keys, all."""
        return self.promised(self.own_keys[:1], *inputs) if self.keys else inputs[0]

    def enabled_by(self, *inputs: Schema) -> Condition:
        return OrderedRows.enabled_by(self, *inputs) if self.keys else ALWAYS

    @property
    def looks_back(self) -> int:
        """The number of rows that are kept of each group: as many as functions look back at, and at least the last."""
        return max([1, *(over.first for over in self.functions if over.first is not None)])

    @property
    def distances(self) -> list[str]:
        """The distances before the group's last key within which rows are kept, each once, as Spark SQL."""
        return list(dict.fromkeys(over.distance for over in self.functions if over.distance is not None))

    def _widths(self, given: Schema) -> list[Width]:
        """The distances, if rows are kept for these alone and each has a known length; otherwise none."""
        if not self.own_keys or any(over.distance is None for over in self.functions):
            return []
        domain = given.attribute(self.own_keys[0].attribute).domain
        found = [width for over in self.functions if (width := over.width(domain)) is not None]
        return list(dict.fromkeys(found)) if len(found) == len(self.functions) else []

    @property
    def _so_far(self) -> list[str]:
        """The columns that are kept with a row for functions of all rows so far, and for ranks."""
        kept = [name for number, over in self._growing for name in over.grown(number).first]
        return [*kept, _DENSE] if self._is_dense else kept

    @property
    def keeps_order(self) -> bool:
        return not self.keys

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """By arrival, the same of the input; otherwise, the prefixes of groups that end with the punctuation."""
        return OrderedRows.wanted(self, p, held, *inputs) if self.keys else [((0, on(inputs[0].names, p, inputs[0])),)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        number = self.looks_back
        what = "the last tuple" if number == 1 else f"the last {number} tuples"
        if distances := self.distances:
            what = " and ".join(f"the tuples of the last {distance}" for distance in distances)
        kept = self.rows_of(inputs[0], what, self._last_rows, blocks=False)
        if widths := self._widths(inputs[0]):
            kept = self._rows_within(inputs[0], what, widths)
        if self.keys:
            return self.tuples_of(inputs[0]) | StateSchema({"rows": kept})
        return StateSchema({"rows": kept}, completion_sets(inputs[0], self.groups))

    def _rows_within(self, given: Schema, what: str, widths: Sequence[Width]) -> LogSchema:
        """The log of the rows that later ones of any group may see: the order closes them, no group need be closed."""
        key, domain = self.own_keys[0], given.attribute(self.own_keys[0].attribute).domain

        def awaits(row: Row, _: Held) -> list[Way]:
            of_group = {name: Constant(row[name]) for name in self.groups}
            at = row[key.attribute]
            ends = [] if at is None else [_moved(at, width, domain, None, back=False) for width in widths]
            seen = ValueSet.of_intervals(domain, [(domain.bottom, max(ends, default=domain.bottom))])
            return [tuple((0, Punctuation.of(given, {**of_group, key.attribute: part})) for part in patterns(seen))]

        within = StateModel(what, 0, self.enabled_by(given))
        return LogSchema(given.only(self.over), (within,), "last tuples", self.over, blocks=False, awaits=awaits)

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        if self.keys or new is None:
            return OrderedRows.step(self, inputs, state)
        names = state.inputs[0].names
        if not self._is_of_equals(state.inputs[0]):
            require_positions(new, "a window by arrival")
        frame = new.frame.select(*names, *([POSITION] if POSITION in new.frame.columns else []))
        return self._answered(state.computed(replace(new, frame=frame)), state)

    def _is_of_equals(self, given: Schema) -> bool:
        """Whether the tuples of a group are equal, so that their order has no effect."""
        return {name.lower() for name in self.groups} == {name.lower() for name in given.names}

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        if not self.keys:
            state.scratch(Begun).groups = completed(inputs[0].punctuations, self.groups, state)
            return None
        begun = self.begin(inputs[0].punctuations, state).prefixes
        taken = state.log("tuples").take(begun) if begun else None
        return None if taken is None else self._answered(taken, state)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        if self.keys:
            state.log("tuples").settle()
        if self._widths(state.inputs[0]):
            if unreached := self._unreached(state):
                state.log("rows").take(unreached)
            state.log("rows").settle()
        else:
            state.log("rows").settle()
            state.log("rows").purge(state.scratch(Begun).groups)
        if not self.keys:
            forget_completed(state.scratch(Begun).groups, self.groups, state)

    def _unreached(self, state: OperatorState) -> list[Punctuation]:
        """The rows of groups whose order is now closed so far that no later row sees them."""
        given, begun, place = state.inputs[0], state.scratch(Begun), len(self.groups)
        over, widths, found = given.only(self.over), self._widths(given), list[Punctuation]()
        for p in begun.prefixes:
            behind = _before(p.patterns[place], over[place].domain, widths, state.engine)
            group = {i: p.patterns[i] for i in range(place)}
            found += (Punctuation.at(over, {**group, place: pattern}) for pattern in patterns(behind))
        return found

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        if self.keys:
            return OrderedRows.propagate(self, inputs, state)
        return placed(inputs[0].punctuations, state.inputs[0].names, self.schema(*state.inputs))

    def _answered(self, ready: Tuples, state: OperatorState) -> Tuples:
        """Emits tuples with their functions' values, and keeps them as the last rows of their groups."""
        schema, rows = state.inputs[0], state.log("rows")
        numbered = self._with_functions(self._numbered(ready, rows.whole(), schema)).where(NEW)
        shown = [*schema.names, *(over.attribute.name for over in self.functions)]
        position = [POSITION] if POSITION in numbered.columns else []
        known = [*schema.names, NUMBER, *self._so_far]
        # Read twice: as output, and as rows that later ones look back at.
        result = numbered.select(*dict.fromkeys((*known, *shown, *position)))
        computed = state.computed(Tuples(result, ready.at_most, ready.exact))
        rows.add(replace(computed, frame=computed.frame.select(*known)))
        return replace(computed, frame=computed.frame.select(*shown, *position))

    def _numbered(self, ready: Tuples, before: Tuples | None, schema: Schema) -> Frame:
        """The tuples, and the earlier rows of their groups, each with its number."""
        if before is not None and self.groups:
            before = semi_join(before, ready, self.groups)
        earlier = [] if before is None else [before.frame]
        arrived = [Order(POSITION)] if POSITION in ready.frame.columns else []
        order = total(self.keys, schema, self.groups) if self.keys else arrived
        return numbered(ready.frame, earlier, self.groups, order)

    def _with_functions(self, rows: Frame) -> Frame:
        """The numbered rows with their functions, and with the partial aggregates of all rows so far."""
        grown = self._ranked(self._grown(rows))
        answers = (self._answer(number, over) for number, over in enumerate(self.functions))
        return grown.with_columns(
            {over.attribute.name: answer for over, answer in zip(self.functions, answers, strict=True)}
        )

    def _last_rows(self, rows: Frame) -> Frame:
        """The rows of each group to keep. Applied to parts of the rows, it keeps all that are kept of the whole."""
        kept, last = [f"{NUMBER} > {LATEST} - {self.looks_back}"], with_latest(rows, self.groups)
        if self.distances:
            key = quoted(self.keys[0].attribute)
            last = last.with_column(_UP_TO, f"max({key}) OVER ({partition(self.groups)})")
            kept += (f"coalesce({key} >= {_UP_TO} - {distance}, {key} IS NOT NULL)" for distance in self.distances)
        return last.where(" OR ".join(kept)).drop(LATEST, _UP_TO)

    def _answer(self, number: int, over: Over) -> str:
        """One function, as Spark SQL over rows with partial aggregates."""
        group = partition(self.groups)
        if over.function == "row_number":
            text = NUMBER
        elif over.function == "dense_rank":
            text = _DENSE
        elif over.function == "rank":
            text = f"min({NUMBER}) OVER ({self._peers})"
        elif over.distance is not None:
            nulls = "FIRST" if self.keys[0].direction.nulls_first else "LAST"
            key = f"{quoted(self.keys[0].attribute)} NULLS {nulls}"
            text = f"{over.expression} OVER ({group} ORDER BY {key}{over.frame})"
        elif not over.is_rolling and (merging := over.merging(number)) is not None:
            whole = f"{self._peers} ORDER BY {NUMBER} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
            text = f"last_value({merging.last}) OVER ({whole})" if over.peers else merging.last
        else:
            text = f"{over.expression} OVER ({group} ORDER BY {NUMBER}{over.frame})"
        return f"CAST({text} AS {over.attribute.domain.type})"

    @property
    def _peers(self) -> str:
        return partition([*self.groups, *(key.attribute for key in self.keys)])

    def _ranked(self, rows: Frame) -> Frame:
        """The rows with the dense rank, if a function needs it."""
        if not self._is_dense:
            return rows
        group = partition(self.groups)
        among = rows.with_column(_FIRST, f"min({NUMBER}) OVER ({self._peers})")
        among = among.with_column(_AMONG, f"dense_rank() OVER ({group} ORDER BY {_FIRST})").drop(_FIRST)
        others = [name for name in rows.columns if name != _DENSE]
        if _DENSE not in rows.columns:
            return among.select(*others, Column(_DENSE, Copy(_AMONG)))
        more = f"coalesce(max(IF({NEW}, NULL, {_DENSE} - {_AMONG})) OVER ({group}), 0)"
        return among.select(*others, Column(_DENSE, f"{_AMONG} + {more}"))

    @property
    def _is_dense(self) -> bool:
        return any(over.function == "dense_rank" for over in self.functions)

    def _grown(self, rows: Frame) -> Frame:
        """The rows with the partial aggregates of their groups up to each row; that of one row is named `…_alone`."""
        running = {name: text for number, over in self._growing for name, text in over.grown(number).first.items()}
        if not running:
            return rows
        spec = f"{partition(self.groups)} ORDER BY {NUMBER}"
        alone = {
            f"{name}_alone": f"{text} OVER ({spec} ROWS BETWEEN CURRENT ROW AND CURRENT ROW)"
            for name, text in running.items()
        }
        others = [name for name in rows.columns if name not in running]
        before = (
            Column(name, f"IF({NEW}, {name}_alone, IF({NUMBER} = {BEFORE}, {name}, NULL))")
            if name in rows.columns
            else Column(name, Copy(f"{name}_alone"))
            for name in running
        )
        # The partial aggregates of the last earlier row cover all rows up to it.
        so_far = f"{spec} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        merged = [item for number, over in self._growing for item in over.merged_over(number, so_far).items()]
        grown = rows.with_columns(alone).select(*others, *before)
        return grown.select(*others, *map(Column._make, merged))

    @property
    def _growing(self) -> Sequence[tuple[int, Over]]:
        """The functions over all rows so far, ranks left out, each with its place in the list."""
        return [(i, over) for i, over in enumerate(self.functions) if not (over.is_rolling or over.is_rank)]


def _before(closed: Pattern, domain: Domain, widths: Sequence[Width], engine: Engine) -> ValueSet:
    """The values of a key that lie farther back than all widths from each value behind a closed prefix of its order."""
    prefix = values(closed, domain)
    high = max((end for _, end in prefix.intervals()), default=domain.bottom)
    if domain.bottom < high < domain.top:
        _, first = neighbours(high, domain)
        high = min(_moved(first, width, domain, engine) for width in widths)
    return ValueSet.of_intervals(domain, [(domain.bottom, high)], null=domain.nullable)


def _moved(value: Any, width: Width, domain: Domain, engine: Engine | None, *, back: bool = True) -> Cut:
    """The cut below a value that is this much less than another one, or slightly less; or above one that is greater.

    >>> _moved(9, 5, Domain("INT"), None), _moved(9, 5, Domain("INT"), None, back=False)
    (4, 15)
    """
    sign = -1 if back else 1
    try:
        if isinstance(width, tuple):
            days, microseconds = width
            # Days of a time zone may be longer than 24 hours, and then a frame begins earlier.
            longer = lengthening(days, engine) if days and engine is not None else 0
            moved = value + sign * timedelta(days=days, microseconds=microseconds + longer)
        elif isinstance(domain.sql, DateType):
            moved = value + sign * timedelta(days=int(width))
        elif isinstance(domain.sql, FloatType):
            # A FLOAT is subtracted from with less precision than here.
            rounding = 0.0 if domain.sql.bits == 64 else (abs(value) + float(width)) * 2.0**-20
            moved = value + sign * float(width) + sign * rounding
        else:
            moved = value + sign * width
        return min(max(domain.cut(moved, after=not back), domain.bottom), domain.top)
    except (OverflowError, ValueError):
        return domain.bottom if back else domain.top
