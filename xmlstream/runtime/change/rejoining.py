"""The state of inner joins that join the tuples of others in another way (`xmlstream.runtime.change.join_trees`).

The new joins run over one slice: what is kept of each input's tuples, and all that the input has closed. What they keep
then is their state. The results of that slice were written already. Of the punctuations, those that the old joins have
not sent yet go out with the next slice; those that the new ones would send later, but the old ones have sent, do not
come again.

What a part of a plan has sent up to now is not recorded, but it follows: it is what its operators would send over the
tuples that they keep, if their inputs closed all at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from xmlstream.dataclasses import replace
from xmlstream.operators.behaviour import advance
from xmlstream.operators.expressions.dialect import expression
from xmlstream.operators.joins.equal_attributes import rewritten
from xmlstream.operators.state.closed_set import ClosedSet, SourceClosedSet
from xmlstream.operators.state.expiring_set import recorded
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.plan.nodes import Node, awaited, declared_over
from xmlstream.punct_ns.pattern import Pattern
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import over_first, recast_pattern
from xmlstream.punct_ns.schema import Schema
from xmlstream.runtime.change.kept_inputs import KeptInputs
from xmlstream.runtime.change.plan_comparison import is_static

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine
    from xmlstream.operators.storage.store import Folder
    from xmlstream.runtime.change.join_trees import Rejoined
    from xmlstream.runtime.change.query_change import QueryChange


class Plan:
    """A plan beside the state that it has in a checkpoint.

    `states` are the records of its nodes, by name; `spare` is a folder for what is not kept.
    """

    def __init__(
        self,
        root: Node,
        called: Mapping[Node, str],
        states: Mapping[str, OperatorRecord],
        folder: Folder,
        spare: Folder,
    ) -> None:
        self._called, self._states, self._folder, self._spare = called, states, folder, spare
        self._awaited = awaited(root)

    def record(self, node: Node) -> OperatorRecord | None:
        """The state of a node; None if it has none."""
        return self._states.get(self._called[node])

    def store(self, node: Node, engine: Engine) -> SegmentStore:
        """What a node keeps, to be read."""
        return SegmentStore(engine, self._folder.below(f"state/{self._called[node]}"))

    def begun(self, node: Node, store: SegmentStore, change: QueryChange, *, logs: bool = False) -> OperatorState:
        """The state of an operator in the last slice, at its beginning or with nothing but the tuples that it keeps."""
        record = self.record(node) if logs else None
        if record is not None:
            empty = dict.fromkeys(record.sets, ())
            record = OperatorRecord(CHECKPOINT_FORMAT, empty, record.kept, record.notes)
        lasting = [i for i, below in enumerate(node.inputs) if is_static(below)]
        state = OperatorState(store, node.input_schemas, node.state_schema, record, lasting=lasting)
        last = change.last
        store.begin(last.slice)
        state.begin(last.time, last.slice)
        state.awaited = self._awaited[node]
        return state

    def declared(self, node: Node, engine: Engine) -> list[Punctuation]:
        """All that a source, a table or a rule has closed."""
        which, record = node.operator.declared_in, self.record(node)
        assert which is not None
        if record is None:
            return []
        schema, entries = declared_over(node), record.sets.get(which, ())
        held = ClosedSet(schema, entries)
        found = [*held.lasting, *held.passing]
        if which in node.state_schema.from_source:
            logs = {a: record.kept[log] for a, log in node.state_schema.runs(which).items() if log in record.kept}
            found += SourceClosedSet(schema, entries, self.store(node, engine), logs).on_runs()
        return over_first(found, node.schema)

    def spare(self, engine: Engine) -> SegmentStore:
        """A place for what is computed on the way."""
        return SegmentStore(engine, self._spare.below("rows of inputs"))

    def linked(self, node: Node, engine: Engine) -> SegmentStore:
        """A copy of what a node keeps, which may be changed."""
        name = self._called[node]
        spare = self._spare.below(name)
        for log in self._states[name].kept.values() if name in self._states else ():
            for segment in log.checksums:
                self._folder.below(f"state/{name}").link(segment, spare)
        return SegmentStore(engine, spare)


class SentSoFar:
    """What the nodes of a plan have sent up to now."""

    def __init__(self, plan: Plan, change: QueryChange, engine: Engine) -> None:
        self._plan, self._change, self._engine = plan, change, engine
        self.known: dict[Node, list[Punctuation]] = {}

    def by(self, node: Node) -> list[Punctuation]:
        """All punctuations of a node, or others that say the same."""
        if node not in self.known:
            self.known[node] = self._by(node)
        return self.known[node]

    def _by(self, node: Node) -> list[Punctuation]:
        if node.operator.declared_in is not None:
            return self._plan.declared(node, self._engine)
        inputs = [Slice(None, tuple(self.by(below))) for below in node.inputs]
        state = self._plan.begun(node, self._plan.linked(node, self._engine), self._change, logs=True)
        return list(advance(node.operator, inputs, state).punctuations)  # type: ignore[arg-type]


class Rejoining:
    """Computes the states of joins from the tuples that others keep."""

    def __init__(self, old: Plan, new: Plan, change: QueryChange, engine: Engine) -> None:
        self._old, self._new, self._change, self._engine = old, new, change, engine
        self._sent_before, self._sent = SentSoFar(old, change, engine), SentSoFar(new, change, engine)

    def states(self, of: Rejoined) -> tuple[dict[Node, OperatorRecord], list[Punctuation]]:
        """The states of the nodes of a region, and all that it has sent."""
        spare = self._old.spare(self._engine)
        spare.begin(self._change.last.slice)
        kept = KeptInputs(of, self._old, self._engine, spare)
        slices = {
            node: Slice(self._tuples(of, i, kept), tuple(self._sent.by(node))) for i, node in enumerate(of.new.inputs)
        }
        states, stores = dict[Node, OperatorState](), dict[Node, SegmentStore]()
        for node in of.new.inner:
            stores[node] = self._new.store(node, self._engine)
            states[node] = self._new.begun(node, stores[node], self._change)
            inputs = [slices[below] for below in node.inputs]
            slices[node] = advance(node.operator, inputs, states[node])  # type: ignore[arg-type]
        root = of.new.root
        before = self._sent.known[root] = list(_renamed(self._sent_before.by(of.old.root), of))
        now, earlier = (_closed(ps, root.schema) for ps in (slices[root].punctuations, before))
        self._has_due(root, states[root], _closed(before, root.schema).absorb(slices[root].punctuations))
        found = {node: state.record(whole=True) for node, state in states.items()}
        known = ClosedSet(root.schema, found[root].sets.get("sent", ()))
        held = [p for p in (*known.lasting, *known.passing) if earlier.set.covers(p)]
        sets = {**found[root].sets, "sent": list(map(recorded, (*held, *now.absorb(before))))}
        found[root] = replace(found[root], sets=sets)
        for node, store in stores.items():
            store.retain(found[node].checksums)
        return found, before

    @staticmethod
    def _has_due(join: Node, state: OperatorState, due: Sequence[Punctuation]) -> None:
        """Has a join send punctuations with the next slice, by letting them wait until then."""
        for i in range(len(join.inputs)):
            waiting = state.waiting(f"waiting-{i}")
            if own := [of_input for p in due if (of_input := _of_input(p, i, join)) is not None]:
                waiting.replace([*waiting, *own])

    @staticmethod
    def _tuples(of: Rejoined, i: int, kept: KeptInputs) -> Tuples | None:
        """What is kept of the tuples of an input, with the attributes that it has now."""
        tuples = kept.tuples(of.numbers[i])
        if tuples is None:
            return None
        rows = tuples.frame
        for condition in of.conditions[i]:
            rows = rows.where(condition)
        return tuples.some(rows.renamed({name: of.inputs[i][name.lower()] for name in of.new.inputs[i].schema.names}))


def _renamed(sent: Sequence[Punctuation], of: Rejoined) -> Iterator[Punctuation]:
    """Punctuations of the topmost join of the old region over the attributes of the new one."""
    new, old = of.new.root.schema, of.old.root.schema
    places: list[list[int]] = [[] for _ in old]
    for i, name in enumerate(new.names):
        if (before := of.output.get(name.lower())) is not None:
            places[old.index(before)].append(i)
    for p in sent:
        if all(places[i] for i in p.restricted):
            yield from rewritten(p, new, places)


def _closed(ps: Sequence[Punctuation], schema: Schema) -> ClosedSet:
    found = ClosedSet(schema)
    found.absorb(ps)
    return found


def _of_input(p: Punctuation, i: int, join: Node) -> Punctuation | None:
    """A punctuation of a join over the attributes of an input, or those that equal them; None if others matter."""
    schema = join.inputs[i].schema
    terms = join.operator.predicate_terms(*join.input_schemas)[i]
    patterns: dict[int, Pattern] = {}
    for at in p.restricted:
        if (text := terms.get(p.schema[at].name.lower())) is None:
            return None
        own = schema.index(expression(text).name)
        if own in patterns:
            return None
        patterns[own] = recast_pattern(p.patterns[at], p.schema[at].domain, schema[own].domain)
    return Punctuation.at(schema, patterns, p.lifespan)
