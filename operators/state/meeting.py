"""Meeting of punctuations: what several streams have said, each over the same attributes, holds for all of them.

setCombine of Tucker et al. 2003, Table 3. What one stream has said waits until all have; what all have said is handed
on, and where it is isolated forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from operators.state.operator_state import OperatorState
from punct_ns.lifespan import shortest
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema


def meeting_sets(streams: Sequence[str], attributes: Schema) -> dict[str, Schema]:
    """The sets that `met` keeps, for its operator to declare: one for each stream, and what all have said."""
    return dict.fromkeys([*streams, "sent"], attributes)


def met(streams: Sequence[str], said: Sequence[Iterable[Punctuation]], state: OperatorState) -> list[Punctuation]:
    """What newly holds for all streams, minimal: the meets of what each newly says with all that the others have said.

    Args:
        streams: The names of their sets in the state.
        said: What each of them newly says, over the attributes of these sets.
        state: The operator's, with the sets of `meeting_sets`.
    """
    every = [state.punctuations(name) for name in streams]
    new = [held.absorb(given) for held, given in zip(every, said, strict=True)]
    found: list[Punctuation] = []
    for i, narrowed in enumerate(new):
        for j, held in enumerate(every):
            if i != j and narrowed:
                narrowed = held.set.meets(narrowed)  # noqa: PLW2901  by one stream after the other
        found += narrowed
    if any(held.passes for held in every):
        found = [p.lasting(None) for p in found]
        for held in every:
            parts = [(p.lifespan, part) for p in found for part in held.for_its_time([p])]
            found = [part.lasting(shortest((lifespan, part.lifespan))) for lifespan, part in parts]
    sent = state.punctuations("sent")
    out = sent.absorb(found)
    for held in (*every, sent):
        # All streams have closed it, and it goes out: there is nothing left to meet it.
        held.forget(p for p in found if p.lifespan is None)
    return out
