"""Shorthands of SQL, written out in the tree before anything else looks at it. Spark reads them as they are.

SELECT sum(v) OVER w FROM s WINDOW w AS (PARTITION BY k)    sum(v) OVER (PARTITION BY k)
FROM (a JOIN b USING (k)) JOIN c USING (k)                  a JOIN b USING (k) JOIN c USING (k)
"""

from __future__ import annotations

from sqlglot import exp

from xmlstream.sql.query_text import QueryText

_PARTS = ("partition_by", "order", "spec")


def write_out(tree: exp.Expr, text: QueryText) -> None:
    """Writes out the shorthands of a statement.

    Raises:
        QueryError: A window is not defined, or is defined by another one.
    """
    for select in list(tree.find_all(exp.Select)):
        _windows(select, text)
        _joins(select)


def _windows(select: exp.Select, text: QueryText) -> None:
    """`OVER w`: the definition of w stands in its place."""
    defined = {window.name: window for window in select.args.get("windows") or ()}
    for window in list(select.find_all(exp.Window)):
        alias = window.args.get("alias")
        if alias is None or window.find_ancestor(exp.Select) is not select:
            continue
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
