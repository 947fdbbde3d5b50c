"""Operators of punctuated streams: initial state, step, pass, propagate, keep (Tucker et al. 2003, §4.2).

A query walks its operators once per slice. Each maps the slices of its inputs to one output slice, in four behaviours
called in turn: all tuples of the slice are stepped before its punctuations act, which is sound because a grammatical
stream has no tuple after a punctuation that matches it.

Differs: the paper propagates before it keeps. Here keep comes first, because what a join, an intersect or a difference
may propagate is judged by what is still kept once its state is purged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from operators.groupings import Benefits
from operators.logical_properties import LogicalProperties
from operators.wants import Wants
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from operators.state.operator_state import OperatorState
    from operators.state.state_schema import StateSchema


@dataclass(frozen=True, slots=True)
class Tuples:
    """Tuples of one slice: a lazy frame, one column per attribute, and how many there are at the most.

    `exact` says that `at_most` is the number itself, `computed` that reading the frame twice computes nothing twice,
    `of_each` how many there are for each tuple that the operator's inputs brought, where it makes as many of each.
    """

    frame: DataFrame
    at_most: int
    exact: bool = True
    computed: bool = False
    of_each: int | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice of a punctuated stream: the tuples first, then the punctuations that came with them."""

    tuples: Tuples | None
    punctuations: tuple[Punctuation, ...] = ()


class Operator(LogicalProperties, Benefits, Wants, Protocol):
    """The behaviours of one operator; `inputs` holds one slice per input, `state` what was kept from slice to slice.

    What one behaviour finds for the next ones of its slice has a name in the scratch of the state. What the optimizer
    knows of an operator are its logical properties, which have answers that are right for any operator.
    """

    __slots__ = ()

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """What is kept from slice to slice, by name. Pure."""

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """What goes out because tuples came."""

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """What goes out because punctuations came."""

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """Purge what no later slice can need."""

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        """The punctuations that hold for the output from here on."""


def advance(operator: Operator, inputs: Sequence[Slice], state: OperatorState) -> Slice:
    """One slice through one operator: step, pass, keep, propagate."""
    stepped = operator.step(inputs, state)
    passed = operator.pass_(inputs, state)
    operator.keep(inputs, state)
    punctuations = operator.propagate(inputs, state)
    return Slice(bag_union([part for part in (stepped, passed) if part is not None]), tuple(punctuations))


def bag_union(parts: Sequence[Tuples]) -> Tuples | None:
    """The bag union of frames with equal columns; None for none."""
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    frame = parts[0].frame
    for part in parts[1:]:
        frame = frame.unionAll(part.frame)
    exact, computed = all(part.exact for part in parts), all(part.computed for part in parts)
    return Tuples(frame, sum(part.at_most for part in parts), exact, computed)
