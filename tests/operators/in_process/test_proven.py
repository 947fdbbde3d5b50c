"""Each proven expression has in DuckDB the value, the type, the nullability and the errors that it has in Spark."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from sqlglot import exp

from tests.harness.both_engines import ALL
from tests.harness.drawn_expressions import Drawn
from tests.harness.drawn_rows import TYPES, Rows
from tests.harness.kept_answers import Answers, asked, both_ways
from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.operators.expressions.dialect import call_name, expression
from xmlstream.operators.expressions.operations.aggregate_functions import AGGREGATES, WINDOWS
from xmlstream.operators.expressions.operations.casts import CASTS
from xmlstream.operators.expressions.operations.functions import FUNCTIONS
from xmlstream.operators.expressions.operations.spark_type import NotProven
from xmlstream.operators.in_process.expressions import translated
from xmlstream.operators.in_process.names import default_name
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.time_zones import transitions

ROWS = 300 if AT_NIGHT else 60
DRAWN = 3000 if AT_NIGHT else 150


@pytest.fixture(scope="module", params=both_ways())
def answers(request: pytest.FixtureRequest) -> Iterator[Answers]:
    """Spark's answers: by day those that are kept, in the rest of the tests and by night those of its session."""
    yield from asked(request)


NUMBERS = ("ti", "si", "i", "b", "f", "x", "d", "e", "w", "z")
ORDERED = tuple(TYPES)


def arithmetic() -> list[str]:
    found = [f"{a}1 {op} {b}{2 + (i % 2)}" for i, (a, op, b) in enumerate(product(NUMBERS, "+-*/%", NUMBERS))]
    found += [f"{a}3 {op} {b}3" for a, op, b in product(("ti", "i", "b", "x", "d"), "+-*/%", ("si", "b", "x", "e"))]
    found += [f"{a}1 DIV {b}2" for a, b in product(("ti", "si", "i", "b"), repeat=2)]
    literals = ("2", "0", "-1", "2.5", "0.908", "1e3", "3L", "0.0", "5000", "1.5BD")
    beside = [f"{a}1 {op} {n}" for a, op, n in product(NUMBERS, "+-*/%", literals)]
    beside += [f"{n} {op} {a}1" for a, op, n in product(NUMBERS, "-*/%", literals)]
    # By day every third: of a number, an operator and another number or a literal, each two meet.
    found = found + beside if AT_NIGHT else found[::3] + beside[::3]
    found += [text for a in NUMBERS for text in (f"-{a}1", f"abs({a}1)", f"mod({a}1, 7)", f"pmod({a}1, 7)")]
    found += [f"{a}1 {op} {b}2" for a, op, b in product(("ti", "i", "b"), "&|^", ("si", "b"))]
    found += [text.format(a) for a in ("ti", "i", "b") for text in ("({0}1 + 1) + 2", "3 + {0}3 + 1", "{0}1 * 2 * 3")]
    return found + [f"try_{op}(i1, {a}2)" for op, a in product(("add", "subtract", "multiply"), ("ti", "i", "b"))]


def beside_texts() -> list[str]:
    """What Spark reads texts as: numbers, moments and booleans beside them."""
    found = [f"{a}{i} {op} {b}" for a, i, op, b in product(TYPES, (1, 3), ("=", "<", "<=>"), ("s3", "'1'"))]
    found += [f"'12' = {a}1" for a in TYPES] + [f"{a}1 IN ('1', '2')" for a in TYPES]
    found += [f"{a}1 {op} '2'" for a, op in product(NUMBERS, "+-*/%")] + [
        f"s3 {op} {a}3" for a, op in product(NUMBERS, "+/")
    ]
    found += [
        text.format(a) for a in TYPES for text in ("coalesce({0}1, s3)", "IF(p1, '7', {0}3)", "nullif({0}1, '1')")
    ]
    found += [f"CASE WHEN p1 THEN {a}1 ELSE s3 END" for a in TYPES] + ["i1 BETWEEN '1' AND '5'", "array(i1, '1')"]
    moments = ("s1", "CAST(day1 AS STRING)", "CAST(t3 AS STRING)", "concat(CAST(t1 AS STRING), 'Z')",
               "replace(CAST(t1 AS STRING), '2', '3')", "replace(CAST(day3 AS STRING), '1', '3')",
               "replace(CAST(t1 AS STRING), ' ', 'T')")  # fmt: skip
    found = found if AT_NIGHT else found[::4]
    return found + [f"CAST({of} AS {to})" for of, to in product(moments, ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"))]


def test_what_stands_beside_texts(answers: Answers) -> None:
    findings = answers.compared("beside texts", Rows.drawn(None, ROWS, SEED + 21), beside_texts())
    assert not findings.differences, findings


def test_arithmetic(answers: Answers) -> None:
    findings = answers.compared("arithmetic", Rows.drawn(None, ROWS, SEED), arithmetic())
    assert not findings.differences, findings


def comparisons() -> list[str]:
    found = [f"{a}1 {op} {b}2" for a, op, b in product(NUMBERS, ("=", "<"), NUMBERS)]
    found += [f"{a}1 {op} {a}{i}" for a, op, i in product(ORDERED, ("=", "<>", "<", "<=", ">", ">=", "<=>"), (2, 3))]
    found += [f"{a}1 {op} {b}2" for a, op, b in product(("day", "t", "n"), ("=", "<"), ("day", "t", "n"))]
    found += [text for a in ORDERED for text in (f"{a}1 IS NULL", f"{a}1 IS NOT NULL", f"{a}1 IN ({a}2, {a}3, NULL)")]
    found += [f"{a}1 BETWEEN {a}2 AND {a}3" for a in ORDERED]
    found += [f"{a}3 {op} -1" for a, op in product(NUMBERS, ("<", "=") if AT_NIGHT else "<")]
    found += [f"{a}1 < {n}" for a, n in product(("i", "d"), ("2.5", "-2.5"))]
    found += [f"{a}1 IN ({a}2, {a}3)" for a in ORDERED] + [f"NOT {a}1 IN ({a}3)" for a in ORDERED]
    found += [
        "t1 > '2020-01-01T00:00:00Z'",
        "day1 <= '2020-02-29'",
        "t1 BETWEEN TIMESTAMP '1970-01-01 00:00:00' AND t2",
    ]
    found += [
        "s1 LIKE 'a%'",
        "s1 NOT LIKE '%b_'",
        "s1 LIKE '%''%'",
        "s1 ILIKE 'A%'",
        "s1 NOT ILIKE '%B_'",
        "i1 IS DISTINCT FROM i2",
        "p1 IS TRUE",
        "p1 IS FALSE",
    ]
    arrays = (
        "array({0}1, {0}2)",
        "array(named_struct('v', {0}1), named_struct('v', {0}3))",
        "array(array({0}1), array({0}2))",
    )
    found += [
        f"{array.format(a)} {op} {array.format(a).replace('2', '3')}"
        for array, op, a in product(arrays, ("=", "<>", "<=>"), ("ti", "x", "s", "d", "t"))
    ]
    found += ["array(ti1) = array(b2)", "array(p1, NULL) = array(p2, NULL)", "split(s1, 'a') = split(s2, 'a')"]
    found += ["p1 AND p2", "p1 OR p2", "NOT p1", "p1 AND i1 + 1 > 0", "p1 OR 1 / i1 > 0", "i1 <> 0 AND 1 / i1 > 0"]
    found += [
        "i1 = 0 OR 10 DIV i1 > 0",
        "p1 AND NULL",
        "NULL OR p1",
        "NOT NULL",
        "p1 = p2 AND NOT p3",
        "i1 IN (1, 2.5)",
    ]
    return found


def test_comparisons(answers: Answers) -> None:
    findings = answers.compared("comparisons", Rows.drawn(None, ROWS, SEED + 1), comparisons())
    assert not findings.differences, findings


def casts() -> list[str]:
    targets = (*TYPES.values(), "DECIMAL(38,18)", "DECIMAL(3,0)", "DECIMAL(13,3)", "DECIMAL(12,1)")
    found = [f"CAST({a}{i} AS {to})" for a, to, i in product(TYPES, targets, (1, 3))]
    found += [
        f"TRY_CAST({a}{i} AS {to})" for a, to, i in product(TYPES, targets, (1, 3)) if AT_NIGHT or i == 3 or a == "s"
    ]
    found += [f"TRY_CAST(regexp_replace(s{i}, '[^0-9]$', '') AS {to})" for i, to in product((1, 3), TYPES.values())]
    called = ("bigint", "boolean", "decimal", "double", "float", "int", "smallint", "string", "timestamp", "tinyint")
    found += [f"{to}({a}1)" for a, to in product(TYPES, called)]
    words = ("true", "FALSE", " 1 ", "0", "12", "-7.50", "1e3", "2020-02-29", "2020-02-29T12:00:00Z")
    return found + [
        f"{how}('{word}' AS {to})" for how, word, to in product(("CAST", "TRY_CAST"), words, TYPES.values())
    ]


def test_casts(answers: Answers) -> None:
    findings = answers.compared("casts", Rows.drawn(None, ROWS, SEED + 2), casts())
    assert not findings.differences, findings


LONG = {
    "h": "DECIMAL(38,0)",
    "j": "DECIMAL(38,18)",
    "k": "DECIMAL(36,2)",
    "q": "DECIMAL(38,38)",
    "r": "DECIMAL(34,3)",
    **{name: TYPES[name] for name in ("i", "x", "p", "s")},
}
"""Decimals about the 34 digits to which Java rounds where it computes with them."""


def of_long_decimals() -> list[str]:
    long = [name for name, type_ in LONG.items() if type_.startswith("DECIMAL")] if AT_NIGHT else ["h", "q", "r"]
    targets = (
        "TINYINT",
        "INT",
        "BIGINT",
        "DOUBLE",
        "STRING",
        "BOOLEAN",
        "DECIMAL(38,0)",
        "DECIMAL(38,18)",
        "DECIMAL(10,0)",
    )
    forms = [
        "-{0}1",
        "abs({0}3)",
        "- -{0}1",
        "{0}1 = {0}2",
        "{0}1 < {0}3",
        "{0}1 IN ({0}2, {0}3)",
        "coalesce({0}1, {0}2)",
    ]
    forms += ["nullif({0}1, {0}2)", "greatest({0}1, {0}2)", "{0}1 + {0}2", "{0}1 - 1", "{0}1 * {0}2", "{0}1 * 2"]
    forms += [
        "{0}1 / {0}2",
        "{0}1 % {0}2",
        "{0}1 % 7",
        "{0}1 > i1",
        "{0}1 = x1",
        "{0}1 + x1",
        "array({0}1) = array({0}2)",
    ]
    forms += ["{0}1 <=> {0}2", "ceil({0}1)", "floor({0}1)", "named_struct('a', {0}1) < named_struct('a', {0}2)"]
    found = [f"CAST({a}{i} AS {to})" for a, to, i in product(long, targets, (1, 3))]
    found += [f"CAST({a}1 AS {LONG[to]})" for a, to in product(("i", "x", "s"), long)]
    return found + [form.format(a) for a, form in product(long, forms)]


def test_long_decimals(answers: Answers) -> None:
    findings = answers.compared("long decimals", Rows.drawn(None, ROWS, SEED + 11, types=LONG), of_long_decimals())
    assert not findings.differences, findings
    sums = [f"{f}({a}{i})" for f, a, i in product(("sum", "min", "max"), LONG, (1, 3)) if LONG[a].startswith("DECIMAL")]
    for by in ("g", ALL):
        findings = answers.compared(
            f"sums of long decimals by {by}", Rows.drawn(None, 12, SEED + 12, types=LONG), sums, by=by
        )
        assert not findings.differences, findings


def texts() -> list[str]:
    found = [
        "lower(s1)",
        "upper(s1)",
        "length(s1)",
        "len(s3)",
        "replace(s1, 'a', '')",
        "replace(s1, s2, 'x')",
        "s1 || s2",
    ]
    found += ["concat(s1, '-', s2)", "contains(s1, s2)", "contains(s1, 'a')", "startswith(s1, s2)", "endswith(s1, 'b')"]
    found += [
        "get(split(s1, '/'), 3)",
        "split(s1, ' ')",
        "split(s1, ',')",
        "get(split(s1, '/'), i1)",
        "size(split(s1, 'a'))",
    ]
    found += ["regexp_extract(s1, '(&|^)channel_id=([^&]*)', 2)", "regexp_extract(s1, '([a-c]+)/', 1)"]
    found += [
        "regexp_extract(s1, '[^a]+', 0)",
        "trim(s1)",
        "substring(s1, 2, 2)",
        "substring(s1, 2)",
        "substring(s1, 0, 2)",
    ]
    found += of_patterns() + [
        f"translate(s1, {of})" for of in ("',', '.'", "'ab', 'b'", "'aab', 'xyz'", "'é', ''", "s2, s3")
    ]
    found += [f"{f}(s{i})" for f in ("ascii", "btrim", "ltrim", "rtrim", "md5", "ucase", "lcase") for i in (1, 3)]
    found += [
        "char_length(s1)",
        "character_length(s3)",
        "instr(s1, 'a')",
        "instr(s1, s3)",
        "position('a' IN s1)",
        "position(s3 IN s1)",
        "repeat(s1, 2)",
        "sha2(s1, 256)",
        "sha2(s3, 0)",
        "repeat(s3, -1)",
    ]
    found += [f"{f}(s{i}, {n})" for f, i, n in product(("left", "right"), (1, 3), ("2", "ti1", "-1"))]
    found += [f"split(s{i}, '/')[{n}]" for i, n in product((1, 3), ("0", "ti3", "-1"))]
    found += [f"element_at(split(s{i}, 'a'), {n})" for i, n in product((1, 3), ("1", "i3", "0", "-1"))]
    found += ["coalesce(s1, s2, 'none')", "nullif(s1, s2)", "length(s1) - length(replace(s1, 'a', ''))"]
    found += [
        "CASE lower(s1) WHEN 'a' THEN '0' WHEN 'b' THEN '1' ELSE s2 END",
        "s1 < s2",
        "greatest(s1, s2)",
        "least(s1, 'm')",
    ]
    found += ["concat_ws('-', s1, s2)", "concat_ws(s1, s2, s3)", "split_part(s1, '/', 2)", "split_part(s3, 'a', 1)",
              "split_part(s1, '//', 3)", "split_part(s1, 'a', -1)", "array_max(split(s1, 'a'))",
              "array_contains(split(s3, '/'), 'a')", "s1 NOT RLIKE '[A-Z]'", "regexp(s1, 'a$')", "rlike(s1, '^a')",
              "regexp_like(s3, 'a?b')"]  # fmt: skip
    found += [f"regexp_replace(s1, '{pattern}', 'x')" for pattern in patterns(60 if AT_NIGHT else 10)]
    found += [f"s1 RLIKE '^{pattern}'" for pattern in patterns(60 if AT_NIGHT else 10)]
    return found


def patterns(number: int) -> list[str]:
    """Regular expressions of what Java and RE2 read alike, and of what only one of them has."""
    source = random.Random(SEED)
    parts = (
        "a",
        "b",
        "ab",
        "/",
        "&",
        "=",
        "[ab]",
        "[^a]",
        "[a&&b]",
        "[a&b]",
        "[^/&]",
        "[&&a]",
        "[a=&]",
        "[0-9]",
        "[^a-f]",
        "[A-Zb]",
        "(a|^)",
        "(ab)",
        "é",
        ".",
        r"\\d",
        r"\\s",
        r"\\W",
        r"\\S",
        r"\\.",
        r"[\\s\\d-]",
        r"[^\\w.]",
        "(?:a|b/)",
        "(a|/b)",
        "((a)|b)",
        "(a*)",
        "[ -/]",
        "^",
        "$",
        "|",
    )
    ends = ("", "", "", "*", "+", "?", "*?", "+?", "++", "{2}", "{1,}", "{0,3}", "{2,1}")
    drawn = (
        "".join(source.choice(parts) + source.choice(ends) for _ in range(source.randrange(1, 5)))
        + source.choice(("", "", "$"))
        for _ in range(number)
    )
    anchored = (
        "^[0-9]+$",
        "^a?[^b]$",
        "^[^a]*?$",
        ".$",
        r"\\s+$",
        "^$",
        "$",
        "^(a|b|)$",
        "(?:\\\\d|[^a])+$",
        ".*",
        "^.*$",
    )
    return [part + end for part in parts for end in ("", "+")] + list(drawn) + list(anchored)


def of_patterns() -> list[str]:
    forms = (
        "regexp_extract(s1, '{}', 0)",
        "regexp_extract(s3, '{}')",
        "s1 RLIKE '{}'",
        "regexp_replace(s3, '{}', '_')",
    )
    more = ("regexp_extract(s1, '{}', 2)", "regexp_replace(s1, '({})', '<$1>')", "split(s3, '{}')", "rlike(s3, '{}')")
    drawn = patterns(400 if AT_NIGHT else 60)
    found = [form.format(pattern) for pattern in drawn for form in (forms + more if AT_NIGHT else forms)]
    return found if AT_NIGHT else found[::2] + [more[i % 4].format(pattern) for i, pattern in enumerate(drawn)]


def moments() -> list[str]:
    found = [
        f"{name}({a}1)"
        for name in ("year", "quarter", "month", "day", "dayofmonth", "dayofyear", "dayofweek", "weekday", "weekofyear")
        for a in ("t", "n", "day")
    ]
    found += [f"{name}({a}1)" for name in ("hour", "minute", "second") for a in ("t", "n")]
    found += [f"{name}({a}1)" for name in ("to_date", "date") for a in ("t", "n", "day")]
    found += [
        f"date_format({a}1, '{p}')"
        for a in ("t", "n", "day")
        for p in ("yyyy-MM-dd", "HH:mm", "yyyy/MM/dd HH:mm:ss.SSS")
    ]
    found += [f"date_trunc('{u}', t1)" for u in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "hour", "MINUTE", "SECOND")]
    found += [f"date_trunc('{u}', {a})" for u in ("YEAR", "hour") for a in ("n1", "day3")]
    found += [f"{way}_utc_timestamp({of}1, 'Europe/Berlin')" for way in ("from", "to") for of in ("t",)]
    found += [f"trunc(day{i}, '{u}')" for u in ("MM", "YEAR", "QUARTER", "week") for i in (1, 3)] + ["last_day(day3)"]
    found += [f"unix_{u}(t1)" for u in ("seconds", "millis", "micros")] + ["unix_date(day1)", "date_from_unix_date(i1)"]
    found += [f"timestamp_{u}({a}1)" for u in ("seconds", "millis", "micros") for a in ("i", "b")]
    found += [
        "t1 + INTERVAL 5 MINUTES",
        "t1 - INTERVAL '1' HOUR",
        "n1 + INTERVAL 2 DAYS",
        "INTERVAL 1 SECOND + t1",
        "try_add(t1, INTERVAL 5 MINUTES)",
    ]
    found += ["t1 + INTERVAL '26' HOUR", "t1 - make_dt_interval(1, 0, 0, CAST('1.500000' AS DECIMAL(18,6)))"]
    found += [
        "date_add(day1, 3)",
        "date_add(day1, si1)",
        "date_sub(day1, 1)",
        "datediff(day1, day2)",
    ]
    units = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")
    found += [f"timestampdiff({unit}, t1, t{i})" for unit, i in product(units, (2, 3))]
    found += [
        "datediff(MINUTE, t1, t3)",
        "date_diff(HOUR, t2, t3)",
        "date_part('minute', t1)",
        "datepart('YEAR', day1)",
    ]
    found += ["extract(HOUR FROM t1)", "extract(YEAR FROM day1)"]
    found += [
        "CAST(t1 AS STRING)",
        "CAST(t1 AS DATE)",
        "CAST(n1 AS STRING)",
        "CAST(t1 AS BIGINT)",
        "CAST(t1 AS TIMESTAMP_NTZ)",
    ]
    found += [
        "unix_micros(t1) - pmod(unix_micros(t1) - 5L, 10000000L)",
        "TIMESTAMP '2020-02-29 12:00:00'",
        "DATE '2020-02-29'",
    ]
    written = ("s1", "concat(day(t1), '.11.', year(day3))", "date_format(t3, 'dd.MM.yyyy HH:mm')",
               "date_format(t1, 'yyyyMMddHHmmss')", "date_format(n1, 'yyyy-MM-dd')")  # fmt: skip
    forms = (
        "dd.MM.yyyy",
        "dd.MM.yyyy HH:mm",
        "yyyyMMddHHmmss",
        "yyyy-MM-dd",
        "MM/dd/yyyy",
        "yyyy-MM-dd''T''HH:mm:ss",
        "d.M.yy",
    )
    names = ("to_timestamp", "try_to_timestamp", "to_date", "try_to_date")
    found += [f"{f}({of})" for f, of in product(names, ("s1", "s3", "CAST(t1 AS STRING)"))]
    found += [f"{f}({of}, '{form}')" for f, of, form in product(names, written, forms)]
    # Windows end a little behind the calendar, and begin before it.
    beyond = [f"timestamp_seconds({end} + pmod(i1, 30000000))" for end in (253_402_300_800, -62_167_000_000)]
    found += [f"{f}({at})" for at in beyond for f in ("", "year", "month", "dayofyear", "hour", "unix_micros", "date")]
    found += [f"{at} {op} t1" for at in beyond for op in ("<", "=")]
    found += [f"date_trunc('{u}', {at})" for at in beyond for u in ("YEAR", "WEEK", "DAY", "hour")]
    written = ("yy d M", "E hh:mm a", "h H s m", "EEEE MMM", "MMMM DDD")
    found += [f"date_format({a}1, '{form}')" for a, form in product(("t", "n", "day"), written)]
    found += ["dateadd(day3, 2)", "dayname(day1)", "monthname(day3)"]
    return found


def choices() -> list[str]:
    found = [f"coalesce({a}1, {a}2, {a}3)" for a in TYPES] + [f"IF(p1, {a}1, {a}3)" for a in TYPES]
    found += [f"CASE WHEN p1 THEN {a}1 WHEN i1 > 0 THEN {a}2 END" for a in TYPES] + [
        f"nullif({a}1, {a}3)" for a in TYPES
    ]
    found += [f"greatest({a}1, {a}2, {a}3)" for a in TYPES] + [f"least({a}1, {a}2)" for a in TYPES]
    found += [f"{f}({a}{i})" for f, a, i in product(("sign", "signum", "round"), NUMBERS, (1, 3))]
    found += [f"round({a}1, {n})" for a, n in product(NUMBERS, (0, 1, 2, 5))] + [
        f"bit_count({a}1)" for a in ("ti", "i", "b")
    ]
    types = ("DOUBLE", "INT", "DATE", "DECIMAL(5,2)")
    nulls = product((1, 3), types, ("NULL", "NOT NULL"))
    found += [f"TRY_CAST(s{i} AS {to}) IS {null}" for i, to, null in nulls]
    found += ["isnull(TRY_CAST(s3 AS INT))", "isnotnull(lower(s1))", "lower(s1) IS NULL"]
    found += ["nvl2(i1, b3, 2)", "nvl2(s3, s1, 'x')"]
    found += [f"coalesce({a}1, {b}2)" for a, b in product(NUMBERS, NUMBERS)] + [
        "coalesce(i1, 0L)",
        "nvl(d1, 0)",
        "ifnull(x1, 1)",
    ]
    found += ["IF(p1, NULL, i1)", "IF(i1 = 0, NULL, b1 / i1)", "CASE i1 WHEN 1 THEN 'a' WHEN NULL THEN 'b' ELSE s1 END"]
    found += [
        "named_struct('slice', b1, 'time', 5L)",
        "named_struct('a', named_struct('b', s3)).a.b",
        "isnull(i1)",
        "isnan(x1)",
    ]
    found += [
        "named_struct('n', i1) = named_struct('n', i2)",
        "named_struct('n', i3, 's', s1) < named_struct('n', 0, 's', s2)",
    ]
    found += [
        "array(i1, i2)",
        "array(1, 2L)",
        "arrays_zip(array(i1, i2), array(s1))",
        "arrays_zip(array(i3), IF(p1, NULL, array(s1, s3)), CAST(array() AS ARRAY<BIGINT>))",
        "arrays_zip(array(d1))",
        "size(array(i1))",
        "get(array(i1, i3), 1)",
        "sequence(0L, 5L, 2L)",
        "array(s1)",
    ]
    found += [
        "sequence(CAST(ti3 AS BIGINT), CAST(ti3 AS BIGINT) + 3)",
        "CAST(array() AS ARRAY<BIGINT>)",
        "isnotnull(s1)",
    ]
    found += [f"{f}({a}1)" for f, a in product(("floor", "ceil", "ceiling"), ("i", "b", "f", "x"))] + [
        "-5",
        "1.50",
        "1e3",
        "0.05",
        "'it''s'",
    ]
    found += [f"{f}({a}{i})" for f, a, i in product(("nullifzero", "zeroifnull", "sqrt"), NUMBERS, (1, 3))]
    found += [f"array_contains(array({a}1, {a}3), {a}2)" for a in TYPES] + ["array_contains(array(i3, ti3), i3)"]
    found += [f"{f}(array({a}1, {a}2))" for f, a in product(("array_max", "array_min"), TYPES)]
    found += [f"{f}(array(i1, i3))" for f in ("array_size", "cardinality")]
    return found


ATOMS = ("a", "b", "ab", "[ab]", "a+", "(a)", "(?:b)", "(a|b)", ".", "/", "a?b")
"""Parts of patterns, between which anchors stand."""

SEARCHING = ("regexp_like({}, '{}')", "regexp_replace({}, '{}', 'x')", "regexp_extract({}, '{}', 0)", "split({}, '{}')")


def anchored(drawn: random.Random) -> list[str]:
    """Functions that search by a pattern, with anchors at any place; and functions with and without their defaults."""
    anchors = ("", "", "^", "$", "|", "|^", "$|")
    patterns = [
        "".join(drawn.choice(anchors) + drawn.choice(ATOMS) for _ in range(drawn.randint(1, 3))) + drawn.choice(anchors)
        for _ in range(2000 if AT_NIGHT else 40)
    ]
    texts = ("s3", "'aab'", "concat(s1, 'ab')", "repeat(s3, 2)", "concat('a', s3, 'a')")
    found = [drawn.choice(SEARCHING).format(drawn.choice(texts), pattern) for pattern in patterns]
    found += [form.format("concat('aa', s3)", pattern) for form, pattern in product(SEARCHING, ("^a", "^a|b", "a$"))]
    ends = [f"CAST({a}{i} AS {to}) % {n}" for a, i, to, n in product(("ti", "si"), (1, 3), ("INT", "BIGINT"), (5, 9))]
    for first, last in [drawn.sample([*ends, "3", "-2", "5L"], 2) for _ in range(100 if AT_NIGHT else 15)]:
        # Of bounds that a step does not go along, Spark's error has no class.
        found += [f"sequence({first}, {last})", f"sequence(-9, abs({last}), {drawn.randint(1, 4)})"]
    pairs = (("round(x1)", "round(x1, 0)"), ("split(s1, 'a')", "split(s1, 'a', -1)"), ("trim(s1)", "trim(' ' FROM s1)"))
    more: tuple[str, ...] = (
        "bround(d1)",
        "ceil(d1)",
        "floor(d1)",
        "rtrim(s3)",
        "ltrim(s3)",
        "substring(s1, 2)",
        "lpad(s3, 5)",
        "rpad(s3, 5)",
    )
    more += (
        "regexp_extract(s3, '(a)b')",
        "sort_array(array(i1, i3))",
        "locate('a', s3)",
        "nvl2(i1, i2, i3)",
        "log(x3)",
    )
    more += ("to_date(s3)", "overlay(s3 PLACING 'x' FROM 2)", "array_join(array(s1, s3), ',')", "levenshtein(s1, s3)")
    return [*found, *more, *(each for pair in pairs for each in pair)]


def test_anchors_and_defaults(answers: Answers) -> None:
    findings = answers.compared("anchors", Rows.drawn(None, ROWS, SEED + 31), anchored(random.Random(SEED)))
    assert not findings.differences, findings
    print(f"{len(findings.answers)} compared, {len(findings.refused)} refused")


def test_texts(answers: Answers) -> None:
    findings = answers.compared("texts", Rows.drawn(None, ROWS, SEED + 3), texts())
    assert not findings.differences, findings


def test_moments(answers: Answers) -> None:
    findings = answers.compared("moments", Rows.drawn(None, ROWS, SEED + 4), moments())
    assert not findings.differences, findings


def test_choices(answers: Answers) -> None:
    findings = answers.compared("choices", Rows.drawn(None, ROWS, SEED + 5), choices())
    assert not findings.differences, findings


def aggregates() -> list[str]:
    found = [f"count(TRY_CAST(s{i} AS {to}))" for i, to in product((1, 3), ("DOUBLE", "INT", "DATE"))]
    found += ["count(*)", "count(1)", "count(DISTINCT i1, s1)", "count(i1, s1)", "count(*) FILTER (WHERE i1 > 0)"]
    found += [f"{f}({a}1)" for f, a in product(("count", "min", "max"), TYPES)] + [
        f"count(DISTINCT {a}1)" for a in TYPES
    ]
    found += [f"sum({a}1)" for a in ("ti", "si", "i", "d", "e", "w", "z")] + [f"avg({a}1)" for a in ("ti", "si", "i")]
    found += ["sum(ti1 / 2)", "avg(ti1 / 4)", "sum(b1)", "sum(ti3)", "avg(ti3)", "count(DISTINCT i1) FILTER (WHERE p1)"]
    found += [f"min_by({a}1, id)" for a in TYPES] + [f"max_by({a}1, id)" for a in TYPES] + ["max(p1)", "sum(i1) + 1"]
    found += [f"{f}(p1)" for f in ("bool_and", "every", "bool_or", "some", "any", "count_if")] + ["count_if(i1 > 0)"]
    found += [f"{f}({a}1)" for f, a in product(("bit_and", "bit_or", "bit_xor"), ("ti", "si", "i", "b"))]
    found += [f"{f}(DISTINCT {a}) FILTER (WHERE p2)" for f, a in (("bit_or", "i1"), ("bool_and", "p1"), ("min", "s1"))]
    found += ["max(named_struct('slice', i1, 'time', b1))", "min(named_struct('n', nullif(ti1, 0), 'v', s1))"]
    found += [
        "max(named_struct('n', nullif(ti1, 0), 'v', s1)).v",
        "sort_array(collect_set(i1))",
        "sort_array(collect_list(s1))",
    ]
    found += [
        "sort_array(collect_set(named_struct('id', ti1, 's', s1)))",
        "size(collect_set(i1))",
        "min_by(s1, nullif(id, 3))",
        "mean(ti1)",
        "regr_count(x1, i1)",
        "regr_count(d3, ti3) FILTER (WHERE p1)",
        "max_by(x1, nullif(id, 3))",
        "min_by(named_struct('s', s1), id)",
        "array_sort(collect_list(d1))",
    ]
    found += [
        "CAST(avg(i1) AS BIGINT)",
        "coalesce(sum(ti1), 0L)",
        "if(count(*) = 0, NULL, sum(CAST(ti1 AS DOUBLE)) / count(*))",
    ]
    found += [
        "max(date_format(t1, 'HH:mm'))",
        "sum(d1 * 2)",
        "CAST(sum(ti1) AS BIGINT)",
        "min(IF(p1, i1, NULL))",
        "avg(DISTINCT i1)",
    ]
    found += [
        "sort_array(collect_set(named_struct('id', ti1, 'p', named_struct('s', s1)))).p",
        "sum(ti1) FILTER (WHERE p1)",
        "avg(ti1) FILTER (WHERE p1)",
        "min(t1)",
        "max(coalesce(s1, 'x'))",
        "avg(d1)",
    ]
    found += [f"sum(DISTINCT {a}1)" for a in ("ti", "si", "i", "d")] + ["sum(DISTINCT ti1) FILTER (WHERE p1)"]
    found += [f"avg({a}{i})" for a, i in product(("d", "e", "w", "z"), (1, 3))] + ["avg(d1) FILTER (WHERE p1)"]
    ties = "{f}({a}1, IF(ti1 IS NULL, NULL, named_struct('place', ti1, 'of', {a}1)))"
    found += [ties.format(f=f, a=a) for f, a in product(("max_by", "min_by"), TYPES)]
    found += [f"median({a}{i})" for a, i in product(("ti", "si", "i", "b"), (1, 3))] + ["median(i1) FILTER (WHERE p1)"]
    return found + [f"round({call}, 6)" for call in moments_of_groups()]


def moments_of_groups() -> list[str]:
    """Deviations and regressions: their last digits depend in Spark on the order of rows."""
    found = [f"{f}({a})" for f, a in product(OF_ONE, ("ti1", "ti3", "d1 / 100", "ti1 / 2", "CAST(ti2 AS FLOAT)"))]
    found += [f"{f}({a})" for f, a in product(OF_TWO, ("ti1, ti2", "ti3, ti1 / 4", "ti1, 7", "7, ti1", "ti3, ti3"))]
    return found + [f"{f}(ti1) FILTER (WHERE p1)" for f in OF_ONE] + ["corr(ti1, ti2) FILTER (WHERE p1)"]


OF_ONE = ("std", "stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance")
_REGRESSIONS = ("avgx", "avgy", "intercept", "r2", "slope", "sxx", "sxy", "syy")
OF_TWO = ("corr", "covar_pop", "covar_samp", *(f"regr_{f}" for f in _REGRESSIONS))


def test_aggregates(answers: Answers) -> None:
    findings = answers.compared("aggregates", Rows.drawn(None, ROWS, SEED + 6), aggregates(), by="g")
    assert not findings.differences, findings


@pytest.mark.parametrize(("rows", "nulls"), [(ROWS, 0.1), (1, 0), (0, 0), (3, 1)], ids=["many", "one", "no", "null"])
def test_aggregates_of_all_rows(answers: Answers, rows: int, nulls: float) -> None:
    """Without GROUP BY there is an answer even of no row, and DuckDB may have it of statistics."""
    given = Rows.drawn(None, rows, SEED + 10, share_of_nulls=nulls)
    findings = answers.compared(f"aggregates of {rows} rows, {nulls} of them null", given, aggregates(), by=ALL)
    assert not findings.differences, findings


LAGS = (
    *("i1, 2, 7", "s1, 1, 'none'", "b1, 3, -1", "f1, 1, 0", "d1, 1, 2", "w1, 1, 0"),
    *("i1, 2, i1", "i1, 1, ti1", "b1, 1, i1 DIV 2", "s1, 2, upper(s1)", "x1, 1, f1", "d1, 1, d1", "t1, 2, t3"),
    "i3, 1, i1",
)
"""Arguments of lag and lead with a default, which becomes a value of the column's type."""


def over_rows() -> list[str]:
    rows = "PARTITION BY g ORDER BY id"
    found = [f"{f}() OVER ({rows})" for f in ("row_number", "rank", "dense_rank")]
    found += [
        f"{f}() OVER (PARTITION BY g ORDER BY {a}1{d})"
        for f, a, d in product(("rank", "dense_rank"), TYPES, ("", " DESC"))
    ]
    found += [f"{f}({a}1) OVER ({rows})" for f, a in product(("lag", "lead", "first_value", "last_value"), TYPES)]
    found += [f"{f}({a}) OVER ({rows})" for f in ("lag", "lead") for a in LAGS]
    found += [f"ntile({n}) OVER ({rows})" for n in (1, 3, 100)]
    found += [
        f"{f}() OVER (PARTITION BY g ORDER BY {a}1)" for f, a in product(("percent_rank", "cume_dist"), ("i", "s", "d"))
    ]
    found += [f"lag(i1, 2) OVER ({rows})", f"nth_value(s1, 2) OVER ({rows})", f"last_value(i1, true) OVER ({rows})"]
    frames = ("ROWS BETWEEN 3 PRECEDING AND CURRENT ROW", "ROWS BETWEEN CURRENT ROW AND CURRENT ROW",
              "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
              "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")  # fmt: skip
    of = (
        "sum(ti1)",
        "count(*)",
        "count(s1)",
        "avg(i1)",
        "min(s1)",
        "max(d1)",
        "max(t1)",
        "min_by(s1, id)",
        "bool_or(p1)",
        "every(p1)",
        "count_if(p1)",
        "bit_and(i1)",
        "bit_or(ti1)",
        "bit_xor(b1)",
        *(f"{by}({of}, nullif(id, 3))" for by in ("min_by", "max_by") for of in ("x1", "f1", "array(i1)")),
    )
    found += [f"{a} OVER ({rows} {frame})" for a, frame in product(of, ("", *frames))]
    found += [f"{f}({a}1) OVER ({rows} {frames[0]})" for f, a in product(("min", "max"), TYPES)]
    found += [f"{f}(p1) OVER ({rows})" for f in ("any", "bool_and", "some")] + [f"mean(si1) OVER ({rows})"]
    found += [f"sum({a}1) OVER ({rows})" for a in ("si", "d", "e", "z")]
    found += [f"avg({a}1) OVER ({rows} {frames[0]})" for a in ("d", "w")]
    found += [f"{a} OVER (PARTITION BY g)" for a in of] + [f"{a} OVER ()" for a in of]
    found += ["sum(ti1) OVER (PARTITION BY g ORDER BY CAST(ti1 AS INT) RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)"]
    found += ["count(*) OVER (ORDER BY t1 RANGE BETWEEN INTERVAL '5' MINUTES PRECEDING AND CURRENT ROW)"]
    found += ["count(*) OVER (ORDER BY t1 NULLS LAST RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW)"]
    found += [f"first(s1) OVER ({rows})", f"last(s1, true) OVER ({rows})", f"lag(i1) IGNORE NULLS OVER ({rows})"]
    found += [
        "sum(ti1) OVER (ORDER BY si1)",
        "max(named_struct('n', nullif(ti1, 0), 'v', s1)) OVER (PARTITION BY g ORDER BY id)",
    ]
    found += [
        f"coalesce(lag(i1) OVER ({rows}), 0)",
        f"CAST(sum(ti1) OVER ({rows}) AS BIGINT) + 1",
        f"max(IF(p1, NULL, ti1)) OVER ({rows})",
    ]
    found += [
        f"sum(CASE WHEN ti1 > 0 THEN 0 ELSE 1 END) OVER ({rows} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    ]
    found += [
        f"last_value(i1) OVER ({rows} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        f"lead(t1) OVER ({rows})",
    ]
    found += ["max(i1) OVER (PARTITION BY g ORDER BY id NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"]
    return found


def test_functions_over_rows(answers: Answers) -> None:
    findings = answers.compared("over rows", Rows.drawn(None, ROWS, SEED + 7), over_rows(), has_errors=False)
    assert not findings.differences, findings


ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns")
"""Zones with summer time, once of half an hour, with half hours beside UTC, and with setbacks at midnight."""


def of_clocks() -> list[str]:
    found = [text for text in moments() if not text.startswith("timestamp_")]
    found += [f"date_trunc('{u}', {a})" for u in ("MONTH", "WEEK", "DAY", "MINUTE", "SECOND") for a in ("n1", "day1")]
    found += [f"CAST({a} AS TIMESTAMP)" for a in ("n1", "day1", "CAST(t1 AS DATE)", "CAST(n1 AS STRING)", "s1")]
    found += ["t1 + INTERVAL 1 DAY", "t1 - INTERVAL 2 DAYS", "n1 < t1", "try_add(t1, INTERVAL 3 DAYS)"]
    walls = ("Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "PST", "+05:30", "UTC")
    found += [f"{f}_utc_timestamp({a}, '{z}')" for f in ("from", "to") for a in ("t1", "n1", "day1") for z in walls]
    found += [f"{f}_utc_timestamp(s1, 'Asia/Kolkata')" for f in ("from", "to")]
    found += [f"TIMESTAMP '{at}'" for at in ("2026-10-25 02:30:00", "2026-03-29 02:30:00", "2026-11-01 01:30:00")]
    return [*found, "t1 < TIMESTAMP '2020-02-29T12:00:00Z'", "t1 < TIMESTAMP '2020-02-29 12:00:00'", "coalesce(n1, t2)"]


@pytest.mark.parametrize("zone", ZONES)
def test_clocks(answers: Answers, zone: str) -> None:
    """Moments around changes of the zone's clocks."""
    source = random.Random(SEED)
    changes = [change.second for change in transitions(zone, 1900, 2100)] or [0]
    steps = (-86_400_000_000, -3_600_000_001, -1_800_000_000, -1, 0, 1, 1_799_999_999, 3_600_000_000, 86_400_000_000)
    hours = [hour * 3_600_000_000 for hour in range(-12, 13)]  # NTZ's are local
    around = [sum(map(source.choice, ([c * 1_000_000 for c in changes], steps, hours))) for _ in range(200)]
    findings = answers.compared(f"clocks of {zone}", Rows.drawn(None, ROWS, SEED + 8, zone, around), of_clocks())
    assert not findings.differences, findings


def test_drawn_texts(answers: Answers) -> None:
    """Texts with few brackets, so that Spark's reader and sqlglot's must agree, or the text is refused."""
    drawn = Drawn(random.Random(SEED))
    findings = answers.compared("drawn texts", Rows.drawn(None, ROWS, SEED + 9), [drawn.text() for _ in range(DRAWN)])
    assert not findings.differences, findings
    assert len(findings.answers) > DRAWN / 4, "most of what is drawn is refused"


def test_names(answers: Answers) -> None:
    """Columns without an alias are named as in Spark."""
    given = Rows.drawn(None, 1, SEED)
    texts_ = [*arithmetic(), *comparisons(), *casts(), *texts(), *choices(), *moments(), *aggregates(), *over_rows()]
    names = {text: [name] for text in texts_ if (name := _named(text)) and not _refused(text, given)}
    of_groups = set(aggregates())

    def of_spark(asked: list[str]) -> dict[str, list[str]]:
        frame = replace(given, spark=answers.spark()).frame()
        over = [text for text in asked if "OVER (" in text]
        grouped = [text for text in asked if text in of_groups]
        single = [text for text in asked if text not in {*over, *grouped}]
        return {
            text: [name]
            for part in (over, grouped, single)
            for text, name in zip(part, frame.selectExpr(*part).schema.names if part else (), strict=True)
        }

    answers.agree("names", names, of_spark)


def test_columns_that_are_never_null(answers: Answers) -> None:
    """Whether a result may be null, where none of its operands is."""
    rows = Rows.drawn(None, 1, SEED)
    lists = (
        (arithmetic, ""),
        (comparisons, ""),
        (texts, ""),
        (moments, ""),
        (choices, ""),
        (over_rows, ""),
        (aggregates, "g"),
    )
    for listed, by in lists:
        never = [re.sub(r"\b([a-z]+)[12]\b", r"\g<1>3", text) for text in listed()]
        never = [text for text in never if "BD" not in text]  # which the reader does not tell from a CAST of a text
        findings = answers.typed(f"{listed.__name__}, never null", rows, never, by=by)
        assert not findings.differences, findings


def _named(text: str) -> str | None:
    try:
        return default_name(text, {})
    except NotProven:
        return None


def _refused(text: str, rows: Rows) -> bool:
    try:
        translated(text, rows.columns)
    except QueryError:
        return True
    return False


def test_what_is_in_the_tables_over_rows_is_compared_over_rows() -> None:
    windows = [node.this for text in over_rows() for node in expression(text).find_all(exp.Window)]
    compared_ = {
        "any" if isinstance(of, exp.Any) else call_name(getattr(of, "this", of)) or call_name(of) for of in windows
    }
    assert compared_ == {name for name, entry in AGGREGATES.items() if entry.over} | set(WINDOWS)


def test_every_entry_of_the_tables_is_compared() -> None:
    listed = (arithmetic, comparisons, beside_texts, casts, texts, moments, choices, aggregates, over_rows)
    calls = {call_name(node) for each in listed for text in each() for node in expression(text).walk()} | {"any"}
    assert {*FUNCTIONS, *AGGREGATES, *WINDOWS} - calls == set()
    kinds = {type_.partition("(")[0] for type_ in TYPES.values()}
    assert {kind for pair in CASTS for kind in pair} <= kinds
