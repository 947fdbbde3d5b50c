"""Experiments 1 to 3 of Botan et al. 2010 from XML on Spark, windows from the builder, and what our own windows do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lxml import etree
from typer.testing import CliRunner

import xmlstream as xs
from tests.harness.secret_answers import predict
from xmlstream.cli.commands import app
from xmlstream.optimizer.rules import optimized
from xmlstream.punct_ns.errors import QueryError
from xmlstream.safety.verdicts import judged
from xmlstream.secret.model import PROFILES, Windows, stream
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import Session

Rows = list[tuple[int, ...]]
FIRST: dict[str, Rows] = {
    f"e1_{first}": [(10 * (number + 1), first + number) for number in range(7)] for first in (10, 11, 12)
}
SECOND: Rows = [(10, 30), (20, 31), (30, 36), (40, 37)]
BATCHES = {"stuple": [1, 2, 3, 4, 5, 6], "stime": [1, 2, 2, 2, 2, 3], "sbatch": [1, 2, 2, 3, 3, 4]}
THIRD: dict[str, Rows] = {
    f"e3_{name}": [(*row, batch) for row, batch in zip(
        [(10, 3), (20, 5), (30, 5), (40, 5), (50, 5), (60, 7)], batches, strict=True)]
    for name, batches in BATCHES.items()
}  # fmt: skip
EXPERIMENTS: dict[str, tuple[Rows, str, str, list[int]]] = {
    **{
        name: (rows, "streambase, size 3, slide 3, of time", "avg", expected)
        for (name, rows), expected in zip(FIRST.items(), ([15, 40], [10, 30], [20, 50]), strict=True)
    },
    "e2_stream": (SECOND, "stream, size 5, slide 1, of time", "avg", [10, 15, 20, 30]),
    "e2_coral8": (SECOND, "coral8, size 5, slide 1, of time", "avg", [10, 15, 20, 30]),
    "e2_streambase": (SECOND, "streambase, size 5, slide 1, of time", "avg", [10, 15, 15, 15, 15, 20, 30]),
    **{
        name: (rows, "coral8, size 4, slide 1, of time, batch bid", "sum", expected)
        for (name, rows), expected in zip(
            THIRD.items(), ([10, 30, 60, 100, 150], [10, 150], [10, 60, 150]), strict=True
        )
    },
}
"""Of each its stream, how it is asked, and the outputs that the paper prints."""


def written(directory: Path, name: str, rows: Rows) -> Path:
    path = directory / f"{name}.xml"
    leaves = ("val", "time", "bid")
    items = ("".join(f"<{leaf}>{value}</{leaf}>" for leaf, value in zip(leaves, row, strict=False)) for row in rows)
    path.write_text(f"<s>{''.join(f'<t>{item}</t>' for item in items)}</s>", encoding="utf-8")
    return path


@pytest.mark.rest
@pytest.mark.spark
def test_the_experiments_come_out_of_one_run_over_xml(spark: SparkSession, tmp_path: Path) -> None:
    script = []
    for name, (rows, semantics, aggregate, _) in EXPERIMENTS.items():
        columns = "val INT, time INT NOT NULL" + (", bid INT NOT NULL" if "batch" in semantics else "")
        script += [
            f"CREATE TABLE {name} ({columns}) USING punctuated_xml OPTIONS (path '{written(tmp_path, name, rows)}',"
            f" rowTag 't', semantics '{semantics}');",
            f"CREATE TABLE to_{name} USING punctuated_xml OPTIONS (path '{tmp_path / name}', rowTag 'r');",
            f"INSERT INTO to_{name} SELECT window_tuple, window_at, {aggregate}(val) AS answer FROM {name}"
            " GROUP BY window_tuple, window_at, window_start, window_end;",
        ]
    query = tmp_path / "experiments.sql"
    query.write_text("\n".join(script), encoding="utf-8")
    done = CliRunner().invoke(app, ["run", str(query)], catch_exceptions=False)
    assert done.exit_code == 0
    found = {}
    for name in EXPERIMENTS:
        trees = [etree.parse(path) for path in sorted((tmp_path / name).glob("*.xml"))]
        told = [[float(leaf.text or "nan") for leaf in row] for tree in trees for row in tree.iter("r")]
        found[name] = [answer for *_, answer in sorted(told)]
    assert found == {name: expected for name, (*_, expected) in EXPERIMENTS.items()}


@pytest.mark.spark
def test_windows_of_the_builder_go_through_select_and_are_refused_above_a_merge(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = written(tmp_path, "s", SECOND)
    s = xs.read(spark, path, schema="val INT, time INT NOT NULL", rowTag="t", name="s")
    query = s.where("val < 40").select("val * 2 AS twice", "time").window_as("coral8", "time", 5, 1)
    query.agg("sum(twice) AS total").run(tmp_path / "out", row_tag="r")
    (tree,) = (etree.parse(each) for each in sorted((tmp_path / "out").glob("*.xml")) if b"total" in each.read_bytes())
    totals = sorted((int(row[2].text or 0), int(row[4].text or 0)) for row in tree.iter("r"))
    assert totals == [(30, 20), (31, 60), (35, 40)]
    with pytest.raises(QueryError, match="semantics of coral8 above merge, where the order of tuples is lost"):
        s.union_all(s).window_as("coral8", "time", 5, 1)
    counted = s.tuple_window(3, 1).agg("sum(val) AS total", "max(val) - min(val) AS spread")
    counted.run(tmp_path / "counted", row_tag="r")
    (tree,) = (etree.parse(e) for e in sorted((tmp_path / "counted").glob("*.xml")) if b"total" in e.read_bytes())
    assert [[int(leaf.text or 0) for leaf in row] for row in tree.iter("r")] == [[60, 20], [90, 20]]
    with pytest.raises(QueryError, match="windows over tuples above merge"):
        s.union_all(s).tuple_window(3).agg("sum(val)")
    with pytest.raises(QueryError, match="time is neither a group of the windows nor aggregated"):
        s.tuple_window(3).agg("sum(val) + time")


@pytest.mark.parametrize(
    ("semantics", "what"),
    [
        ("spark, size 5, slide 1, of time", "there is no engine spark"),
        ("stream, size 5, of time", "lacks slide"),
        ("stream, size x, slide 1, of time", "whole numbers above 0"),
        ("stream, size 5 seconds, slide 1, of time", "whole numbers above 0"),
        ("stream, size 5, slide 1, of time, every 3", "'every 3' in semantics"),
        ("stream, size 5, slide 1, of val", "val must be an integer that is never null"),
        ("stream, size 5, slide 1, of when", "no attribute when"),
    ],
)
def test_what_cannot_be_asked_of_an_engine_is_said(semantics: str, what: str) -> None:
    table = "CREATE TABLE s (val INT, time INT NOT NULL) USING punctuated_xml OPTIONS (path 's.xml', rowTag 't', {});"
    with pytest.raises(QueryError) as raised:
        read(table.format(f"semantics '{semantics}'") + " SELECT val FROM s")
    assert what in raised.value.what
    assert raised.value.line == 1


@pytest.mark.spark
def test_our_own_windows_are_what_the_profile_says(spark: SparkSession, tmp_path: Path) -> None:
    """A window [s, s+ω) at multiples of ω, answered when time has gone beyond it: that of the last tuple is not yet."""
    rows: Rows = [(1, 3), (2, 4), (3, 4), (4, 9), (5, 17), (6, 21)]
    (tmp_path / "in").mkdir()
    written(tmp_path / "in", "s", rows)  # a directory, which the end of a document does not close
    s = xs.read(spark, tmp_path / "in", schema="val INT, time INT NOT NULL", rowTag="t")
    ours = s.punctuate(xs.ByOrder("time")).with_column("w", "time DIV 5").group_by("w").agg("sum(val) AS total")
    ours.run(tmp_path / "out", row_tag="r", keep_open=True)
    trees = [etree.parse(path) for path in (tmp_path / "out").glob("*.xml")]
    found = sorted((int(row[0].text or 0), int(row[1].text or 0)) for tree in trees for row in tree.iter("r"))
    assert [total for _, total in found] == predict(stream(rows), Windows(5, 5), "sum", PROFILES["xmlstream"])


@pytest.mark.parametrize("session", ["in process"], indirect=True)
def test_groups_and_joins_of_windows_close_since_instants_only_ascend(session: Session, tmp_path: Path) -> None:
    """Botan et al. 2010, B.2.2: reports never go back, neither in the instant nor where windows begin or end."""
    rows: Rows = [(n, 2 * n) for n in range(1, 30)]
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, "s", rows)  # a directory, which the end of a document does not close
    tables = "".join(
        f"CREATE TABLE {name} (val INT, time INT NOT NULL) USING punctuated_xml OPTIONS (path '{tmp_path / name}', "
        "rowTag 't', semantics 'stream, size {}, slide 5, of time');\n"
        for name in ("one", "other")
    )
    for of in ("5", "5 tuples"):
        for attribute in ("window_tuple", "window_at", "window_start", "window_end"):
            grouped = f"SELECT {attribute} AS g, count(*) AS n FROM one GROUP BY {attribute}"
            joined = f"SELECT a.{attribute} AS g, a.val AS n FROM one a JOIN other b USING ({attribute})"
            for query in (grouped, joined):
                script = read(tables.format(of, of) + query)
                found = judged(optimized(script.plan(session)), follow=True)
                assert (found.is_enabled, found.is_safe) == (True, True), query
                out = tmp_path / f"{of}-{attribute}-{query is grouped}"
                done = xs.from_sql(session, tables.format(of, of) + query).run(out, keep_open=True)
                assert done.tuples_out > (4 if query is grouped else 20)
