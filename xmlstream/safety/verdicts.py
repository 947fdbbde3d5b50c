"""Verdicts: when each operator of a plan answers, and what it keeps until when.

A query is *enabled* if all its answers go out in the end, *cleansed* if all that it keeps is forgotten in the end; it
*benefits* from its schemes if it is both. State that has a bound of its own, since its values are finitely many, is
safe without being forgotten.

Source: Tucker et al. 2007, §3.3, Theorems 2 and 4; Li et al. 2006, §2.1, Definitions 1 to 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from operators.groupings import Condition, Grouping, StateModel
from xmlstream.plan.nodes import Node, Results, Scan, Static, names, topological
from xmlstream.safety.promises import Additions, Promised, of_inputs, promised


class When(IntEnum):
    """When something that an operator waits for comes, the sooner the less."""

    AT_ONCE = 0
    CLOSED = 1
    AT_THE_END = 2
    NEVER = 3


@dataclass(frozen=True, slots=True)
class Waiting:
    """When a condition comes true, and the groupings by which it does; of NEVER those that no scheme closes."""

    when: When
    groupings: tuple[Grouping, ...] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """The verdict on one log of tuples: what they are, when each is forgotten, and what their input promises."""

    model: StateModel
    until: Waiting
    of: Promised

    @property
    def is_bounded(self) -> bool:
        """Whether it does not grow for ever: its tuples are forgotten, or finitely many, or of an input that ends."""
        return self.until.when < When.NEVER or self.model.most is not None or self.of.ends


@dataclass(frozen=True, slots=True)
class OperatorVerdict:
    """When an operator answers, what it keeps, and what its output promises then."""

    node: Node
    name: str
    answers: Waiting
    keeps: tuple[Kept, ...]
    promises: Promised

    @property
    def is_enabled(self) -> bool:
        """Whether all its output tuples go out in the end."""
        return self.answers.when < When.NEVER

    @property
    def is_safe(self) -> bool:
        """Whether all that it keeps is bounded."""
        return all(kept.is_bounded for kept in self.keeps)

    @property
    def is_cleansed(self) -> bool:
        """Whether all that it keeps is forgotten in the end."""
        return all(kept.until.when < When.NEVER for kept in self.keeps)


@dataclass(frozen=True, slots=True)
class QueryVerdict:
    """The verdicts on a plan's operators, inputs before what is made of them."""

    operators: tuple[OperatorVerdict, ...]

    @property
    def is_enabled(self) -> bool:
        """Whether every answer goes out in the end."""
        return all(verdict.is_enabled for verdict in self.operators)

    @property
    def is_safe(self) -> bool:
        """Whether no state grows for ever."""
        return all(verdict.is_safe for verdict in self.operators)

    @property
    def is_cleansed(self) -> bool:
        """Whether nothing is kept once all that was promised has come."""
        return all(verdict.is_cleansed for verdict in self.operators)

    @property
    def benefits(self) -> bool:
        """Whether it is enabled and cleansed."""
        return self.is_enabled and self.is_cleansed

    @property
    def answers(self) -> When:
        """When its last answers go out: when the slowest of its operators answers."""
        return max((verdict.answers.when for verdict in self.operators), default=When.AT_ONCE)

    def troubled(self) -> tuple[OperatorVerdict, ...]:
        """The operators that never answer, or keep without bound."""
        return tuple(verdict for verdict in self.operators if not (verdict.is_enabled and verdict.is_safe))


def judged(root: Node, *, follow: bool = False, additions: Additions | None = None) -> QueryVerdict:
    """The verdict on a plan; pure, without Spark.

    Args:
        root: The plan.
        follow: Whether its sources are waited for, so that nobody knows of an end of theirs.
        additions: What sources would promise besides.
    """
    known, called = promised(root, follow=follow, additions=additions), names(root)
    return QueryVerdict(tuple(_operator(node, called[node], known) for node in topological(root)))


def _operator(node: Node, name: str, known: Mapping[Node, Promised]) -> OperatorVerdict:
    operator = node.operator
    if isinstance(operator, Scan | Static | Results):
        return OperatorVerdict(node, name, Waiting(When.AT_ONCE), (), known[node])
    inputs = [below.schema for below in node.inputs]
    answers = _waiting(operator.enabled_by(*inputs), node, known)
    keeps = tuple(
        Kept(model, _waiting(model.until, node, known), known[node.inputs[model.input]])
        for model in operator.state_models(*inputs)
    )
    return OperatorVerdict(node, name, answers, keeps, known[node])


def _waiting(condition: Condition, node: Node, known: Mapping[Node, Promised]) -> Waiting:
    running, ended = (of_inputs(node, known, ended=ended) for ended in (False, True))
    if condition.holds(running):
        groupings = tuple(dict.fromkeys(condition.groupings(running)))
        at_once = all(known[node.inputs[grouping.input]].is_static for grouping in groupings)
        return Waiting(When.AT_ONCE) if at_once else Waiting(When.CLOSED, groupings)
    missing = tuple(dict.fromkeys(condition.groupings(running)))
    return Waiting(When.AT_THE_END if condition.holds(ended) else When.NEVER, missing)
