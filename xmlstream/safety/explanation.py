"""Explanation of a query before it runs: plan, verdicts and remedies, as text, JSON, a picture or an HTML page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Literal, TypeAlias

from xmlstream.extensions import extension
from xmlstream.operators.expressions.depth import at_any_depth
from xmlstream.plan.nodes import Node
from xmlstream.plan.written_plan import described
from xmlstream.safety.changes import Change, changes
from xmlstream.safety.remedies import IdlePromise, Remedy, idle_promises, remedies
from xmlstream.safety.verdicts import END, OperatorVerdict, QueryVerdict, Waiting, judged
from xmlstream.safety.words import promises_in_words, summary, verdict_tree

Format: TypeAlias = Literal["text", "json", "svg", "html"]
"""Form of an explanation: text for people, JSON for programs, a picture, or a page with the query's text."""


class Explanation(str):
    """An explanation as a string that a prompt shows as its text, with its lines, and a notebook with the picture."""

    _root: Node
    _format: str
    _follow: bool

    @staticmethod
    def of(root: Node, format_: Format | Literal["plan"], text: str, *, follow: bool) -> Explanation:
        """The explanation of a plan in a format, with the plan itself."""
        made = Explanation(text)
        made._root, made._format, made._follow = root, format_, follow
        return made

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str | None:
        """The picture of the plan, and below it the verdict in words unless the picture was wanted; None for JSON."""
        if self._format == "json":
            return None
        picture = self if self._format == "svg" else explained(self._root, follow=self._follow, format_="svg")
        words = explained(self._root, follow=self._follow) if self._format in ("plan", "text") else ""
        return f"{picture}<pre>{escape(words)}</pre>" if words else str(picture)


@at_any_depth
def explained(
    root: Node, *, follow: bool = False, format_: Format = "text", title: str = "query", query: str = ""
) -> str:
    """Explains a plan before it runs: the plan, its verdicts, remedies and idle promises.

    Args:
        root: The plan.
        follow: The run waits for more input, so that the sources have no known end.
        format_: The form of the explanation.
        title: For `html`, the name of the query.
        query: For `html`, the SQL text of the query; empty if it has none.
    """
    verdict = judged(root, follow=follow)
    mending, other = remedies(root, follow=follow), changes(root, follow=follow)
    match format_:
        case "text":
            return f"{verdict_tree(verdict)}\n\n{summary(verdict, mending, other)}{_idle_line(idle_promises(root))}"
        case "json":
            content = as_json(verdict, mending, other)
            content["idle"] = [{"source": one.source, "scheme": str(one.scheme)} for one in idle_promises(root)]
            return json.dumps(content, ensure_ascii=False, indent=2)
        case "svg":
            drawn: str = extension("picture of a plan")(verdict, mending, other)
            return drawn.strip()
        case "html":
            page: str = extension("page of a plan")(verdict, mending, other, title, query)
            return page.strip()


def _idle_line(idle: Sequence[IdlePromise]) -> str:
    """A line with the promises that the query does not need; empty if there are none."""
    by_source: dict[str, list[str]] = {}
    for one in idle:
        by_source.setdefault(one.source, []).append(f"'{one.scheme}'")
    listed = "; ".join(f"{' and '.join(schemes)} of {source}" for source, schemes in by_source.items())
    return f"\nIt does not need these promises: {listed}." if listed else ""


def as_json(verdict: QueryVerdict, mending: Sequence[Remedy], other: Sequence[Change] = ()) -> dict[str, object]:
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


def _operator(one: OperatorVerdict, called: dict[Node, str]) -> dict[str, object]:
    lasting = [scheme for scheme in one.promises.running if scheme.terms]
    return {
        "name": one.name,
        "parameters": described(one.node),
        "inputs": [called[below] for below in one.node.inputs],
        "promises": promises_in_words(lasting, one.node.schema) if lasting else "",
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


def _waiting(found: Waiting, node: Node, called: dict[Node, str]) -> dict[str, object]:
    groupings = [{"of": called[node.inputs[g.input]], "attributes": list(g.attributes)} for g in found.groupings]
    return {"when": found.when.name.lower(), "groupings": groupings}
