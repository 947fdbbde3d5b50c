"""Guesses for text that is not SQL here: misspelt keywords, and syntax of other engines.

Each guess gets the tokens of a statement and an index among them. It returns a message, a place and a hint, or None.
The first guess that is not None counts.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from xmlstream.punct_ns.type_names import ALIASES, TYPES
from xmlstream.sql.spark.functions import REFUSED, TIME_WINDOWS, WINDOW_HINT

_KEYWORDS = (
    "ALL AND ANTI AS ASC BETWEEN BY CASE CAST CREATE CROSS DESC DISTINCT ELSE END EXCEPT EXISTS FILTER FIRST FROM FULL "
    "GROUP HAVING ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LAST LEFT LIKE LIMIT NOT NULL NULLS ON OPTIONS "
    "OR ORDER OUTER OVER PARTITION QUALIFY REGEXP RIGHT RLIKE SELECT SEMI TABLE THEN UNION USING VALUES VIEW WHEN "
    "WHERE WITH"
)
_WORDS = sorted({*_KEYWORDS.split(), *TYPES, *(name.upper() for name in ALIASES)})

DECLARED = (
    "write CREATE TABLE bid (ts TIMESTAMP, price INT) USING punctuated_xml OPTIONS (path 'bid.xml', rowTag 'bid',"
    " punctuate 'order of ts, slack 5s')"
)
"""Hint to declare a stream that other engines declare with a connector."""

_CREATED = {
    **{
        kind: (f"CREATE {kind} is not supported", DECLARED)
        for kind in ("SOURCE", "STREAM", "EXTERNAL TABLE", "STREAMING TABLE")
    },
    **{
        kind: (f"CREATE {kind} is not supported", "a function maps the values of one row to one value")
        for kind in ("AGGREGATE FUNCTION", "TABLE FUNCTION")
    },
    "SINK": (
        "CREATE SINK is not supported",
        "write CREATE TABLE o USING punctuated_xml OPTIONS (path 'out', rowTag 'row'); INSERT INTO o SELECT …",
    ),
}
"""Objects that other engines create: the message and the hint for each."""

_UNIQUE = "write it in the table's OPTIONS, as a promise of the source: uniqueIds 'id'"

_ELSEWHERE: Mapping[tuple[str, ...], tuple[str, str]] = {
    ("EMIT", "CHANGES"): (
        "EMIT CHANGES is not supported",
        "leave it out: each result is emitted once, as soon as it is final; xmlstream so-far, in Python"
        " handle.so_far(), shows what the open ones would give",
    ),
    **dict.fromkeys(
        [("EMIT", after) for after in ("AFTER", "FINAL", "ON", "WITH", "WITHOUT")],
        ("EMIT is not supported", "leave it out: each result is emitted once, as soon as it is final"),
    ),
    ("WATERMARK", "FOR"): (
        "WATERMARK FOR is not supported",
        "write it in the table's OPTIONS: punctuate 'order of ts, slack 5s'",
    ),
    ("MATCH_RECOGNIZE", "("): (
        "MATCH_RECOGNIZE is not supported",
        "compare with the tuples before: SELECT *, lag(v) OVER (PARTITION BY id ORDER BY ts) AS before FROM s",
    ),
    ("SELECT", "TOP"): ("TOP is not supported", "write SELECT … ORDER BY … LIMIT 3"),
    ("PRIMARY", "KEY"): ("PRIMARY KEY is not supported", _UNIQUE),
    ("UNIQUE", "("): ("UNIQUE is not supported", _UNIQUE),
    ("SERIAL",): ("SERIAL is not supported", "write BIGINT: a column has the value that the element has"),
    ("WITH", "("): ("WITH (…) is not supported here", f"name the source and its options: {DECLARED}"),
    (",", ")"): (", is not expected before )", "leave it out, or write what follows it"),
    ("~",): ("~ is not supported", "write text RLIKE '^a'"),
    ("SEPARATOR",): ("SEPARATOR is not supported", REFUSED["group_concat"]),
    **dict.fromkeys(
        (("WINDOW", kind) for kind in ("TUMBLING", "HOPPING", "SESSION")), ("WINDOW is not supported", WINDOW_HINT)
    ),
    ("/", "/"): ("// is not supported", "write v DIV 2; a comment begins with --"),
    ("&", "&"): ("&& is not supported", "write AND"),
    ("ATTACH", ""): ("ATTACH is not supported", DECLARED),
    ("*", "*"): ("** is not supported", "on Spark write power(v, 2)"),
    ("!", "~"): ("!~ is not supported", "write NOT text RLIKE '^a'"),
    ("{",): ("{ is not expected here", "a structure is written named_struct('a', 1)"),
    ("}",): ("{ … } is not supported here", "a structure is written named_struct('a', 1)"),
    ("[",): ("[ is not expected here", "write a name in back quotes, as in `station`, or without any"),
    ("#",): ("# is not expected here", "a comment begins with --"),
}
"""Sequences of words in other engines: the message and the hint for each."""

_TEXTS = frozenset({TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER})
_NEAR = 0.7
_AROUND = 2
"""Number of words to check for misspelling before and after the place where parsing stops."""


Guess = tuple[str, int, str | None]
"""Message, offset in the text, and hint."""


def meant_at(tokens: Sequence[Token], index: int, text: str) -> Guess | None:
    """A guess for the place where parsing of a statement stops.

    >>> from xmlstream.operators.expressions.dialect import tokens
    >>> def meant(text, index): return meant_at(tokens(text), index, text)
    >>> meant("SELECT a FROM s EMIT CHANGES", 4)[0]
    'EMIT CHANGES is not supported'
    >>> meant("CREATE TABLE t (a INT b INT)", 6)
    (', is missing before b', 22, None)
    >>> meant("SELECT a FROM s GRUOP BY a", 5)
    ('GRUOP is not expected here', 16, 'did you mean GROUP?')
    """
    return (
        _elsewhere(tokens, index)
        or _window(tokens, index)
        or _separator(tokens, index)
        or _quoted(tokens, index, text)
        or _misspelt(tokens, index)
    )


def meant_by_command(tokens: Sequence[Token]) -> Guess | None:
    """A guess for a statement whose first word begins no known statement."""
    second = next((token for token in tokens[1:] if token.token_type in _BEGIN), None)
    missing = None if second is None else (f"; is missing before {second.text}", second.start, None)
    return _elsewhere(tokens, 0) or missing or _misspelt(tokens, 0)


def _elsewhere(tokens: Sequence[Token], index: int) -> Guess | None:
    """Syntax of other engines that no parser here reads, at the place or before it."""
    words = ["" if token.token_type in _TEXTS else token.text.upper() for token in tokens]
    if words[0] == "<" and (words[1:2] == ["?"] or ">" in words):
        return "this is XML, not a query", tokens[0].start, f"xmlstream infer prints its CREATE TABLE; {DECLARED}"
    if words[0] == "CREATE":
        created = " ".join(w for w in words[1:6] if w not in ("OR", "REPLACE", "IF", "NOT", "EXISTS"))
        for kind, (what, hint) in _CREATED.items():
            if created.startswith(f"{kind} "):
                return what, tokens[0].start, hint
    for at in range(min(index + 1, len(words) - 1), -1, -1):
        for form, (what, hint) in _ELSEWHERE.items():
            # Before the place where parsing stops, one word may be a name.
            if tuple(words[at : at + len(form)]) == form and (len(form) > 1 or at == index):
                return what, tokens[at + len(form) - 1 if form[0] == "SELECT" else at].start, hint
    return None


def _window(tokens: Sequence[Token], index: int) -> Guess | None:
    """A time window of another engine, at the place or before it."""
    for token, after in zip(tokens[: index + 1][::-1], tokens[1 : index + 2][::-1], strict=False):
        if token.text.lower() in TIME_WINDOWS and after.token_type == TokenType.L_PAREN:
            return f"{token.text}(…) is not supported", token.start, WINDOW_HINT
    return None


def _separator(tokens: Sequence[Token], index: int) -> Guess | None:
    """A missing comma or semicolon before the word."""
    token, before = tokens[index], tokens[:index]
    if index and token.token_type in _BEGIN:
        return f"; is missing before {token.text}", token.start, None
    depth = sum((t.token_type == TokenType.L_PAREN) - (t.token_type == TokenType.R_PAREN) for t in before)
    is_listed = tokens[0].token_type == TokenType.CREATE and depth > 0
    begun = {other.token_type for other in before[-2:]} & _SEPARATORS
    if is_listed and token.text[:1].isidentifier() and not begun:
        return f", is missing before {token.text}", token.start, None
    return None


_BEGIN = frozenset({TokenType.CREATE, TokenType.INSERT})
_SEPARATORS = frozenset({TokenType.COMMA, TokenType.L_PAREN, TokenType.LT})


_PREFIXED = {"E": "write it without E: \\n is a new line in a string", "B": "write bytes in hexadecimal, as in X'0F'"}


def _quoted(tokens: Sequence[Token], index: int, text: str) -> Guess | None:
    """A string with a letter before it, or a name in the quotes of a string."""
    token, before = tokens[index], tokens[index - 1] if index else None
    if before is not None and before.end + 1 == token.start and (hint := _PREFIXED.get(before.text.upper())):
        return f"{before.text}'…' is not supported", before.start, hint
    if token.token_type != TokenType.STRING or text[token.start] != '"':
        return None
    return f'"{token.text}" is a string, not a name', token.start, f"write `{token.text}`"


def _misspelt(tokens: Sequence[Token], index: int) -> Guess | None:
    """The word around the place that is most similar to a keyword of SQL."""
    around = [*tokens[max(0, index - _AROUND) : index + _AROUND + 1]]
    if tokens[0] not in around:
        around.append(tokens[0])  # the first word decides the kind of statement
    unknown = [t for t in around if len(t.text) > 2 and t.text.isalpha() and t.text.upper() not in _WORDS]
    found = [
        (difflib.SequenceMatcher(None, token.text.upper(), word).ratio(), token, word)
        for token in unknown
        for word in difflib.get_close_matches(token.text.upper(), _WORDS, n=1, cutoff=_NEAR)
    ]
    if not found:
        return None
    _, token, word = max(found, key=lambda each: each[0])
    return f"{token.text} is not expected here", token.start, f"did you mean {word}?"
