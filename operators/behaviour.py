"""Behaviour of an operator on a punctuated stream, and its logical properties, by which plans are judged and made.

A query walks its operators once per slice. Each maps the slices of its inputs to one output slice, in four behaviours
called in turn: step, pass, keep, propagate (Tucker et al. 2003, §4.2). All tuples of the slice are stepped before its
punctuations act, which is sound because a grammatical stream has no tuple after a punctuation that matches it.

Differs: the paper propagates before it keeps. Here keep comes first, because what a join, an intersect or a difference
may propagate is judged by what is still kept once its state is purged.

The rules of `xmlstream.optimizer`, verdicts and the change of a query use the logical properties and do not know which
operator they look at. Each property has a default that is right for any operator: all attributes are required, no
predicate passes, duplicates count, nothing is looked through, and in a changed query it begins anew (`takes_over`). So
an operator without properties of its own is never wrong, only never cheaper; other operators define theirs in their own
modules, beside `schema` and `schemes`. All of it is pure: parameters and schemas in, names and Spark SQL out.

What few operators have is a capability, a small protocol of its own: a residual condition (`HasResidual`), an inner
join (`Combines`), a join of two inputs (`JoinsTwo`), groups (`GroupsBy`), partial aggregates (`MergesPartials`), panes
(`CutsPanes`). Who uses one tests an operator for it.

Every operator has its methods in one order: schema, schemes, enabled_by, the other logical properties, wanted,
state_schema, and the behaviours in the order in which `advance` calls them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, runtime_checkable

from xmlstream.dataclasses import dataclass
from xmlstream.operators.closing_conditions import ALWAYS, Condition, Prefix, Promises
from xmlstream.operators.required_punctuations import Held, Way, whole
from xmlstream.operators.state.slice_tuples import Slice, Tuples, bag_union
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.taking_over import Differs, Names, TakenOver, TakesOver, is_alike
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, completed_by
from xmlstream.punct_ns.slices import quoted

if TYPE_CHECKING:
    from xmlstream.operators.expressions.aggregates import Aggregate
    from xmlstream.operators.state.operator_state import OperatorState


Terms: TypeAlias = Mapping[str, str]
"""Attributes of an output as Spark SQL over an input, by their names in lower case."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The tuples of an output as some of the only input's, with other columns: SELECT … FROM input WHERE ….

    Attributes:
        conditions: What these tuples satisfy, as Spark SQL over the input.
        columns: The attributes of the output, in their order; None if they are the input's.
    """

    conditions: tuple[str, ...] = ()
    columns: Terms | None = None


class LogicalProperties(Protocol):
    """Requirements of an operator on its inputs, and the properties of its output; `inputs` are the inputs' schemas."""

    __slots__ = ()

    def enabled_by(self, *inputs: Schema) -> Condition:
        """The condition under which each output tuple goes out in the end (Tucker et al. 2007, §4)."""
        return ALWAYS

    def parameters(self, output: Schema) -> str:
        """The parameters in one line, as `explain` shows them; by default the attributes of the output."""
        return ", ".join(output.names)

    # Column pruning.

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        """For each input, the attributes that the needed output attributes or a correct state depend on."""
        return [frozenset(schema.names) for schema in inputs]

    def pruned(self, needed: AbstractSet[str]) -> Self:
        """The operator without the output attributes that it computes itself and that are not needed."""
        return self

    def adds(self, *inputs: Schema) -> AbstractSet[str] | None:
        """The attributes that it computes, if its output is its input with these; otherwise None.

        If none of them is needed, the operator is superfluous.
        """
        return None

    @property
    def exact_inputs(self) -> bool:
        """Whether inputs must have exactly the required attributes: it keeps whole tuples, or takes them by position.

        Otherwise, the frame of an input may lack attributes of its schema that are not required.
        """
        return True

    # Pushing predicates down.

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """For each input, the terms in which a predicate over the output becomes a predicate over the input.

        A predicate is pushed down if all its attributes have terms and it cannot raise an error. Then it selects
        exactly those input tuples that give the selected output tuples. It is pushed to all inputs that have terms.
        """
        return [{} for _ in inputs]

    def passes_through(self, *inputs: Schema) -> AbstractSet[str]:
        """The output's attributes, in lower case, that are those of an input all of whose tuples go out.

        A predicate over these alone is pushed down even if it can raise an error: the output raises it exactly if the
        input does.
        """
        return frozenset()

    # Eliminating distincts.

    @property
    def eliminates_duplicates(self) -> bool:
        """Whether the operator is δ, and nothing else."""
        return False

    def ignores_duplicates(self, side: int, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """Whether duplicates in the input `side` change nothing in the needed attributes of the output."""
        return False

    def passes_duplicates(self, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """Whether duplicates of the input only give duplicates in the output, and no state."""
        return False

    # Taking out punctuations that no operator needs.

    def lineage(self, names: Collection[str], *inputs: Schema) -> Sequence[Sequence[str]] | None:
        """For each input, the attributes whose punctuations give all those on the named ones; None if others do too.

        An operator that returns attributes commutes with describe (Tucker et al. 2007, §7).
        """
        return None

    def excludes(self, *inputs: Schema) -> Sequence[Punctuation]:
        """Punctuations over the output that match only tuples which the operator never emits, for any input."""
        return ()

    def initial(self, *inputs: Schema) -> Sequence[Punctuation]:
        """The punctuations over the output that the operator emits from the beginning, without one of an input."""
        return ()

    def punctuating(self) -> Self:
        """The operator with punctuations for the tuples that it excludes."""
        return self

    # Looking through.

    def renames(self, *inputs: Schema) -> Mapping[str, str] | None:
        """The input's name of each output attribute, if exactly the input's tuples go out; otherwise None.

        Attributes may be missing, and may appear several times.
        """
        return None

    # Counting by arrival.

    @property
    def keeps_order(self) -> bool:
        """Whether tuples of the output are in the order of the source's tuples."""
        return False

    # Flattening.

    @property
    def is_associative(self) -> bool:
        """Whether nested operators of this kind equal one operator over all the inputs."""
        return False

    # Going on once the query was changed (`xmlstream.operators.taking_over`).

    def selection(self, *inputs: Schema) -> Selection | None:
        """The output's tuples as tuples of the only input; None if they are others, as those of a group_by are.

        Such an operator may be added, changed or left out below others that go on.
        """
        return None

    @property
    def takes_over(self) -> TakesOver:
        """Above which inputs it takes over the state of such an operator before; by default of none: it begins anew.

        That state must be the one that it would have now, had it read the inputs from their beginning.
        """
        return TakesOver.NOTHING

    def taken_over(self, before: Self, called: Names) -> TakenOver:
        """The state that it takes over above such inputs; by default all, of an operator with the same parameters.

        Args:
            before: The operator of the query before.
            called: The old names of the inputs' attributes.

        Raises:
            Differs: It takes over nothing.
        """
        if not is_alike(self, before, called):
            raise Differs("it is not the same operator")
        return TakenOver()

    @property
    def begins_empty(self) -> bool:
        """Whether it begins without state above an input that has closed something: it keeps what it has sent alone.

        Any other operator begins as if the punctuations that its inputs have sent up to now came at once.
        """
        return False

    @property
    def holds_back(self) -> bool:
        """Whether kept tuples may hold back punctuations that would follow from those of its inputs."""
        return True

    @property
    def declared_in(self) -> str | None:
        """The name of the set of all that it has sent, if it declares that of itself, as a source does; else None."""
        return None

    @property
    def looked_up(self) -> Sequence[int]:
        """The inputs in which each tuple of the only other one is looked up: above tables, no earlier tuple matters."""
        return ()

    # Words for verdicts; what is kept is called by its `StateModel`.

    def origins(self, name: str, *inputs: Schema) -> Sequence[tuple[int, str]]:
        """The attributes from which one of the output comes, by the number of their input; none if it creates it.

        By default the one that closes it (`lineage`), or the only one of that name.
        """
        if len(inputs) == 1 and (line := self.lineage([name], *inputs)) and len(line[0]) == 1:
            return [(0, line[0][0])]
        having = [i for i, schema in enumerate(inputs) if name.lower() in map(str.lower, schema.names)]
        return [(having[0], name)] if len(having) == 1 else []

    @property
    def sorts_by(self) -> Sequence[str]:
        """The attributes by which it sorts the tuples, and does nothing else; by default none."""
        return ()

    @property
    def takes_first(self) -> bool:
        """Whether it takes the first tuple of each group, in an order."""
        return False

    # Keeping.

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """The state that is kept from slice to slice, by name, and until when; by default none. Pure.

        It determines which schemes cleanse the operator (Tucker et al. 2007, §5), and what each kept row waits for.
        """
        return StateSchema()


def is_identity(operator: LogicalProperties, *inputs: Schema) -> bool:
    """Whether the operator changes neither tuples nor punctuations of these inputs.

    >>> from xmlstream.operators.expressions.output_columns import Column
    >>> from xmlstream.operators.project import Project
    >>> here = Schema.of(a="INT", b="INT")
    >>> columns = lambda *names: tuple(Column(here.attribute(new), f"`{old}`", old) for new, old in names)
    >>> [is_identity(Project(columns(*names)), here) for names in (("aa", "bb"), ("ab", "ba"))]
    [True, False]
    """
    renamed = operator.renames(*inputs)
    return renamed is not None and list(renamed.items()) == [(name, name) for name in inputs[0].names]


def among(names: Iterable[str], schema: Schema) -> frozenset[str]:
    """The attributes of a schema that have one of the names, in any case.

    >>> among(["HOUR", "day"], Schema.of(hour="INT", min="INT"))
    frozenset({'hour'})
    """
    folded = {name.lower() for name in names}
    return frozenset(name for name in schema.names if name.lower() in folded)


def own_terms(schema: Schema) -> Terms:
    """The terms of an input whose attributes are the output's, under the same names.

    >>> own_terms(Schema.of(Hour="INT"))
    {'hour': '`Hour`'}
    """
    return {name.lower(): quoted(name) for name in schema.names}


def by_position(output: Schema, *inputs: Schema) -> list[Terms]:
    """The terms of each input for an output whose attributes correspond to the input's by position.

    >>> by_position(Schema.of(Hour="INT"), Schema.of(h="INT"))
    [{'hour': '`h`'}]
    """
    return [{own.lower(): quoted(name) for own, name in zip(output.names, i.names, strict=True)} for i in inputs]


class Operator(LogicalProperties, Protocol):
    """The behaviours of one operator; `inputs` holds one slice for each input, `state` the state kept between slices.

    Results that later behaviours of the same slice use are in the state's scratch.
    """

    __slots__ = ()

    def schema(self, *inputs: Schema) -> Schema:
        """The attributes of the output tuples. Pure."""

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The schemes that the output promises if the inputs promise these. Pure."""

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The ways to a punctuation of the output; by default, the end of all inputs."""
        return [whole(*inputs)]

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """The output tuples that new tuples give."""

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """The output tuples that new punctuations release; by default none: the operator holds no tuple back."""
        return None

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """Purges the state that no later slice needs; by default nothing: no tuple is kept."""
        return  # without it, a type checker would take the method for abstract

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        """The punctuations that hold for the output from this slice on."""


@runtime_checkable
class HasResidual(Protocol):
    """An operator with a condition over the attributes of all inputs; inputs may check parts of it."""

    residual: str | None

    def residual_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """For each input the terms in which it can check the residual condition."""

    def with_residual(self, residual: str | None) -> Self:
        """The operator with another residual condition."""


@runtime_checkable
class Combines(HasResidual, Protocol):
    """An operator that may be an inner join, and may then be merged with others or split into joins of fewer inputs."""

    @property
    def equal(self) -> Sequence[tuple[tuple[int, str], tuple[int, str]]] | None:
        """The pairs of equal attributes, each by its input's number and its name; None if it is not an inner join.

        These and `residual` define the join: its output is the combinations of one tuple of each input for which they
        are true, with the attributes of all inputs in their order.
        """

    def with_conditions(
        self, more: Sequence[tuple[tuple[int, str], tuple[int, str]]], residual: str | None, *inputs: Schema
    ) -> Self:
        """The inner join with more pairs of equal attributes, and another residual condition."""


@runtime_checkable
class JoinsTwo(HasResidual, Protocol):
    """A join of two inputs whose residual condition may bound which partners a tuple waits for."""

    left_on: tuple[str, ...]
    right_on: tuple[str, ...]

    def bounded(self, *inputs: Schema) -> Self:
        """The join with the bounds that follow from its residual condition."""


@runtime_checkable
class GroupsBy(Protocol):
    """An operator whose tuples answer for groups, which may be divided into smaller ones."""

    def by_more(self, *keys: str) -> Self:
        """The operator with further grouping attributes of its input."""


@runtime_checkable
class MergesPartials(Protocol):
    """An operator that may merge partial aggregates, which stand beside the attributes of its input."""

    @property
    def merged(self) -> tuple[tuple[str, ...], tuple[Aggregate, ...]] | None:
        """The keys and the aggregates of the groups; None if an aggregate has no partial aggregates."""


@runtime_checkable
class CutsPanes(Protocol):
    """An operator that may split in two: one puts each tuple into one pane, the other multiplies panes."""

    def in_panes(
        self, keys: Collection[str], operands: Collection[str], *inputs: Schema
    ) -> tuple[Operator, Operator, str] | None:
        """Two operators that replace it: the first puts each tuple into one pane, the second multiplies panes.

        Args:
            keys: The output's attributes that the operator above groups by.
            operands: The output's attributes that the operator above aggregates.
            inputs: The schemas of the inputs.

        Returns:
            Both operators, and the attribute of the first that identifies a pane: tuples that agree on it, and on the
                keys that the input has, agree on all keys however often they are multiplied. None if the replacement
                gains nothing.
        """


def promised(operator: Operator, inputs: Promises) -> tuple[Scheme, ...]:
    """The schemes that the output of an operator promises (availablePSchemes of Tucker et al. 2007, Fig. 6)."""
    schemas = [schema for schema, _ in inputs]
    given = [schemes for _, schemes in inputs]
    if isinstance(order := operator.enabled_by(*schemas), Prefix):
        given[order.input] = order.as_prefixes(*inputs[order.input])
    schemes = operator.schemes(*given)
    own = operator.initial(*schemas)
    return completed_by(schemes, own, operator.schema(*schemas)) if own else schemes


def advance(operator: Operator, inputs: Sequence[Slice], state: OperatorState) -> Slice:
    """Runs one slice through one operator: step, pass, keep, propagate."""
    stepped = operator.step(inputs, state)
    passed = operator.pass_(inputs, state)
    operator.keep(inputs, state)
    punctuations = operator.propagate(inputs, state)
    return Slice(bag_union((stepped, passed)), tuple(punctuations))
