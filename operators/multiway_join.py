"""multiway_join: combinations of one tuple of each input that agree on the join attributes, all inputs at once.

Meaning:    R₁ ⋈ … ⋈ Rₙ = {| (t₁, …, tₙ) | tᵢ ∈ Rᵢ, tᵢ.A = tⱼ.B for each equality, θ(t₁, …, tₙ) |}; null keys never
            match.
Example:    MultiwayJoin(3, (((0, "a"), (1, "b")), ((1, "b"), (2, "c"))))
              over (a INT), (b INT), (c INT) gives (a INT, b INT, c INT)
              in   (1) (2) <1> |
              in   (1)         | <1>
              in   (1)         | (1) <1>
              out  (1, 1, 1)   | (1, 1, 1) <*, *, 1> <*, 1, *> <1, *, *>
Step:       ⋃ᵢ (kept₁ ∪ new₁) ⋈ … ⋈ newᵢ ⋈ … ⋈ keptₙ
Pass:       –
Keep:       {t ∈ keptᵢ ∪ newᵢ | in no order does t reach all other inputs}. t reaches input j once j's punctuations
            cover the join values of t and of the kept tuples that join t in the inputs reached before. If no kept tuple
            of j joins these, t needs to reach no further input. Tuples with a null key are never kept. Where θ bounds
            an attribute of j by a value of an input reached before, j's punctuations need to cover only what lies
            within the bounds.
Propagate:  the parts of an input's punctuations that no kept tuple of that input matches, also with the patterns of
            the join attributes moved to equal attributes of the other inputs.
Safe when:  the generalized punctuation graph is strongly connected; bounds from above are edges of it.
Source:     Li et al. 2006, §3.2, §4.2, Theorem 3; §5.2 (eager and lazy). Tucker et al. 2003, Table 3 (joinPs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.behaviour import Operator, Terms, among
from xmlstream.operators.closing_conditions import StateModel
from xmlstream.operators.expressions.dialect import attributes_in
from xmlstream.operators.frames.expression import Equal, Present, all_of
from xmlstream.operators.joins.chained_purge import (
    NO_CHAIN_BOUNDS,
    ChainBounds,
    ChainedPurge,
    FewValues,
    class_column,
    partial_projections,
    partners,
    shapes,
    ways_to,
)
from xmlstream.operators.joins.equal_attributes import equal_terms, rewritten, rewritten_schemes
from xmlstream.operators.joins.forgetting import due_sets, forget_classes
from xmlstream.operators.joins.punctuation_graph import (
    Chains,
    Equality,
    PunctuationGraph,
    Reached,
    Shape,
    promised_shapes_of,
)
from xmlstream.operators.joins.purge_strategy import EAGER, PurgeStrategy
from xmlstream.operators.required_punctuations import Held, Way, whole
from xmlstream.operators.state.blocked_set import emittable
from xmlstream.operators.state.completion import closed_so_far, completed, completion_sets
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, bag_union, theta_join
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.operators.state.tuple_log import TupleLog
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme


@dataclass(frozen=True, slots=True)
class MultiwayJoin(Operator):
    """The combinations of tuples of `inputs` inputs, numbered from 0, whose attributes all have different names.

    Each equality names two attributes, of equal types, by their inputs' numbers and their names; together the
    equalities must connect all inputs. `residual` is Spark SQL over all attributes, a further condition on
    combinations. `purge` is the purge strategy, which may change from run to run. `bounds` are the bounds that follow
    from the residual for the tuples of each input (`bounded`).
    """

    inputs: int
    equalities: tuple[Equality, ...]
    residual: str | None = None
    purge: PurgeStrategy = field(default=EAGER, compare=False)
    bounds: ChainBounds = field(default=NO_CHAIN_BOUNDS, compare=False)
    graph: PunctuationGraph = field(init=False, repr=False, compare=False)
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_TUPLES

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", PunctuationGraph(self.inputs, self.equalities, self.bounds.pairs))

    def bounded(self, *inputs: Schema) -> MultiwayJoin:
        """The join with the bounds that follow from its residual condition."""
        return replace(self, bounds=ChainBounds.between(self.residual, self.graph, inputs))

    @property
    def looked_up(self) -> Sequence[int]:
        return range(self.inputs)

    def schema(self, *inputs: Schema) -> Schema:
        for names in self.graph.classes:
            kinds = {inputs[i].attribute(name).domain.type for i, name in names.items()}
            if len(kinds) > 1:
                raise QueryError(
                    f"{', '.join(names.values())} are joined, but are of types {', '.join(sorted(kinds))}",
                    hint="cast them to one type before the join",
                )
        return Schema(tuple(attribute for schema in inputs for attribute in schema))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        reachability = promised_shapes_of(self.graph, inputs)
        found: list[Scheme] = []
        for i, schemes in enumerate(inputs):
            if reachability.reaches_all(i):
                found += rewritten_schemes(
                    schemes, {name.lower(): others for name, others in self.graph.equal_to(i).items()}
                )
        return tuple(dict.fromkeys(found))

    def parameters(self, output: Schema) -> str:
        return f"{' AND '.join(f'`{a}` = `{b}`' for (_, a), (_, b) in self.equalities)}; purge {self.purge}"

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        compared = attributes_in(self.residual) if self.residual else ()
        bounds = [name for pair in self.bounds.pairs for b in pair.bounds for name in (*b.needs, b.attribute)]
        used = {*needed, *compared, *bounds, *(name for pair in self.equalities for _, name in pair)}
        return [among(used, schema) for schema in inputs]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        return equal_terms(inputs, self.graph.classes)

    def residual_terms(self, *inputs: Schema) -> Sequence[Terms]:
        return equal_terms(inputs, self.graph.classes)

    def with_residual(self, residual: str | None) -> MultiwayJoin:
        return replace(self, residual=residual)

    def with_conditions(self, more: Sequence[Equality], residual: str | None, *inputs: Schema) -> MultiwayJoin:
        return replace(self, equalities=(*self.equalities, *more), residual=residual).bounded(*inputs)

    @property
    def equal(self) -> Sequence[Equality]:
        return self.equalities

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return ways_to(p, self.graph, held, inputs) or [whole(*inputs)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """The tuples of each input, its closed classes, the emitted and the blocked punctuations, those to forget soon.

        A chain of punctuations purges a tuple (Li et al. 2006, Theorem 3).
        """
        sets = {"sent": self.schema(*inputs)}
        classes = {i: self._classes(i, schema) for i, schema in enumerate(inputs)}
        for i, schema in enumerate(inputs):
            # The closed attributes of an input: its classes, and the attributes that others bound.
            complete = Schema((*classes[i], *map(schema.attribute, self.bounds.bounded(i))))
            sets |= {**completion_sets(schema, complete, i), f"parted-{i}": complete}
        sets |= self.bounds.punctuation_sets(classes)
        chains = Chains(self.graph)
        logs = {f"input-{i}": self._log(i, chains, inputs) for i in range(self.inputs)}
        waiting = {f"waiting-{i}": schema for i, schema in enumerate(inputs)} | due_sets(self.graph, inputs)
        return StateSchema(logs, sets, ["pending", "slices"], waiting)

    def _log(self, i: int, chains: Chains, inputs: Sequence[Schema]) -> LogSchema:
        return LogSchema(
            inputs[i],
            (StateModel(f"tuples of input {i + 1}", i, Reached(chains, i)),),
            names=tuple(self.graph.keys(i).values()),
            blocks=False,
            awaits=lambda row, held: [partners(self.graph, i, row, held, inputs)],
        )

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        scratch = state.scratch(_OfSlice)
        before = [self._kept(i, state).whole() for i in range(self.inputs)]
        scratch.new = {i: self._arrived(i, slice_, state) for i, slice_ in enumerate(inputs)}
        after = [bag_union((before[i], new)) for i, new in scratch.new.items()]
        found = self._with_new(tuple(range(self.inputs)), before, after, scratch.new)
        if found is None:
            return None
        frame = found.frame.select(*self.schema(*state.inputs).names)
        return replace(found, frame=frame.where(self.residual) if self.residual else frame)

    def _with_new(
        self,
        some: Sequence[int],
        before: Sequence[Tuples | None],
        after: Sequence[Tuples | None],
        new: Mapping[int, Tuples | None],
    ) -> Tuples | None:
        """The combinations of tuples of some inputs that have a new tuple, each once.

        Δ(A ⋈ B) = (ΔA ⋈ B) ∪ (A ⋈ ΔB), with the new tuples of A in B's term alone: of two halves, what is new in one is
        joined with the inputs of the other, one after the other. So n inputs take n log n joins along a chain, and each
        begins with new tuples, which are few.
        """
        if len(some) == 1:
            return new[some[0]]
        one, other = self.graph.parted(some)
        terms = [
            self._joined(self._with_new(one, before, after, new), one, other, after),
            self._joined(self._with_new(other, before, after, new), other, one, before),
        ]
        names = list(dict.fromkeys(name for term in terms if term is not None for name in term.frame.columns))
        return bag_union(term and replace(term, frame=term.frame.select(*names)) for term in terms)

    def _arrived(self, i: int, slice_: Slice, state: OperatorState) -> Tuples | None:
        """The new tuples of an input that have neither a null key nor a null bound; they are kept."""
        if slice_.tuples is None:
            return None
        needed = dict.fromkeys((*self.graph.keys(i).values(), *self.bounds.needs(i)))
        present = all_of(*map(Present, needed))
        frame = slice_.tuples.frame.select(*state.inputs[i].names).where(present)
        new = self._kept(i, state).append(slice_.tuples.some(frame))
        return new if new.at_most else None

    def _joined(
        self, whole: Tuples | None, there: Sequence[int], others: Sequence[int], given: Sequence[Tuples | None]
    ) -> Tuples | None:
        """Combinations of tuples of some inputs, joined with the tuples given for others along the join graph."""
        known = {key: name for i in there for key, name in self.graph.keys(i).items()}
        for i in self.graph.order(*there, among=others):
            part = given[i]
            if whole is None or part is None:
                return None
            names = self.graph.keys(i)
            same = [Equal(known[key], names[key]) for key in names if key in known]
            whole = theta_join(whole, part, all_of(*same))
            known = {**names, **known}
        return whole

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """Purges by chains from each input for which something is new since the last purge."""
        scratch = state.scratch(_OfSlice)
        scratch.complete = [self._completed(i, slice_, state) for i, slice_ in enumerate(inputs)]
        pending = self._pending(state)
        # Stored punctuations also purge later tuples, which would otherwise be kept for ever; each is forgotten once
        # no such tuple can come (Li et al. 2006, §5.1).
        closed = {i: closed_so_far(state, i).set for i in range(self.inputs)}
        if not self._is_due(closed, state):
            return
        classes = {i: self._classes(i, schema) for i, schema in enumerate(state.inputs)}
        terms = {i: self.bounds.terms(i, own) for i, own in classes.items()}
        answers = {i: [*self.bounds.answers(i, self.graph, state), *self._parted(i, state)] for i in closed}
        seen = {i: self._shapes(i, of_input, state) for i, of_input in closed.items()}
        few = FewValues(self.graph, self.bounds, answers, terms)
        for i in sorted(pending):
            steps = self.graph.chain(i, seen)
            if steps and not (kept := self._kept(i, state)).is_empty:
                logs = {j: self._kept(j, state).whole() for j in range(self.inputs)}
                there = {j: tuples for j, tuples in logs.items() if tuples is not None}
                # Earlier tuples are tested again only if another input has new punctuations.
                suspects = scratch.new[i] if pending[i] == "new" else there[i]
                if suspects is not None:
                    chain = ChainedPurge(self.graph, self.bounds, i, steps, there, answers, terms, few)
                    kept.remove(chain.purged(suspects), chain.determined_by)
                    few.forget(i)
        state.notes["pending"] = {}

    def _shapes(self, i: int, closed: PunctuationSet, state: OperatorState) -> frozenset[Shape]:
        """The shapes of an input's punctuations: over its classes, and over the links of the bounds on it."""
        numbers = list(self.graph.keys(i))
        if not self.bounds.bounded(i):
            return shapes(closed, numbers) | shapes(state.punctuations(f"parted-{i}").set, numbers)
        numbers += (len(self.graph.classes) + number for number in self.bounds.columns_on(i).values())
        closed_terms = state.punctuations(f"bounded-{i}").set
        never = PunctuationSet(closed_terms.schema, self.bounds.never(i, self.graph, state))
        return shapes(closed_terms, numbers) | shapes(never, numbers)

    def _parted(self, i: int, state: OperatorState) -> list[Punctuation]:
        """An input's punctuations on some classes, from several together; none if the input is bounded."""
        return [] if self.bounds.bounded(i) else list(state.punctuations(f"parted-{i}").set)

    def _completed(self, i: int, slice_: Slice, state: OperatorState) -> list[Punctuation]:
        """The new punctuations over the classes of an input and its bounded attributes."""
        names = [*self.graph.keys(i).values(), *self.bounds.bounded(i)]
        new = completed(slice_.punctuations, names, state, i)
        held = closed_so_far(state, i)
        # Kept in a set of their own: the punctuations that they follow from cover the same, but none of them alone.
        parted = state.punctuations(f"parted-{i}")
        new = [*new, *parted.absorb(held.for_its_time(partial_projections(held.set, new)))]
        self.bounds.add_translated(i, new, self.graph, state)
        return new

    def _pending(self, state: OperatorState) -> dict[int, str]:
        """The inputs to purge: `all` their tuples if another input has new punctuations, else only the `new`."""
        scratch = state.scratch(_OfSlice)
        # Tuples that earlier slices left for a later purge came in several slices.
        pending = {int(i): "all" for i in state.notes.get("pending", {})}
        for i in range(self.inputs):
            if any(newly for j, newly in enumerate(scratch.complete) if j != i):
                pending[i] = "all"
            elif scratch.new[i] is not None:
                pending.setdefault(i, "new")
        state.notes["pending"] = {str(i): why for i, why in pending.items()}
        return pending

    def _is_due(self, closed: dict[int, PunctuationSet], state: OperatorState) -> bool:
        if self.purge.is_eager:
            return True
        state.notes["slices"] = (state.notes.get("slices", 0) + 1) % self.purge.every
        is_quiet = all(new is None for new in state.scratch(_OfSlice).new.values())
        return is_quiet or state.notes["slices"] == 0 or all(of_input.is_all for of_input in closed.values())

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        output = self.schema(*state.inputs)
        found: list[Punctuation] = []
        for i, slice_ in enumerate(inputs):
            names, kept = list(self.graph.keys(i).values()), [self._kept(i, state)]
            free = emittable(f"waiting-{i}", slice_.punctuations, kept, state, state.inputs[i], names)
            places = self._places(i, state.inputs[i], output)
            found += (written for p in free for written in rewritten(p, output, places))
        out = state.punctuations("sent").absorb(found)
        logs = [self._kept(i, state) for i in range(self.inputs)]
        forget_classes(self.graph, self.bounds, state.scratch(_OfSlice).complete, out, logs, state, output)
        return out

    def _places(self, i: int, schema: Schema, output: Schema) -> list[list[int]]:
        """The places in the output of each attribute of an input, and of the attributes equal to it."""
        others = {schema.index(name): equal for name, equal in self.graph.equal_to(i).items()}
        return [
            [output.index(attribute.name), *(output.index(other) for other in others.get(at, ()))]
            for at, attribute in enumerate(schema)
        ]

    def _kept(self, i: int, state: OperatorState) -> TupleLog:
        return state.log(f"input-{i}")

    def _classes(self, i: int, schema: Schema) -> Schema:
        """The schema of an input's classes. They are never null: a tuple with null never joins."""
        attributes = ((class_column(key), schema.attribute(name)) for key, name in self.graph.keys(i).items())
        return Schema(tuple(Attribute(name, replace(own.domain, nullable=False)) for name, own in attributes))


@dataclass(slots=True)
class _OfSlice:
    """Results of the behaviours for one slice.

    Attributes:
        new: The new tuples of inputs, by their numbers; they are kept.
        complete: For each input, the new punctuations over its classes.
    """

    new: dict[int, Tuples | None] = field(default_factory=dict)
    complete: list[list[Punctuation]] = field(default_factory=list)
