"""What every test of the house shares: one Spark session, Hypothesis's profiles, pure tests first."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import HealthCheck, settings

from tests.harness.browser import executable, launched
from tests.harness.nights import AT_NIGHT
from tests.harness.seaweed import BUCKET, ObjectServer
from tests.harness.seaweed import object_server as served_objects

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession, Session

# So that a table that is not as it should be is shown beside the one that is.
pytest.register_assert_rewrite("tests.harness.running", "tests.harness.saying")

# Every run of `quick` tries the same examples, so that a failure is the change's own and not the day's;
# `make nights` takes `night`, which tries many and new ones. Neither has deadlines: two cores may be shared.
settings.register_profile(
    "quick", deadline=None, max_examples=15, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "night",
    deadline=None,
    max_examples=int(os.environ.get("NIGHT_EXAMPLES", "1000")),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# Tests compute little and much that is new: what Java's second compiler and its collector with many threads would win
# later, they take now, more than a third of all.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC")


UNDER_SPARK = 1 if AT_NIGHT else 8
"""One of so many cases of a test with a `session` runs under Spark as well; of tests without cases, one of a file."""


def _java_is_there() -> bool:
    home = os.environ.get("JAVA_HOME")
    return bool(home and (Path(home) / "bin" / "java").exists()) or shutil.which("java") is not None


BUILT_OR_LOOKED_AT = {"browser", "built", "wheel"}
"""What uses these fixtures is in the rest: a browser, the site of the documentation, the wheel that is published."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what uses the session of the test run, and what takes a build or a browser, even if it does not say so."""
    fixtures = getattr(item, "fixturenames", ())
    if "spark" in fixtures and not _is(item, "spark"):
        item.add_marker(pytest.mark.spark)
    if not BUILT_OR_LOOKED_AT.isdisjoint(fixtures) and not _is(item, "rest"):
        item.add_marker(pytest.mark.rest)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run what needs no Spark first, then what takes longest; leave out what has no Java, or is left to nights."""
    seen: Counter[str] = Counter()
    gone = [item for item in items if _is_left_to_nights(item, seen)]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if item not in set(gone)]
    _share_out(items)
    items.sort(key=lambda item: (_is(item, "spark"), not _is(item, "slow")))
    if not _java_is_there():
        no_java = pytest.mark.skip(reason="needs Spark, and there is no Java on PATH or at JAVA_HOME (see make setup)")
        for item in items:
            if _is(item, "spark"):
                item.add_marker(no_java)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """By night a test is at fault for what it leaves open to the collector of garbage."""
    if AT_NIGHT:
        gc.collect()


def _is_left_to_nights(item: pytest.Item, seen: Counter[str]) -> bool:
    """Whether a test in both sessions is not among those that run under Spark by day; the first one is."""
    given = _given(item)
    if given.get("session") != "spark":
        return False
    counted = item.nodeid.partition("[")[0] if len(given) > 1 else str(item.path)
    seen[counted] += 1
    return (seen[counted] - 1) % UNDER_SPARK > 0


def _share_out(items: list[pytest.Item]) -> None:
    """Marks as the rest: of each `n` cases of a sampled test all but one, of tests in both sessions Spark's.

    Of each operator Spark runs one, since each writes frames of its own.
    """
    cases, in_file = Counter[str](), Counter[Path]()
    for item in items:
        sampled, counted = item.get_closest_marker("sampled"), item.nodeid.partition("[")[0]
        is_left = sampled is not None and cases[counted] % sampled.args[0] > 0
        cases[counted] += 1
        if _given(item).get("session") == "spark":
            is_left = is_left or in_file[item.path] > 0 or item.path.parent.name != "operators"
            in_file[item.path] += 1
        if is_left and not _is(item, "rest"):
            item.add_marker(pytest.mark.rest)


def _given(item: pytest.Item) -> dict[str, object]:
    """The parameters of a test's case."""
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


def _is(item: pytest.Item, marker: str) -> bool:
    return item.get_closest_marker(marker) is not None


@pytest.fixture(scope="session")
def spark_conf() -> dict[str, str]:
    """What the session of a test run has otherwise than users have it.

    Hardly a plan comes twice here, so that Spark would compile code longer than it runs it: it interprets. The sessions
    that tests of the command line start are as users have them. Each table of a join or a group by begins with a page,
    of which Spark's default is 16 MB or more: to clear it takes longer than to fill it with a handful of rows. And each
    job is described for Spark's own pages, which nobody opens here: one line for each operator is enough.
    """
    return {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.buffer.pageSize": "1m",
        "spark.sql.ui.explainMode": "simple",
    }


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, spark_conf: dict[str, str]) -> Iterator[SparkSession]:
    """The one local session of a test run: two cores, two shuffle partitions, and nothing left in the tree."""
    from xmlstream.session.spark_session import open_spark_session

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    scratch = tmp_path_factory.mktemp("spark")
    session = open_spark_session(
        "local[2]",
        {
            "spark.driver.memory": "1g",
            "spark.local.dir": str(scratch),
            "spark.sql.shuffle.partitions": "2",
            **spark_conf,
        },
        name="xmlstream tests",
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def in_process() -> Iterator[InProcessSession]:
    """The one session of a test run in which DuckDB computes."""
    from xmlstream.session.engines import open_session

    session = open_session(engine="duckdb")
    yield session
    session.stop()


@pytest.fixture(scope="session", params=["in process", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> Session:
    """Each of the two sessions; by day Spark's for some of the cases."""
    return cast("Session", request.getfixturevalue("spark" if request.param == "spark" else "in_process"))


@pytest.fixture(scope="session")
def object_server() -> Iterator[ObjectServer]:
    """The one server of S3's protocol of a test run."""
    with served_objects() as found:
        yield found


@pytest.fixture
def bucket(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty place on the server, which this process and its children find by their environment."""
    for name, value in object_server.environment.items():
        monkeypatch.setenv(name, value)
        # Spark's Java process has begun with the environment of then, and gives that to its Python processes.
        if (pyspark := sys.modules.get("pyspark")) and (context := pyspark.SparkContext._active_spark_context):
            monkeypatch.setitem(context.environment, name, value)
    return f"s3://{BUCKET}/{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The one browser of a test run."""
    if executable() is None:
        pytest.skip("looks at a page, and there is no browser on PATH (.ci/setup tested installs Debian's chromium)")
    with launched() as found:
        yield found
