"""Shorthands of SQL, written out in the tree before anything else looks at it.

SELECT sum(v) OVER w FROM s WINDOW w AS (PARTITION BY k)    sum(v) OVER (PARTITION BY k)
SELECT (k, v), struct(k, v + 1)                             named_struct('k', k, 'v', v), … 'col2', v + 1
SELECT count(), CAST(v AS VARCHAR)                          count(*), CAST(v AS STRING)
a ASOF JOIN b ON a.k = b.k AND a.t >= b.t                   a ASOF JOIN b MATCH_CONDITION (a.t >= b.t) ON a.k = b.k
FROM s, UNNEST(s.tags) AS t (tag)                           s LATERAL VIEW explode(s.tags) t AS tag
v = ANY (SELECT v FROM u), v <> ALL (SELECT v FROM u)       v IN (SELECT v FROM u), NOT v IN (SELECT v FROM u)
ORDER BY k FETCH FIRST 2 ROWS ONLY                          ORDER BY k LIMIT 2
SELECT generate_series(1, n) AS i                           explode(CASE WHEN 1 <= n THEN sequence(1, n) END) AS i
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from xmlstream.operators.expressions.dialect import call_name, conjoined, conjuncts, offset
from xmlstream.operators.expressions.type_rules import whole_number
from xmlstream.sql.flink_windows import Rewriting
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.functions import EXPLODES

_AROUND_VALUES = (exp.Select, exp.Alias, exp.Anonymous, exp.Binary, exp.In, exp.Is)
_OF_TEXTS = re.compile(r"(?i)(?:\bAS|::)\s*(?:VARCHAR|CHAR|TEXT)\b(?!\s*\()")
_EXCLUDES = re.compile(r"(?i)\*\s*EXCLUDE\b")
"""Words that sqlglot reads as Spark's, STRING and EXCEPT, and Spark does not."""
_WITHOUT_BRACKETS = re.compile(r"(?i)\b(?:ISNULL|NOTNULL)\b(?!\s*\()")
"""Words that are functions in Spark."""
_PARTS = ("partition_by", "order", "spec")


def write_out(tree: exp.Expr, text: QueryText, rewriting: Rewriting) -> None:
    """Writes out the shorthands of a statement; `rewriting` tells Spark of those that it does not read.

    Raises:
        QueryError: A window is not defined, or is defined by another one.
    """
    for node in list(
        tree.find_all(exp.Tuple, exp.Anonymous, exp.CTE, exp.Join, exp.Fetch, exp.Limit, exp.Any, exp.All)
    ):
        if _written(node):
            rewriting.printed.append(node)
    if having := _having_rows(tree):
        for compared in reversed(list(tree.find_all(exp.EQ, exp.NEQ, exp.Case))):  # the inner ones first
            if _tested(compared, having):
                rewriting.printed.append(tree)
    casts = any(cast.args["to"].this == exp.DType.TEXT for cast in tree.find_all(exp.Cast))
    excludes = any(star.args.get("except_") for star in tree.find_all(exp.Star))
    bare = tree.find(exp.Is) is not None and _WITHOUT_BRACKETS.search(text.text)
    if bare or (casts and _OF_TEXTS.search(text.text)) or (excludes and _EXCLUDES.search(text.text)):
        rewriting.printed.append(tree)
    named: dict[int, list[exp.Window]] = {}  # by the SELECT around them
    for window in tree.find_all(exp.Window):
        if window.args.get("alias") is not None:
            named.setdefault(id(window.find_ancestor(exp.Select)), []).append(window)
    for select in list(tree.find_all(exp.Select)):
        _windows(select, named.get(id(select), []), text)
        _elements(select, rewriting)


def _written(node: exp.Expr) -> bool:
    """Writes out one node; whether Spark does not read it as it was."""
    match node:
        case exp.CTE() if node.args.get("materialized") is not None:  # how it is computed is the optimizer's
            node.set("materialized", None)
        case exp.Anonymous() if call_name(node) == "count" and not node.expressions:
            node.set("expressions", [exp.Star()])
        case exp.Fetch() if not {"percent", "with_ties"} & _set_in(node.args.get("limit_options")):
            node.replace(exp.Limit(expression=node.args.get("count") or exp.Literal.number(1)))
        case exp.Limit(expression=exp.Var(name="ALL")):
            node.pop()
            return False
        case exp.Any(parent=exp.EQ()) | exp.All(parent=exp.NEQ()):
            return _listed(node)
        case exp.Join() if node.this.args.get("version"):
            pass  # `From` knows by which attribute
        case exp.Join(kind="ASOF") if not node.args.get("match_condition") and node.args.get("on") is not None:
            return _matched(node)
        case _ if call_name(node) == "struct" or _is_value(node):
            _structure(node)
            return False
        case _:
            return False
    return True


def _set_in(options: exp.Expr | None) -> set[str]:
    """The names of the options of a clause that are set."""
    return {name for name, value in (options.args if options is not None else {}).items() if value}


def _listed(node: exp.Expr) -> bool:
    """A comparison with ANY or ALL of a query's values becomes IN; of other values it stays."""
    query, comparison = node.this.unnest(), node.parent
    if not isinstance(query, exp.Query) or comparison is None or node is not comparison.expression:
        return False
    listed = exp.In(this=comparison.this, query=exp.Subquery(this=query))
    comparison.replace(exp.Not(this=listed) if isinstance(comparison, exp.NEQ) else listed)
    return True


def _tested(node: exp.Expr, having: set[int]) -> bool:
    """What has IN or EXISTS becomes a condition beside `= true`, `= false` and their WHEN, as in Spark's optimizer.

    It decides what a null means there: `x IN (…)` and `NOT x IN (…)` are both false. `having` are the nodes that do.
    """
    if isinstance(node, exp.Case):
        branches = node.args["ifs"]
        if id(node.this) not in having or not all(isinstance(b.this, exp.Boolean) for b in branches):
            return False
        for branch in branches:
            branch.set("this", _condition(node.this.copy(), is_meant=bool(branch.this.this)))
        node.set("this", None)
        return True
    for side, other in ((node.this, node.expression), (node.expression, node.this)):
        if isinstance(other, exp.Boolean) and id(side) in having:
            instead = _condition(side, is_meant=bool(other.this) == isinstance(node, exp.EQ))
            node.replace(instead)
            having.add(id(instead))
            return True
    return False


def _condition(tree: exp.Expr, *, is_meant: bool) -> exp.Expr:
    """The condition, or its opposite."""
    of = exp.paren(tree.unnest(), copy=False)
    return of if is_meant else exp.Not(this=of)


def _having_rows(tree: exp.Expr) -> set[int]:
    """The nodes with IN or EXISTS of a query in them, by their numbers."""
    found = set[int]()
    for node in tree.find_all(exp.Exists, exp.In):
        above: exp.Expr | None = node if isinstance(node, exp.Exists) or node.args.get("query") else None
        while above is not None and id(above) not in found:
            found.add(id(above))
            above = above.parent
    return found


def _structure(node: exp.Expr) -> None:
    """A structure without the names of its fields has those of the columns in it, as in Spark."""
    fields = list[exp.Expr]()
    for i, each in enumerate(node.expressions, start=1):
        name = each.alias_or_name if isinstance(each, exp.Alias | exp.Column | exp.Dot) else f"col{i}"
        fields += [exp.Literal.string(name), each.unalias()]
    node.replace(exp.Anonymous(this="named_struct", expressions=fields))


def _matched(join: exp.Join) -> bool:
    """ASOF JOIN as DuckDB has it: the one comparison in ON becomes MATCH_CONDITION."""
    parts = conjuncts(join.args["on"])
    compared = [part for part in parts if isinstance(part, exp.GTE | exp.GT | exp.LTE | exp.LT)]
    if len(compared) != 1:
        return False
    join.set("match_condition", compared[0].copy())
    join.set("on", conjoined(part.copy() for part in parts if part is not compared[0]))
    return True


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


def _elements(select: exp.Select, rewriting: Rewriting) -> None:
    """Calls that make rows of an array, in FROM and in SELECT, as LATERAL VIEW and as explode."""
    joins = select.args.get("joins") or []
    views = []
    while joins and (view := _view(joins[-1])) is not None:
        joins.pop()
        views.append(view)
    if views:
        select.set("joins", joins or None)
        select.set("laterals", [*reversed(views), *(select.args.get("laterals") or ())])
    found = bool(views)
    for item in select.expressions:
        call = item.unalias()
        if call_name(call) in _ARRAYS and (array := _array(call)) is not None:
            call.replace(_exploded(array, call))
            found = True
    if found:
        rewriting.printed.append(select)


def _view(join: exp.Join) -> exp.Lateral | None:
    """The view of an array's elements that a join with a call means; None for any other join."""
    source, side, on = join.this, join.side.upper(), join.args.get("on")
    is_plain = not join.args.get("using") and (on is None or on == exp.true())
    if not is_plain or side not in ("", "LEFT") or join.kind.upper() not in ("", "CROSS", "INNER", "OUTER"):
        return None
    call = source.this if isinstance(source, exp.Lateral | exp.Table) else source
    alias = source.args.get("alias") or exp.TableAlias()
    columns = alias.args.get("columns") or []
    array = None if any(map(source.args.get, ("view", "ordinality", "offset"))) else _array(call)
    if array is None or len(columns) > 1:
        return None
    table = alias.this or exp.to_identifier(call_name(call) or "unnest")
    columns = columns or [exp.to_identifier("col") if call_name(call) in EXPLODES else table]
    is_outer = side == "LEFT" or call_name(call) == "explode_outer"
    named = exp.TableAlias(this=table.copy(), columns=[column.copy() for column in columns])
    return exp.Lateral(this=_exploded(array, call), view=True, outer=is_outer, alias=named)


_ARRAYS = ("unnest", "generate_series")


def _array(call: exp.Expr) -> exp.Expr | None:
    """The array whose elements are the rows of a call; None if it is no such call."""
    given = call.expressions if isinstance(call, exp.Anonymous | exp.Unnest) else []
    if isinstance(call, exp.Unnest) or call_name(call) in ("unnest", *EXPLODES):
        return given[0] if len(given) == 1 and not call.args.get("offset") else None
    if call_name(call) != "generate_series" or len(given) not in (2, 3):
        return None
    step = whole_number(given[2].unnest()) if len(given) == 3 else 1
    is_down = len(given) == 3 and isinstance(given[2].unnest(), exp.Neg)
    if not step and not is_down:
        return None
    array = exp.Anonymous(this="sequence", expressions=[each.copy() for each in given])
    first, last = given[0].copy(), given[1].copy()
    test = exp.GTE(this=first, expression=last) if is_down else exp.LTE(this=first, expression=last)
    # Other than `sequence`, it has no row where its ends are the other way round.
    return exp.Case(ifs=[exp.If(this=test, true=array)])


def _exploded(array: exp.Expr, call: exp.Expr) -> exp.Anonymous:
    made = exp.Anonymous(this="explode", expressions=[array.copy()])
    for node in made.walk():
        if "start" not in node.meta and (at := offset(call)) is not None:
            node.meta["start"] = at
    return made
