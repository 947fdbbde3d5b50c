"""The sessions of the contracts: in process for all cases, under Spark by day for every fifth one."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from operators.in_process.spark_type import NotProven
from punct_ns.errors import QueryError
from tests.harness.nights import AT_NIGHT

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

UNDER_SPARK = 1 if AT_NIGHT else 5
"""One of so many cases of a test runs under Spark as well."""

REFUSED = {
    "project, monotone": "floor of a DECIMAL",
    "session, tuples kept": "regr_count",
    "order, with slack and a limit": "aggregate over an array",
    "order per person and x, with slack and a limit": "aggregate over an array",
    "SELECT k, lag(v, 1, 0) OVER (ORDER BY t DESC) AS n FROM r": "lag with a default",
}
"""The cases that DuckDB refuses, by name or query, and what is not proven."""


@pytest.fixture(scope="session", params=["in process", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> Session:
    """Each of the sessions."""
    return cast("Session", request.getfixturevalue("spark" if request.param == "spark" else "in_process"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what does not run under Spark; the first case of each test does."""
    seen: dict[str, int] = {}
    left, gone = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        callspec = getattr(item, "callspec", None)
        given = {} if callspec is None else callspec.params
        if given.get("session") != "spark":
            if (
                given.get("session") == "in process"
                and "nothing_comes" not in item.nodeid
                and (why := REFUSED.get(str(given.get("name", given.get("query")))))
            ):
                item.add_marker(pytest.mark.xfail(raises=(NotProven, QueryError), reason=why, strict=True))
            left.append(item)
            continue
        test = item.nodeid.partition("[")[0]
        seen[test] = seen.get(test, -1) + 1
        (gone if seen[test] % UNDER_SPARK else left).append(item)
    config.hook.pytest_deselected(items=gone)
    items[:] = left
