"""The expressions about which the table of operations is asked: each operator, cast and function, of each type."""

from __future__ import annotations

from itertools import product

from tests.harness.drawn_rows import TYPES
from xmlstream.punct_ns.schema import Schema

COLUMNS = {f"{begin}{i}": type_ for begin, type_ in TYPES.items() for i in (1, 3)}
"""Of each type an attribute that may be null, and one that may not: `i1` and `i3`."""

SCHEMA = Schema.parse(
    ", ".join(f"{name} {type_}{' NOT NULL' if name.endswith('3') else ''}" for name, type_ in COLUMNS.items())
)

NUMBERS = ("ti", "si", "i", "b", "f", "x", "d", "e", "w", "z")
TIMES = ("day", "t", "n")
LITERALS = ("2", "0", "-1", "2.5", "0.908", "1e3", "3L", "NULL", "(-3)", "9999999999")
TARGETS = (*TYPES.values(), "DECIMAL(38,18)", "DECIMAL(3,0)", "DECIMAL(22,2)", "DECIMAL(12,1)")
UNARY = (
    "abs", "ceil", "floor", "isnull", "isnotnull", "isnan", "length", "lower", "upper", "trim", "year", "quarter",
    "month", "day", "dayofyear", "hour", "minute", "second", "to_date", "date", "unix_seconds", "unix_micros",
    "unix_date", "date_from_unix_date", "timestamp_seconds", "timestamp_millis", "timestamp_micros", "sign", "exp",
    "reverse", "hex", "last_day", "weekofyear", "dayofweek", "weekday", "array", "bit_count", "md5", "-", "NOT ",
    "round", "ascii", "ltrim", "char_length", "ucase",
)  # fmt: skip
FORMS = (
    "{0} IS NULL", "{0} IS NOT NULL", "{0} IN ({0}, NULL)", "{0} IN ({1}, {1})", "{0} BETWEEN {1} AND {1}",
    "NOT {0} = {1}", "{0} <=> {1}", "{0} IS DISTINCT FROM {1}", "coalesce({0}, {1})", "nvl({0}, {1})",
    "nullif({0}, {1})", "IF(p3, {0}, {1})", "IF({0} = {1}, 1, 2)", "CASE WHEN p1 THEN {0} ELSE {1} END",
    "CASE WHEN p3 THEN {0} END", "CASE {0} WHEN {1} THEN 'a' ELSE 'b' END", "greatest({0}, {1})", "least({1}, {0})",
    "array({0}, {1})", "named_struct('a', {0})", "named_struct('a', {0}).a", "get(array({0}, {1}), 1)",
    "{0} = {1} AND {0} > {1}", "{0} < {1} OR {0} IS NULL", "{0} = '1'", "{0} >= s3", "{0} + '2'", "coalesce({0}, '5')",
)  # fmt: skip
OTHERS = (
    "sha2(s{0}, 256)", "sha2(s{0}, 512)",
    "s{0} LIKE 'a%'", "s{0} NOT LIKE '%b'", "s{0} LIKE s3", "s{0} ILIKE 'a%'", "s{0} RLIKE 'a'", "s{0} || s3",
    "concat(s{0}, s3)", "concat(s{0}, i3)", "contains(s{0}, 'a')", "startswith(s{0}, s3)", "endswith(s{0}, 'x')",
    "replace(s{0}, 'a', 'b')", "substring(s{0}, 2, 3)", "split(s{0}, '/')", "size(split(s{0}, '/'))",
    "get(split(s{0}, '/'), 1)", "regexp_extract(s{0}, 'a(b)', 1)", "p{0} AND p3", "p{0} OR p3", "NOT p{0}",
    "p{0} IS TRUE", "p{0} IS NOT FALSE", "t{0} > '2020-01-01T00:00:00Z'", "day{0} <= '2020-02-29'",
    "day{0} > '2020-13-45'", "t{0} BETWEEN TIMESTAMP '1970-01-01 00:00:00' AND t3", "day{0} = t3", "n{0} < t3",
    "date_format(t{0}, 'yyyy-MM-dd')", "date_format(day{0}, 'HH:mm')", "date_format(n{0}, 'yyyy')",
    "date_trunc('HOUR', t{0})", "date_trunc('MONTH', t{0})", "date_trunc('CENTURY', t{0})", "date_trunc('DAY', n{0})",
    "trunc(day{0}, 'MM')", "trunc(day{0}, 'HOUR')", "date_add(day{0}, 3)", "date_sub(day{0}, si3)",
    "date_add(day{0}, i3)", "datediff(day{0}, day3)", "timestampdiff(MICROSECOND, t{0}, t3)",
    "extract(YEAR FROM t{0})", "extract(HOUR FROM n{0})", "t{0} + INTERVAL 5 MINUTES", "t{0} - INTERVAL '26' HOUR",
    "n{0} + INTERVAL 2 DAYS", "INTERVAL 1 SECOND + t{0}", "day{0} + INTERVAL 1 DAY", "day{0} + 1", "day{0} - day3",
    "timestamp_micros(b{0}) + INTERVAL 1 DAY", "try_add(i{0}, 1)", "try_subtract(b{0}, i3)", "try_multiply(i{0}, i3)",
    "try_add(t{0}, INTERVAL 5 MINUTES)", "pmod(i{0}, 7)", "mod(i{0}, 7)", "mod(i{0}, i3)", "i{0} & b3", "i{0} | 7",
    "ti{0} ^ 1", "sequence(1L, b{0}, 2L)", "i{0} + 1 + 2", "i{0} * 60 * 60", "i{0} - i{0} % 10", "i{0} = '1'",
    "s{0} > 5", "s{0} = i3", "i{0} <> 0 AND 1 / i3 > 0", "1 / x{0}", "x{0} / 2", "x{0} % 3", "hash(i{0})",
    "f(i{0})", "element_at(array(i{0}), 1)", "array(i{0})[0]", "round(x{0}, 2)", "round(d{0})", "d{0} < 1",
    "d{0} * 0.908 > 100", "e{0} * 0.908 > 100", "w{0} * w3", "w{0} + d3", "d{0} / e3", "d{0} % 7", "d{0} * i3",
    "count(*)", "sum(i{0})", "TRY_CAST(s{0} AS INT)", "nvl2(i{0}, i3, 2)", "zeroifnull(i{0})", "rand()",
    "split(s{0}, '/')[0]", "split(s3, '/')[ti{0}]", "element_at(split(s{0}, '/'), 1)", "left(s{0}, 2)",
    "right(s{0}, ti3)", "instr(s{0}, 'a')", "repeat(s{0}, 2)",
    "to_date(s{0}, 'yyyy')", "get_json_object(s{0}, '$.a')", "CAST('2020-02-29' AS DATE) > day{0}",
    "named_struct('a', i{0}, 'b', s3) = named_struct('a', i3, 'b', s{0})", "array(i{0}) < array(i3)",
    "i{0} DIV 0", "i{0} DIV 60", "b{0} DIV -1", "i{0} % 0", "i{0} / 2", "d{0} / 2", "d{0} / 0", "x{0} / 0",
    "x{0} / NULL", "concat_ws('-', s{0}, s3)", "split_part(s{0}, '/', 2)", "regexp_replace(s{0}, '[0-9]+', '')",
    "array_max(array(i{0}, i3))", "array_contains(array(i{0}), i3)", "zeroifnull(i{0})", "nullifzero(i{0})",
    "sqrt(x{0})", "sqrt(i{0})", "dayname(day{0})", "s{0} RLIKE '^[a-z]'", "array_size(array(i{0}))",
)  # fmt: skip


def asked() -> list[str]:
    """All of them."""
    found = [f"{a}3 {op} {b}{i}" for a, op, b, i in product(NUMBERS, "+-*/%", NUMBERS, (1, 3))]
    found += [f"{a}3 DIV {b}3" for a, b in product(NUMBERS, NUMBERS)]
    found += [f"{a}{i} {op} {n}" for a, i, op, n in product(NUMBERS, (1, 3), ("+", "*", "/", "%", "DIV"), LITERALS)]
    found += [f"{n} {op} {a}3" for a, op, n in product(NUMBERS, "-/%", LITERALS)]
    found += [f"{a}3 {op} {b}1" for a, op, b in product(TYPES, ("=", "<"), TYPES)]
    found += [f"{a}3 >= {n}" for a, n in product(TYPES, (*LITERALS, "'7'", "true"))]
    found += [f"CAST({a}{i} AS {to})" for a, to, i in product(TYPES, TARGETS, (1, 3))]
    found += [f"{name}({a}{i})" for name, a, i in product(UNARY, TYPES, (1, 3))]
    found += [form.format(f"{a}{i}", f"{a}3") for form, a, i in product(FORMS, TYPES, (1, 3))]
    found += [form.format(i) for form, i in product(OTHERS, (1, 3))]
    return list(dict.fromkeys(found))
