"""What a user of PySpark writes by habit works, or is answered with what to write."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from xmlstream.builder.query import Groups, Query
from xmlstream.builder.run_options import ON_QUERIES, settings_of
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.sink.target import Target
from xmlstream.sources.xml.options.option_table import SET_BY_QUERIES
from xmlstream.sql import script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession


def test_the_package_says_what_it_is_and_what_it_has() -> None:
    assert xs.__version__[0].isdigit()
    assert set(dir(xs)) == {*xs.__all__, "__version__"}
    assert all(getattr(xs, name) is not None for name in xs.__all__)


@pytest.mark.parametrize("option", SET_BY_QUERIES)
def test_options_that_a_query_sets_are_refused_with_what_to_do_instead(option: str) -> None:
    declared = f"CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (path 'a.xml', rowTag 't', {option.upper()} 'x');"
    with pytest.raises(QueryError, match=f"the option '{option}' cannot be given") as raised:
        script.read(f"{declared} SELECT a FROM t")
    assert raised.value.hint == SET_BY_QUERIES[option]


def test_a_trigger_is_a_span_of_time_of_a_query_that_waits() -> None:
    def every(follow: bool, **options: Any) -> float:
        return settings_of([Target("out")], None, follow=follow, **options).every

    assert every(True) == every(False) == 0.0
    assert every(True, trigger="1.5s") == 1.5
    for follow, trigger in ((True, "soon"), (False, "10s")):
        with pytest.raises(UsageError, match="trigger"):
            every(follow, trigger=trigger)


@pytest.fixture(scope="module")
def bids(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Query:
    path = tmp_path_factory.mktemp("bids") / "bid.xml"
    return xs.read(spark, path, "auction INT, price DECIMAL(9,2), day DATE NOT NULL", rowTag="bid")


@pytest.mark.spark
def test_a_schema_is_ddl_or_a_struct_type_or_names(bids: Query, tmp_path: Path) -> None:
    from pyspark.sql import types as T

    fields = [("auction", T.IntegerType(), True), ("price", T.DecimalType(9, 2), True), ("day", T.DateType(), False)]
    struct = T.StructType([T.StructField(*field) for field in fields])
    path = bids.root.operator.options.path  # type: ignore[union-attr]
    assert xs.read(bids.spark, path, struct, rowTag="bid") == bids
    assert repr(xs.read(bids.spark, path, ["a", "b c"], rowTag="bid")) == "Query[a: STRING, b c: STRING]"


@pytest.mark.spark
def test_what_pyspark_calls_things_is_the_same_thing(bids: Query) -> None:
    assert bids.columns == ["auction", "price", "day"]
    assert repr(bids) == "Query[auction: INT, price: DECIMAL(9,2), day: DATE]"
    assert repr(bids.groupBy("auction")) == "Groups[auction] of Query[auction: INT, price: DECIMAL(9,2), day: DATE]"
    assert len(repr(bids.insert_into("out"))) < 100
    assert bids.withColumn("x", "price * 2") == bids.with_column("x", "price * 2")
    assert bids.withColumnRenamed("price", "p") == bids.with_column_renamed("price", "p")
    assert bids.selectExpr("auction + 1 AS a") == bids.select("auction + 1 AS a")
    assert bids.unionAll(bids) == bids.union_all(bids)
    assert bids.groupby("day").agg("max(price) AS p") == bids.group_by("day").agg("max(price) AS p")
    names = {"left_outer": "left", "rightouter": "right", "outer": "full", "full_outer": "full", "left_semi": "semi"}
    pairs: dict[Any, Any] = {**names, "leftanti": "anti", "INNER": "inner"}
    for called, how in pairs.items():
        assert bids.join(bids, ["auction", "price", "day"], called) == bids.join(bids, ["auction", "price", "day"], how)


@pytest.mark.spark
def test_what_a_query_has_not_is_answered_with_what_to_write(bids: Query) -> None:
    for name in [*filter(None, ON_QUERIES), "selct", "to_Pandas", "nothing_like_it"]:
        with pytest.raises(AttributeError, match=rf"a query has no {name}; Hint: "):
            getattr(bids, name)
    assert not hasattr(bids, "nothing_like_it")


@pytest.mark.spark
def test_groups_are_aggregated_by_agg(bids: Query) -> None:
    groups: Groups = bids.groupBy("auction")
    for name in ("max", "price", "toPandas"):
        with pytest.raises(AttributeError, match=r"Hint: agg\("):
            getattr(groups, name)


@pytest.mark.spark
def test_the_ways_out_that_are_told_are_ways(bids: Query) -> None:
    pairs = bids.select("*", "1 AS k").join(bids.select("auction AS other", "1 AS k"), ["k"])
    assert pairs.columns == ["k", "auction", "price", "day", "other"]


@pytest.mark.spark
def test_a_column_of_pysparks_is_answered_with_the_text_to_write(bids: Query) -> None:
    with pytest.raises(TypeError, match='expressions are SQL text; Hint: write "price"'):
        _ = bids["price"]  # type: ignore[index]
    with pytest.raises(AttributeError, match='expressions are SQL text; Hint: write "Price"'):
        _ = bids.Price  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="did you mean select"):
        _ = bids.selct  # type: ignore[attr-defined]


@pytest.mark.spark
def test_a_join_by_one_name_is_one_by_a_list_of_it(bids: Query) -> None:
    other = bids.select("auction", "day AS since")
    assert bids.join(other, "auction").root == bids.join(other, ["auction"]).root
    assert bids.join(other, " Auction ", "left").root == bids.join(other, ["Auction"], "left").root
    with pytest.raises(QueryError, match="price is not exactly one attribute on each side"):
        bids.join(other, "price")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("option", "meant"), [("overwrit", "overwrite"), ("outpt", "output"), ("checkpont", "checkpoint")]
)
def test_an_option_of_run_that_there_is_not_is_answered_with_the_nearest(
    option: str, meant: str, bids: Query, tmp_path: Path
) -> None:
    given: dict[str, Any] = {option: "x"}
    for run in (bids.run, bids.start, bids.slices, bids.collect, partial(xs.run, [bids.insert_into(tmp_path)])):
        with pytest.raises(UsageError, match=f"a run has no option {option}") as raised:
            run(**given)
        assert raised.value.hint == f"did you mean {meant}?"


@pytest.mark.spark
def test_a_frame_that_is_a_stream_is_refused_at_once(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="the DataFrame is a stream") as raised:
        xs.from_dataframe(spark.readStream.format("rate").load())
    assert "from_stream" in str(raised.value.hint)


def test_a_started_query_is_told_that_it_follows_by_itself(in_process: InProcessSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    query = xs.read(in_process, tmp_path / "in", schema="h INT", rowTag="r", schemes="h")
    options: dict[str, Any] = {"follow": True}
    with pytest.raises(UsageError, match="a run has no option follow") as raised:
        query.start(tmp_path / "out", **options)
    assert raised.value.hint == "start() follows its input, without this option; run() ends with it"
    query.start(tmp_path / "out", tmp_path / "state").stop()
