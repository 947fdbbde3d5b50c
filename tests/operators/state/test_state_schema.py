"""State is taken up under the names that its operator declares, and under no others."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.harness.saying import NO_STORE
from xmlstream.operators.difference import Difference
from xmlstream.operators.merge import Merge
from xmlstream.operators.sort import Sort
from xmlstream.operators.sort_order import SortKey
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT
from xmlstream.punct_ns.errors import StateError
from xmlstream.punct_ns.schema import Schema

NUMBER = Schema.parse("n INT")


def recorded(operator: Any, *inputs: Schema) -> OperatorRecord:
    record = OperatorState(NO_STORE, inputs, operator.state_schema(*inputs)).record(whole=True)
    return OperatorRecord.from_json(json.loads(json.dumps(record.json())))


def taken_up(record: OperatorRecord, operator: Any, *inputs: Schema) -> OperatorState:
    return OperatorState(NO_STORE, inputs, operator.state_schema(*inputs), record)


def test_a_record_names_all_that_is_declared_used_or_not() -> None:
    record = recorded(Difference(NUMBER), NUMBER, NUMBER)
    assert record.format == CHECKPOINT_FORMAT
    assert set(record.kept) == {"undecided", "second", "emitted"}
    assert set(record.sets) == {"input-0", "input-1", "common", "sent", "waiting-0"}
    taken_up(record, Difference(NUMBER), NUMBER, NUMBER)


@pytest.mark.parametrize(("kind", "called"), [("kept", "logs"), ("sets", "punctuation sets")])
def test_what_was_recorded_under_another_name_is_refused_and_not_read_as_empty(kind: str, called: str) -> None:
    operator = Difference(NUMBER)
    for change in ("rename", "lose", "find"):
        record = recorded(operator, NUMBER, NUMBER)
        named: Any = dict(getattr(record, kind))
        before, now = sorted(named), ", ".join(sorted(named))
        lost = named.pop(before[0]) if change in ("rename", "lose") else named[before[0]]
        if change in ("rename", "find"):
            named["other"] = lost
        names = ", ".join(sorted(named))
        text = f"the recorded state has the {called} {names}; in this version of xmlstream they are {now}"
        with pytest.raises(StateError, match=f"^{re.escape(text)}") as told:
            taken_up(replace(record, **{kind: named}), operator, NUMBER, NUMBER)
        assert "the version that wrote it" in (told.value.hint or "")


def test_a_note_that_nothing_declares_is_refused() -> None:
    operator = Sort((SortKey("n"),))
    record = replace(recorded(operator, NUMBER), notes={"place": 7})
    with pytest.raises(StateError, match="has the notes place; in this version of xmlstream they are position"):
        taken_up(record, operator, NUMBER)
    state = OperatorState(NO_STORE, (NUMBER,), operator.state_schema(NUMBER))
    state.notes["place"] = 7
    with pytest.raises(RuntimeError, match="does not declare the notes place"):
        state.record(whole=True)


def test_a_record_of_another_format_or_of_none_is_refused() -> None:
    operator = Merge(NUMBER)
    for other in (CHECKPOINT_FORMAT - 1, CHECKPOINT_FORMAT + 1, None):
        said = f"has format {other}, and this version of xmlstream reads {CHECKPOINT_FORMAT}"
        with pytest.raises(StateError, match=said) as told:
            taken_up(replace(recorded(operator, NUMBER), format=other), operator, NUMBER)
        assert "the version that wrote it" in (told.value.hint or "")


def test_the_scratch_of_a_slice_is_another_in_the_next() -> None:
    operator = Merge(NUMBER)
    state = OperatorState(NO_STORE, (NUMBER,), operator.state_schema(NUMBER))
    first = state.scratch(list)
    first.append(1)
    assert state.scratch(list) is first
    state.begin(datetime.now(UTC))
    assert state.scratch(list) == []
