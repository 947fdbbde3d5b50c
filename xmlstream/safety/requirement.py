"""The refusal of queries that would wait or grow for ever, before anything is read.

Source: Li et al. 2006, §2.1 and §5: a continuous query is accepted if it is safe.
"""

from __future__ import annotations

from punct_ns.errors import UnsafeQuery
from xmlstream.plan.nodes import Node
from xmlstream.safety.remedies import remedies
from xmlstream.safety.verdicts import judged
from xmlstream.safety.words import troubles


def unsafe(root: Node) -> UnsafeQuery | None:
    """What is wrong with a plan over inputs that are waited for; None if it is enabled and safe."""
    verdict = judged(root, follow=True)
    if not verdict.troubled():
        return None
    mending = " or ".join(map(str, remedies(root, follow=True)))
    hint = (
        f"promise {mending}" if mending else "no promise of one attribute of each source mends it: bound what is asked"
    )
    what = "over inputs without an end this query would wait or grow for ever"
    return UnsafeQuery(
        what,
        where="\n  ".join(troubles(verdict)),
        hint=f"{hint}; --allow-unsafe (in Python allow_unsafe=True) runs it all the same",
    )
