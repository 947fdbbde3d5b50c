"""Statements of a query's text, as trees with their places in the text."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.depth import MOST, at_any_depth, too_deep
from xmlstream.operators.expressions.dialect import as_read, quiet, statement, tokens
from xmlstream.operators.expressions.operations.python_functions import OF_PROGRAM, PythonFunction
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.created_functions import created, declaration_words
from xmlstream.sql.flink_windows import Rewriting
from xmlstream.sql.query_text import QueryText, endless
from xmlstream.sql.refused.did_you_mean import meant_at, meant_by_command
from xmlstream.sql.written_out import write_out


@dataclass(frozen=True, slots=True)
class Statement:
    """Statement of a text: its tree, and the offsets of its first character and of the character after its last."""

    tree: exp.Expr
    rewriting: Rewriting
    start: int
    end: int
    _query: int | None = None

    @property
    def text(self) -> QueryText:
        """The text that contains the statement."""
        return self.rewriting.text

    def for_spark(self) -> QueryText:
        """The statement for Spark: as written, except for what Spark lacks, which is replaced."""
        if self.rewriting.printed:
            return self.text.standing(as_read(self.tree), self.start)
        return self.rewriting.for_spark(self.start, self.end)

    def query(self) -> Statement:
        """The query in CREATE VIEW … AS or INSERT INTO …, as a statement of its own."""
        assert self._query is not None
        return Statement(self.tree.expression.copy(), self.rewriting, self._query, self.end)


@at_any_depth
def parse_statements(text: QueryText) -> list[Statement]:
    """The statements of a text, in order.

    Raises:
        QueryError: The text is not SQL, or has a Flink window without an equivalent.
    """
    try:
        found = tokens(text.text)
    except TokenError:
        raise endless(text) from None
    _require_depth(found, text)
    functions = dict(OF_PROGRAM)
    with quiet(logging.getLogger("sqlglot")):
        return [_statement(run, text, functions) for run in _runs(found)]


_STEPS = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1, TokenType.CASE: 2, TokenType.END: -2}


def _require_depth(found: Sequence[Token], text: QueryText) -> None:
    """Refuses what is nested deeper than any engine computes."""
    inside = accumulate(_STEPS.get(token.token_type, 0) for token in found)
    if (beyond := next((token for token, now in zip(found, inside, strict=True) if now > MOST), None)) is not None:
        error = too_deep()
        raise text.error(error.what, beyond.start, error.hint)


def _runs(found: list[Token]) -> Iterator[list[Token]]:
    for is_end, run in groupby(found, lambda token: token.token_type == TokenType.SEMICOLON):
        if not is_end:
            yield list(run)


def _statement(run: list[Token], text: QueryText, functions: dict[str, PythonFunction]) -> Statement:
    """The statement; one that creates a function adds it to those that later statements may call."""
    start, end = run[0].start, run[-1].end + 1
    is_function = run[0].token_type == TokenType.CREATE and any(t.token_type == TokenType.FUNCTION for t in run[1:6])
    words = declaration_words(run) if is_function else []
    try:
        tree = statement(run[: len(run) - len(words)], text.text)
    except ParseError as error:
        raise _unreadable(error, run, text) from None
    if isinstance(tree, exp.Command) and (meant := meant_by_command(run)) is not None:
        raise text.error(*meant)
    if is_function:
        made = created(tree, words, text)
        functions[made.name] = made
    query = _query_in(run)
    if isinstance(tree, exp.Create) and tree.expression is not None and query is not None:
        first, before = next((t, run[i - 1]) for i, t in enumerate(run) if t.start == query)
        if before.token_type != TokenType.ALIAS:
            raise text.error(f"; is missing before {first.text}", first.start)
    rewriting = Rewriting(text, functions=functions)
    rewriting.rewrite(tree)
    write_out(tree, text, rewriting)
    return Statement(tree, rewriting, start, end, query)


def _query_in(run: list[Token]) -> int | None:
    """Offset of the query, including brackets around all of it."""
    at = next((i for i, token in enumerate(run) if token.token_type in {TokenType.SELECT, TokenType.WITH}), None)
    if at is None:
        return None
    while at and run[at - 1].token_type == TokenType.L_PAREN:
        at -= 1
    return run[at].start


def _unreadable(error: ParseError, run: list[Token], text: QueryText) -> QueryError:
    found = error.errors[0] if error.errors else {}
    description, near = found.get("description") or str(error), found.get("highlight") or ""
    line, last_column = found.get("line"), found.get("col")
    at = next((i for i, t in enumerate(run) if t.line == line and t.col == last_column), len(run) - 1)
    if (meant := meant_at(run, at, text.text)) is not None:
        return text.error(*meant)
    if description.startswith("Required keyword"):
        what = f"an expression or a name is missing near {near}"
    elif description.startswith("Expecting"):
        what = f"{description.removeprefix('Expecting').strip()} is missing before {near}"
    else:
        what = f"{near or 'this'} is not expected here"
    return text.error(what, run[at].start)
