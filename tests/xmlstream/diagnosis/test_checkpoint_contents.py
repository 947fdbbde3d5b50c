"""What is in a checkpoint is shown without writing; what a start refuses, a verification finds, and names."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import xmlstream as xs
from tests.harness.file_damage import DAMAGES, flip
from tests.harness.nights import AT_NIGHT
from tests.harness.written_checkpoint import arrives, in_halves, runs
from xmlstream.cli.commands import app
from xmlstream.diagnosis.checkpoint_contents import contents_of, damages
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT
from xmlstream.operators.storage.store import Folder, sealed, unseal
from xmlstream.punct_ns.errors import StateError

NOTES = ("planned.json", "plan.json", "ended.json", "waiting.json", "restricted.json")
"""Files without which a start does, or which it writes anew."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of two slices, with its outputs."""
    return in_halves(xs.open_session(engine="duckdb"), tmp_path_factory.mktemp("written"))


def _files(home: Path) -> dict[str, tuple[bytes, int]]:
    found = (path for path in home.rglob("*") if path.is_file())
    return {str(path.relative_to(home)): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


def _invoked(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["checkpoint", *map(str, arguments)], catch_exceptions=False)
    return done.exit_code, done.output


def test_what_is_in_a_checkpoint_is_shown_and_nothing_is_written(written: Path) -> None:
    before = _files(written)
    code, text = _invoked(written / "state", "--verify")
    lines = text.splitlines()
    assert code == 0
    assert lines[0].endswith(f": stopped; format {CHECKPOINT_FORMAT}, by xmlstream {xs.__version__}")
    assert lines[1].startswith("slice 1 is the last one, committed at 20")
    (join,) = [line.split(None, 1)[1] for line in lines if line.startswith("  join ")]
    assert join.startswith("8 rows, ")
    assert "1.3 kB: inner: hour = hour_2" in join
    assert f"to {written}/out/joined: 2 documents, punctuated_xml" in lines
    assert lines[-1] == "verified: all seals and checksums"
    code, text = _invoked(written / "state", "--verify", "--format", "json")
    found = json.loads(text)
    assert (code, found["damaged"], found["slice"], found["format"]) == (0, [], 1, CHECKPOINT_FORMAT)
    (report,) = [each for each in found["operators"] if each["name"] == "report"]
    assert report["document"] == 6
    assert found["bytes"]["commits"] == sum(path.stat().st_size for path in (written / "state/commits").iterdir())
    assert _files(written) == before


def test_the_state_of_its_run_is_shown(tmp_path: Path) -> None:
    session = xs.open_session(engine="duckdb")
    (tmp_path / "in").mkdir()
    root = '<s xmlns:p="http://www.cse.ogi.edu/dot/niagara/punct">'
    (tmp_path / "in/1.xml").write_text(f"{root}<t><h>1</h></t><p:t><h>1</h></p:t></s>")
    sql = f"""CREATE TABLE s (h INT) USING punctuated_xml OPTIONS (path '{tmp_path}/in', rowTag 't', schemes 'h');
    SELECT h, count(*) AS n FROM s GROUP BY h"""
    query, state = xs.from_sql(session, sql), Folder(tmp_path / "state")
    with pytest.raises(StateError, match="there is no checkpoint"):
        contents_of(state)
    handle = query.start(tmp_path / "out", tmp_path / "state")
    try:
        handle.processAllAvailable()
        assert (contents_of(state).state, damages(state)) == ("running", [])
    finally:
        handle.stop()
    assert contents_of(state).state == "stopped"
    (tmp_path / "state/ended.json").unlink()  # as a process that was killed leaves it
    assert contents_of(state).state == "killed"
    query.run(tmp_path / "out", tmp_path / "state")
    found = contents_of(state)
    assert (found.state, found.slice, found.results[0].documents) == ("closed", 1, 2)


def test_each_damaged_file_is_named_and_what_a_start_refuses_is_found(written: Path, tmp_path: Path) -> None:
    session, draw = xs.open_session(engine="duckdb"), random.Random(7)
    names = [name for name in _files(written) if name.startswith(("state/", "out/")) and not name.endswith(NOTES)]
    assert len(names) > 20
    cases: list[tuple[str, Callable[[Path], None]]] = [(n, damage) for n in names for damage in (flip, Path.unlink)]
    if AT_NIGHT:
        cases = [(name, damage) for name in names for damage in DAMAGES]
    cases = cases if AT_NIGHT else [draw.choice([case for case in cases if case[0] == name]) for name in names]
    started = cases if AT_NIGHT else draw.sample(cases, 5)
    for number, (name, damage) in enumerate(cases):
        home = tmp_path / str(number)
        shutil.copytree(written, home)
        query = home / "state/query.json"
        if name != "state/query.json":
            _moved(query, written, home)
        size = (home / name).stat().st_size
        damage(home / name)
        found = damages(Folder(home / "state"))
        if size:
            assert len(found) == 1, (name, damage)
            is_named = str(home / name) in found[0].what
            assert is_named or "has lost commits" in found[0].what, (name, damage)
            code, text = _invoked(home / "state", "--verify")
            assert (code, str(home / name) in text) == (1, is_named)
        if (name, damage) in started:
            try:
                runs(session, home, home / "state")
                refused = False
            except StateError:
                refused = True
            assert refused <= bool(found), (name, damage)
        shutil.rmtree(home)


def _moved(query: Path, before: Path, now: Path) -> None:
    """Has a record name a copy of the outputs and inputs."""
    folder = Folder(query.parent)
    text = json.dumps(unseal(folder, query.name)).replace(str(before), str(now))
    folder.replace(query.name, sealed(json.loads(text)))


def test_a_checkpoint_in_an_object_store_is_shown_and_verified(bucket: str, tmp_path: Path) -> None:
    arrives(tmp_path, 0)
    runs(xs.open_session(engine="duckdb"), tmp_path, url := f"{bucket}/state")
    store = ObjectStore(url)
    before = sorted(one.key for one in store.listed())
    code, text = _invoked(url, "--verify")
    assert (code, text.splitlines()[-1]) == (0, "verified: all seals and checksums")
    assert "  join " in text
    (run,) = store.names("objects")
    segments = [one.key for one in store.listed() if one.key.startswith(f"objects/{run}state/join/")]
    content: Any = bytearray(store.read(segments[0]))
    content[10] ^= 1
    store.delete(segments[0])
    store.create(segments[0], [bytes(content)])
    code, text = _invoked(url, "--verify")
    assert (code, segments[0] in text) == (1, True)
    assert sorted(one.key for one in store.listed()) == before
