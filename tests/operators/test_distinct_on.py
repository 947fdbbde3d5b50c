from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.harness.running import Running
from xmlstream.operators.distinct_on import DistinctOn
from xmlstream.operators.state.ages import PurgeAfter
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import parse_schemes

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session

VISITS = Schema.parse("id INT, page INT")


def test_it_is_cleansed_where_each_key_is_closed() -> None:
    (model,) = DistinctOn(("id",)).state_schema(VISITS).models
    closed = {text: model.until.holds([(VISITS, parse_schemes(text, VISITS))]) for text in ("id", "page", "id, page")}
    assert closed == {"id": True, "page": False, "id, page": False}


def test_a_key_is_an_attribute() -> None:
    with pytest.raises(UsageError, match="no attribute user"):
        DistinctOn(("user",)).schema(VISITS)


def test_the_first_tuple_of_each_key_comes_in_a_slice_and_after_it(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, DistinctOn(("id",)), VISITS, positioned=True)
    running.shows(
        "(1, 5) (2, 9) (1, 4) | (2, 1) (3, 3) | <[1,2], *> | (3, 8) (4, 8) <*, 3>",
        out="(1, 5) (2, 9)    | (3, 3)        | <[1,2], *> | (4, 8) <*, 3>       ",
        kept="2               | 3             | 1          | 2                   ",
    )  # fmt: skip
    running.restart()
    running.shows("(3, 1) (4, 1) (5, 1) | <*, *>", out="(5, 1) | <*, *>", kept="3 | 0")


KEY = st.none() | st.integers(0, 3)


@given(st.lists(st.lists(st.tuples(KEY, KEY), max_size=6), max_size=3), st.sampled_from([("id",), ("id", "page")]))
def test_few_tuples_are_compared_here_as_the_engine_compares_them(
    in_process: InProcessSession, slices: list[list[tuple[int, int]]], keys: tuple[str, ...]
) -> None:
    found = []
    for here in (True, False):
        with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as directory:
            if not here:
                patch.setattr("xmlstream.operators.frames.matching.first_rows", lambda *_: None)
            running = Running(in_process, Path(directory), DistinctOn(keys), VISITS, positioned=True)
            found.append([(Counter(done.tuples), done.kept) for done in (running.slice((rows, [])) for rows in slices)])
    assert found[0] == found[1]


def test_null_is_a_key(session: Session, tmp_path: Path) -> None:
    Running(session, tmp_path, DistinctOn(("id",)), VISITS, positioned=True).shows(
        "(null, 1) (null, 2) (1, 1) | <null, *>",
        out="(null, 1) (1, 1)       | <null, *>",
        kept="2                     | 1        ",
    )  # fmt: skip


def test_several_punctuations_together_close_a_key(session: Session, tmp_path: Path) -> None:
    Running(session, tmp_path, DistinctOn(("id",)), VISITS, positioned=True).shows(
        "(1, 1) | <1, (,4]>  | <1, [5,)>  | <1, null>",
        out="(1, 1) | <1, (,4]> | <1, [5,)> | <1, null>",
        kept="1  | 1  | 1 | 0",
    )  # fmt: skip


def test_a_key_that_is_overdue_is_new_again(session: Session, tmp_path: Path) -> None:
    after = PurgeAfter(slices=1)
    running = Running(session, tmp_path, DistinctOn(("id",)), VISITS, positioned=True, purge_after=after)
    running.shows("(1, 1) | | | (1, 2)", out="(1, 1) | | | (1, 2)")


def test_without_the_order_of_a_source_there_is_no_first(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, DistinctOn(("id",)), VISITS)
    with pytest.raises(QueryError, match="needs the order of a source"):
        running.shows("(1, 1)", out="")
