"""The refusal of queries that would wait or grow for ever, before anything is read.

Source: Li et al. 2006, §2.1 and §5: a continuous query is accepted if it is safe.
"""

from __future__ import annotations

from punct_ns.errors import UnsafeQuery
from xmlstream.plan.nodes import Node, Scan
from xmlstream.safety.changes import changes
from xmlstream.safety.remedies import remedies
from xmlstream.safety.verdicts import OperatorVerdict, judged
from xmlstream.safety.words import times_of_texts, troubles, unmended

_FOLLOWED = "--allow-unsafe (in Python allow_unsafe=True) runs it all the same"
_STRICT = "without --strict (in Python strict=True) it runs to the end of its input"


def caution(root: Node) -> str | None:
    """In a line, what would be wrong with a plan if its inputs went on; None if it is enabled and safe."""
    verdict = judged(root, follow=True)
    if not (found := troubles(verdict)):
        return None
    others = f", and {len(found) - 1} more" if len(found) > 1 else ""
    silent = [one.name for one in verdict.operators if isinstance(one.node.operator, Scan) and _promises_nothing(one)]
    unsaid = f"; {' and '.join(silent)} promise{'s' if len(silent) == 1 else ''} nothing" if silent else ""
    return f"only the end of its input lets this query answer or forget: {found[0]}{others}{unsaid}"


def _promises_nothing(one: OperatorVerdict) -> bool:
    """Whether nobody has said what a source punctuates, be it nothing, nor does a rule."""
    return isinstance(one.node.operator, Scan) and not one.node.operator.options.has_promise


def unsafe(root: Node, *, strict: bool = False) -> UnsafeQuery | None:
    """What is wrong with a plan over inputs that are waited for; None if it is enabled and safe.

    Args:
        root: The plan.
        strict: Of inputs that are read to their end, too, which mends everything in the end.
    """
    verdict = judged(root, follow=True)
    if not verdict.troubled():
        return None
    mending = [*times_of_texts(verdict), *map(str, remedies(root, follow=True)), *map(str, changes(root, follow=True))]
    hint = "; or ".join(mending) or unmended(verdict)
    what = "over inputs without an end this query would wait or grow for ever"
    return UnsafeQuery(
        what,
        where="\n  ".join(troubles(verdict)),
        hint=f"{hint}; {_STRICT if strict else _FOLLOWED}",
    )
