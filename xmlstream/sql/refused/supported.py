"""The allow-list of SQL: which parts of a tree a query may use. Whatever is not on it is refused by name.

Nothing is ever left out silently: a clause that is parsed and not listed here, such as OFFSET, stops the query.
"""

from __future__ import annotations

from sqlglot import exp

from operators.expressions.dialect import type_text
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.refused.refusals import called, misplaced, place_of
from xmlstream.sql.spark.functions import is_collected_in_order, is_ordered_collection, reason_to_refuse

_QUERIES: dict[type[exp.Expr], str] = {
    exp.Select: "hint expressions from_ where group having distinct with_ kind joins laterals order limit qualify",
    exp.Union: "this expression distinct with_ order limit",
    exp.Intersect: "this expression distinct with_ order limit",
    exp.Except: "this expression distinct with_ order limit",
    exp.Join: "this side kind on using match_condition",
    # Refused where it stands, unless it is a view of an array's elements.
    exp.Lateral: "this view outer alias",
    exp.Order: "expressions",
    exp.Ordered: "this desc nulls_first",
    exp.Limit: "expression",
    exp.Qualify: "this",
    # Refused where it stands, unless it is a rank or looks back.
    exp.Window: "this partition_by order over alias spec first",
    exp.WindowSpec: "kind start start_side end end_side",
    exp.Subquery: "this alias with_",
    exp.With: "expressions",
    exp.CTE: "this alias",
    exp.From: "this",
    exp.Table: "this alias",
    exp.TableAlias: "this columns",
    exp.Where: "this",
    exp.Group: "expressions",
    exp.Having: "this",
    exp.Alias: "this alias",
    exp.Star: "except_",
    exp.Distinct: "expressions",
    # Refused where it stands, unless it says how to purge.
    exp.Hint: "expressions",
}

_TWO = "this expression"
_SCALARS: dict[type[exp.Expr], str] = {
    exp.Column: "this table db catalog",
    exp.Identifier: "this quoted",
    exp.Literal: "this is_string",
    exp.RawString: "this",
    exp.HexString: "this",
    exp.Boolean: "this",
    exp.Null: "",
    exp.Paren: "this",
    exp.Anonymous: "this expressions",
    exp.Filter: _TWO,
    exp.Dot: _TWO,
    exp.Bracket: "this expressions",
    exp.Cast: "this to",
    exp.TryCast: "this to safe",
    exp.DataType: "this expressions nested values",
    exp.DataTypeParam: "this",
    exp.ColumnDef: "this kind",
    exp.Interval: "this unit",
    exp.IntervalSpan: _TWO,
    exp.Var: "this",
    exp.Case: "this ifs default",
    exp.If: "this true false",
    exp.Between: "this low high",
    exp.In: "this expressions",
    exp.Like: "this expression negate",
    exp.ILike: "this expression negate",
    exp.RegexpLike: "this expression",
    exp.Escape: _TWO,
    exp.Any: "this",
    exp.All: "this",
    exp.Tuple: "expressions",
    exp.Concat: "expressions",
    exp.Extract: _TWO,
    exp.Trim: "this expression position",
    exp.Substring: "this start length",
    exp.StrPosition: "this substr",
    exp.Overlay: "this expression from_ for_",
    **dict.fromkeys(
        (
            *(exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.And, exp.Or),
            *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift),
            *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is),
        ),
        _TWO,
    ),
    # How sqlglot would compute them elsewhere is no matter here.
    **dict.fromkeys((exp.Div, exp.Mod, exp.DPipe), _TWO + " safe typed"),
    **dict.fromkeys((exp.Not, exp.Neg, exp.BitwiseNot), "this"),
}
_ALLOWED = {kind: frozenset(parts.split()) for kind, parts in (_QUERIES | _SCALARS).items()}


_TYPES = {
    *(exp.DType.TEXT, exp.DType.BINARY, exp.DType.BOOLEAN, exp.DType.DATE),
    *(exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
    *(exp.DType.DECIMAL, exp.DType.FLOAT, exp.DType.DOUBLE),
    *(exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ),
    *(exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT),
}
_MOMENTS = {exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ}
_TEXTS = {exp.DType.CHAR, exp.DType.VARCHAR}


def require_supported(tree: exp.Expr, text: QueryText) -> None:
    """Makes sure that the query uses nothing but what is supported.

    Raises:
        QueryError: It does; says what, where and perhaps what to write instead. The first place counts.
    """
    findings: list[tuple[int, str, str | None]] = []
    for node in tree.walk(prune=lambda part: isinstance(part, exp.Hint)):
        findings += [(place_of(found, node, text), what, hint) for found, what, hint in _findings(node)]
        findings += _quoted_as_a_text(node, text)
    if findings:
        at, what, hint = min(findings, key=lambda finding: finding[0])
        raise text.error(what, at if at < len(text.text) else None, hint)


def _quoted_as_a_text(node: exp.Expr, text: QueryText) -> list[tuple[int, str, str | None]]:
    """What is wrong with a name in the quotes of a text, as PostgreSQL writes names."""
    at = node.meta.get("start")
    if not isinstance(node, exp.Identifier) or at is None or (quote := text.text[at : at + 1]) not in ("'", '"'):
        return []
    return [(at, f"{quote}{node.name}{quote} is a text, and no name", f"write `{node.name}`")]


def require_type(type_: exp.DataType, text: QueryText, at: int | None) -> None:
    """Makes sure that it is a type by its own name in Spark, which sqlglot does not take for another.

    A VARCHAR(n) or CHAR(n) becomes a STRING, which it is to whoever reads it in Spark, too.

    Raises:
        QueryError: It is not.
    """
    for text_type in [part for part in type_.find_all(exp.DataType) if part.this in _TEXTS and part.expressions]:
        text_type.set("this", exp.DType.TEXT)
        text_type.set("expressions", [])
    if (found := _type_finding(type_)) is not None:
        raise text.error(*(found[0], at, found[1]))


def _type_finding(type_: exp.DataType) -> tuple[str, str | None] | None:
    for part in type_.find_all(exp.DataType):
        kind = part.this
        if kind not in _TYPES or (kind == exp.DType.TEXT and part.expressions):
            name = kind.value if isinstance(kind, exp.DType) else str(kind)
            hint = "use STRING" if name in ("CHAR", "VARCHAR", "TEXT", "UUID") else None
            return f"the type {name} is not supported", hint
        if kind == exp.DType.DECIMAL and not _is_decimal([int(digits.name) for digits in part.expressions]):
            return f"{type_text(part)} is no type", "a DECIMAL has 1 to 38 digits, and no more of them behind the point"
        if kind in _MOMENTS and part.expressions:
            return "a TIMESTAMP with a precision is not supported", "leave the precision out: it has microseconds"
    return None


def _is_decimal(digits: list[int]) -> bool:
    return not digits or (1 <= digits[0] <= 38 and all(scale <= digits[0] for scale in digits[1:]))


def _findings(node: exp.Expr) -> list[tuple[exp.Expr | str, str, str | None]]:
    allowed = _ALLOWED.get(type(node))
    if allowed is None:
        return [(node, *called(node))]
    found: list[tuple[exp.Expr | str, str, str | None]]
    found = [(name, *called(name)) for name, value in node.args.items() if value and name not in allowed]
    found += [(node, what, hint) for what, hint in (*misplaced(node), *_refused(node))]
    return found


def _refused(node: exp.Expr) -> list[tuple[str, str | None]]:
    """Types and functions that are not supported."""
    refused: tuple[str, str | None] | None = None
    if isinstance(node, exp.Cast | exp.TryCast):
        refused = _type_finding(node.args["to"])
    elif is_ordered_collection(node) or is_collected_in_order(node):
        refused = None
    elif isinstance(node, exp.Anonymous) and not isinstance(node.parent, exp.Window | exp.Lateral):
        refused = reason_to_refuse(str(node.this), len(node.expressions))
    return [refused] if refused else []
