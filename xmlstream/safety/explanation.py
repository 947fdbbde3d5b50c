"""An explanation of a query before it runs: plan, verdicts and remedies, as text, JSON, a picture or a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from xmlstream.plan.nodes import Node
from xmlstream.plan.plan_text import described
from xmlstream.safety.changes import Change, changes
from xmlstream.safety.explanation_page import explanation_page
from xmlstream.safety.idle_promises import IdlePromise, idle_promises
from xmlstream.safety.picture import picture
from xmlstream.safety.promises import END
from xmlstream.safety.remedies import Remedy, remedies
from xmlstream.safety.verdicts import OperatorVerdict, QueryVerdict, Waiting, judged
from xmlstream.safety.words import promised, summary, tree

Format: TypeAlias = Literal["text", "json", "svg", "html"]
"""How an explanation is written: for people, for programs, as a picture, as a page of its own with the query's text."""


def explained(
    root: Node, *, follow: bool = False, format_: Format = "text", title: str = "query", query: str = ""
) -> str:
    """What is known of a plan before it runs.

    Args:
        root: The plan.
        follow: Whether its sources are waited for, so that nobody knows of an end of theirs.
        format_: How it is written.
        title: On a page, what the query is called.
        query: On a page, its text; empty where it has none.
    """
    verdict = judged(root, follow=follow)
    mending, other = remedies(root, follow=follow), changes(root, follow=follow)
    match format_:
        case "text":
            return f"{tree(verdict)}\n\n{summary(verdict, mending, other)}{_idle_line(idle_promises(root))}"
        case "json":
            found = as_json(verdict, mending, other)
            found["idle"] = [{"source": one.source, "scheme": str(one.scheme)} for one in idle_promises(root)]
            return json.dumps(found, ensure_ascii=False, indent=2)
        case "svg":
            return picture(verdict, mending, other).strip()
        case "html":
            return explanation_page(verdict, mending, other, title=title, query=query).strip()


def _idle_line(idle: Sequence[IdlePromise]) -> str:
    """The promises that the query does not need, in a line of their own; nothing where there are none."""
    by_source: dict[str, list[str]] = {}
    for one in idle:
        by_source.setdefault(one.source, []).append(f"'{one.scheme}'")
    said = "; ".join(f"{' and '.join(schemes)} of {source}" for source, schemes in by_source.items())
    return f"\nIt does not need these promises: {said}." if said else ""


def pictured(root: Node, numbers: Mapping[str, str], *, follow: bool = False) -> str:
    """The picture of a plan with the numbers of a run on it, by keys such as `group_by kept`, as SVG."""
    return picture(*_known(root, follow), told=False, live=numbers).strip()


@lru_cache(maxsize=4)
def _known(root: Node, follow: bool) -> tuple[QueryVerdict, list[Remedy]]:
    """Verdicts and remedies of a plan that is drawn again and again."""
    return judged(root, follow=follow), remedies(root, follow=follow)


def as_json(verdict: QueryVerdict, mending: Sequence[Remedy], other: Sequence[Change] = ()) -> dict[str, Any]:
    """Verdicts and remedies as a JSON object."""
    called = {one.node: one.name for one in verdict.operators}
    return {
        "answers": verdict.answers.name.lower(),
        "enabled": verdict.is_enabled,
        "safe": verdict.is_safe,
        "cleansed": verdict.is_cleansed,
        "operators": [_operator(one, called) for one in verdict.operators],
        "remedies": [{source: str(scheme) for source, scheme in remedy.promises} for remedy in mending],
        "changes": [str(change) for change in other],
        "summary": summary(verdict, mending, other),
    }


def _operator(one: OperatorVerdict, called: dict[Node, str]) -> dict[str, Any]:
    lasting = [scheme for scheme in one.promises.running if scheme.terms]
    return {
        "name": one.name,
        "parameters": described(one.node),
        "inputs": [called[below] for below in one.node.inputs],
        "promises": promised(lasting, one.node.schema) if lasting else "",
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
