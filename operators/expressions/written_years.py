"""Years of moments that are written as text: from 10000 on with a plus, and before the first as one after it.

Among texts that begin with a digit, of the years 1 to 9999, the order is that of time. No moment of a stream lies
outside these years, but its local time may, by hours, and what is computed from it. So nothing is said of texts that
begin otherwise, and nothing follows from moments of the first years.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

from operators.expressions.dependence import Monotone, ends_before_10000
from punct_ns.domain import Domain, Value
from punct_ns.pattern import EMPTY, Range, meet
from punct_ns.punctuation import Punctuation
from punct_ns.sql_type import StringType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DIGITS = Range("0", None, low_closed=True)
"""Texts that begin with a digit, or behind all that do."""

_FIRST = 2
"""The first years, of which nothing follows."""


def is_trusted(value: Value, image: Value) -> bool:
    """Whether what a moment is written as tells what earlier ones are written as, and later ones.

    >>> [is_trusted(date(year, 1, 1), text) for year, text in ((1, "0001-01"), (2026, "2026-01"), (9999, "+10000-01"))]
    [False, True, False]
    """
    is_early = isinstance(value, date) and value.year <= _FIRST
    return not isinstance(image, str) or (not is_early and image[:1].isdigit())


def may_end_later(how: Monotone, of: Domain, written: Domain, spark: SparkSession) -> bool:
    """Whether texts of the year 10000 may come of the attribute's values."""
    if not isinstance(written.sql, StringType):
        return False
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    return how.digits or (how.local and not ends_before_10000(of) and _ends_later(zone, spark))


def of_digits(found: Sequence[Punctuation], place: int) -> Iterator[Punctuation]:
    """What is said of texts at a place, of those that begin with a digit; what is said of all of them stays."""
    for p in found:
        patterns = {i: p.patterns[i] for i in p.restricted}
        if place in patterns:
            patterns[place] = meet(patterns[place], _DIGITS, p.schema[place].domain)
        if EMPTY not in patterns.values():
            yield Punctuation.at(p.schema, patterns, p.lifespan)


@lru_cache(maxsize=16)
def _ends_later(zone: str, spark: SparkSession) -> bool:
    """Whether the last hours that there are lie in the year 10000 by the zone's time."""
    time = spark._jvm.java.time  # type: ignore[union-attr]
    last = time.Instant.ofEpochSecond(253_402_300_799)
    rules = time.ZoneId.of(zone, time.ZoneId.SHORT_IDS).getRules()
    return int(rules.getOffset(last).getTotalSeconds()) > 0
