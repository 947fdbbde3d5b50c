"""Windows in time as Flink and RisingWave write them, rewritten as Spark does before anybody reads the text.

    FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES))     a table with window_start, window_end, …
    FROM HOP(bid, ts, INTERVAL '2 MINUTES', INTERVAL '10 MINUTES')           RisingWave: first the slide, as in Flink
    CAST(t AS TIMESTAMP_LTZ(6))                                              Flink's, of Spark's own precision
    GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)                                   Flink's older form, with TUMBLE_START(…)

Sources: Flink's "Windowing table-valued functions" and "Group windows", RisingWave's "Time windows". Sessions as a
table and windows that cumulate are refused with what to write, of the same table, attribute and lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from operators.expressions.dialect import names_a_table, offset, parsed, tokens
from operators.expressions.duration import duration, length_text
from punct_ns.errors import QueryError, format_error
from xmlstream.sql.query_text import QueryText

_LENGTHS: Mapping[str, tuple[str, ...]] = {
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP",),
}
"""What each takes behind the table and the moment, in order."""

_PARTS = {"": "", "_START": ".start", "_END": ".end"}
_FUNCTIONS = {f"{name}{part}": name for name in ("TUMBLE", "HOP", "SESSION") for part in (*_PARTS, "_ROWTIME")}
_DIFFERS = {
    "regexp_extract": (
        "REGEXP_EXTRACT without a match is '' in Spark and null in Flink, and without a number it is the first group"
        " in Spark and the whole match in Flink",
        "write nullif(regexp_extract(s, '…', 0), '') to get Flink's result",
    ),
    **{
        name: (
            f"{name.upper()} leaves nulls out in Spark, and is null in Flink where one argument is",
            f"write CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN {name}(a, b) END to get Flink's result",
        )
        for name in ("greatest", "least")
    },
}
"""Functions that both have, and that do not mean the same: what differs, and what to write."""

_MOMENTS = frozenset({"TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"})
_BEFORE_A_TABLE = frozenset({TokenType.FROM, TokenType.JOIN})


@dataclass(frozen=True, slots=True)
class _Call:
    """A call among the tokens: its name, its arguments by name or by number, and where it begins and ends."""

    name: str
    arguments: Mapping[str | int, Sequence[Token]]
    begin: int
    end: int
    at: int
    is_table: bool
    is_named: bool = False


def rewritten(text: QueryText) -> QueryText:
    """The text with Spark's windows for those of others; every place in it is that of what it was made from.

    Raises:
        QueryError: A window has no like here; says what to write.
    """
    try:
        found = tokens(text.text)
    except TokenError:
        return text  # which is said when it is read
    if cuts := [*_of_microseconds(found)]:
        ends = [0, *(end for _, end in cuts)], [*(begin for begin, _ in cuts), len(text.text)]
        return rewritten(QueryText.joined(text.part(begin, end) for begin, end in zip(*ends, strict=True)))
    parts: list[str | QueryText] = []
    done = 0
    for call in _calls(found):
        made = _table(call, text) if call.is_table else _function(call, text)
        parts += [text.part(done, call.begin), made]
        done = call.end
    return QueryText.joined([*parts, text.part(done, len(text.text))]) if parts else text


def _of_microseconds(found: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Where a type has the precision that Spark's moments have: TIMESTAMP(6), TIMESTAMP_LTZ(6), TIMESTAMP_NTZ(6)."""
    for i, token in enumerate(found[:-3]):
        if token.text.upper() in _MOMENTS and [behind.text for behind in found[i + 1 : i + 4]] == ["(", "6", ")"]:
            before = [other.token_type for other in found[max(i - 2, 0) : i]]
            is_cast = before[-1:] in ([TokenType.ALIAS], [TokenType.DCOLON])
            if is_cast or before[:1] in ([TokenType.L_PAREN], [TokenType.COMMA]):
                yield found[i + 1].start, found[i + 3].end + 1


def differences(tree: exp.Expr, text: QueryText) -> list[str]:
    """Warnings for the functions in a query that give another result in Flink, one for each function."""
    found = {str(call.this).lower(): call for call in reversed([*tree.find_all(exp.Anonymous)])}
    warned = [(_DIFFERS[name], call) for name, call in found.items() if name in _DIFFERS]
    return [format_error(text.error(what, offset(call), hint)) for (what, hint), call in warned]


def _calls(found: Sequence[Token]) -> Iterator[_Call]:
    done = 0
    for i, token in enumerate(found[:-1]):
        name = token.text.upper()
        if i < done or found[i + 1].token_type != TokenType.L_PAREN or token.token_type == TokenType.IDENTIFIER:
            continue
        if name not in _LENGTHS and name not in _FUNCTIONS:
            continue
        close = _closing(found, i + 1)
        if close is None:
            continue
        arguments = dict(_arguments(found[i + 2 : close]))
        first, last = i, close
        wrapped = [t.text.upper() for t in found[max(i - 2, 0) : i]] == ["TABLE", "("]
        if wrapped and close + 1 < len(found) and found[close + 1].token_type == TokenType.R_PAREN:
            first, last = i - 2, close + 1
        before = found[first - 1].token_type if first else None
        told = arguments.get("DATA") or (arguments.get(0) or [token])
        is_table = wrapped or before in _BEFORE_A_TABLE or told[0].token_type == TokenType.TABLE
        if is_table and name not in _LENGTHS:
            continue
        done = last + 1
        is_named = last + 1 < len(found) and names_a_table(found[last + 1])
        yield _Call(name, arguments, found[first].start, found[last].end + 1, token.start, is_table, is_named)


def _closing(found: Sequence[Token], opening: int) -> int | None:
    depth = 0
    for i in range(opening, len(found)):
        depth += (found[i].token_type == TokenType.L_PAREN) - (found[i].token_type == TokenType.R_PAREN)
        if depth == 0:
            return i
    return None


def _arguments(found: Sequence[Token]) -> Iterator[tuple[str | int, Sequence[Token]]]:
    """The arguments between brackets, by name where they have one, else by number."""
    depth, begin, number = 0, 0, 0
    for i, token in enumerate([*found, None]):
        if token is not None:
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if token is None or (depth == 0 and token.token_type == TokenType.COMMA):
            argument = found[begin:i]
            if len(argument) > 2 and argument[1].token_type == TokenType.FARROW:
                yield argument[0].text.upper(), argument[2:]
            elif argument:
                yield number, argument
            begin, number = i + 1, number + 1


def _table(call: _Call, text: QueryText) -> QueryText:
    """The table with the windows' ends as attributes, as a subquery."""
    data, moment = (_given(call, name, i, text) for i, name in enumerate(("DATA", "TIMECOL")))
    if data[0].token_type == TokenType.TABLE:
        data = data[1:]
    if moment[0].text.upper() == "DESCRIPTOR" and len(moment) > 3:
        moment = moment[2:-1]
    lengths = [_length(call, name, i + 2, text) for i, name in enumerate(_LENGTHS[call.name])]
    table, of = _text(data, text), _text(moment, text)
    if call.name == "SESSION":
        raise _no_table_of_sessions(call, data, of, lengths[0], text)
    if call.name == "CUMULATE":
        raise _no_cumulation(call, table, of, lengths, text)
    window = _window(of, lengths, call)
    ends = ", ".join(
        f"{window}{end} AS {name}"
        for end, name in (
            (".start", "window_start"),
            (".end", "window_end"),
            (".end - INTERVAL 1 MILLISECOND", "window_time"),
        )
    )
    called = f" AS {table}" if len(data) == 1 and not call.is_named else ""
    return _in_place_of(call, text, f"(SELECT *, {ends} FROM {table}){called}")


def _function(call: _Call, text: QueryText) -> QueryText:
    """The window, or its start or end, of a moment that stands beside what is grouped."""
    name = _FUNCTIONS.get(call.name, call.name)
    of = _text(_given(call, "TIMECOL", 0, text), text)
    lengths = [_length(call, part, i + 1, text) for i, part in enumerate(_LENGTHS[name])]
    if name == "CUMULATE":
        raise _no_cumulation(call, "…", of, lengths, text)
    end = call.name.removeprefix(name)
    made = f"session_window({of}, '{lengths[0]}')" if name == "SESSION" else _window(of, lengths, call)
    whole = f"({made}.end - INTERVAL 1 MILLISECOND)" if end == "_ROWTIME" else f"{made}{_PARTS[end]}"
    return _in_place_of(call, text, whole)


def _window(of: str, lengths: Sequence[str | None], call: _Call) -> str:
    """Spark's window: the size comes first, the slide behind it."""
    *slides, size, start = lengths
    slide = slides[0] if slides else size if start is not None else None
    given = ", ".join(f"'{length}'" for length in (size, slide, start) if length is not None)
    return f"window({of}, {given})"


def _given(call: _Call, name: str, number: int, text: QueryText) -> Sequence[Token]:
    found = call.arguments.get(name) or call.arguments.get(number)
    if not found:
        form = ", ".join(("TABLE bid", "DESCRIPTOR(ts)", *("INTERVAL '10' MINUTES" for _ in _LENGTHS[call.name][:-1])))
        raise text.error(f"{call.name} without {name}", call.at, f"write {call.name}({form})")
    return found


def _length(call: _Call, name: str, number: int, text: QueryText) -> str | None:
    """A length as Spark's windows take it; None for an offset that is not given."""
    found = call.arguments.get(name) or call.arguments.get(number)
    if not found:
        if name == "OFFSET":
            return None
        raise text.error(f"{call.name} without {name}", call.at, "write a length, such as INTERVAL '10' MINUTES")
    if (length := _microseconds(_text(found, text))) is None:
        hint = "write a constant length of weeks or less, such as INTERVAL '10' MINUTES"
        raise text.error(f"{_text(found, text)} is no length of a window", found[0].start, hint)
    return length_text(length)


def _microseconds(written: str) -> int | None:
    tree = parsed(written)
    if isinstance(tree, exp.Neg):
        found = _microseconds(written.lstrip().removeprefix("-"))
        return None if found is None else -found
    match tree:
        case exp.Interval(this=exp.Literal() as number, args={"unit": exp.Var() as unit}):
            return duration(exp.Literal.string(f"{number.this} {unit.name}"))
        case exp.Interval(this=exp.Literal() as whole) if not tree.args.get("unit"):
            return duration(whole)
        case exp.Literal() if tree.is_string:
            return duration(tree)
    return None


def _text(found: Sequence[Token], text: QueryText) -> str:
    return text.text[found[0].start : found[-1].end + 1]


def _in_place_of(call: _Call, text: QueryText, made: str) -> QueryText:
    return text.standing(made, call.at)


def _no_table_of_sessions(call: _Call, data: Sequence[Token], of: str, gap: str | None, text: QueryText) -> QueryError:
    keys, table = "", _text(data, text)
    at = next((i for i, token in enumerate(data) if token.text.upper() in ("PARTITION", "PARTITION BY")), None)
    if at is not None:
        table = _text(data[:at], text)
        named = [token for token in data[at + 1 :] if token.text.upper() not in ("BY", "(", ")")]
        keys = f"{_text(named, text)}, " if named else ""
    window = f"session_window({of}, '{gap}')"
    hint = (
        f"write SELECT {keys}session_window.start, session_window.end, count(*) AS n FROM {table} "
        f"GROUP BY {keys}{window}"
    )
    return text.error("SESSION(…) as a table is not supported", call.at, hint)


def _no_cumulation(call: _Call, table: str, of: str, lengths: Sequence[str | None], text: QueryText) -> QueryError:
    step, size, *_ = lengths
    hint = (
        f"count in steps and add them up: write SELECT begin, step, sum(n) OVER (PARTITION BY begin ORDER BY step) AS n"
        f" FROM (SELECT window(w, '{size}').start AS begin, w.end AS step, n FROM (SELECT window AS w, count(*) AS n"
        f" FROM {table} GROUP BY window({of}, '{step}')))"
    )
    return text.error("CUMULATE(…) is not supported", call.at, hint)
