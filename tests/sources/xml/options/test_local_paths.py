from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.local_paths import absolute, split_glob
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.documents import Documents

MAGIC = ["in[1]", "b*d", "who?", "[", "]x[", "**", "a]b", "[!a]", "plain"]
names = st.sampled_from(MAGIC)


def found(path: Path | str) -> list[str]:
    options = SourceOptions.parse({"path": str(path), "rowTag": "r", "schema": "a INT"})
    return [each.where for each in Documents(options, log=False).find()]


@given(st.lists(names, min_size=1, max_size=3), names)
def test_what_exists_is_itself_and_no_glob(
    tmp_path_factory: pytest.TempPathFactory, directories: list[str], name: str
) -> None:
    directory = tmp_path_factory.mktemp("in").joinpath(*directories)
    directory.mkdir(parents=True)
    (directory / f"{name}.xml").write_text("<r/>")
    (directory / "other.xml").write_text("<r/>")
    both = sorted(str(path) for path in directory.iterdir())
    assert found(directory / f"{name}.xml") == [str(directory / f"{name}.xml")]
    assert found(f"file://{directory}/{name}.xml") == [str(directory / f"{name}.xml")]
    assert found(directory) == both
    assert found(directory / "*.xml") == both
    assert found(directory.parent / "*" / "o*.xml") == [str(directory / "other.xml")]


def test_a_glob_that_names_nothing_is_a_glob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("in1", "in[2]"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.xml").write_text("<r/>")
    assert found(tmp_path / "in[1]" / "*.xml") == [str(tmp_path / "in1" / "a.xml")]
    assert found("in[1]/*.xml") == ["in1/a.xml"]
    assert found("in[2]/*.xml") == ["in[2]/a.xml"]
    assert found("*/a.xml") == ["in1/a.xml", "in[2]/a.xml"]
    assert split_glob("x" * 300 + "[1]") == (Path(), ("x" * 300 + "[1]",))


def test_a_directory_may_be_called_as_a_file_system_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s:").mkdir()
    (tmp_path / "s:" / "a.xml").write_text("<r/>")
    assert found("s:/a.xml") == ["s:/a.xml"]
    assert absolute("s:/a.xml") == str(tmp_path / "s:" / "a.xml")
    assert absolute("in/s:/[a].xml") == str(tmp_path / "in" / "s:" / "[a].xml")
    with pytest.raises(UsageError, match="is neither on this file system nor in an object store"):
        found("hdfs://there/a.xml")
