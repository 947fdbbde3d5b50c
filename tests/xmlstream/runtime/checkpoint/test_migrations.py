"""A query goes on from a checkpoint of each format, on both engines, and from each moment at which that was stopped.

There was no other format yet. So tests pretend a format 3: `zone` for the time zone, `logs` for what operators keep,
and rows of documents that were read in a list.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.dying import Died, dying
from tests.harness.nights import AT_NIGHT
from tests.harness.sealed_files import seal
from tests.harness.written_checkpoint import OUTPUTS, SQL, arrives, runs
from xmlstream.operators.storage import store
from xmlstream.operators.storage.durable import AppendOnlyFile
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT
from xmlstream.operators.storage.store import Folder, sealed, unseal, unsealed
from xmlstream.punct_ns.errors import StateError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.runtime.checkpoint import migrations
from xmlstream.runtime.checkpoint.commit_log import CommitLog
from xmlstream.runtime.checkpoint.migrations import MIGRATIONS, Migration
from xmlstream.sink.closings import reader_of

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

DATA = Path(__file__).parents[3] / "data"
FORMATS = sorted(path.stem for path in DATA.glob("format-*.zip"))
SCHEMAS = {
    "hottest": "hour INT, top DOUBLE", "joined": "sid STRING, hour INT, id STRING", "seen": "sid STRING, hour INT",
    "ranked": "sid STRING, hour INT, temp DOUBLE, place INT", "counted": "id STRING, n BIGINT",
}  # fmt: skip

Answers = dict[str, tuple[list[str], PunctuationSet]]

READ = "read.jsonl"


def _renamed(part: Mapping[str, Any], before: str, now: str) -> dict[str, Any]:
    return {now if key == before else key: value for key, value in part.items()}


def _record(part: Mapping[str, Any], before: str = "logs", now: str = "kept", number: int = 3) -> dict[str, Any]:
    states = {name: _renamed(each, before, now) | {"format": number} for name, each in part["operators"].items()}
    return {**part, "operators": states}


def _logs(logs: Mapping[str, Any]) -> dict[str, Any]:
    listed = [line for line in logs.get(READ, ()) if isinstance(line.get("read"), list)]
    return {READ: [{"read": row} for line in listed for row in line["read"]]} if listed else {}


STEP = Migration(query=lambda part: _renamed(part, "zone", "timeZone"), record=_record, logs=_logs)
"""From the pretended format 3 to 4."""


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    """This version goes on from the pretended format, too."""
    monkeypatch.setattr(migrations, "MIGRATIONS", {3: STEP})


def _earlier(state: Path, number: int = 3) -> Path:
    """Makes a checkpoint of format 4 one of the pretended format."""
    seal(state / "query.json", _renamed(unseal(Folder(state), "query.json"), "timeZone", "zone") | {"format": number})
    seals = {}
    for log in (state / "documents").glob(f"*/{READ}"):
        lines = [{"read": [json.loads(line)["read"]]} for line in log.read_text().splitlines()]
        log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        seals[f"{log.parent.name}/{READ}"] = AppendOnlyFile(log).seal()
    for commit in (state / "commits").iterdir():
        record = _record(unseal(Folder(state), f"commits/{commit.name}"), "kept", "logs", number)
        seal(commit, {**record, "documents": {**record["documents"], **seals}})
    return state


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> Session:
    found: Session = xs.open_session(engine="duckdb") if request.param == "duckdb" else request.getfixturevalue("spark")
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What the queries answer that are not interrupted."""
    home = tmp_path_factory.mktemp("whole")
    arrives(home, 0)
    arrives(home, 1)
    runs(xs.open_session(engine="duckdb"), home, home / "state")
    return _answers(home)


def _answers(home: Path) -> Answers:
    """The rows of each output, and what it has closed."""
    found = {}
    for name in OUTPUTS:
        texts = [path.read_text() for path in (home / "out" / name).glob("slice-*.xml")]
        schema = Schema.parse(SCHEMAS[name])
        closed = PunctuationSet(schema)
        for _, text in reader_of(str(home / "out" / name))().punctuations:
            closed.add(Punctuation.parse(text, schema))
        found[name] = sorted(re.findall(r"<row>.*?</row>", "".join(texts))), closed
    return found


def _require_same(found: Answers, wanted: Answers) -> None:
    for name in OUTPUTS:
        assert found[name][0] == wanted[name][0], name
        assert all(found[name][1].covers(each) for each in wanted[name][1]), name
        assert all(wanted[name][1].covers(each) for each in found[name][1]), name


def _unpacked(name: str, home: Path) -> Path:
    """A checkpoint of an earlier version, with its input and outputs, and the second half of the input."""
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        archive.extractall(home)
    arrives(home, 1)
    return home / "state"


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_there_is_a_checkpoint_of_each_format_that_each_engine_has_written() -> None:
    numbers = [*MIGRATIONS, CHECKPOINT_FORMAT]
    assert numbers == list(range(min(numbers), CHECKPOINT_FORMAT + 1))
    assert sorted(f"format-{number}-{engine}" for number in numbers for engine in ("duckdb", "spark")) == FORMATS
    for name in FORMATS:
        with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
            query = unsealed(archive.read("state/query.json")) or {}
            assert f"format-{query['format']}-" in name
            stored = [each for each in archive.namelist() if each.startswith("state/state/")]
        folders = {each.split("/")[2] for each in stored}
        assert folders == {"distinct", "group_by", "group_by-2", "join", "row_window", "session"}


@pytest.mark.parametrize("number", [3, CHECKPOINT_FORMAT])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.usefixtures("pretended")
def test_a_query_goes_on_from_a_checkpoint_of_each_format(
    session: Session, tmp_path: Path, name: str, number: int, whole: Answers
) -> None:
    state = _unpacked(name, tmp_path)
    if number < CHECKPOINT_FORMAT:
        _earlier(state)
    before = _files(state)
    summary = runs(session, tmp_path, state, moved=True)
    assert summary.slices > 0
    _require_same(_answers(tmp_path), whole)
    query = unseal(Folder(state), "query.json")
    assert query["format"] == CHECKPOINT_FORMAT
    if number < CHECKPOINT_FORMAT:
        assert query["earlier"] == {str(number): 0}
        assert _files(state / f"before-{number}") == before
        runs(session, tmp_path, state)  # with nothing to migrate, and nothing to do
        assert len([path for path in state.iterdir() if path.name.startswith("before-")]) == 1
    else:
        assert not list(state.glob("before-*"))
        assert "earlier" not in query


def test_a_record_is_read_where_earlier_formats_are_migrated() -> None:
    """Whoever reads one by himself would meet the parts of an earlier format."""
    readers = {"query_of_today", "formats.record"}
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted((DATA.parents[1] / "xmlstream").rglob("*.py"))
        for line in path.read_text().splitlines()
        if re.search(r"\b(QueryRecord|Commit)\.from_json\(", line) and not any(reader in line for reader in readers)
    ]
    # Of an object store the working copy is read; of the store itself no more than what is there.
    assert found == ["remote_checkpoint.py: commit = Commit.from_json(value)"]


@pytest.mark.usefixtures("pretended")
def test_the_copy_is_the_way_back(tmp_path: Path, whole: Answers) -> None:
    session = xs.open_session(engine="duckdb")
    state = _earlier(_unpacked("format-4-duckdb", tmp_path / "one"))
    shutil.copytree(tmp_path / "one/out", tmp_path / "two/out")
    shutil.copytree(tmp_path / "one/in", tmp_path / "two/in")
    runs(session, tmp_path / "one", state, moved=True)
    shutil.copytree(state / "before-3", tmp_path / "two/state")
    assert unseal(Folder(tmp_path / "two/state"), "query.json")["format"] == 3
    runs(session, tmp_path / "two", tmp_path / "two/state", moved=True)
    _require_same(_answers(tmp_path / "two"), whole)


WRITES = [
    *((Folder, name) for name in ("copy", "replace", "write", "delete", "publish", "path_to_write")),
    *((AppendOnlyFile, "append"), (store, "sync"), (shutil, "copyfile"), (Path, "rename")),
]


@pytest.mark.usefixtures("pretended")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_run_that_dies_as_it_migrates_leaves_what_the_next_one_goes_on_from(tmp_path: Path, whole: Answers) -> None:
    session = xs.open_session(engine="duckdb")
    _earlier(_unpacked("format-4-duckdb", tmp_path / "first"))
    with dying(1 << 30, *WRITES) as writes:
        runs(session, tmp_path / "first", tmp_path / "first/state", moved=True)
    formats = set[tuple[int, bool]]()
    moments = range(len(writes)) if AT_NIGHT else [round(len(writes) * part) for part in (0.1, 0.4, 0.96)]
    for at in moments:
        home = tmp_path / str(at)
        state = _earlier(_unpacked("format-4-duckdb", home))
        before = _files(state)
        with dying(at, *WRITES), suppress(Died):
            runs(session, home, state, moved=True)
        query = unseal(Folder(state), "query.json")
        log = state / "documents/report/read.jsonl"
        # Of the format before, and as it was; or refused by the version before, and with a copy for it.
        if query["format"] == 3:
            now = _files(state)
            assert {key: now.get(key) for key in before if not key.endswith("ended.json")} == {
                key: content for key, content in before.items() if not key.endswith("ended.json")
            }
        else:
            assert _files(state / "before-3") == before
        formats.add((query["format"], log.exists()))
        runs(session, home, state, moved=True)
        _require_same(_answers(home), whole)
        assert not log.exists()
        shutil.rmtree(home)
    assert formats == {(3, True), (4, True), (4, False)}


def test_steps_follow_each_other_for_the_query_and_for_the_records_of_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Answers
) -> None:
    """By a format 2 whose query had `query` for the plan, and whose records had `closed` for sets."""
    state = _earlier(_unpacked("format-4-duckdb", tmp_path), 2)
    seal(state / "query.json", _renamed(unseal(Folder(state), "query.json"), "plan", "query"))
    first = state / "commits" / "000000000.json"
    seal(first, _record(unseal(Folder(state), "commits/000000000.json"), "sets", "closed", 2))
    with pytest.raises(StateError, match=r"has format 2, and this version of xmlstream reads format 4"):
        runs(xs.open_session(engine="duckdb"), tmp_path, state, moved=True)
    step = Migration(
        query=lambda part: _renamed(part, "query", "plan"), record=lambda part: _record(part, "closed", "sets")
    )
    monkeypatch.setattr(migrations, "MIGRATIONS", {2: step, 3: STEP})
    assert CommitLog(state / "commits").records()[-1].state("join").kept["side-0"].rows == 3
    runs(xs.open_session(engine="duckdb"), tmp_path, state, moved=True)
    _require_same(_answers(tmp_path), whole)
    # The first record is still whole, and as it was; those of later slices are of today.
    assert CommitLog(state / "commits").records()[0].state("join").kept["side-0"].rows == 3
    assert unseal(Folder(state), "query.json")["earlier"] == {"2": 0}
    monkeypatch.setattr(migrations, "MIGRATIONS", {3: STEP})
    with pytest.raises(StateError, match="has format 2, and this version of xmlstream reads formats 3 to 4"):
        CommitLog(state / "commits").records()


@pytest.mark.usefixtures("pretended")
def test_a_query_is_changed_once_its_checkpoint_has_the_format_of_today(tmp_path: Path) -> None:
    session, state = xs.open_session(engine="duckdb"), _earlier(_unpacked("format-4-duckdb", tmp_path))
    before = _files(state)

    def changed() -> None:
        sql = SQL.replace("max(temp) AS top", "max(temp) AS highest")
        queries = xs.inserts_from_sql(session, sql, {"HOME": str(tmp_path)})
        xs.run(queries, checkpoint=str(state), keep_open=True, moved=True, change=True)

    with pytest.raises(StateError, match="has the earlier format 3") as refused:
        changed()
    assert "until it has committed a slice" in str(refused.value.hint)
    assert {key: content for key, content in _files(state).items() if "read-1" not in key} == before
    runs(session, tmp_path, state, moved=True)
    changed()
    assert unseal(Folder(state), "plan.json")["version"] == xs.__version__


def test_a_later_format_and_one_before_all_are_refused_with_the_way_on(tmp_path: Path) -> None:
    state = _unpacked("format-4-duckdb", tmp_path)
    before = _files(state)
    for number, hint in ((CHECKPOINT_FORMAT + 1, "a later version"), (1, "finish the query with the version")):
        seal(state / "query.json", {**unseal(Folder(state), "query.json"), "format": number})
        with pytest.raises(StateError, match=f"has format {number}, and this version") as refused:
            runs(xs.open_session(engine="duckdb"), tmp_path, state, moved=True)
        assert str(refused.value.hint).startswith(hint)
    assert {*_files(state)} == {*before}


@pytest.mark.usefixtures("pretended")
def test_a_checkpoint_in_an_object_store_is_migrated_as_one_in_a_directory(
    bucket: str, tmp_path: Path, whole: Answers
) -> None:
    session, url = xs.open_session(engine="duckdb"), f"{bucket}/state"
    arrives(tmp_path, 0)
    runs(session, tmp_path, url)
    there = ObjectStore(url)
    (notes,) = [name for name in there.names("runs") if not name.endswith("ended.json")]
    noted = unsealed(there.read(f"runs/{notes}")) or {}
    query = unsealed(noted["query.json"].encode()) or {}
    noted["query.json"] = b"".join(sealed({**query, "format": 3})).decode()
    there.delete(f"runs/{notes}")
    there.create(f"runs/{notes}", sealed(noted))
    arrives(tmp_path, 1)
    for _ in range(2):
        runs(session, tmp_path, url)
        _require_same(_answers(tmp_path), whole)
    kept = unsealed(there.read("before-3/query.json")) or {}
    assert kept["format"] == 3
    (first,) = there.names("before-3/commits")
    assert json.loads(there.read(f"before-3/commits/{first}").splitlines()[0])["slice"] == 0
