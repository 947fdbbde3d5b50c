"""Spark is spared its search for installed data sources where there is none, and only there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import MagicMock

import pytest

from xmlstream.session.java_lookups import spare_the_search
from xmlstream.sources.xml.spark.data_source import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def searchers(java: int) -> list[str]:
    """The commands of the Python processes of a Java process that look for data sources."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if parent == java and "lookup_data_sources" in command:
            found.append(command)
    return found


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes the way Linux shows them")
def test_a_data_source_is_found_without_a_process_that_looks_for_others(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    (tmp_path / "a.xml").write_text("<rows><row><n>7</n></row></rows>")
    reader = spark.read.format("punctuated_xml").options(rowTag="row", schema="n INT", path=str(tmp_path / "a.xml"))
    assert "n" in reader.load().columns
    assert not searchers(cast("Any", spark.sparkContext)._gateway.proc.pid)


def test_where_a_data_source_is_installed_spark_is_left_to_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    untouched, spared = MagicMock(), MagicMock()
    spare_the_search(spared)
    assert spared.mock_calls, "else this test could not fail"
    (tmp_path / "pyspark_zoo").mkdir()
    (tmp_path / "pyspark_zoo" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    spare_the_search(untouched)
    assert not untouched.mock_calls


def test_a_spark_that_notes_elsewhere_what_it_found_is_left_to_itself() -> None:
    # What Py4J makes of a name that it does not know is not a method.
    module = SimpleNamespace(dataSourceBuilders="no method")
    java = SimpleNamespace()
    finder = "org.apache.spark.sql.execution.datasources.DataSourceManager$"
    setattr(java, finder, SimpleNamespace(**{"MODULE$": module}))
    spare_the_search(cast("Any", SimpleNamespace(_jvm=java)))
    assert vars(module) == {"dataSourceBuilders": "no method"}
