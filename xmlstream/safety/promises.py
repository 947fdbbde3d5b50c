"""What each part of a plan promises: the schemes of its inputs, carried bottom-up through its operators.

Source: Tucker et al. 2007, §6.2 and Fig. 6 (availablePSchemes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from operators.groupings import Promises
from operators.groupings import promised as promised_by
from punct_ns.scheme import Scheme
from punct_ns.scheme_order import strongest
from xmlstream.plan.nodes import Node, Results, Scan, Static, topological

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
