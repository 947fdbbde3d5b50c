"""Comparison of a query with the one that a checkpoint belongs to: which state an operator may take over, or why not.

Both plans are compared from the sources up, as they run. The comparison follows *streams*. The stream of a node is
written in terms of the nearest node below that keeps or combines tuples (its base): attributes as expressions, and the
conditions that tuples satisfy. Selects and projections may so differ, and be placed differently by the optimizer. An
operator takes the state of an operator of the old plan if both mean the same, over inputs with the same streams: then
its state is the one that it would have now, had the new query read the input from the beginning. Its inputs may

- have other names for attributes, or, where rows are kept as a bag, lack some: what is kept is renamed and narrowed;
- satisfy further conditions, if the operator lets these pass (`predicate_terms`): kept rows that do not are dropped.

Inner joins may join the same inputs in another way: then no join goes on, but the tuples of their inputs do
(`xmlstream.runtime.change.join_trees`).

What the old query has closed stays closed, even where the new one would have waited longer: results were written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Selection
from xmlstream.operators.expressions.dialect import attributes_in, brief, conjuncts, expression, in_terms, render
from xmlstream.operators.expressions.predicate_domain import is_implied
from xmlstream.operators.taking_over import Differs, Names, TakenOver, TakesOver
from xmlstream.plan.nodes import Node, Results, Scan, Static, StreamScan, names, topological
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import STREAM, quoted
from xmlstream.runtime.change.join_trees import JoinTree, Rejoined, join_trees, rejoined
from xmlstream.runtime.checkpoint.same_query import as_given, canonical_path
from xmlstream.sources.xml.options.source import SourceOptions


@dataclass(frozen=True, slots=True)
class EarlierStream:
    """The tuples of a node up to now, as the old plan has computed them.

    Attributes:
        base: The node of the old plan.
        columns: The known attributes, in lower case, as Spark SQL over the output of the base.
        conditions: What the tuples satisfy, as Spark SQL over the output of the base.
    """

    base: Node
    columns: Names
    conditions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Taken:
    """An operator or a source of the new plan that takes over the state of one of the old plan.

    Attributes:
        old: The node of the old plan.
        inputs: For each input, the old names of its attributes, as far as they were there.
        output: The same for the output.
        conditions: For each input, further conditions that kept rows must satisfy, over the old input.
        above: These conditions over the output of the old operator.
        state: What the operator itself says of the state.
    """

    old: Node
    inputs: tuple[Names, ...]
    output: Names
    conditions: tuple[frozenset[str], ...] = ()
    above: frozenset[str] = frozenset()
    state: TakenOver = TakenOver()

    @property
    def names(self) -> Names:
        """The old names of the attributes of the output and of all inputs."""
        return {**self.output, **{new: old for each in self.inputs for new, old in each.items()}}


class Comparison:
    """The new plan beside the old one.

    Attributes:
        taken: The nodes of the new plan that take over state.
        rejoined: The regions of inner joins that join the tuples of an old one in another way, by the topmost join.
        why: For each other node that keeps tuples, or reads input, the reason.
        again: The nodes among them that begin without state: static tables of another version, what is computed from
            them alone, and what looks tuples of a stream up in them.
        stuck: Why an operator cannot begin so; empty if each can.
        streams: The streams of the new plan's nodes that were there before.
        before: The streams of the old plan's nodes.
    """

    def __init__(self, old: Node, new: Node, *, moved: bool = False) -> None:
        self.old, self.new, self._moved = old, new, moved
        self.taken: dict[Node, Taken] = {}
        self.why: dict[Node, str] = {}
        self.again, self.stuck = set[Node](), ""
        self.streams: dict[Node, EarlierStream] = {}
        self.before: dict[Node, EarlierStream] = {}
        self.rejoined: dict[Node, Rejoined] = {}
        self._called = names(old)
        self._old_trees, self._trees = join_trees(old), {tree.root: tree for tree in join_trees(new)}
        for node in topological(old):
            if not isinstance(node.operator, Results):
                above = self._above(node, [self.before.get(below) for below in node.inputs])
                own_columns = {name.lower(): same for name, same in _equals(node).items()}
                self.before[node] = above or EarlierStream(node, own_columns)
        for node in topological(new):
            if not isinstance(node.operator, Results):
                self._compare(node)

    def _above(self, node: Node, inputs: Sequence[EarlierStream | None]) -> EarlierStream | None:
        """The stream of a node that emits tuples of its input; None for any other."""
        selection = node.operator.selection(*node.input_schemas)
        if selection is None or (below := inputs[0]) is None:
            return None
        parts = [in_terms_of(part, below.columns) for part in _conditions(selection)]
        if None in parts:
            return None
        conditions = below.conditions.union(part for part in parts if part)
        if selection.columns is None:
            return replace(below, conditions=conditions)
        made = {name: in_terms_of(expression(text), below.columns) for name, text in selection.columns.items()}
        columns = {name: text for name, text in made.items() if text is not None}
        return replace(below, columns=columns, conditions=conditions)

    def _compare(self, node: Node) -> None:
        self._compare_streams(node)
        if self._begins_again(node):
            self.again.add(node)

    def _begins_again(self, node: Node) -> bool:
        """Whether a node that was there before begins without state, since static tables below it are read again."""
        if isinstance(node.operator, Static):
            before = self.taken[node].old.operator if node in self.taken else None
            return isinstance(before, Static) and before.version != node.operator.version
        return any(below in self.again and is_static(below) for below in node.inputs)

    def _compare_streams(self, node: Node) -> None:
        inputs = [self.streams.get(below) for below in node.inputs]
        if node.operator.selection(*node.input_schemas) is not None:
            if (stream := self._above(node, inputs)) is not None:
                self.streams[node] = stream
                self._find(node, [old for old in self.before if self._is_alike(node, old, stream)])
            elif inputs[0] is not None:
                self.why[node] = "it uses attributes that the query before did not read"
            return
        self._find(node, [old for old in self.before if type(old.operator) is type(node.operator)])
        if node in self._trees and node not in self.taken:
            self._rejoin(self._trees[node])
        if (taken := self.taken.get(node)) is not None:
            equal = _equals(taken.old)
            columns = {new: equal[old] for new, old in taken.output.items()}
            self.streams[node] = EarlierStream(taken.old, columns, taken.above)

    def _rejoin(self, tree: JoinTree) -> None:
        """Finds a region of the old plan whose tuples a region joins in another way."""
        streams = [stream for below in tree.inputs if (stream := self.streams.get(below)) is not None]
        if len(streams) < len(tree.inputs) or any(below in self.again for below in tree.inputs):
            return
        for old in self._old_trees:
            before = [self.before[below] for below in old.inputs]
            if Counter(stream.base for stream in streams) != Counter(stream.base for stream in before):
                continue
            try:
                found = rejoined(tree, old, streams, before)
                for below, number, known in zip(tree.inputs, found.numbers, found.inputs, strict=True):
                    _require_kept(below.schema, old.inputs[number].schema, known)
            except Differs as differs:
                self.why |= {inner: str(differs) for inner in tree.inner if inner not in self.taken}
                continue
            for inner in tree.inner:
                for known_of in (self.taken, self.why, self.streams):
                    known_of.pop(inner, None)
            equal = _equals(old.root)
            output = {new: equal[old.root.schema.attribute(name).name] for new, name in found.output.items()}
            self.streams[tree.root] = EarlierStream(old.root, output)
            self.rejoined[tree.root] = found
            return

    def _is_alike(self, node: Node, old: Node, stream: EarlierStream) -> bool:
        """Whether an operator without kept tuples, of the old plan, has the same stream."""
        before = self.before[old]
        return type(old.operator) is type(node.operator) and before.base is stream.base

    def _find(self, node: Node, candidates: Sequence[Node]) -> None:
        """Takes the first candidate that means the same; notes the reason against the one that is most alike."""
        own_name, reasons = names(self.new)[node], list[tuple[bool, str]]()
        for old in sorted(candidates, key=lambda old: self._called[old] != own_name):
            try:
                self.taken[node] = self._taken(node, old)
            except Differs as differs:
                reasons.append((self._called[old] != own_name, str(differs)))
            else:
                return
        if not node.inputs:
            reasons = [(is_other, why) for is_other, why in reasons if not is_other]
        missing = "the query before has no such operator" if node.inputs else "the query before does not read it"
        self.why[node] = min(reasons)[1] if reasons else missing

    def _taken(self, node: Node, old: Node) -> Taken:
        match node.operator, old.operator:
            case Scan() as scan, Scan() as before:
                known = same_source(scan, before, moved=self._moved)
                if scan.options.is_many:
                    known = {**known, STREAM: STREAM}
                return Taken(
                    old, (known,), {new: name for new, name in known.items() if name in before.options.columns}
                )
            case Static() as table, Static() as before:
                known = same_table(table, before, moved=self._moved)
                return Taken(old, (known,), known)
            case _:
                return self._taken_operator(node, old)

    def _taken_operator(self, node: Node, old: Node) -> Taken:
        if len(node.inputs) != len(old.inputs):
            raise Differs(f"it has {len(node.inputs)} inputs, and had {len(old.inputs)}")
        self._require_looked_up(node)
        inputs, further = list[Names](), list[frozenset[str]]()
        for below, before in zip(node.inputs, old.inputs, strict=True):
            stream, known = self.streams.get(below), self.before[before]
            if stream is None or stream.base is not known.base:
                raise Differs(_OTHER_INPUT)
            lost = known.conditions - stream.conditions
            if gone := {text for text in lost if not is_implied(text, stream.conditions, known.base.schema)}:
                raise Differs(f"only tuples with {' and '.join(sorted(map(brief, gone)))} have reached it up to now")
            inputs.append(same_columns(stream, known, below.schema, before.schema))
            copies = _copies(old, len(inputs) - 1, known)
            more = {text: _back(text, copies) for text in stream.conditions - known.conditions}
            if unknown := sorted(text for text, here in more.items() if here is None):
                raise Differs(f"what it keeps lacks the attributes of {brief(unknown[0])}")
            further.append(frozenset(filter(None, more.values())))
        selection = node.operator.selection(*node.input_schemas)
        if selection is not None and selection.columns is not None:
            stream, known = self.streams[node], self.before[old]
            if list(stream.columns.values()) != list(known.columns.values()):
                raise Differs("its columns are others")
            return Taken(old, tuple(inputs), dict(zip(stream.columns, old.schema.names, strict=True)))
        taken = same_operator(node, old, inputs)
        if selection is not None:
            return taken
        taken = replace(taken, conditions=tuple(further))
        if not any(further):
            return taken
        if any(log.of is None for log in old.state_schema.logs.values()):
            raise Differs("a new condition below it changes what it keeps")
        return replace(taken, above=self._above_old(taken))

    def _require_looked_up(self, node: Node) -> None:
        """Requires of static tables that are read again that an operator only looks tuples up in them, and in all."""
        tables = {i for i, below in enumerate(node.inputs) if is_static(below)}
        if is_static(node) or not any(node.inputs[i] in self.again for i in tables):
            return
        name = names(self.new)[node]
        if len(tables) < len(node.inputs) - 1 or tables - {*node.operator.looked_up}:
            self.stuck = f"a static table is read again, in which {name} does not only look tuples up"
        elif any(node.inputs[i] not in self.again for i in tables):
            self.stuck = f"one static table below {name} is read again, and another is not: give each another version"
        if self.stuck:
            raise Differs(self.stuck)

    def _above_old(self, taken: Taken) -> frozenset[str]:
        """The further conditions on the inputs of an operator, as conditions on its output.

        Raises:
            Differs: A condition is none on the output, or holds for one input only: what is kept has another meaning.
        """
        terms, equal = taken.old.operator.predicate_terms(*taken.old.input_schemas), _equals(taken.old)
        above: set[str] = set()
        for conditions, of in zip(taken.conditions, terms, strict=True):
            upwards = {of[name.lower()]: equal[name] for name in taken.old.schema.names if name.lower() in of}
            for condition in conditions:
                if (text := _back(condition, upwards)) is None:
                    raise Differs(f"the condition {brief(condition)} below it changes what it keeps")
                above.add(text)
        for text in above:
            for i, of in enumerate(terms):
                if (below := in_terms_of(expression(text), of)) is None or below in taken.conditions[i]:
                    continue
                known = self.before[taken.old.inputs[i]]
                if in_terms_of(expression(below), known.columns) not in known.conditions:
                    raise Differs(f"the condition {brief(text)} holds for one of its inputs only")
        return frozenset(above)


_OTHER_INPUT = "its input is another one"


def _require_kept(new: Schema, old: Schema, known: Names) -> None:
    """Requires of an input of joins that its tuples were kept with all its attributes.

    Raises:
        Differs: They were not, or with other types.
    """
    if lacking := [name for name in new.names if name.lower() not in known]:
        raise Differs(f"its kept tuples lack {', '.join(lacking)}")
    for attribute in new:
        require_wider(attribute, old.attribute(known[attribute.name.lower()]))


def is_static(node: Node) -> bool:
    """Whether a part of a plan reads static tables alone."""
    return all(isinstance(each.operator, Static) for each in topological(node) if not each.inputs)


def keeps(node: Node) -> bool:
    """Whether an operator keeps tuples, or facts from which answers follow."""
    return bool(node.inputs) and bool(node.state_schema.logs)


def not_final(node: Node, below: EarlierStream) -> str | None:
    """What the tuples of a hand-over satisfy, over the base of its input; None if an attribute there is not known."""
    selection = node.operator.selection(*node.input_schemas)
    assert selection is not None
    (left_out,) = _conditions(selection)
    return in_terms_of(left_out, below.columns)


def _conditions(selection: Selection) -> list[Any]:
    """The conditions of a selection, each part that AND joins by itself."""
    return [part for text in selection.conditions for part in conjuncts(expression(text))]


def in_terms_of(tree: Any, columns: Names) -> str | None:
    """An expression in a normal form, with its attributes replaced by their terms; None if one has none."""
    if not {name.lower() for name in attributes_in(tree)} <= columns.keys():
        return None
    return render(in_terms(tree, columns))


def _equals(node: Node) -> dict[str, str]:
    """For each attribute of an operator the first one that always has the same value, such as the other key of a join.

    These are attributes that read alike on an input.
    """
    first: dict[tuple[int, str], str] = {}
    found: dict[str, str] = {}
    terms = node.operator.predicate_terms(*node.input_schemas) if len(node.inputs) > 1 else ()
    for name in node.schema.names:
        reads = [(i, of[name.lower()]) for i, of in enumerate(terms) if name.lower() in of]
        same = next((first[each] for each in reads if each in first), quoted(name))
        found[name] = same
        first |= dict.fromkeys(reads, same)
    return found


def _copies(old: Node, number: int, stream: EarlierStream) -> dict[str, str]:
    """For each text of a stream an attribute of that input; if possible one on which conditions pass the operator."""
    schema = old.inputs[number].schema
    passing = set(old.operator.predicate_terms(*old.input_schemas)[number].values())
    found = {text: quoted(schema.attribute(name).name) for name, text in reversed([*stream.columns.items()])}
    for name, text in stream.columns.items():
        if (here := quoted(schema.attribute(name).name)) in passing:
            found[text] = here
    return found


def _back(text: str, terms: Mapping[str, str]) -> str | None:
    """An expression over a base, in the attributes that copy those of the base: `terms` by the copied attribute."""
    copies = {key[1:-1].lower(): name for key, name in terms.items() if re.fullmatch(r"`[^`]+`", key)}
    return in_terms_of(expression(text), copies)


def same_columns(stream: EarlierStream, before: EarlierStream, new: Schema, old: Schema) -> Names:
    """The old names of the attributes of an input that have the same values as an attribute before."""
    places = {name.lower(): name for name in old.names}
    by_text: dict[str, str] = {}
    for name, of in before.columns.items():
        by_text.setdefault(of, places[name])
    found: dict[str, str] = {}
    for attribute in new:
        name = attribute.name.lower()
        now = stream.columns.get(name)
        if now is not None and now in by_text:
            found[name] = places[name] if before.columns.get(name) == now else by_text[now]
            require_wider(attribute, old.attribute(found[name]))
    return found


def require_wider(new: Attribute, old: Attribute) -> None:
    """Requires that an attribute may have all values that it could have before, as values of the same type.

    Raises:
        Differs: It may not.
    """
    one, other = new.domain, old.domain
    if one.type != other.type:
        raise Differs(f"{new.name} is {one.type}, and was {other.type}")
    if other.nullable and not one.nullable:
        raise Differs(f"{new.name} is NOT NULL, and kept tuples may lack it")
    if one.listed != other.listed:
        # What is closed is recorded by ranges of the values of then.
        raise Differs(f"the domain of {new.name} lists other values than before")
    for end in (other.low, other.high):
        if end is not None and not one.contains(end):
            raise Differs(f"the domain of {new.name} is narrower than before")
    if (one.low is not None and other.low is None) or (one.high is not None and other.high is None):
        raise Differs(f"the domain of {new.name} is narrower than before")


_DECLARED = {"path", "schema", "domains", "schemes", "uniqueIds", "sectionEnds", "columns"}
_OF_COLUMNS = ("path.", "prefix.", "dateFormat.", "timestampFormat.")


def same_source(new: Scan, old: Scan, *, moved: bool) -> Names:
    """The old names of the attributes of a source that both queries read; Differs if they read otherwise."""
    if isinstance(new, StreamScan) != isinstance(old, StreamScan):
        raise Differs("one of them is a stream of Spark's")
    if isinstance(new, StreamScan) and isinstance(old, StreamScan):
        facts, earlier = ((each.name, each.punctuation, each.texts, each.replays) for each in (new, old))
        if facts != earlier:
            raise Differs(f"it is another stream than {old.name}")
    one, other = new.options, old.options
    if canonical_path(one.path) != canonical_path(other.path) and not (moved and new.name == old.name):
        raise Differs(f"it reads {one.where}, and {old.name} read {other.where}")
    options, before = (_read_by(each) for each in (one, other))
    for name in sorted(options.keys() | before.keys()):
        if options.get(name) != before.get(name):
            raise Differs(f"its option {name} is {as_given(options.get(name))}, and was {as_given(before.get(name))}")
    leaves = {_leaf(other, i): attribute for i, attribute in reversed(list(enumerate(other.schema)))}
    found = {}
    for i, attribute in enumerate(one.schema):
        same = next((a for j, a in enumerate(other.schema) if a.name.lower() == attribute.name.lower()), None)
        if same is None or _leaf(other, other.schema.index(same.name)) != _leaf(one, i):
            same = leaves.get(_leaf(one, i))
        if same is not None and same.domain.type == attribute.domain.type:
            require_wider(attribute, same)
            found[attribute.name.lower()] = same.name
    return found


def _read_by(options: SourceOptions) -> dict[str, str]:
    """The options on which the tuples of a source depend, beside its columns."""
    given = options.lasting.items()
    return {name: text for name, text in given if name not in _DECLARED and not name.startswith(_OF_COLUMNS)}


def _leaf(options: SourceOptions, i: int) -> tuple[Any, ...]:
    """What is read for an attribute."""
    return options.paths[i], options.structures[i], options.formats[i], options.prefixes[i]


def same_table(new: Static, old: Static, *, moved: bool) -> Names:
    """The old names of the attributes of a static table that both queries read; Differs if it is another table."""
    one, other = dict(new.options), dict(old.options)
    places = one.pop("path", None), other.pop("path", None)
    if (new.format, one) != (old.format, other) or (places[0] != places[1] and not (moved and new.name == old.name)):
        raise Differs("it is another static table")
    if new.schema != old.schema:
        raise Differs("its columns are others")
    return {name.lower(): name for name in new.schema.names}


def same_operator(node: Node, old: Node, inputs: Sequence[Names]) -> Taken:
    """What an operator takes over from one that means the same over these inputs.

    Raises:
        Differs: It means something else.
    """
    new, before = node.operator, old.operator
    if new.takes_over is TakesOver.NOTHING:
        raise Differs("such an operator takes over no state")
    for known, now, earlier in zip(inputs, node.input_schemas, old.input_schemas, strict=True):
        if keeps(node):
            needed = new.required(frozenset(node.schema.names), *node.input_schemas)
            wanted = needed[len(inputs) - 1] if len(inputs) == 1 else frozenset(now.names)
            if lacking := [name for name in now.names if name in wanted and name.lower() not in known]:
                raise Differs(f"its kept tuples lack {', '.join(lacking)}")
        if new.takes_over is TakesOver.ABOVE_SAME_ATTRIBUTES:
            places = [earlier.index(known[name.lower()]) if name.lower() in known else -1 for name in now.names]
            if places != list(range(len(earlier))):
                raise Differs("the attributes of its input are not as before")
    called = {name: earlier for known in reversed(inputs) for name, earlier in known.items()}
    state = new.taken_over(before, called)  # type: ignore[arg-type]
    output = _same_output(node, old, called) if state.output is None else state.output
    return Taken(old, tuple(inputs), output, state=state)


def _same_output(node: Node, old: Node, of_inputs: Names) -> Names:
    """The old names of the output's attributes, by those of the inputs; an operator's own are called as before."""
    own_names = {name.lower() for schema in node.input_schemas for name in schema.names}
    there = {name.lower(): name for name in old.schema.names}
    found: dict[str, str] = {}
    for attribute in node.schema:
        name = attribute.name.lower()
        before = of_inputs.get(name) if name in own_names else attribute.name
        if before is not None and (same := there.get(before.lower())) is not None:
            found |= {name: same} if old.schema.attribute(same).domain.type == attribute.domain.type else {}
    return found
