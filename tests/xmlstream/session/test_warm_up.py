"""The processes that start beside the planning: on this machine alone, and without a word where that fails."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from xmlstream.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def of(master: str) -> SparkSession:
    """A session that knows its master, and can do nothing."""
    return cast("SparkSession", SimpleNamespace(sparkContext=SimpleNamespace(master=master)))


@pytest.mark.parametrize(("master", "starts"), [("local[2]", True), ("spark://there:7077", False)])
def test_a_cluster_starts_its_own(master: str, starts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    monkeypatch.setattr(spark_session, "request_nothing", lambda _: asked.set())
    spark_session.warm_up(of(master))
    assert asked.wait(300 if starts else 0.2) is starts


def test_what_fails_is_left_to_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    spark_session.warm_up(of("local[2]"))
    for thread in threading.enumerate():
        if thread.name == "warm-up":
            thread.join(300)
    assert not failures


@pytest.mark.spark
def test_a_worker_answers(spark: SparkSession) -> None:
    assert spark_session.request_nothing(spark) == 1
