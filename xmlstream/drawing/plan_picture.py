"""Draws a plan from left to right: each operator is a card with its inputs, its output and its verdict.

Below the plan stands for each join which tuples are purged: those of an input from which its punctuation graph leads
to all other inputs (`xmlstream.operators.joins.punctuation_graph`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from html import escape

from xmlstream.drawing.canvas import COLOURS, SHAPES, Area, Canvas, Tone, page, width, wrapped
from xmlstream.drawing.cards import Card, Line, drawn
from xmlstream.operators.expressions.dialect import brief
from xmlstream.operators.join import Join
from xmlstream.operators.joins.punctuation_graph import Link, PunctuationGraph, Reachability
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.plan.nodes import Node, Results, Scan, Static, emitters
from xmlstream.plan.written_plan import described
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.safety.changes import Change
from xmlstream.safety.remedies import Remedy, remedies
from xmlstream.safety.verdicts import Kept, OperatorVerdict, QueryVerdict, Verdicts, When, judged
from xmlstream.safety.words import answering, kept_words, promises_in_words, summary, troubles, verdict_tree

_MOST = 12
"""Inputs up to which each one is named."""

_SIZE = 13.0


def punctuation_graph(node: Node) -> PunctuationGraph | None:
    """The punctuation graph of a join; None if the node is not a join, or its condition has no graph."""
    match node.operator:
        case MultiwayJoin(graph=graph):
            return graph
        case Join() | SemiJoin() as join:
            left, right = join.equi_join.on
            links = tuple(Link(i, 1 - i, bounds) for i, bounds in enumerate(join.bounds) if bounds)
            try:
                return PunctuationGraph(2, tuple(((0, a), (1, b)) for a, b in zip(left, right, strict=True)), links)
            except QueryError:
                return None
    return None


def _draw_purges(canvas: Canvas, node: Node, known: Mapping[Node, OperatorVerdict], x: float, y: float) -> Area | None:
    """Writes at a point which inputs of a join purge the tuples of which others; None if there is no graph."""
    graph = punctuation_graph(node)
    if graph is None:
        return None
    reachability = Reachability(graph, graph.promised_shapes([known[below].promises.running for below in node.inputs]))
    reached = {i: reachability.reached(i) for i in range(graph.inputs)}
    lines = [f"{known[node].name}: who purges whom", *_sentences(_names(node, known), reached)]
    with canvas.group(class_="join", data_join=known[node].name):
        for number, line in enumerate(lines):
            looks = "strong" if not number else "bad" if "nothing" in line else "pale"
            canvas.text(x, y + 12 + 19 * number, line, size=_SIZE, class_=looks)
    return Area(x, y, max(width(line, _SIZE) for line in lines), 19.0 * len(lines))


def _names(node: Node, known: Mapping[Node, OperatorVerdict]) -> list[str]:
    """Names of a join's inputs: that of the only source below an input, unless two inputs have the same source."""
    sources = []
    for below in node.inputs:
        while len(below.inputs) == 1:
            (below,) = below.inputs  # noqa: PLW2901 - down to a source, or to an operator with several inputs
        sources.append(below if not below.inputs else None)
    return [
        known[below if own is None or sources.count(own) > 1 else own].name
        for below, own in zip(node.inputs, sources, strict=True)
    ]


def _sentences(names: Sequence[str], reached: Mapping[int, frozenset[int]]) -> Iterator[str]:
    """The inputs whose tuples are purged; for each other input, the inputs that it does not reach."""
    purged = [name for i, name in enumerate(names) if len(reached[i]) == len(names)]
    if len(names) > _MOST:
        yield f"tuples of {len(purged)} of its {len(names)} inputs are purged"
        return
    if len(purged) == len(names):
        yield "tuples of each input are purged: from each, all others are reached"
    elif purged:
        yield f"tuples of {' and '.join(purged)} are purged: all others are reached"
    for i, name in enumerate(names):
        if missing := [other for j, other in enumerate(names) if j not in reached[i]]:
            yield f"tuples of {name} are kept for ever: nothing leads to {' and '.join(missing)}"


_MARGIN = 20.0

_TONES: dict[When, Tone] = {When.AT_ONCE: "good", When.CLOSED: "good", When.AT_THE_END: "late", When.NEVER: "bad"}


def picture(
    verdict: QueryVerdict,
    remedies: Sequence[Remedy],
    changes: Sequence[Change] = (),
    *,
    concluded: bool = True,
    live: Mapping[str, str] | None = None,
    styled: bool = True,
) -> str:
    """Draws the plan with its verdicts, and what purges the tuples of its joins, as SVG.

    Args:
        verdict: The verdicts on the operators.
        remedies: Promises that would make the query safe; the first remedy is shown on the cards of its sources.
        changes: Changes to the query that would make it safe.
        concluded: Add the verdict on the query, and all remedies and changes, below the plan.
        live: Numbers of a run, by keys such as `group_by kept`; unknown ones get room on the cards.
        styled: Include a style sheet; without it the surrounding page must have it.
    """
    known = verdict.by_node
    numbers = {one.node: i for i, one in enumerate(verdict.operators)}
    proposed = dict(remedies[0].promises) if remedies else {}
    cards = [_card(one, known, proposed, live=live) for one in verdict.operators]
    arrows = [(numbers[below], numbers[one.node]) for one in verdict.operators for below in one.node.inputs]
    canvas = Canvas()
    taken, _ = drawn(canvas, cards, arrows, _MARGIN, _MARGIN)
    right, low = taken.right, taken.bottom
    for one in verdict.operators:
        if (written := _draw_purges(canvas, one.node, known, _MARGIN, low + 26)) is not None:
            right, low = max(right, written.right), written.bottom
    if concluded:
        end = _conclusion(
            canvas, lines_of(verdict, remedies, changes), Area(_MARGIN, low + 26, max(right - _MARGIN, 480), 0)
        )
        right, low = max(right, end.right), end.bottom
    wide, high = right + _MARGIN, low + _MARGIN
    looks = f"<style>{COLOURS}\n.xs{{--wide:{wide:g}px}}\n{SHAPES}</style>\n" if styled else ""
    parts = "\n".join(canvas.parts)
    size = f'viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="xs" {size} role="group">\n'
        "<title>The plan of the query, and when each of its operators answers</title>\n"
        f'{looks}<rect class="paper" width="100%" height="100%" rx="10"/>\n{parts}\n</svg>\n'
    )


def _card(
    one: OperatorVerdict,
    known: Verdicts,
    proposed: dict[str, Scheme],
    *,
    live: Mapping[str, str] | None,
) -> Card:
    node = one.node
    parameters = described(node)
    lines = [Line(brief(parameters), mono=True, rows=2, title=parameters)]
    if isinstance(node.operator, Results):
        return Card(one.name, tuple(lines))
    if emitted := [name for root in known for name, of in emitters(root).items() if of == node]:
        lines.insert(0, Line(", ".join(emitted), label="result", mono=True, rows=2))
    lines += _schemes(one, known)
    if not isinstance(node.operator, Scan | Static):
        tone = _TONES[one.answers.when]
        lines.append(Line(answering(one.answers, node, known), tone=tone, rows=3))
    lines += [Line(f"keeps {kept_words(kept, node, known)}", tone=_tone(kept), rows=4) for kept in one.keeps]
    if isinstance(node.operator, Scan) and (scheme := proposed.get(node.operator.name)) is not None:
        lines.append(Line(f"lacks schemes '{scheme}'", tone="mend", rows=2))
    for label in _live(one) if live is not None else ():
        key = f"{one.name} {label}"
        lines.append(Line((live or {}).get(key, "nothing yet · nothing yet"), label=label, key=key))
    return Card(one.name, tuple(lines))


def _schemes(one: OperatorVerdict, known: Verdicts) -> Iterator[Line]:
    """The schemes of the inputs and of the output."""
    inputs = one.node.inputs
    for below in inputs:
        of = f"{known[below].name}: " if len(inputs) > 1 else ""
        yield Line(f"{of}{promises_in_words(known[below].promises.running, below.schema)}", label="in")
    ends = isinstance(one.node.operator, Scan) and one.promises.ended != one.promises.running
    yield Line(
        f"{promises_in_words(one.promises.running, one.node.schema)}{', and ends' if ends else ''}", label="out", rows=2
    )


def _live(one: OperatorVerdict) -> Sequence[str]:
    """The numbers that a running operator has: a label of each."""
    if isinstance(one.node.operator, Scan | Static):
        return ("tuples", "sent")
    return ("tuples", "kept", "held") if one.keeps or one.answers.when > When.AT_ONCE else ("tuples",)


def _tone(kept: Kept) -> Tone:
    return _TONES[kept.until.when] if kept.until.when < When.NEVER else "good" if kept.is_bounded else "bad"


def lines_of(
    verdict: QueryVerdict, remedies: Sequence[Remedy], changes: Sequence[Change] = ()
) -> Iterator[tuple[str, Tone]]:
    """The lines of the summary, each with its tone."""
    trouble = len(troubles(verdict))
    for i, text in enumerate(summary(verdict, remedies, changes).splitlines()):
        yield text, _TONES[verdict.answers] if not trouble else "bad" if i < trouble else "mend"


def _conclusion(canvas: Canvas, lines: Iterable[tuple[str, Tone]], box: Area) -> Area:
    """Draws the lines of the summary in a box; returns its bounds."""
    y, right = box.y, box.x
    for text, tone in lines:
        for i, line in enumerate(wrapped(text, box.width - 18, 14, most=3)):
            if not i:
                canvas.circle(box.x + 5, y + 9, 5, class_=tone)
            canvas.text(box.x + 18, y + 14, line, size=14, class_=tone)
            y, right = y + 21, max(right, box.x + 18 + width(line, 14))
    return Area(box.x, box.y, right - box.x, y - box.y)


def pictured(root: Node, numbers: Mapping[str, str], *, follow: bool = False) -> str:
    """Draws a plan with the numbers of a run, as SVG; keys of `numbers` are such as `group_by kept`."""
    return picture(*_known(root, follow), concluded=False, live=numbers).strip()


@lru_cache(maxsize=4)
def _known(root: Node, follow: bool) -> tuple[QueryVerdict, list[Remedy]]:
    """Verdicts and remedies, cached, since a running plan is drawn many times."""
    return judged(root, follow=follow), remedies(root, follow=follow)


def plan_page(
    verdict: QueryVerdict, remedies: Sequence[Remedy], changes: Sequence[Change], title: str, query: str
) -> str:
    """The HTML page of an explanation: verdict, remedies, picture, plan as text, and the query, unless it is empty."""
    items = "\n".join(f'<li class="{tone}">{escape(line)}</li>' for line, tone in lines_of(verdict, remedies, changes))
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<ul>\n{items}\n</ul>",
        '<h2>The plan</h2>\n<div class="picture" tabindex="0" role="region" aria-label="The plan, drawn">',
        f"{picture(verdict, remedies, concluded=False)}</div>",
        f"<details><summary>The plan as text</summary>\n<pre>{escape(verdict_tree(verdict))}</pre></details>",
    ]
    if query:
        parts.append(f"<h2>The query</h2>\n<pre>{escape(query.strip())}</pre>")
    return page(f"{title}: will it answer, will it fit?", "\n".join(parts))
