"""An explanation as a page: the verdict, what mends it, the picture, and the texts behind them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from xmlstream.drawing.page import page
from xmlstream.safety.changes import Change
from xmlstream.safety.picture import lines_of, picture
from xmlstream.safety.remedies import Remedy
from xmlstream.safety.verdicts import QueryVerdict
from xmlstream.safety.words import tree


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
