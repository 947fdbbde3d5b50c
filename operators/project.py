"""project: some attributes, renamed, copied or computed; duplicates stay.

Meaning:    π_E(R) = {| (e₁(t), …, eₙ(t)) | t ∈ R |}
Example:    Project((Column(sid, "sid", "sid"), Column.computed(hour, "min DIV 60", schema)))
              over (sid STRING, min INT, v INT) gives (sid STRING, hour BIGINT)
              in   (A, 10, 7) (B, 20, 7) | (A, 70, 7) <*, (,70], *> <B, *, *> <*, *, 7>
              out  (A, 0) (B, 0)         | (A, 1) <*, (,0]> <B, *>
Step:       π_E(new)
Pass:       –
Keep:       no tuples; punctuations that may close more together with later ones.
Propagate:  the punctuations with a wildcard at every removed attribute; several that together cover the domains of the
            removed attributes count as one. A copy has the pattern of its original. For y = f(x) with a monotone f,
            {y | f⁻¹(y) ⊆ closed x} takes the place of x's pattern; if x is also copied, each of the two goes out in a
            punctuation of its own. For coalesce(x, y): the values that x and, where x is null, y have closed. Any other
            computed attribute has a wildcard.
Safe when:  always; no tuples are kept.
Source:     Tucker et al. 2003, Table 3 (projPs, setCombine) and §5.3.

A *view* of a projection is the set of tuples for which each coalesced column is one and the same attribute:
`coalesce(x, y)` is x for the tuples whose x is not null, and y for the others. Within a view, every column is a copy or
is computed from one attribute. Patterns of x close nothing in the second view, and patterns of y nothing in the first.
So a punctuation holds for all tuples if it holds in every view: the output's punctuations are the meets of the views'
punctuations, as in a merge, π_z(R) = π_x(σ_x not null(R)) ⊎ π_y(σ_x null(R)). A projection without coalesced columns
has one view, itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial, reduce
from itertools import product
from typing import ClassVar

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Operator, Selection, Terms, among
from xmlstream.operators.expressions.constant_evaluation import evaluated, may_end_later, of_digits
from xmlstream.operators.expressions.dialect import attributes_in, expression
from xmlstream.operators.expressions.operations.python_functions import PythonFunction, called_in
from xmlstream.operators.expressions.output_columns import CHOICES, Column, carried, choices, computed, images, written
from xmlstream.operators.expressions.throwable import takes_equals_alike
from xmlstream.operators.frames.expression import Copy, Expression, as_columns
from xmlstream.operators.frames.matching import matching
from xmlstream.operators.required_punctuations import Held, Way, whole
from xmlstream.operators.state.closed_set import Derived
from xmlstream.operators.state.completion import (
    closed_so_far,
    common_sets,
    common_to_inputs,
    completed,
    completion_sets,
    forget_completed,
)
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.image import image, image_of_values, preimage
from xmlstream.punct_ns.pattern import EMPTY, NOT_NULL, NULL, Pattern, canonical, pattern_of, patterns, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet, remainder
from xmlstream.punct_ns.recast import required_pattern
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, meets
from xmlstream.punct_ns.slices import POSITION, quoted
from xmlstream.punct_ns.value_set import ValueSet


@dataclass(frozen=True, slots=True)
class View:
    """One of the views of a projection of one input.

    Attributes:
        number: Its number.
        columns: All columns, with their expressions in this view.
        null: The input's attributes that are null in this view, by names in lower case.
        present: Those that are not null.
    """

    number: int
    columns: tuple[Column, ...]
    null: frozenset[str] = frozenset()
    present: frozenset[str] = frozenset()

    @property
    def is_monotone(self) -> bool:
        """Whether some column is a monotone function, whose attribute's punctuations close its values."""
        return any(column.monotone for column in self.columns)

    def sources(self, given: Schema) -> tuple[str, ...]:
        """The input's attributes that some column is copied or computed from."""
        return tuple(dict.fromkeys(given.attribute(c.source).name for c in self.columns if c.source))

    def outside(self, given: Schema) -> list[Punctuation]:
        """Punctuations on the tuples of the input that are in other views."""
        patterns_: list[tuple[str, Pattern]] = [(name, NULL) for name in self.present]
        patterns_ += ((name, NOT_NULL) for name in self.null)
        found = ((i, canonical(pattern, given[i].domain)) for name, pattern in patterns_ for i in [given.index(name)])
        return [Punctuation.at(given, {i: pattern}) for i, pattern in sorted(found) if pattern != EMPTY]

    def ever(self, output: Schema, given: Schema) -> list[ValueSet]:
        """For each column, the values that the view's tuples may have: for a copy, those of the original."""
        found = []
        for column, domain in ((c, a.domain) for c, a in zip(self.columns, output, strict=True)):
            low, high = domain.bottom, domain.top
            if column.source is not None and column.monotone is None:
                own = given.attribute(column.source).domain
                low = low if own.low is None else domain.cut(domain.normal(own.low), after=False)
                high = high if own.high is None else domain.cut(domain.normal(own.high), after=True)
            found.append(ValueSet.of_intervals(domain, [(low, high)], null=True))
        return found

    def schemes(self, given: Sequence[Scheme]) -> tuple[Scheme, ...]:
        """The schemes of the view's tuples, in the output's names."""
        schemes: dict[Scheme, None] = {}
        inside = [scheme for each in given if (scheme := self._inside(each)) is not None]
        for choice in choices(self.columns):
            for promise in inside:
                scheme = Scheme(tuple(computed(term, choice) for term in promise.terms))
                names = {term.attribute.lower(): carried(term, choice, self.columns) for term in promise.terms}
                going_on = {name: each for name, each in names.items() if each}
                for chosen in product(*going_on.values()):
                    if (renamed := scheme.renamed(dict(zip(going_on, chosen, strict=True)))) is not None:
                        schemes[renamed] = None
        return tuple(schemes)

    def _inside(self, scheme: Scheme) -> Scheme | None:
        """A scheme without its terms on other views; None if it covers no tuple of this view."""
        terms = [(term.attribute.lower(), term) for term in scheme.terms]
        if any(name in self.null and not term.null for name, term in terms):
            return None
        left = (replace(term, null=term.null or name in self.present) for name, term in terms if name not in self.null)
        return Scheme(tuple(left))

    def wanted(self, p: Punctuation, held: Held, schema: Schema) -> list[Punctuation]:
        """The input punctuations from which an output punctuation follows in this view.

        They restrict the originals of copies, and the arguments of monotone columns by the preimage; other columns add
        nothing. None are needed if the view has none of the values.
        """
        own, ever = dict[int, ValueSet](), self.ever(p.schema, schema)
        for i in p.restricted:
            column = self.columns[i]
            if column.source is None:
                continue
            at = schema.index(column.source)
            of = schema[at].domain
            if column.monotone is None:
                closed = values(p.patterns[i], p.schema[i].domain)
                if (self.null or self.present) and (closed := closed.intersection(ever[i])).is_empty:
                    return []
                pattern = required_pattern(pattern_of(closed) or p.patterns[i], p.schema[i].domain, of)
                found: ValueSet | None = None if pattern is None else values(pattern, of)
            else:
                how, y = column.monotone, p.schema[i].domain
                f = None if how.declared else held.function(column.expression, schema[at], y, local=how.local)
                found = f and preimage(values(p.patterns[i], y), of, f, falling=how.falling)
            if found is not None and not found.is_empty:  # no value has these results, so no punctuation is on them
                # All copies of an attribute have its pattern; of two different patterns, one suffices.
                both = found.intersection(before := own.get(at, found))
                own[at] = both if both == found else before
        each = product(*(patterns(found) for found in own.values()))
        wants = [Punctuation.at(schema, dict(zip(own, chosen, strict=True))) for chosen in each]
        if not (outside := self.outside(schema)):
            return wants
        return [left for one in wants for left in remainder(one, PunctuationSet(schema, outside))]

    def state_sets(self, given: Schema) -> dict[str, Schema]:
        """The closed sets of the attributes that columns use, and of each f(x) with a monotone f."""
        names = self.sources(given)
        sets = completion_sets(given, names, self.number)
        for choice in choices(self.columns):
            imaged = images(names, choice, sets[f"closed-{self.number}"])
            sets |= {self._set_of(name): over for _, _, name, over in imaged}
        return sets

    def propagated(self, new: Sequence[Punctuation], output: Schema, state: OperatorState) -> list[Punctuation]:
        """The new punctuations over the output that new punctuations of the input give in this view."""
        given = state.inputs[0]
        names, outside = self.sources(given), self.outside(given)
        found = completed([*outside, *new], names, state, self.number)
        if not found:
            return []
        out: list[Punctuation] = []
        steps: dict[str, list[Punctuation]] = {}
        for choice in choices(self.columns):
            monotone = {name: choice[name.lower()] for name in names if choice[name.lower()].monotone}
            for p in self._imaged(found, names, choice, state, steps):
                out += written(p, self.columns, monotone, output)
        self._forget(found, names, state)
        if outside:
            # The punctuations on other views may be forgotten now, but are needed in every slice.
            completed(outside, names, state, self.number)
        return out

    def _forget(self, found: Sequence[Punctuation], names: Sequence[str], state: OperatorState) -> None:
        """Forgets punctuations that are not on arguments of functions: several of these may close one f(x) together."""
        computed = {(c.source or "").lower() for c in self.columns if c.monotone is not None}
        places = {i for i, name in enumerate(names) if name.lower() in computed}
        gone = [p for p in found if places.isdisjoint(p.restricted)]
        forget_completed(gone, names, state, self.number)
        for choice in choices(self.columns):
            for *_, name, over in images(names, choice, closed_so_far(state, self.number).set.schema):
                state.punctuations(self._set_of(name)).forget(Punctuation(over, p.patterns) for p in gone)

    def _imaged(
        self,
        new: list[Punctuation],
        names: Sequence[str],
        choice: Mapping[str, Column],
        state: OperatorState,
        steps: dict[str, list[Punctuation]],
    ) -> list[Punctuation]:
        """The punctuations with the values of f in place of those of x, for one computed attribute after another.

        `steps` has what each step gave, by the name of its set: choices that begin alike share their first steps.
        """
        closed = closed_so_far(state, self.number)
        for i, column, name, schema in images(names, choice, closed.set.schema):
            assert column.monotone is not None
            before, closed = closed, state.punctuations(self._set_of(name))
            if name in steps:
                new = steps[name]
                continue
            how, domain = column.monotone, column.attribute.domain
            engine, x = state.engine, before.set.schema[i]
            f = evaluated(column.expression, x, domain, engine, local=how.local, clock=how.clock, walls=how.walls)
            seen: Derived = partial(image, place=i, schema=schema, f=f, falling=how.falling)
            if how.unordered:
                seen = partial(image_of_values, place=i, schema=schema, f=f)
            imaged = before.following(new, seen)
            if may_end_later(how, x.domain, domain, engine):
                imaged = [*of_digits(imaged, i)]
            new = steps[name] = closed.absorb(imaged)
        return new

    def _set_of(self, name: str) -> str:
        """The state's name for the set of images with this name."""
        return f"{name} of {self.number}" if self.null or self.present else name


def views(columns: Sequence[Column]) -> tuple[View, ...]:
    """The views of a projection; if they were too many, the last coalesced columns stay undivided."""
    divided: dict[tuple[str, ...], None] = {}
    count = 1
    for names in dict.fromkeys(_names(column) for column in columns if column.either):
        if count * len(names) <= CHOICES:
            divided[names] = None
            count *= len(names)
    return tuple(_views(columns, list(divided)))


def _views(columns: Sequence[Column], divided: Sequence[tuple[str, ...]]) -> Iterator[View]:
    for number, places in enumerate(product(*(range(len(names)) for names in divided))):
        chosen = dict(zip(divided, places, strict=True))
        null = frozenset(name for names, place in chosen.items() for name in names[:place])
        present = frozenset(names[place] for names, place in chosen.items() if place + 1 < len(names))
        if null.isdisjoint(present):
            seen = (c.either[chosen[_names(c)]] if _names(c) in chosen else c for c in columns)
            yield View(number, tuple(seen), null, present)


def _names(column: Column) -> tuple[str, ...]:
    """The attributes, in lower case, of a coalesced column, in order."""
    return tuple((each.source or "").lower() for each in column.either)


@dataclass(frozen=True, slots=True)
class Project(Operator):
    """The columns, computed from each tuple of the input."""

    columns: tuple[Column, ...]
    exact_inputs: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = True
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_TUPLES

    def schema(self, *inputs: Schema) -> Schema:
        return Schema(tuple(column.attribute for column in self.columns))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The schemes whose attributes all appear in the output, in its names.

        For a monotone f, a prefix stays a prefix if f rises; constants stay constants if f is injective, or if they
        close stretches. For a coalesced column, the meets of the schemes of all views.
        """
        promised = [view.schemes(inputs[0]) for view in self._views]
        return meets(promised, self.schema()) if len(promised) > 1 else promised[0]

    def parameters(self, output: Schema) -> str:
        return ", ".join(f"{column.expression} AS `{column.attribute.name}`" for column in self.columns)

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        trees = (expression(column.expression) for column in self.pruned(needed).columns)
        return [among((name for tree in trees for name in attributes_in(tree)), inputs[0])]

    def pruned(self, needed: AbstractSet[str]) -> Project:
        return Project(tuple(column for column in self.columns if column.attribute.name in needed))

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        return [{column.attribute.name.lower(): column.expression for column in self.columns}]

    def passes_through(self, *inputs: Schema) -> AbstractSet[str]:
        return frozenset(column.attribute.name.lower() for column in self.columns if column.copy_of is not None)

    def passes_duplicates(self, needed: AbstractSet[str], *inputs: Schema) -> bool:
        return takes_equals_alike((column.expression for column in self.pruned(needed).columns), inputs[0])

    def lineage(self, names: Collection[str], *inputs: Schema) -> Sequence[Sequence[str]] | None:
        folded = {name.lower() for name in names}
        seen = [c for view in self._views for c in view.columns if c.attribute.name.lower() in folded]
        return [tuple(dict.fromkeys(inputs[0].attribute(c.source).name for c in seen if c.source))]

    def renames(self, *inputs: Schema) -> Mapping[str, str] | None:
        """The names of the columns, if all are copies with the input's types."""
        found: dict[str, str] = {}
        for column in self.columns:
            if column.copy_of is None:
                return None
            source = inputs[0].attribute(column.copy_of)
            if source.domain != column.attribute.domain:
                return None
            found[column.attribute.name] = source.name
        return found

    def selection(self, *inputs: Schema) -> Selection:
        return Selection(columns={column.attribute.name.lower(): column.expression for column in self.columns})

    def origins(self, name: str, *inputs: Schema) -> Sequence[tuple[int, str]]:
        """Those that its column copies or is computed from; of a coalesced one all."""
        column = self.columns[self.schema().index(name)]
        return [(0, each.source) for each in column.either or (column,) if each.source]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        if p.is_all:
            return [whole(*inputs)]
        wants = (one for view in self._views for one in view.wanted(p, held, inputs[0]))
        return [tuple((0, one) for one in dict.fromkeys(wants))]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        given, output, shown = inputs[0], self.schema(), self._views
        sets = {name: over for view in shown for name, over in view.state_sets(given).items()}
        if len(shown) > 1:
            sets |= common_sets(_streams(shown), output)
        elif shown[0].is_monotone:
            sets["sent"] = output
        if self._declared:
            sets["declared"] = output
        return StateSchema(sets=sets)

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        if new is None:
            return None
        columns = as_columns({c.attribute.name: _handed(c) for c in self.columns})
        position = [POSITION] if POSITION in new.frame.columns else []
        computed = new.computed and all(column.copy_of for column in self.columns)
        made = Tuples(new.frame.select(*columns, *position), new.at_most, new.exact, computed, of_each=1)
        return self._as_declared(made, state) if self._declared else made

    def _as_declared(self, made: Tuples, state: OperatorState) -> Tuples:
        """The tuples, which no punctuation matches that has gone out because of what a user has declared.

        Raises:
            QueryError: One of them does match.
        """
        sent = list(state.punctuations("declared").set)
        if not sent:
            return made
        made = state.computed(made)
        for row in matching(made.frame, sent).limit(1).to_arrow().to_pylist():
            values = {name: row[name] for name in self.schema().names}
            closing = next((p for p in sent if p.matches(tuple(values.values()))), sent[0])
            of = (f for i in closing.restricted for f in self._declared.get(i, ()))
            function = next(f for f in of if f.declared)
            what = f"the function {function.name} is declared {function.declared}, and is not"
            where = f"the tuple {values} came after the punctuation {closing}"
            raise QueryError(what, where=where, hint="leave the declaration out, or mend the function")
        return made

    @property
    def _declared(self) -> Mapping[int, Sequence[PythonFunction]]:
        """The functions that are declared monotone or injective, by the places of the columns that they decide."""
        found = ((i, of) for i, column in enumerate(self.columns) for of in (column, *column.either))
        return {i: called_in(of.expression) for i, of in found if of.monotone is not None and of.monotone.declared}

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        new = self._propagated(inputs, state)
        if self._declared:
            state.punctuations("declared").absorb(p for p in new if not self._declared.keys().isdisjoint(p.restricted))
        return new

    def _propagated(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        output, shown = self.schema(), self._views
        closed = [view.propagated(inputs[0].punctuations, output, state) for view in shown]
        if len(shown) > 1:
            return common_to_inputs(_streams(shown), self._with_impossible(closed, state.inputs[0]), state)
        if not shown[0].is_monotone or not closed[0]:
            return closed[0]
        sent = state.punctuations("sent")
        new = sent.absorb(closed[0])
        sent.forget(new)
        return new

    @property
    def _views(self) -> tuple[View, ...]:
        return views(self.columns)

    def _with_impossible(self, new: Sequence[Sequence[Punctuation]], given: Schema) -> list[list[Punctuation]]:
        """For each view, its new punctuations, and those on values that other views may have and it never has."""
        output = self.schema()
        ever = [view.ever(output, given) for view in self._views]
        closed = [list(ps) for ps in new]
        for i in range(len(output)):
            of_all = reduce(ValueSet.union, (each[i] for each in ever))
            for of_view, each in zip(closed, ever, strict=True):
                never = patterns(of_all.difference(each[i]))
                of_view.extend(Punctuation.at(output, {i: pattern}) for pattern in never)
        return closed


def _streams(shown: Sequence[View]) -> list[str]:
    """The names of the sets with each view's punctuations."""
    return [f"view-{view.number}" for view in shown]


def _handed(column: Column) -> Expression:
    """The column of the input as it is, if no wider type is made of it; otherwise the column's expression."""
    name = column.copy_of
    return Copy(name) if name is not None and column.expression == quoted(name) else column.expression
