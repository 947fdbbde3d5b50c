"""Verdicts: when each operator of a plan emits its results, and how long it keeps its state.

The schemes of the sources are carried bottom-up through the operators (Tucker et al. 2007, §6.2 and Fig. 6,
availablePSchemes). From the schemes of its inputs follows the verdict on each operator.

A query is *enabled* if all its results go out in the end, *cleansed* if all its state is purged in the end; it
*benefits* from its schemes if it is both. State with a bound of its own, because its values are finitely many, is safe
without being purged.

Source: Tucker et al. 2007, §3.3, Theorems 2 and 4; Li et al. 2006, §2.1, Definitions 1 to 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from operators.closing_conditions import Condition, Grouping, Promises, StateModel
from operators.closing_conditions import promised as promised_by
from punct_ns.scheme import Scheme, strongest
from xmlstream.plan.nodes import Node, Results, Scan, Static, names, topological

END = Scheme(())
"""The scheme without terms: in the end nothing comes any more."""

Additions = Mapping[str, Sequence[Scheme]]
"""Schemes that sources might promise beside their own, by the sources' names."""


@dataclass(frozen=True, slots=True)
class Promised:
    """The schemes of one part of a plan: those that hold while its inputs go on, and those that their ends add.

    `is_static` says that it is made of tables alone, and over after the first slice.
    """

    running: tuple[Scheme, ...]
    ended: tuple[Scheme, ...]
    is_static: bool = False

    @property
    def ends(self) -> bool:
        """Whether it ends while its inputs go on: at once, or when what is asked of them is closed."""
        return END in self.running


def promised(
    root: Node,
    *,
    follow: bool = False,
    additions: Additions | None = None,
    instead: Mapping[Node, Sequence[Scheme]] | None = None,
) -> dict[Node, Promised]:
    """What each node of a plan promises.

    Args:
        root: The plan.
        follow: Whether its sources are waited for, so that nobody knows of an end of theirs.
        additions: What would be promised besides.
        instead: What these sources would promise instead of their own.
    """
    found: dict[Node, Promised] = {}
    for node in topological(root):
        operator = node.operator
        if isinstance(operator, Scan):
            own = (instead or {}).get(node, operator.options.schemes)
            running = (*own, *(additions or {}).get(operator.name, ()))
            found[node] = Promised(running, running if follow else (END,))
        elif isinstance(operator, Static):
            running = (END,)
            found[node] = Promised(running, running, is_static=True)
        elif isinstance(operator, Results):
            found[node] = Promised((), ())
        else:
            below = [found[input_] for input_ in node.inputs]
            running = strongest(promised_by(operator, of_inputs(node, found, ended=False)), node.schema)
            # Of inputs that nobody knows an end of, there is nothing more to find.
            ended = running
            if any(each.ended is not each.running for each in below):
                ended = strongest(promised_by(operator, of_inputs(node, found, ended=True)), node.schema)
            found[node] = Promised(running, ended, all(each.is_static for each in below))
    return found


def of_inputs(node: Node, known: Mapping[Node, Promised], *, ended: bool) -> Promises:
    """What the inputs of a node promise, with their attributes."""
    return [(below.schema, known[below].ended if ended else known[below].running) for below in node.inputs]


class When(IntEnum):
    """When something that an operator waits for comes, the sooner the less."""

    AT_ONCE = 0
    CLOSED = 1
    AT_THE_END = 2
    NEVER = 3


@dataclass(frozen=True, slots=True)
class Waiting:
    """When a condition on the promises of an operator's inputs comes true."""

    when: When
    condition: Condition
    promises: Promises

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """The groupings by whose closing it comes true; of what waits for an end, or for ever, those that lack it."""
        if self.when is When.AT_ONCE:
            return ()
        return tuple(dict.fromkeys(self.condition.groupings(self.promises)))


@dataclass(frozen=True, slots=True)
class Kept:
    """The verdict on one log of tuples: what they are, when each is forgotten, and what their input promises."""

    model: StateModel
    until: Waiting
    of: Promised

    @property
    def is_bounded(self) -> bool:
        """Whether it does not grow with the stream for ever.

        Its tuples are forgotten, or finitely many, or so many of each key, or of an input that ends.
        """
        return self.until.when < When.NEVER or self.model.is_fixed or self.model.most is not None or self.of.ends


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
    def answers(self) -> When:
        """When its last answers go out: when the slowest of its operators answers."""
        return max((verdict.answers.when for verdict in self.operators), default=When.AT_ONCE)

    def troubled(self) -> tuple[OperatorVerdict, ...]:
        """The operators that never answer, or keep without bound."""
        return tuple(verdict for verdict in self.operators if not (verdict.is_enabled and verdict.is_safe))


def judged(
    root: Node,
    *,
    follow: bool = False,
    additions: Additions | None = None,
    known: Mapping[Node, Promised] | None = None,
) -> QueryVerdict:
    """The verdict on a plan; pure, without Spark.

    Args:
        root: The plan.
        follow: Whether its sources are waited for, so that nobody knows of an end of theirs.
        additions: What sources would promise besides.
        known: What each part of the plan promises, where that was found already.
    """
    called = names(root)
    if known is None:
        known = promised(root, follow=follow, additions=additions)
    return QueryVerdict(tuple(_operator(node, called[node], known) for node in topological(root)))


def _operator(node: Node, name: str, known: Mapping[Node, Promised]) -> OperatorVerdict:
    below = [known[input_] for input_ in node.inputs]
    running = ended = of_inputs(node, known, ended=False)
    if any(each.ended is not each.running for each in below):
        ended = of_inputs(node, known, ended=True)
    promises = _Inputs(running, ended, [each.is_static for each in below])
    return OperatorVerdict(
        node,
        name,
        promises.waiting(node.operator.enabled_by(*(each.schema for each in node.inputs))),
        tuple(Kept(m, promises.waiting(m.until), below[m.input]) for m in node.state_schema.models),
        known[node],
    )


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What the inputs of an operator promise while they go on, and at their ends, and which of them are tables."""

    running: Promises
    ended: Promises
    static: Sequence[bool]

    def waiting(self, condition: Condition) -> Waiting:
        """When a condition comes true."""
        if condition.holds(self.running):
            at_once = all(self.static[grouping.input] for grouping in condition.groupings(self.running))
            return Waiting(When.AT_ONCE if at_once else When.CLOSED, condition, self.running)
        at_the_end = self.ended is not self.running and condition.holds(self.ended)
        return Waiting(When.AT_THE_END if at_the_end else When.NEVER, condition, self.running)
