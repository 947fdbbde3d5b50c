"""What was probably meant where a text is no SQL here: a word that is nearly SQL's, or what other engines write."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from punct_ns.domain import TYPES
from punct_ns.sql_type import ALIASES
from xmlstream.sql.spark.functions import TIME_WINDOWS, WINDOW_HINT

_KEYWORDS = (
    "ALL AND ANTI AS ASC BETWEEN BY CASE CAST CREATE CROSS DESC DISTINCT ELSE END EXCEPT EXISTS FILTER FIRST FROM FULL "
    "GROUP HAVING IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LAST LEFT LIKE LIMIT NOT NULL NULLS ON OPTIONS OR "
    "ORDER OUTER OVER PARTITION QUALIFY RIGHT SELECT SEMI TABLE THEN UNION USING VALUES VIEW WHEN WHERE WITH"
)
_WORDS = sorted({*_KEYWORDS.split(), *TYPES, *(name.upper() for name in ALIASES)})

DECLARED = (
    "write CREATE TABLE bid (ts TIMESTAMP, price INT) USING punctuated_xml OPTIONS (path 'bid.xml', rowTag 'bid',"
    " punctuate 'order of ts, slack 5s')"
)
"""How a query declares a stream that other engines declare by a connector."""

_CREATED = {
    **{
        kind: (f"CREATE {kind} is not supported", DECLARED)
        for kind in ("SOURCE", "STREAM", "EXTERNAL TABLE", "STREAMING TABLE")
    },
    "SINK": (
        "CREATE SINK is not supported",
        "write CREATE TABLE o USING punctuated_xml OPTIONS (path 'out', rowTag 'row'); INSERT INTO o SELECT …",
    ),
}
"""What other engines create, with what to write instead."""

_ELSEWHERE = {
    ("EMIT",): ("EMIT is not supported", "leave it out: an answer comes once, as soon as it is final"),
    ("WATERMARK", "FOR"): (
        "WATERMARK FOR is not supported",
        "say it among the options of the table: punctuate 'order of ts, slack 5s'",
    ),
    ("MATCH_RECOGNIZE", "("): (
        "MATCH_RECOGNIZE is not supported",
        "compare with the tuples before: SELECT *, lag(v) OVER (PARTITION BY id ORDER BY ts) AS before FROM s",
    ),
    ("SELECT", "TOP"): ("TOP is not supported", "write SELECT … ORDER BY … LIMIT 3"),
    ("#",): ("# is not expected here", "a comment begins with --"),
}
"""Words in a row that other engines have, with what to write instead."""

_TEXTS = frozenset({TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER})
_NEAR = 0.7
_AROUND = 2
"""How many words before the place where a text cannot be read on, and behind it, may have been meant otherwise."""


def windowed(tokens: Sequence[Token], index: int) -> tuple[str, Token, str] | None:
    """What is said of a window in time that stands before a place, or at it: what, where and a hint."""
    for token, after in zip(tokens[: index + 1][::-1], tokens[1 : index + 2][::-1], strict=False):
        if token.text.lower() in TIME_WINDOWS and after.token_type == TokenType.L_PAREN:
            return f"{token.text}(…) is not supported", token, WINDOW_HINT
    return None


def elsewhere(tokens: Sequence[Token], index: int) -> tuple[str, Token, str] | None:
    """What is said of what other engines have and no parser here reads: before a place or at it; what, where, a hint.

    >>> from operators.expressions.dialect import tokens
    >>> elsewhere(tokens("SELECT a FROM s EMIT CHANGES"), 4)[0]
    'EMIT is not supported'
    """
    words = ["" if token.token_type in _TEXTS else token.text.upper() for token in tokens]
    if words[0] == "<" and (words[1:2] == ["?"] or ">" in words):
        return "this is XML, and no query", tokens[0], f"xmlstream infer says how a query declares it; {DECLARED}"
    if words[0] == "CREATE":
        for kind, (what, hint) in _CREATED.items():
            if " ".join(w for w in words[1:6] if w not in ("OR", "REPLACE", "IF", "NOT", "EXISTS")).startswith(
                f"{kind} "
            ):
                return what, tokens[0], hint
    for at in range(min(index + 1, len(words) - 1), -1, -1):
        for form, (what, hint) in _ELSEWHERE.items():
            if tuple(words[at : at + len(form)]) == form:
                return what, tokens[at + len(form) - 1 if form[0] == "SELECT" else at], hint
    return None


def separator(tokens: Sequence[Token], index: int) -> str | None:
    """What separates the word at a place from what stands before it, where nothing does.

    >>> from operators.expressions.dialect import tokens
    >>> separator(tokens("CREATE TABLE t (a INT b INT)"), 6)
    ','
    """
    token = tokens[index]
    if index and token.token_type in {TokenType.CREATE, TokenType.INSERT}:
        return ";"
    is_listed = tokens[0].token_type == TokenType.CREATE and _depth(tokens[:index]) > 0
    begun = {before.token_type for before in tokens[max(index - 2, 0) : index]} & _SEPARATORS
    return "," if is_listed and token.text[:1].isidentifier() and not begun else None


_SEPARATORS = frozenset({TokenType.COMMA, TokenType.L_PAREN, TokenType.LT})


def _depth(tokens: Sequence[Token]) -> int:
    return sum((t.token_type == TokenType.L_PAREN) - (t.token_type == TokenType.R_PAREN) for t in tokens)


def misspelt(tokens: Sequence[Token], index: int) -> tuple[Token, str] | None:
    """The word around a place that is most like one that SQL has, and that one.

    >>> from operators.expressions.dialect import tokens
    >>> misspelt(tokens("SELECT a FROM s GRUOP BY a"), 5)[1]
    'GROUP'
    """
    around = [*tokens[max(0, index - _AROUND) : index + _AROUND + 1]]
    if tokens[0] not in around:
        around.append(tokens[0])  # what a statement is, its first word says
    found = [(nearest, token) for token in around if (nearest := _nearest(token.text)) is not None]
    if not found:
        return None
    (_, word), token = max(found, key=lambda pair: pair[0][0])
    return token, word


def _nearest(text: str) -> tuple[float, str] | None:
    written = text.upper()
    if len(written) < 3 or written in _WORDS or not written.isalpha():
        return None
    near = difflib.get_close_matches(written, _WORDS, n=1, cutoff=_NEAR)
    return (difflib.SequenceMatcher(None, written, near[0]).ratio(), near[0]) if near else None
