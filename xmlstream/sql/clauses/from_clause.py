"""FROM and LATERAL VIEW as nodes of a plan: tables are joined from left to right, or in the order that WHERE connects.

Tables without a join condition are joined by the conditions of WHERE that connect them; the other conditions select. A
comma binds less than JOIN, so what it separates is joined by itself before.

SELECT t.id, v.tag FROM post AS t LATERAL VIEW OUTER explode(t.tags) v AS tag
SELECT id, explode(tags) AS tag FROM post

LATERAL VIEW makes one tuple for each element of an array, and so does explode as an item of SELECT; the array is an
attribute or computed below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from xmlstream.operators.asof_join import AsofKind
from xmlstream.operators.explode import Explode
from xmlstream.operators.expressions.dialect import attributes_in, call_name, conjoined, conjuncts, named, render
from xmlstream.plan.nodes import Names, Node, unique
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute
from xmlstream.punct_ns.slices import quoted
from xmlstream.sql.clauses.joining import (
    How,
    JoinCondition,
    alternatives,
    is_asof,
    joined,
    joined_asof,
    no_equality,
    split_condition,
    with_unique_names,
)
from xmlstream.sql.clauses.plan_builder import keyed, select_items, where
from xmlstream.sql.clauses.relation import Field, Item, Relation, resolve
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.refused.refusals import VERSIONS
from xmlstream.sql.spark.analysis import Analyst
from xmlstream.sql.spark.functions import aggregates_in, is_exploded

_HOW: dict[tuple[str, str], How] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    **{(side.upper(), kind): side for side in ("left", "right", "full") for kind in ("", "OUTER")},
    **{(side, kind.upper()): kind for side in ("", "LEFT") for kind in ("semi", "anti")},
}


class From:
    """Translates one FROM clause of a text."""

    def __init__(self, text: QueryText, analyst: Analyst) -> None:
        self._text, self._analyst = text, analyst

    def relation(
        self, first: Relation, joins: Sequence[tuple[exp.Join, Relation]], condition: exp.Expr | None
    ) -> Relation:
        """The joined tables, filtered by WHERE."""
        names = Names(first.node.schema.names)
        tables = [first, *(with_unique_names(table, names, self._analyst) for _, table in joins)]
        stated = ("on", "using", "method")
        bare = [join for join, _ in joins if not (any(join.args.get(part) for part in stated) or is_asof(join))]
        commas = [join for join in bare if not join.kind or len(bare) == len(joins)]
        parts = [tables[0]]  # of FROM, between commas
        for (join, _), table in zip(joins, tables[1:], strict=True):
            # A key of FULL JOIN … USING has a new name, which may collide.
            taken = [name for part in parts for name in part.node.schema.names]
            renamed = with_unique_names(table, taken, self._analyst)
            if any(join is comma for comma in commas):
                parts.append(renamed)
            else:
                parts[-1] = self._join(parts[-1], renamed, join)
        if commas:
            whole, rest = self._connected(parts, self._resolved(condition, parts), commas[0])
        else:
            (whole,) = parts
            rest = self._resolved(condition, parts)
        remaining = conjoined(rest)
        return whole if remaining is None else where(whole, remaining, self._analyst)

    def _resolved(self, condition: exp.Expr | None, tables: Sequence[Relation]) -> list[exp.Expr]:
        """The condition over the tables' attributes; split at AND if there are several tables to connect."""
        if condition is None:
            return []
        tree = resolve(condition, tables[0].beside(*tables[1:]), self._text)
        return conjuncts(tree) if len(tables) > 1 else [tree]

    def _connected(
        self, tables: Sequence[Relation], conditions: list[exp.Expr], at: exp.Join
    ) -> tuple[Relation, list[exp.Expr]]:
        """The tables joined in an order in which the conditions connect them, and the remaining conditions."""
        whole, waiting, rest = tables[0], list(tables[1:]), conditions
        while waiting:
            either: list[tuple[Relation, list[exp.Expr], JoinCondition]] = []
            for table in waiting:
                here, there = set(whole.node.schema.names), set(table.node.schema.names)
                usable = [c for c in rest if _connects({*attributes_in(c)}, here, there)]
                schemas = whole.node.schema, table.node.schema
                found = split_condition(usable, *schemas)
                if found.equal:
                    break
                if alternatives(found.residual, *schemas):
                    either.append((table, usable, found))
            else:
                if not either:
                    raise no_equality("a join", at, self._text)
                table, usable, found = either[0]
            whole = joined(whole, table, "inner", found, self._analyst, self._text, at)
            waiting.remove(table)
            rest = [c for c in rest if not any(c is u for u in usable)]
        return Relation(whole.node, tables[0].beside(*tables[1:]).fields), rest

    def _join(self, left: Relation, right: Relation, join: exp.Join) -> Relation:
        side, kind = join.side.upper(), join.kind.upper()
        how = _HOW.get((side, "" if kind == "ASOF" else kind))
        if how is None:
            raise self._text.error(f"{join.side} {join.kind} JOIN is not supported", join)
        names = join.args.get("using")
        if (method := str(join.args.get("method") or "").upper()) == "NATURAL":
            names = self._common(left, right, join)
        elif method:
            raise self._text.error(f"{method} JOIN is not supported", join)
        if names is not None:
            return self._using(left, right, how, names, join)
        on = join.args.get("on")
        conditions = [] if on is None else conjuncts(resolve(on, left.beside(right), self._text))
        found = split_condition(conditions, left.node.schema, right.node.schema)
        return self._joined(left, right, how, found, join)

    def _joined(self, left: Relation, right: Relation, how: How, found: JoinCondition, join: exp.Join) -> Relation:
        if not is_asof(join):
            return joined(left, right, how, found, self._analyst, self._text, join)
        if (version := join.this.args.get("version")) is not None:
            moment = exp.column(self._time(right, version), table=join.this.alias_or_name)
            join.set("match_condition", exp.GTE(this=version.expression.copy(), expression=moment))
            join.set("kind", "ASOF")
            join.this.set("version", None)
        match = join.args.get("match_condition")
        match = None if match is None else resolve(match, left.beside(right), self._text)
        kind: AsofKind = "left" if how == "left" else "inner"
        return joined_asof(left, right, kind, found, match, self._analyst, self._text, join)

    def _using(
        self, left: Relation, right: Relation, how: How, names: Sequence[exp.Identifier], join: exp.Join
    ) -> Relation:
        """The join on equal attributes of these names; the result has each name once, in front.

        With a table's name, the name means that table's own attribute, which may be null if the other's is not.
        """
        pairs = [(self._only(left, name), self._only(right, name)) for name in names]
        equal = JoinCondition(tuple((named(a.attribute), named(b.attribute)) for a, b in pairs))
        whole = self._joined(left, right, how, equal, join)
        merged = dict.fromkeys(field for pair in pairs for field in pair)
        sides = (left,) if how in ("semi", "anti") else (left, right)
        rest = tuple(field for side in sides for field in side.fields if field not in merged)
        if how != "full":
            shown = [pair[how == "right"] for pair in pairs]
            others = [pair[how != "right"] for pair in pairs] if len(sides) > 1 else []
            keys = tuple(replace(f, name=n.name, starred=True) for n, f in zip(names, shown, strict=True))
            return Relation(whole.node, (*_qualified(others), *keys, *rest))
        items = [Item(name, named(name)) for name in whole.node.schema.names]
        keys, taken = (), Names(whole.node.schema.names)
        for name, pair in zip(names, pairs, strict=True):
            attribute = taken.take(name.name)
            either: list[exp.Expr] = [named(field.attribute) for field in pair]
            items.append(Item(attribute, exp.Anonymous(this="coalesce", expressions=either)))
            keys = (*keys, Field(name.name, attribute))
        return Relation(select_items(whole.node, items, self._analyst).node, (*_qualified([*merged]), *keys, *rest))

    def _time(self, table: Relation, version: exp.Version) -> str:
        """The attribute by which a table has a state at each time: its only moment, by its name in the query."""
        of = {a.name for a in table.node.schema if a.domain.sql.kind in ("TIMESTAMP", "TIMESTAMP_NTZ")}
        moments = [field.name for field in table.fields if field.attribute in of]
        if len(moments) != 1:
            what = (
                f"FOR SYSTEM_TIME AS OF needs a table with one attribute of TIMESTAMP, and this one has {len(moments)}"
            )
            raise self._text.error(what, version.expression, VERSIONS)
        return moments[0]

    def _common(self, left: Relation, right: Relation, join: exp.Join) -> list[exp.Identifier]:
        """The names that both sides have, in the order of the left one, for NATURAL JOIN."""
        there = {field.name.lower() for field in right.fields if field.starred}
        names = [field.name for field in left.fields if field.starred and field.name.lower() in there]
        if not names:
            here, other = (", ".join(f.name for f in side.fields if f.starred) for side in (left, right))
            hint = f"write the equality with ON; the sides have {here}, and {other}"
            raise self._text.error("NATURAL JOIN of sides without a name in common is not supported", join, hint)
        return [exp.to_identifier(name) for name in dict.fromkeys(names)]

    def _only(self, side: Relation, name: exp.Identifier) -> Field:
        found = side.find(name.name)
        if len(found) != 1:
            what = f"{name.name} is not exactly one attribute on each side of the join"
            raise self._text.error(what, name.meta.get("start"), "write the equality with ON")
        return found[0]


def _qualified(fields: Sequence[Field]) -> tuple[Field, ...]:
    return tuple(replace(field, qualified=True) for field in fields if field.table)


def _connects(used: set[str], here: set[str], there: set[str]) -> bool:
    return used <= here | there and bool(used & here) and bool(used & there)


_CALLED = "col"
"""Spark's default name of an element."""


def element_relation(view: exp.Lateral) -> Field:
    """The field that LATERAL VIEW adds, by the name of its column."""
    alias = view.args["alias"]
    called = next((column.name for column in alias.args.get("columns") or ()), _CALLED)
    return Field(called, called, alias.name or None)


def exploded(relation: Relation, view: exp.Lateral, analyst: Analyst, text: QueryText) -> Relation:
    """The relation with the elements of an array as one more field.

    Raises:
        QueryError: The argument is not an array, or a name is unknown.
    """
    call, alias = view.this, view.args["alias"]
    tree = resolve(call.expressions[0], relation, text).unnest()
    node, names = keyed(relation.node, [tree], [], analyst)
    array = names[render(tree)]
    (element, *others) = analyst.columns(node.schema, [f"explode({quoted(array)})"])
    if others or len(alias.args.get("columns") or ()) > 1:
        hint = "explode map_keys(…), map_values(…) or map_entries(…), which are arrays"
        raise text.error("explode of a map is not supported", call, hint)
    field = element_relation(view)
    attribute = Attribute(unique(field.name, node.schema.names), Domain(element[1].type))
    outer = bool(view.args.get("outer")) or call_name(call) == "explode_outer"
    fields = (*relation.fields, replace(field, attribute=attribute.name))
    return Relation(Node(Explode(array, attribute, outer), (node,), "explode"), fields)


def with_exploded(
    select: exp.Select, relation: Relation, analyst: Analyst, text: QueryText
) -> tuple[exp.Select, Relation]:
    """The SELECT with a field in place of explode among its items, and the relation with that field.

    Raises:
        QueryError: There are several, or SELECT also groups or has OVER.
    """
    calls = [item.unalias() for item in select.expressions if is_exploded(item.unalias())]
    if not calls:
        return select, relation
    hint = "explode in a subquery, or by LATERAL VIEW explode(tags) t AS tag"
    if len(calls) > 1:
        raise text.error("a second explode in SELECT is not supported", calls[1], hint)
    others = [each for clause in ("group", "having", "qualify") if (each := select.args.get(clause)) is not None]
    others += [each for item in select.expressions for each in (*aggregates_in(item), *item.find_all(exp.Window))]
    if others:
        raise text.error("explode beside groups or OVER is not supported", calls[0], hint)
    replaced = select.copy()
    (at,) = (i for i, item in enumerate(replaced.expressions) if is_exploded(item.unalias()))
    item = replaced.expressions[at]
    name = unique("element", [field.name for field in relation.fields])
    alias = exp.TableAlias(columns=[exp.to_identifier(name, quoted=True)])
    found = exploded(relation, exp.Lateral(this=item.unalias().copy(), alias=alias), analyst, text)
    *fields, element = found.fields
    item.replace(exp.alias_(named(name), item.alias or _CALLED, quoted=True))
    return replaced, Relation(found.node, (*fields, replace(element, starred=False)))
