"""Comparison of a query with the one that a checkpoint belongs to: which state an operator may take over, or why not.

Both plans are compared from the sources up, as they run. The comparison follows *streams*. The stream of a node is
written in terms of the nearest node below that keeps or combines tuples (its base): attributes as expressions, and the
conditions that tuples satisfy. Selects and projections may so differ, and be placed differently by the optimizer. An
operator takes the state of an operator of the old plan if both mean the same, over inputs with the same streams: then
its state is the one that it would have now, had the new query read the input from the beginning. Its inputs may

- have other names for attributes, or, where rows are kept as a bag, lack some: what is kept is renamed and narrowed;
- satisfy further conditions, if the operator lets these pass (`predicate_terms`): kept rows that do not are dropped.

What the old query has closed stays closed, even where the new one would have waited longer: results were written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from xmlstream.dataclasses import dataclass, field, fields, is_dataclass, replace
from xmlstream.operators.aggregation import Aggregation
from xmlstream.operators.describe import Describe
from xmlstream.operators.expressions.aggregates import attributes_of, ignores_duplicates
from xmlstream.operators.expressions.dialect import attributes_in, conjuncts, expression, in_terms, parsed, render
from xmlstream.operators.expressions.predicate_domain import is_implied
from xmlstream.operators.frames import matching
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.hand_over import HandOver
from xmlstream.operators.join import Join
from xmlstream.operators.merge import Merge
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.operators.project import Project
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.select import Select
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.operators.sort import Sort
from xmlstream.plan.nodes import Node, Results, Scan, Static, StreamScan, names, topological
from xmlstream.plan.written_plan import brief
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import own, quoted
from xmlstream.runtime.change.same_query import as_given, canonical_path
from xmlstream.sources.xml.options.source import SourceOptions

Names: TypeAlias = Mapping[str, str]
"""Attributes of the new plan, in lower case, with their names in the old one."""

_BAGS = (GroupBy, Join, Merge, MultiwayJoin, SemiJoin, Sort)
"""The operators that mean the same for tuples without attributes that they do not need."""

_DISTANCES = {"slack", "max_ahead", "delay"}
"""The parameters of the rules of `punctuate` that do not change what the rule keeps."""


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
        renumbered: The old names of kept columns that neither plan has as attributes.
    """

    old: Node
    inputs: tuple[Names, ...]
    output: Names
    conditions: tuple[frozenset[str], ...] = ()
    above: frozenset[str] = frozenset()
    renumbered: Names = field(default_factory=dict)

    @property
    def names(self) -> Names:
        """The old names of the attributes of the output and of all inputs."""
        return {**self.output, **{new: old for each in self.inputs for new, old in each.items()}}


class Differs(Exception):
    """Two operators are not the same for what they keep; the text has the reason."""


class Comparison:
    """The new plan beside the old one.

    Attributes:
        taken: The nodes of the new plan that take over state.
        why: For each other node that keeps tuples, or reads input, the reason.
        streams: The streams of the new plan's nodes that were there before.
        before: The streams of the old plan's nodes.
    """

    def __init__(self, old: Node, new: Node, *, moved: bool = False) -> None:
        self.old, self.new, self._moved = old, new, moved
        self.taken: dict[Node, Taken] = {}
        self.why: dict[Node, str] = {}
        self.streams: dict[Node, EarlierStream] = {}
        self.before: dict[Node, EarlierStream] = {}
        self._called = names(old)
        for node in topological(old):
            if not isinstance(node.operator, Results):
                above = self._above(node, [self.before.get(below) for below in node.inputs])
                own_columns = {name.lower(): same for name, same in _equals(node).items()}
                self.before[node] = above or EarlierStream(node, own_columns)
        for node in topological(new):
            if not isinstance(node.operator, Results):
                self._compare(node)

    def _above(self, node: Node, inputs: Sequence[EarlierStream | None]) -> EarlierStream | None:
        """The stream of a node that only selects, computes or punctuates; None for any other."""
        if len(inputs) != 1 or (below := inputs[0]) is None:
            return None
        match node.operator:
            case Select(predicate=predicate):
                parts = [in_terms_of(part, below.columns) for part in conjuncts(expression(predicate))]
                if None in parts:
                    return None
                return replace(below, conditions=below.conditions.union(part for part in parts if part))
            case Project(columns=columns):
                made = {c.attribute.name.lower(): in_terms_of(expression(c.expression), below.columns) for c in columns}
                return replace(below, columns={name: text for name, text in made.items() if text is not None})
            case HandOver():
                left_out = not_final(node, below)
                return None if left_out is None else replace(below, conditions=below.conditions | {left_out})
            case Describe() | Punctuate():
                return below
        return None

    def _compare(self, node: Node) -> None:
        inputs = [self.streams.get(below) for below in node.inputs]
        if isinstance(node.operator, Select | Project | Describe | Punctuate | HandOver):
            if (stream := self._above(node, inputs)) is not None:
                self.streams[node] = stream
                self._find(node, [old for old in self.before if self._is_alike(node, old, stream)])
            elif inputs[0] is not None:
                self.why[node] = "it uses attributes that the query before did not read"
            return
        self._find(node, [old for old in self.before if type(old.operator) is type(node.operator)])
        if (taken := self.taken.get(node)) is not None:
            equal = _equals(taken.old)
            columns = {new: equal[old] for new, old in taken.output.items()}
            self.streams[node] = EarlierStream(taken.old, columns, taken.above)

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
            if unknown := [text for text, here in more.items() if here is None]:
                raise Differs(f"what it keeps lacks the attributes of {brief(unknown[0])}")
            further.append(frozenset(filter(None, more.values())))
        match node.operator:
            case Project():
                stream, known = self.streams[node], self.before[old]
                if list(stream.columns.values()) != list(known.columns.values()):
                    raise Differs("its columns are others")
                output = dict(zip(stream.columns, old.schema.names, strict=True))
                return Taken(old, tuple(inputs), output)
            case Select() | Describe() | Punctuate() | HandOver():
                return same_operator(node, old, inputs)
        taken = replace(same_operator(node, old, inputs), conditions=tuple(further))
        if not any(further):
            return taken
        if any(log.of is None for log in old.state_schema.logs.values()):
            raise Differs("a new condition below it changes what it keeps")
        return replace(taken, above=self._above_old(taken))

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


def keeps(node: Node) -> bool:
    """Whether an operator keeps tuples, or facts from which answers follow."""
    return bool(node.inputs) and bool(node.state_schema.logs)


def not_final(node: Node, below: EarlierStream) -> str | None:
    """What the tuples of a hand-over satisfy, over the base of its input; None if an attribute there is not known."""
    closed = matching.condition_text(node.operator.excludes(*node.input_schemas))
    return in_terms_of(expression(f"NOT ({closed})"), below.columns)


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
    for known, now, earlier in zip(inputs, node.input_schemas, old.input_schemas, strict=True):
        if keeps(node):
            needed = new.required(frozenset(node.schema.names), *node.input_schemas)
            wanted = needed[len(inputs) - 1] if len(inputs) == 1 else frozenset(now.names)
            if lacking := [name for name in now.names if name in wanted and name.lower() not in known]:
                raise Differs(f"its kept tuples lack {', '.join(lacking)}")
        if not isinstance(new, (*_BAGS, Select, Project, Describe, Punctuate)):
            places = [earlier.index(known[name.lower()]) if name.lower() in known else -1 for name in now.names]
            if places != list(range(len(earlier))):
                raise Differs("the attributes of its input are not as before")
    of_inputs = {name: earlier for known in reversed(inputs) for name, earlier in known.items()}
    renumbered: dict[str, str] = {}
    if isinstance(new, GroupBy) and isinstance(before, GroupBy):
        output, renumbered = _same_groups(new, before, node, of_inputs)
        return Taken(old, tuple(inputs), output, renumbered=renumbered)
    if isinstance(new, Punctuate) and isinstance(before, Punctuate):
        if _shape(new.rule, of_inputs, _DISTANCES) != _shape(before.rule, {}, _DISTANCES):
            raise Differs(f"it punctuated by {before.rule}")
    elif not isinstance(new, Merge | Describe | Project) and _shape(new, of_inputs) != _shape(before, {}):
        raise Differs("it is not the same operator")
    return Taken(old, tuple(inputs), _same_output(node, old, of_inputs))


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


def _same_groups(new: GroupBy, old: GroupBy, node: Node, of_inputs: Names) -> tuple[Names, dict[str, str]]:
    """The old names of a group-by's output, and of the columns of its partial aggregates."""
    keys = {key.lower(): of_inputs.get(key.lower()) for key in new.keys}
    if sorted(str(key).lower() for key in keys.values()) != sorted(key.lower() for key in old.keys):
        raise Differs(
            f"it groups by {', '.join(new.keys) or 'nothing'}, and grouped by {', '.join(old.keys) or 'nothing'}"
        )
    forms = [Aggregation(each.keys, each.aggregates) for each in (new, old)]
    if forms[0].merges is None and forms[1].merges is not None:
        raise Differs("of its groups, aggregates were kept and no tuples")
    if forms[1].merges is None:
        _require_kept(new, old, of_inputs)
    texts = [render(expression(a.expression)) for a in old.aggregates]
    output = {name: str(before) for name, before in keys.items()}
    renumbered: dict[str, str] = {}
    for i, aggregate in enumerate(new.aggregates):
        text = render(in_terms(expression(aggregate.expression), _all_terms(of_inputs, aggregate.expression)))
        if text not in texts:
            if forms[1].merges is None:
                continue
            raise Differs(f"its groups were kept without {brief(aggregate.expression)}")
        at = texts.index(text)
        if old.aggregates[at].attribute.domain.type != aggregate.attribute.domain.type:
            raise Differs(f"{brief(text)} has another type")
        output[aggregate.attribute.name.lower()] = old.aggregates[at].attribute.name
        renumbered |= {own(f"{column}{i}"): own(f"{column}{at}") for column in "an"}
    return output, renumbered if forms[1].merges is not None else {}


def _require_kept(new: GroupBy, old: GroupBy, of_inputs: Names) -> None:
    """Requires that a group-by that has kept the tuples of its groups has kept what other aggregates need of them."""
    kept = {name.lower() for name in (*old.keys, *attributes_of(old.aggregates))}
    for name in attributes_of(new.aggregates):
        if of_inputs.get(name.lower(), "").lower() not in kept:
            raise Differs(f"its kept tuples lack {name}")
    if all(map(ignores_duplicates, old.aggregates)) and not all(map(ignores_duplicates, new.aggregates)):
        raise Differs("of equal tuples in its groups, one was kept")


def _all_terms(of_inputs: Names, text: str) -> Names:
    return {name.lower(): quoted(of_inputs.get(name.lower(), name)) for name in attributes_in(text)}


def _shape(value: Any, called: Names, without: set[str] | frozenset[str] = frozenset()) -> Any:
    """A parameter of an operator, with old names for attributes, and types for domains, to be compared."""
    match value:
        case str() if "`" in value and (tree := parsed(value)) is not None:
            return render(in_terms(tree, _all_terms(called, value)))
        case str():
            return called.get(value.lower(), value)
        case Domain(type=type_):
            return type_
        case Schema():
            return [_shape(attribute, called) for attribute in value]
        case tuple() | list():
            return [_shape(each, called) for each in value]
        case _ if is_dataclass(value):
            compared = (f.name for f in fields(value) if f.compare and f.name not in without)
            return type(value).__name__, {name: _shape(getattr(value, name), called) for name in compared}
    return str(value)
