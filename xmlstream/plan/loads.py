"""Loads: how many tuples an operator of a plan keeps, and how many come to it, as a former run has measured them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """What an operator keeps after a slice, and what comes to it in one, in tuples."""

    kept: float
    came: float

    @property
    def slices(self) -> float:
        """For how many slices a tuple is kept, in the mean; 0 where none came.

        >>> Load(kept=1000, came=100).slices
        10.0
        """
        return self.kept / self.came if self.came else 0.0


Loads = Mapping[str, Load]
"""Of each operator of a plan, by its name there (`xmlstream.plan.nodes.names`)."""
