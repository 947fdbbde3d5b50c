"""What a record writes as JSON is what it reads, in this version and another one."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from datetime import UTC, datetime

import pytest

from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT, DeadLetter, LogRecord, PartRecord, SegmentRecord
from xmlstream.runtime.checkpoint.commit_log import Commit, Remote
from xmlstream.runtime.checkpoint.slice_report import Activity, OperatorReport, SliceReport
from xmlstream.runtime.silent_schemes import Silence, SourceRecord
from xmlstream.sink.sink import Draft
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions

NOW = datetime(2026, 1, 1, 12, 30, 0, 7, tzinfo=UTC)
REMOVED = SegmentRecord("r.parquet", 1, "{}", "9-a")
LOG = LogRecord(3, (PartRecord("s.parquet", 4, "{}", "7-b", (REMOVED,), 1),), ("<1>",), (2, 5))
STATE = OperatorRecord(
    CHECKPOINT_FORMAT, {"sent": ["<1>", ["<2>", {"for": "PT1H"}]]}, {"groups": LOG}, {"at": [1, None]}
)
SEEN = SourceRecord(bytes=9, read=frozenset("ab"), said=Counter(a=2), silences={"a": Silence(NOW, 3, since=NOW)})
COMMIT = Commit(
    7,
    {"s": {"document": 0}},
    NOW,
    True,
    {"group_by": STATE},
    (None, Draft("slice-000000007.xml", "3-c", (("part.xml", "4-d"),))),
    SliceReport(7, 0.5, 3, 1, (OperatorReport("group_by", 1, 1, 1, 0, 0, 0, 0),), findings=({"kind": "stray"},)),
    {"s": SEEN},
    {"s": Activity((7, NOW))},
    remote=Remote("4e1f", (6, 7), {"k": ("there", "1-e")}, {"log": ((0, 9, "there", "9-f"),)}),
)


@pytest.mark.parametrize(
    "record", [COMMIT, Commit(0), LOG, LogRecord(), STATE, SEEN], ids=lambda each: type(each).__name__
)
def test_what_was_written_is_read(record: Commit) -> None:
    assert type(record).from_json(json.loads(json.dumps(record.json()))) == record


def test_names_of_another_version_are_passed_over_and_a_missing_one_is_its_default() -> None:
    known = COMMIT.json() | {"later": 1}
    del known["last_activity"]
    assert Commit.from_json(known).last_activity == {}
    del known["slice"]
    with pytest.raises(TypeError, match="slice"):
        Commit.from_json(known)


def test_what_is_empty_is_left_out_where_a_record_says_so_and_zero_is_not_empty() -> None:
    assert "remote" not in Commit(0).json()
    assert "requests" not in COMMIT.report.json()
    written = json.loads(DeadLetter(position=0, kind="tuple", reason="it is late", raw={"at": NOW}).line_of("bid"))
    at = str(NOW)
    assert written == {"source": "bid", "_position": 0, "kind": "tuple", "reason": "it is late", "raw": {"at": at}}


def test_a_reading_comes_to_another_process_as_it_is() -> None:
    given = {"path": "a.xml", "rowTag": "bid", "schema": "id INT, price INT NOT NULL", "schemes": "id"}
    other = Reading.of(SourceOptions.parse({**given, "rowTag": "person"}), name="person")
    reading = Reading.of(SourceOptions.parse(given), name="bid", stage="stage", beside=(other,))
    assert pickle.loads(pickle.dumps(reading)) == reading
    assert [each.stage for each in reading.staging("1").streams] == ["1", "1"]
    assert reading.unsplit == {b"bid", b"person"}
