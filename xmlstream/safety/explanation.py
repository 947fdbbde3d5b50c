"""An explanation of a query before it runs: its plan, its verdicts and its remedies, as text or as JSON."""

from __future__ import annotations

import json
from typing import Any

from punct_ns.scheme import format_schemes
from xmlstream.plan.nodes import Node
from xmlstream.plan.plan_text import described
from xmlstream.safety.promises import END
from xmlstream.safety.remedies import remedies
from xmlstream.safety.verdicts import OperatorVerdict, Waiting, judged
from xmlstream.safety.words import summary, tree


def explained(root: Node, *, follow: bool = False, as_json: bool = False) -> str:
    """What is known of a plan before it runs.

    Args:
        root: The plan.
        follow: Whether its sources are waited for, so that nobody knows of an end of theirs.
        as_json: As one JSON object, rather than as text.
    """
    verdict = judged(root, follow=follow)
    mending = remedies(root, follow=follow)
    if not as_json:
        return f"{tree(verdict)}\n\n{summary(verdict, mending)}"
    called = {one.node: one.name for one in verdict.operators}
    return json.dumps(
        {
            "answers": verdict.answers.name.lower(),
            "enabled": verdict.is_enabled,
            "safe": verdict.is_safe,
            "cleansed": verdict.is_cleansed,
            "operators": [_operator(one, called) for one in verdict.operators],
            "remedies": [{source: str(scheme) for source, scheme in remedy.promises} for remedy in mending],
            "summary": summary(verdict, mending),
        },
        ensure_ascii=False,
        indent=2,
    )


def _operator(one: OperatorVerdict, called: dict[Node, str]) -> dict[str, Any]:
    promised = [scheme for scheme in one.promises.running if scheme.terms]
    return {
        "name": one.name,
        "parameters": described(one.node),
        "inputs": [called[below] for below in one.node.inputs],
        "promises": format_schemes(promised),
        "ends": END in one.promises.ended,
        "answers": _waiting(one.answers, one.node, called),
        "keeps": [
            {
                "tuples": kept.model.tuples,
                "until": _waiting(kept.until, one.node, called),
                "bounded": kept.is_bounded,
                "at most": kept.model.most,
            }
            for kept in one.keeps
        ],
    }


def _waiting(found: Waiting, node: Node, called: dict[Node, str]) -> dict[str, Any]:
    groupings = [{"of": called[node.inputs[g.input]], "attributes": list(g.attributes)} for g in found.groupings]
    return {"when": found.when.name.lower(), "groupings": groupings}
