"""Several sources read by one streaming reader: each gets, slice by slice, what it would have had alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from lxml import etree
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

import xmlstream as xs
from punct_ns.errors import InputError, StateError, UsageError
from sources.xml.options.source import SourceOptions
from sources.xml.spark import micro_batches
from sources.xml.spark.error_transport import original_error
from sources.xml.spark.micro_batches import FIRST_SLICE, SliceGrowth
from sources.xml.spark.multi_source_reader import MultiSourceReader, MultiSourceXml, multi_source_options
from sources.xml.spark.staged_rows import STAGED, StagedRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = b"<r xmlns:p='http://www.cse.ogi.edu/dot/niagara/punct'>"
TYPES = {"STRING": StringType(), "BIGINT": LongType(), "BINARY": BinaryType()}

Json = dict[str, Any]


def rows(first: int, last: int, name: str = "row") -> bytes:
    return b"".join(f"<{name}><h>{number}</h></{name}>\n".encode() for number in range(first, last))


def source(path: Path, name: str, **options: str) -> SourceOptions:
    stage = str(path.parent / "stage")
    given = {"path": str(path), "rowTag": "row", "schema": "h INT", "stage": stage, "source": name, **options}
    return SourceOptions.parse({"follow": "false", "close": "true", **given})


def reader(*sources: SourceOptions, largest_slice: int = 0) -> MultiSourceReader:
    """A reader as Spark has it made, in a process that knows nothing yet."""
    schema = StructType()
    for column in STAGED.split(", "):
        name, type_ = column.split()
        schema = schema.add(name, TYPES[type_])
    made = MultiSourceXml(multi_source_options(sources, largest_slice)).streamReader(schema)
    assert isinstance(made, MultiSourceReader)
    return made


def again(offset: Json) -> Json:
    """The offset as Spark hands it back from its log."""
    found: Json = json.loads(json.dumps(offset))
    return found


def slices(of: MultiSourceReader, start: Json | None = None) -> Iterator[tuple[Json, Json, Sequence[Any]]]:
    """From an offset to the end: start, end and tasks of each slice."""
    at = again(of.initialOffset() if start is None else start)
    while (end := again(of.latestOffset(at, of.getDefaultReadLimit()))) != at:
        yield at, end, of.partitions(at, end)
        at = end
    assert not of.partitions(at, at)


def read(of: MultiSourceReader, tasks: Sequence[Any]) -> dict[str, list[int | str]]:
    """By its source's name what the tasks stage: the values of tuples in order, and `*` for what is all wildcard."""
    found: dict[str, list[int | str]] = {}
    for task in tasks:
        for batch in of.read(task):
            for staged in map(StagedRange.of, batch.to_pylist()):
                values = found.setdefault(staged.source, [])
                if staged.path is not None:
                    values += [row["h"] for row in pq.read_table(staged.path).to_pylist()]
                values += ["*"] * (staged.punctuations.num_rows if staged.punctuations is not None else 0)
    return found


def test_each_goes_to_its_own_end_by_its_own_limit(tmp_path: Path) -> None:
    (tmp_path / "long.xml").write_bytes(ROOT + rows(0, 3000) + b"</r>")
    (tmp_path / "short.xml").write_bytes(ROOT + rows(0, 300, "line") + b"</r>")
    long = source(tmp_path / "long.xml", "long", maxBytesPerSlice="8k", maxBytesPerPartition="3k")
    short = source(tmp_path / "short.xml", "short", rowTag="line", maxBytesPerSlice="6k")
    both = reader(long, short)
    found = [(end, tasks, read(both, tasks)) for _, end, tasks in slices(both)]
    assert [value for _, _, values in found for value in values["long"]] == [*range(3000), "*"]
    assert [value for _, _, values in found for value in values.get("short", [])] == [*range(300), "*"]
    # What one alone takes, it takes beside another: 20 bytes or so a row.
    assert [end["long"] for end, _, _ in found] == [end["long"] for _, end, _ in slices(reader(long))]
    assert [end["short"] for _, end, _ in slices(reader(short))] == [end["short"] for end, _, _ in found][:2]
    # The short one has ended after two slices, and is not in those that follow.
    assert len(found) > 6
    assert ["short" in values for _, _, values in found] == [True, True] + [False] * (len(found) - 2)
    assert max(len(tasks) for _, tasks, _ in found) > 2


def test_slices_grow_while_more_is_left_until_one_is_long() -> None:
    now = [0.0]
    growth = SliceGrowth([None, 5 << 20], 40 * FIRST_SLICE, lambda: now[0])

    def taken(seconds: float, *waiting: int) -> list[int]:
        found = []
        for each in waiting:
            found.append(growth.next([each * FIRST_SLICE, 900 * FIRST_SLICE]))
            now[0] += seconds
        assert {bytes_ for _, bytes_ in found} == {5 << 20}, "that of a source whose limit is given"
        return [bytes_ // FIRST_SLICE for bytes_, _ in found]

    assert taken(1, 100, 99, 97, 93, 85, 69, 37, 0) == [1, 2, 4, 8, 16, 32, 40, 1]
    assert taken(1, 0, 1, 1, 0, 1) == [1] * 5, "it has caught up"
    assert taken(6, 900, 899, 897) == [1, 2, 4]
    assert taken(11, 893, 885, 877, 869) == [8, 8, 8, 8]
    assert taken(1, 3, 3) == [8, 1], "what is left of a backlog, and what comes behind it"


@pytest.mark.parametrize(("limits", "largest"), [([None], 0), ([None, None], 3 * FIRST_SLICE), ([], 9)])
def test_slices_that_memory_does_not_let_grow_are_as_the_first(limits: list[None], largest: int) -> None:
    growth = SliceGrowth(limits, largest, lambda: 0.0)
    for _ in range(4):
        assert max(growth.next([900 * FIRST_SLICE] * len(limits)), default=0) in {0, FIRST_SLICE, largest // 2}


def test_a_reader_takes_more_in_the_slices_behind_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro_batches, "FIRST_SLICE", 4 << 10)
    (tmp_path / "free.xml").write_bytes(ROOT + rows(0, 3000) + b"</r>")
    (tmp_path / "bound.xml").write_bytes(ROOT + rows(0, 900) + b"</r>")
    sources = source(tmp_path / "free.xml", "free"), source(tmp_path / "bound.xml", "bound", maxBytesPerSlice="6k")
    both = reader(*sources, largest_slice=20 << 10)
    both._growth._clock = lambda: 0.0
    found = [(at, end, read(both, tasks)) for at, end, tasks in slices(both)]
    assert [value for _, _, values in found for value in values.get("free", [])] == [*range(3000), "*"]
    assert [value for _, _, values in found for value in values.get("bound", [])] == [*range(900), "*"]
    took = [round((end["free"]["byte"] - at["free"]["byte"]) / 1024) for at, end, _ in found]
    assert took[:3] == [4, 8, 16]
    assert took[3] == 20
    assert all(end["bound"]["byte"] - at["bound"]["byte"] <= 7 << 10 for at, end, _ in found)


def test_a_slice_planned_before_a_restart_has_the_same_tasks_after_it(tmp_path: Path) -> None:
    (tmp_path / "one.xml").write_bytes(ROOT + rows(0, 900) + b"</r>")
    for number in (2, 1):
        (tmp_path / "many").mkdir(exist_ok=True)
        (tmp_path / "many" / f"{number}.xml").write_bytes(ROOT + rows(0, 150 * number) + b"</r>")
    options = [
        source(tmp_path / "one.xml", "one", maxBytesPerSlice="5k"),
        source(tmp_path / "many", "many", maxBytesPerSlice="4k", documentLog=str(tmp_path / "log")),
    ]
    planned = list(slices(reader(*options)))
    assert len(planned) > 3
    # A document that comes later has its place behind the others, whatever its name.
    (tmp_path / "many" / "0.xml").write_bytes(ROOT + rows(0, 9) + b"</r>")
    for start, end, tasks in planned:
        assert reader(*options).partitions(start, end) == tasks
    going_on = reader(*options)
    tasks = [*(planned[0][2]), *(task for _, _, more in slices(going_on, planned[0][1]) for task in more)]
    assert read(going_on, tasks) == {"one": [*range(900), "*"], "many": [*range(150), *range(300), *range(9), "*"]}


def test_what_comes_once_all_is_settled_waits_for_another_run(tmp_path: Path) -> None:
    paths = [tmp_path / "a.xml", tmp_path / "b.xml"]
    for path in paths:
        path.write_bytes(ROOT + rows(0, 50))
    options = [source(path, path.stem, keepOpen="true", close="false") for path in paths]
    first = reader(*options)
    first.prepareForTriggerAvailableNow()
    paths[1].write_bytes(ROOT + rows(0, 80))
    ((start, end, tasks),) = slices(first)
    assert read(first, tasks) == {"a": [*range(50)], "b": [*range(50)]}
    second = reader(*options)
    ((_, _, more),) = slices(second, end)
    assert read(second, more) == {"b": [*range(50, 80)]}
    # A slice that takes all there is.
    everything = again(second.latestOffset(start, ReadAllAvailable()))
    assert read(second, second.partitions(start, everything)) == {"a": [*range(50)], "b": [*range(80)]}


def test_one_that_grows_is_followed_while_another_is_still(tmp_path: Path) -> None:
    paths = [tmp_path / "still.xml", tmp_path / "growing.xml"]
    for path in paths:
        path.write_bytes(ROOT + rows(0, 3) + b"<row><h")
    following = reader(*(source(path, path.stem, follow="true", close="false") for path in paths))
    ((_, end, tasks),) = slices(following)
    assert read(following, tasks) == {"still": [0, 1, 2], "growing": [0, 1, 2]}
    paths[1].write_bytes(ROOT + rows(0, 5) + b"</r>")
    ((_, end, tasks),) = slices(following, end)
    assert read(following, tasks) == {"growing": [3, 4, "*"]}
    assert (end["growing"]["closed"], end["still"]["closed"]) == (True, False)


def test_an_error_tells_of_which_source_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(ROOT + rows(0, 3) + b"</r>")
    options = [source(tmp_path / "a.xml", "a"), source(tmp_path / "gone.xml", "b")]
    with pytest.raises(RuntimeError) as told:
        next(slices(reader(*options)))
    error = original_error(told.value)
    assert isinstance(error, InputError)
    assert "gone.xml" in str(error)


def test_offsets_of_other_sources_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(ROOT + rows(0, 3) + b"</r>")
    a, b = source(tmp_path / "a.xml", "a"), source(tmp_path / "a.xml", "b")
    before_there_were_names = reader(a).initialOffset()["a"]
    for offset in (
        before_there_were_names,
        reader(a).initialOffset(),
        reader(a, b, a.replace(source="c")).initialOffset(),
    ):
        with pytest.raises(RuntimeError) as told:
            reader(a, b).latestOffset(offset, ReadAllAvailable())
        assert isinstance(original_error(told.value), StateError)


def test_sources_without_names_of_their_own_are_refused(tmp_path: Path) -> None:
    a = source(tmp_path / "a.xml", "a")
    for given in (multi_source_options([a, a]), {}):
        with pytest.raises(RuntimeError) as told:
            MultiSourceXml(given).streamReader(StructType())
        assert isinstance(original_error(told.value), UsageError)


QUERY = """
CREATE TABLE long (h INT) USING punctuated_xml
OPTIONS (path '${IN}/long.xml', rowTag 'row', schemes 'h', maxBytesPerSlice '6k');
CREATE TABLE short (h INT) USING punctuated_xml
OPTIONS (path '${IN}/short.xml', rowTag 'row', schemes 'h', maxBytesPerSlice '4k');
SELECT h, count(*) AS n FROM (SELECT h FROM long UNION ALL SELECT h FROM short) GROUP BY h;
"""


def test_a_clock_ticks_without_input_while_something_waits_and_never_before_all_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [datetime(2026, 3, 1, tzinfo=UTC)]

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # a moment, and no clock
            return now[0]

    monkeypatch.setattr(micro_batches, "datetime", Clock)
    note = tmp_path / "clock"
    given = {"clock": str(note), "follow": "true", "close": "false", "maxFilesPerSlice": "1"}
    (tmp_path / "in").mkdir()
    (tmp_path / "still.xml").write_bytes(ROOT + rows(0, 1))
    sources = [
        source(tmp_path / "in", "a", documentLog=str(tmp_path / "log"), **given),
        source(tmp_path / "still.xml", "b", **given),
    ]
    for name in ("0.xml", "1.xml"):
        (tmp_path / "in" / name).write_bytes(ROOT + rows(0, 1) + b"</r>")
    of = reader(*sources)
    at = of.initialOffset()

    def advanced(seconds: int) -> list[Any]:
        """How many tasks there are, and what the clocks show, in seconds; nothing where there is no slice."""
        nonlocal at
        now[0] += timedelta(seconds=seconds)
        end = again(of.latestOffset(at, of.getDefaultReadLimit()))
        tasks, shown = of.partitions(at, end), [at.get("clock") for at in end.values()]
        if end == at:
            return []
        at = end
        return [len(tasks), *(text and datetime.fromisoformat(text).second for text in shown)]

    assert advanced(1) == [2, None, 1], "one more document is there"
    assert advanced(1) == [1, 2, 2]
    assert advanced(9) == [], "nothing waits"
    note.write_text("1.0", encoding="utf-8")
    assert advanced(0) == [0, 11, 11]
    assert advanced(0) == [], "not so soon"
    assert advanced(1) == [0, 12, 12]
    (tmp_path / "still.xml").write_bytes(ROOT + rows(0, 2) + b"</r>")
    assert advanced(0) == [1, 12, 12]
    assert at["b"]["closed"]
    of = reader(*sources)
    assert advanced(3) == [0, 15, 15], "as after a restart"
    note.write_text("0.0", encoding="utf-8")
    assert advanced(1) == [0, 16, 16], "at the trigger"
    note.unlink()
    assert advanced(60) == []


@pytest.mark.spark
def test_a_query_over_unequal_sources_goes_on_in_the_middle_and_has_one_reader(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "long.xml").write_bytes(ROOT + rows(0, 600) + b"</r>")
    (tmp_path / "short.xml").write_bytes(ROOT + rows(300, 500) + b"</r>")
    query = xs.from_sql(spark, QUERY, {"IN": str(tmp_path)})
    seen: list[int] = []

    def twice(report: dict[str, Any]) -> None:
        seen.append(report["items_in"])
        if len(seen) == 2:
            raise RuntimeError("stopped after its second slice")

    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    with pytest.raises(RuntimeError, match="second slice"):
        query.run(out, checkpoint, on_slice=twice)
    summary = query.run(out, checkpoint, on_slice=lambda report: seen.append(report["items_in"]))
    assert summary.closed
    assert sum(seen) == 600 + 200 + 2
    assert len(seen) == 3
    roots = [etree.parse(path).getroot() for path in out.glob("slice-*.xml")]
    found = [(int(row.findtext("h", "")), int(row.findtext("n", ""))) for root in roots for row in root.iterfind("row")]
    assert sorted(found) == [(h, 1 + (300 <= h < 500)) for h in range(600)]
    # A line each for the version, for Spark's own, and for the reader.
    offsets = (checkpoint / "spark" / "offsets" / "0").read_text(encoding="utf-8").splitlines()
    assert len(offsets) == 3
    assert {name: end["byte"] > 0 for name, end in json.loads(offsets[2]).items()} == {"long": True, "short": True}
