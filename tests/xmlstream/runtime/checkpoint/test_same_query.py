"""A run that is told something else than the one before on its checkpoint says so, and touches nothing."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.sealed_files import seal, unseal
from xmlstream.punct_ns.errors import StateError, UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session


def night(directory: Path, number: int, text: str = "") -> None:
    directory.mkdir(exist_ok=True)
    rows = f"<t><a>{number}</a><b>1</b></t><p:t><a>{number}</a><b>*</b></p:t>"
    (directory / f"{number}.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'>{rows}{text}</s>")


def counted(
    session: Session | InProcessSession, path: str | Path, schema: str = "a INT, b INT", **options: Any
) -> xs.Query:
    read = xs.read(session, path, schema, name="s", rowTag="t", schemes="a", **options)
    return read.group_by("a").agg("count(*) AS n")


def answered(out: Path) -> list[str]:
    return sorted(re.findall(r"<a>(\d+)</a><n>\d", "".join(path.read_text() for path in out.glob("slice-*.xml"))))


def test_a_new_checkpoint_may_be_called_moved(in_process: InProcessSession, tmp_path: Path) -> None:
    night(tmp_path / "in", 1)
    counted(in_process, tmp_path / "in").run(tmp_path / "out", tmp_path / "state", moved=True)
    assert answered(tmp_path / "out") == ["1"]


def test_a_tuple_that_broke_an_order_can_be_diverted_by_the_next_run(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    def run(ungrammatical: str) -> None:
        options = {"rowTag": "t", "punctuate": "order of a", "ungrammatical": ungrammatical}
        read = xs.read(in_process, tmp_path / "in", "a INT, b INT", name="s", **options)
        query = read.group_by("a").agg("count(*) AS n")
        query.run(tmp_path / "out", tmp_path / "state", keep_open=True)

    night(tmp_path / "in", 2)
    run("fail")
    night(tmp_path / "in", 3, "<t><a>1</a><b>1</b></t>")
    with pytest.raises(xs.UngrammaticalStream):
        run("fail")
    run("divert")
    assert answered(tmp_path / "out") == ["2", "3"]
    (line,) = (tmp_path / "out" / "_dead_letters" / "punctuate-000000001.jsonl").read_text().splitlines()
    assert json.loads(line)["raw"] == "<t><a>1</a><b>1</b></t>"


def test_a_checkpoint_says_what_is_otherwise_and_goes_on_with_what_was_moved(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nights, out, checkpoint = tmp_path / "nights", tmp_path / "out", tmp_path / "checkpoint"
    night(nights, 1)
    counted(session, "./nights").run("out", "checkpoint", keep_open=True)

    def refusal(query: xs.Query, to: Path = out, **options: Any) -> str:
        with pytest.raises(StateError) as told:
            query.run(to, checkpoint, keep_open=True, **options)
        assert told.value.hint
        return told.value.what

    asked = counted(session, nights)
    assert "the option nullValue of s is not given, not '-'" in refusal(counted(session, nights, nullValue="-"))
    assert "the column b of s is INT, not BIGINT" in refusal(counted(session, nights, "a INT, b BIGINT"))
    assert "its group_by is" in refusal(xs.from_sql(session, _sql(nights, "max(b)")))
    assert "the row tag in" in refusal(asked, row_tag="x")
    assert f"writes to {tmp_path / 'other'}, before to {out}" in refusal(asked, tmp_path / "other")
    assert not (tmp_path / "other").exists()
    shutil.copytree(nights, tmp_path / "moved")
    assert f"reads s from {tmp_path / 'moved'}, before from {nights}" in refusal(counted(session, "moved"))
    (document,) = out.glob("slice-*.xml")
    text = document.read_bytes()
    document.unlink()
    assert "1 document that this query has published is gone" in refusal(asked)
    document.write_bytes(text.replace(b"<n>1</n>", b"<n>7</n>"))
    assert "is not as it was published" in refusal(asked)
    shutil.rmtree(out)
    assert "1 document that this query has published is gone" in refusal(asked)
    assert not out.exists()
    out.mkdir()
    document.write_bytes(text)

    night(nights, 2)
    (tmp_path / "link").symlink_to(out)
    asked.run(tmp_path / "link", checkpoint, keep_open=True)
    assert answered(out) == ["1", "2"]
    for path in (nights, out):
        shutil.move(path, tmp_path / f"elsewhere-{path.name}")
    night(tmp_path / "elsewhere-nights", 3)
    moved = counted(session, tmp_path / "elsewhere-nights")
    moved.run(tmp_path / "elsewhere-out", checkpoint, keep_open=True, moved=True)
    assert answered(tmp_path / "elsewhere-out") == ["1", "2", "3"]
    next((tmp_path / "elsewhere-out").glob("slice-*.xml")).unlink()
    moved.run(tmp_path / "elsewhere-out", checkpoint, keep_open=True, moved=True)
    moved.run(tmp_path / "elsewhere-out", checkpoint, keep_open=True)
    assert len(answered(tmp_path / "elsewhere-out")) == 2

    record = checkpoint / "query.json"
    seal(record, {**unseal(record), "format": 1})
    assert "has format 1, and this version of xmlstream reads format 4" in refusal(moved)


def test_state_under_another_name_is_refused_and_not_read_as_empty(session: Session, tmp_path: Path) -> None:
    """As where another version calls a log otherwise."""
    night(tmp_path / "nights", 1, "<t><a>7</a><b>1</b></t>")
    query = counted(session, tmp_path / "nights")
    query.run(tmp_path / "out", tmp_path / "checkpoint", keep_open=True)
    (commit,) = (tmp_path / "checkpoint" / "commits").glob("*.json")
    record = unseal(commit)
    kept = record["operators"]["group_by"]["kept"]
    assert kept["groups"]["rows"] == 1
    kept["open"] = kept.pop("groups")
    seal(commit, record)
    with pytest.raises(
        StateError, match="state of group_by: the recorded state has the logs open; in this version"
    ) as told:
        query.run(tmp_path / "out", tmp_path / "checkpoint", keep_open=True)
    assert str(tmp_path / "checkpoint") in told.value.what
    assert told.value.hint
    kept["groups"] = kept.pop("open")
    record["operators"]["s"]["format"] -= 1
    seal(commit, record)
    older = r"the checkpoint .*, state of s: the recorded state has format \d, and this version of xmlstream reads \d"
    with pytest.raises(StateError, match=older):
        query.run(tmp_path / "out", tmp_path / "checkpoint", keep_open=True)
    record["operators"]["s"]["format"] += 1
    seal(commit, record)
    query.run(tmp_path / "out", tmp_path / "checkpoint")
    assert answered(tmp_path / "out") == ["1", "7"]


def _sql(path: Path, aggregate: str) -> str:
    return (
        f"CREATE TABLE s (a INT, b INT) USING punctuated_xml OPTIONS (path '{path}', rowTag 't', schemes 'a');"
        f"SELECT a, {aggregate} AS n FROM s GROUP BY a"
    )


def test_results_do_not_change_places_nor_meet_in_one(session: Session, tmp_path: Path) -> None:
    night(tmp_path / "nights", 1)
    counts = counted(session, tmp_path / "nights")
    highest = xs.from_sql(session, _sql(tmp_path / "nights", "max(b)"))
    one, two = tmp_path / "one", tmp_path / "two"
    (tmp_path / "link").symlink_to(one)
    with pytest.raises(UsageError, match="two results go to"):
        xs.run([counts.insert_into(one), highest.insert_into(tmp_path / "link")])
    xs.run([counts.insert_into(one), highest.insert_into(two)], tmp_path / "checkpoint")
    with pytest.raises(StateError, match=r"writes to .*two, before to .*one; writes to .*one, before to .*two"):
        xs.run([counts.insert_into(two), highest.insert_into(one)], tmp_path / "checkpoint")


def test_a_second_query_on_what_is_in_use_is_refused_until_the_first_has_stopped(
    session: Session, tmp_path: Path
) -> None:
    night(tmp_path / "nights", 1)
    asked = counted(session, tmp_path / "nights")
    handle = asked.start(tmp_path / "out", tmp_path / "checkpoint")
    try:
        with pytest.raises(StateError, match="checkpoint is in use by another query of this process"):
            asked.run(tmp_path / "other", tmp_path / "checkpoint")
        handle.processAllAvailable()
        with pytest.raises(StateError, match="out is in use"):
            asked.run(tmp_path / "out", overwrite=True)
    finally:
        handle.stop()
    assert answered(tmp_path / "out") == ["1"]
    night(tmp_path / "nights", 2)
    assert asked.run(tmp_path / "out", tmp_path / "checkpoint").closed
    assert answered(tmp_path / "out") == ["1", "2"]
    for _ in range(2):
        with pytest.raises(StateError, match="was closed"):
            asked.start(tmp_path / "out", tmp_path / "checkpoint")
