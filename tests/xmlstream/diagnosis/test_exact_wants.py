"""What is told to be missing is all that is, and no more: once exactly that comes the group goes, and others stay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.properties.stalling import Stall, Stalled
from tests.properties.test_stalls_of_operators import MOMENTS, SPACE, TABLES
from xmlstream.punct_ns.punctuation import Punctuation

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

WITHIN = "r JOIN s ON r.k = s.k AND s.t BETWEEN r.t AND r.t + INTERVAL 2 SECONDS"
BY_LEFT = f"SELECT CAST(count(*) AS INT) AS n, max(r.k) AS k FROM {WITHIN} GROUP BY window(r.t, '4 seconds')"
BY_RIGHT = f"SELECT CAST(count(*) AS INT) AS n, max(r.k) AS k FROM {WITHIN} GROUP BY window(s.t, '4 seconds')"
BY_KEY = f"SELECT CAST(count(*) AS INT) AS n, r.k FROM {WITHIN} GROUP BY r.k, window(s.t, '4 seconds')"


def at(text: str) -> str:
    """A punctuation in which `1s` stands for a moment."""
    for second in range(10):
        text = text.replace(f"{second}s", f"2003-05-15T17:20:0{second}Z")
    return text.replace("Z.", ".").replace("~", "Z")


@pytest.mark.parametrize(
    ("query", "said", "missing"),
    [
        (BY_LEFT, {"r": "<*, (,9s), *>", "s": "<*, (,3s), *>"}, {"s": ["<0, 3s, *>"]}),
        (BY_LEFT, {"r": "<*, (,2s), *>", "s": "<*, (,9s), *>"}, {"r": ["<*, [2s,3s.999999~], *>"]}),
        (BY_RIGHT, {"r": "<*, (,2s), *>", "s": "<*, (,9s), *>"}, {"r": ["<0, 2s, *>"]}),
        (BY_KEY, {"r": "<*, (,9s), *>", "s": "<*, (,3s), *>"}, {"s": ["<0, [3s,3s.999999~], *>"]}),
        (BY_KEY, {}, {"r": ["<0, [1s,2s], *>"], "s": ["<0, [1s,3s.999999~], *>"]}),
    ],
)  # fmt: skip
def test_of_a_window_over_a_join_within_a_range_no_more_is_told_to_be_missing_than_is(
    session: Session, tmp_path: Path, query: str, said: dict[str, str], missing: dict[str, list[str]]
) -> None:
    tuples = {
        "r": [(0, MOMENTS[1], 0), (1, MOMENTS[5], 0)],
        "s": [(0, MOMENTS[2], 0), (1, MOMENTS[6], 0)],
        "u": [],
    }
    closed = said or dict.fromkeys("rs", "<*, (,1s), *>")
    stall = Stall.pinned(SPACE.schema, query, tuples, {name: [at(text)] for name, text in closed.items()}, {})
    stalled = Stalled(session, tmp_path, TABLES.format_map({"r": "t prefix", "s": "t prefix", "u": "t"}), stall)

    def groups() -> dict[str, dict[str, list[str]]]:
        return {
            str(row["window.start"]): {
                stalled.name(lack.node): [str(p) for p in lack.missing] for lack in stalled.lacking(node, log, row)
            }
            for node, log, row in stalled.waiting()
            if log == "groups"
        }

    expected = {name: [at(text) for text in texts] for name, texts in missing.items()}
    first, second = groups().items()
    assert first[1] == expected
    parts = [(name, text) for name, texts in expected.items() for text in texts]
    for number, (name, text) in enumerate(parts):
        assert first[0] in groups(), f"it went without {parts[number:]}"
        stalled.say({name: [Punctuation.parse(text, SPACE.schema)]})
    assert list(groups()) == [second[0]]


BY_VALUE = "SELECT n FROM (SELECT s.v AS n FROM r LEFT JOIN s ON r.k = s.k) AS p GROUP BY n"


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        (["<*, *, 0>"], ["<*, *, 1>"]),
        (["<0, *, *>", "<[2,), *, *>"], ["<(,-1], *, 1>", "<1, *, 1>"]),
        (["<*, *, 0>", "<0, *, 1>"], ["<(,-1], *, 1>", "<[1,), *, 1>"]),
    ],
)
def test_of_a_side_that_nulls_stand_for_it_is_told_what_it_lacks_by_whatever_it_has_said_so_far(
    session: Session, tmp_path: Path, said: list[str], missing: list[str]
) -> None:
    """Also by its keys, which the groups are not of: so the group goes out while the other side goes on."""
    tuples = {"r": [(0, MOMENTS[1], 0)], "s": [(0, MOMENTS[2], 1)], "u": []}
    stall = Stall.pinned(SPACE.schema, BY_VALUE, tuples, {"s": said, "r": ["<0, *, *>"]}, {})
    stalled = Stalled(session, tmp_path, TABLES.format_map({"r": "k", "s": "k; v", "u": "t"}), stall)
    (asked,) = [each for each in stalled.waiting() if each[1] == "groups"]
    assert [(stalled.name(lack.node), [*map(str, lack.missing)]) for lack in stalled.lacking(*asked)] == [
        ("s", missing)
    ]
    for text in missing:
        assert asked in stalled.waiting()
        stalled.say({"s": [Punctuation.parse(text, SPACE.schema)]})
    assert asked not in stalled.waiting()
