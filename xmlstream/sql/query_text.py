"""Text of a query with the source places of its parts, so that an error can point at them.

A query comes from a file with variables, or in pieces, as arguments of the builder. It is parsed as one text; a
`QueryText` stores the source place of each piece.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.dialect import offset, tokens
from xmlstream.punct_ns.errors import QueryError, place


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of the text that comes from one place.

    Attributes:
        start: Offset of its first character in the text.
        source: File or argument that it comes from; None if there is only one possibility.
        line: Line of its first character in the source, from 1.
        column: Column of its first character in the source, from 1.
        stands_in: Whether it replaces a variable: then all of it has the variable's place.
    """

    start: int
    source: str | None
    line: int = 1
    column: int = 1
    stands_in: bool = False


@dataclass(frozen=True, slots=True)
class QueryText:
    """Text and its pieces, in order."""

    text: str
    pieces: tuple[Piece, ...]

    @staticmethod
    def of(text: str, source: str | None = None) -> QueryText:
        """A text from one place."""
        return QueryText(text, (Piece(0, source),))

    @staticmethod
    def joined(parts: Iterable[str | QueryText]) -> QueryText:
        """Concatenates parts; a plain string has no place of its own, and takes that of the part before it."""
        text, pieces = "", [Piece(0, None)]
        for part in parts:
            if isinstance(part, QueryText):
                pieces += [replace(p, start=len(text) + p.start) for p in part.pieces]
            text += part if isinstance(part, str) else part.text
        return QueryText(text, tuple(pieces))

    def part(self, start: int, end: int) -> QueryText:
        r"""The text between two offsets, with its places.

        >>> QueryText.of("a,\n bc", "q.sql").part(4, 6).place(1)
        ('q.sql', 2, 3)
        """
        _, line, column = self.place(start)
        first = replace(self._piece(start), start=0, line=line, column=column)
        others = (replace(p, start=p.start - start) for p in self.pieces if start < p.start < end)
        return QueryText(self.text[start:end], (first, *others))

    def standing(self, text: str, at: int) -> QueryText:
        """Another text, placed as a whole at the character at an offset."""
        source, line, column = self.place(at)
        return QueryText(text, (Piece(0, source, line, column, stands_in=True),))

    def within_quotes(self, literal: exp.Expr) -> QueryText:
        """The value of a string, each character with its place; all of it at the string if it has other escapes."""
        value, start, end = literal.name, literal.meta.get("start"), literal.meta.get("end")
        if start is None or end is None:
            return QueryText.of(value)
        parts, done = list[QueryText](), start + 1
        for escape in _ESCAPES.finditer(self.text, start + 1, end):
            parts += [self.part(done, escape.start()), self.standing(escape[0][1], escape.start())]
            done = escape.end()
        whole = QueryText.joined([*parts, self.part(done, end)])
        return whole if whole.text == value else self.standing(value, start)

    def before_alias(self, item: exp.Expr) -> str | None:
        """The text of an item of SELECT, without its alias, on one line."""
        end, depth, start = item.args["alias"].meta.get("start"), 0, 0
        if end is None:
            return None
        found = [token for token in tokens(self.text[:end]) if token.token_type != TokenType.HINT]
        if found[-1].token_type == TokenType.ALIAS:
            end = found.pop().start
        for token in reversed(found):
            depth += (token.token_type == TokenType.R_PAREN) - (token.token_type == TokenType.L_PAREN)
            if depth < 0 or (depth == 0 and token.token_type in _BEFORE_AN_ITEM):
                start = token.end + 1
                break
        return " ".join(self.text[start:end].split())

    def _piece(self, at: int) -> Piece:
        return self.pieces[bisect_right([p.start for p in self.pieces], max(at, 0)) - 1]

    def place(self, at: int) -> tuple[str | None, int, int]:
        r"""Source, line and column of the character at an offset.

        >>> QueryText.of("a,\n b", "q.sql").place(4)
        ('q.sql', 2, 2)
        """
        piece = self._piece(at)
        written = [p for p in self.pieces if p.source is not None]
        if piece.source is None and len(written) == 1:
            # The user wrote only one piece; generated text around it takes that piece's place.
            return written[0].source, written[0].line, written[0].column
        if piece.stands_in:
            return piece.source, piece.line, piece.column
        before = self.text[piece.start : at]
        lines = before.count("\n")
        if lines:
            return piece.source, piece.line + lines, len(before) - before.rindex("\n")
        return piece.source, piece.line, piece.column + len(before)

    def error(self, what: str, at: exp.Expr | int | None, hint: str | None = None) -> QueryError:
        """Error at the beginning of a tree or at an offset; without a place if that is unknown."""
        if (start := offset(at) if isinstance(at, exp.Expr) else at) is None:
            return QueryError(what, hint=hint)
        source, line, column = self.place(start)
        return QueryError(what, line=line, column=column, where=place(source, line, column, None), hint=hint)


_STRINGS_COMMENTS_VARIABLES = re.compile(
    r"""(?P<string>'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+"|`[^`]*`)|(?P<comment>--[^\n]*|/\*.*?\*/)"""
    r"""|(?P<variable>\$\{[^{}\s]*\})""",
    re.DOTALL,
)
_BEFORE_AN_ITEM = {TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA}
_ESCAPES = re.compile(r"''|\"\"|\\[\\'\"]")
"""In a string, a quote or a backslash that is written with two characters."""

_OPENED = re.compile(r"(?P<string>['\"])|(?P<name>`)|(?P<comment>/\*)")
_HEXADECIMAL = re.compile(r"(?i)\bx'(?![0-9a-f]*')[^']*'")
_CALLED = {"string": "a string", "name": "a quoted name", "comment": "a comment"}
_VARIABLE = re.compile(r"\$\{([^{}\s]*)\}")


def endless(text: QueryText) -> QueryError:
    """Error for a string, a quoted name or a comment without an end; it points at the beginning."""
    rest = _STRINGS_COMMENTS_VARIABLES.sub(lambda whole: " " * len(whole[0]), text.text)
    opened = _OPENED.search(rest)
    if opened is None or opened.lastgroup is None:
        if number := _HEXADECIMAL.search(text.text):
            return text.error(
                f"{number[0]} is not a hexadecimal number", number.start(), "write pairs of 0 to 9 and A to F"
            )
        return text.error("a string, a quoted name or a comment of the query does not end", None)
    hint = "a quote within a string is doubled, as in 'it''s'" if opened["string"] else None
    return text.error(f"{_CALLED[opened.lastgroup]} begins here, and does not end", opened.start(), hint)


def substituted(text: str, variables: Mapping[str, str], source: str | None = None) -> QueryText:
    r"""The text with every `${NAME}` replaced; within a string, the value is escaped.

    Comments stay unchanged.

    >>> substituted("SELECT '${DIR}/a.xml', ${n}", {"DIR": "it's", "n": "3"}).text
    "SELECT 'it\\'s/a.xml', 3"

    Raises:
        QueryError: A variable has no value.
    """
    parts: list[QueryText] = []
    whole, done = QueryText.of(text, source), 0
    for found in _STRINGS_COMMENTS_VARIABLES.finditer(text):
        if found["comment"] is not None:
            continue
        quote = found[0][0] if found["string"] is not None else ""
        for variable in _VARIABLE.finditer(text, found.start(), found.end()):
            name = variable[1]
            if name not in variables:
                have = f"variables given: {', '.join(sorted(variables)) or 'none'}"
                hint = f"give it with -D {name or 'NAME'}=VALUE ({have})"
                raise whole.error(f"the variable {variable[0]} has no value", variable.start(), hint)
            value = whole.standing(_escaped(variables[name], quote), variable.start())
            parts += [whole.part(done, variable.start()), value]
            done = variable.end()
    return QueryText.joined([*parts, whole.part(done, len(text))])


def _escaped(value: str, quote: str) -> str:
    if quote == "`":
        return value.replace("`", "``")
    return value.replace("\\", "\\\\").replace(quote, "\\" + quote) if quote else value
