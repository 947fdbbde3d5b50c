"""project: some attributes, renamed, copied, or computed; duplicates stay.

Meaning:    π_E(R) = {| (e₁(t), …, eₙ(t)) | t ∈ R |}
Step:       π_E(new)
Pass:       –
Propagate:  those with a wildcard at every attribute removed; several that together cover the domains of the
            attributes removed count as one. For y = f(x), f monotone: {y | f⁻¹(y) ⊆ closed x}, in the place of x; where
            x is copied too, one for each. A wildcard at every attribute computed otherwise.
Keep:       punctuations only: those that may yet say more together with others.
Safe when:  always.
Source:     Tucker et al. 2003, Table 3 (projPs) and §5.3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from itertools import product

from operators.expressions.columns import Column, carried, choices, computed, images, written
from operators.expressions.constant_evaluation import evaluated
from operators.expressions.dialect import expression
from operators.expressions.equal_values import takes_equals_alike
from operators.expressions.references import attributes_in
from operators.expressions.written_years import may_end_later, of_digits
from operators.logical_properties import Terms, among
from operators.state.behaviour import Operator, Slice, Tuples
from operators.state.completion import closed_so_far, completed, completion_sets, forget_completed
from operators.state.operator_state import OperatorState
from operators.state.state_schema import StateSchema
from operators.wants import Held, Way
from punct_ns.image import image
from punct_ns.isolated import isolated
from punct_ns.pattern import patterns, values
from punct_ns.preimage import preimage
from punct_ns.punctuation import Punctuation
from punct_ns.recast import narrowed
from punct_ns.schema import Attribute, Schema
from punct_ns.scheme import Scheme
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
        value has one, or a stretch that they close.
        """
        schemes: dict[Scheme, None] = {}
        for choice in choices(self.columns):
            for given in inputs[0]:
                scheme = Scheme(tuple(computed(term, choice) for term in given.terms))
                names = {term.attribute.lower(): carried(term, choice, self.columns) for term in scheme.terms}
                going_on = {name: each for name, each in names.items() if each}
                for chosen in product(*going_on.values()):
                    if (renamed := scheme.renamed(dict(zip(going_on, chosen, strict=True)))) is not None:
                        schemes[renamed] = None
        return tuple(schemes)

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
        """What the columns are copies of, or monotone in."""
        folded = {name.lower() for name in names}
        sources = [column.source for column in self.columns if column.attribute.name.lower() in folded]
        return [tuple(dict.fromkeys(inputs[0].attribute(name).name for name in sources if name))]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """What it says of copies, and of monotone columns' preimages: of other columns nothing is said."""
        schema, own = inputs[0], dict[int, ValueSet]()
        for i in p.restricted:
            column = self.columns[i]
            if column.source is None:
                continue
            at = schema.index(column.source)
            of = schema[at].domain
            if column.monotone is None:
                found: ValueSet | None = values(narrowed(p.patterns[i], p.schema[i].domain, of), of)
            else:
                f = held.function(column.expression, schema[at], p.schema[i].domain, local=column.monotone.local)
                closed = values(p.patterns[i], p.schema[i].domain)
                found = f and preimage(closed, of, f, falling=column.monotone.falling)
            if found is not None and not found.is_empty:  # of what no value gives, nothing is said either
                own[at] = found.intersection(own.get(at, found))
        each = product(*(patterns(found) for found in own.values()))
        return [tuple((0, Punctuation.at(schema, dict(zip(own, chosen, strict=True)))) for chosen in each)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """What was said of the attributes that are there in some form; where f is monotone, of each f(x), too."""
        given = inputs[0]
        names = self._sources(given)
        sets = completion_sets(given, names)
        for choice in choices(self.columns):
            sets |= {name: over for _, _, name, over in images(names, choice, sets["closed-0"])}
        return StateSchema(sets={**sets, "sent": self.schema()} if self._is_monotone else sets)

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
        given = state.inputs[0]
        output = self.schema(given)
        names = self._sources(given)
        found = completed(inputs[0].punctuations, names, state)
        if not self._is_monotone:
            forget_completed(found, names, state)
            return [each for p in found for each in written(p, self.columns, {}, output)]
        if not found:
            return []
        out: list[Punctuation] = []
        for choice in choices(self.columns):
            monotone = {name: choice[name.lower()] for name in names if choice[name.lower()].monotone}
            for p in self._imaged(found, names, choice, state):
                out += written(p, self.columns, monotone, output)
        self._forget(found, names, state)
        sent = state.punctuations("sent")
        new = sent.absorb(out)
        sent.forget(new)
        return new

    def _forget(self, found: Sequence[Punctuation], names: Sequence[str], state: OperatorState) -> None:
        """Forgets what says nothing of what functions are computed from, several values of which may close one f(x)."""
        computed = {(c.source or "").lower() for c in self.columns if c.monotone is not None}
        places = {i for i, name in enumerate(names) if name.lower() in computed}
        gone = [p for p in isolated(found) if places.isdisjoint(p.restricted)]
        forget_completed(gone, names, state)
        for choice in choices(self.columns):
            for *_, name, over in images(names, choice, closed_so_far(state).set.schema):
                state.punctuations(name).forget(Punctuation(over, p.patterns) for p in gone)

    @property
    def _is_monotone(self) -> bool:
        return any(column.monotone for column in self.columns)

    def _sources(self, given: Schema) -> tuple[str, ...]:
        """The input's attributes that are there in some form."""
        return tuple(dict.fromkeys(given.attribute(c.source).name for c in self.columns if c.source))

    def _imaged(
        self, new: list[Punctuation], names: Sequence[str], choice: Mapping[str, Column], state: OperatorState
    ) -> list[Punctuation]:
        """The punctuations with the values of f in place of those of x, one computed attribute after the other."""
        said = closed_so_far(state)
        for i, column, name, schema in images(names, choice, said.set.schema):
            assert column.monotone is not None
            how, domain = column.monotone, column.attribute.domain
            spark, x = state.nothing().sparkSession, said.set.schema[i]
            f = evaluated(column.expression, x, domain, spark, local=how.local, clock=how.clock)
            seen = partial(image, place=i, schema=schema, f=f, falling=how.falling)
            found = said.following(new, seen)
            if may_end_later(how, x.domain, domain, spark):
                found = [*of_digits(found, i)]
            said = state.punctuations(name)
            new = said.absorb(found)
        return new

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """Punctuations only."""
