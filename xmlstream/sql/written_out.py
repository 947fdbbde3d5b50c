"""Shorthands of SQL, written out in the tree before anything else looks at it. Spark reads them as they are.

SELECT sum(v) OVER w FROM s WINDOW w AS (PARTITION BY k)    sum(v) OVER (PARTITION BY k)
FROM (a JOIN b USING (k)) JOIN c USING (k)                  a JOIN b USING (k) JOIN c USING (k)
SELECT (k, v), struct(k, v + 1)                             named_struct('k', k, 'v', v), … 'col2', v + 1
SELECT count()                                              count(*)
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from xmlstream.operators.expressions.dialect import call_name
from xmlstream.sql.query_text import QueryText

_AROUND_VALUES = (exp.Select, exp.Alias, exp.Anonymous, exp.Binary, exp.In, exp.Is)
_PARTS = ("partition_by", "order", "spec")


def write_out(tree: exp.Expr, text: QueryText) -> None:
    """Writes out the shorthands of a statement.

    Raises:
        QueryError: A window is not defined, or is defined by another one.
    """
    for node in list(tree.find_all(exp.Tuple, exp.Anonymous, exp.CTE)):
        if isinstance(node, exp.CTE):
            node.set("materialized", None)  # how it is computed is the optimizer's
        else:
            _calls(node)
    named: dict[int, list[exp.Window]] = {}  # by the SELECT around them
    for window in tree.find_all(exp.Window):
        if window.args.get("alias") is not None:
            named.setdefault(id(window.find_ancestor(exp.Select)), []).append(window)
    for select in list(tree.find_all(exp.Select)):
        _windows(select, named.get(id(select), []), text)
        _joins(select)


def _calls(node: exp.Expr) -> None:
    """`count()`; a structure without the names of its fields, which has those of the columns in it, as in Spark."""
    if call_name(node) == "count" and not node.expressions:
        node.set("expressions", [exp.Star()])
    if call_name(node) != "struct" and not _is_value(node):
        return
    fields = list[exp.Expr]()
    for i, each in enumerate(node.expressions, start=1):
        name = each.alias_or_name if isinstance(each, exp.Alias | exp.Column | exp.Dot) else f"col{i}"
        fields += [exp.Literal.string(name), each.unalias()]
    node.replace(exp.Anonymous(this="named_struct", expressions=fields))


def _is_value(node: exp.Expr) -> bool:
    """Whether `(a, b)` is a value: an item, an argument, or compared with another."""
    around = node.parent.parent if isinstance(node.parent, exp.Distinct) else node.parent
    if isinstance(around, exp.In) and around.args.get("query") is not None:
        return False
    return isinstance(node, exp.Tuple) and isinstance(around, _AROUND_VALUES)


def _windows(select: exp.Select, named: Sequence[exp.Window], text: QueryText) -> None:
    """`OVER w`: the definition of w stands in its place."""
    defined = {window.name: window for window in select.args.get("windows") or ()}
    for window in named:
        alias = window.args["alias"]
        if window.arg_key == "windows" or any(window.args.get(part) for part in _PARTS):
            hint = "write all of it in the parentheses after OVER"
            raise text.error(f"a window that continues the window {alias.name} is not supported", window, hint)
        if (definition := defined.get(alias.name)) is None:
            hint = f"define it behind FROM and WHERE: WINDOW {alias.name} AS (PARTITION BY …)"
            raise text.error(f"there is no window {alias.name}", alias, hint)
        for part in _PARTS:
            given = definition.args.get(part)
            window.set(part, [each.copy() for each in given] if isinstance(given, list) else given and given.copy())
        window.set("alias", None)
    if defined:
        select.set("windows", None)


def _joins(select: exp.Select) -> None:
    """Joins in parentheses that begin FROM: joins are read from left to right."""
    if (from_ := select.args.get("from_")) is None:
        return
    first = from_.this
    while isinstance(first, exp.Subquery) and isinstance(first.this, exp.Table | exp.Subquery) and not first.alias:
        inner = first.this
        joins = [*(inner.args.get("joins") or ()), *(first.args.get("joins") or ())]
        inner.set("joins", None)
        select.set("joins", [*(join.pop() for join in joins), *(select.args.get("joins") or ())])
        from_.set("this", inner.pop())
        first = from_.this
