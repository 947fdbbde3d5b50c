"""What a session of Spark Connect cannot do is refused before anything starts, in words that say what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import xmlstream as xs
from xmlstream.operators.storage.store import Folder
from xmlstream.punct_ns.errors import UsageError
from xmlstream.runtime.checkpoint.checkpoint import Mirror
from xmlstream.runtime.loop import driving
from xmlstream.runtime.loop.driving import is_apart, require_reached
from xmlstream.session.engines import is_connect
from xmlstream.sql.spark.parsing import ConnectPlans

Remote: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session", "version": "4.0.2"})


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what the workers of a session do."""

    def have(in_tasks: Callable[..., Any]) -> None:
        monkeypatch.setattr(driving, "spark_engine_of", lambda spark: SimpleNamespace(in_tasks=in_tasks))

    return have


def here(function: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
    return [function(job) for job in jobs]


def elsewhere(function: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
    return [function(f"{job}/elsewhere") for job in jobs]


def test_workers_on_this_machine_need_no_objects(workers: Callable[..., None], tmp_path: Path) -> None:
    workers(here)
    assert is_connect(Remote())
    assert not is_apart(Remote(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_workers_that_do_not_see_a_directory_need_objects(workers: Callable[..., None], tmp_path: Path) -> None:
    workers(elsewhere)
    assert is_apart(Remote(), tmp_path)
    mirror = Mirror(Folder(tmp_path))
    require_reached(Remote(), mirror, is_apart=False)
    with pytest.raises(UsageError, match=f"do not see the directory {tmp_path}") as refused:
        require_reached(Remote(), mirror, is_apart=True)
    assert "s3://" in str(refused.value.hint)


def test_workers_without_this_package_are_refused(workers: Callable[..., None], tmp_path: Path) -> None:
    def lacking(function: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
        raise RuntimeError("pyspark.serializers.SerializationError: … ModuleNotFoundError: No module named 'xmlstream'")

    workers(lacking)
    with pytest.raises(UsageError, match="have no module xmlstream") as refused:
        is_apart(Remote(), tmp_path)
    assert "punctuated-streams" in str(refused.value.hint)


def test_a_server_before_4_1_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the server of Spark Connect is of Spark 4\.0\.2"):
        ConnectPlans().apart(Remote())


def test_a_stream_of_spark_connect_is_refused() -> None:
    frame: Any = SimpleNamespace(sparkSession=Remote(), isStreaming=True)
    with pytest.raises(UsageError, match="stream, whose batches a session of Spark Connect") as refused:
        xs.from_stream(frame, schemes="n")
    assert "USING punctuated_parquet" in str(refused.value.hint)
