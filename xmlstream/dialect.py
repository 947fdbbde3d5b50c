"""Spark's SQL as sqlglot reads it here: into trees that are written back as they were read.

Out of the box sqlglot knows hundreds of functions and turns them into one another. Here a call stays a call, so
that what Spark computes is what was written; only the forms with a syntax of their own are read as such.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from punct_ns.errors import QueryError
from xmlstream.functions import UNITS_FIRST
from xmlstream.query_text import QueryText

_READ_SPECIALLY = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY")


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

    class Parser(SparkParser):
        """Reads a call as a call."""

        # A comma stays a comma: to Spark it is not quite what CROSS JOIN is.
        JOINS_HAVE_EQUAL_PRECEDENCE = False
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: SparkParser.FUNCTION_PARSERS[name] for name in _READ_SPECIALLY
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "ANY")
        }

    class Generator(SparkGenerator):
        """Writes a SELECT as it was read: QUALIFY, which Spark has, is no subquery."""

        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            kind: write for kind, write in SparkGenerator.TRANSFORMS.items() if kind is not exp.Select
        }


def render(tree: exp.Expr) -> str:
    """A tree as Spark's SQL, in one form however it was spelt: names quoted, functions in lower case.

    >>> render(parse_statements(QueryText.of("select MAX( a )+1 as b from t"))[0].tree)
    'SELECT max(`a`) + 1 AS `b` FROM `t`'
    """
    return tree.sql(dialect=StreamSql, identify=True, normalize_functions="lower", comments=False)


class Statement:
    """One statement of a text: its tree, and the offsets of its first character and of the one after its last."""

    __slots__ = ("_query", "end", "start", "text", "tree")

    def __init__(self, tree: exp.Expr, text: QueryText, start: int, end: int, query: int | None = None) -> None:
        self.tree, self.text, self.start, self.end = tree, text, start, end
        self._query = query

    def query(self) -> Statement:
        """The query in CREATE VIEW … AS or INSERT INTO …, as a statement of its own."""
        assert self._query is not None
        return Statement(self.tree.expression.copy(), self.text, self._query, self.end)


def parse_statements(text: QueryText) -> list[Statement]:
    """The statements of a text, in order.

    Raises:
        QueryError: It is no SQL.
    """
    try:
        tokens = StreamSql().tokenize(text.text)
    except TokenError:
        raise text.error("a string, a quoted name or a comment of the query does not end", None) from None
    with quiet("sqlglot"):
        return [_statement(run, text) for run in _runs(tokens)]


def _runs(tokens: list[Token]) -> Iterator[list[Token]]:
    run: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            if run:
                yield run
            run = []
        else:
            run.append(token)
    if run:
        yield run


def _statement(tokens: list[Token], text: QueryText) -> Statement:
    start, end = tokens[0].start, tokens[-1].end + 1
    try:
        tree = StreamSql().parser().parse(tokens, text.text)[0]
    except ParseError as error:
        raise _unreadable(error, tokens, text) from None
    assert tree is not None
    return Statement(tree.transform(_with_unit, copy=False), text, start, end, _query_in(tokens))


def _query_in(tokens: list[Token]) -> int | None:
    """Where a query begins, with the brackets that are around all of it."""
    at = next((i for i, token in enumerate(tokens) if token.token_type in {TokenType.SELECT, TokenType.WITH}), None)
    if at is None:
        return None
    while at and tokens[at - 1].token_type == TokenType.L_PAREN:
        at -= 1
    return tokens[at].start


def _with_unit(node: exp.Expr) -> exp.Expr:
    """A unit of time that stands where an attribute could, as itself."""
    match node:
        case exp.Anonymous(expressions=[exp.Column() as unit, _, _]) if str(node.this).lower() in UNITS_FIRST:
            if len(unit.parts) == 1 and not unit.this.args.get("quoted") and unit.name.upper() in _UNITS:
                node.set("expressions", [exp.var(unit.name.upper()), *node.expressions[1:]])
    return node


def _unreadable(error: ParseError, tokens: list[Token], text: QueryText) -> QueryError:
    found = error.errors[0] if error.errors else {}
    description, near = found.get("description") or str(error), found.get("highlight") or ""
    line, last_column = found.get("line"), found.get("col")
    token = next((t for t in tokens if t.line == line and t.col == last_column), tokens[-1])
    if description.startswith("Required keyword"):
        what = f"something is missing near {near}"
    elif description.startswith("Expecting"):
        what = f"{description.removeprefix('Expecting').strip()} is missing before {near}"
    else:
        what = f"{near or 'this'} is not expected here"
    return text.error(what, token.start)


def expression(text: str) -> exp.Expr:
    """The tree of an expression that `render` wrote."""
    tree: exp.Expr = parse_statements(QueryText.of(f"SELECT {text}"))[0].tree.expressions[0]
    return tree.pop()


def offset(tree: exp.Expr) -> int | None:
    """Where a tree begins in its text, as far as its leaves say; None where they do not."""
    starts = [node.meta["start"] for node in tree.walk() if "start" in node.meta]
    return min(starts, default=None)


def named(name: str) -> exp.Column:
    """The reference to an attribute."""
    return exp.column(exp.to_identifier(name, quoted=True))


@contextmanager
def quiet(logger: str) -> Iterator[None]:
    """Keeps a library from logging what is raised as an error here anyway."""
    log = logging.getLogger(logger)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
