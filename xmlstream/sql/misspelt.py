"""What was probably meant where a text is no SQL: a word that is nearly a keyword or a type, or a window in time."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from punct_ns.domain import TYPES
from punct_ns.type_name import ALIASES
from xmlstream.sql.functions import TIME_WINDOWS, WINDOW_HINT

_KEYWORDS = (
    "ALL AND ANTI AS ASC BETWEEN BY CASE CAST CREATE CROSS DESC DISTINCT ELSE END EXCEPT EXISTS FILTER FIRST FROM FULL "
    "GROUP HAVING IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LAST LEFT LIKE LIMIT NOT NULL NULLS ON OPTIONS OR "
    "ORDER OUTER OVER PARTITION QUALIFY RIGHT SELECT SEMI TABLE THEN UNION USING VALUES VIEW WHEN WHERE WITH"
)
_WORDS = sorted({*_KEYWORDS.split(), *TYPES, *(name.upper() for name in ALIASES)})

_NEAR = 0.7
_AROUND = 2
"""How many words before the place where a text cannot be read on, and behind it, may have been meant otherwise."""


def windowed(tokens: Sequence[Token], index: int) -> tuple[str, Token, str] | None:
    """What is said of a window in time that stands before a place, or at it: what, where and a hint."""
    for token, after in zip(tokens[: index + 1][::-1], tokens[1 : index + 2][::-1], strict=False):
        if token.text.lower() in TIME_WINDOWS and after.token_type == TokenType.L_PAREN:
            return f"{token.text}(…) is not supported", token, WINDOW_HINT
    return None


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
