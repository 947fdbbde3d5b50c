"""Verdicts: when each operator of a plan emits its results, and how long it keeps its state.

Schemes propagate from the sources through the operators (Tucker et al. 2007, §6.2 and Fig. 6, availablePSchemes). The
schemes of its inputs determine the verdict on each operator.

A query is *enabled* if it emits all its results in the end, *cleansed* if it purges all its state in the end; it
*benefits* from its schemes if it is both. State whose values are finitely many is bounded, and safe without a purge.

Source: Tucker et al. 2007, §3.3, Theorems 2 and 4; Li et al. 2006, §2.1, Definitions 1 to 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import cached_property

from xmlstream.dataclasses import dataclass
from xmlstream.operators.behaviour import promised as promised_by
from xmlstream.operators.closing_conditions import Condition, Grouping, Promises, StateModel
from xmlstream.plan.nodes import Node, Results, Scan, Static, is_endless, names, topological
from xmlstream.punct_ns.scheme import Scheme, strongest

END = Scheme(())
"""The scheme without terms: it promises the end of the stream."""

Additions = Mapping[str, Sequence[Scheme]]
"""Additional schemes to try, by the names of sources."""


@dataclass(frozen=True, slots=True)
class Promised:
    """The schemes of a node's output.

    Attributes:
        running: Schemes that hold even if the sources never end.
        ended: Schemes that hold if the sources end.
        is_static: The node reads only tables, so it ends after the first slice.
    """

    running: tuple[Scheme, ...]
    ended: tuple[Scheme, ...]
    is_static: bool = False

    @property
    def ends(self) -> bool:
        """Whether the output ends although the sources never end."""
        return END in self.running


def all_promises(
    root: Node,
    *,
    follow: bool = False,
    additions: Additions | None = None,
) -> dict[Node, Promised]:
    """Returns the schemes of each node of a plan.

    Args:
        root: The plan.
        follow: The run waits for more input, so that the sources have no known end.
        additions: Schemes to add to those of the sources.
    """
    found: dict[Node, Promised] = {}
    for node in topological(root):
        operator = node.operator
        if isinstance(operator, Scan):
            running = (*operator.options.schemes, *(additions or {}).get(operator.name, ()))
            found[node] = Promised(running, running if follow or is_endless(node) else (END,))
        elif isinstance(operator, Static):
            running = (END,)
            found[node] = Promised(running, running, is_static=True)
        else:
            found[node] = promises_above(node, found)
    return found


def promises_above(node: Node, known: Mapping[Node, Promised]) -> Promised:
    """Returns the schemes of a node with inputs, by those of its inputs."""
    operator = node.operator
    if isinstance(operator, Results):
        return Promised((), ())
    assert not isinstance(operator, Scan | Static)  # they have no inputs
    below = [known[input_] for input_ in node.inputs]
    running = strongest(promised_by(operator, of_inputs(node, known, ended=False)), node.schema)
    # Inputs without a known end add no schemes.
    ended = running
    if any(each.ended is not each.running for each in below):
        ended = strongest(promised_by(operator, of_inputs(node, known, ended=True)), node.schema)
    return Promised(running, ended, all(each.is_static for each in below))


def of_inputs(node: Node, known: Mapping[Node, Promised], *, ended: bool) -> Promises:
    """The schemas and schemes of a node's inputs."""
    return [(below.schema, known[below].ended if ended else known[below].running) for below in node.inputs]


class When(IntEnum):
    """When a condition comes true; sooner is less."""

    AT_ONCE = 0
    CLOSED = 1
    AT_THE_END = 2
    NEVER = 3


@dataclass(frozen=True, slots=True)
class Waiting:
    """When a condition on an operator's inputs comes true, by their schemes."""

    when: When
    condition: Condition
    promises: Promises

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """The groupings that must close; if it waits for an end, or for ever, those that do not close."""
        if self.when is When.AT_ONCE:
            return ()
        return tuple(dict.fromkeys(self.condition.groupings(self.promises)))


@dataclass(frozen=True, slots=True)
class Kept:
    """The verdict on one log of kept tuples: its model, when its tuples are purged, and the schemes of its input."""

    model: StateModel
    until: Waiting
    of: Promised

    @property
    def is_bounded(self) -> bool:
        """Whether the log does not grow for ever: its tuples are purged, finitely many can be kept, or its input ends.

        A fixed number of tuples of each key is finite only if the keys are finitely many.
        """
        return self.until.when < When.NEVER or self.model.most is not None or self.of.ends


@dataclass(frozen=True, slots=True)
class OperatorVerdict:
    """The verdict on an operator: when it emits its results, what it keeps, and the schemes of its output."""

    node: Node
    name: str
    answers: Waiting
    keeps: tuple[Kept, ...]
    promises: Promised

    @property
    def is_enabled(self) -> bool:
        """Whether the operator emits all its results in the end."""
        return self.answers.when < When.NEVER

    @property
    def is_safe(self) -> bool:
        """Whether all its logs are bounded."""
        return all(kept.is_bounded for kept in self.keeps)

    @property
    def is_cleansed(self) -> bool:
        """Whether it purges all kept tuples in the end."""
        return all(kept.until.when < When.NEVER for kept in self.keeps)


class Verdicts(dict[Node, OperatorVerdict]):
    """The verdicts on all operators of a plan."""

    @cached_property
    def has_several_sources(self) -> bool:
        """Whether the plan reads several sources."""
        return sum(isinstance(node.operator, Scan) for node in self) > 1


@dataclass(frozen=True, slots=True)
class QueryVerdict:
    """The verdicts on the operators of a plan, inputs first."""

    operators: tuple[OperatorVerdict, ...]

    @property
    def by_node(self) -> Verdicts:
        """The verdicts by their nodes."""
        return Verdicts({verdict.node: verdict for verdict in self.operators})

    @property
    def is_enabled(self) -> bool:
        """Whether the query emits all its results in the end."""
        return all(verdict.is_enabled for verdict in self.operators)

    @property
    def is_safe(self) -> bool:
        """Whether all its state is bounded."""
        return all(verdict.is_safe for verdict in self.operators)

    @property
    def is_cleansed(self) -> bool:
        """Whether it purges all its state in the end."""
        return all(verdict.is_cleansed for verdict in self.operators)

    @property
    def answers(self) -> When:
        """When the slowest of its operators emits its results."""
        return max((verdict.answers.when for verdict in self.operators), default=When.AT_ONCE)

    def troubled(self) -> tuple[OperatorVerdict, ...]:
        """The operators that never emit their results, or keep tuples without bound."""
        return tuple(verdict for verdict in self.operators if not (verdict.is_enabled and verdict.is_safe))


def judged(
    root: Node,
    *,
    follow: bool = False,
    additions: Additions | None = None,
    known: Mapping[Node, Promised] | None = None,
) -> QueryVerdict:
    """Returns the verdict on a plan, from its schemes alone, without Spark.

    Args:
        root: The plan.
        follow: The run waits for more input, so that the sources have no known end.
        additions: Schemes to add to those of the sources.
        known: The schemes of each node, if `all_promises` has computed them already.
    """
    called = names(root)
    if known is None:
        known = all_promises(root, follow=follow, additions=additions)
    return QueryVerdict(tuple(verdict_on(node, called[node], known) for node in topological(root)))


def verdict_on(node: Node, name: str, known: Mapping[Node, Promised]) -> OperatorVerdict:
    """Returns the verdict on an operator with that name, by the schemes of its inputs."""
    below = [known[input_] for input_ in node.inputs]
    running = of_inputs(node, known, ended=False)
    may_end = any(each.ended is not each.running for each in below)
    ended = of_inputs(node, known, ended=True) if may_end else running

    def waiting(condition: Condition) -> Waiting:
        if condition.holds(running):
            is_static = all(below[grouping.input].is_static for grouping in condition.groupings(running))
            when = When.AT_ONCE if is_static else When.CLOSED
        else:
            when = When.AT_THE_END if may_end and condition.holds(ended) else When.NEVER
        return Waiting(when, condition, running)

    answers = waiting(node.operator.enabled_by(*node.input_schemas))
    keeps = tuple(Kept(model, waiting(model.until), below[model.input]) for model in node.state_schema.models)
    return OperatorVerdict(node, name, answers, keeps, known[node])
