"""DataFrames of Spark's as sources: streams and static ones, beside XML, restarted, and what is refused."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import xmlstream as xs
import xmlstream.testing as xt
from tests.harness.topic import Topic, send
from xmlstream.punct_ns.errors import InputError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.loop import feeds
from xmlstream.runtime.loop.slice_loop import SliceLoop
from xmlstream.sources.generators.auction_documents import write_auctions
from xmlstream.sources.generators.auction_house import House
from xmlstream.sources.xml.spark import spool
from xmlstream.sources.xml.spark.data_source import register
from xmlstream.sources.xml.spark.spool import BatchSpool

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DATA = Path(__file__).parents[4] / "data"

SENSOR = "sid STRING, hour INT, min INT, currtmp DOUBLE"
XML = {"rowTag": "tempdata", "schemes": "hour"}


def feed(directory: Path, number: int, rows: Sequence[dict[str, Any]]) -> None:
    """Adds a file of JSON rows; files are read in the order of their times."""
    directory.mkdir(exist_ok=True)
    draft = directory / f".{number}"
    draft.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(draft, (1e9 + number, 1e9 + number))
    draft.rename(directory / f"{number}.json")


def bids(spark: SparkSession, directory: Path) -> DataFrame:
    """A stream of bids, a file in each batch."""
    reader = spark.readStream.schema("auction BIGINT, price DOUBLE, at TIMESTAMP, said STRING")
    return reader.option("maxFilesPerTrigger", 1).json(str(directory))


def bid(auction: int, price: float, at: str) -> dict[str, Any]:
    """A row of the stream."""
    return {"auction": auction, "price": price, "at": f"2021-01-01T{at}"}


def xml_stream(
    spark: SparkSession, path: Path, schema: str = SENSOR, row_tag: str = "tempdata", most: str = "12k"
) -> DataFrame:
    """The items of a document as a stream of Spark's, with a column of punctuations."""
    register(spark)
    options = {"path": str(path), "schema": schema, "maxBytesPerSlice": most, "rowTag": row_tag}
    return spark.readStream.format("punctuated_xml").options(**options).load().drop("_position")


def written(directory: Path) -> int:
    """The number of tuples in an output."""
    return sum(pq.read_metadata(path).num_rows for path in directory.glob("*.parquet"))


def hottest(first: xs.Query, second: xs.Query) -> Counter[tuple[object, ...]]:
    """The answer of the warehouse query over two sensors."""
    both = first.select("currtmp", "hour").union(second.select("currtmp", "hour"))
    rows = both.group_by("hour").agg("max(currtmp) AS maxtemp").to_arrow().to_pylist()
    return Counter(tuple(row.values()) for row in rows)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("streamed", [(1,), (2,), (1, 2)])
def test_the_warehouse_answers_the_same_with_sensors_as_streams_of_sparks(
    spark: SparkSession, streamed: tuple[int, ...]
) -> None:
    paths = {number: DATA / f"sensor{number}.xml" for number in (1, 2)}
    as_xml = {number: xs.read(spark, path, SENSOR, **XML) for number, path in paths.items()}
    as_stream = {
        number: xs.from_stream(
            xml_stream(spark, paths[number]), name=f"s{number}", schemes="hour", punctuation="_punctuation"
        )
        for number in streamed
    }
    expected = hottest(as_xml[1], as_xml[2])
    assert expected
    assert hottest(*(as_stream.get(number, as_xml[number]) for number in (1, 2))) == expected


@pytest.mark.rest
def test_the_closing_price_is_the_same_with_bids_as_a_stream_of_sparks(spark: SparkSession, tmp_path: Path) -> None:
    house = House(seed=5, in_flight=30, active=12, pace=1, heartbeat=300, bid_streams=2)
    write_auctions(tmp_path, 600, house)
    text = (DATA / "auctions" / "tucker_2007_query_2.sql").read_text()
    bids_ = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING"
    xml_stream(spark, tmp_path / "bid1.xml", bids_, "bid", "50k").createOrReplaceTempView("first_bids")
    streamed = re.sub(
        r"(TABLE bid1) \([^)]*\) USING \w+\s+OPTIONS \(path '[^']*', rowTag 'bid',\s*schemes ('[^']*')[^;]*;",
        r"\1 USING stream OPTIONS (view 'first_bids', punctuation '_punctuation', schemes \2);",
        text,
    )
    assert "first_bids" in streamed
    expected, found = (
        Counter(map(str, xs.from_sql(spark, each, {"AUCTIONS": str(tmp_path)}).to_arrow().to_pylist()))
        for each in (text, streamed)
    )
    assert expected
    assert found == expected


def test_a_batch_is_a_set_and_slack_counts_from_batch_to_batch(spark: SparkSession, tmp_path: Path) -> None:
    there = tmp_path / "in"
    feed(there, 1, [bid(1, 5, "00:50:00"), bid(2, 7, "00:10:00")])  # the order within a batch does not count
    feed(there, 2, [bid(1, 9, "01:30:00"), bid(2, 8, "00:45:30")])
    query = xs.from_stream(bids(spark, there), punctuate="order of at, slack 5m")
    hours = query.select("date_trunc('HOUR', at) AS hour", "price").group_by("hour").agg("count(*) AS n")
    assert [row["n"] for row in hours.to_arrow().to_pylist()] == [3]
    feed(there, 3, [bid(3, 1, "01:20:00")])
    with pytest.raises(xs.UngrammaticalStream, match="comes after the punctuation"):
        hours.to_arrow()


def test_a_tuple_after_a_punctuation_of_its_own_partition_is_ungrammatical(spark: SparkSession, tmp_path: Path) -> None:
    there = tmp_path / "in"
    feed(there, 1, [bid(1, 5, "00:50:00"), {"said": "<1, *, *>"}, bid(1, 6, "00:51:00"), bid(2, 7, "00:52:00")])
    query = xs.from_stream(bids(spark, there), name="bids", schemes="auction", punctuation="said")
    with pytest.raises(xs.UngrammaticalStream, match="tuple") as failure:
        query.to_arrow()
    assert "source bids, batch 0, item" in str(failure.value)
    dropping = xs.from_stream(bids(spark, there), schemes="auction", punctuation="said", ungrammatical="drop")
    assert sorted(map(float, filter(None, dropping.to_arrow()["price"].to_pylist()))) == [5, 7]


def test_files_of_one_batch_have_no_order_among_them(spark: SparkSession, tmp_path: Path) -> None:
    there = tmp_path / "in"
    feed(there, 1, [bid(1, 5, "00:50:00")])
    # Spark reads the larger one first.
    feed(there, 2, [bid(1, 7, "00:51:00"), bid(2, 8, "00:52:00"), {"said": "<1, *, *>"}, bid(2, 9, "00:53:00")])
    frame = spark.readStream.schema("auction BIGINT, price DOUBLE, at TIMESTAMP, said STRING").json(str(there))
    query = (
        xs.from_stream(frame.coalesce(1), schemes="auction", punctuation="said")
        .group_by("auction")
        .agg("count(*) AS n")
    )
    query.run(tmp_path / "out.parquet", tmp_path / "state", keep_open=True)
    assert written(tmp_path / "out.parquet") == 1
    feed(there, 3, [bid(1, 6, "00:54:00")])
    with pytest.raises(xs.UngrammaticalStream, match="comes after the punctuation"):
        query.run(tmp_path / "out.parquet", tmp_path / "state", keep_open=True)


def test_a_row_outside_its_domain_goes_to_the_dead_letters(spark: SparkSession, tmp_path: Path) -> None:
    there = tmp_path / "in"
    feed(there, 1, [bid(1, 5, "00:50:00"), bid(-1, 6, "00:51:00"), {"said": "<1>"}])
    options: dict[str, Any] = {"domains": "auction 0..", "schemes": "auction", "punctuation": "said"}
    failing = xs.from_stream(bids(spark, there), **options)
    with pytest.raises(xs.MalformedInput, match="auction: -1 is not within its domain"):
        failing.to_arrow()
    permissive = xs.from_stream(bids(spark, there), name="bids", mode="PERMISSIVE", **options)
    summary = permissive.run(tmp_path / "out", tmp_path / "state")
    assert summary.items_in == 3
    (lines,) = (path.read_text().splitlines() for path in (tmp_path / "out" / "_dead_letters").iterdir())
    letters = list(map(json.loads, lines))
    assert [(letter["kind"], letter["document"]) for letter in letters] == [
        ("tuple", "batch 0, partition 0, row 2"),
        ("punctuation", "batch 0, partition 0, row 3"),
    ]


@pytest.mark.parametrize("few", [1, 10])
def test_a_small_batch_after_another_is_written_by_the_driver_as_tasks_write_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(feeds, "FEW", few)
    there = tmp_path / "in"
    feed(there, 0, [bid(1, 5, "00:10:00")])
    feed(there, 1, [bid(2, 6, "00:20:00"), {"said": "<2, *, *>"}, bid(2, 7, "00:30:00"), {"said": "<2>"}])
    options: dict[str, Any] = {"schemes": "auction", "punctuation": "said", "mode": "PERMISSIVE"}
    query = xs.from_stream(bids(spark, there), name="bids", ungrammatical="divert", **options)
    query.run(tmp_path / "out.parquet", tmp_path / "state")
    assert written(tmp_path / "out.parquet") == 2
    paths = (tmp_path / "out.parquet" / "_dead_letters").iterdir()
    letters = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    found = {letter["kind"]: letter["document"] for letter in letters}
    assert found.keys() == {"punctuation", "ungrammatical"}
    assert found["punctuation"] == "batch 1, partition 0, row 4"


def test_a_query_goes_on_where_the_last_run_ended(spark: SparkSession, tmp_path: Path) -> None:
    there = tmp_path / "in"
    query = xs.from_stream(bids(spark, there_made(there)), name="bids", punctuate="order of at")
    hours = query.select("date_trunc('HOUR', at) AS hour", "price").group_by("hour").agg("count(*) AS n")
    counts = []
    for number in range(4):
        feed(there, number, [bid(1, 5, f"0{number}:10:00"), bid(1, 6, f"0{number}:20:00")])
        hours.run(tmp_path / "out.parquet", tmp_path / "state")
        counts.append(written(tmp_path / "out.parquet"))
    assert counts == [0, 1, 2, 3]


def there_made(directory: Path) -> Path:
    """The directory, which exists."""
    directory.mkdir()
    return directory


def test_a_batch_that_spark_gives_again_is_passed_over(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "in"
    feed(there, 0, [bid(1, 5, "00:10:00"), bid(1, 6, "01:20:00")])
    query = xs.from_stream(bids(spark, there), name="bids", punctuate="order of at")
    publish = BatchSpool.publish

    def killed(spool: BatchSpool, *given: Any) -> None:
        publish(spool, *given)
        raise OSError("killed")

    monkeypatch.setattr(BatchSpool, "publish", killed)
    with pytest.raises(OSError, match="killed"):
        query.run(tmp_path / "out.parquet", tmp_path / "state")
    monkeypatch.setattr(BatchSpool, "publish", publish)
    query.run(tmp_path / "out.parquet", tmp_path / "state")
    assert written(tmp_path / "out.parquet") == 2


def test_a_followed_stream_answers_and_stops(spark: SparkSession, tmp_path: Path) -> None:
    there = there_made(tmp_path / "in")
    query = xs.from_stream(bids(spark, there), name="bids", punctuate="order of at")
    hours = query.select("date_trunc('HOUR', at) AS hour", "price").group_by("hour").agg("count(*) AS n")
    handle = hours.start(tmp_path / "out.parquet", tmp_path / "state", name="hours")
    try:
        for number in range(2):
            feed(there, number, [bid(1, 5, f"0{number}:10:00"), bid(1, 6, f"0{number}:20:00")])
            handle.processAllAvailable()
            assert written(tmp_path / "out.parquet") == number
    finally:
        handle.stop()
    assert not [query for query in spark.streams.active if query.name == "hours, stream bids"]


def test_a_stream_that_somebody_else_stops_ends_its_query_in_words(spark: SparkSession, tmp_path: Path) -> None:
    there = there_made(tmp_path / "in")
    query = xs.from_stream(bids(spark, there), name="bids", punctuate="order of at")
    handle = query.start(tmp_path / "out.parquet", tmp_path / "state", name="halted")
    try:
        feed(there, 0, [bid(1, 5, "00:10:00")])
        handle.processAllAvailable()
        for each in spark.streams.active:
            if each.name == "halted, stream bids":
                each.stop()
        with pytest.raises(InputError, match="the stream bids was stopped, and not by this query"):
            handle.awaitTermination(60)
    finally:
        handle.stop()
    assert not handle.isActive
    feed(there, 1, [bid(2, 5, "00:10:00")])
    query.run(tmp_path / "out.parquet", tmp_path / "state")
    assert written(tmp_path / "out.parquet") == 2


def test_a_stream_that_is_stopped_within_a_batch_is_not_at_its_end(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = there_made(tmp_path / "in")
    for number in range(3):
        feed(there, number, [bid(number, 5, f"0{number}:10:00")])
    query = xs.from_stream(bids(spark, there), name="bids", punctuate="order of at")
    batch = feeds.Feeds._batch

    def stopped(self: feeds.Feeds, each: Any, frame: DataFrame, number: int) -> None:
        if number == 1:
            monkeypatch.setattr(feeds.Feeds, "_batch", batch)
            threading.Thread(target=self._queries[0].stop).start()
            time.sleep(1)
        batch(self, each, frame, number)

    monkeypatch.setattr(feeds.Feeds, "_batch", stopped)
    with pytest.raises(InputError, match=r"was stopped, and not by this query|cannot be read"):
        query.run(tmp_path / "out.parquet", tmp_path / "state")
    query.run(tmp_path / "out.parquet", tmp_path / "state")
    assert written(tmp_path / "out.parquet") == 3


def test_a_batch_leaves_nothing_behind_whoever_has_sorted_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list[list[str]]()
    publish = BatchSpool.publish

    def looked(spool: BatchSpool, *given: Any) -> None:
        publish(spool, *given)
        left.append(spool.pending.names())

    monkeypatch.setattr(BatchSpool, "publish", looked)
    for most in (0, 100):
        for module in (feeds, spool):
            monkeypatch.setattr(module, "MOST_SORTED", most)
        there = there_made(tmp_path / f"in{most}")
        feed(there, 0, [bid(number, 5, f"0{number}:10:00") for number in range(5)])
        out = tmp_path / f"out{most}.parquet"
        xs.from_stream(bids(spark, there), name="bids", punctuate="order of at").run(out, tmp_path / f"state{most}")
        assert written(out) == 5
    assert left == [[], []]


def test_a_static_frame_is_a_stream_that_ends(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 5.0), (2, 7.0), (1, 9.0)], "auction INT, price DOUBLE")
    most = xs.from_stream(frame).group_by("auction").agg("max(price) AS most").to_arrow().to_pylist()
    assert {row["most"] for row in most} == {7, 9}


def test_nested_values_come_as_they_are(spark: SparkSession) -> None:
    values = "1, array(1, 2), named_struct('x', 1, 'y', 'a'), DATE'2021-01-01', CAST(1.5 AS DECIMAL(10, 2)), true"
    nulls = ", ".join(["NULL"] * 6)
    frame = spark.sql(f"SELECT * FROM VALUES ({values}), ({nulls}) AS t(a, b, c, d, e, f)")
    found = xs.from_stream(frame).to_dataframe()
    assert [row.asDict(recursive=True) for row in found.collect()] == [
        row.asDict(recursive=True) for row in frame.collect()
    ]
    assert len(found.columns) == 6


def test_a_script_reads_views_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    there = tmp_path / "in"
    feed(there, 0, [bid(1, 5, "00:10:00"), bid(2, 6, "01:20:00"), bid(9, 6, "02:20:00")])
    bids(spark, there).createOrReplaceTempView("bids_stream")
    spark.createDataFrame([(1, "a"), (2, "b")], "auction BIGINT, name STRING").createOrReplaceTempView("`my auctions`")
    text = """
        CREATE TABLE bids USING stream OPTIONS (view 'bids_stream', punctuation 'said', punctuate 'order of at');
        SELECT name, price FROM bids JOIN `my auctions` USING (auction)
    """
    assert set(xs.from_sql(spark, text).to_arrow()["name"].to_pylist()) == {"a", "b"}
    declared = (
        "CREATE TABLE bids (auction BIGINT, at TIMESTAMP) USING stream OPTIONS (view 'nowhere'); SELECT * FROM bids"
    )
    with pytest.raises(xs.QueryError, match="the session has no view nowhere"):
        xs.from_sql(spark, declared)


def test_what_a_stream_cannot_be_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    frame = bids(spark, there_made(tmp_path / "in"))
    with pytest.raises(xs.UsageError, match="there is no column nothing"):
        xs.from_stream(frame, punctuation="nothing")
    with pytest.raises(xs.UsageError, match="no option rowTag"):
        xs.from_stream(frame, rowTag="x")  # type: ignore[call-arg]
    with pytest.raises(xs.UsageError, match="MAP"):
        xs.from_stream(spark.range(1).selectExpr("map(1, 2) AS m"))
    with pytest.raises(xs.UsageError, match="the DataFrame is a stream"):
        xs.from_dataframe(frame)


def test_a_group_that_nothing_closes_is_refused_before_the_run(spark: SparkSession, tmp_path: Path) -> None:
    query = xs.from_stream(bids(spark, there_made(tmp_path / "in"))).group_by("auction").agg("count(*) AS n")
    with pytest.raises(xs.UnsafeQuery, match="wait or grow for ever"):
        query.to_arrow()


def topic(spark: SparkSession, directory: Path, each: int = 100) -> DataFrame:
    """A topic of Kafka's shape."""
    spark.dataSource.register(Topic)
    return spark.readStream.format("topic").option("path", str(directory)).option("perTrigger", each).load()


def report(sid: str, hour: int, temp: str) -> str:
    """A message: a fragment with one tuple."""
    return f"<r><sid>{sid}</sid><hour>{hour}</hour><temp>{temp}</temp></r>"


REPORT = "sid STRING, hour INT, temp DOUBLE"


def test_messages_of_a_topic_are_tuples_with_their_offsets(spark: SparkSession, tmp_path: Path) -> None:
    there = tmp_path / "reports"
    send(there, 0, report("a", 1, "7"), report("a", 1, "9"), report("a", 2, "5"))
    send(there, 1, f"<rs>{report('b', 1, '8')}{report('b', 2, '3')}</rs>", report("b", 3, "4"))
    read = xs.read_column(
        topic(spark, there), "value", REPORT, rowTag="r", keep=["partition", "offset"], punctuate="order of hour"
    )
    assert read.schema.names == ("sid", "hour", "temp", "partition", "offset")
    found = read.to_arrow().to_pylist()
    assert {(row["sid"], row["hour"], row["partition"], row["offset"]) for row in found} == {
        ("a", 1, 0, 0),
        ("a", 1, 0, 1),
        ("a", 2, 0, 2),
        ("b", 1, 1, 0),
        ("b", 2, 1, 0),
        ("b", 3, 1, 1),
    }
    hottest_ = read.group_by("hour").agg("max(temp) AS most").to_arrow().to_pylist()
    assert {(row["hour"], row["most"]) for row in hottest_} == {(1, 9.0), (2, 5.0)}


def test_punctuations_in_messages_close_and_a_malformed_message_is_named_by_its_offset(
    spark: SparkSession, tmp_path: Path
) -> None:
    there = tmp_path / "reports"
    send(there, 0, report("a", 1, "7"), "<r><sid>b</sid>", report("a", 1, "9"), "<punct:r><hour>1</hour></punct:r>")
    spark.dataSource.register(Topic)
    topic(spark, there).createOrReplaceTempView("messages")
    text = """
        CREATE TABLE reports (sid STRING, hour INT, temp DOUBLE, topic STRING, offset BIGINT) USING stream
        OPTIONS (view 'messages', column 'value', keep 'topic, offset', rowTag 'r', schemes 'hour', mode '${MODE}');
        SELECT hour, max(temp) AS most FROM reports GROUP BY hour
    """
    with pytest.raises(xs.MalformedInput, match="Premature end") as failure:
        xs.from_sql(spark, text, {"MODE": "FAILFAST"}).to_arrow()
    assert "topic=reports, offset=1, line 1" in str(failure.value)
    query = xs.from_sql(spark, text, {"MODE": "PERMISSIVE"})
    summary = query.run(tmp_path / "out", tmp_path / "state")
    assert (summary.tuples_out, summary.items_in) == (1, 4)
    (path,) = (tmp_path / "out" / "_dead_letters").iterdir()
    letter = json.loads(path.read_text())
    assert (letter["document"], letter["raw"]) == ("topic=reports, offset=1", "<r><sid>b</sid>")


def test_a_query_over_messages_is_tested_without_any(spark: SparkSession) -> None:
    frame = spark.readStream.format("rate").load().selectExpr("value AS offset", "CAST(value AS STRING) AS value")
    read = xs.read_column(frame, "value", REPORT, name="r", rowTag="r", keep=["offset"], schemes="hour")
    with xt.case(read.group_by("hour").agg("max(offset) AS last")) as case:
        case.slice(r="(a, 1, 7.5, 3) (b, 1, 7.5, 4)")
        assert str(case.restart().slice(r="<*, 1, *, *>")) == "(1, 4) <1, *>"


def test_a_static_column_is_a_stream_that_ends(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, report("a", 1, "7")), (2, None), (3, report("b", 2, "9"))], "id INT, xml STRING")
    found = xs.read_column(frame, "xml", REPORT, rowTag="r", keep=["id"]).group_by("hour").agg("max(id) AS id")
    assert {row["id"] for row in found.to_arrow().to_pylist()} == {1, 3}


@pytest.mark.parametrize(("given", "hour"), [({}, 10), ({"timeZone": "UTC"}, 12), ({"timeZone": "Asia/Kolkata"}, 6)])
def test_times_in_a_column_are_in_the_sessions_zone(spark: SparkSession, given: dict[str, str], hour: int) -> None:
    there = spark.newSession()
    there.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    text = f'<l xmlns:p="{PUNCT_NS}"><p:r><at>[,2026-07-01T11:00]</at></p:r><r><at>2026-07-01T12:00:00</at></r></l>'
    frame = there.createDataFrame([(1, text)], "id INT, xml STRING")
    found = xs.read_column(frame, "xml", "at TIMESTAMP", rowTag="r", **given).to_arrow().to_pylist()
    assert [row["at"].astimezone(UTC).hour for row in found] == [hour]


def test_a_slice_of_several_batches_does_not_keep_later_ones_waiting(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "in"
    for number in range(6):
        feed(there, number, [bid(1, 5, f"0{number}:10:00")])
    run = SliceLoop._run

    def late(loop: SliceLoop) -> None:
        (each,) = loop.feeds._frames.values()
        while len(each.spool.unread()) < 2:
            time.sleep(0.01)
        run(loop)

    monkeypatch.setattr(SliceLoop, "_run", late)
    query = xs.from_stream(bids(spark, there), name="bids", punctuate="order of at")
    handle = query.start(tmp_path / "out.parquet", tmp_path / "state")
    try:
        deadline = time.monotonic() + 300
        while written(tmp_path / "out.parquet") < 6 and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        handle.stop()
    assert written(tmp_path / "out.parquet") == 6


def test_a_run_that_was_killed_while_spark_recorded_the_first_batch_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    there = tmp_path / "in"
    feed(there, 0, [bid(1, 5, "00:10:00")])
    left = tmp_path / "state" / "streams" / "bids" / "spark" / "offsets"
    left.mkdir(parents=True)
    (left / ".0.c0ffee.tmp").write_text("v1")
    query = xs.from_stream(bids(spark, there), name="bids", punctuate="order of at")
    query.run(tmp_path / "out.parquet", tmp_path / "state")
    assert written(tmp_path / "out.parquet") == 1
