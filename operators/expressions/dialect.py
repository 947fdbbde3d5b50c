"""Dialect: Spark's SQL read by sqlglot into trees that are printed as they were read.

Out of the box sqlglot knows hundreds of functions and turns them into one another, not always into the same. Here a
call stays a call, so that Spark computes what was written; only the forms with a syntax of their own are read as such.
Nothing else reads or writes SQL, whole queries or the expressions of an operator.

Of a tree this module also finds the attributes that it refers to, and its conjuncts: the parts of a condition that must
all be true. Loggers of libraries are kept silent where what they would log is raised as an error anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from punct_ns.schema import Schema


@contextmanager
def quiet(log: logging.Logger) -> Iterator[None]:
    """Keeps a library from logging what is raised as an error here anyway."""
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


@contextmanager
def quiet_spark() -> Iterator[None]:
    """Keeps PySpark from logging the errors of queries.

    PySpark's logger takes arguments that no other does: were it first asked for as one of Python's, each error of
    Spark's that came later would be a TypeError.
    """
    from pyspark.logger import PySparkLogger

    with quiet(PySparkLogger.getLogger("SQLQueryContextLogger")):
        yield


_READ_SPECIALLY = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY")


_UNITS_FIRST = frozenset({"date_add", "date_diff", "dateadd", "datediff", "timestampadd", "timestampdiff"})
"""Functions whose first argument, where there are three, is a unit of time and no attribute."""

_UNITS = frozenset(
    f"{unit}{plural}".upper()
    for unit in ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
    for plural in ("", "s")
)


class StreamSql(Spark):
    """Spark's dialect with its functions left as they are."""

    class Tokenizer(Spark.Tokenizer):
        """Reads a quote that is doubled as one quote, as Spark has done since version 4."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **Spark.Tokenizer.KEYWORDS,
            "ASOF": TokenType.ASOF,
            "MATCH_CONDITION": TokenType.MATCH_CONDITION,
        }

    class Parser(SparkParser):
        """Reads a call as a call."""

        # A comma stays a comma: to Spark it is not quite what CROSS JOIN is.
        JOINS_HAVE_EQUAL_PRECEDENCE = False
        FUNC_TOKENS: ClassVar[set[TokenType]] = SparkParser.FUNC_TOKENS | {TokenType.SESSION}
        LAMBDAS: ClassVar[dict[TokenType, Any]] = {
            **SparkParser.LAMBDAS,
            TokenType.FARROW: lambda self, names: exp.Kwarg(
                this=exp.var(names[0].name), expression=self._parse_lambda()
            ),
        }
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: SparkParser.FUNCTION_PARSERS[name] for name in _READ_SPECIALLY
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "ANY")
        }

        def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
            """Reads `window` as a name, but where it begins a WINDOW clause."""
            return super().parse(_without_window_keyword(raw_tokens), sql)

        def _match_r_paren(self, expression: exp.Expr | None = None) -> None:
            """Notes where a call ends, so that Spark can be given another one in its place."""
            super()._match_r_paren(expression)
            if isinstance(expression, exp.Anonymous):
                expression.meta["until"] = self._prev.end + 1

        def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
            """Reads an argument, which may be TABLE t, as Flink has it, and notes from where to where it stands."""
            begin = self._curr.start
            is_table = self._next.token_type != TokenType.L_PAREN and self._match(TokenType.TABLE)
            found = self._parse_table_argument() if is_table else super()._parse_lambda(alias)
            if found is not None:
                found.meta["span"] = begin, self._prev.end + 1
            return found

        def _parse_table_argument(self) -> exp.Expr | None:
            table = self._parse_table_parts()
            if table is not None and self._match(TokenType.PARTITION_BY):
                several = self._curr.token_type == TokenType.L_PAREN
                keys = self._parse_wrapped_csv(self._parse_column) if several else [self._parse_column()]
                table.set("partition", exp.Partition(expressions=keys))
            return table

        def _parse_join_parts(self) -> tuple[Token | None, Token | None, Token | None]:
            """Reads LEFT [OUTER] ASOF as Spark has it, a kind of join behind its side."""
            index = self._index
            side = self._prev if self._match(TokenType.LEFT) else None
            self._match(TokenType.OUTER if side else TokenType.INNER)
            if self._match(TokenType.ASOF):
                return None, side, self._prev
            self._retreat(index)
            return super()._parse_join_parts()

    class Generator(SparkGenerator):
        """Writes a query as it was read: QUALIFY, which Spark has, is no subquery, and WITH stays where it is."""

        # Moved to the top, a name would be seen where it was not, and hide a table.
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            kind: write for kind, write in SparkGenerator.TRANSFORMS.items() if kind is not exp.Select
        }


def _without_window_keyword(found: list[Token]) -> list[Token]:
    """The tokens, with a name for each `window` but where it is a keyword, as in WINDOW w AS (…)."""
    kinds = [token.token_type for token in found]
    return [
        Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)
        if token.token_type == TokenType.WINDOW and kinds[i + 2 : i + 4] != [TokenType.ALIAS, TokenType.L_PAREN]
        else token
        for i, token in enumerate(found)
    ]


def render(tree: exp.Expr) -> str:
    """A tree as Spark's SQL, in one form however it was spelt: names quoted, functions in lower case.

    >>> render(expression("MAX( a )+1 + `B`"))
    'max(`a`) + 1 + `B`'
    """
    return tree.sql(dialect=StreamSql, identify=True, normalize_functions="lower", comments=False)


def as_read(tree: exp.Expr) -> str:
    """A tree as Spark's SQL, with functions spelt as they were: its own parser makes of it what it made of the text.

    >>> as_read(expression("MAX( a )+1"))
    'MAX(`a`) + 1'
    """
    return tree.sql(dialect=StreamSql, identify=True, normalize_functions=False, comments=False)


def type_text(type_: exp.DataType) -> str:
    """A type as Spark's SQL names it."""
    return type_.sql(dialect=StreamSql)


def cast_to(tree: exp.Expr, type_: str) -> exp.Cast:
    """The expression, cast to a type by its name.

    >>> render(cast_to(expression("a"), "DECIMAL(5,2)"))
    'CAST(`a` AS DECIMAL(5, 2))'
    """
    return exp.cast(tree, exp.DataType.build(type_, dialect=StreamSql), dialect=StreamSql)


def tokens(text: str) -> list[Token]:
    """The tokens of a text; TokenError where a string, a quoted name or a comment does not end."""
    return StreamSql().tokenize(text)


def statement(run: list[Token], text: str) -> exp.Expr:
    """The tree of the one statement of which these are the tokens; ParseError where it is none."""
    tree = StreamSql().parser().parse(run, text)[0]
    assert tree is not None
    return tree.transform(_with_units, copy=False)


@lru_cache(maxsize=512)
def parsed(text: str) -> exp.Expr | None:
    """The tree of an expression over attributes, to be read only; None where it is not understood.

    >>> parsed("`point`.`x`").key, parsed("1 +")
    ('dot', None)
    """
    try:
        found = StreamSql().parse(f"SELECT {text}")[0]
    except SqlglotError:
        return None
    if not isinstance(found, exp.Select) or len(found.expressions) != 1:
        return None
    tree: exp.Expr = found.expressions[0]
    return tree.pop().transform(_with_units, copy=False).transform(_of_attribute, copy=False)


def expression(text: str) -> exp.Expr:
    """The tree of an expression over attributes, such as `render` wrote, as a tree of one's own.

    Raises:
        ValueError: It is not one.
    """
    tree = parsed(text)
    if tree is None:
        raise ValueError(f"not an expression: {text!r}")
    return tree.copy()


def _with_units(node: exp.Expr) -> exp.Expr:
    """A unit of time that stands where an attribute could, as itself."""
    match node:
        case exp.Anonymous(expressions=[exp.Column() as unit, _, _]) if str(node.this).lower() in _UNITS_FIRST:
            if len(unit.parts) == 1 and not unit.this.args.get("quoted") and unit.name.upper() in _UNITS:
                node.set("expressions", [exp.var(unit.name.upper()), *node.expressions[1:]])
    return node


def _of_attribute(node: exp.Expr) -> exp.Expr:
    """A name with dots, which over attributes is one of them, and fields of it."""
    if not isinstance(node, exp.Column) or len(node.parts) == 1:
        return node
    first, *fields = node.parts
    found: exp.Expr = exp.Column(this=first.copy())
    for field in fields:
        found = exp.Dot(this=found, expression=field.copy())
    return found


def offset(tree: exp.Expr) -> int | None:
    """Where a tree begins in its text, as far as its leaves say; None where they do not."""
    starts = [node.meta["start"] for node in tree.walk() if "start" in node.meta]
    return min(starts, default=None)


def named(name: str) -> exp.Column:
    """The reference to an attribute."""
    return exp.column(exp.to_identifier(name, quoted=True))


def attributes_in(tree: exp.Expr | str) -> list[str]:
    """The attributes that an expression refers to, each once without regard to case, in order.

    >>> attributes_in("date_add(DAY, n, `at`) + max(point.x + N)")
    ['n', 'at', 'point']
    """
    names: dict[str, str] = {}
    for column in (expression(tree) if isinstance(tree, str) else tree).find_all(exp.Column, bfs=False):
        names.setdefault(column.name.lower(), column.name)
    return list(names.values())


def position_of(tree: exp.Expr | None, schema: Schema) -> int | None:
    """The position of the attribute that the tree refers to; None where it is no reference to one of the schema."""
    if not isinstance(tree, exp.Column) or len(tree.parts) != 1:
        return None
    folded = tree.name.lower()
    return next((i for i, name in enumerate(schema.names) if name.lower() == folded), None)


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins, with no brackets around them.

    >>> from operators.expressions.dialect import expression, render
    >>> [render(part) for part in conjuncts(expression("(a > 1 AND (b OR c)) AND d"))]
    ['`a` > 1', '`b` OR `c`', '`d`']
    """
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return [tree]


def conjoined(conditions: Iterable[exp.Expr]) -> exp.Expr | None:
    """The condition that all of these are true, as a tree of its own; None for none of them."""
    parts = list(conditions)
    return exp.and_(*parts).unnest() if parts else None
