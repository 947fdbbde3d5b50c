"""Queries that grow in one dimension, and how the work of planning them grows: in calls, never in seconds.

A dimension is a function from a number to the text of a query. What nests does so with one function, operator or form;
what is wide has that many columns, operands, sources or statements.
"""

from __future__ import annotations

import cProfile
import gc
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import _lru_cache_wrapper, reduce
from pathlib import Path

from xmlstream.operators.expressions.depth import deeply
from xmlstream.punct_ns.xml_form import PUNCT_NS

Dimension = Callable[[int], str]

COLUMNS = {
    "k": "INT NOT NULL", "v": "INT", "w": "INT NOT NULL", "b": "BIGINT", "x": "DOUBLE", "d": "DECIMAL(10,2)",
    "s": "STRING", "u": "STRING NOT NULL", "p": "BOOLEAN", "t": "TIMESTAMP", "day": "DATE",
}  # fmt: skip
VALUES = ["1", "2", "3", "4", "5.5", "6.25", "a7", "b/8", "true", "2026-01-01T00:09:00Z", "2026-01-10"]

_FORMS: Mapping[str, str] = {
    "v: {f}({0})": "abs bit_count sign signum zeroifnull nullifzero int smallint tinyint",
    "v: {f}({0}, #)": "coalesce ifnull nvl nullif greatest least mod",
    "v: {f}({0}, 7)": "pmod",
    "v: {f}(CAST({0} AS STRING))": "length char_length character_length len ascii",
    "v: {f}(CAST({0} AS STRING), 'a')": "instr",
    "v: {f}({0} > #, v, #)": "if",
    "v: {f}({0}, v, #)": "nvl2",
    "v: IF({f}({0}), v, #)": "isnull isnotnull",
    "v: {f}(array({0}, #))": "array_max array_min",
    "v: {f}(split(CAST({0} AS STRING), '/'))": "array_size cardinality size",
    "v: {f}('a', {0}).a": "named_struct",
    "v: size({f}(0, {0}, 1))": "sequence",
    "v: {f}({0}, 1)": "try_add try_subtract try_multiply",
    "x: {f}({0})": "ceil ceiling floor sqrt double float",
    "x: IF({f}({0}), x, 1.5e0)": "isnan",
    "x: {f}(CAST({0} AS DECIMAL(9,2)), 1)": "",
    "b: {f}({0})": "round bigint",
    "p: {f}({0})": "boolean",
    "t: {f}({0})": "timestamp",
    "v: int({f}({0}))": "decimal",
    "s: {f}({0})": "lower lcase upper ucase ltrim rtrim btrim md5 string",
    "s: {f}({0}, 9)": "left right",
    "s: {f}({0}, 1)": "repeat",
    "s: {f}({0}, 'a', 'b')": "replace translate",
    "s: {f}({0}, '[0-9]+', '')": "regexp_replace",
    "s: {f}({0}, 'a(b)', 1)": "regexp_extract",
    "s: {f}({0}, '/', 1)": "split_part",
    "s: {f}({0}, 256)": "sha2",
    "s: IF({f}({0}, 'a'), s, 'b')": "contains startswith endswith regexp regexp_like rlike",
    "s: IF({f}(split({0}, '/'), 'a'), s, 'b')": "array_contains",
    "s: {f}(split({0}, '/'), 1)": "get element_at",
    "s: {f}({0}, '/')[0]": "split",
    "s: get({f}({0}, s), 0)": "",
    "u: {f}({0}, 'a')": "concat",
    "u: {f}('-', {0}, 'x')": "concat_ws",
    "v: array_max({f}({0}, #))": "array",
    "day: {f}({0})": "last_day date to_date",
    "day: {f}({0}, 1)": "date_add date_sub dateadd",
    "day: {f}({0}, 'MM')": "trunc",
    "day: date_add(day, {f}({0}))": "year month day dayofmonth quarter dayofyear dayofweek weekday weekofyear",
    "day: date_add(day, {f}({0}, day))": "datediff",
    "day: date_add(day, length({f}({0})))": "dayname monthname",
    "day: to_date({f}({0}, 'yyyy-MM-dd'))": "date_format",
    "day: date_from_unix_date({f}({0}))": "unix_date",
    "day: {f}(unix_date({0}))": "date_from_unix_date",
    "day: {f}(CAST({0} AS STRING))": "try_to_date",
    "t: timestamp_seconds({f}({0}))": "hour minute second unix_seconds",
    "t: timestamp_millis({f}({0}))": "unix_millis",
    "t: timestamp_micros({f}({0}))": "unix_micros",
    "t: {f}(unix_micros({0}))": "timestamp_micros timestamp_millis timestamp_seconds",
    "t: {f}('HOUR', {0})": "date_trunc",
    "t: {f}({0}, 'Europe/Berlin')": "from_utc_timestamp to_utc_timestamp",
    "t: {f}(CAST({0} AS STRING))": "to_timestamp try_to_timestamp",
}
"""For forms of calls, each with the attribute that it begins with, the functions that nest so."""

FUNCTIONS: Mapping[str, str] = {f: form.replace("{f}", f) for form, names in _FORMS.items() for f in names.split()}
"""The functions that the engine in process knows, each in the form in which it nests."""

OPERATORS: Mapping[str, str] = {
    "-": "v: -({0})", "NOT": "p: NOT ({0})", "()": "v: ({0})", "# +": "v: (# + {0})", "+ #": "v: ({0} + #)",
    "- #": "v: ({0} - #)", "*": "v: ({0} * 1)", "/": "x: ({0} / 2)", "DIV": "b: ({0} DIV 2)", "%": "v: ({0} % 7)",
    "/ x": "x: ({0} / x)", "&": "v: ({0} & 7)", "|": "v: ({0} | #)", "^": "v: ({0} ^ #)",
    "interval": "t: ({0} + INTERVAL 1 DAY)", "try interval": "t: try_add({0}, INTERVAL 1 DAY)",
    "BETWEEN": "v: IF({0} BETWEEN 1 AND #, v, #)", "IN": "v: IF({0} IN (1, #), v, #)",
    "LIKE": "s: IF({0} LIKE 'a%', s, 'b')", "<=>": "v: IF({0} <=> #, v, #)", "=": "p: ({0} = p)",
    "IS NULL": "v: IF({0} IS NULL, #, v)", "OR AND": "p: (v > # OR (v < # AND {0}))", "AND": "p: (v > # AND {0})",
    "OR AND raising": "p: (1 DIV v > # OR (1 DIV v < # AND {0}))",
    "CASE inside": "v: CASE WHEN v > # THEN {0} ELSE # END", "CASE ELSE": "v: CASE WHEN v = # THEN # ELSE {0} END",
    "CASE WHEN": "v: CASE WHEN {0} > # THEN v ELSE # END",
    "CASE of": "v: CASE {0} WHEN # THEN v WHEN 5 THEN w ELSE # END",
    "wider": "v: CAST(CAST({0} AS BIGINT) AS INT)", "text": "v: CAST(CAST({0} AS STRING) AS INT)",
    "decimal": "b: CAST(CAST({0} AS DECIMAL(19,0)) AS BIGINT)", "moment": "t: CAST(CAST({0} AS DATE) AS TIMESTAMP)",
    "TRY_CAST": "v: TRY_CAST(CAST({0} AS STRING) AS INT)", "SUBSTRING": "s: substring({0}, 1, 3)",
    "TRIM": "s: trim({0})",
}  # fmt: skip
"""What is no function, in the form in which it nests."""

CHAINS: Mapping[str, str] = {
    "+": "v", "-": "v", "*": "w", "||": "s", "&": "v", "/": "x", "AND": "v > #", "OR": "v = #", " AND": "k <> #",
    " OR": "k BETWEEN #0 AND #5", "  AND": "(v > # OR w < #)", "  OR": "(v > # AND s = 'a#')",
    " ||": "CAST(v AS STRING)",
}  # fmt: skip
"""Operators without brackets, each with a term; blanks tell those of one operator apart."""


def table(directory: Path, name: str = "a") -> str:
    """A source of one tuple, and its declaration."""
    leaves = "".join(f"<{n}>{value}</{n}>" for n, value in zip(COLUMNS, VALUES, strict=True))
    text = f"<s xmlns:p='{PUNCT_NS}'><r>{leaves}</r><p:r><k>1</k></p:r></s>"
    return _declared(directory, name, ", ".join(f"{n} {type_}" for n, type_ in COLUMNS.items()), text)


def wide(directory: Path, columns: int) -> str:
    """A source `g` with a key and that many columns, and its declaration."""
    leaves = "".join(f"<c{n}>{n}</c{n}>" for n in range(columns))
    text = f"<s xmlns:p='{PUNCT_NS}'><r><k>1</k>{leaves}</r><p:r><k>1</k></p:r></s>"
    return _declared(directory, "g", f"k INT NOT NULL, {_each(columns, 'c# INT')}", text)


def _declared(directory: Path, name: str, columns: str, text: str) -> str:
    (directory / f"{name}.xml").write_text(text, encoding="utf-8")
    options = f"path '{directory}/{name}.xml', rowTag 'r', schemes 'k'"
    return f"CREATE TABLE {name} ({columns}) USING punctuated_xml OPTIONS ({options});\n"


def _each(number: int, form: str, between: str = ", ", first: int = 0) -> str:
    return between.join(form.replace("#", str(i)) for i in range(first, number))


def nested(directory: Path, form: str) -> Dimension:
    """A form within itself, from the attribute that it begins with."""
    begin, _, each = form.partition(": ")

    def text(number: int) -> str:
        inner = reduce(lambda inner, i: each.replace("{0}", inner).replace("#", str(i)), range(number), begin)
        return f"{table(directory)}SELECT k, {inner} AS y FROM a"

    return text


def chained(directory: Path, operator: str, term: str) -> Dimension:
    """A chain of terms: of conditions in WHERE, else as a column."""

    def text(number: int) -> str:
        chain = _each(number, term, f" {operator.strip()} ")
        of_rows = operator.strip() in ("AND", "OR")
        return table(directory) + (f"SELECT k FROM a WHERE {chain}" if of_rows else f"SELECT k, {chain} AS y FROM a")

    return text


_INNER: Mapping[str, str] = {
    "of calls": "SELECT k, abs(v) AS v, s FROM ", "of sums": "SELECT k, v + k AS v, s FROM ",
    "of texts": "SELECT k, v, s || 'a' AS s FROM ", "used twice": "SELECT k, (v + v) % 7 AS v, s FROM ",
    "of copies": "SELECT k, v, s FROM ", "of conditions": "SELECT k, v, s FROM (SELECT k, v, s FROM @ WHERE v > #)",
    "of groups": "SELECT k, max(v) AS v, max(s) AS s FROM @ GROUP BY k",
    "of distincts": "SELECT DISTINCT k, v, s FROM ",
}  # fmt: skip


def _subqueries(form: str, number: int) -> str:
    place = form if "@" in form else f"{form}@"
    return reduce(
        lambda query, i: place.replace("@", f"({query})").replace("#", str(i)), range(number), "SELECT * FROM a"
    )


def _withs(form: str, number: int) -> str:
    place = form if "@" in form else f"{form}@"
    each = (f"q{i + 1} AS ({place.replace('@', f'q{i}').replace('#', str(i))})" for i in range(number))
    return f"WITH {', '.join(['q0 AS (SELECT k, v, s FROM a)', *each])} SELECT * FROM q{number}"


def _views(form: str, number: int) -> str:
    place = form if "@" in form else f"{form}@"
    views = (
        f"CREATE VIEW v{i} AS {place.replace('@', f'v{i - 1}' if i else 'a').replace('#', str(i))};\n"
        for i in range(number)
    )
    return f"{''.join(views)}SELECT * FROM v{number - 1}"


def queries(directory: Path) -> Iterator[tuple[str, Dimension]]:
    """Subqueries, WITH, views and lists, each by its name."""
    ways = {"subqueries": _subqueries, "WITH": _withs, "views": _views}
    for (what, form), (how, way) in ((f, w) for f in _INNER.items() for w in ways.items()):
        yield f"{how} {what}", lambda n, form=form, way=way: table(directory) + way(form, n)  # type: ignore[misc]
    listed: Mapping[str, Callable[[int], str]] = {
        "UNION ALL": lambda n: _each(n, "SELECT k, v + # AS y FROM a", " UNION ALL "),
        "UNION": lambda n: _each(n, "SELECT k, v + # AS y FROM a", " UNION "),
        "IN list": lambda n: f"SELECT k FROM a WHERE v IN ({_each(n, '#')})",
        "NOT IN list": lambda n: f"SELECT k FROM a WHERE s NOT IN ({_each(n, chr(39) + '#' + chr(39))})",
        "coalesce list": lambda n: f"SELECT k, coalesce({_each(n, 'v')}) AS y FROM a",
        "concat list": lambda n: f"SELECT k, concat({_each(n, 'u')}) AS y FROM a",
        "greatest list": lambda n: f"SELECT k, greatest({_each(n, 'v + #')}) AS y FROM a",
        "CASE list": lambda n: f"SELECT k, CASE {_each(n, 'WHEN v = # THEN #', ' ')} END AS y FROM a",
        "CASE of list": lambda n: f"SELECT k, CASE v {_each(n, 'WHEN # THEN #', ' ')} END AS y FROM a",
        "columns of one": lambda n: f"SELECT k, {_each(n, 'v + # AS y#')} FROM a",
    }
    for what, text in listed.items():
        yield what, lambda n, text=text: table(directory) + text(n)  # type: ignore[misc]


WIDE: Mapping[str, Callable[[int], str]] = {
    "SELECT *": lambda n: "SELECT * FROM g",
    "SELECT": lambda n: f"SELECT k, {_each(n, 'c#')} FROM g",
    "computed": lambda n: f"SELECT k, {_each(n, 'c# % 7 AS d#')} FROM g",
    "MAX": lambda n: f"SELECT k, {_each(n, 'max(c#) AS d#')} FROM g GROUP BY k",
    "MAX of sums": lambda n: f"SELECT k, {_each(n, 'max(c# % 7) % 5 AS d#')} FROM g GROUP BY k",
    "HAVING": lambda n: f"SELECT k, max(c0) AS d FROM g GROUP BY k HAVING {_each(n, 'max(c#) > 0', ' AND ')}",
    "keys": lambda n: f"SELECT k, {_each(n, 'c#')}, count(*) AS q FROM g GROUP BY k, {_each(n, 'c#')}",
    "DISTINCT": lambda n: "SELECT DISTINCT * FROM g",
    "join": lambda n: f"SELECT g.k, {_each(n, 'h.c# AS h#, g.c# AS g#')} FROM g JOIN g AS h ON g.k = h.k",
    "left join": lambda n: f"SELECT g.k, {_each(n, 'h.c# AS h#')} FROM g LEFT JOIN g AS h ON g.k = h.k",
    "join on": lambda n: f"SELECT g.k FROM g JOIN g AS h ON g.k = h.k AND {_each(n, 'h.c# = g.c#', ' AND ')}",
    "USING": lambda n: f"SELECT * FROM g JOIN g AS h USING (k, {_each(n, 'c#')})",
    "semi join": lambda n: "SELECT * FROM g WHERE k IN (SELECT k FROM g AS h)",
    "WHERE": lambda n: f"SELECT k FROM g WHERE {_each(n, 'c# > 0', ' AND ')}",
    "UNION": lambda n: "SELECT * FROM g UNION SELECT * FROM g WHERE c0 > 1",
    "EXCEPT": lambda n: "SELECT * FROM g EXCEPT SELECT * FROM g WHERE c0 > 1",
    "lag": lambda n: f"SELECT k, {_each(n, 'lag(c#) OVER (PARTITION BY k ORDER BY c0) AS d#')} FROM g",
    "QUALIFY": lambda n: "SELECT * FROM g QUALIFY row_number() OVER (PARTITION BY k ORDER BY c0) = 1",
    "sum": lambda n: f"SELECT k, {_each(n, 'c#', ' + ')} AS y FROM g",
}  # fmt: skip
"""Queries over a source of that many columns."""

MANY: Mapping[str, Callable[[int], str]] = {
    "UNION ALL of sources": lambda n: _each(n, "SELECT k, v FROM a#", " UNION ALL "),
    "groups of sources": lambda n: f"SELECT k, max(v) AS m FROM ({_each(n, 'SELECT k, v FROM a#', ' UNION ')})"
    " GROUP BY k",
    "join of sources": lambda n: f"SELECT a0.k, {_each(n, 'a#.v AS v#')} FROM a0 "
    + _each(n, "JOIN a# ON a0.k = a#.k", " ", first=1),
    "semi joins": lambda n: f"SELECT k FROM a0 WHERE {_each(n, 'k IN (SELECT k FROM a#)', ' AND ', first=1)}",
    "one of sources": lambda n: "SELECT k FROM a0",
}  # fmt: skip
"""Queries over that many sources."""


def clear_caches() -> None:
    """Empties all caches of this package, so that a text is planned as if it were the first."""
    for each in gc.get_objects():
        if isinstance(each, _lru_cache_wrapper) and str(each.__module__).startswith("xmlstream."):
            each.cache_clear()


def calls(work: Callable[[], object]) -> Counter[str]:
    """How often each function is called, and how often those are resumed that generate."""
    profile = cProfile.Profile()
    deeply(lambda: profile.runcall(work))
    found = Counter[str]()
    for entry in profile.getstats():
        code = entry.code
        found[code if isinstance(code, str) else f"{Path(code.co_filename).stem}.{code.co_name}"] += entry.callcount
    return found


def exponent(sizes: Sequence[int], work: Sequence[int]) -> float:
    """How work grows, without what does not: three sizes, each twice the one before, of a + b·n^e give e."""
    assert [2 * size for size in sizes[:-1]] == list(sizes[1:])
    assert len(sizes) == 3
    first, second = work[1] - work[0], work[2] - work[1]
    return math.log2(max(second, 1) / max(first, 1))


def steepest(sizes: Sequence[int], found: Sequence[Counter[str]], most: float) -> list[str]:
    """The functions whose calls grow faster than that, those called most first."""
    names = sorted(found[-1], key=lambda name: -found[-1][name])
    return [
        f"{name}: {found[-1][name]}, exponent {grown:.2f}"
        for name in names[:200]
        if (grown := exponent(sizes, [each[name] for each in found])) > most and found[-1][name] > sizes[-1]
    ][:8]
