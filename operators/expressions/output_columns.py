"""Output columns: the attributes of an output, each an expression over an input; their schemes and punctuations.

One input attribute may give several columns: copies, and results of monotone functions. A *choice* selects one column
for each attribute; a punctuation of the input gives one of the output for each choice. A *coalesced* column is the
first of several attributes that is not null, or is computed from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise, product

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.dialect import parsed, position_of, render
from xmlstream.operators.expressions.monotone import Monotone, monotone
from xmlstream.operators.expressions.type_rules import cast, loses_nothing
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import recast_patterns
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Term
from xmlstream.punct_ns.slices import quoted
from xmlstream.punct_ns.sql_type import SqlType

_NAMES = frozenset(("coalesce", "ifnull", "nvl"))


def coalesced(expression: str, schema: Schema, domain: Domain) -> Mapping[str, str]:
    """The attributes, in order, if the expression is the first of them that is not null; else none.

    The values are Spark SQL: the attribute in the expression's type, unchanged or widened without loss. Attributes
    behind one that is never null are left out.

    >>> schema = Schema.parse("x INT, y INT, z INT NOT NULL, w BIGINT")
    >>> list(coalesced("coalesce(x, nvl(y, z), w)", schema, Domain("INT")))
    ['x', 'y', 'z']
    >>> coalesced("coalesce(w, x)", schema, Domain("BIGINT"))
    {'w': '`w`', 'x': 'CAST(`x` AS BIGINT)'}
    >>> coalesced("coalesce(x, 0)", schema, Domain("INT")), coalesced("coalesce(x, w)", schema, Domain("INT"))
    ({}, {})
    """
    tree = parsed(expression)
    found: dict[str, str] = {}
    for at, through in _attributes(tree, schema) if tree is not None else ():
        name, own = schema[at].name, schema[at].domain
        steps = [own.sql, *through, domain.sql]
        if own.opaque or not all(loses_nothing(one, next_) for one, next_ in pairwise(steps)):
            return {}
        found[name] = quoted(name) if own.sql == domain.sql else f"CAST({quoted(name)} AS {domain.type})"
        if not own.nullable:
            break
    return found


def instead(expression: str, schema: Schema, domain: Domain) -> Mapping[str, str]:
    """An expression with a coalesce of attributes, once with each of these attributes in the place of the call.

    The keys are the attributes in order, the values Spark SQL; empty if the expression has no such call.

    >>> schema = Schema.parse("x INT, y INT, w BIGINT")
    >>> instead("coalesce(x, y) DIV 24", schema, Domain("BIGINT"))
    {'x': '`x` DIV 24', 'y': '`y` DIV 24'}
    >>> instead("nvl(x, y)", schema, Domain("INT")), instead("x + y", schema, Domain("INT"))
    ({'x': '`x`', 'y': '`y`'}, {})
    """
    tree = parsed(expression) if any(name in expression.lower() for name in _NAMES) else None
    call = tree and next(filter(_is_call, tree.find_all(exp.Expr)), None)
    if tree is None or call is None:
        return {}
    if call is tree.unnest():
        return coalesced(expression, schema, domain)
    own = coalesced_domain(render(call), schema)
    found = coalesced(render(call), schema, own) if own is not None else {}
    return {name: _without(tree, call, text) for name, text in found.items()}


def _without(tree: exp.Expr, call: exp.Expr, text: str) -> str:
    """Returns the tree with the call replaced by the parsed text."""
    part = parsed(text)
    assert part is not None
    return render(tree.transform(lambda node: part if node == call else node))


def coalesced_domain(expression: str, schema: Schema) -> Domain | None:
    """The domain of an expression that is the first of several attributes that is not null; None for any other.

    Its type is the widest of the attributes' types; it has a bound if all attributes have one.

    >>> schema = Schema.parse("x INT, y SMALLINT NOT NULL, w STRING", "x 0..23, y 1..24")
    >>> coalesced_domain("coalesce(x, y)", schema)
    Domain(type='INT', nullable=False, low=0, high=24, listed=None)
    >>> coalesced_domain("coalesce(x, w)", schema)
    """
    tree = parsed(expression)
    own = [schema[at].domain for at, _ in _attributes(tree, schema)] if tree is not None else []
    for widest in (Domain(each.type) for each in own):
        if names := coalesced(expression, schema, widest):
            looked_at = [schema.attribute(name).domain for name in names]
            nullable = all(each.nullable for each in looked_at)
            low = _outermost(min, [each.low for each in looked_at], widest)
            high = _outermost(max, [each.high for each in looked_at], widest)
            return Domain(widest.type, nullable, low, high)
    return None


def _outermost(which: Callable[..., Value], bounds: Sequence[Value | None], widest: Domain) -> Value | None:
    """The outermost of the bounds; None if an attribute has none."""
    known = [widest.normal(bound) for bound in bounds if bound is not None]
    return which(known, key=lambda bound: widest.cut(bound, after=False)) if len(known) == len(bounds) else None


def _attributes(tree: exp.Expr, schema: Schema) -> list[tuple[int, list[SqlType]]]:
    """The places of the attributes of a coalesce, and the types that each is cast to; empty for any other expression.

    The attributes of nested calls stand in the place of the call.
    """
    tree = tree.unnest()
    if not _is_call(tree):
        return []
    found: list[tuple[int, list[SqlType]]] = []
    for part in _parts(tree):
        inner, to = cast(part) or (part, None)
        at = position_of(inner, schema)
        if at is None:
            return []
        found.append((at, [to.sql] if to else []))
    return found


def _parts(tree: exp.Expr) -> Iterator[exp.Expr]:
    tree = tree.unnest()
    if _is_call(tree):
        for argument in tree.expressions:
            yield from _parts(argument)
    else:
        yield tree


def _is_call(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Anonymous) and str(tree.this).lower() in _NAMES


CHOICES = 16
"""The most choices that are used; beyond it, punctuations that other choices would give are left out."""


@dataclass(frozen=True, slots=True)
class Column:
    """One attribute of the output.

    Attributes:
        attribute: The attribute.
        expression: Spark SQL over the input's attributes.
        copy_of: The input attribute that it copies, unchanged or widened without loss; None if it is computed.
        monotone: How it depends on one attribute; None if that does not matter, or is not known.
        either: For a coalesced column, one column for each attribute that may be the first not null; else empty.
    """

    attribute: Attribute
    expression: str
    copy_of: str | None = None
    monotone: Monotone | None = None
    either: tuple[Column, ...] = ()

    @staticmethod
    def computed(attribute: Attribute, expression: str, schema: Schema) -> Column:
        """The column of an expression over a schema, with its dependence on the attributes."""
        copies = coalesced(expression, schema, attribute.domain)
        either = [
            Column(attribute, text, name) if name in copies else Column(attribute, text, None, monotone(text, schema))
            for name, text in instead(expression, schema, attribute.domain).items()
        ]
        known = tuple(either) if all(column.source for column in either) else ()
        return Column(attribute, expression, None, monotone(expression, schema), known)

    @property
    def source(self) -> str | None:
        """The one input attribute whose punctuations give punctuations on this column; None if there is none."""
        return self.copy_of or (self.monotone.of if self.monotone else None)


def choices(columns: Sequence[Column]) -> Iterator[dict[str, Column]]:
    """The choices: a column for each input attribute, by its name in lower case; copies count as one column."""
    options: dict[str, list[Column]] = {}
    for column in sorted(columns, key=lambda column: column.monotone is not None):
        if column.source is not None:
            known = options.setdefault(column.source.lower(), [])
            if column.monotone is not None or not known:
                known.append(column)
    for chosen in islice(product(*options.values()), CHOICES):
        yield dict(zip(options, chosen, strict=True))


def carried(term: Term, choice: Mapping[str, Column], columns: Sequence[Column]) -> list[str]:
    """The columns that keep the promise of a term: all copies, or the chosen computed one; none if it is lost."""
    column = choice.get(term.attribute.lower())
    if column is None:
        return []
    how = column.monotone
    if how is None:
        return [each.attribute.name for each in columns if (each.copy_of or "").lower() == term.attribute.lower()]
    values_close = how.injective or (how.narrow and term.fills(counted=how.counted))
    kept = values_close if term.kind == "each" else term.kind == "prefix" and not (how.falling or how.unordered)
    return [column.attribute.name] if kept else []


def computed(term: Term, choice: Mapping[str, Column]) -> Term:
    """The promise of a term, translated to the chosen column of its attribute.

    Constants that close stretches of an attribute close stretches of a value computed from it. Constants of moments
    close no stretches, even if whole numbers are computed from them. A wider type has values between those of a copy.
    """
    column = choice.get(term.attribute.lower())
    if column is None or term.kind != "each":
        return term
    if column.monotone is not None:
        fills = term.fills(counted=column.monotone.counted) and not column.monotone.unordered
        return replace(term, counted=None if fills == column.attribute.domain.counted else fills)
    return term if column.copy_of and column.expression == quoted(column.copy_of) else replace(term, counted=None)


def images(
    names: Sequence[str], choice: Mapping[str, Column], schema: Schema
) -> Iterator[tuple[int, Column, str, Schema]]:
    """The steps that replace x by f(x) in punctuations over a schema, one attribute after the other.

    Each step has the attribute's place, the column, the name of the set of punctuations after it, and their schema.
    """
    passed = ""
    for i, name in enumerate(names):
        if (column := choice[name.lower()]).monotone is not None:
            attribute = Attribute(name, column.attribute.domain)
            schema = Schema(tuple(attribute if at == i else other for at, other in enumerate(schema)))
            passed = f"{passed} through {column.attribute.name}".strip()
            yield i, column, passed, schema


def written(
    p: Punctuation, columns: Sequence[Column], computed: Mapping[str, Column], output: Schema
) -> list[Punctuation]:
    """The punctuation over the output; several if an attribute has several copies, each equivalent to `p`.

    Args:
        p: A punctuation over the input, with values of the `computed` columns in the place of their attributes.
        columns: All columns of the output.
        computed: The columns whose values `p` has, by the names of the input's attributes.
        output: The output's schema.
    """
    places = [
        [
            i
            for i, c in enumerate(columns)
            if (c is computed[a.name] if a.name in computed else (c.copy_of or "").lower() == a.name.lower())
        ]
        for a in p.schema
    ]
    result = []
    for chosen in product(*(places[i] for i in p.restricted)):
        pairs = zip(p.restricted, chosen, strict=True)
        each = (recast_patterns(p.patterns[i], p.schema[i].domain, output[place].domain) for i, place in pairs)
        over_output = (dict(zip(chosen, patterns, strict=True)) for patterns in product(*each))
        result += [Punctuation.at(output, patterns, p.lifespan) for patterns in over_output]
    return result
