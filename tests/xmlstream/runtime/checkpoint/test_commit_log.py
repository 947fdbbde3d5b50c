from __future__ import annotations

from pathlib import Path

import pytest

from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.records import LogRecord
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog, made_whole


def record(number: int, added: str, *, whole: bool = False) -> Commit:
    merge = OperatorRecord(sets={"sent": [added]}, kept={"groups": LogRecord(number)})
    return Commit(number, whole=whole, operators={"merge": merge})


def test_before_the_first_commit_there_is_nothing(tmp_path: Path) -> None:
    assert made_whole(CommitLog(tmp_path / "commits").records()) is None


def test_sets_are_whole_again_from_what_each_slice_added_and_the_rest_is_the_last_slices(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    log.create(record(0, "<1>", whole=True))
    log.create(record(1, "<2>"))
    log.create(record(2, "<3>"))
    latest = made_whole(CommitLog(tmp_path).records())
    assert latest is not None
    assert latest.slice == 2
    assert latest.state("merge") == OperatorRecord(sets={"sent": ["<1>", "<2>", "<3>"]}, kept={"groups": LogRecord(2)})


def test_a_whole_record_makes_those_before_it_superfluous(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    log.create(record(0, "<1>", whole=True))
    log.create(record(1, "<[1,2]>", whole=True))
    assert [path.name for path in tmp_path.iterdir()] == ["000000001.json"]
    latest = made_whole(log.records())
    assert latest is not None
    assert latest.state("merge").sets == {"sent": ["<[1,2]>"]}


def test_a_record_that_was_not_put_in_place_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = CommitLog(tmp_path)
    log.create(record(0, "<1>", whole=True))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        log.create(record(1, "<2>"))
    latest = made_whole(log.records())
    assert latest is not None
    assert latest.slice == 0
