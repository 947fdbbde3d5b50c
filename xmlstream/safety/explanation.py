"""Explanation of a query before it runs: plan, verdicts and remedies, as text, JSON, a picture or an HTML page.

The page has the verdict, the remedies, the picture, and the texts behind them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any, Literal, TypeAlias

from xmlstream.drawing.theme import page
from xmlstream.plan.nodes import Node
from xmlstream.plan.written_plan import described
from xmlstream.safety.changes import Change, changes
from xmlstream.safety.picture import lines_of, picture
from xmlstream.safety.remedies import IdlePromise, Remedy, idle_promises, remedies
from xmlstream.safety.verdicts import END, OperatorVerdict, QueryVerdict, Waiting, judged
from xmlstream.safety.words import promised, summary, tree


def explanation_page(
    verdict: QueryVerdict, remedies: Sequence[Remedy], changes: Sequence[Change] = (), *, title: str, query: str
) -> str:
    """The page, as HTML.

    Args:
        verdict: The verdicts on a query's operators.
        remedies: What would mend it.
        changes: What else would.
        title: What the query is called.
        query: Its text; empty where it has none, and the page then none.
    """
    said = "\n".join(f'<li class="{tone}">{escape(line)}</li>' for line, tone in lines_of(verdict, remedies, changes))
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<ul>\n{said}\n</ul>",
        '<h2>The plan</h2>\n<div class="picture" tabindex="0" role="region" aria-label="The plan, drawn">',
        f"{picture(verdict, remedies, told=False)}</div>",
        f"<details><summary>The same in words</summary>\n<pre>{escape(tree(verdict))}</pre></details>",
    ]
    if query:
        parts.append(f"<h2>The query</h2>\n<pre>{escape(query.strip())}</pre>")
    return page(f"{title}: will it answer, will it fit?", "\n".join(parts))


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
                "tuples": kept.model.what,
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
