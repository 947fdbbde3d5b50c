"""Dialect: Spark's SQL, which sqlglot reads into trees and prints again unchanged.

By default sqlglot knows hundreds of functions and turns them into one another, not always correctly. Here a call stays
a call, so that Spark computes what was written; only forms with their own syntax are read as such. All SQL, of queries
and of operators' expressions, is read and written here.

This module also finds a tree's attributes and its conjuncts: the parts of a condition that must all be true. It
silences the loggers of libraries for errors that are raised anyway.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from xmlstream.operators.expressions.depth import is_of_depth
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.sql_type import StringType


@contextmanager
def quiet(log: logging.Logger) -> Iterator[None]:
    """Silences a library's logger in this thread, for errors that are raised anyway."""
    own = threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != own

    log.addFilter(is_of_others)
    try:
        yield
    finally:
        log.removeFilter(is_of_others)


READ_SPECIALLY = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY")


_UNITS_FIRST = frozenset({"date_add", "date_diff", "dateadd", "datediff", "timestampadd", "timestampdiff"})
"""Functions whose first of three arguments is a unit of time, not an attribute."""

_UNITS = frozenset(
    f"{unit}{plural}".upper()
    for unit in ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
    for plural in ("", "s")
)


class StreamSql(Spark):
    """Spark's dialect, with functions left unchanged."""

    class Tokenizer(Spark.Tokenizer):
        """Reads a doubled quote as one quote, as Spark does since version 4."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **Spark.Tokenizer.KEYWORDS,
            "ASOF": TokenType.ASOF,
            "MATCH_CONDITION": TokenType.MATCH_CONDITION,
        }

    class Parser(SparkParser):
        """Reads a call as a call."""

        # A comma stays a comma: in Spark it differs from CROSS JOIN.
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
            name: SparkParser.FUNCTION_PARSERS[name] for name in READ_SPECIALLY
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "ANY")
        }

        def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
            """Reads `window` as a name, except where it begins a WINDOW clause."""
            return super().parse(_without_window_keyword(raw_tokens), sql)

        def _match_r_paren(self, expression: exp.Expr | None = None) -> None:
            """Records where a call ends, so that another can take its place in Spark's text."""
            super()._match_r_paren(expression)
            if isinstance(expression, exp.Anonymous):
                expression.meta["until"] = self._prev.end + 1

        def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
            """Reads an argument, which may be TABLE t or TABLE(t), and records where it begins and ends."""
            begin = self._curr.start
            is_table = self._match(TokenType.TABLE)
            found = self._parse_table_argument() if is_table else super()._parse_lambda(alias)
            if found is not None:
                found.meta["span"] = begin, self._prev.end + 1
            return found

        def _parse_types(self, check_func: bool = False, *given: Any, **named: Any) -> exp.Expr | None:
            """Reads `date(…)` as a call at once: read as a type first, it would be read twice at each level."""
            if check_func and self._next.token_type == TokenType.L_PAREN:
                return None
            return super()._parse_types(check_func, *given, **named)

        def _parse_table_argument(self) -> exp.Expr | None:
            """Reads a table or a query in brackets, where it stands, and how it is partitioned: by keys, or by none."""
            in_brackets = self._match(TokenType.L_PAREN)
            begin, query = self._curr.start, self._parse_select() if in_brackets else None
            table: exp.Expr | None = self._parse_table_parts() if query is None else exp.Subquery(this=query)
            if table is not None:
                table.meta["data"] = begin, self._prev.end + 1
            if in_brackets:
                self._match_r_paren()
            if table is not None and self._match(TokenType.PARTITION_BY):
                several = self._curr.token_type == TokenType.L_PAREN
                keys = self._parse_wrapped_csv(self._parse_disjunction) if several else [self._parse_disjunction()]
                table.set("partition", exp.Partition(expressions=keys))
            elif table is not None and self._match_text_seq("WITH", "SINGLE", "PARTITION"):
                table.set("partition", exp.Partition(expressions=[]))
            if table is not None and "partition" in table.args:
                table.set("order", self._parse_order())
            return table

        def _parse_join_parts(self) -> tuple[Token | None, Token | None, Token | None]:
            """Reads LEFT [OUTER] ASOF in Spark's order: the side, then the kind of join."""
            index = self._index
            side = self._prev if self._match(TokenType.LEFT) else None
            self._match(TokenType.OUTER if side else TokenType.INNER)
            if self._match(TokenType.ASOF):
                return None, side, self._prev
            self._retreat(index)
            return super()._parse_join_parts()

    class Generator(SparkGenerator):
        """Writes a query as it was read: QUALIFY does not become a subquery, and WITH stays in place."""

        # At the top of the query, a name would be visible in more places, and could hide a table.
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            kind: write for kind, write in SparkGenerator.TRANSFORMS.items() if kind is not exp.Select
        }


def _without_window_keyword(found: list[Token]) -> list[Token]:
    """The tokens, each `window` as a name unless it is a keyword, as in WINDOW w AS (…)."""
    kinds = [token.token_type for token in found]
    return [
        Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)
        if token.token_type == TokenType.WINDOW and kinds[i + 2 : i + 4] != [TokenType.ALIAS, TokenType.L_PAREN]
        else token
        for i, token in enumerate(found)
    ]


def render(tree: exp.Expr) -> str:
    """The tree as Spark SQL in a normal form: names quoted, functions in lower case.

    >>> render(expression("MAX( a )+1 + `B`"))
    'max(`a`) + 1 + `B`'
    """
    return tree.sql(dialect=StreamSql, identify=True, normalize_functions="lower", comments=False)


def as_read(tree: exp.Expr) -> str:
    """The tree as Spark SQL, with functions and IS NOT NULL as in the text, so that Spark parses it like the text.

    >>> as_read(expression("MAX( a )+1")), as_read(expression("a IS NOT NULL"))
    ('MAX(`a`) + 1', '`a` IS NOT NULL')
    """
    return tree.transform(_of_presence).sql(dialect=StreamSql, identify=True, normalize_functions=False, comments=False)


def _of_presence(node: exp.Expr) -> exp.Expr:
    """The node; sqlglot's NOT a IS NULL as a IS NOT NULL."""
    match node:
        case exp.Not(this=exp.Is(this=of, expression=exp.Null())):
            return exp.Is(this=of, expression=exp.Not(this=exp.Null()))
    return node


def type_text(type_: exp.DataType) -> str:
    """The name of a type in Spark SQL."""
    return type_.sql(dialect=StreamSql)


def cast_to(tree: exp.Expr, type_: str) -> exp.Cast:
    """The expression cast to the type of that name.

    >>> render(cast_to(expression("a"), "DECIMAL(5,2)"))
    'CAST(`a` AS DECIMAL(5, 2))'
    """
    return exp.cast(tree, exp.DataType.build(type_, dialect=StreamSql), dialect=StreamSql)


def tokens(text: str) -> list[Token]:
    """The tokens of a text; TokenError if a string, a quoted name or a comment does not end."""
    return StreamSql().tokenize(text)


def statement(run: list[Token], text: str) -> exp.Expr:
    """The tree of the one statement with these tokens; ParseError if they are no statement."""
    tree = StreamSql().parser().parse(run, text)[0]
    assert tree is not None
    return tree.transform(_as_called, copy=False)


@lru_cache(maxsize=4096)  # as many as a wide query has
def parsed(text: str) -> exp.Expr | None:
    """The tree of an expression over attributes, not to be changed; None if sqlglot cannot read it.

    >>> parsed("`point`.`x`").key, parsed("1 +")
    ('dot', None)
    """
    try:
        found = StreamSql().parse(f"SELECT {text}")[0]
    except SqlglotError as error:
        if is_of_depth(error):
            raise
        return None
    if not isinstance(found, exp.Select) or len(found.expressions) != 1:
        return None
    tree: exp.Expr = found.expressions[0]
    return tree.pop().transform(_as_called, copy=False).transform(_of_attribute, copy=False)


def expression(text: str) -> exp.Expr:
    """A new tree of an expression over attributes.

    Raises:
        ValueError: The text is not a valid expression.
    """
    tree = parsed(text)
    if tree is None:
        raise ValueError(f"not an expression: {text!r}")
    return tree.copy()


def _as_called(node: exp.Expr) -> exp.Expr:
    """The node in one of the forms that Spark has for it: a unit of time is no attribute, IGNORE NULLS an argument."""
    match node:
        case exp.IgnoreNulls(this=exp.Anonymous(expressions=[value]) as call) if call_name(call) in _OF_FIRST_AND_LAST:
            call.set("expressions", [value, exp.true()])
            return call
        case exp.RespectNulls(this=exp.Anonymous() as call) if call_name(call) in _OF_FIRST_AND_LAST:
            return call
        case exp.Anonymous(expressions=[exp.Column() as unit, _, _]) if str(node.this).lower() in _UNITS_FIRST:
            if len(unit.parts) == 1 and not unit.this.args.get("quoted") and unit.name.upper() in _UNITS:
                node.set("expressions", [exp.var(unit.name.upper()), *node.expressions[1:]])
    return node


_OF_FIRST_AND_LAST = ("first", "first_value", "last", "last_value", "any_value")
"""Functions whose second argument says whether they pass nulls over."""


def _of_attribute(node: exp.Expr) -> exp.Expr:
    """The node; a name with dots becomes an attribute and its fields."""
    if not isinstance(node, exp.Column) or len(node.parts) == 1:
        return node
    first, *fields = node.parts
    found: exp.Expr = exp.Column(this=first.copy())
    for field in fields:
        found = exp.Dot(this=found, expression=field.copy())
    return found


def offset(tree: exp.Expr) -> int | None:
    """The offset of a tree in its text, from its leaves; None if they have none."""
    starts = [node.meta["start"] for node in tree.walk() if "start" in node.meta]
    return min(starts, default=None)


Holding: TypeAlias = dict[int, tuple[exp.Expr, bool]]
"""What `any_in` has found, by the identity of trees, which live as long as it."""


def any_in(tree: exp.Expr, test: Callable[[exp.Expr], bool], found: Holding) -> bool:
    """Whether a node of a tree passes the test; for all parts of a tree it takes no longer than for the tree."""
    if id(tree) not in found:
        found[id(tree)] = tree, test(tree) or any(any_in(each, test, found) for each in tree.iter_expressions())
    return found[id(tree)][1]


def call_name(node: exp.Expr | None) -> str:
    """The name of a called function, in lower case; empty for any other node."""
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def named(name: str) -> exp.Column:
    """A reference to an attribute."""
    return exp.column(exp.to_identifier(name, quoted=True))


def structure(columns: Mapping[str, str]) -> exp.Anonymous:
    """A structure of attributes, by the names of its fields."""
    pairs = ((exp.Literal.string(name), named(attribute)) for name, attribute in columns.items())
    return exp.Anonymous(this="named_struct", expressions=[each for pair in pairs for each in pair])


def literal(value: Value, domain: Domain) -> str:
    """Writes a value as a Spark SQL literal of the domain's type.

    >>> literal(17, Domain("INT"))
    "CAST('17' AS INT)"
    """
    text = value if isinstance(value, str) else domain.write(value)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'" if isinstance(domain.sql, StringType) else f"CAST('{escaped}' AS {domain.type})"


def attributes_in(tree: exp.Expr | str) -> list[str]:
    """The attributes in an expression, each once regardless of case, in order.

    >>> attributes_in("date_add(DAY, n, `at`) + max(point.x + N)")
    ['n', 'at', 'point']
    """
    names: dict[str, str] = {}
    for column in (expression(tree) if isinstance(tree, str) else tree).find_all(exp.Column, bfs=False):
        names.setdefault(column.name.lower(), column.name)
    return list(names.values())


def position_of(tree: exp.Expr | None, schema: Schema) -> int | None:
    """The position of the attribute that the tree refers to; None if it does not refer to one of the schema."""
    if not isinstance(tree, exp.Column) or len(tree.parts) != 1:
        return None
    return schema.place(tree.name)


def brief(parameters: str) -> str:
    """Parameters without backquotes around plain names, and without `AS` if the name does not change.

    >>> brief("`hour` AS `hour`, max(`a b`) AS `top`")
    'hour, max(`a b`) AS top'
    """
    plain = re.sub(r"`(\w+)`", r"\1", parameters)
    return re.sub(r"\b(\w+) AS \1\b", r"\1", plain)


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins, without brackets around them.

    >>> from xmlstream.operators.expressions.dialect import expression, render
    >>> [render(part) for part in conjuncts(expression("(a > 1 AND (b OR c)) AND d"))]
    ['`a` > 1', '`b` OR `c`', '`d`']
    """
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return [tree]


def conjoined(conditions: Iterable[exp.Expr]) -> exp.Expr | None:
    """A new tree that joins the conditions with AND; None for no conditions."""
    parts = list(conditions)
    return exp.and_(*parts).unnest() if parts else None


def in_terms(tree: exp.Expr, terms: Mapping[str, str]) -> exp.Expr:
    """A copy of an expression, with its attributes replaced by terms: Spark SQL by names in lower case.

    >>> render(in_terms(expression("size(x) + size(arrays_zip(x, y))"), {"x": "`a`", "y": "`y`"}))
    "size(`a`) + size(arrays_zip(named_struct('x', `a`).`x`, `y`))"
    """
    return with_terms(tree.copy(), lambda name: expression(terms[name]))


def with_terms(tree: exp.Expr, terms: Callable[[str], exp.Expr]) -> exp.Expr:
    """An expression, its attributes replaced by the trees of terms, by names in lower case; the tree is changed."""

    def replaced(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        term = terms(node.name.lower())
        if call_name(node.parent) == "arrays_zip" and not (isinstance(term, exp.Column) and term.name == node.name):
            # Its result has the names of its arguments, and is to keep them.
            called = exp.Anonymous(this="named_struct", expressions=[exp.Literal.string(node.name), term])
            return exp.Dot(this=called, expression=exp.to_identifier(node.name, quoted=True))
        return term if isinstance(term, exp.Column) or node.parent is None else exp.paren(term, copy=False)

    return tree.transform(replaced, copy=False)
