"""Times without a zone are the moments that Java, and so Spark's own XML source, makes of them in the zone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

import pyarrow as pa
import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from xmlstream.punct_ns.errors import UngrammaticalStream, UsageError
from xmlstream.punct_ns.time_zones import moment_text, transitions
from xmlstream.sources.xml.options.local_times import LocalTimes
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.typed_columns import ColumnReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession

ZONES = (
    "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia",
    "Pacific/Kiritimati", "Africa/Casablanca", "Europe/Dublin", "America/Juneau", "UTC",
)  # fmt: skip

_ALIKE = 1980
"""The year since which Java's and the system's database of all places are the same."""

_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)

SOURCE = {"path": "in.xml", "rowTag": "t", "schema": "at TIMESTAMP, n INT"}
PUNCT = 'xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct"'


def _around_changes(zone: str, draw: random.Random) -> Iterator[datetime]:
    """Local times of all years, most of them beside changes of the clocks."""
    changes = transitions(zone, 1800, 2037)
    for change in [*draw.sample(changes, min(len(changes), 8)), *changes[-3:]]:
        for ahead in (change.before, change.after):
            for beside in (-1, 0, 1, draw.randrange(-7200, 7200)):
                micros = draw.choice([0, 1, 999_999])
                yield _EPOCH + timedelta(seconds=change.second + ahead + beside, microseconds=micros)
    for first, last in ((2, 9998), (1850, 2100), (2020, 2060)):
        for _ in range(8):
            yield datetime(
                draw.randrange(first, last), draw.randrange(1, 13), draw.randrange(1, 28), draw.randrange(24)
            )


@pytest.mark.spark
def test_a_local_time_is_javas_moment_in_every_zone_and_year(spark: SparkSession) -> None:
    draw = random.Random() if AT_NIGHT else random.Random(54)
    known = set(spark._jvm.java.time.ZoneId.getAvailableZoneIds())  # type: ignore[union-attr]
    places = {zone for zone in known & available_timezones() if "/" in zone}
    others = sorted(places.difference(ZONES)) if AT_NIGHT else ()
    rows = [(zone, time) for zone in ZONES for time in _around_changes(zone, draw)]
    # Of earlier years the databases of Java and of the system do not know the same.
    rows += [(zone, time) for zone in others for time in _around_changes(zone, draw) if time.year >= _ALIKE]
    table = pa.table(
        {"zone": [zone for zone, _ in rows], "at": pa.array([time for _, time in rows], pa.timestamp("us"))}
    )
    spark.createDataFrame(table).createOrReplaceTempView("local_times")
    parts = "year(at), month(at), day(at), hour(at), minute(at), extract(SECOND FROM at), zone"
    asked = spark.sql(f"SELECT zone, at, unix_micros(make_timestamp({parts})) AS moment FROM local_times").toArrow()
    expected: dict[str, dict[datetime, int]] = {}
    for zone, time, moment in zip(*(asked[name].to_pylist() for name in asked.column_names), strict=True):
        expected.setdefault(zone, {})[time.replace(tzinfo=None)] = moment
    for zone, moments in expected.items():
        found: Any = LocalTimes(zone).moments(pa.array(list(moments), pa.timestamp("us")))
        assert dict(zip(moments, found.cast(pa.int64()).to_pylist(), strict=True)) == moments, zone
        alone = {time: datetime.fromisoformat(moment_text(time.isoformat(), zone)[:-1]) for time in moments}
        assert {time: (moment - _EPOCH) // _MICROSECOND for time, moment in alone.items()} == moments, zone


TEXTS = [
    "2026-10-25T01:59:59", "2026-10-25T02:00:00", "2026-10-25T02:59:59.999999", "2026-10-25T03:00:00",
    "2026-03-29T01:59:59", "2026-03-29T02:00:00", "2026-03-29T02:59:59.5", "2026-03-29T03:00:00",
    "2026-10-25 02:30:00", "2026-10-25T02:30:00+01:00", "2026-10-25T02:30:00Z", "2026-10-25T02:30", "2026-10-25",
    "1893-04-01T00:03:00", "1945-05-24T02:30:00", "1850-01-01T00:00:00", "9998-07-01T12:00:00",
]  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "+05:30", "UTC", "PST", "EST"])
def test_a_source_reads_times_as_sparks_own_does(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    document = tmp_path / "in.xml"
    document.write_text(f"<r>{''.join(f'<t><at>{text}</at></t>' for text in TEXTS)}</r>")
    reader = spark.read.format("xml").schema("at TIMESTAMP").options(rowTag="t", timeZone=zone)
    theirs = [row.moment for row in reader.load(str(document)).selectExpr("unix_micros(at) AS moment").collect()]
    column = ColumnReader.of(SourceOptions.parse({**SOURCE, "timeZone": zone}), 0)
    for texts in (TEXTS, *([text] for text in TEXTS)):
        values, reasons = column.read(pa.array(texts, pa.string()))
        assert not reasons
        known = dict(zip(TEXTS, theirs, strict=True))
        assert values.cast(pa.int64()).to_pylist() == [known[text] for text in texts]


def _berlin(**more: str) -> SourceOptions:
    return SourceOptions.parse({**SOURCE, "timeZone": "Europe/Berlin", **more})


def test_a_time_beyond_the_last_year_in_utc_is_malformed() -> None:
    column = ColumnReader.of(SourceOptions.parse({**SOURCE, "timeZone": "America/New_York"}), 0)
    texts = pa.array(["9999-12-31T18:59:59", "9999-12-31T19:00:00"])
    values, reasons = column.read(texts)
    assert values[0].as_py() == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert reasons == {1: "at: '9999-12-31T19:00:00' is beyond the years 1 to 9999 in UTC"}


def test_one_far_year_among_many_times_is_read_with_them() -> None:
    values, reasons = ColumnReader.of(_berlin(), 0).read(pa.array(["2026-07-01T12:00:00", "9999-07-01T12:00:00", None]))
    assert [moment and moment.hour for moment in values.to_pylist()] == [10, 10, None]
    assert not reasons


def test_a_domain_is_in_the_zone_of_its_times() -> None:
    domain = _berlin(domains="at 2026-10-25 02:30..2026-10-26").schema["at"].domain
    assert domain.low == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert domain.high == datetime(2026, 10, 25, 23, tzinfo=UTC)


def test_an_unknown_zone_is_refused_with_what_to_write() -> None:
    with pytest.raises(UsageError, match="timeZone 'Europe/Berlln': there is no time zone Europe/Berlln") as raised:
        SourceOptions.parse({**SOURCE, "timeZone": "Europe/Berlln"})
    assert raised.value.hint == "did you mean Europe/Berlin?"


def _answers(session: InProcessSession, path: Path, *items: str, **options: str) -> list[tuple[datetime, int]]:
    path.write_text(f"<r {PUNCT}>{''.join(items)}</r>")
    read = xs.read(session, path, "at TIMESTAMP, n INT", rowTag="t", **options)
    return [(row["at"], row["n"]) for row in read.to_arrow().to_pylist()]


def _item(at: str, n: int) -> str:
    return f"<t><at>{at}</at><n>{n}</n></t>"


def test_punctuations_are_in_the_zone_of_tuples(in_process: InProcessSession, tmp_path: Path) -> None:
    closed = "<punct:t><at>{}</at></punct:t>"
    patterns = ("[,2026-07-01 12:00]", '["2026-07-01T11:00:00","2026-07-01T12:00:00"]', "{2026-07-01T12:00:00}")
    for pattern in (*patterns, "2026-07-01T12:00", "[,2026-07-01T10:00:00Z]", "[,2026-07-01T12:00:00+02:00]"):
        for time, is_late in (("2026-07-01T12:00:00", True), ("2026-07-01T12:00:00.000001", False)):
            items = closed.format(pattern), _item(time, 1)
            if is_late:
                with pytest.raises(UngrammaticalStream):
                    _answers(in_process, tmp_path / "in.xml", *items, timeZone="Europe/Berlin")
            else:
                assert _answers(in_process, tmp_path / "in.xml", *items, timeZone="Europe/Berlin")


def test_a_lifespan_is_in_the_zone_of_tuples(in_process: InProcessSession, tmp_path: Path) -> None:
    closed = '<punct:t punct:lifespan="at &lt; 2026-07-01 12:00:00"><n>1</n></punct:t>'

    def passed(until: str) -> str:
        return f"<punct:t><at>[,{until})</at></punct:t>"

    items = _item("2026-07-01T11:00:00", 2), closed, passed("2026-07-01T12:00:00"), _item("2026-07-01T12:00:00", 1)
    assert len(_answers(in_process, tmp_path / "in.xml", *items, timeZone="Europe/Berlin", maxBytesPerSlice="80")) == 2
    items = _item("2026-07-01T11:00:00", 2), closed, passed("2026-07-01T11:59:59"), _item("2026-07-01T12:00:00", 1)
    with pytest.raises(UngrammaticalStream):
        _answers(in_process, tmp_path / "in.xml", *items, timeZone="Europe/Berlin", maxBytesPerSlice="80")


def test_an_order_goes_back_where_clocks_are_set_back(in_process: InProcessSession, tmp_path: Path) -> None:
    night = [_item(f"2026-10-25T{clock}:00", n) for n, clock in enumerate(("02:50", "02:10", "03:00"))]
    options = {"timeZone": "Europe/Berlin", "punctuate": "order of at"}
    with pytest.raises(UngrammaticalStream):
        _answers(in_process, tmp_path / "in.xml", *night, **options, maxBytesPerSlice="40")
    options["punctuate"] = "order of at, slack 1h"
    assert len(_answers(in_process, tmp_path / "in.xml", *night, **options, maxBytesPerSlice="40")) == 3


def test_structures_and_lists_have_the_zone_too(in_process: InProcessSession, tmp_path: Path) -> None:
    document = tmp_path / "in.xml"
    document.write_text("<r><t><b><at>2026-07-01 12:00:00</at></b><c>2026-07-01T12:00:00</c></t></r>")
    read = xs.read(
        in_process, document, "b STRUCT<at: TIMESTAMP>, c ARRAY<TIMESTAMP>", rowTag="t", timeZone="Europe/Berlin"
    )
    noon = datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert read.to_arrow().to_pylist() == [{"b": {"at": noon}, "c": [noon]}]
