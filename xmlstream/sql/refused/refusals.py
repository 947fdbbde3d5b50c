"""Refusals of parts of SQL: the name of each unsupported part, and a hint for it.

`place_in_query` finds a refused part in the text.
"""

from __future__ import annotations

import re

from sqlglot import exp

from xmlstream.operators.expressions.dialect import offset
from xmlstream.operators.expressions.type_rules import whole_number
from xmlstream.operators.joins.purge_strategy import PurgeStrategy, strategy_named
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.functions import ONE_FOR_ONE

A_BOUND = "write SELECT … FROM (SELECT …, ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) AS r FROM …) WHERE r <= 3"
"""Hint to select the first tuples of each group."""

LAST_ROWS = (
    "write avg(v) OVER (PARTITION BY sid ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW), or lag(v) OVER …"
)
"""Hint to compute from the last rows of each group."""

IN_A_SUBQUERY = (
    "compute it in a subquery: … FROM (SELECT *, lag(v) OVER (PARTITION BY … ORDER BY …) AS w FROM s) WHERE w > 3"
)
"""Hint to use the result of a function with OVER."""

AS_A_MARK = (
    "compute it in a query below: SELECT … FROM (SELECT *, EXISTS (SELECT 1 FROM u WHERE u.id = s.id) AS e FROM s) AS q"
)
"""Hint to test whether a subquery has a row."""

BELOW = (
    "compute it in a query below: SELECT … FROM (SELECT *, (SELECT count(*) FROM u WHERE u.id = s.id) AS n FROM s) AS q"
)
"""Hint to use a subquery within an aggregate."""

AS_A_COLUMN = "write it in a query around: SELECT …, (SELECT max(a) FROM u) AS m FROM (SELECT …) WHERE …"
"""Hint to use the value of a subquery."""

VERSIONS = (
    "write ASOF JOIN rate MATCH_CONDITION (bid.ts >= rate.since) ON …; a table that does not change is joined as it"
    " is: CREATE TABLE u (…) USING csv OPTIONS (path '…')"
)
"""Hint for a table as of some time."""

_OVER = (
    "ROW_NUMBER(), RANK() and DENSE_RANK() with PARTITION BY and ORDER BY are supported, to select the first of each"
    " group; so are aggregates and lag with ORDER BY, over the last rows"
)

_PARTS = {
    "fetch": ("FETCH … WITH TIES or PERCENT", "write FETCH FIRST 10 ROWS ONLY, or LIMIT 10"),
    "order": (
        "ORDER BY",
        "write ORDER BY … LIMIT, which may stand anywhere; without LIMIT, ORDER BY may stand only at the end of the"
        " outermost query",
    ),
    "sort": ("SORT BY", "results are emitted as soon as they are complete, in no order"),
    "cluster": ("CLUSTER BY", "leave it out: tuples are distributed as the operators need it"),
    "distribute": ("DISTRIBUTE BY", "leave it out: tuples are distributed as the operators need it"),
    "pivots": ("PIVOT", "write an aggregate with FILTER (WHERE …) for each column"),
    "on": (
        "DISTINCT ON",
        "write SELECT … FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY arrival) = 1, with the attributes"
        " that must differ in PARTITION BY",
    ),
    "array": ("[…]", "write a name in backquotes, as `hour`; an array is array(1, 2)"),
    "hint": (
        "this hint",
        "leave it out, or write one of /*+ EAGER_PURGE */, /*+ LAZY_PURGE */ and /*+ LAZY_PURGE(10) */, with a number"
        " above 0",
    ),
    "window": ("OVER", _OVER),
    "sample tablesample": (
        "TABLESAMPLE",
        "take part of the stream with WHERE, for instance by pmod(id, 10) = 0",
    ),
    "by_name": ("UNION BY NAME", "list the columns of both sides in one order"),
    "recursive": ("WITH RECURSIVE", None),
    "within_group withingroup": ("WITHIN GROUP", "median(v) does without it, on Spark percentile(v, 0.5)"),
    "ignorenulls": (
        "IGNORE NULLS",
        "last_value and first_value take it: SELECT last_value(v) IGNORE NULLS OVER (ORDER BY ts)",
    ),
    "respectnulls": ("RESPECT NULLS", "leave it out"),
    "lambda": ("a function with a lambda (x -> …)", None),
    "collate": ("COLLATE", "leave it out: strings are compared by code point; to ignore case, compare lower(text)"),
    "jsonextract": ("the operator ->", "on Spark write get_json_object(text, '$.a')"),
    "jsonextractscalar": ("the operator ->>", "on Spark write get_json_object(text, '$.a')"),
    "similarto glob": ("this comparison of texts", "write text LIKE 'a%', or text RLIKE '^a'"),
    "into": ("INTO", "declare t with CREATE TABLE t USING …, and write INSERT INTO t SELECT …"),
    "primarykeycolumnconstraint primarykey": (
        "PRIMARY KEY",
        "write it in the table's OPTIONS, as a promise of the source: uniqueIds 'id'",
    ),
    "values": ("VALUES", "a query reads streams: write SELECT … FROM s"),
    "cross_apply": ("CROSS APPLY", ONE_FOR_ONE),
    "hints withtablehint": ("WITH (…) after a table", "leave it out"),
    "lateral": ("LATERAL", ONE_FOR_ONE),
    "unnest": ("UNNEST", ONE_FOR_ONE),
    "attimezone": ("AT TIME ZONE", "write from_utc_timestamp(ts, 'Europe/Berlin')"),
    "aliases": ("AS with several names", ONE_FOR_ONE),
    "lock locks": ("FOR UPDATE", "leave it out"),
    "db": ("a table name with a database", "name a table that the query declares"),
    "version when": ("a table as of another time here", f"join it; {VERSIONS}"),
    "placeholder parameter": ("a parameter", "variables are written ${NAME}"),
    "limit_options": ("LIMIT with PERCENT or WITH TIES", "write LIMIT 10, or QUALIFY rank() OVER (ORDER BY v) <= 10"),
    "propertyeq": ("the operator :=", "write named_struct('a', 1)"),
    "regexpilike": ("the operator ~*", "write lower(text) RLIKE '^a'"),
    "slice": ("[a:b]", "on Spark write slice(tags, 1, 2), which has the place and the number of elements"),
    "symmetric": ("BETWEEN SYMMETRIC", "write v BETWEEN least(a, b) AND greatest(a, b)"),
    "replace rename": ("* with REPLACE or RENAME", "write SELECT * EXCEPT (v), v + 1 AS v"),
    "ilike": ("* with ILIKE", "list the columns"),
    "overlaps": ("OVERLAPS", "write a.begin < b.end AND b.begin < a.end"),
    "national": ("N'…'", "leave N out: a string has any characters"),
    "totals": ("WITH TOTALS", "write the whole as another query"),
    "withfill with_fill": ("WITH FILL", "leave it out: a result has the rows that there are"),
    "connect prior": ("CONNECT BY", "join the table with itself, once for each level"),
    "exclude": ("EXCLUDE in a window", "take the value of the row from the result of OVER"),
    "strtodate strtotime": ("CAST with a FORMAT", "write to_date(text, 'yyyy-MM-dd'), or to_timestamp(text, …)"),
    "jsonbextract": ("the operator #>", "on Spark write get_json_object(text, '$.a.b')"),
}
_NAMES = {key: refused for keys, refused in _PARTS.items() for key in keys.split()}


def refusal(part: exp.Expr | str) -> tuple[str, str | None]:
    """The message for an unsupported part, and a hint; a part is a node, or the name of a node's argument.

    >>> refusal("limit")[0]
    'LIMIT is not supported'
    """
    key = part if isinstance(part, str) else part.key
    name, hint = _NAMES.get(key.lower(), (key.replace("_", " ").strip().upper(), None))
    if key.startswith("primarykey") and isinstance(part, exp.Expr):
        columns = [column.name for column in part.expressions] or [part.parent.parent.name]  # type: ignore[union-attr]
        hint = _UNIQUE.format(", ".join(columns))
    return f"{name} is not supported", hint


_UNIQUE = "write it in the table's OPTIONS, as a promise of the source: uniqueIds '{}'"


def place_in_query(part: exp.Expr | str, node: exp.Expr, text: QueryText) -> int:
    """Offset of a refused part: of its keyword, if that is near its first leaf."""
    if isinstance(part, exp.Window):
        return offset(part) or 0  # its keyword follows the function
    inner = node.args.get(part) if isinstance(part, str) else part
    inner = inner[0] if isinstance(inner, list) and inner else inner
    name = refusal(part)[0].split(" is not")[0]
    keyword = re.compile(rf"\b{re.escape(name.split()[0])}\b", re.IGNORECASE) if name[:1].isupper() else None
    if isinstance(part, exp.SetOperation) or (isinstance(node, exp.SetOperation) and part == "by_name"):
        # The keyword is between the sides.
        return _after(node.this, keyword, text)
    if isinstance(part, exp.Hint) and node.parent is not None:
        inner = node.parent.expressions[0]  # a hint is parsed separately, with offsets of its own
    at = offset(inner) if isinstance(inner, exp.Expr) else offset(node)
    if at is not None:
        before = list(keyword.finditer(text.text[: at + 1])) if keyword else []
        return before[-1].start() if before else at
    around: exp.Expr | None = node
    while around is not None and offset(around) is None:
        around = around.parent
    return len(text.text) if around is None else _after(around, keyword, text)


def _after(tree: exp.Expr, keyword: re.Pattern[str] | None, text: QueryText) -> int:
    """Offset of the first keyword after a tree, else within it, else of the tree itself."""
    begin = offset(tree) or 0
    starts = [node.meta["start"] for node in tree.walk() if "start" in node.meta]
    found = None
    if keyword is not None:
        found = keyword.search(text.text, max(starts)) or keyword.search(text.text, begin)
    return found.start() if found else begin


def purge_strategy_of(hint: exp.Expr) -> PurgeStrategy | None:
    """The purge strategy that a hint of a SELECT requests; None for any other hint."""
    if len(hint.expressions) != 1:
        return None
    match hint.expressions[0]:
        case exp.Var(this=str(name)):
            every = None
        case exp.Anonymous(this=str(name), expressions=[number]) if every := whole_number(number):
            pass
        case _:
            return None
    match name.upper():
        case "LAZY_PURGE":
            return strategy_named("lazy", every)
        case "EAGER_PURGE" if every is None:
            return strategy_named("eager")
    return None
