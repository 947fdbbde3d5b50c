"""Allow-list of SQL: the parts of a tree that a query may use, and where. All other parts are refused by name.

`_ALLOWED` lists the parts of each kind of node, `_PLACES` the rules that depend on the place: test, message and hint.
No part is ignored silently: a clause that is parsed but not listed here, such as OFFSET, stops the query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from sqlglot import exp

from xmlstream.operators.expressions.dialect import call_name, type_text
from xmlstream.operators.expressions.duration import OWN
from xmlstream.operators.expressions.type_rules import whole_number
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.refused.refusals import A_BOUND, IN_A_SUBQUERY, LAST_ROWS, place_in_query, purge_strategy_of, refusal
from xmlstream.sql.refused.subquery_places import READS, SUBQUERY_PLACES, Place, is_before_in
from xmlstream.sql.spark.functions import (
    AGGREGATES,
    IN_ORDER,
    OF_SETS,
    RANKS,
    function_of,
    is_collected_in_order,
    looks_around,
    reason_to_refuse_call,
)

_TWO = "this expression"
_PART_OF = "order limit offset"
_QUERIES: dict[type[exp.Expr], str] = {
    exp.Select: "hint expressions from_ where group having distinct with_ kind joins laterals qualify " + _PART_OF,
    **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), "this expression distinct with_ " + _PART_OF),
    exp.Join: "this side kind method on using match_condition",
    # `_PLACES` refuses all but views of an array's elements.
    exp.Lateral: "this view outer alias",
    exp.Ordered: "this desc nulls_first",
    exp.Limit: "expression expressions",
    exp.Offset: "expression",
    # `_PLACES` refuses all but ranks and functions over rows around.
    exp.Window: "this partition_by order over alias spec first",
    exp.WindowSpec: "kind start start_side end end_side",
    exp.Subquery: "this alias with_ joins",
    exp.TableAlias: "this columns",
    exp.Star: "except_",
    exp.Table: "this alias joins version",
    # `_PLACES` refuses all but those of a joined table.
    exp.Version: "this expression kind",
    **dict.fromkeys((exp.CTE, exp.Alias), "this alias"),
    **dict.fromkeys((exp.From, exp.Where, exp.Having, exp.Qualify), "this"),
    # `_PLACES` refuses all but purge hints.
    **dict.fromkeys((exp.With, exp.Distinct, exp.Hint), "expressions"),
    exp.Group: "expressions all rollup cube grouping_sets",
    **dict.fromkeys((exp.Rollup, exp.Cube, exp.GroupingSets), "expressions"),
    exp.Order: "this expressions",
}

_SCALARS: dict[type[exp.Expr], str] = {
    exp.Null: "",
    exp.Column: "this table db catalog",
    exp.Identifier: "this quoted",
    exp.Literal: "this is_string",
    exp.Cast: "this to",
    exp.TryCast: "this to safe",
    exp.DataType: "this expressions nested values",
    exp.ColumnDef: "this kind",
    exp.Interval: "this unit",
    exp.Case: "this ifs default",
    exp.If: "this true false",
    exp.Between: "this low high",
    exp.Trim: "this expression position",
    exp.Substring: "this start length",
    exp.StrPosition: "this substr",
    exp.Overlay: "this expression from_ for_",
    **dict.fromkeys((exp.Like, exp.ILike), "this expression negate"),
    **dict.fromkeys((exp.Anonymous, exp.Bracket), "this expressions"),
    exp.In: "this expressions query",
    **dict.fromkeys((exp.Tuple, exp.Concat), "expressions"),
    **dict.fromkeys(
        (
            *(exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.And, exp.Or),
            *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift),
            *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is),
            *(exp.Filter, exp.Dot, exp.IntervalSpan, exp.RegexpLike, exp.Escape, exp.Extract),
        ),
        _TWO,
    ),
    # sqlglot's notes on how other dialects compute them have no effect here.
    **dict.fromkeys((exp.Div, exp.Mod, exp.DPipe), _TWO + " safe typed"),
    **dict.fromkeys(
        (
            *(exp.RawString, exp.HexString, exp.Boolean, exp.Paren, exp.DataTypeParam, exp.Var),
            *(exp.Any, exp.All, exp.Exists, exp.Not, exp.Neg, exp.BitwiseNot),
        ),
        "this",
    ),
}
_ALLOWED = {kind: frozenset(parts.split()) for kind, parts in (_QUERIES | _SCALARS).items()}


def _outside(*kinds: type[exp.Expr]) -> Callable[[exp.Expr], bool]:
    """Test whether a node's parent is none of these kinds."""
    return lambda node: not isinstance(node.parent, kinds)


def _counts_all(node: exp.Expr | None) -> bool:
    return node is not None and call_name(node) == "count" and len(node.expressions) == 1


def _is_aggregate_call(node: exp.Expr | None) -> bool:
    return call_name(node) in AGGREGATES or is_collected_in_order(node)


def _only_sorts(order: exp.Expr) -> bool:
    """Whether ORDER BY sorts a query within another, and selects no tuples by LIMIT or OVER."""
    query = order.parent
    if query is None or query.parent is None or isinstance(query, exp.Anonymous):
        return False
    return not (isinstance(query, exp.Window) or query.args.get("limit") or query.args.get("offset"))


def _follows_comma(view: exp.Expr) -> bool:
    """Whether LATERAL VIEW follows tables without ON and without USING."""
    joins = view.parent.args.get("joins") if view.parent is not None else None
    return any(not any(join.args.get(part) for part in ("on", "using", "method")) for join in joins or ())


def _is_of_join(version: exp.Expr) -> bool:
    """Whether a table FOR SYSTEM_TIME AS OF a time stands on the right of a join, inner or left."""
    join = version.parent.parent if version.parent is not None else None
    if not isinstance(join, exp.Join) or str(version.args.get("kind")).upper() != "AS OF":
        return False
    return join.kind.upper() in ("", "INNER", "OUTER") and join.side.upper() in ("", "LEFT")


def _is_rank(window: exp.Expr) -> bool:
    """Whether the window is a rank with ORDER BY and without a frame."""
    is_known = call_name(window.this) in RANKS and not window.this.expressions and bool(window.args.get("order"))
    return is_known and not any(window.args.get(part) for part in ("alias", "spec", "first"))


def _is_selected(window: exp.Expr) -> bool:
    """Whether the window is an item of a SELECT, with or without a name, or is in QUALIFY."""
    item = window.parent if isinstance(window.parent, exp.Alias) else window
    is_item = isinstance(item.parent, exp.Select)
    return is_item or isinstance(window.find_ancestor(exp.Qualify, exp.Query), exp.Qualify)


def _is_in_items(window: exp.Expr) -> bool:
    """Whether the window is part of an item of a SELECT, outside of other functions over rows."""
    below, above = window, window.parent
    while above is not None and not isinstance(above, exp.Query | exp.Window):
        below, above = above, above.parent
    return isinstance(above, exp.Select) and below.arg_key == "expressions"


def _cuts_below(call: exp.Expr) -> bool:
    """Whether the call is a time window outside of SELECT, GROUP BY and HAVING."""
    if call_name(call) not in ("window", "session_window"):
        return False
    clause = call.find_ancestor(exp.Where, exp.Join, exp.Order, exp.Window, exp.Lateral, exp.Qualify, exp.Select)
    return not isinstance(clause, exp.Select)


def _counts_from_1970(call: exp.Expr) -> bool:
    """Whether the call is Flink's conversion of a number to a moment: TO_TIMESTAMP_LTZ(n, 3)."""
    given = call.expressions
    return call_name(call) == "to_timestamp_ltz" and len(given) == 2 and not getattr(given[1], "is_string", True)


def _means_today(node: exp.Expr) -> bool:
    """Whether the string may be one that Spark reads as the current time."""
    is_cast = node.is_string and isinstance(node.parent, exp.Cast | exp.TryCast | exp.Anonymous)
    return is_cast and str(node.this).strip().lower() in ("now", "today", "yesterday", "tomorrow")


def _compares_with_null(comparison: exp.Expr) -> bool:
    return any(isinstance(side.unnest(), exp.Null) for side in (comparison.this, comparison.expression))


_STAR = ("* is not supported here", "* is supported alone in SELECT, and in count(*)")
_PLACES: tuple[Place, ...] = (
    (
        exp.Table,
        lambda node: not isinstance(node.parent, (*READS, exp.Into)),
        "TABLE is not supported here",
        "write the table after FROM or JOIN",
    ),
    (exp.Version, lambda node: not _is_of_join(node), *refusal("version")),
    (
        exp.Order,
        lambda node: isinstance(node.parent, exp.Anonymous),
        "ORDER BY within an aggregate is not supported",
        "structures are sorted by their first field: write sort_array(collect_list(named_struct('ts', ts, 'v', v)))",
    ),
    (
        exp.Ordered,
        lambda node: isinstance(node.this, exp.Var),
        "ORDER BY ALL is not supported",
        "name what to sort by: ORDER BY k, v",
    ),
    (exp.Order, _only_sorts, "ORDER BY is not supported here", refusal("order")[1]),
    (
        exp.Limit,
        lambda node: bool(node.expressions),
        "LIMIT … BY is not supported",
        "write QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts) <= 3",
    ),
    (
        exp.Limit,
        lambda node: not whole_number(node.expression),
        "LIMIT is supported only with a number above 0",
        "write LIMIT 10",
    ),
    (
        exp.Offset,
        lambda node: whole_number(node.expression) is None,
        "OFFSET is supported only with a number",
        "write OFFSET 10",
    ),
    (exp.Lateral, lambda node: not node.args.get("view"), *refusal("lateral")),
    (
        exp.Lateral,
        lambda node: (
            bool(node.args.get("view"))
            and not (call_name(node.this) in ("explode", "explode_outer") and len(node.this.expressions) == 1)
        ),
        "LATERAL VIEW is supported only with explode(…)",
        refusal("lateral")[1],
    ),
    (exp.Lateral, _follows_comma, "LATERAL VIEW after a comma is not supported", "write JOIN … ON"),
    (
        exp.Window,
        lambda node: function_of(node) in IN_ORDER and not node.args.get("order"),
        "OVER is not supported without ORDER BY",
        f"write ORDER BY in OVER (…); {LAST_ROWS}",
    ),
    (
        exp.Window,
        lambda node: any(isinstance(given, exp.Distinct) for given in node.this.args.get("expressions") or ()),
        "DISTINCT beside OVER is not supported",
        "join the group: … FROM s JOIN (SELECT sid, count(DISTINCT v) AS n FROM s GROUP BY sid) AS g USING (sid)",
    ),
    (exp.Window, lambda node: isinstance(node.this, exp.IgnoreNulls), *refusal("ignorenulls")),
    (
        exp.Window,
        lambda node: isinstance(node.this, exp.Filter),
        "FILTER before OVER is not supported",
        "write the condition into the aggregate: sum(IF(v > 1, v, NULL)) OVER (…), count(IF(v > 1, 1, NULL)) OVER (…)",
    ),
    (
        exp.Window,
        lambda node: (
            function_of(node) == "ntile"
            and not all((whole_number(each) or 0) > 0 for each in node.this.expressions or [node])
        ),
        "ntile is supported only with a number above 0",
        "write ntile(4) OVER (…)",
    ),
    (exp.Window, lambda node: not (_is_rank(node) or looks_around(node)), *refusal("window")),
    (
        exp.Window,
        lambda node: _is_rank(node) and not (_is_selected(node) or _is_in_items(node)),
        "OVER is not supported here",
        A_BOUND,
    ),
    (
        exp.Window,
        lambda node: looks_around(node) and not _is_in_items(node),
        "OVER is not supported here",
        IN_A_SUBQUERY,
    ),
    (
        exp.Anonymous,
        _cuts_below,
        "a time window is not supported here",
        "SELECT window(…) AS w in a subquery, and use w.start and w.end",
    ),
    (
        exp.Anonymous,
        _counts_from_1970,
        "TO_TIMESTAMP_LTZ of a number is not supported",
        "write timestamp_millis(n) for precision 3, timestamp_seconds(n) for precision 0",
    ),
    (exp.Hint, lambda node: purge_strategy_of(node) is None, *refusal("hint")),
    (exp.Select, lambda node: bool(node.args.get("kind")), "SELECT AS is not supported", None),
    (exp.Select, lambda node: not node.expressions, "SELECT without an item", None),
    (
        exp.Select,
        lambda node: node.args.get("from_") is None,
        "SELECT without FROM is not supported",
        "a query reads streams",
    ),
    (exp.Star, lambda node: not (isinstance(node.parent, exp.Select | exp.Column) or _counts_all(node.parent)), *_STAR),
    (exp.Column, lambda node: isinstance(node.this, exp.Star) and not isinstance(node.parent, exp.Select), *_STAR),
    (
        exp.Distinct,
        lambda node: not (isinstance(node.parent, exp.Select) or _is_aggregate_call(node.parent)),
        "DISTINCT is not supported here",
        None,
    ),
    (
        exp.Extract,
        lambda node: node.name.lower() == "epoch",
        "EXTRACT(EPOCH …) is not supported",
        "write unix_seconds(ts)",
    ),
    (
        exp.Dot,
        lambda node: not isinstance(node.expression, exp.Identifier),
        "a call after a dot is not supported",
        "write the value as an argument, as in upper(text)",
    ),
    (exp.Filter, lambda node: not _is_aggregate_call(node.this), "FILTER belongs to an aggregate", None),
    (exp.Alias, _outside(exp.Select), "AS is not supported inside an expression", None),
    (exp.ColumnDef, _outside(exp.DataType), "a column's definition is not supported here", None),
    (
        exp.Tuple,
        lambda node: not node.expressions and isinstance(node.parent, exp.Group),
        "GROUP BY () is not supported",
        "leave it out: aggregates without GROUP BY are those of all rows",
    ),
    (
        exp.Tuple,
        lambda node: not (isinstance(node.parent, (exp.Any, exp.All, *OF_SETS)) or is_before_in(node)),
        "several values in parentheses, as in (a, b), are not supported here",
        "write them one by one, or as named_struct('a', a, 'b', b)",
    ),
    (
        exp.Any,
        _outside(exp.Like, exp.ILike),
        "ANY is not supported",
        "= ANY (SELECT …) is supported; else use bool_or(v > 1), array_contains(tags, 'a') or (SELECT max(…) FROM …)",
    ),
    (exp.All, _outside(exp.Like, exp.ILike), "ALL is not supported", "compare with (SELECT max(…) FROM …) or min"),
    *(
        (kind, _compares_with_null, f"{sign} NULL is never true", f"write IS {negation}NULL")
        for kind, sign, negation in (
            *((exp.EQ, "=", ""), (exp.NEQ, "<>", "NOT ")),
            *((exp.LT, "<", ""), (exp.LTE, "<=", ""), (exp.GT, ">", ""), (exp.GTE, ">=", "")),
        )
    ),
    (exp.Literal, _means_today, "a string that means the current time is not supported", "write current_timestamp()"),
)
"""Rules that depend on the place: kind of node, test for a wrong place, message and hint."""

_PLACES_OF, _SUBQUERY_PLACES_OF = (
    {kind: [place for place in places if issubclass(kind, place[0])] for kind in _ALLOWED}
    for places in (_PLACES, SUBQUERY_PLACES)
)

_TYPES = {
    *(exp.DType.TEXT, exp.DType.BINARY, exp.DType.BOOLEAN, exp.DType.DATE),
    *(exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
    *(exp.DType.DECIMAL, exp.DType.FLOAT, exp.DType.DOUBLE),
    *(exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ),
    *(exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT),
}
_MOMENTS = {exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ}
_MICROS = 6
"""The digits behind a TIMESTAMP's seconds."""
_TEXTS = {exp.DType.CHAR, exp.DType.VARCHAR}


def require_supported(tree: exp.Expr, text: QueryText) -> None:
    """Checks that the query uses supported parts of SQL only.

    Raises:
        QueryError: It uses an unsupported part; the error is the first one in the text, possibly with a hint.
    """
    findings: list[tuple[int, str, str | None]] = []
    for node in tree.walk(prune=lambda part: isinstance(part, exp.Hint)):
        findings += [(place_in_query(found, node, text), what, hint) for found, what, hint in _findings(node)]
        findings += _quoted_as_a_text(node, text)
    if findings:
        at, what, hint = min(findings, key=lambda finding: (finding[0], finding[1].startswith("WITHIN")))
        raise text.error(what, at if at < len(text.text) else None, hint)


def _quoted_as_a_text(node: exp.Expr, text: QueryText) -> list[tuple[int, str, str | None]]:
    """Findings about a name in the quotes of a string, as PostgreSQL writes names."""
    at = node.meta.get("start")
    if not isinstance(node, exp.Identifier) or at is None or (quote := text.text[at : at + 1]) not in ("'", '"'):
        return []
    return [(at, f"{quote}{node.name}{quote} is a string, not a name", f"write `{node.name}`")]


def require_types(columns: Iterable[exp.Expr], text: QueryText) -> None:
    """Checks that the columns' types are supported, and have Spark's names, which sqlglot does not confuse with others.

    VARCHAR(n) and CHAR(n) become STRING, which Spark reads them as, too; TIMESTAMP(3) becomes TIMESTAMP: its values
    keep all the digits that they have, up to microseconds.

    Raises:
        QueryError: A type is not supported.
    """
    for column in columns:
        kind: exp.DataType = column.args["kind"]
        for type_ in list(kind.find_all(exp.DataType)):
            if type_.this in _TEXTS:
                type_.set("this", exp.DType.TEXT)
                type_.set("expressions", [])
            if type_.this in _MOMENTS and all(int(part.name) <= _MICROS for part in type_.expressions):
                type_.set("expressions", [])
        if (found := _type_finding(kind)) is not None:
            raise text.error(found[0], column, found[1])


_INSTEAD = {
    **dict.fromkeys(("CHAR", "VARCHAR", "TEXT", "UUID", "JSON", "TIME"), "use STRING"),
    **dict.fromkeys(("DATETIME", "DATETIME2", "TIMESTAMPTZ", "SMALLDATETIME"), "use TIMESTAMP, or TIMESTAMP_NTZ"),
    **dict.fromkeys(("MONEY", "SMALLMONEY"), "use DECIMAL(18, 2)"),
    **dict.fromkeys(("SERIAL", "BIGSERIAL", "UINT", "UBIGINT"), "use BIGINT"),
}
"""Types of other engines, and what to declare."""


def _type_finding(type_: exp.DataType) -> tuple[str, str | None] | None:
    for part in type_.find_all(exp.DataType):
        kind = part.this
        if kind not in _TYPES or (kind == exp.DType.TEXT and part.expressions):
            name = kind.value if isinstance(kind, exp.DType) else str(kind)
            return f"the type {name} is not supported", _INSTEAD.get(name)
        digits = [int(number.name) for number in part.expressions] if kind == exp.DType.DECIMAL else []
        if digits and not (1 <= digits[0] <= 38 and digits[-1] <= digits[0]):
            hint = "a DECIMAL has 1 to 38 digits, and its scale is not above that number"
            return f"{type_text(part)} is not a type", hint
        if kind in _MOMENTS and part.expressions:
            return "a TIMESTAMP with a precision is not supported", "leave the precision out: it has microseconds"
    return None


_PATTERNED = (
    *("date_format", "from_unixtime", "to_char", "to_varchar", "to_unix_timestamp", "unix_timestamp"),
    *("to_date", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "try_to_date", "try_to_timestamp"),
)
_STRFTIME = (
    "Y=yyyy y=yy m=MM d=dd e=d H=HH k=H I=hh h=hh M=mm i=mm S=ss s=ss f=SSSSSS p=a b=MMM B=MMMM a=E A=EEEE j=DDD z=xx"
    " F=yyyy-MM-dd T=HH:mm:ss"
)
_POSTGRESQL = (
    "YYYY=yyyy YY=yy MM=MM MON=MMM MONTH=MMMM DD=dd DY=E DAY=EEEE HH24=HH HH12=hh HH=hh MI=mm SS=ss MS=SSS US=SSSSSS"
    " AM=a PM=a"
)
_OF_STRFTIME, _OF_POSTGRESQL = (dict(sign.split("=") for sign in signs.split()) for signs in (_STRFTIME, _POSTGRESQL))
"""Signs of other patterns of moments, those of Oracle too, and Spark's for them."""


def _pattern_meant(call: exp.Anonymous) -> str | None:
    """Spark's pattern for one of strftime, PostgreSQL or Oracle, as a string is written; None for any other."""
    given = call.expressions
    if call_name(call) not in _PATTERNED or len(given) != 2 or not given[1].is_string:
        return None
    written = given[1].name
    if re.search("%-?[A-Za-z]", written):
        signs, sign = _OF_STRFTIME, "%-?([A-Za-z])"
    elif re.search("YY|HH24|HH12|MI", written):
        signs, sign = _OF_POSTGRESQL, f"({'|'.join(sorted(_OF_POSTGRESQL, reverse=True))})"
    else:
        return None
    parts = re.findall(f"{sign}|([A-Za-z]+?(?=%|[^A-Za-z]|$))|(.)", written)
    return "".join(other or (f"''{word}''" if word else signs.get(name, name)) for name, word, other in parts)


def _findings(node: exp.Expr) -> list[tuple[exp.Expr | str, str, str | None]]:
    """Findings about a node: the node or the name of its part, the message and a hint."""
    kind = type(node)
    if kind not in _ALLOWED:
        return [(node, *refusal(node))]
    found: list[tuple[exp.Expr | str, str, str | None]]
    found = [(name, *refusal(name)) for name, value in node.args.items() if value and name not in _ALLOWED[kind]]
    places = _PLACES_OF[kind]
    if not (isinstance(node, exp.Query) and isinstance(node.parent, READS)):
        places = [*_SUBQUERY_PLACES_OF[kind], *places]
    found += [(node, what, hint) for _, is_misplaced, what, hint in places if is_misplaced(node)]
    if isinstance(node, exp.Anonymous) and (meant := _pattern_meant(node)) is not None:
        pattern = node.expressions[1]
        found.append((pattern, f"'{pattern.name}' is not a pattern of {call_name(node)}", f"write '{meant}'"))
    if isinstance(node, exp.Cast):
        refused = None if OWN in node.meta else _type_finding(node.args["to"])
    else:
        refused = reason_to_refuse_call(node) if isinstance(node, exp.Anonymous) else None
    return found if refused is None else [*found, (node, *refused)]
