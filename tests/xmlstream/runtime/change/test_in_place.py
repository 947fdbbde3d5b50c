"""A checkpoint lies where its run has begun it: a foreign directory is none, and one that goes away ends the run."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest import mock

import pytest

import xmlstream as xs
from xmlstream.operators.storage import locks
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.punct_ns.errors import StateError, UsageError
from xmlstream.runtime.launched import Handle

SQL = """
CREATE TABLE report (hour INT) USING punctuated_xml OPTIONS (path '${IN}', rowTag 't', schemes 'hour');
SELECT hour, count(*) AS n FROM report GROUP BY hour;
"""
ROOT = '<s xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct">'


def _arrives(home: Path, hour: int) -> None:
    text = f"{ROOT}<t><hour>{hour}</hour></t><punct:t><hour>{hour}</hour></punct:t></s>"
    (home / "in").mkdir(exist_ok=True)
    (home / f"{hour}.tmp").write_text(text)
    (home / f"{hour}.tmp").rename(home / "in" / f"{hour}.xml")


def _query(home: Path) -> xs.Query:
    return xs.from_sql(xs.open_session(engine="duckdb"), SQL, {"IN": str(home / "in")})


def _begun(home: Path) -> Handle:
    _arrives(home, 1)
    handle = _query(home).start(home / "out", home / "state")
    handle.processAllAvailable()
    return handle


@pytest.mark.parametrize("gone", ["state", "out"])
@pytest.mark.parametrize("how", ["moved", "removed", "replaced", "replaced by a copy"])
def test_a_run_ends_in_words_when_a_directory_of_its_goes_away(tmp_path: Path, gone: str, how: str) -> None:
    handle, there, away = _begun(tmp_path), tmp_path / gone, tmp_path / "away"
    there.rename(away)
    if how == "removed":
        shutil.rmtree(away)
    elif how == "replaced":
        there.mkdir()
    elif how == "replaced by a copy":
        shutil.copytree(away, there)
    before = sorted(there.rglob("*"))
    _arrives(tmp_path, 2)
    with pytest.raises(StateError, match=f"{gone} was moved or removed while the query ran") as ended:
        handle.awaitTermination(300)
    assert ("in its place" in str(ended.value)) == how.startswith("replaced")
    handle.stop()
    if gone == "state":
        assert sorted(there.rglob("*")) == before  # and no stub of a checkpoint
    else:
        assert '"how": "failed"' in (tmp_path / "state" / "ended.json").read_text()
    if how == "moved":  # once it is back, the run goes on where it was
        away.rename(there)
        _query(tmp_path).run(tmp_path / "out", tmp_path / "state")
        assert len(list((tmp_path / "out").glob("slice-*.xml"))) == 2


def test_a_moved_checkpoint_goes_on_where_it_lies_now(tmp_path: Path) -> None:
    handle = _begun(tmp_path)
    (tmp_path / "state").rename(tmp_path / "elsewhere")
    _arrives(tmp_path, 2)
    with pytest.raises(StateError, match="was moved or removed"):
        handle.awaitTermination(300)
    handle.stop()
    assert not (tmp_path / "state").exists()
    _query(tmp_path).run(tmp_path / "out", tmp_path / "elsewhere")
    assert len(list((tmp_path / "out").glob("slice-*.xml"))) == 2


def test_a_commit_looks_once_at_each_directory(tmp_path: Path) -> None:
    """What a run costs for it: one `stat` of the checkpoint and of the output, before a slice and at its commit."""
    handle, looks = _begun(tmp_path), list[str]()
    handle.stop()
    _arrives(tmp_path, 2)
    identity = locks._identity

    def looked(path: str) -> tuple[int, int]:
        looks.append(Path(path).name)
        return identity(path)

    with mock.patch.object(locks, "_identity", looked):
        _query(tmp_path).run(tmp_path / "out", tmp_path / "state")
    # At the locks; before the slice and after the last one; at the commit; and once as its end is noted.
    assert (looks.count("out"), looks.count("state")) == (4, 5)


def test_a_directory_with_other_files_is_not_taken_for_a_checkpoint(tmp_path: Path) -> None:
    _arrives(tmp_path, 1)
    (tmp_path / "home").mkdir()
    for name in ("letters", "thesis.tex"):
        (tmp_path / "home" / name).write_text("mine")
    with pytest.raises(UsageError, match="home is not a checkpoint: it has letters and 1 more"):
        _query(tmp_path).run(tmp_path / "out", tmp_path / "home")
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["letters", "thesis.tex"]
    assert not (tmp_path / "out").exists()


def test_neither_is_a_place_of_a_store_with_other_objects(tmp_path: Path, bucket: str) -> None:
    _arrives(tmp_path, 1)
    ObjectStore(bucket).create("others/table.csv", [b"1"])
    with pytest.raises(UsageError, match="is not a checkpoint: it has others/"):
        _query(tmp_path).run(tmp_path / "out", bucket)
    assert ObjectStore(bucket).names() == ["others/"]


def test_an_empty_directory_and_the_root_of_a_disk_become_checkpoints(tmp_path: Path) -> None:
    _arrives(tmp_path, 1)
    (tmp_path / "disk" / "lost+found").mkdir(parents=True)
    (tmp_path / "disk" / ".Trash").mkdir()
    (tmp_path / "empty").mkdir()
    for name in ("disk", "empty", "new"):
        _query(tmp_path).run(tmp_path / f"of-{name}", tmp_path / name)
        (tmp_path / name / "README").write_text("what this is")  # beside a checkpoint that has begun
        _query(tmp_path).run(tmp_path / f"of-{name}", tmp_path / name)
