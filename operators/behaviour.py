"""Behaviour of an operator on a punctuated stream, and its logical properties, which the optimizer uses.

A query walks its operators once per slice. Each maps the slices of its inputs to one output slice, in four behaviours
called in turn: step, pass, keep, propagate (Tucker et al. 2003, §4.2). All tuples of the slice are stepped before its
punctuations act, which is sound because a grammatical stream has no tuple after a punctuation that matches it.

Differs: the paper propagates before it keeps. Here keep comes first, because what a join, an intersect or a difference
may propagate is judged by what is still kept once its state is purged.

The rules of `xmlstream.optimizer` use the logical properties and do not know which operator they look at. Each property
has a default that is right for any operator: all attributes are required, no predicate passes, duplicates count,
nothing is looked through. So an operator without properties of its own is never wrong, only never cheaper; other
operators define theirs in their own modules, beside `schema` and `schemes`. All of it is pure: parameters and schemas
in, names and Spark SQL out.

What few operators have is a capability, a small protocol of its own: a residual condition (`HasResidual`), an inner
join (`Combines`), partial aggregates (`MergesPartials`), panes (`CutsPanes`). A rule tests an operator for it.

Every operator has its methods in one order: schema, schemes, enabled_by, the other logical properties, wanted,
state_schema, and the behaviours in the order in which `advance` calls them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, runtime_checkable

from operators.closing_conditions import ALWAYS, Condition, Promises
from operators.required_punctuations import Held, Way, whole
from operators.state.slice_tuples import Slice, Tuples, bag_union
from operators.state.state_schema import StateSchema
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, completed_by
from punct_ns.slices import quoted

if TYPE_CHECKING:
    from operators.expressions.aggregates import Aggregate
    from operators.state.operator_state import OperatorState


Terms: TypeAlias = Mapping[str, str]
"""What attributes of an output are in terms of an input: Spark SQL, by their names in lower case."""


class LogicalProperties(Protocol):
    """What an operator requires of its inputs, hands on of them, and lets pass; `inputs` are their schemas."""

    __slots__ = ()

    def enabled_by(self, *inputs: Schema) -> Condition:
        """When each of its output tuples goes out in the end: what enables it (Tucker et al. 2007, §4)."""
        return ALWAYS

    def parameters(self, output: Schema) -> str:
        """Its parameters in a line, as `explain` shows them: by default the attributes of its output."""
        return ", ".join(output.names)

    # Column pruning.

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        """For each input the attributes without which those needed of the output cannot be made, nor state be right."""
        return [frozenset(schema.names) for schema in inputs]

    def pruned(self, needed: AbstractSet[str]) -> Self:
        """The operator that puts out no attribute that is not needed, as far as it makes them itself."""
        return self

    @property
    def exact_inputs(self) -> bool:
        """Whether inputs must have what is required and no more: it keeps whole tuples, or takes them by position.

        Otherwise the frame of an input may lack the attributes of its schema that are not required.
        """
        return True

    # Pushing predicates down.

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """For each input the terms in which it can be asked instead what is asked of the output's tuples.

        What looks at attributes that have terms, and is never an error, selects of the input exactly those tuples
        without which the output is what it would select of the output. It is asked of all inputs that have terms.
        """
        return [{} for _ in inputs]

    def passes_through(self, *inputs: Schema) -> AbstractSet[str]:
        """The output's attributes, in lower case, that are an input's, where each of its tuples is in the output.

        What looks at them alone may be an error, too: it is one of the output's tuples or of the input's alike.
        """
        return frozenset()

    # Eliminating distincts.

    @property
    def eliminates_duplicates(self) -> bool:
        """Whether it is δ, and nothing else."""
        return False

    def ignores_duplicates(self, side: int, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """Whether what is needed of the output is the same however often a tuple of that input comes."""
        return False

    def passes_duplicates(self, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """Whether of duplicates of an input nothing comes but duplicates, and no state."""
        return False

    # Taking out punctuations that help nobody.

    def lineage(self, names: Collection[str], *inputs: Schema) -> Sequence[Sequence[str]] | None:
        """For each input the attributes whose punctuations become those on the named ones; None if not only they do.

        An operator that answers commutes with describe (Tucker et al. 2007, §7).
        """
        return None

    def excludes(self, *inputs: Schema) -> Sequence[Punctuation]:
        """Tuples that it never puts out, whatever comes, as punctuations over its output."""
        return ()

    def says(self, *inputs: Schema) -> Sequence[Punctuation]:
        """The punctuations over its output that it emits by itself, from the beginning on."""
        return ()

    def punctuating(self) -> Self:
        """The operator that emits punctuations for what it excludes."""
        return self

    # Looking through.

    def renames(self, *inputs: Schema) -> Mapping[str, str] | None:
        """What each attribute of the output is called in the input, if it puts out each tuple of that, and no other.

        It may leave out attributes, and have one several times. None if it does anything else.
        """
        return None

    # Counting by arrival.

    @property
    def keeps_order(self) -> bool:
        """Whether its tuples come in the order in which those of its source came."""
        return False

    # Flattening.

    @property
    def is_associative(self) -> bool:
        """Whether one over inputs and one of its kind over others is one over all of them."""
        return False

    # Keeping.

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """What it keeps from slice to slice, by name, and until when; by default nothing. Pure.

        From it follow what cleanses the operator (Tucker et al. 2007, §5), and what each kept row waits for.
        """
        return StateSchema()


def is_identity(operator: LogicalProperties, *inputs: Schema) -> bool:
    """Whether over these inputs an operator changes nothing, neither tuples nor punctuations.

    >>> from operators.project import Project
    >>> here = Schema.of(a="INT", b="INT")
    >>> [is_identity(Project.renaming(here, names), here) for names in ({"a": "a"}, {"a": "b", "b": "a"})]
    [True, False]
    """
    renamed = operator.renames(*inputs)
    return renamed is not None and list(renamed.items()) == [(name, name) for name in inputs[0].names]


def among(names: Iterable[str], schema: Schema) -> frozenset[str]:
    """Those of a schema's attributes that bear one of the names, whatever its case.

    >>> among(["HOUR", "day"], Schema.of(hour="INT", min="INT"))
    frozenset({'hour'})
    """
    folded = {name.lower() for name in names}
    return frozenset(name for name in schema.names if name.lower() in folded)


def own_terms(schema: Schema) -> Terms:
    """The terms of an input for what looks at its attributes alone.

    >>> own_terms(Schema.of(Hour="INT"))
    {'hour': '`Hour`'}
    """
    return {name.lower(): quoted(name) for name in schema.names}


def by_position(output: Schema, *inputs: Schema) -> list[Terms]:
    """The terms of each input for an output whose attributes are its own, one by one.

    >>> by_position(Schema.of(Hour="INT"), Schema.of(h="INT"))
    [{'hour': '`h`'}]
    """
    return [{own.lower(): quoted(name) for own, name in zip(output.names, i.names, strict=True)} for i in inputs]


class Operator(LogicalProperties, Protocol):
    """The behaviours of one operator; `inputs` holds one slice per input, `state` what was kept from slice to slice.

    What one behaviour finds for the next ones of its slice has a name in the scratch of the state.
    """

    __slots__ = ()

    def schema(self, *inputs: Schema) -> Schema:
        """The attributes of the output tuples. Pure."""

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """What the output promises when the inputs promise this. Pure."""

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The ways in which a punctuation of the output comes; by default, that all inputs are closed."""
        return [whole(*inputs)]

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """What goes out because tuples came."""

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """What goes out because punctuations came; by default nothing: the operator holds no tuple back."""
        return None

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """Purges what no later slice can need; by default nothing: no tuple is kept."""
        return  # else it were abstract to a type checker

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        """The punctuations that hold for the output from here on."""


@runtime_checkable
class HasResidual(Protocol):
    """An operator with a condition of its own over the attributes of all inputs, parts of which inputs may check."""

    residual: str | None

    def residual_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """For each input the terms in which it can check the residual condition."""

    def with_residual(self, residual: str | None) -> Self:
        """The operator with another residual condition."""


@runtime_checkable
class Combines(HasResidual, Protocol):
    """An operator that may be an inner join: what is joined at once, or one after the other."""

    @property
    def equal(self) -> Sequence[tuple[tuple[int, str], tuple[int, str]]] | None:
        """The pairs of attributes that are equal, by their inputs' numbers and their names; None if it is no such join.

        That, and `residual`, is all of an inner join: its output are the combinations of one tuple of each input for
        which these are true, with the attributes of all inputs in their order.
        """


@runtime_checkable
class MergesPartials(Protocol):
    """An operator that may merge partial aggregates which its input has beside attributes."""

    @property
    def merged(self) -> tuple[tuple[str, ...], tuple[Aggregate, ...]] | None:
        """The keys and the aggregates of its groups; None where an aggregate has no partial ones."""


@runtime_checkable
class CutsPanes(Protocol):
    """An operator that may put each tuple into one pane first, and multiply panes then."""

    def in_panes(
        self, keys: Collection[str], operands: Collection[str], *inputs: Schema
    ) -> tuple[Operator, Operator, str] | None:
        """Two operators in its place: the first puts each tuple into one pane, the second multiplies panes.

        Args:
            keys: The output's attributes by which it is grouped above.
            operands: Those from which something is aggregated there.
            inputs: The schemas of the inputs.

        Returns:
            Both, and the attribute of the first that tells panes apart: tuples that agree on that, and on the keys that
            the input has, agree on all keys however often they are multiplied. None where nothing is gained.
        """


def promised(operator: Operator, inputs: Promises) -> tuple[Scheme, ...]:
    """What the output of an operator promises (availablePSchemes of Tucker et al. 2007, Fig. 6)."""
    schemas = [schema for schema, _ in inputs]
    schemes = operator.schemes(*(schemes for _, schemes in inputs))
    said = operator.says(*schemas)
    return completed_by(schemes, said, operator.schema(*schemas)) if said else schemes


def advance(operator: Operator, inputs: Sequence[Slice], state: OperatorState) -> Slice:
    """One slice through one operator: step, pass, keep, propagate."""
    stepped = operator.step(inputs, state)
    passed = operator.pass_(inputs, state)
    operator.keep(inputs, state)
    punctuations = operator.propagate(inputs, state)
    return Slice(bag_union([part for part in (stepped, passed) if part is not None]), tuple(punctuations))
