"""The first experiment of Tucker et al. 2003 (§7.2), end to end, against a recomputation from the sensors' XML."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.harness.punctuation_elements import read_element
from tests.oracles import oracle
from xmlstream.punct_ns.errors import MalformedInput, StateError, UngrammaticalStream
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.generators.sensors import write_sensors

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

SENSOR = "sid STRING, hour INT, min INT, currtmp DOUBLE"
RESULT = Schema.parse("hour INT, maxtemp DOUBLE")


def warehouse(session: Session, one: Path, two: Path, **options: str) -> xs.Query:
    """The paper's query."""
    options = {"rowTag": "tempdata", "schemes": "hour", **options}
    first, second = (xs.read(session, path, schema=SENSOR, **options) for path in (one, two))
    union = first.select("currtmp", "hour").union(second.select("currtmp", "hour"))
    return union.group_by("hour").agg("max(currtmp) AS maxtemp")


def recomputed(*documents: Path) -> list[tuple[int, float]]:
    """The query's answer, from the documents by XPath: group by hour, maximum."""
    found: dict[int, float] = {}
    for document in documents:
        for report in etree.parse(document).iterfind("tempdata"):
            hour, temperature = int(report.findtext("hour", "")), float(report.findtext("currtmp", ""))
            found[hour] = max(temperature, found.get(hour, temperature))
    return sorted(found.items())


def answered(out: Path) -> list[tuple[int, float]]:
    return sorted(t for tuples, _ in read_back(out) for t in tuples)


def read_back(out: Path) -> list[tuple[list[Any], list[Any]]]:
    """The output's slices, read without any of our parsers but the punctuations'."""
    slices = []
    for path in sorted(out.glob("slice-*.xml")):
        root = etree.parse(path).getroot()
        rows = [row for row in root if row.tag == "maxtemp"]
        said = [row for row in root if row.tag == f"{{{PUNCT_NS}}}maxtemp"]
        assert [*rows, *said] == list(root), "tuples come before punctuations"
        tuples = [(int(row.findtext("hour", "")), float(row.findtext("maxtemp", ""))) for row in rows]
        slices.append((tuples, [read_element(element, RESULT) for element in said]))
    return slices


def assert_grammatical(out: Path) -> None:
    items = [item for tuples, said in read_back(out) for item in [*tuples, *said]]
    assert oracle.first_offence(items) is None


@pytest.mark.parametrize(
    ("per_hour", "size"),
    [(0, "64m"), (1, "24k"), (2, "64m"), (15, "24k"), (30, "64m"), *([(0, "24k"), (2, "24k")] if AT_NIGHT else [])],
)
def test_the_answer_is_that_of_a_recomputation(session: Session, tmp_path: Path, per_hour: int, size: str) -> None:
    one, two = write_sensors(
        tmp_path, sensors=2, hours=20, punctuations_per_hour=per_hour, reports_per_hour=60, seed=per_hour
    )
    reports: list[dict[str, Any]] = []
    out = tmp_path / "out"
    summary = warehouse(session, one, two, maxBytesPerSlice=size).run(out, row_tag="maxtemp", on_slice=reports.append)
    assert answered(out) == recomputed(one, two)
    assert_grammatical(out)
    assert summary.closed
    assert (len(reports) == 1) == (size == "64m")
    assert all(operator["kept"] == 0 for operator in reports[-1]["operators"])


def test_an_hour_comes_out_in_the_slice_of_its_last_punctuation_and_is_not_kept_after_it(
    session: Session, tmp_path: Path
) -> None:
    feeds = [tmp_path / "sensor1", tmp_path / "sensor2"]
    arrivals = [  # one document of each feed is a slice
        ("<t h='0' c='70'/><t h='1' c='50'/>", "<t h='0' c='72'/>"),
        ("<p:t h='0'/>", "<t h='1' c='51'/>"),
        ("<t h='1' c='55'/>", "<p:t h='0'/><t h='2' c='1'/>"),
        ("<p:t h='[1,2]'/>", "<p:t h='1'/>"),
    ]
    for number, parts in enumerate(arrivals):
        for feed, part in zip(feeds, parts, strict=True):
            feed.mkdir(exist_ok=True)
            (feed / f"{number}.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'>{part}</s>")
    schema = "_h INT, _c DOUBLE"
    read = [
        xs.read(session, feed, schema=schema, name=feed.name, rowTag="t", schemes="_h", maxFilesPerSlice=1)
        for feed in feeds
    ]
    hours = [source.select("_h AS hour", "_c AS temp") for source in read]
    query = hours[0].union(hours[1]).group_by("hour").agg("max(temp) AS maxtemp")
    reports: list[dict[str, Any]] = []
    out = tmp_path / "out"
    query.run(out, row_tag="maxtemp", keep_open=True, on_slice=reports.append, as_written=True)
    assert [tuples for tuples, _ in read_back(out)] == [[(0, 72.0)], [(1, 55.0)]]
    assert [[str(p) for p in said] for _, said in read_back(out)] == [["<0, *>"], ["<1, *>"]]
    assert [path.name for path in sorted(out.glob("*.xml"))] == ["slice-000000002.xml", "slice-000000003.xml"]
    kept = {
        name: [o["kept"] for r in reports for o in r["operators"] if o["name"] == name]
        for name in ("union", "group_by")
    }
    assert kept == {"union": [3, 4, 4, 1], "group_by": [2, 2, 2, 1]}


def test_a_directory_that_fills_while_the_query_runs(session: Session, tmp_path: Path) -> None:
    one, two = write_sensors(tmp_path, sensors=2, hours=9, punctuations_per_hour=1, reports_per_hour=30, seed=5)
    whole = one.read_text().splitlines(keepends=True)
    head, items, tail = whole[:2], whole[2:-1], whole[-1]
    feed = tmp_path / "feed"
    feed.mkdir()
    parts = [items[i : i + 40] for i in range(0, len(items), 40)]

    def arrive(number: int) -> None:
        draft = feed / f".{number:03d}.xml"
        draft.write_text("".join([*head, *parts[number], tail]))
        draft.rename(feed / f"{number:03d}.xml")

    arrive(0)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    query = warehouse(session, feed, two).start(out, checkpoint, row_tag="maxtemp")
    try:
        query.processAllAvailable()
        early = answered(out)
        for number in range(1, len(parts)):
            arrive(number)
            if number % 3 == 0:
                query.processAllAvailable()
        query.processAllAvailable()
    finally:
        query.stop()
    assert 0 < len(early) < 9
    assert answered(out) == recomputed(one, two)
    assert_grammatical(out)
    again = warehouse(session, feed, two).run(out, checkpoint, row_tag="maxtemp")
    assert answered(out) == recomputed(one, two)
    assert again.closed
    assert warehouse(session, feed, two).run(out, checkpoint, row_tag="maxtemp").closed_before


def test_the_output_is_a_source_again(session: Session, tmp_path: Path) -> None:
    one, two = write_sensors(tmp_path, sensors=2, hours=6, punctuations_per_hour=1, reports_per_hour=60, seed=1)
    warehouse(session, one, two, maxBytesPerSlice="16k").run(tmp_path / "first", row_tag="maxtemp")
    again = xs.read(session, tmp_path / "first", schema="hour INT, maxtemp DOUBLE", rowTag="maxtemp", schemes="hour")
    again.select("hour", "maxtemp").run(tmp_path / "second", row_tag="maxtemp")
    assert answered(tmp_path / "second") == recomputed(one, two)
    assert_grammatical(tmp_path / "second")


def refused(session: Session, tmp_path: Path, content: str, **options: str) -> tuple[pytest.ExceptionInfo[Any], Path]:
    """What a query over bad content raises, the bad part in the second slice."""
    good = "<s xmlns:p='" + PUNCT_NS + "'>\n" + "<t><h>1</h><c>2</c></t>\n" * 300 + "<p:t><h>1</h></p:t>\n"
    document, out = tmp_path / "bad.xml", tmp_path / "out"
    document.write_text(good + content + "</s>")
    source = xs.read(
        session, document, schema="h INT, c DOUBLE", rowTag="t", schemes="h", maxBytesPerSlice="4k", **options
    )
    with pytest.raises((MalformedInput, UngrammaticalStream)) as error:
        source.group_by("h").agg("count(c) AS n").run(out)
    return error, out


@pytest.mark.parametrize(
    ("content", "says", "line"),
    [
        ("<t><h>2</h><c>3</t>\n", "", 303),
        ("<t><h>2</h><c>warm</c></t>\n", "warm", 303),
        ("\n<p:t><h>[5,</h></p:t>\n", "[5,", 304),
    ],
    ids=["not well-formed", "value", "punctuation"],
)
def test_bad_input_is_named_with_file_and_line_and_nothing_is_half_committed(
    session: Session, tmp_path: Path, content: str, says: str, line: int
) -> None:
    error, out = refused(session, tmp_path, content)
    assert isinstance(error.value, MalformedInput)
    assert says in error.value.what
    assert "bad.xml" in str(error.value)
    assert f"line {line}" in str(error.value)
    written = "".join(path.read_text() for path in sorted(out.glob("slice-*")))
    assert written.count("<row>") <= 1
    assert ("<n>300</n>" in written) == ("<row>" in written)
    assert not list(out.glob(".slice-*"))


def test_a_tuple_after_the_punctuation_of_an_earlier_slice_is_ungrammatical(session: Session, tmp_path: Path) -> None:
    error, _ = refused(session, tmp_path, "<t><h>7</h><c>3</c></t>" * 300 + "<t><h>1</h><c>3</c></t>\n")
    assert isinstance(error.value, UngrammaticalStream)
    assert "<1, *>" in str(error.value)


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_a_file_that_is_cut_off_inside_a_tuple_does_not_end_the_stream(
    session: Session, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "in.xml").write_text("<s><t><h>1</h></t><t><h>2")
    source = xs.read(session, tmp_path / "in.xml", schema="h INT", rowTag="t", schemes="h", mode=mode)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    with pytest.raises(MalformedInput, match="Premature end") as raised:
        source.group_by("h").agg("count(*) AS n").run(out, checkpoint)
    assert "run with --keep-open or --follow" in (raised.value.hint or "")
    assert not list(out.glob("slice-*.xml"))


def test_misspelt_and_undeclared_leaves_close_nothing(session: Session, tmp_path: Path) -> None:
    said = "<p:t><hh>1</hh></p:t><p:t><h>1</h><z>5</z></p:t><p:t/><p:t><h>2</h><z>*</z></p:t>"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'><t><h>1</h></t><t><h>2</h></t>{said}</s>")
    source = xs.read(session, tmp_path / "in", schema="h INT", rowTag="t", schemes="h", mode="PERMISSIVE")
    reports: list[dict[str, Any]] = []
    out = tmp_path / "out"
    source.group_by("h").agg("count(*) AS n").run(out, keep_open=True, on_slice=reports.append)
    (document,) = out.glob("slice-*.xml")
    assert etree.parse(document).xpath("//row/h/text()") == ["2"]
    assert [r["operators"][-1]["kept"] for r in reports] == [1]


def test_an_output_or_a_checkpoint_of_another_query_is_not_touched(session: Session, tmp_path: Path) -> None:
    one, two = write_sensors(tmp_path, sensors=2, hours=2, punctuations_per_hour=1, reports_per_hour=60, seed=1)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    query = warehouse(session, one, two)
    query.run(out, checkpoint, row_tag="maxtemp")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(StateError):
        query.run(out, row_tag="maxtemp")
    with pytest.raises(StateError):
        query.where("hour > 1").run(tmp_path / "other", checkpoint)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    query.run(out, row_tag="maxtemp", overwrite=True)
    shutil.rmtree(out)


def test_as_written_union_is_run_where_else_nothing_could_tell_its_work(session: Session, tmp_path: Path) -> None:
    one, two = write_sensors(tmp_path, sensors=2, hours=2, punctuations_per_hour=1, reports_per_hour=60, seed=1)
    query = warehouse(session, one, two)
    assert "union: " in query.explain(as_written=True)
    assert "union: " not in query.explain()
    reports: list[dict[str, Any]] = []
    checkpoint = tmp_path / "checkpoint"
    query.run(tmp_path / "written", checkpoint, row_tag="maxtemp", on_slice=reports.append, as_written=True)
    insert = query.insert_into(tmp_path / "one of several", "maxtemp")
    xs.run([insert], on_slice=reports.append, as_written=True)
    query.run(tmp_path / "out", row_tag="maxtemp", on_slice=reports.append)
    assert ["union" in {o["name"] for o in report["operators"]} for report in reports] == [True, True, False]
    answers = [answered(tmp_path / out) for out in ("written", "one of several", "out")]
    assert answers == [recomputed(one, two)] * 3
    with pytest.raises(StateError):
        query.run(tmp_path / "other", checkpoint)


def test_metrics_are_one_json_object_a_slice_and_not_written_twice(session: Session, tmp_path: Path) -> None:
    one, two = write_sensors(tmp_path, sensors=2, hours=6, punctuations_per_hour=1, reports_per_hour=60, seed=1)
    metrics, checkpoint = tmp_path / "metrics.jsonl", tmp_path / "checkpoint"
    query = warehouse(session, one, two, maxBytesPerSlice="16k")
    query.run(tmp_path / "out", checkpoint, row_tag="maxtemp", metrics=metrics)
    query.run(tmp_path / "out", checkpoint, row_tag="maxtemp", metrics=metrics)
    slices = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [s["slice"] for s in slices] == list(range(len(slices)))
    assert sum(s["items_in"] for s in slices) == 2 * (6 * 60 + 6 + 1)
    by_name = {o["name"]: o for o in slices[-1]["operators"]}
    assert {"merge", "group_by"} <= by_name.keys()
    assert by_name["group_by"].keys() >= {
        "tuples_in", "tuples_out", "kept", "purged", "punctuations_in", "punctuations_out", "punctuations_held",
    }  # fmt: skip
    assert sum(o["tuples_out"] for s in slices for o in s["operators"] if o["name"] == "group_by") == 6
