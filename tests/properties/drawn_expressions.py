"""Random expressions of integers that may be null: values, conditions, and aggregates of all that a query may call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

Column = Callable[[], str]
"""Draws a column."""

VALUES = [
    "{} + 1", "{} - {}", "-{}", "{} DIV 2", "{} % 3", "coalesce({}, {})", "if({} = {}, 1, 0)", "abs({})",
    "nullif({}, {})", "greatest({}, {})", "least({}, 2)", "CASE WHEN {} > 1 THEN {} END", "CAST({} AS INT)",
    "CAST({} AS BIGINT)", "({})", "3", "bit_count({})", "nvl2({}, {}, 7)", "length(CAST({} AS STRING))",
]  # fmt: skip

CONDITIONS = [
    "{} > 0", "{} < 3", "{} IS NULL", "{} IS NOT NULL", "{} IN (0, 1, 3)", "{} <> 2 OR {} = 1", "{} <= {}",
    "{} + {} > 1", "NOT {} = {}", "{} <=> {}", "{} BETWEEN 1 AND {}", "{} = 1 AND {} > 0",
    # Of no tuple, so that what is above it never has one.
    "{} > 10", "{} IS NULL AND {} = 100", "{} < -50", "1 = 0", "{} > 10 OR {} < -50", "{} + 1 = 2.5BD",
]  # fmt: skip

CALLS = [
    # What sqlglot's own dialect is tempted to turn into something else.
    "to_char({}, '$999,999.00')", "to_number(CAST(abs({}) AS STRING), '9999999999')",
    "date_trunc('QUARTER', timestamp_seconds({} * 100000))", "trunc(date_from_unix_date({} * 40), 'Q')",
    "trunc(date_from_unix_date({} * 40), 'MM')", "date_format(timestamp_seconds({}), 'yyyy-MM HH:mm:ss')",
    "log10(abs({}) + 1)", "log2(abs({}) + 1)", "log(3, abs({}) + 1)", "log(abs({}) + 1)", "ln(abs({}) + 1)",
    "date_add(DATE '2020-02-28', CAST({} AS INT))", "dateadd(MONTH, CAST({} AS INT), DATE '2020-01-31')",
    "datediff(DATE '2020-02-28', date_from_unix_date(CAST({} AS INT)))",
    "add_months(DATE '2020-01-31', CAST({} AS INT))",
    "timestampdiff(HOUR, TIMESTAMP '2020-01-01 00:00:00', timestamp_seconds({} * 9999))",
    "unix_seconds(timestamp_seconds({}))", "unix_date(date_from_unix_date(CAST({} AS INT)))",
    "year(timestamp_seconds({}))", "last_day(date_from_unix_date(CAST({} AS INT)))",
    "next_day(date_from_unix_date(CAST({} AS INT)), 'MO')", "dayofweek(date_from_unix_date(CAST({} AS INT)))",
    "weekday(date_from_unix_date(CAST({} AS INT)))", "extract(DOW FROM date_from_unix_date(CAST({} AS INT)))",
    "from_unixtime({}, 'HH:mm')", "make_date(2020, 2, 1 + abs({}) % 28)",
    "months_between(date_from_unix_date(CAST({} AS INT)), DATE '2020-01-31')",
    "quarter(timestamp_seconds({} * 9999999))",
    # Texts.
    "concat('x', {}, '-', {})", "concat_ws('/', {}, {})", "CAST({} AS STRING) || 'a'",
    "substring('abcdef', abs({}), 2)", "substr('abcdef', abs({}))", "left('abcdef', abs({}))",
    "right('abcdef', abs({}))", "repeat('ab', abs({}))", "lpad(CAST({} AS STRING), 4, '0')",
    "rpad('a', abs({}), '-')", "trim(BOTH 'a' FROM concat('a', {}, 'a'))", "ltrim(concat('  ', {}))",
    "btrim(concat(' ', {}, ' '))", "replace(CAST({} AS STRING), '1', 'one')",
    "translate(CAST({} AS STRING), '123', 'abc')", "split_part(concat({}, ',', {}), ',', 2)",
    "instr(concat('a', {}), '1')", "locate('1', concat('a', {}))", "position('1' IN concat('a', {}))",
    "overlay('abcdef' PLACING 'zz' FROM abs({}) + 1)", "regexp_replace(concat('a', {}), '\\\\d', '#')",
    "regexp_extract(concat('a', {}), '([0-9]+)', 1)", "concat('a', {}) RLIKE '[12]'", "concat('a', {}) LIKE '%1'",
    "upper(concat('a', {}))", "initcap(concat('a ', {}))", "levenshtein(CAST({} AS STRING), CAST({} AS STRING))",
    "format_string('%05d', {})", "format_number({}, 2)", "hex({})", "bin({})", "conv({}, 10, 3)", "chr(65 + abs({}))",
    "ascii(CAST({} AS STRING))", "md5(CAST({} AS STRING))", "sha2(CAST({} AS STRING), 256)",
    "base64(CAST({} AS STRING))", "decode({}, 1, 'one', 2, 'two', 'many')",
    "find_in_set(CAST({} AS STRING), '0,1,2')", "startswith(concat({}), '1')",
    # Numbers.
    "round({} / 3, 1)", "bround({} / 2)", "ceil({} / 2)", "floor({} / 3)", "pmod({}, 3)", "mod({}, 3)",
    "power({}, 2)", "sqrt(abs({}))", "cbrt({})", "exp({})", "sign({})", "hypot({}, {})", "width_bucket({}, 0, 5, 3)",
    "try_divide({}, {})", "try_add({}, {})", "shiftleft(CAST({} AS INT), 2)", "{} & 3", "{} | 4", "{} ^ 1", "~{}",
    "atan2({}, 1)", "sin({})",
    # Conditions and the like.
    "ifnull({}, {})", "zeroifnull({})", "nullifzero({})", "{} IS NULL", "{} IN (1, {})", "equal_null({}, {})",
    "CASE {} WHEN 1 THEN 'one' ELSE 'other' END", "hash({}, {})", "xxhash64({})", "crc32(CAST({} AS STRING))",
    # Parts of what is put together.
    "element_at(array({}, {}), 1)", "map('k', {})['k']", "named_struct('f', {}).f",
    "array_contains(array({}, 1), {})", "size(array_distinct(array({}, {})))", "array_join(array({}, {}), '-', '?')",
    "sort_array(array({}, {}))[0]", "get_json_object(to_json(named_struct('f', {})), '$.f')",
    "cardinality(map_keys(map({} IS NULL, 1)))", "parse_url(concat('http://x/', {}), 'PATH')",
    "xpath_int(concat('<a>', coalesce({}, 0), '</a>'), 'a')",
]  # fmt: skip
"""Calls whose arguments are integers, of any type; in aggregates, what they give is told apart by its text."""

AGGREGATES = [
    "CAST(count(*) AS INT)", "CAST(count({}) AS INT)", "CAST(count(DISTINCT {}) AS INT)", "count(DISTINCT {}, {})",
    "max({})", "min({})", "max({})", "CAST(sum({}) AS INT)", "sum(DISTINCT {})", "CAST(avg({}) * 60 AS INT)",
    "CAST(median({}) * 2 AS INT)", "CAST(percentile({}, 0.25) * 4 AS INT)", "CAST(bool_or({} > 1) AS INT)",
    "CAST(every({} < 3) AS INT)", "bit_xor({})", "bit_and({})", "CAST(count_if({} > {}) AS INT)", "max({}) - min({})",
    "CAST(stddev({}) * 100 + 0.1234567 AS INT)", "CAST(var_pop({}) * 100 + 0.1234567 AS INT)",
    "CAST(count({}) FILTER (WHERE {} > 1) AS INT)", "max({}) FILTER (WHERE {} IS NULL OR {} < 2)",
    "CAST(approx_count_distinct({}) AS INT)", "CAST(regr_count({}, {}) AS INT)", "try_sum({})",
]  # fmt: skip
_OF_CALLS = [
    "max(crc32(CAST({call} AS STRING)) % 89)", "CAST(count(DISTINCT {call}) AS INT)", "CAST(count({call}) AS INT)",
    "CAST(median(length(CAST({call} AS STRING))) * 2 AS INT)", "CAST(sum(length(CAST({call} AS STRING))) AS INT)",
    "CAST(count(*) FILTER (WHERE {call} IS NOT NULL) AS INT)", "length(CAST(min({call}) AS STRING))",
]  # fmt: skip


def _filled(draw: st.DrawFn, template: str, column: Column) -> str:
    begin, *rest = template.split("{}")
    return begin + "".join(column() + part for part in rest)


@st.composite
def values(draw: st.DrawFn, column: Column) -> str:
    """An integer, or null, of columns."""
    return _filled(draw, draw(st.sampled_from(VALUES)), column)


@st.composite
def calls(draw: st.DrawFn, column: Column) -> str:
    """A call of any type, of columns."""
    return _filled(draw, draw(st.sampled_from(CALLS)), column)


@st.composite
def conditions(draw: st.DrawFn, column: Column) -> str:
    """One or two conditions, one in three of which no tuple satisfies."""
    parts = draw(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=2, unique=True))
    return f"({') AND ('.join(_filled(draw, part, column) for part in parts)})"


@st.composite
def aggregates(draw: st.DrawFn, column: Column) -> str:
    """An integer, or null, of a group's tuples."""
    if draw(st.integers(0, 2)):
        return _filled(draw, draw(st.sampled_from(AGGREGATES)), column)
    call = _filled(draw, draw(st.sampled_from(CALLS)), column)
    return draw(st.sampled_from(_OF_CALLS)).replace("{call}", call)


def join_conditions(draw: st.DrawFn, count: int, compared: Sequence[str], most: int = 2) -> list[str]:
    """Conditions on streams p0, p1, …: each but the first equals one before it; perhaps more is compared."""
    attributes = st.sampled_from("abc")
    found = [f"p{i}.{draw(attributes)} = p{draw(st.integers(0, i - 1))}.{draw(attributes)}" for i in range(1, count)]
    for _ in range(draw(st.integers(0, most))):
        one, other = draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True))
        sign = draw(st.sampled_from(compared))
        found.append(f"p{one}.{draw(attributes)} {sign} p{other}.{draw(attributes)}")
    return found
