"""What operators make of punctuations alone: no tuples, no Spark, thousands of streams a second."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from tests.harness import notation
from xmlstream.operators.behaviour import Operator
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice
from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

NO_STORE = cast(SegmentStore, None)  # nobody keeps a tuple here


class Saying:
    """One operator with its state, over slices without tuples."""

    def __init__(self, operator: Operator, *inputs: Schema) -> None:
        self.operator, self.inputs = operator, inputs
        self.output = operator.schema(*inputs)
        self.state = OperatorState(NO_STORE, inputs, operator.state_schema(*inputs))

    def slice(self, *said: Sequence[Punctuation]) -> list[Punctuation]:
        """What goes out when these come, from each input."""
        slices = [Slice(None, tuple(punctuations)) for punctuations in said]
        assert self.operator.step(slices, self.state) is None
        assert self.operator.pass_(slices, self.state) is None
        self.operator.keep(slices, self.state)
        return list(self.operator.propagate(slices, self.state))

    def shows(self, *lines: str, out: str) -> None:
        """Asserts a table: what comes in, a line an input, and what goes out."""
        slices = notation.inputs(lines, self.inputs)
        found = [notation.shown(self.slice(*(said for _, said in each)), self.output) for each in slices]
        assert found == [notation.shown(each, self.output) for each in notation.slices(out, self.output)]

    def restart(self) -> None:
        """As after a crash: what the last slice recorded, as a commit writes it."""
        record = OperatorRecord.from_json(json.loads(json.dumps(self.state.record(whole=True).json())))
        self.state = OperatorState(NO_STORE, self.inputs, self.operator.state_schema(*self.inputs), record)
