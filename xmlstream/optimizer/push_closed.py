"""Leaves out at the sources what a query that continues another would compute in vain.

A `hand_over` on top of a result leaves out the tuples that the earlier query's closed punctuations match. Here these
punctuations are pushed down the plan, as far as a predicate on their attributes selects the same tuples
(`xmlstream.operators.behaviour`): through selects and projections, by keys below group_by, top_n and joins, to each
input of a merge or a set operation. So no operator above keeps a tuple that only serves a closed group.

    hand_over [hour <= 17]                              hand_over [hour <= 17]
      group_by(hour) max(currtmp)                 ->      group_by(hour) max(currtmp)
        select currtmp > 0                                  select currtmp > 0
          sensor1                                             hand_over [hour <= 17]
                                                                sensor1

Punctuations that restrict the same attributes go down together, those on other attributes by themselves. Where their
attributes are those of the node, another hand_over takes them, however many they are: it compares them by hashing.
Where they are computed (`ts DIV 3600`), a select takes them, which has them as text, so that they must be few.

The hand_over on top stays: what reaches it is right whatever was pushed, and it sends the closed punctuations. So a
part is left out below only if an operator in between keeps tuples. Nothing goes below what has two readers, or in front
of the check of a source. The new nodes have the label of a hand_over, by which a run counts what is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import add

from sqlglot import exp

from xmlstream.dataclasses import dataclass
from xmlstream.operators.behaviour import Combines, Terms
from xmlstream.operators.expressions.dialect import attributes_in, expression, in_terms, named, render
from xmlstream.operators.expressions.throwable import throwable
from xmlstream.operators.frames.matching import condition_text, is_inline
from xmlstream.operators.hand_over import HAND_OVER, HandOver
from xmlstream.operators.select import Select
from xmlstream.optimizer.rewrite import bottom_up, readers, rebuilt, top_down
from xmlstream.plan.nodes import Node, Results
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema


@dataclass(frozen=True, slots=True)
class _Part:
    """Closed punctuations that restrict the same attributes.

    Attributes:
        closed: The punctuations, over these attributes alone, as the result has them.
        terms: The attributes over a node, in the order of the punctuations' schema.
        saves: Whether a node above keeps tuples, so that it is worth while to leave some out here.
    """

    closed: tuple[Punctuation, ...]
    terms: tuple[exp.Expr, ...]
    saves: bool = False

    def over(self, terms: Terms, schema: Schema, *, saves: bool) -> _Part | None:
        """The part over an input with these terms of a node's attributes; None if it cannot be computed there."""
        used = {name.lower() for term in self.terms for name in attributes_in(term)}
        if not used or not used <= terms.keys():
            return None
        below = _Part(self.closed, tuple(in_terms(term, terms) for term in self.terms), self.saves or saves)
        can_throw = any(throwable(term, schema) for term in below.terms)
        return below if not can_throw and (below.names(schema) or is_inline(self.closed)) else None

    def names(self, schema: Schema) -> tuple[str, ...]:
        """The attributes of a node that are the terms, with the same types; empty if one is computed."""
        found = [term.name for term in self.terms if isinstance(term, exp.Column)]
        types = [attribute.domain.type for attribute in self.closed[0].schema]
        are_same = len(found) == len(types) and [schema.attribute(name).domain.type for name in found] == types
        return tuple(schema.attribute(name).name for name in found) if are_same else ()

    def texts(self, names: Sequence[str], schema: Schema) -> Iterator[str]:
        """The punctuations over the schema of a node whose attributes have these names."""
        places = [schema.index(name) for name in names]
        for p in self.closed:
            yield str(Punctuation.at(schema, dict(zip(places, p.patterns, strict=True))))

    def predicate(self) -> str:
        """What is true for the tuples that no punctuation matches, over the node."""
        own = [attribute.name.lower() for attribute in self.closed[0].schema]
        terms = {name: render(term) for name, term in zip(own, self.terms, strict=True)}
        return f"NOT ({render(in_terms(expression(condition_text(self.closed)), terms))})"


_Parts = tuple[_Part, ...]


def push_closed(root: Node) -> Node:
    """Pushes the closed punctuations of each `hand_over` that sends them down the plan, as far as possible."""
    if not any(isinstance(node.operator, HandOver) for node in (root, *root.inputs)):
        return root
    uses = readers(root)
    nothing: _Parts = ()
    going: dict[Node, list[_Parts]] = {}
    staying: dict[Node, _Parts] = {}

    def of_inputs(node: Node, parts: _Parts) -> list[_Parts]:
        going[node], staying[node] = _divided(node, parts)
        return [below if uses[i] == 1 else nothing for i, below in zip(node.inputs, going[node], strict=True)]

    def pushed(node: Node, inputs: tuple[Node, ...]) -> Node:
        edges = zip(node.inputs, inputs, going[node], strict=True)
        new = [made if uses[below] == 1 else _without(made, parts) for below, made, parts in edges]
        return _without(rebuilt(node, new), staying[node])

    top_down(root, nothing, of_inputs, add)
    return bottom_up(root, pushed)


def _sends(node: Node) -> bool:
    """Whether the node is a `hand_over` on top of a result."""
    return isinstance(node.operator, HandOver) and node.operator.punctuates


def _divided(node: Node, parts: _Parts) -> tuple[list[_Parts], _Parts]:
    """The parts for each input of a node, and those that stay above it."""
    if isinstance(node.operator, Results) or not node.inputs:
        return [() for _ in node.inputs], parts
    own = tuple(_parts_of(node)) if _sends(node) else ()
    schemas, operator = node.input_schemas, node.operator
    if isinstance(operator, Combines) and operator.equal is not None:
        terms = operator.residual_terms(*schemas)
    else:
        terms = operator.predicate_terms(*schemas)
    below: list[_Parts] = [() for _ in schemas]
    above: list[_Part] = []
    saves = bool(node.state_schema.logs)
    for part in (*parts, *own):
        found = [part.over(of, schema, saves=saves) for of, schema in zip(terms, schemas, strict=True)]
        if not any(found) and part not in own:
            above.append(part)
        below = [now + ((one,) if one else ()) for now, one in zip(below, found, strict=True)]
    return below, tuple(above)


def _parts_of(node: Node) -> Iterator[_Part]:
    """The closed punctuations of a `hand_over`, by the attributes that they restrict."""
    by_places: dict[tuple[int, ...], list[Punctuation]] = {}
    for p in node.operator.excludes(*node.input_schemas):
        by_places.setdefault(p.restricted, []).append(p)
    for places, closed in by_places.items():
        schema = Schema(tuple(node.schema[i] for i in places))
        own = tuple(Punctuation.at(schema, dict(enumerate(p.patterns[i] for i in places))) for p in closed)
        yield _Part(own, tuple(named(name) for name in schema.names))


def _without(node: Node, parts: _Parts) -> Node:
    """The node without the tuples that the parts match, if that saves something."""
    parts = tuple(part for part in parts if part.saves)
    texts = [text for part in parts if (names := part.names(node.schema)) for text in part.texts(names, node.schema)]
    computed = [part.predicate() for part in parts if not part.names(node.schema)]
    made = Node(Select(" AND ".join(computed)), (node,), HAND_OVER) if computed else node
    return Node(HandOver(tuple(texts)), (made,), HAND_OVER) if texts else made
