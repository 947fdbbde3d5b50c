"""Rows in order: the common part of sort, row_window and look_ahead; the last two compute functions over rows.

Tuples are kept until the order is closed up to them: init(A, K, P) is, in each group by A, the largest prefix of the
order of the keys K that P covers. So `(sid, ts prefix)` closes the rows of each sid by themselves. Among tuples with
equal keys the remaining attributes decide the order, ascending, null first, as in sort, so that the result does not
depend on the order of arrival.

Source:     Tucker et al. 2003, §5.2 (init); SQL:2003, window functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.behaviour import Operator, Terms
from xmlstream.operators.closing_conditions import Condition, Grouping, Prefix, StateModel
from xmlstream.operators.expressions.aggregates import Over
from xmlstream.operators.required_punctuations import Held, Row, Way
from xmlstream.operators.sort_order import SortKey, keys_line, once
from xmlstream.operators.state.completion import bound, closed_so_far, completed, completion_sets, forget_completed
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.pattern import Constant, Pattern
from xmlstream.punct_ns.prefix import covered_prefixes, prefix_until
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import placed, project
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import quoted
from xmlstream.punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


@dataclass(slots=True)
class Begun:
    """Results of `begin` for one slice.

    Attributes:
        prefixes: Covered prefixes that have grown.
        groups: Punctuations on groups that are over.
        before: The values of the first key that were closed for ever before, in all groups.
    """

    prefixes: list[Punctuation] = field(default_factory=list)
    groups: list[Punctuation] = field(default_factory=list)
    before: ValueSet | None = None


def besides(keys: Sequence[SortKey], groups: Sequence[str]) -> tuple[SortKey, ...]:
    """The keys that are no groups."""
    names = {name.lower() for name in groups}
    return tuple(key for key in keys if key.attribute.lower() not in names)


class InOrder(Operator, Protocol):
    """An operator that keeps tuples until the order of `keys`, in each group by `groups`, is closed up to them."""

    __slots__ = ()

    keys: tuple[SortKey, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The grouping attributes; by default none, so that all tuples are in one order."""
        return ()

    def enabled_by(self, *inputs: Schema) -> Condition:
        if not self.own_keys:
            return Grouping(0, self.groups)
        first = self.own_keys[0]
        return Prefix(0, first.attribute, first.descending, self.groups, nulls_first=first.direction.nulls_first)

    @property
    def own_keys(self) -> tuple[SortKey, ...]:
        """The keys that distinguish tuples of a group."""
        return besides(self.keys, self.groups)

    @property
    def over(self) -> tuple[str, ...]:
        """The attributes of prefixes: the groups, and the keys."""
        return (*self.groups, *(key.attribute for key in self.own_keys))

    def promised(self, firsts: Sequence[SortKey], *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The schemes on groups, perhaps with ranges of these keys from their beginnings, or with their tiles."""
        names = {name.lower(): name for name in (*self.groups, *(key.attribute for key in firsts))}
        found = [s for scheme in inputs[0] if (s := scheme.renamed(names)) is not None]
        kinds = {key.attribute: {"tiles"} if key.descending else {"tiles", "prefix"} for key in firsts}
        return tuple(
            dict.fromkeys(s for s in found if all(t.kind in kinds.get(t.attribute, {t.kind}) for t in s.terms))
        )

    def patterns_over(self, p: Punctuation) -> dict[str, Pattern]:
        """The patterns of an output punctuation for the groups and the keys."""
        patterns = {name.lower(): pattern for name, pattern in zip(p.schema.names, p.patterns, strict=True)}
        return {name: patterns[name.lower()] for name in self.over}

    def prefixes_up_to(self, patterns: Mapping[str, Pattern], ending: Sequence[SortKey], schema: Schema) -> Way:
        """The prefixes of groups that end with these patterns of keys; without keys, whole groups."""
        group = {name: patterns[name] for name in self.groups}
        found: list[Punctuation] = [] if ending else [Punctuation.of(schema, group)]
        for key in ending:
            domain = schema.attribute(key.attribute).domain
            prefix = prefix_until(patterns[key.attribute], domain, key.direction)
            found += (Punctuation.of(schema, {**group, key.attribute: part}) for part in prefix)
        return tuple((0, p) for p in found)

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The prefixes of groups that end with the punctuation."""
        return [self.prefixes_up_to(self.patterns_over(p), self.own_keys[:1], inputs[0])]

    def tuples_of(self, given: Schema) -> StateSchema:
        """The tuples up to which the order is not closed, the closed parts of it, and the prefixes."""
        over, ending = given.only(self.over), self.own_keys[:1]

        def awaits(row: Row, _: Held) -> list[Way]:
            patterns = {name: Constant(row[name]) for name in (*self.groups, *(key.attribute for key in ending))}
            return [self.prefixes_up_to(patterns, ending, given)]

        tuples = StateModel("tuples", 0, InOrder.enabled_by(self, given))
        log = LogSchema(over, (tuples,), names=self.over, awaits=awaits)
        return StateSchema({"tuples": log}, {**completion_sets(given, over), "begun": over})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """Keeps the new tuples until the order is closed up to them."""
        if (new := inputs[0].tuples) is not None:
            names = state.inputs[0].names
            state.log("tuples").add(Tuples(new.frame.select(*names), new.at_most, new.exact))
        return None

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        return placed(state.scratch(Begun).prefixes, self.over, self.schema(*state.inputs))

    def begin(self, punctuations: Sequence[Punctuation], state: OperatorState) -> Begun:
        """Finds the new parts of the largest covered prefixes, and the groups that are over.

        Each prefix has the lifespan of the punctuations that it follows from; rows of a group that is over are
        forgotten for good, and so are the punctuations on it, unless any has a lifespan.
        """
        scratch = state.scratch(Begun)
        if not (new := completed(punctuations, self.over, state)):
            return scratch
        closed, begun = closed_so_far(state), state.punctuations("begun")
        if self.own_keys:
            scratch.before = begun.lasting.values(self.own_keys[0].attribute)
        directions = [key.direction for key in self.own_keys]
        found = covered_prefixes(closed.set, new, len(self.groups), directions)
        scratch.prefixes = begun.absorb(closed.for_its_time(found))
        if len(self.own_keys) > 1:
            # Lone values of later keys extend a prefix only together with all before them.
            first, given = self.over[: len(self.groups) + 1], state.inputs[0]
            bound(closed, new, first)
            bound(state.punctuations("input-0"), placed(new, self.over, given), first)
        if scratch.prefixes:
            groups = state.inputs[0].only(self.groups)
            newly = [p.lasting(None) for p in scratch.prefixes]
            scratch.groups = project(begun.set, self.groups, groups, new=newly)
            if self.groups and not begun.passes:
                over = placed(scratch.groups, self.groups, begun.set.schema)
                begun.forget(over)
                forget_completed(over, self.over, state)
        return scratch


@dataclass(frozen=True, slots=True)
class OrderedRows(InOrder):
    """The tuples, each with these functions over rows of its group by `groups`, in the order of `keys`."""

    functions: tuple[Over, ...]
    keys: tuple[SortKey, ...] = ()
    groups: tuple[str, ...] = ()
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", once(self.keys))

    def schema(self, *inputs: Schema) -> Schema:
        """The input's attributes, and the functions.

        Raises:
            QueryError: The input lacks an attribute that a key or a group names, or a key has no order.
        """
        for name in self.groups:
            inputs[0].attribute(name)
        for key in self.keys:
            if (attribute := inputs[0].attribute(key.attribute)).domain.opaque:
                what = f"{attribute.name} has type {attribute.domain.type}, by which rows cannot be ordered"
                raise QueryError(what)
        return Schema((*inputs[0].attributes, *(over.attribute for over in self.functions)))

    def parameters(self, output: Schema) -> str:
        answers = (f"{over} AS `{over.attribute.name}`" for over in self.functions)
        order = f" by {keys_line(self.keys) or 'arrival'}" if self.keys or self.keeps_order else ""
        return f"({', '.join(self.groups)}) {', '.join(answers)}{order}"

    def pruned(self, needed: AbstractSet[str]) -> Self:
        """The operator with the needed functions only; all attributes of the input may decide its order."""
        return replace(self, functions=tuple(o for o in self.functions if o.attribute.name in needed))

    def adds(self, *inputs: Schema) -> AbstractSet[str] | None:
        return {over.attribute.name for over in self.functions}

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        return [{name.lower(): quoted(inputs[0].attribute(name).name) for name in self.groups}]

    def rows_of(self, given: Schema, what: str, last: Callable[[Frame], Frame], *, blocks: bool) -> LogSchema:
        """The log of the last rows of each group, of a fixed number; they wait for the end of the group."""
        groups = given.only(self.groups)
        rows = StateModel(what, 0, Grouping(0, self.groups), per=groups, is_fixed=True)
        return LogSchema(groups, (rows,), "last tuples", blocks=blocks, combine=lambda frame, _ages: last(frame))
