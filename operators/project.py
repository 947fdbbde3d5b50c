"""project: some attributes, renamed, copied, or computed; duplicates stay.

Meaning:    π_E(R) = {| (e₁(t), …, eₙ(t)) | t ∈ R |}
Step:       π_E(new)
Pass:       –
Propagate:  those with a wildcard at every attribute removed; several that together cover the domains of the
            attributes removed count as one. For y = f(x), f monotone: {y | f⁻¹(y) ⊆ closed x}, in the place of x; where
            x is copied too, one for each. For coalesce(x, y): what is closed of x and, where x is null, of y. A
            wildcard at every attribute computed otherwise.
Keep:       punctuations only: those that may yet say more together with others.
Safe when:  always.
Source:     Tucker et al. 2003, Table 3 (projPs) and §5.3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce

from operators.expressions.columns import Column
from operators.expressions.dialect import expression
from operators.expressions.equal_values import takes_equals_alike
from operators.expressions.references import attributes_in
from operators.logical_properties import Terms, among
from operators.state.behaviour import Operator, Slice, Tuples
from operators.state.meeting import meeting_sets, met
from operators.state.operator_state import OperatorState
from operators.state.state_schema import StateSchema
from operators.views import View, views
from operators.wants import Held, Way, whole
from punct_ns.pattern import patterns
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from punct_ns.scheme import Scheme
from punct_ns.scheme_order import meets
from punct_ns.slices import POSITION, quoted
from punct_ns.value_set import ValueSet


@dataclass(frozen=True, slots=True)
class Project(Operator):
    """The columns, of each tuple of the input."""

    columns: tuple[Column, ...]

    @staticmethod
    def renaming(schema: Schema, names: Mapping[str, str]) -> Project:
        """All attributes of a schema, some under new names; UsageError for an old name that there is not.

        >>> Project.renaming(Schema.of(a="INT", b="INT"), {"b": "c"}).schema().names
        ('a', 'c')
        """
        renamed = {schema.attribute(old).name: new for old, new in names.items()}
        attributes = [(a.name, Attribute(renamed.get(a.name, a.name), a.domain)) for a in schema]
        return Project(tuple(Column(new, quoted(old), old) for old, new in attributes))

    def is_identity(self, *inputs: Schema) -> bool:
        """Whether each column is the input's attribute of its own place and name, and not computed; none is left out.

        >>> here = Schema.of(a="INT", b="INT")
        >>> Project.renaming(here, {"a": "a"}).is_identity(here)
        True
        >>> Project.renaming(here, {"a": "b", "b": "a"}).is_identity(here)
        False
        """
        (schema,) = inputs
        return len(self.columns) == len(schema) and all(
            column.attribute == attribute
            and column.copy_of is not None
            and schema.attribute(column.copy_of) == attribute
            for column, attribute in zip(self.columns, schema, strict=True)
        )

    def schema(self, *inputs: Schema) -> Schema:
        """The columns' attributes."""
        return Schema(tuple(column.attribute for column in self.columns))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """Those whose attributes are all there, in the output's names.

        Of an attribute that is computed with, a prefix stays one where f rises; constants stay constants where each
        value has one, or a stretch that they close. Of what is the first of several attributes, the meets of what is
        promised of each.
        """
        promised = [view.schemes(inputs[0]) for view in self._views]
        return meets(promised, self.schema()) if len(promised) > 1 else promised[0]

    def parameters(self, output: Schema) -> str:
        """The columns."""
        return ", ".join(f"{column.expression} AS `{column.attribute.name}`" for column in self.columns)

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        """What the columns that are needed are computed from."""
        trees = (expression(column.expression) for column in self.pruned(needed).columns)
        return [among((name for tree in trees for name in attributes_in(tree)), inputs[0])]

    def pruned(self, needed: AbstractSet[str]) -> Project:
        """The columns that are needed."""
        return Project(tuple(column for column in self.columns if column.attribute.name in needed))

    @property
    def exact_inputs(self) -> bool:
        """No: nothing is kept."""
        return False

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """The columns' expressions."""
        return [{column.attribute.name.lower(): column.expression for column in self.columns}]

    def renames(self, *inputs: Schema) -> Mapping[str, str] | None:
        """The columns, where all are copies that are of the input's types."""
        found: dict[str, str] = {}
        for column in self.columns:
            if column.copy_of is None:
                return None
            source = inputs[0].attribute(column.copy_of)
            if source.domain != column.attribute.domain:
                return None
            found[column.attribute.name] = source.name
        return found

    def passes_through(self, *inputs: Schema) -> AbstractSet[str]:
        """The copies."""
        return frozenset(column.attribute.name.lower() for column in self.columns if column.copy_of is not None)

    def passes_duplicates(self, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """As far as the columns that are needed do not tell equal values apart."""
        return takes_equals_alike((column.expression for column in self.pruned(needed).columns), inputs[0])

    def lineage(self, names: Collection[str], *inputs: Schema) -> Sequence[Sequence[str]] | None:
        """What the columns are copies of, or monotone in, or the first of."""
        folded = {name.lower() for name in names}
        seen = [c for view in self._views for c in view.columns if c.attribute.name.lower() in folded]
        return [tuple(dict.fromkeys(inputs[0].attribute(c.source).name for c in seen if c.source))]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """What must be said of the input that it holds in every view."""
        if p.is_all:
            return [whole(*inputs)]
        asked = (one for view in self._views for one in view.wanted(p, held, inputs[0]))
        return [tuple((0, one) for one in dict.fromkeys(asked))]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """What each view keeps; of several what each has said, and what all of them."""
        given, output, shown = inputs[0], self.schema(), self._views
        sets = {name: over for view in shown for name, over in view.state_sets(given).items()}
        if len(shown) > 1:
            sets |= meeting_sets(_streams(shown), output)
        elif shown[0].is_monotone:
            sets["sent"] = output
        return StateSchema(sets=sets)

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """The columns of the new tuples, and their position where it is known."""
        new = inputs[0].tuples
        if new is None:
            return None
        columns = [f"{column.expression} AS {quoted(column.attribute.name)}" for column in self.columns]
        if POSITION in new.frame.columns:
            columns.append(POSITION)
        computed = new.computed and all(column.copy_of for column in self.columns)
        return Tuples(new.frame.selectExpr(*columns), new.at_most, new.exact, computed, of_each=1)

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """Nothing: project does not block."""
        return None

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        """What newly holds for the attributes that are there in some form, in the output's terms."""
        output, shown = self.schema(), self._views
        said = [view.said(inputs[0].punctuations, output, state) for view in shown]
        if len(shown) > 1:
            return met(_streams(shown), self._with_what_never_comes(said, state.inputs[0]), state)
        if not shown[0].is_monotone or not said[0]:
            return said[0]
        sent = state.punctuations("sent")
        new = sent.absorb(said[0])
        sent.forget(new)
        return new

    @property
    def _views(self) -> tuple[View, ...]:
        return views(self.columns)

    def _with_what_never_comes(self, said: Sequence[Sequence[Punctuation]], given: Schema) -> list[list[Punctuation]]:
        """What each view says, and with it the values that another view may have, and it never."""
        output = self.schema()
        ever = [view.ever(output, given) for view in self._views]
        found = [list(ps) for ps in said]
        for i in range(len(output)):
            of_all = reduce(ValueSet.union, (each[i] for each in ever))
            for closed, each in zip(found, ever, strict=True):
                never = patterns(of_all.difference(each[i]))
                closed.extend(Punctuation.at(output, {i: pattern}) for pattern in never)
        return found

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """Punctuations only."""


def _streams(shown: Sequence[View]) -> list[str]:
    """What the sets are called of what each view says."""
    return [f"said-{view.number}" for view in shown]
