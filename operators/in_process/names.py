"""The names that Spark gives to columns of expressions without an alias.

A name is the expression written anew, in a form of Spark's: `a + 1` is named `(a + 1)`, `COUNT(*)` is `count(1)`. Forms
whose name is not known are refused; their author can name them with AS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from xmlstream.operators.expressions.dialect import call_name, parsed, type_text
from xmlstream.operators.expressions.operations.aggregate_functions import AGGREGATES
from xmlstream.operators.expressions.operations.functions import CASTS, FUNCTIONS
from xmlstream.operators.expressions.operations.python_functions import known_by
from xmlstream.operators.expressions.operations.spark_type import NotProven, read_type
from xmlstream.operators.in_process.expressions import Columns


def default_name(text: str, columns: Columns) -> str:
    """Spark's name of the column of an expression; of an aliased one, its alias.

    >>> [default_name(text, {}) for text in ("COUNT(*)", "a +1", "max(b.c)", "CAST(x AS INT)", "a <> 'b'", "n AS m")]
    ['count(1)', '(a + 1)', 'max(b.c)', 'x', '(NOT (a = b))', 'm']

    Raises:
        NotProven: The name is not known.
    """
    tree = parsed(text)
    if tree is None:
        raise NotProven(f"the expression {text}")
    if isinstance(tree, exp.Alias):
        return tree.alias
    bare = tree.unnest()
    if isinstance(bare, exp.Cast) and isinstance(bare.this, exp.Column):
        return bare.this.name
    if isinstance(bare, exp.Dot) and _is_path(bare):
        return str(bare.expression.name)
    return _name(bare)


def _is_path(tree: exp.Expr) -> bool:
    """Whether it is a column, or a field of one."""
    return isinstance(tree, exp.Column) or (isinstance(tree, exp.Dot) and _is_path(tree.this))


_BINARY: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>", exp.And: "AND",
    exp.Or: "OR", exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^",
}  # fmt: skip


def _name(tree: exp.Expr) -> str:
    tree = tree.unnest()
    if type(tree) in _BINARY:
        if isinstance(tree, exp.LT | exp.LTE | exp.GT | exp.GTE) and any(map(_is_decimal, tree.iter_expressions())):
            raise NotProven("the name of a comparison with a DECIMAL")  # of an integer, Spark compares with another
        return f"({_name(tree.this)} {_BINARY[type(tree)]} {_name(tree.expression)})"
    for kind in type(tree).__mro__:
        if (how := _FORMS.get(kind)) is not None:
            return how(tree)
    raise NotProven(f"the name of the form {tree.key.upper()}")


def _is_decimal(tree: exp.Expr) -> bool:
    """Whether it is a literal with a point, perhaps with a sign."""
    of = tree.unnest().this if isinstance(tree.unnest(), exp.Neg) else tree.unnest()
    return isinstance(of, exp.Literal) and not of.is_string and "." in str(of.this)


def _names(trees: list[exp.Expr]) -> str:
    return ", ".join(map(_name, trees))


def _literal(tree: exp.Expr) -> str:
    written = str(tree.this)
    if not tree.is_string and not written.isdigit():
        whole, _, rest = written.partition(".")
        if not whole.isdigit() or not rest.isdigit():
            raise NotProven(f"the name of the number {written}")
    return written


def _negative(tree: exp.Expr) -> str:
    is_number = isinstance(tree.this, exp.Literal) and not tree.this.is_string
    return f"-{_name(tree.this)}" if is_number else f"(- {_name(tree.this)})"


def _not(tree: exp.Expr) -> str:
    if isinstance(tree.this, exp.Is) and isinstance(tree.this.expression, exp.Null):
        return f"({_name(tree.this.this)} IS NOT NULL)"
    return f"(NOT {_name(tree.this)})"


def _is(tree: exp.Expr) -> str:
    if not isinstance(tree.expression, exp.Null):
        raise NotProven("the name of IS")
    return f"({_name(tree.this)} IS NULL)"


def _cast(tree: exp.Expr) -> str:
    of = tree.this
    if tree.args.get("safe") or (isinstance(of, exp.Literal) and not (of.is_string and isinstance(tree, exp.TryCast))):
        raise NotProven("the name of a literal with a type")
    if call_name(of.unnest()) == "array" and not of.unnest().expressions:
        raise NotProven("the name of an empty array")
    if isinstance(of, exp.Literal) and tree.args["to"].is_type("decimal"):  # as 1.5BD is read
        raise NotProven("the name of a literal cast to DECIMAL")
    return f"CAST({_name(of)} AS {read_type(type_text(tree.args['to'])).name})"


def _field(tree: exp.Expr) -> str:
    of = _name(tree.this)
    if "collect_" in of:
        raise NotProven("the name of a field of collected values")
    return f"{of}.{tree.expression.name}"


_LONGEST = 2_000


def _case(tree: exp.Expr) -> str:
    of = None if tree.this is None else _name(tree.this)
    if len(of or "") > _LONGEST:
        raise NotProven("the name of a CASE of a long expression")  # which stands in it for each WHEN
    parts = ["CASE"]
    for branch in tree.args["ifs"]:
        test = _name(branch.this) if of is None else f"({of} = {_name(branch.this)})"
        parts.append(f"WHEN {test} THEN {_name(branch.args['true'])}")
    if tree.args.get("default") is not None:
        parts.append(f"ELSE {_name(tree.args['default'])}")
    return " ".join([*parts, "END"])


_COMPLETED = {("split", 2): "-1", ("sort_array", 1): "true", ("round", 1): "0", ("regexp_replace", 3): "1"}
"""What Spark's name has behind the arguments, by the function and their number."""

_COLLECTED = ("collect_set", "collect_list", "sort_array", "arrays_zip")
_SPELT = {"floor": "FLOOR", "ceil": "CEIL", "signum": "SIGNUM", "dateadd": "date_add", "regexp_like": "REGEXP_LIKE",
          "rlike": "RLIKE", "regexp": "REGEXP", "sqrt": "SQRT"}  # fmt: skip
_UNKNOWN = frozenset(("sequence", "date", "to_date", "day", "isnull", "isnotnull", "any", "some", "every"))


def _call(tree: exp.Expr) -> str:
    name, given = call_name(tree), tree.expressions
    if (function := known_by(name)) is not None:
        return f"{function.name}({_names(given)})"
    known = name in FUNCTIONS or name in AGGREGATES or name in _COLLECTED
    if not known or name in _UNKNOWN or name in CASTS:
        raise NotProven(f"the name of {name}")
    if name == "count" and len(given) == 1 and isinstance(given[0], exp.Star):
        return "count(1)"
    if name == "if":
        return f"(IF({_names(given)}))"
    if (name, len(given)) in _COMPLETED:
        return f"{name}({_names(given)}, {_COMPLETED[name, len(given)]})"
    if given and isinstance(given[0], exp.Distinct):
        return f"{name}(DISTINCT {_names(given[0].expressions)})"
    return f"{_SPELT.get(name, name)}({_names(given)})"


_RANKS = {"row_number": "row_number", "rank": "RANK", "dense_rank": "DENSE_RANK"}
_FROM_FIRST = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def _window(tree: exp.Expr) -> str:
    groups, order, spec = tree.args.get("partition_by") or [], tree.args.get("order"), tree.args.get("spec")
    parts = [f"PARTITION BY {_names(groups)}"] if groups else []
    if order is not None:
        parts.append(f"ORDER BY {', '.join(map(_ordered, order.expressions))}")
    if call_name(tree.this) in _RANKS and order is not None:
        parts.append(_FROM_FIRST)
    elif spec is not None:
        parts.append(_frame(spec))
    elif not isinstance(tree.this, exp.Anonymous) or call_name(tree.this) not in AGGREGATES:
        raise NotProven(f"the name of {call_name(tree.this)} OVER")
    else:
        ends = "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        parts.append(ends if order is not None else "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
    of = f"{_RANKS[call_name(tree.this)]}()" if call_name(tree.this) in _RANKS else _name(tree.this)
    return f"{of} OVER ({' '.join(parts)})"


def _ordered(tree: exp.Expr) -> str:
    direction = "DESC" if tree.args.get("desc") else "ASC"
    return f"{_name(tree.this)} {direction} NULLS {'FIRST' if tree.args.get('nulls_first') else 'LAST'}"


def _frame(spec: exp.Expr) -> str:
    ends = []
    for end in ("start", "end"):
        value, side = spec.args.get(end), spec.args.get(f"{end}_side")
        if value in (None, "CURRENT ROW"):
            ends.append("CURRENT ROW")
        elif value == "UNBOUNDED":
            ends.append(f"UNBOUNDED {side}")
        elif side == "FOLLOWING" and isinstance(value, exp.Literal):
            ends.append(f"{value.name} FOLLOWING")
        else:
            raise NotProven("the name of this frame")
    return f"{spec.args['kind']} BETWEEN {ends[0]} AND {ends[1]}"


_FORMS: Mapping[type, Callable[[exp.Expr], str]] = {
    exp.Column: lambda tree: tree.name,
    exp.Dot: _field,
    exp.Literal: _literal,
    exp.Boolean: lambda tree: "true" if tree.this else "false",
    exp.Null: lambda tree: "NULL",
    exp.NEQ: lambda tree: f"(NOT ({_name(tree.this)} = {_name(tree.expression)}))",
    exp.Neg: _negative,
    exp.Not: _not,
    exp.Is: _is,
    exp.In: lambda tree: f"({_name(tree.this)} IN ({_names(tree.expressions)}))",
    exp.Between: lambda tree: f"between({_names([tree.this, tree.args['low'], tree.args['high']])})",
    exp.DPipe: lambda tree: f"concat({_name(tree.this)}, {_name(tree.expression)})",
    exp.RegexpLike: lambda tree: f"RLIKE({_name(tree.this)}, {_name(tree.expression)})",
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Anonymous: _call,
    exp.Window: _window,
    exp.Filter: lambda tree: f"{_name(tree.this)} FILTER (WHERE {_name(tree.expression.this)})",
}
