"""`iso_duration` reads the durations of ISO 8601 as an oracle in plain Python does, and refuses all other texts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import xmlstream.testing as xt
from xmlstream.operators.expressions.dialect import as_read
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.script import read
from xmlstream.sql.statements import parse_statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = """
CREATE TABLE s (k INT NOT NULL, at TIMESTAMP, d STRING) USING punctuated_xml
OPTIONS (path 'in.xml', rowTag 's', schemes 'k prefix');
"""
_MICROSECONDS = {"W": 604_800_000_000, "D": 86_400_000_000, "H": 3_600_000_000, "M": 60_000_000, "S": 1_000_000}


def microseconds(text: str | None) -> int | None:
    """The oracle: reads the text letter by letter; None if it is not a duration, or too long for an interval."""
    bare = (text or "").removeprefix("-") if (text or "").startswith("-") else (text or "").removeprefix("+")
    if not bare.startswith("P"):
        return None
    date, has_time, time = bare[1:].partition("T")
    if not (date or time) or (has_time and not time):
        return None
    total = 0
    for part, units in ((date, "WD"), (time, "HMS")):
        number, left = "", units
        for letter in part:
            if letter in "0123456789.,":
                number += letter
                continue
            whole, point, decimals = number.replace(",", ".").partition(".")
            if letter not in left or not whole or (point and (letter != "S" or not decimals or "." in decimals)):
                return None
            left, number = left[left.index(letter) + 1 :], ""
            total += int(whole) * _MICROSECONDS[letter] + (int(decimals[:6].ljust(6, "0")) if point else 0)
        if number:
            return None
    return None if total >= 2**63 else -total if (text or "").startswith("-") else total


def interval(text: str | None) -> str | None:
    """The oracle's result as Spark writes an interval."""
    if (found := microseconds(text)) is None:
        return None
    seconds, micros = divmod(abs(found), 1_000_000)
    minutes, hours, days = seconds // 60 % 60, seconds // 3600 % 24, seconds // 86400
    decimals = f".{micros:06}".rstrip("0") if micros else ""
    return f"INTERVAL '{'-' * (found < 0)}{days} {hours:02}:{minutes:02}:{seconds % 60:02}{decimals}' DAY TO SECOND"


CHOSEN = [
    *(
        "PT1H30M",
        "P1DT2H",
        "-PT45S",
        "PT0.5S",
        "-PT0.5S",
        "P2W",
        "P1W2DT3H4M5,6S",
        "PT0S",
        "P0D",
        "+PT90M",
        "PT100000H",
    ),
    *(
        "P",
        "PT",
        "P1DT",
        "P1Y",
        "P1M",
        "P1Y2M3DT4H",
        "PT1.5H",
        "PT.5S",
        "PT1.S",
        "PT-1H",
        "--PT1S",
        "pt1h",
        "T1H",
        "PT1",
    ),
    *("", " PT1H", "PT1H ", "PT1H\n", "5 days", "!PT1H", "PT1M1H", "PT1H1H", "PT1D", "P1H", "PT1.2.3S", "PT1,2,3S"),
    *("PT0.123456789S", "-PT0.9999999S", "PT00000000000000000001S", "P106751991DT4H", "P106751992D", "PT٣S", "P1S"),
    *(
        "PT9223372036854.775807S",
        "-PT9223372036854.775807S",
        "PT9223372036855S",
        "P99999999999W",
        "P9999999999999999999D",
    ),
]


def drawn(rng: random.Random) -> str:
    """A duration, in half of the draws with a letter taken away, put in or replaced."""

    def number() -> str:
        return str(rng.choice([0, 1, 7, 59, 60, 100, rng.randrange(10**5)]))

    date = "".join(number() + unit for unit in "WD" if rng.random() < 0.4)
    time = "".join(number() + unit for unit in "HM" if rng.random() < 0.5)
    if rng.random() < 0.5:
        time += number() + rng.choice(["", f".{rng.randrange(10**7)}", f",{rng.randrange(10**3)}"]) + "S"
    text = rng.choice(["", "", "-", "+"]) + "P" + date + ("T" + time if time else "")
    if rng.random() < 0.5:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(["", rng.choice("PTWDHMSY-+., 19")]) + text[at + rng.randrange(2) :]
    return text


@pytest.mark.spark
def test_a_column_of_texts_is_read_as_by_the_oracle(spark: SparkSession) -> None:
    rng = random.Random(8601)
    texts = [None, *CHOSEN, *(drawn(rng) for _ in range(1500))]
    expected = [(k, interval(text)) for k, text in enumerate(texts)]
    assert 500 < sum(found is not None for _, found in expected) < 1400
    valid = [k for k, found in expected if found is not None or texts[k] is None]
    items = [(k, None, text) for k, text in enumerate(texts)]
    query = TABLE + "SELECT k, CAST({}(d) AS STRING) AS d FROM s"
    xt.assert_result(query.format("try_iso_duration"), {"s": items}, expected, session=spark)
    with xt.case(query.format("iso_duration"), session=spark) as case:
        assert sorted(case.slice(s=[items[k] for k in valid]).tuples) == [expected[k] for k in valid]


@pytest.mark.spark
@pytest.mark.parametrize("text", ["P1M", "5 days", "", "PT9223372036855S"])
def test_a_text_that_is_no_duration_is_an_error_that_shows_it(spark: SparkSession, text: str) -> None:
    case = xt.case(TABLE + "SELECT k, CAST(iso_duration(d) AS STRING) AS d FROM s", session=spark)
    with pytest.raises(Exception, match=f"not an ISO 8601 duration of weeks to seconds: {text}'"):
        case.slice(s=[(1, None, "PT1H"), (2, None, text)])


@pytest.mark.spark
def test_a_rule_ends_groups_by_the_length_of_a_duration(spark: SparkSession) -> None:
    rule = "schemes 'k prefix', punctuate 'end of at, when try_iso_duration(d) >= INTERVAL 1 HOUR'"
    query = TABLE.replace("schemes 'k prefix'", rule) + "SELECT at, count(*) AS n FROM s GROUP BY at"
    one, other = (f"2026-01-0{day}T00:00:00Z" for day in (1, 2))
    items = f"(1, {one}, PT59M) (2, {other}, soon) (3, {one}, PT60M)"
    xt.assert_result(query, {"s": items}, f"({one}, 2) <{one}, *>", session=spark, allow_unsafe=True)


CALLS = [
    "SELECT k, iso_duration(d) > INTERVAL 5 MINUTES AS late, at + try_iso_duration( concat('PT', d) ) AS at FROM s",
    "SELECT iso_duration(d) AS x, k FROM s WHERE k > 1 AND ISO_DURATION(d) IS NOT NULL -- iso_duration(e)",
    "SELECT k FROM (SELECT k, iso_duration(CAST(iso_duration(d) AS STRING)) AS x FROM s) WHERE x > INTERVAL 1 HOUR",
    "SELECT max(iso_duration(d)) AS x, k FROM s GROUP BY k HAVING max(iso_duration(d)) > INTERVAL 1 DAY",
    "SELECT iso_duration(d), k FROM s",
]


@pytest.mark.spark
def test_spark_reads_the_text_as_the_tree(spark: SparkSession) -> None:
    for call in CALLS:
        assert read(TABLE + call).plan(spark).schema
    assert read(TABLE + CALLS[-1]).plan(spark).schema.names[0] == "iso_duration(d)"


def test_the_text_for_spark_is_that_of_the_tree() -> None:
    for call in CALLS:
        (statement,) = parse_statements(QueryText.of(call))
        (other,) = parse_statements(statement.for_spark())
        assert as_read(other.tree) == as_read(statement.tree)
        assert "iso_duration(" not in as_read(statement.tree).replace("`iso_duration(d)`", "").lower()


@pytest.mark.parametrize(
    ("call", "what", "hint"),
    [
        ("iso_duration('P1Y')", "'P1Y' is not an ISO 8601 duration", "years and months have no fixed length"),
        ("iso_duration('')", "'' is not an ISO 8601 duration", "write for example PT1H30M"),
        ("iso_duration()", "iso_duration takes one text", "write iso_duration(delay)"),
        ("try_iso_duration(d, k)", "try_iso_duration takes one text", "write try_iso_duration(delay)"),
        ("iso_durations(d)", "there is no function iso_durations", "did you mean iso_duration?"),
        ("iso_duration(e)", "there is no attribute e", "there are"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_starts(call: str, what: str, hint: str) -> None:
    with pytest.raises(QueryError, match=what) as caught:
        read(f"{TABLE}SELECT k, {call} AS x FROM s").sketch()
    assert caught.value.line == TABLE.count("\n") + 1
    assert hint in (caught.value.hint or "")


def test_in_process_it_is_refused_by_name() -> None:
    with pytest.raises(QueryError, match="INTERVAL of iso_duration is not proven to be equal in DuckDB"):
        xt.case(TABLE + "SELECT k, at + iso_duration(d) AS at FROM s")
