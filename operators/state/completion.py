"""Completion of groups: every possible tuple of a group is covered, by one punctuation or by several together.

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


def completion_sets(input_: Schema, names: Sequence[str] | Schema, number: int = 0) -> dict[str, Schema]:
    """The sets that `completed` keeps of an input, for its operator to declare.

    Args:
        input_: The input's schema.
        names: The attributes to be complete; as a schema, under the names and of the types that they get.
        number: The input's.
    """
    over = names if isinstance(names, Schema) else Schema(tuple(map(input_.attribute, names)))
    return {f"input-{number}": input_, f"closed-{number}": over}


def completed(
    punctuations: Sequence[Punctuation], names: Sequence[str], state: OperatorState, input_: int = 0
) -> list[Punctuation]:
    """The punctuations on the named attributes of an input that newly hold, minimal; others wait in the state."""
    held, closed = state.punctuations(f"input-{input_}"), closed_so_far(state, input_)
    new = held.absorb(punctuations)
    return closed.absorb(project(held.set, names, closed.set.schema, new=new)) if new else []


def closed_so_far(state: OperatorState, input_: int = 0) -> HeldPunctuations:
    """All that `completed` has found of an input."""
    return state.punctuations(f"closed-{input_}")
