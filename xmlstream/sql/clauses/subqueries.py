"""Subqueries in expressions as joins: IN, EXISTS and their negations in WHERE, and aggregates as values.

    WHERE x IN (SELECT y FROM t WHERE t.b = s.b)      LEFT SEMI JOIN t ON x = y AND t.b = s.b
    WHERE NOT EXISTS (SELECT 1 FROM t WHERE …)        LEFT ANTI JOIN t ON …
    WHERE x NOT IN (SELECT y FROM t WHERE …)          LEFT ANTI JOIN t ON x = y AND …
                                                      if x may be null, also LEFT ANTI JOIN t ON x IS NULL AND …
                                                      if y may be null, also LEFT ANTI JOIN t ON y IS NULL AND …
    (SELECT max(y) FROM t)                            JOIN (SELECT max(y) FROM t), which has one row
    (SELECT max(y) FROM t WHERE t.b = s.b)            LEFT JOIN (SELECT b, max(y) FROM t GROUP BY b) ON s.b = t.b
    (SELECT y FROM t WHERE t.b = s.b)                 (SELECT max(y) FROM t WHERE t.b = s.b), an error of several rows

    WHERE p OR EXISTS (…)                             WHERE p UNION ALL the others LEFT SEMI JOIN …
    anywhere else, IN and EXISTS                      the tuples with a partner, marked true, UNION ALL those without

`x NOT IN (…)` is true if there is no y, or if neither x nor any y is null, and x equals no y. An aggregate over no rows
is null, or 0 for a count. Where a comparison in WHERE rejects null, the left join is an inner one.

A name in a subquery means an attribute of its own FROM, or else of the query around it. A join without an equality has
a constant as its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.dialect import (
    call_name,
    cast_to,
    conjoined,
    conjuncts,
    expression,
    named,
    offset,
    render,
)
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.project import Project
from xmlstream.operators.select import Select
from xmlstream.plan.nodes import Names, Node, narrowed, unique
from xmlstream.session.spark_errors import SEVERAL_ROWS
from xmlstream.sql.clauses.grouping import SelectList, aggregates_of, over_groups
from xmlstream.sql.clauses.joining import (
    How,
    JoinCondition,
    alternatives,
    as_attribute,
    joined,
    split_condition,
    type_of,
    with_unique_names,
)
from xmlstream.sql.clauses.plan_builder import copied, keyed, merge_of, select_items, where
from xmlstream.sql.clauses.relation import Field, Item, Relation, knows, resolve
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.analysis import Analyst
from xmlstream.sql.spark.functions import aggregates_in

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_PASSES_NULL = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Paren, exp.Cast)
"""Operators whose value is null if an operand is."""

_COUNTS = frozenset({"count", "count_if", "regr_count", "approx_count_distinct"})
"""Aggregates whose value over no rows is 0; the values of all others are null."""

_SHAPES = ("group", "having", "qualify", "limit", "offset")
"""Clauses by which a query returns other rows than those of its FROM and WHERE."""

_VALUE = "value of a subquery"


@dataclass(frozen=True, slots=True)
class Parts:
    """Conditions of WHERE: on tuples of FROM, with subqueries, and those that use the query around."""

    own: exp.Expr | None
    with_subqueries: list[exp.Expr]
    correlated: list[exp.Expr]


def parted_conditions(condition: exp.Expr | None, scope: Relation, around: Relation | None) -> Parts:
    """The conditions that AND joins in the WHERE of a query over `scope`, which may be within a query `around`."""
    parts = [] if condition is None else conjuncts(condition)
    with_subqueries = [part for part in parts if queries_in(part)]
    plain = [part for part in parts if not queries_in(part)]
    correlated = [part for part in plain if _from_around(part, scope, around)]
    own = condition
    if with_subqueries or correlated:
        own = conjoined(part for part in plain if not _from_around(part, scope, around))
    return Parts(own, with_subqueries, correlated)


def queries_in(tree: exp.Expr) -> list[exp.Expr]:
    """The outermost queries in an expression."""
    return [node for node in tree.walk(prune=_is_query) if _is_query(node)]


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _is_test(node: exp.Expr) -> bool:
    """Whether the node is EXISTS, or IN with a subquery."""
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def _is_part(node: exp.Expr) -> bool:
    return _is_query(node) or _is_test(node)


def _is_negated(test: exp.Expr) -> bool:
    """Whether the test is below an odd number of NOT, with AND and OR between."""
    node, negated = test, False
    while isinstance(node.parent, exp.And | exp.Or | exp.Paren | exp.Not):
        node = node.parent
        negated = negated != isinstance(node, exp.Not)
    return negated


def _alternatives(condition: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """A condition of OR as its plain alternatives, and the only one with IN or EXISTS; None if it is none of these."""
    either = condition.unnest()
    parts = [*either.flatten()] if isinstance(either, exp.Or) else []
    tests, plain = [part for part in parts if queries_in(part)], [part for part in parts if not queries_in(part)]
    if len(tests) != 1 or not plain or not any(map(_is_test, tests[0].walk(prune=_is_part))):
        return None
    return exp.or_(*plain), tests[0]


def require_own_names(trees: Iterable[exp.Expr], scope: Relation, around: Relation | None, text: QueryText) -> None:
    """Refuses names of the query around where a subquery cannot use them, which is outside of its WHERE.

    Raises:
        QueryError: An expression uses such a name.
    """
    for tree in trees:
        for column in _from_around(tree, scope, around):
            name = ".".join(part.name for part in column.parts)
            hint = "a subquery uses the query around it in its WHERE only; write the expression outside of the subquery"
            raise text.error(f"{name} of the query around is not supported here", column, hint)


def _from_around(tree: exp.Expr, scope: Relation, around: Relation | None) -> list[exp.Column]:
    """The names that mean attributes of the query around."""
    if around is None:
        return []
    return [name for name in tree.find_all(exp.Column) if not knows(name, scope) and knows(name, around)]


@dataclass(frozen=True, slots=True)
class _Compared:
    """IN: the values, the tuples of the subquery with their items, and the conditions on both."""

    values: Sequence[exp.Expr]
    items: Sequence[exp.Expr]
    inner: Relation
    parts: Sequence[exp.Expr]


@dataclass(frozen=True, slots=True)
class Subqueries:
    """Joins a query's relation with the subqueries in the expressions of the query.

    Attributes:
        text: Text of the query, for errors.
        analyst: Knows the types.
        within: Makes the relation of FROM and WHERE of a subquery within a relation, and returns the correlated
            conditions, which it leaves out.
        whole: Makes the relation of a whole subquery.
    """

    text: QueryText
    analyst: Analyst
    within: Callable[[exp.Select, Relation], tuple[Relation, list[exp.Expr]]]
    whole: Callable[[exp.Expr], Relation]

    def selected(self, relation: Relation, conditions: Sequence[exp.Expr]) -> Relation:
        """The tuples for which the conditions, which contain subqueries, are true.

        Raises:
            QueryError: A subquery cannot be joined.
        """
        found = relation
        for condition in conditions:
            test, negated = condition, False
            while isinstance(test, exp.Not | exp.Paren):
                test, negated = test.this, negated != isinstance(test, exp.Not)
            if isinstance(test, exp.Exists):
                found = self._existing(test, found, negated=negated)
            elif isinstance(test, exp.In) and test.args.get("query") is not None:
                found = self._member(test, found, negated=negated)
            elif (alternatives := _alternatives(condition)) is not None:
                found = self._either(*alternatives, found)
            else:
                tree, found = self._with_values(condition, found, of_where=True)
                _require_no_aggregate(tree, self.text)
                found = where(found, resolve(tree, found, self.text), self.analyst)
            found = replace(found, fields=relation.fields)
        return found

    def items(self, select: exp.Select, relation: Relation) -> tuple[exp.Select, Relation]:
        """The SELECT with names in place of its items' subqueries, and the relation that has these names.

        Raises:
            QueryError: A subquery cannot be joined.
        """
        if not any(map(queries_in, select.expressions)):
            return select, relation
        replaced = select.copy()
        for item in replaced.expressions:
            name = None if item.alias else self._name(item.unnest(), relation)
            tree, relation = self._with_values(item, relation, of_where=False)
            item.replace(tree if name is None else exp.alias_(tree, name, quoted=True))
        return replaced, relation

    def _name(self, item: exp.Expr, around: Relation) -> str | None:
        """Spark's name of an item that is a subquery or EXISTS, after the names of the query around; else None."""
        if not isinstance(item, exp.Exists | exp.Query):
            return None
        query, outer = (item.this if isinstance(item, exp.Exists) else item).unnest(), list[exp.Column]()
        if isinstance(query, exp.Select):
            inner, correlated = self.within(query, around)
            outer = [column for each in correlated for column in _from_around(each, inner, around)]
        called = "exists" if isinstance(item, exp.Exists) else "scalarsubquery"
        return f"{called}({', '.join(dict.fromkeys(column.name for column in outer))})"

    def _either(self, plain: exp.Expr, test: exp.Expr, around: Relation) -> Relation:
        """The tuples for which a plain condition is true, and of the others those for which the test is."""
        _require_no_aggregate(plain, self.text)
        condition = resolve(plain, around, self.text)
        of_plain = where(around, condition, self.analyst)
        other = exp.Not(this=exp.Is(this=exp.paren(condition), expression=exp.true()))
        of_test = self.selected(where(around, other, self.analyst), conjuncts(test))
        return replace(around, node=merge_of([of_plain.node, narrowed(of_test.node, around.node.schema.names)]))

    def _marked(self, test: exp.Expr, around: Relation, *, negated: bool) -> tuple[exp.Expr, Relation]:
        """The value of IN or EXISTS as a name, and the relation that has it: true or false, as in Spark.

        It is never unknown: `x IN (…)` is false then, and so is `x NOT IN (…)`, where IN is `negated`.
        """
        if isinstance(test, exp.Exists):
            parts = [(self._existing(test, around, negated=False), exp.true())]
            parts += [(self._existing(test, around, negated=True), exp.false())]
        else:
            compared, around = self._compared(test, around)
            if negated:
                compared, around = self._of_attributes(compared, around, test)
            parts = [(self._of_member(compared, around, test, negated=False), exp.true())]
            rest = self._of_member(compared, around, test, negated=True)
            for inner, key in self._of_null(compared, around) if negated else ():
                parts.append((self._tested(rest, inner, compared.parts, test, negated=False, key=key), exp.true()))
                rest = self._tested(rest, inner, compared.parts, test, negated=True, key=key)
            parts.append((rest, exp.false()))
        shown = around.node.schema.names
        mark, items = unique("mark", shown), [Item(name, named(name)) for name in shown]
        nodes = [select_items(part.node, [*items, Item(mark, value)], self.analyst).node for part, value in parts]
        return self._named(mark, replace(around, node=merge_of(nodes)), test)

    def _existing(self, test: exp.Exists, around: Relation, *, negated: bool) -> Relation:
        query = test.this.unnest()
        if _is_shaped(query):
            inner, correlated = self._of_groups(query, around), list[exp.Expr]()
        else:
            inner, correlated = self.within(query, around)
            for item in query.expressions:
                if not item.find(exp.Star):
                    resolve(item.unalias(), inner, self.text, around=around)
        inner = with_unique_names(inner, around.node.schema.names, self.analyst)
        return self._tested(around, inner, self._over_both(correlated, inner, around), test, negated=negated)

    def _member(self, test: exp.In, around: Relation, *, negated: bool) -> Relation:
        compared, around = self._compared(test, around)
        if negated:
            compared, around = self._of_attributes(compared, around, test)
            for inner, key in self._of_null(compared, around):
                around = self._tested(around, inner, compared.parts, test, negated=True, key=key)
        return self._of_member(compared, around, test, negated=negated)

    def _of_member(self, compared: _Compared, around: Relation, test: exp.Expr, *, negated: bool) -> Relation:
        """The tuples whose values are those of a tuple of the subquery; if `negated`, the others."""
        equal = [exp.EQ(this=x, expression=y) for x, y in zip(compared.values, compared.items, strict=True)]
        return self._tested(around, compared.inner, [*equal, *compared.parts], test, negated=negated)

    def _of_null(self, compared: _Compared, around: Relation) -> Iterator[tuple[Relation, exp.Expr | None]]:
        """Where IN is unknown if it is not true: tuples of the subquery, and the key of those that they decide."""
        (x,), (y,), inner = compared.values, compared.items, compared.inner
        if self._may_be_null(x, around.node):
            yield inner, exp.Case(ifs=[exp.If(this=_is_null(x), true=_ONE.copy())])
        if self._may_be_null(y, inner.node):
            yield where(inner, _is_null(y), self.analyst), None

    def _compared(self, test: exp.Expr, around: Relation) -> tuple[_Compared, Relation]:
        """Both sides of IN, and the relation that has the values of the subqueries in its left one."""
        given, around = self._with_values(test.this, around, of_where=False)
        given = given.unnest()
        values = given.expressions if isinstance(given, exp.Tuple) else [given]
        values = [resolve(value, around, self.text) for value in values]
        query, correlated = test.args["query"].this, list[exp.Expr]()
        if _is_shaped(query) or any(item.find(exp.Window) for item in query.expressions):
            inner = self._of_groups(query, around)
            listed: list[exp.Expr] = [exp.column(exp.to_identifier(field.name, quoted=True)) for field in inner.fields]
        else:
            inner, correlated = self.within(query, around)
            listed = query.expressions
            require_own_names(listed, inner, around, self.text)
        inner = with_unique_names(inner, around.node.schema.names, self.analyst)
        items = SelectList.of(listed, inner, self.text).trees
        if len(items) != len(values):
            what = f"IN compares {len(values)} values with the {len(items)} of its subquery"
            raise self.text.error(what, test, "both need the same number")
        return _Compared(values, items, inner, self._over_both(correlated, inner, around)), around

    def _of_attributes(self, compared: _Compared, around: Relation, test: exp.Expr) -> tuple[_Compared, Relation]:
        """Both sides of NOT IN with their only values as attributes."""
        if len(compared.items) > 1:
            hint = "write NOT EXISTS (SELECT 1 FROM … WHERE …), with an equality for each value"
            raise self.text.error("NOT IN with several values is not supported", test, hint)
        x, around = self._attribute(compared.values[0], around, compared.inner)
        y, inner = self._attribute(compared.items[0], compared.inner, around)
        return replace(compared, values=[x], items=[y], inner=inner), around

    def _attribute(self, tree: exp.Expr, relation: Relation, other: Relation) -> tuple[exp.Expr, Relation]:
        """An expression as an attribute of the relation, whose name the other one does not have."""
        taken = Names((*relation.node.schema.names, *other.node.schema.names))
        node, name = as_attribute(relation.node, tree, "compared", taken, self.analyst)
        return named(name), replace(relation, node=node)

    def _of_groups(self, query: exp.Expr, around: Relation) -> Relation:
        """The relation of a subquery that is computed as a whole, so that it cannot use the query around it.

        Raises:
            QueryError: It has a correlated condition.
        """
        if isinstance(query, exp.Select) and (correlated := self.within(query, around)[1]):
            what = "a condition on the query around is not supported in a subquery that groups, ranks or nests another"
            hint = "join that query: … FROM s JOIN (SELECT …) AS q ON s.id = q.id"
            raise self.text.error(what, correlated[0], hint)
        return self.whole(query)

    def _over_both(self, conditions: Iterable[exp.Expr], inner: Relation, around: Relation) -> list[exp.Expr]:
        return [resolve(condition, inner, self.text, around=around) for condition in conditions]

    def _tested(
        self,
        left: Relation,
        right: Relation,
        parts: Sequence[exp.Expr],
        at: exp.Expr,
        *,
        negated: bool,
        key: exp.Expr | None = None,
    ) -> Relation:
        """Selects the left tuples with a partner, or without one; a left tuple whose `key` is not 1 has none."""
        found = split_condition(parts, left.node.schema, right.node.schema)
        equal = found.equal if key is None else ((key, _ONE.copy()), *found.equal)
        either = None if equal else alternatives(found.residual, left.node.schema, right.node.schema)
        condition = JoinCondition(equal if equal or either else _ALL, found.residual)
        relation = joined(left, right, "anti" if negated else "semi", condition, self.analyst, self.text, at)
        label = f"{'not_' if negated else ''}{at.key}"
        return Relation(Node(relation.node.operator, relation.node.inputs, label), relation.fields)

    def _may_be_null(self, tree: exp.Expr, node: Node) -> bool:
        """Whether an expression may be null in the node's tuples; errs towards true."""
        copy = copied(tree, node.schema)
        domain = copy[1] if copy is not None else self.analyst.columns(node.schema, [render(tree)])[0][1]
        while domain.nullable and isinstance(tree, exp.Column):
            match node.operator:
                case Select(predicate=predicate):
                    if any(map(_refuses_null(tree), conjuncts(expression(predicate)))):
                        return False
                case Project(columns=columns):
                    copied_from = {column.attribute.name: column.copy_of for column in columns}[tree.name]
                    if copied_from is None:
                        return True
                    tree = named(copied_from)
                case _:
                    return True
            node = node.inputs[0]
        return domain.nullable

    def _with_values(self, tree: exp.Expr, around: Relation, *, of_where: bool) -> tuple[exp.Expr, Relation]:
        """The expression with names in place of its subqueries, and the relation that has these names."""
        replaced = exp.paren(tree) if _is_query(tree) or _is_test(tree) else tree.copy()
        for test in [node for node in replaced.walk(prune=_is_part) if _is_test(node)]:
            value, around = self._marked(test, around, negated=_is_negated(test))
            test.replace(value)
        for query in queries_in(replaced):
            is_strict = of_where and isinstance(replaced, _COMPARISONS) and _passes_null(query, replaced)
            value, around = self._value(query, around, is_strict=is_strict)
            query.replace(value)
        return replaced, around

    def _value(self, query: exp.Expr, around: Relation, *, is_strict: bool) -> tuple[exp.Expr, Relation]:
        """The value of a subquery as an expression over names, and the relation that has these names."""
        select, taken = _of_one_row(query.unnest()), around.node.schema.names
        inner, correlated = self.within(select, around)
        require_own_names(select.expressions, inner, around, self.text)
        if not correlated:
            right = with_unique_names(self.whole(select), taken, self.analyst)
            relation = joined(around, right, "inner", JoinCondition(_ALL), self.analyst, self.text, query)
            return self._named(right.fields[0].attribute, Relation(relation.node, around.fields), query)
        inner = with_unique_names(inner, taken, self.analyst)
        parts = self._over_both(correlated, inner, around)
        found = split_condition(parts, around.node.schema, inner.node.schema)
        if found.residual:
            what = "a condition other than an equality with the query around is not supported in a value"
            hint = "compare an attribute of the query around with one of the subquery by =, or write a join"
            plain = [part.unnest() for part in parts]
            at = plain.index(found.residual[0]) if found.residual[0] in plain else 0
            raise self.text.error(what, correlated[at], hint)
        keys = [self._comparable(of_inner, inner.node, x, around.node) for x, of_inner in found.equal]
        node, names = keyed(inner.node, keys, [], self.analyst)
        listed = SelectList.of(select.expressions, inner, self.text)
        aggregates = aggregates_of(listed, [], node, tuple(names.values()), self.analyst)
        operator = GroupBy(tuple(dict.fromkeys(names.values())), tuple(aggregates.values()))
        groups = with_unique_names(Relation.of(Node(operator, (node,), "group_by")), taken, self.analyst)
        (item,) = listed.trees
        strict = [each for each in aggregates_in(item) if not _counts(each) and _passes_null(each, item)]
        equal = tuple(
            (x, named(groups.find(names[render(key.unnest())])[0].attribute))
            for (x, _), key in zip(found.equal, keys, strict=True)
        )
        how: How = "inner" if is_strict and strict else "left"
        relation = joined(around, groups, how, JoinCondition(equal), self.analyst, self.text, query)
        relation = Relation(relation.node, around.fields)
        values: dict[str, exp.Expr] = {}
        for text, aggregate in aggregates.items():
            attribute = groups.find(aggregate.attribute.name)[0].attribute
            value, relation = self._named(attribute, relation, query)
            is_count = _counts(expression(text))
            values[text] = (
                exp.Anonymous(this="coalesce", expressions=[value, exp.Literal.number(0)]) if is_count else value
            )
        over = over_groups(item, {text: text for text in values}, self.text)
        return exp.paren(
            over.transform(lambda node: values.get(node.name, node) if isinstance(node, exp.Column) else node)
        ), relation

    def _comparable(self, tree: exp.Expr, node: Node, other: exp.Expr, others: Node) -> exp.Expr:
        """Casts the expression to the type in which it is compared, so that equal values fall into one group."""
        own = type_of(node, tree, self.analyst)
        common = self.analyst.common(own, type_of(others, other, self.analyst))
        return tree if common in (own, None) else cast_to(tree, str(common))

    def _named(self, attribute: str, relation: Relation, at: exp.Expr) -> tuple[exp.Expr, Relation]:
        """A name for an attribute, and the relation with that name; `*` does not include it."""
        name = unique(_VALUE, [field.name for field in relation.fields])
        column = named(name)
        column.this.meta["start"] = offset(at)
        return column, replace(relation, fields=(*relation.fields, Field(name, attribute, starred=False)))


_ONE = exp.Literal.number(1)
_ALL = ((_ONE, _ONE),)
"""The equality under which each tuple is a partner of each."""


def _is_shaped(query: exp.Expr) -> bool:
    """Whether a query returns other rows than those of its FROM and WHERE."""
    if not isinstance(query, exp.Select) or any(map(query.args.get, _SHAPES)):
        return True
    return bool(aggregates_in(*query.expressions)) or any(map(queries_in, query.expressions))


def _of_one_row(query: exp.Expr) -> exp.Select:
    """A query for a value, with one row for whatever rows; of several, the value is an error.

    >>> from xmlstream.operators.expressions.dialect import expression
    >>> def shown(text: str) -> str:
    ...     return render(_of_one_row(expression(f"({text})").this)).replace("`", "").partition("> 0 THEN ")[2]
    >>> shown("SELECT y + 1 FROM t"), shown("SELECT y FROM t ORDER BY z LIMIT 1")
    ('max(y + 1) END FROM t', 'max(v) END FROM (SELECT y FROM t ORDER BY z LIMIT 1) AS q(v)')
    """
    if isinstance(query, exp.Select) and aggregates_in(*query.expressions) and not any(map(query.args.get, _SHAPES)):
        return query
    if isinstance(query, exp.Select) and not any(map(query.args.get, (*_SHAPES, "distinct"))):
        plain, item = query.copy(), query.expressions[0].unalias()
    else:
        alias = exp.TableAlias(this=exp.to_identifier("q"), columns=[exp.to_identifier("v")])
        plain = exp.Select(from_=exp.From(this=exp.Subquery(this=query.copy(), alias=alias)))
        item = exp.column("v")
    value = expression(
        f"CASE WHEN count(*) < 2 THEN max(v) WHEN CAST(CAST(count(*) AS STRING) || '{SEVERAL_ROWS}' AS INT) > 0"
        " THEN max(v) END"
    )
    whole = value.transform(lambda node: item.copy() if isinstance(node, exp.Column) else node, copy=False)
    for node in whole.walk():
        node.meta.setdefault("start", offset(query))
    plain.set("expressions", [whole])
    return plain


def _require_no_aggregate(condition: exp.Expr, text: QueryText) -> None:
    if aggregates := aggregates_in(condition):
        raise text.error(
            "an aggregate in WHERE is not supported", aggregates[0], "write a condition on groups in HAVING"
        )


def _is_null(tree: exp.Expr) -> exp.Is:
    return exp.Is(this=tree, expression=exp.null())


def _refuses_null(tree: exp.Expr) -> Callable[[exp.Expr], bool]:
    """Test whether a condition is not true where the expression is null."""

    def refuses(condition: exp.Expr) -> bool:
        if isinstance(condition, _COMPARISONS):
            return tree in (condition.this, condition.expression)
        return isinstance(condition, exp.Not) and condition.this.unnest() == exp.Is(this=tree, expression=exp.null())

    return refuses


def _passes_null(part: exp.Expr, top: exp.Expr) -> bool:
    """Whether an expression is null, or a comparison not true, where a part of it is null."""
    node = part
    while node is not top and node.parent is not None:
        node = node.parent
        if not isinstance(node, _PASSES_NULL) and not (node is top and isinstance(node, _COMPARISONS)):
            return False
    return True


def _counts(aggregate: exp.Expr) -> bool:
    """Whether the aggregate is 0 over no rows; all others are null."""
    return call_name(aggregate.this if isinstance(aggregate, exp.Filter) else aggregate) in _COUNTS
