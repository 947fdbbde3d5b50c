"""Several sources read by one reader: each gets, slice by slice, what it would have had alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from xmlstream.operators.storage.shared_files import rows_of
from xmlstream.punct_ns.errors import InputError, StateError, UsageError
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices import micro_batches
from xmlstream.sources.xml.slices.micro_batches import FIRST_SLICE, SliceGrowth
from xmlstream.sources.xml.slices.sources_reader import SourcesReader
from xmlstream.sources.xml.slices.stage_writer import stage

ROOT = b"<r xmlns:p='http://www.cse.ogi.edu/dot/niagara/punct'>"
Json = Mapping[str, Any]


def rows(first: int, last: int, name: str = "row") -> bytes:
    return b"".join(f"<{name}><h>{number}</h></{name}>\n".encode() for number in range(first, last))


def source(path: Path, name: str, clock: str | None = None, **options: str) -> Reading:
    given = {"path": str(path), "rowTag": "row", "schema": "h INT", **options}
    declared = SourceOptions.parse({"follow": "false", "close": "true", **given})
    return Reading.of(declared, stage=str(path.parent / "stage"), name=name, clock=clock)


def reader(*sources: Reading, largest_slice: int = 0) -> SourcesReader:
    """A reader as it is made in a process that knows nothing yet."""
    return SourcesReader(sources, largest_slice)


def again(offset: Json) -> Json:
    """The offset as it comes back from a log."""
    found: Json = json.loads(json.dumps(offset))
    return found


def slices(of: SourcesReader, start: Json | None = None) -> Iterator[tuple[Json, Json, Sequence[Any]]]:
    """From an offset to the end: start, end and tasks of each slice."""
    at = again(of.initial() if start is None else start)
    while (end := again(of.end(at))) != at:
        yield at, end, of.tasks(at, end)
        at = end
    assert not of.tasks(at, at)


def read(of: SourcesReader, tasks: Sequence[Any]) -> dict[str, list[int | str]]:
    """By its source's name what the tasks stage: the values of tuples in order, and `*` for what is all wildcard."""
    found: dict[str, list[int | str]] = {}
    for task in tasks:
        for staged in stage(task.ranges, of.sources[task.reader]):
            values = found.setdefault(staged.source, [])
            if staged.path is not None:
                values += [row["h"] for row in rows_of(staged.path).to_pylist()]
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
    both.growth._clock = lambda: 0.0
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
        assert reader(*options).tasks(start, end) == tasks
    going_on = reader(*options)
    tasks = [*(planned[0][2]), *(task for _, _, more in slices(going_on, planned[0][1]) for task in more)]
    assert read(going_on, tasks) == {"one": [*range(900), "*"], "many": [*range(150), *range(300), *range(9), "*"]}


def test_what_comes_once_all_is_settled_waits_for_another_run(tmp_path: Path) -> None:
    paths = [tmp_path / "a.xml", tmp_path / "b.xml"]
    for path in paths:
        path.write_bytes(ROOT + rows(0, 50))
    options = [source(path, path.stem, keepOpen="true", close="false") for path in paths]
    first = reader(*options)
    first.settle()
    paths[1].write_bytes(ROOT + rows(0, 80))
    ((start, end, tasks),) = slices(first)
    assert read(first, tasks) == {"a": [*range(50)], "b": [*range(50)]}
    second = reader(*options)
    ((_, _, more),) = slices(second, end)
    assert read(second, more) == {"b": [*range(50, 80)]}
    # A slice that takes all there is.
    everything = again(second.end(start, whole=True))
    assert read(second, second.tasks(start, everything)) == {"a": [*range(50)], "b": [*range(80)]}


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
    with pytest.raises(InputError, match=r"gone\.xml"):
        next(slices(SourcesReader(options)))


def test_offsets_of_other_sources_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(ROOT + rows(0, 3) + b"</r>")
    a, b = source(tmp_path / "a.xml", "a"), source(tmp_path / "a.xml", "b")
    before_there_were_names = reader(a).initial()["a"]
    for offset in (before_there_were_names, reader(a).initial(), reader(a, b, replace(a, name="c")).initial()):
        with pytest.raises(StateError):
            reader(a, b).end(offset, whole=True)


def test_sources_without_names_of_their_own_are_refused(tmp_path: Path) -> None:
    a = source(tmp_path / "a.xml", "a")
    with pytest.raises(UsageError, match="one name"):
        SourcesReader([a, a])


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
    at = of.initial()

    def advanced(seconds: int) -> list[Any]:
        """How many tasks there are, and what the clocks show, in seconds; nothing where there is no slice."""
        nonlocal at
        now[0] += timedelta(seconds=seconds)
        end = again(of.end(at))
        tasks, shown = of.tasks(at, end), [at.get("clock") for at in end.values()]
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


def test_slices_are_planned_and_staged_without_spark() -> None:
    modules = "sources_reader, stage_writer, staging"
    program = f"import sys\nfrom xmlstream.sources.xml.slices import {modules}\n"
    program += "assert not {'pyspark', 'py4j'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
