"""A checkpoint that is not as it was left is told from one that is, file by file, without Spark."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.file_damage import DAMAGES
from xmlstream.operators.storage.durable import checksum
from xmlstream.operators.storage.locks import DirectoryLocks
from xmlstream.punct_ns.errors import StateError
from xmlstream.runtime.checkpoint import commit_log
from xmlstream.runtime.checkpoint.checkpoint import Checkpoint
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog
from xmlstream.runtime.checkpoint.recovery import PublishedOutput
from xmlstream.sink.sink import Draft


def record(number: int, *, whole: bool = False, outputs: tuple[Draft | None, ...] = (None,)) -> Commit:
    return Commit(number, whole=whole, outputs=outputs)


def ran(directory: Path, slices: int, *, begin: int = 0) -> None:
    """A run of that many slices, each with a document found and one published."""
    checkpoint = Checkpoint(directory)
    found = directory / "documents" / "s" / "documents.jsonl"
    found.parent.mkdir(parents=True, exist_ok=True)
    out = directory.parent / "out"
    out.mkdir(exist_ok=True)
    for number in range(begin, begin + slices):
        with found.open("a") as log:
            log.write(f'{{"path": "{number}.xml"}}\n')
            document = out / f"slice-{number:09d}.xml"
        document.write_text(f"<rows>{number}</rows>")
        drafted = Draft(document.name, checksum(document))
        checkpoint.commit(record(number, whole=checkpoint.commits.is_whole(number), outputs=(drafted,)), [])


def published(directory: Path) -> PublishedOutput:
    documents = {d.name: d.checksum for d in Checkpoint(directory).documents}
    return PublishedOutput(directory.parent / "out", documents)


def test_each_file_of_a_checkpoint_and_each_document_in_turn_damaged_is_told_or_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_log, "WHOLE_EVERY", 2)
    ran(tmp_path / "sound" / "checkpoint", 4)
    files = [path for path in (tmp_path / "sound").rglob("*") if path.is_file()]
    assert {"published.jsonl", "documents.jsonl", "000000003.json"} <= {path.name for path in files}
    silent = set()
    for path in files:
        for damage in DAMAGES:
            copy = tmp_path / "copy"
            shutil.copytree(tmp_path / "sound", copy)
            damage(copy / path.relative_to(tmp_path / "sound"))
            try:
                output = published(copy / "checkpoint")
                output.require_as_published()
                assert len(Checkpoint(copy / "checkpoint").documents) == 4
                silent.add(path.relative_to(tmp_path / "sound" / "checkpoint").parts[0])
            except StateError:
                pass
            shutil.rmtree(copy)
    assert silent == {"planned.json"}, "nothing relies on it"


def test_without_the_note_about_the_last_slice_a_run_goes_on(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    ran(checkpoint, 3)
    (checkpoint / "planned.json").unlink()
    ran(checkpoint, 2, begin=3)
    published(checkpoint).require_as_published()


def test_a_slice_that_was_begun_and_not_committed_is_forgotten(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    ran(checkpoint, 2)
    Checkpoint(checkpoint).planned.note(2, {}, committed=False)
    found = checkpoint / "documents/s/documents.jsonl"
    before = found.read_text()
    found.write_text(before + '{"path": "late.xml"}\n{"pat')
    (checkpoint / "staged" / "left.parquet").write_text("")
    latest = Checkpoint(checkpoint).latest
    assert latest is not None
    assert latest.slice == 1
    assert found.read_text() == before
    assert not list((checkpoint / "staged").iterdir())


@pytest.mark.parametrize("has_begun", [False, True])
def test_lost_commits_are_told_by_the_note_about_the_last_slice(tmp_path: Path, has_begun: bool) -> None:
    checkpoint = tmp_path / "checkpoint"
    ran(checkpoint, 3)
    if has_begun:
        Checkpoint(checkpoint).planned.note(3, {}, committed=False)
    (checkpoint / "commits" / "000000002.json").unlink()
    with pytest.raises(StateError, match="the last commit is that of slice 1, but slice 2 was committed"):
        Checkpoint(checkpoint)
    shutil.rmtree(checkpoint / "commits")
    with pytest.raises(StateError, match="no slice is committed"):
        Checkpoint(checkpoint)


def test_an_output_that_is_not_what_was_published_is_told_in_words(tmp_path: Path) -> None:
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"
    ran(checkpoint, 3)
    first = out / "slice-000000000.xml"
    text = first.read_text()
    first.unlink()
    with pytest.raises(StateError, match="1 document that this query has published is gone") as told:
        published(checkpoint).require_as_published()
    assert "--moved" in (told.value.hint or "")
    first.write_text(text.replace("0", "1"))
    with pytest.raises(StateError, match=r"slice-000000000\.xml is not as it was published"):
        published(checkpoint).require_as_published()
    first.write_text(text)
    (out / "slice-000000007.xml").write_text(text)
    with pytest.raises(StateError, match="1 document is not from this query"):
        published(checkpoint).require_as_published()


def test_what_is_committed_is_published_and_what_is_not_is_removed(tmp_path: Path) -> None:
    for name in (".slice-000000001.xml", ".slice-000000002.xml", "slice-000000000.xml"):
        (tmp_path / name).write_text(name)
    drafts = [Draft(f"slice-{n:09d}.xml", "") for n in (0, 1)]
    PublishedOutput(tmp_path, {draft.name: draft.checksum for draft in drafts}).settle()
    assert {path.name for path in tmp_path.iterdir()} == {draft.name for draft in drafts}


def test_what_a_run_uses_is_refused_to_others_until_it_ends_or_dies(tmp_path: Path) -> None:
    first, second = DirectoryLocks(), DirectoryLocks()
    first.take(tmp_path)
    first.take(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(StateError, match="in use by another query of this process"):
        second.take(tmp_path / "link")
    tried = (
        "import sys, pathlib; from xmlstream.operators.storage.locks import DirectoryLocks;"
        "DirectoryLocks().take(pathlib.Path(sys.argv[1]))"
    )
    refused = subprocess.run([sys.executable, "-c", tried, tmp_path], check=False, capture_output=True, text=True)
    assert "in use by another process" in refused.stderr
    first.release()
    kept = f"{tried}; print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", kept, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(StateError, match="in use by another process"):
            second.take(tmp_path)
        other.kill()
    second.take(tmp_path)
    second.release()


def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("xmlstream.operators.storage.locks.fcntl.flock", refuse)
    locks = DirectoryLocks()
    locks.take(tmp_path)
    locks.release()
    assert f"the file system of {tmp_path} has no locks" in caplog.text


def test_who_has_ended_without_a_word_is_no_hindrance(tmp_path: Path) -> None:
    first, second = DirectoryLocks(), DirectoryLocks()
    first.take(tmp_path)

    def is_over() -> bool:
        first.release()
        return True

    first.is_over = is_over
    second.take(tmp_path)
    second.release()


def test_all_that_a_commit_names_is_synced_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr("xmlstream.runtime.checkpoint.checkpoint.sync", lambda paths: done.append(set(paths)))
    monkeypatch.setattr(CommitLog, "create", lambda self, record: done.append(record.slice))
    checkpoint = Checkpoint(tmp_path)
    found = tmp_path / "documents" / "s" / "documents.jsonl"
    found.parent.mkdir(parents=True)
    found.write_text("{}\n")
    segment = tmp_path / "segment"
    checkpoint.commit(record(0, whole=True), [segment])
    assert done == [{segment, found, found.parent, found.parent.parent, tmp_path}, 0]


def test_a_run_that_has_let_go_of_a_checkpoint_commits_no_more(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.end()
    with pytest.raises(StateError, match="has ended"):
        checkpoint.commit(record(0, whole=True), [])
    assert Checkpoint(tmp_path).latest is None
