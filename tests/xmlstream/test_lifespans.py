"""Lifespans from the documents to the result: each life of an id is a group of its own, however the stream is cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from lxml import etree

import xmlstream as xs
from punct_ns.errors import UngrammaticalStream
from punct_ns.xml_form import PUNCT_NS
from sources.xml.grammar.check import check_grammar
from sources.xml.options.source import SourceOptions
from tests.xmlstream.killed_run import POINTS, deadly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = settings().max_examples > 50
KEYS = 5
DECLARED = {"schema": "id STRING, t INT", "rowTag": "r", "schemes": "id; t prefix"}


def write(path: Path, lives: int, early: int | None = None) -> Path:
    """Five ids, life after life: two tuples each, then closed until `t` has passed; one comes `early` again."""
    items, t = [], 0
    for life in range(lives):
        for key in range(KEYS):
            items += [f"<r><id>k{key}</id><t>{t}</t></r>"] * 2
            items.append(f'<p:r p:lifespan="t &lt; {(life + 1) * KEYS}"><id>k{key}</id></p:r>')
            t += 1
        if life == early:
            items.append(f"<r><id>k0</id><t>{t}</t></r>")
        items.append(f"<p:r><t>(,{t})</t></p:r>")
    path.write_text(f'<rs xmlns:p="{PUNCT_NS}">\n' + "\n".join(items) + "\n</rs>\n")
    return path


def rows(out: Path) -> list[tuple[str | None, ...]]:
    documents = [etree.parse(path).getroot() for path in sorted(out.glob("slice-*.xml"))]
    return sorted(tuple(leaf.text for leaf in row) for root in documents for row in root.findall("row"))


def lives(count: int) -> list[tuple[str, str, str]]:
    return sorted((f"k{key}", "2", str(life * KEYS + key)) for life in range(count) for key in range(KEYS))


def counted(spark: SparkSession, path: Path, **options: str) -> xs.Query:
    return xs.read(spark, str(path), **DECLARED, **options).group_by("id").agg("count(*) AS n", "min(t) AS since")


def test_check_knows_when_lifespans_end(tmp_path: Path) -> None:
    good = SourceOptions.parse({"path": str(write(tmp_path / "good.xml", 5)), **DECLARED})
    assert check_grammar(good).violation is None
    bad = SourceOptions.parse({"path": str(write(tmp_path / "bad.xml", 5, early=2)), **DECLARED})
    found = check_grammar(bad).violation
    assert found is not None
    assert (found.tuple, str(found.punctuation)) == (("k0", 15), "<k0, *> while t < 15")


@pytest.mark.spark
@pytest.mark.parametrize("slice_", ["10m", "700", "200"])
def test_each_life_is_a_group_of_its_own_however_the_stream_is_cut(
    spark: SparkSession, tmp_path: Path, slice_: str
) -> None:
    path = write(tmp_path / "in.xml", 6)
    counted(spark, path, maxBytesPerSlice=slice_).run(tmp_path / "out")
    assert rows(tmp_path / "out") == lives(6)


@pytest.mark.spark
@pytest.mark.parametrize("slice_", ["10m", "300"])
def test_a_tuple_that_comes_before_the_end_is_ungrammatical(spark: SparkSession, tmp_path: Path, slice_: str) -> None:
    path = write(tmp_path / "in.xml", 4, early=1)
    with pytest.raises(UngrammaticalStream, match=r"\(k0, 10\) comes after .*<(k0|{k0,.*}), .> while t < 10"):
        counted(spark, path, maxBytesPerSlice=slice_).run(tmp_path / "out")
    counted(spark, path, maxBytesPerSlice=slice_, ungrammatical="drop").run(tmp_path / "dropped")
    assert rows(tmp_path / "dropped") == lives(4)


@pytest.mark.spark
def test_what_goes_out_is_read_again_with_its_lifespans(spark: SparkSession, tmp_path: Path) -> None:
    """A selection writes the bound by the result's name; the next query finds the same lives."""
    path = write(tmp_path / "in.xml", 5)
    xs.read(spark, str(path), **DECLARED).select("id AS who", "t AS at").run(tmp_path / "out", row_tag="r")
    (document,) = (tmp_path / "out").glob("slice-*.xml")
    assert 'punct:lifespan="at &lt; 10"' in document.read_text()
    again = {"schema": "who STRING, at INT", "rowTag": "r", "schemes": "who; at prefix"}
    next_ = xs.read(spark, str(document), **again).group_by("who").agg("count(*) AS n", "min(at) AS since")
    next_.run(tmp_path / "next")
    assert rows(tmp_path / "next") == lives(5)
    # Of what keeps tuples back no bound is sure to be closed in time: its promises end at once, and lives are the same.
    counted(spark, path).run(tmp_path / "counts")
    assert 'punct:lifespan="PT0S"' in next(iter((tmp_path / "counts").glob("slice-*.xml"))).read_text()


@pytest.mark.spark
def test_nothing_held_grows_however_many_lives_there_are(spark: SparkSession, tmp_path: Path) -> None:
    count = 200 if LONG else 12
    path, metrics = write(tmp_path / "in.xml", count), tmp_path / "metrics.jsonl"
    counted(spark, path, maxBytesPerSlice="600").run(tmp_path / "out", metrics=metrics)
    assert rows(tmp_path / "out") == lives(count)
    reports: list[dict[str, Any]] = [json.loads(line) for line in metrics.read_text().splitlines()]
    held = [sum(o["punctuations_held"] + o["kept"] for o in report["operators"]) for report in reports]
    assert len(held) >= count // 3
    # However many lives there were before: what is open, and what is closed of one life.
    assert max(held) <= 3 * KEYS, held


class Crash(Exception):
    """What stands for the end of the process."""


@pytest.mark.spark
@pytest.mark.slow
def test_after_a_crash_at_every_point_the_lives_are_the_same(spark: SparkSession, tmp_path: Path) -> None:
    asked = counted(spark, write(tmp_path / "in.xml", 12), maxBytesPerSlice="500")
    for slice_id, point in enumerate(POINTS, start=2):

        def die() -> None:
            raise Crash

        with pytest.MonkeyPatch.context() as patch:
            for owner, name, replacement in deadly(point, slice_id, die):
                patch.setattr(owner, name, replacement)
            with pytest.raises(Exception):  # noqa: B017, PT011  however it comes back through Spark
                asked.run(tmp_path / "out", tmp_path / "state")
    asked.run(tmp_path / "out", tmp_path / "state")
    assert rows(tmp_path / "out") == lives(12)
