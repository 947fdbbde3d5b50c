"""Documents are removed or archived once they were read to their end and that is committed, and not before."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

import xmlstream as xs
from tests.harness.dying import Died, dying
from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices import sources_reader
from xmlstream.sources.xml.slices.sources_reader import clean
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _source(home: Path, **options: str) -> SourceOptions:
    given = {"path": str(home), "rowTag": "r", "schema": "a INT", "documentLog": str(home.parent / "log"), **options}
    return SourceOptions.parse(given)


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


def _documents(directory: Path, *names: str) -> None:
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).write_text("<s><r><a>1</a></r></s>")


def _found(*sources: SourceOptions) -> list[Documents]:
    found = [Documents(source, log=False) for source in sources]
    for documents in found:
        documents.were_read((number, 1) for number, _ in enumerate(documents.find()))
    return found


def test_what_was_read_goes_and_what_two_read_stays_until_both_have(tmp_path: Path) -> None:
    home = tmp_path / "in"
    _documents(home, "1.xml", "2.xml", "3.xml")
    sources = [_source(home, cleanSource="delete"), _source(home, cleanSource="delete")]
    documents = _found(*sources)
    clean(sources, documents, [Offset(2, 0, 5), Offset(1)])
    assert _names(home) == ["2.xml", "3.xml"]
    clean(sources, documents, [Offset(2), Offset(3)])
    assert _names(home) == ["3.xml"]
    clean(sources, documents, [Offset(3), Offset(3)])
    clean(sources, documents, [Offset(3), Offset(3)])
    assert _names(home) == []


def test_an_archive_has_all_of_them_also_those_of_one_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _documents(tmp_path / name, "1.xml")
    source = _source(tmp_path / "?", cleanSource="archive", sourceArchiveDir=str(tmp_path / "old"))
    clean([source], _found(source), [Offset(2)])
    assert _names(tmp_path / "old") == ["1-2.xml", "1.xml"]
    assert _names(tmp_path / "a") == _names(tmp_path / "b") == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"cleanSource": "archive"}, "require each other"),
        ({"sourceArchiveDir": "old"}, "require each other"),
        ({"cleanSource": "archive", "sourceArchiveDir": "{home}/in"}, "would be read again"),
        ({"path": "{home}/*/*.xml", "cleanSource": "archive", "sourceArchiveDir": "{home}/old"}, "would be read again"),
        ({"path": "{home}/**", "cleanSource": "archive", "sourceArchiveDir": "{home}/a/old"}, "would be read again"),
        ({"cleanSource": "remove"}, "one of off, delete, archive"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, options: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError) as refused:
        _source(tmp_path / "in", **{name: value.replace("{home}", str(tmp_path)) for name, value in options.items()})
    assert why in str(refused.value)


@pytest.mark.spark
def test_a_query_cleans_behind_itself_and_answers_the_same(spark: SparkSession, tmp_path: Path) -> None:
    home = tmp_path / "in"
    options: dict[str, Any] = {"cleanSource": "delete", "maxFilesPerSlice": 1}
    for night in range(3):
        _documents(home, *(f"{night}-{number}.xml" for number in range(2)))
        query = xs.read(spark, home, "a INT", rowTag="r", **options).group_by("a").agg("count(*) AS n")
        query.run(output=tmp_path / "out", checkpoint=tmp_path / "checkpoint", keep_open=night < 2)
        # Those of the last slice go when the next one begins.
        assert _names(home) == [f"{night}-1.xml"]
    (answer,) = (path.read_text() for path in (tmp_path / "out").glob("slice-*.xml"))
    assert "<row><a>1</a><n>6</n></row>" in answer


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another file system than the temporary one."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other file system")
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        yield Path(directory)


@pytest.mark.parametrize("step", range(4))
def test_an_archive_on_another_file_system_never_has_a_cut_document(tmp_path: Path, elsewhere: Path, step: int) -> None:
    """A run that is killed at any step of the copy; the next one has each document once, whole."""
    home, old = tmp_path / "in", elsewhere / "old"
    _documents(home, "1.xml", "2.xml")
    source = _source(home, cleanSource="archive", sourceArchiveDir=str(old))
    at = [(shutil, "copyfile"), (sources_reader, "sync"), (sources_reader, "sync"), (Path, "unlink")][step]
    with pytest.raises(Died), dying(1 if step == 2 else 0, at, behind=step == 0):
        clean([source], _found(source), [Offset(2)])
    clean([source], _found(source), [Offset(2)])
    assert (_names(home), [name for name in _names(old) if not name.endswith(".tmp")]) == ([], ["1.xml", "2.xml"])
    assert {path.read_text() for path in old.glob("*.xml")} == {"<s><r><a>1</a></r></s>"}


@pytest.mark.parametrize("how", ["delete", "archive"])
def test_a_document_is_gone_for_good_before_it_is_forgotten(tmp_path: Path, how: str) -> None:
    home, order = tmp_path / "in", list[str]()
    _documents(home, "1.xml")
    more = {"sourceArchiveDir": str(tmp_path / "old")} if how == "archive" else {}
    source = _source(home, cleanSource=how, **more)
    found = _found(source)
    with (
        mock.patch.object(sources_reader, "sync", lambda paths: order.extend(f"sync {path.name}" for path in paths)),
        mock.patch.object(found[0], "forget", side_effect=lambda *_, **__: order.append("forgotten")),
    ):
        clean([source], found, [Offset(1)])
    assert order == [*(["sync old"] if how == "archive" else []), "sync in", "forgotten"]
