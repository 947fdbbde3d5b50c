"""When a group is complete: every possible tuple of it is covered, by one punctuation or by several together.

What project and group_by share: the punctuations over some of the attributes that a stream's punctuations amount to
(`projPs` and `groupPs` of Tucker et al. 2003, §5.2 and §5.3, in the more informative form that the paper leaves open).
A punctuation that also restricts another attribute completes nothing by itself; with its fellows it may.
"""

from __future__ import annotations

from collections.abc import Sequence

from operators.state import OperatorState
from punct_ns.projection import project
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema


def completed(punctuations: Sequence[Punctuation], names: Sequence[str], state: OperatorState) -> list[Punctuation]:
    """The punctuations on the named attributes that newly hold, minimal; others wait in the state."""
    schema = state.inputs[0]
    chosen = Schema(tuple(schema.attribute(name) for name in names))
    held, closed = state.punctuations("input", schema), state.punctuations("closed", chosen)
    new = held.absorb(punctuations)
    return closed.absorb(project(held.set, names, chosen, new=new)) if new else []
