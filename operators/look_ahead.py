"""look_ahead: functions over the rows behind each tuple in the order of its group, once these are closed.

Meaning:    ω_{A; K; F}(R) = {| (t, f₁(w₁(t)), …) | t ∈ R |}, wᵢ(t) rows of t's group, by A, in the order of the keys K,
            up to so many behind t: SQL's lead, and ROWS BETWEEN … AND n FOLLOWING.
Step:       –
Pass:       {t ∈ kept ∪ new | init(A, K, P) matches t and the n tuples of its group behind t, or all there are once P
            covers the group}, n the furthest row that a function looks at.
Propagate:  of init(A, K, P) the parts that match no tuple which is still to go out.
Keep:       the tuples that are not out; and of each group that is not closed the last rows before them that functions
            look back at.
Safe when:  the schemes cover ever longer prefixes of the order in each group; the last n rows of a group wait for those
            behind them, or for the group's end.
Source:     Tucker et al. 2003, §5.2 (init); SQL:2003, window functions.

Tuples with equal keys are told apart by their remaining attributes, ascending, null first, as in row_window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from operators.expressions.over import NUMBER, Over
from operators.groupings import Condition, Grouping, Prefix, StateModel
from operators.logical_properties import Terms
from operators.state.behaviour import Operator, Slice, Tuples
from operators.state.completion import closed_so_far, completed, completion_sets
from operators.state.deferred_punctuations import emittable
from operators.state.operator_state import OperatorState
from operators.state.row_joins import semi_join
from operators.state.sort_key import SortKey, keys_line, once, total
from operators.state.state_schema import LogSchema, StateSchema
from operators.state.tuple_log import TupleLog
from operators.wants import Held, Row, Waiting, Way
from punct_ns.errors import QueryError
from punct_ns.pattern import Constant, Pattern
from punct_ns.prefix import covered_prefixes, prefix_until
from punct_ns.projection import project
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import matching, not_matching, own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NEW, _LATEST, _BEFORE = own("new"), own("latest"), own("before")
"""Whether a row has come into the prefix just now; the number of its group's last row, now and before."""


@dataclass(frozen=True, slots=True)
class LookAhead(Operator):
    """The tuples, each with these functions over rows of its group in the order of `keys`, some of them behind it."""

    functions: tuple[Over, ...]
    keys: tuple[SortKey, ...]
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", once(self.keys))

    def schema(self, *inputs: Schema) -> Schema:
        """The input's, and the functions.

        Raises:
            QueryError: The input has no such attribute as a key or a group names, or a key has no order.
        """
        for name in self.groups:
            inputs[0].attribute(name)
        for key in self.keys:
            if (attribute := inputs[0].attribute(key.attribute)).domain.opaque:
                what = f"nothing is ordered by {attribute.name}: {attribute.domain.type} is not ordered here"
                raise QueryError(what)
        return Schema((*inputs[0].attributes, *(over.attribute for over in self.functions)))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """Those on groups alone, whose last rows wait for their end; without groups also on the first key."""
        firsts = () if self.groups else self._own_keys[:1]
        names = {name.lower(): name for name in (*self.groups, *(key.attribute for key in firsts))}
        found = [s for scheme in inputs[0] if (s := scheme.renamed(names)) is not None]
        kinds = {key.attribute: {"tiles"} if key.descending else {"tiles", "prefix"} for key in firsts}
        return tuple(
            dict.fromkeys(s for s in found if all(t.kind in kinds.get(t.attribute, {t.kind}) for t in s.terms))
        )

    def enabled_by(self, *inputs: Schema) -> Condition:
        """Ever longer prefixes of the order in each group."""
        if not self._own_keys:
            return Grouping(0, self.groups)
        first = self._own_keys[0]
        return Prefix(0, first.attribute, first.descending, self.groups)

    def state_models(self, *inputs: Schema) -> Sequence[StateModel]:
        """The tuples that are not closed, and the last rows of each group: so many, however long the stream."""
        last = f"the last {self.reach} tuples" if self.reach > 1 else "the last tuple"
        of_groups = StateModel(last, 0, Grouping(0, self.groups), self.groups, inputs[0], is_fixed=True)
        return [StateModel("tuples", 0, self.enabled_by(*inputs)), of_groups]

    def parameters(self, output: Schema) -> str:
        """The functions, the groups and the order."""
        answers = (f"{over} AS `{over.attribute.name}`" for over in self.functions)
        return f"({', '.join(self.groups)}) {', '.join(answers)} by {keys_line(self.keys)}"

    def pruned(self, needed: AbstractSet[str]) -> LookAhead:
        """With the functions that are needed; all attributes of the input may decide its order."""
        return replace(self, functions=tuple(o for o in self.functions if o.attribute.name in needed))

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """The groups: what looks at them alone selects whole ones."""
        return [{name.lower(): quoted(inputs[0].attribute(name).name) for name in self.groups}]

    @property
    def _own_keys(self) -> tuple[SortKey, ...]:
        """The keys that tell tuples of a group apart."""
        groups = {name.lower() for name in self.groups}
        return tuple(key for key in self.keys if key.attribute.lower() not in groups)

    @property
    def ahead(self) -> int:
        """How many rows behind a tuple must be there before it goes out."""
        return max((over.ahead for over in self.functions), default=0)

    @property
    def reach(self) -> int:
        """How many rows of each group are kept: those that wait, and those that they look back at."""
        return max(1, self.ahead + max([0, *(over.first for over in self.functions if over.first is not None)]))

    def waiting(self, *inputs: Schema) -> Sequence[Waiting]:
        """The tuples that are not closed, and the last rows."""
        names = (*self.groups, *(key.attribute for key in self._own_keys))
        return [Waiting("tuples", "tuples", names), Waiting("rows", "last tuples", self.groups)]

    def wanted_for(self, log: str, row: Row, held: Held, *inputs: Schema) -> Sequence[Way]:
        """That what is before it in its group does not come, nor its like; of last rows, that their group is closed."""
        group = {name: Constant(row[name]) for name in self.groups}
        ending = self._own_keys[:1] if log == "tuples" else ()
        return [self._up_to(group, {key: Constant(row[key.attribute]) for key in ending}, inputs[0])]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The prefixes of groups that end with it, and behind it as many tuples, or none; so, the end of the groups."""
        said = {name.lower(): pattern for name, pattern in zip(p.schema.names, p.patterns, strict=True)}
        return [self._up_to({name: said[name.lower()] for name in self.groups}, {}, inputs[0])]

    @staticmethod
    def _up_to(group: Mapping[str, Pattern], ending: Mapping[SortKey, Pattern], schema: Schema) -> Way:
        """The prefixes of groups that end with these values of the first key; whole groups without."""
        found: list[Punctuation] = [] if ending else [Punctuation.of(schema, group)]
        for key, pattern in ending.items():
            prefix = prefix_until(pattern, schema.attribute(key.attribute).domain, key.direction)
            found += (Punctuation.of(schema, {**group, key.attribute: part}) for part in prefix)
        return tuple((0, p) for p in found)

    def _over(self, schema: Schema) -> Schema:
        """The groups and the keys: what prefixes are of."""
        names = (*self.groups, *(key.attribute for key in self._own_keys))
        return Schema(tuple(schema.attribute(name) for name in names))

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """The tuples that are not closed, the last rows of each group, what is said, and what waits for them."""
        over = self._over(inputs[0])
        groups = Schema(tuple(map(inputs[0].attribute, self.groups)))
        rows = LogSchema(groups, lambda frame, _aged: self._last(frame), of=None)
        sets = {**completion_sets(inputs[0], over), "begun": over}
        return StateSchema({"tuples": LogSchema(over), "rows": rows}, sets, waiting={"held": over})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """Nothing: new tuples are kept until the order is closed up to them."""
        if (new := inputs[0].tuples) is not None:
            names = [quoted(name) for name in state.inputs[0].names]
            state.log("tuples").add(Tuples(new.frame.select(*names), new.at_most, new.exact))
        return None

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """The tuples behind which enough is closed, with their functions."""
        hand = state.scratch(_InHand)
        hand.begun = self._newly_begun(inputs[0].punctuations, state)
        if not hand.begun:
            return None
        groups = Schema(tuple(map(state.inputs[0].attribute, self.groups)))
        begun = [p.lasting(None) for p in hand.begun]
        complete = project(state.punctuations("begun").set, self.groups, groups, new=begun)
        taken = state.log("tuples").take(hand.begun)
        over = state.log("rows").take(complete) if complete else None
        if taken is None and over is None:
            return None
        # Of a group that is over nothing is looked at any more.
        return self._answered(taken, over, complete, state)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """What left did so with `pass_`."""
        state.log("tuples").settle()
        state.log("rows").settle()

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        """What newly is in a prefix, but for the rows that are still to go out."""
        schema, output = self._over(state.inputs[0]), self.schema(*state.inputs)
        begun = state.scratch(_InHand).begun
        waiting = _Waiting(state.log("rows"), self.ahead, self._spec)
        found = emittable("held", begun, [waiting], state, schema) if begun else []
        places = [output.index(name) for name in schema.names]
        return [Punctuation.at(output, dict(zip(places, p.patterns, strict=True)), p.lifespan) for p in found]

    def _newly_begun(self, punctuations: Sequence[Punctuation], state: OperatorState) -> list[Punctuation]:
        """The parts of the largest covered prefixes that were not in them before, over groups and keys."""
        names = [*self.groups, *(key.attribute for key in self._own_keys)]
        new = completed(punctuations, names, state)
        directions = [key.direction for key in self._own_keys]
        closed = closed_so_far(state)
        found = covered_prefixes(closed.set, new, len(self.groups), directions)
        return state.punctuations("begun").absorb(closed.for_its_time(found))

    def _answered(
        self, taken: Tuples | None, over: Tuples | None, complete: Sequence[Punctuation], state: OperatorState
    ) -> Tuples:
        """The rows that can be answered, with their functions; what is looked at later becomes the last rows."""
        schema, rows = state.inputs[0], state.log("rows")
        numbered = self._numbered(taken, over, rows.whole(), state)
        computed = state.computed(replace(numbered, frame=numbered.frame.selectExpr("*", *self._answers)))
        still_open = not_matching(computed.frame, complete)
        kept = still_open.where(f"{_NEW} AND {NUMBER} > {_LATEST} - {self.reach}")
        rows.add(Tuples(kept.select(*map(quoted, schema.names), NUMBER), computed.at_most, exact=False))
        going = still_open.where(f"{NUMBER} <= {_LATEST} - {self.ahead}")
        if complete:
            going = going.unionAll(matching(computed.frame, complete))
        shown = [*schema.names, *(over.attribute.name for over in self.functions)]
        going = going.where(f"{NUMBER} > {_BEFORE} - {self.ahead}").select(*map(quoted, shown))
        return Tuples(going, computed.at_most, exact=False, computed=True)

    def _numbered(
        self, taken: Tuples | None, over: Tuples | None, before: Tuples | None, state: OperatorState
    ) -> Tuples:
        """The rows of the groups that have new ones, or are over, each with its number and that of the last."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        new = state.nothing() if taken is None else taken.frame
        frame = new.withColumn(_NEW, F.lit(True)).withColumn(NUMBER, F.lit(None).cast("BIGINT"))
        at_most = 0 if taken is None else taken.at_most
        for earlier in (before, over):
            if earlier is None:
                continue
            here = earlier.frame.withColumn(_NEW, F.lit(False))
            if earlier is before and self.groups:
                here = semi_join(here, new, self.groups, at_most)
            frame, at_most = frame.unionByName(here), at_most + earlier.at_most
        group = Window.partitionBy(*map(quoted, self.groups))
        order = total(self.keys, state.inputs[0], self.groups)
        row = F.row_number().over(group.orderBy(F.col(NUMBER).asc_nulls_last(), *order))
        whole = frame.withColumn(_BEFORE, F.coalesce(F.max(NUMBER).over(group), F.lit(0).cast("BIGINT")))
        whole = whole.withColumn(NUMBER, row + F.coalesce(F.min(NUMBER).over(group), F.lit(1).cast("BIGINT")) - 1)
        return Tuples(whole.withColumn(_LATEST, F.max(NUMBER).over(group)), at_most, exact=False)

    @property
    def _answers(self) -> list[str]:
        """The functions, as Spark SQL over numbered rows."""
        spec = f"{self._spec} ORDER BY {NUMBER}"
        return [
            f"CAST({over.expression} OVER ({spec}{over.frame}) AS {over.attribute.domain.type})"
            f" AS {quoted(over.attribute.name)}"
            for over in self.functions
        ]

    @property
    def _spec(self) -> str:
        return f"PARTITION BY {', '.join(map(quoted, self.groups))}" if self.groups else ""

    def _last(self, rows: DataFrame) -> DataFrame:
        """Of each group the last rows; those of several parts are among those of each."""
        last = f"max({NUMBER}) OVER ({self._spec}) AS {_LATEST}"
        return rows.selectExpr("*", last).where(f"{NUMBER} > {_LATEST} - {self.reach}").drop(_LATEST)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Of the last rows those that are still to go out."""

    rows: TupleLog
    ahead: int
    spec: str

    def whole(self) -> Tuples | None:
        """All of them; None for none."""
        if (whole := self.rows.whole()) is None:
            return None
        last = whole.frame.selectExpr("*", f"max({NUMBER}) OVER ({self.spec}) AS {_LATEST}")
        return replace(whole, frame=last.where(f"{NUMBER} > {_LATEST} - {self.ahead}"), exact=False)


@dataclass(slots=True)
class _InHand:
    """Of the slice in hand, the prefixes that newly are covered."""

    begun: list[Punctuation] = field(default_factory=list)
