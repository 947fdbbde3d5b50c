"""When a group is complete: every possible tuple of it is covered, by one punctuation or by several together.

What project and group_by share: the punctuations over some of the attributes that a stream's punctuations amount to
(`projPs` and `groupPs` of Tucker et al. 2003, §5.2 and §5.3, in the more informative form that the paper leaves open).
A punctuation that also restricts another attribute completes nothing by itself; with its fellows it may.
"""

from __future__ import annotations

from collections.abc import Sequence

from operators.state.operator_state import HeldPunctuations, OperatorState
from punct_ns.projection import project
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema


def completed(
    punctuations: Sequence[Punctuation],
    names: Sequence[str],
    state: OperatorState,
    input_: int = 0,
    schema: Schema | None = None,
) -> list[Punctuation]:
    """The punctuations on the named attributes of an input that newly hold, minimal; others wait in the state.

    They are written over `schema`, which holds what the named attributes are called, in their order, and of which type.
    """
    held, closed = (
        state.punctuations(f"input-{input_}", state.inputs[input_]),
        closed_so_far(names, state, input_, schema),
    )
    new = held.absorb(punctuations)
    return closed.absorb(project(held.set, names, closed.set.schema, new=new)) if new else []


def closed_so_far(
    names: Sequence[str], state: OperatorState, input_: int = 0, schema: Schema | None = None
) -> HeldPunctuations:
    """All that `completed` has found of the named attributes of an input."""
    if schema is None:
        schema = Schema(tuple(state.inputs[input_].attribute(name) for name in names))
    return state.punctuations(f"closed-{input_}", schema)
