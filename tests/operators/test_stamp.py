"""stamp: the slice's time on each tuple, and that what is before it has passed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import xmlstream.testing as xt
from tests.harness.running import rows_of, tuples_of
from tests.harness.saying import Saying
from xmlstream.operators.stamp import Stamp
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import format_schemes, parse_schemes
from xmlstream.session.engines import engine_of

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

HERE = Schema.parse("a INT, b STRING")
STAMP = Stamp(Attribute("at", Domain("TIMESTAMP", nullable=False)))
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def test_it_promises_ever_later_times_beside_what_its_input_promises() -> None:
    assert STAMP.schema(HERE).names == ("a", "b", "at")
    assert format_schemes(STAMP.schemes(parse_schemes("a; b", HERE))) == "a; b; at prefix"
    assert STAMP.lineage(["a"], HERE) == [("a",)]
    assert STAMP.lineage(["a", "at"], HERE) is None
    assert STAMP.passes_duplicates({"a"}, HERE)
    assert not STAMP.passes_duplicates({"a", "at"}, HERE)
    (way,) = STAMP.wanted(Punctuation.of(STAMP.schema(HERE), a="3"), None, HERE)  # type: ignore[arg-type]  # none asked
    assert [str(p) for _, p in way] == ["<3, *>"]


def test_a_punctuation_that_ends_goes_on_with_its_lifespan() -> None:
    saying = Saying(STAMP, HERE)
    saying.state.begin(BEGIN)
    ending = Punctuation.parse("<1, *> until 2026-02-01T00:00:00+00:00", HERE)
    assert saying.slice([ending])[0].lifespan == ending.lifespan


def test_tuples_bear_the_time_and_what_is_before_it_is_closed_once(session: Session, tmp_path: Path) -> None:
    state = OperatorState(SegmentStore(engine_of(session), tmp_path), (HERE,), STAMP.state_schema(HERE))
    said: list[list[str]] = []
    for seconds, rows in ((1, [(1, "x"), (1, "x")]), (1, [(2, None)]), (3, [])):
        state.begin(BEGIN + timedelta(seconds=seconds))
        slice_ = Slice(tuples_of(session, rows, HERE), (Punctuation.of(HERE, a=str(seconds)),))
        stamped = STAMP.step([slice_], state)
        found = [] if stamped is None else rows_of(stamped, STAMP.schema(HERE))
        assert found == [(*row, BEGIN + timedelta(seconds=seconds)) for row in rows]
        said.append([str(p) for p in STAMP.propagate([slice_], state)])
    assert said == [
        ["<1, *, *>", "<*, *, (,2026-01-01T00:00:00.999999Z]>"],
        ["<1, *, *>"],
        ["<3, *, *>", "<*, *, (,2026-01-01T00:00:02.999999Z]>"],
    ]


def test_the_number_of_a_slice_is_closed_with_it(session: Session, tmp_path: Path) -> None:
    stamp = Stamp(Attribute("n", Domain("BIGINT", nullable=False)))
    state = OperatorState(SegmentStore(engine_of(session), tmp_path), (HERE,), stamp.state_schema(HERE))
    for number in (7, 8):
        state.begin(BEGIN, number)
        slice_ = Slice(tuples_of(session, [(1, "x")], HERE))
        stamped = stamp.step([slice_], state)
        assert stamped is not None
        assert rows_of(stamped, stamp.schema(HERE)) == [(1, "x", number)]
        assert [str(p) for p in stamp.propagate([slice_], state)] == [f"<*, *, (,{number}]>"]


def test_a_column_that_nothing_needs_is_not_read(session: Session) -> None:
    table = "CREATE TABLE s (k INT, v INT) USING punctuated_xml OPTIONS (path 's.xml', rowTag 'r', schemes 'k');"
    case = xt.case(f"{table} SELECT k, current_timestamp() AS at FROM s", session=session)
    assert case.slice(s="(1, 2)").tuples == [(1, BEGIN)]
