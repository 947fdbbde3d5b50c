"""row_window: functions over the rows around each tuple in the order of its group, once that order is closed up to it.

Meaning:    ω_{A; K; F}(R) = {| (t, f₁(w₁(t)), …) | t ∈ R |}, wᵢ(t) the rows of t's group, by A, from so many before t
            in the order of the keys K up to t, or to so many before it: SQL's OVER (PARTITION BY A ORDER BY K ROWS …).
            From the group's first row on, where fᵢ merges. Without keys the order is that of arrival.
Step:       without keys, the new tuples; else –
Pass:       {t ∈ kept ∪ new | init(A, K, P) matches t}; init(A, K, P) is, in each group, the largest covered prefix of
            the order of K. So `(sid, ts prefix)` closes the rows of each sid by themselves.
Propagate:  init(A, K, P), as far as it newly holds; without keys, all.
Keep:       the tuples that are not out; and of each group that is not closed the last rows that functions look back at.
Safe when:  the schemes cover ever longer prefixes of the order in each group; n rows are kept of each open group.
Source:     Tucker et al. 2003, §5.2 (init); SQL:2003, window functions.

To SQL the order of tuples with equal keys is anyone's choice. Here the remaining attributes decide, ascending, null
first, as in sort, so that the answer does not depend on how tuples come.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from operators.expressions.over import NUMBER, Over
from operators.groupings import ALWAYS, Condition, Grouping, Prefix, StateModel
from operators.logical_properties import Terms
from operators.state.behaviour import Operator, Slice, Tuples
from operators.state.completion import closed_so_far, completed, completion_sets
from operators.state.operator_state import OperatorState
from operators.state.row_joins import semi_join
from operators.state.sort_key import SortKey, keys_line, once, total
from operators.state.state_schema import LogSchema, StateSchema
from operators.wants import Held, Row, Waiting, Way, on
from punct_ns.errors import QueryError, UsageError
from punct_ns.pattern import WILDCARD, Constant, Pattern
from punct_ns.prefix import covered_prefixes, prefix_until
from punct_ns.projection import project
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import POSITION, own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NEW = own("new")
"""BOOLEAN: not among the rows that are only looked back at."""


@dataclass(frozen=True, slots=True)
class RowWindow(Operator):
    """The tuples, each with these functions over rows of its group, in the order of `keys` or, without, of arrival."""

    functions: tuple[Over, ...]
    keys: tuple[SortKey, ...] = ()
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", once(self.keys))
        for over in self.functions:
            if not over.is_rolling and not over.grows:
                raise UsageError(
                    f"{over.function} of all rows so far would keep all rows",
                    hint="count, sum, min, max and avg of all but decimals grow with the group; of others say how many"
                    " rows, as in ROWS 9 PRECEDING",
                )

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
        """Those on groups, perhaps with ranges of the first key from its beginning, or its tiles; all without keys."""
        if not self.keys:
            return inputs[0]
        firsts = self._own_keys[:1]
        names = {name.lower(): name for name in (*self.groups, *(key.attribute for key in firsts))}
        found = [s for scheme in inputs[0] if (s := scheme.renamed(names)) is not None]
        kinds = {key.attribute: {"tiles"} if key.descending else {"tiles", "prefix"} for key in firsts}
        return tuple(
            dict.fromkeys(s for s in found if all(t.kind in kinds.get(t.attribute, {t.kind}) for t in s.terms))
        )

    def enabled_by(self, *inputs: Schema) -> Condition:
        """Ever longer prefixes of the order in each group; nothing without keys."""
        if not self.keys:
            return ALWAYS
        if not self._own_keys:
            return Grouping(0, self.groups)
        first = self._own_keys[0]
        return Prefix(0, first.attribute, first.descending, self.groups)

    def state_models(self, *inputs: Schema) -> Sequence[StateModel]:
        """The tuples that are not out, and the last rows of each group: so many, however long the stream."""
        waiting = [StateModel("tuples", 0, self.enabled_by(*inputs))] if self.keys else []
        what = "the last tuple" if self.looks_back == 1 else f"the last {self.looks_back} tuples"
        if distances := list(dict.fromkeys(over.distance for over in self.functions if over.distance is not None)):
            what = " and ".join(f"the tuples of the last {distance}" for distance in distances)
        return [*waiting, StateModel(what, 0, Grouping(0, self.groups), self.groups, inputs[0], is_fixed=True)]

    def parameters(self, output: Schema) -> str:
        """The functions, the groups and the order."""
        order = keys_line(self.keys) or "arrival"
        answers = (f"{over} AS `{over.attribute.name}`" for over in self.functions)
        return f"({', '.join(self.groups)}) {', '.join(answers)} by {order}"

    def pruned(self, needed: AbstractSet[str]) -> RowWindow:
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
    def looks_back(self) -> int:
        """How many rows of each group are kept: as far as functions look back; the last one tells its number."""
        return max([1, *(over.first for over in self.functions if over.first is not None)])

    def waiting(self, *inputs: Schema) -> Sequence[Waiting]:
        """The tuples that are not out, and the rows that are looked back at."""
        names = (*self.groups, *(key.attribute for key in self._own_keys))
        waiting = [Waiting("tuples", "tuples", names)] if self.keys else []
        return [*waiting, Waiting("rows", "last tuples", self.groups, blocks=False)]

    def wanted_for(self, log: str, row: Row, held: Held, *inputs: Schema) -> Sequence[Way]:
        """That what is before it in its group does not come, nor its like; of last rows, that their group is closed."""
        group = {name: Constant(row[name]) for name in self.groups}
        ending = self._own_keys[:1] if log == "tuples" else ()
        return [self._up_to(group, {key: Constant(row[key.attribute]) for key in ending}, inputs[0])]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """What it says of the input, in the order of arrival; else the prefixes of groups that end with it."""
        if not self.keys:
            return [((0, on(inputs[0].names, p, inputs[0])),)]
        said = {name.lower(): pattern for name, pattern in zip(p.schema.names, p.patterns, strict=True)}
        group = {name: said[name.lower()] for name in self.groups}
        ending = {key: said[key.attribute.lower()] for key in self._own_keys[:1]}
        return [self._up_to(group, ending, inputs[0])]

    @staticmethod
    def _up_to(group: Mapping[str, Pattern], ending: Mapping[SortKey, Pattern], schema: Schema) -> Way:
        """The prefixes of groups that end with these values of the first key; whole groups without."""
        found: list[Punctuation] = [] if ending else [Punctuation.of(schema, group)]
        for key, pattern in ending.items():
            prefix = prefix_until(pattern, schema.attribute(key.attribute).domain, key.direction)
            found += (Punctuation.of(schema, {**group, key.attribute: part}) for part in prefix)
        return tuple((0, p) for p in found)

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """The tuples that are not out, the last rows of each group, what is said of both, and the prefixes."""
        groups = Schema(tuple(map(inputs[0].attribute, self.groups)))
        # They wait for nothing, and are not too many: they have no age.
        rows = LogSchema(groups, lambda frame, _aged: self._last(frame), of=None)
        if not self.keys:
            return StateSchema({"rows": rows}, completion_sets(inputs[0], groups))
        over = Schema((*groups, *(inputs[0].attribute(key.attribute) for key in self._own_keys)))
        sets = {**completion_sets(inputs[0], over), "begun": over}
        return StateSchema({"tuples": LogSchema(over), "rows": rows}, sets)

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """In the order of arrival the new tuples, with their functions; else they are kept."""
        new = inputs[0].tuples
        if new is None:
            return None
        names = [quoted(name) for name in state.inputs[0].names]
        if self.keys:
            state.log("tuples").add(Tuples(new.frame.select(*names), new.at_most, new.exact))
            return None
        if POSITION not in new.frame.columns:
            raise QueryError(
                "rows in the order of arrival need the order of a source, which is not there",
                hint="count rows directly on a source, through select and project, before merge, join or group by",
            )
        return self._answered(state.computed(replace(new, frame=new.frame.select(*names, POSITION))), state)

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """The kept tuples of what newly is in a prefix, with their functions."""
        hand = state.scratch(_InHand)
        if not self.keys:
            hand.complete = completed(inputs[0].punctuations, self.groups, state)
            return None
        hand.begun = self._newly_begun(inputs[0].punctuations, state)
        if not hand.begun:
            return None
        groups = Schema(tuple(map(state.inputs[0].attribute, self.groups)))
        begun = [p.lasting(None) for p in hand.begun]
        hand.complete = project(state.punctuations("begun").set, self.groups, groups, new=begun)
        taken = state.log("tuples").take(hand.begun)
        return None if taken is None else self._answered(taken, state)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """What left did so with `pass_`; of closed groups nothing is looked back at."""
        if self.keys:
            state.log("tuples").settle()
        state.log("rows").settle()
        state.log("rows").purge(state.scratch(_InHand).complete)

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        """What newly is in a prefix; in the order of arrival all that is said."""
        output = self.schema(*state.inputs)
        if not self.keys:
            beside = [WILDCARD for _ in self.functions]
            return [Punctuation(output, (*p.patterns, *beside), p.lifespan) for p in inputs[0].punctuations]
        places = [output.index(name) for name in (*self.groups, *(key.attribute for key in self._own_keys))]
        begun = state.scratch(_InHand).begun
        return [Punctuation.at(output, dict(zip(places, p.patterns, strict=True)), p.lifespan) for p in begun]

    def _newly_begun(self, punctuations: Sequence[Punctuation], state: OperatorState) -> list[Punctuation]:
        """The parts of the largest covered prefixes that were not in them before, over groups and keys."""
        names = [*self.groups, *(key.attribute for key in self._own_keys)]
        new = completed(punctuations, names, state)
        directions = [key.direction for key in self._own_keys]
        closed = closed_so_far(state)
        found = covered_prefixes(closed.set, new, len(self.groups), directions)
        return state.punctuations("begun").absorb(closed.for_its_time(found))

    def _answered(self, ready: Tuples, state: OperatorState) -> Tuples:
        """Tuples with their functions; they become the last rows of their groups."""
        schema, rows = state.inputs[0], state.log("rows")
        told = self._told(self._numbered(ready, rows.whole(), schema)).where(_NEW).drop(_NEW)
        # Read twice: it goes out, and is looked back at.
        computed = state.computed(Tuples(told, ready.at_most, ready.exact))
        rows.add(replace(computed, frame=computed.frame.select(*map(quoted, schema.names), NUMBER, *self._running)))
        shown = [*schema.names, *(over.attribute.name for over in self.functions)]
        position = [POSITION] if POSITION in computed.frame.columns else []
        return replace(computed, frame=computed.frame.select(*map(quoted, shown), *position))

    def _numbered(self, ready: Tuples, before: Tuples | None, schema: Schema) -> DataFrame:
        """The tuples, and the rows before them, each with its number in its group."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        frame = ready.frame.withColumn(_NEW, F.lit(True)).withColumn(NUMBER, F.lit(None).cast("BIGINT"))
        if before is not None:
            earlier = before.frame.withColumn(_NEW, F.lit(False))
            if self.groups:
                earlier = semi_join(earlier, ready.frame, self.groups, ready.at_most)
            frame = frame.unionByName(earlier, allowMissingColumns=True)
        group = Window.partitionBy(*map(quoted, self.groups))
        order = total(self.keys, schema, self.groups) if self.keys else [F.col(POSITION)]
        row = F.row_number().over(group.orderBy(F.col(NUMBER).asc_nulls_last(), *order))
        # The rows before have numbers one after the other, and come first.
        return frame.withColumn(NUMBER, row + F.coalesce(F.min(NUMBER).over(group), F.lit(1).cast("BIGINT")) - 1)

    def _told(self, numbered: DataFrame) -> DataFrame:
        """The rows with their functions, and with what those of all rows so far have come to."""
        grown = self._ranked(self._grown(numbered))
        peers = self._spec([*self.groups, *(key.attribute for key in self.keys)])
        answers = []
        for number, over in enumerate(self.functions):
            merging = None if over.is_rolling or over.is_rank else over.merging(number)
            if over.function == "row_number":
                text = NUMBER
            elif over.function == "dense_rank":
                text = _DENSE
            elif over.distance is not None:
                nulls = "FIRST" if self.keys[0].direction.nulls_first else "LAST"
                key = f"{quoted(self.keys[0].attribute)} NULLS {nulls}"
                text = f"{over.expression} OVER ({self._spec(self.groups)} ORDER BY {key}{over.frame})"
            elif over.function == "rank":
                text = f"min({NUMBER}) OVER ({peers})"
            elif merging is not None:
                whole = f"{peers} ORDER BY {NUMBER} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
                text = f"last_value({merging.last}) OVER ({whole})" if over.peers else merging.last
            else:
                text = f"{over.expression} OVER ({self._spec(self.groups)} ORDER BY {NUMBER}{over.frame})"
            answers.append(f"CAST({text} AS {over.attribute.domain.type}) AS {quoted(over.attribute.name)}")
        return grown.selectExpr("*", *answers)

    def _ranked(self, numbered: DataFrame) -> DataFrame:
        """The rows with how many different keys there are up to theirs, where a function asks for it."""
        if not self._is_dense:
            return numbered
        groups = self._spec(self.groups)
        first = f"min({NUMBER}) OVER ({self._spec([*self.groups, *(key.attribute for key in self.keys)])})"
        among = numbered.selectExpr("*", f"{first} AS {_FIRST}")
        among = among.selectExpr("*", f"dense_rank() OVER ({groups} ORDER BY {_FIRST}) AS {_AMONG}").drop(_FIRST)
        others = [quoted(name) for name in numbered.columns if name != _DENSE]
        if _DENSE not in numbered.columns:
            return among.selectExpr(*others, f"{_AMONG} AS {_DENSE}")
        more = f"coalesce(max(IF({_NEW}, NULL, {_DENSE} - {_AMONG})) OVER ({groups}), 0)"
        return among.selectExpr(*others, f"{_AMONG} + {more} AS {_DENSE}")

    @property
    def _is_dense(self) -> bool:
        return any(over.function == "dense_rank" for over in self.functions)

    def _grown(self, numbered: DataFrame) -> DataFrame:
        """The rows with the partial aggregates of all rows of their groups up to them."""
        running = {name: text for number, over in self._growing for name, text in over.partials(number, "first")}
        if not running:
            return numbered
        spec = f"{self._spec(self.groups)} ORDER BY {NUMBER}"
        alone = [
            f"{text} OVER ({spec} ROWS BETWEEN CURRENT ROW AND CURRENT ROW) AS {_alone(name)}"
            for name, text in running.items()
        ]
        latest = f"max(IF({_NEW}, NULL, {NUMBER})) OVER ({self._spec(self.groups)}) AS {_LATEST}"
        others = [quoted(name) for name in numbered.columns if name not in running]
        before = [
            f"IF({_NEW}, {_alone(name)}, IF({NUMBER} = {_LATEST}, {name}, NULL)) AS {name}"
            if name in numbered.columns
            else f"{_alone(name)} AS {name}"
            for name in running
        ]
        # What the last row before has come to stands for all rows up to it.
        so_far = f" OVER ({spec} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        merged = [
            f"{_CALL.sub(lambda call: call[0] + so_far, text)} AS {name}"
            for number, over in self._growing
            for name, text in over.partials(number, "merge")
        ]
        each = numbered.selectExpr("*", *alone, latest).selectExpr(*others, *before)
        return each.selectExpr(*others, *merged)

    @property
    def _growing(self) -> list[tuple[int, Over]]:
        """The functions of all rows so far that are not told by the number of rows, by their places."""
        return [(i, over) for i, over in enumerate(self.functions) if not (over.is_rolling or over.is_rank)]

    @property
    def _running(self) -> list[str]:
        """The columns that they, and ranks, keep of a row."""
        kept = [name for number, over in self._growing for name, _ in over.partials(number, "first")]
        return [*kept, _DENSE] if self._is_dense else kept

    def _spec(self, names: Sequence[str]) -> str:
        return f"PARTITION BY {', '.join(map(quoted, names))}" if names else ""

    def _last(self, rows: DataFrame) -> DataFrame:
        """Of each group the last rows that functions look back at; those of several parts are among those of each."""
        group, kept = self._spec(self.groups), [f"{NUMBER} > {_LATEST} - {self.looks_back}"]
        last = [f"max({NUMBER}) OVER ({group}) AS {_LATEST}"]
        for distance in dict.fromkeys(over.distance for over in self.functions if over.distance is not None):
            key = quoted(self.keys[0].attribute)
            last = [*last[:1], f"max({key}) OVER ({group}) AS {_UP_TO}"]
            kept.append(f"coalesce({key} >= {_UP_TO} - {distance}, {key} IS NOT NULL)")
        return rows.selectExpr("*", *last).where(" OR ".join(kept)).drop(_LATEST, _UP_TO)


_LATEST, _UP_TO = own("latest"), own("up_to")
"""The greatest number of the group, and its greatest key."""

_DENSE, _AMONG, _FIRST = own("dense"), own("among"), own("first")
"""How many different keys there are up to a row's, in its group, among the rows at hand; its first peer's number."""

_CALL = re.compile(r"\w+\(" + own(r"\w+") + r"\)")
"""The aggregate of a merge of partial aggregates."""


def _alone(name: str) -> str:
    """The partial aggregate of one row."""
    return f"{name}_alone"


@dataclass(slots=True)
class _InHand:
    """Of the slice in hand, the prefixes that newly are covered, and the punctuations on groups that closed."""

    begun: list[Punctuation] = field(default_factory=list)
    complete: list[Punctuation] = field(default_factory=list)
