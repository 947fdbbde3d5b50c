"""Draws a plan from left to right: each operator is a card with its inputs, its output and its verdict.

Below the plan each join has its punctuation graph: an arrow leads from an input to an input whose punctuations can
close its tuples. A tuple of an input is purged if arrows lead from it to all other inputs. If punctuations of an input
restrict several join attributes that no single input has, the arrows from several inputs meet at a dot: all of these
inputs must be reached first. A condition that bounds an attribute of one input by one of another has an arrow, too.

Source: Li et al. 2006, §3.2.1, §4.2, Definitions 6 to 9.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from html import escape

from xmlstream.drawing.canvas import COLOURS, SHAPES, Area, Canvas, Point, Tone, cut, page, width, wrapped
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
from xmlstream.safety.verdicts import Kept, OperatorVerdict, QueryVerdict, When, judged
from xmlstream.safety.words import answering, kept_words, promises_in_words, summary, troubles, verdict_tree

_MOST = 12
"""Inputs up to which a graph is drawn; arrows between more inputs cannot be followed."""

_HIGH, _SIZE, _GAP = 44.0, 12.0, 90.0


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


def join_figure(canvas: Canvas, node: Node, known: Mapping[Node, OperatorVerdict], x: float, y: float) -> Area | None:
    """Draws the punctuation graph of a join at a point; returns its bounds, or None if there is no graph."""
    graph = punctuation_graph(node)
    if graph is None:
        return None
    shapes = graph.promised_shapes([known[below].promises.running for below in node.inputs])
    reachability = Reachability(graph, shapes)
    reached = {i: reachability.reached(i) for i in range(graph.inputs)}
    names = _names(node, known)
    with canvas.group(class_="join", data_join=known[node].name):
        title = f"{known[node].name}: who purges whom"
        canvas.text(x, y + 12, title, size=13, class_="strong")
        sentences = list(_sentences(names, reached))
        if graph.inputs > _MOST:
            purged = sum(len(inputs) == graph.inputs for inputs in reached.values())
            text = f"{graph.inputs} inputs, too many to draw; the tuples of {purged} are purged"
            canvas.text(x, y + 32, text, size=_SIZE, class_="pale")
            return Area(x, y, width(text, _SIZE), 36)
        closing = [_closing(graph, i, shapes) for i in range(graph.inputs)]
        wide = max(90.0, *(width(name, 13, mono=True) + 24 for name in names), *(width(t, _SIZE) + 24 for t in closing))
        wide = min(wide, 190.0)
        places = _places(graph.inputs, wide, x, y + 26)
        for target in range(graph.inputs):
            for shape in sorted(shapes[target], key=sorted):
                _arrows(canvas, graph, shape, target, places)
        for i, place in enumerate(places):
            tone = "good" if len(reached[i]) == graph.inputs else "bad"
            canvas.rect(place, radius=10, class_="card bad-edge" if tone == "bad" else "card")
            canvas.circle(place.x + 13, place.y + 15, 4, class_=tone)
            canvas.text(place.x + 22, place.y + 19, cut(names[i], wide - 28, 13, mono=True), class_="mono strong")
            shown = cut(closing[i], wide - 20, _SIZE)
            canvas.text(place.x + 10, place.y + 36, shown, size=_SIZE, class_="pale", title=closing[i])
        low = max(place.bottom for place in places) + 8
        for line in sentences:
            low += 17
            bad = "nothing" in line
            canvas.text(x, low, line, size=_SIZE, class_="bad" if bad else "pale")
    right = max(*(place.right for place in places), *(x + width(line, _SIZE) for line in (*sentences, title)))
    return Area(x, y, right - x, low + 4 - y)


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


def _closing(graph: PunctuationGraph, i: int, shapes: Mapping[int, frozenset[frozenset[int]]]) -> str:
    texts = dict.fromkeys(", ".join(graph.name(i, n) for n in sorted(shape)) for shape in sorted(shapes[i], key=sorted))
    return f"closes {'; '.join(text or 'all' for text in texts)}" if texts else "closes nothing of the join"


def _sentences(names: Sequence[str], reached: Mapping[int, frozenset[int]]) -> Iterator[str]:
    """The inputs whose tuples are purged; for each other input, the inputs that it does not reach."""
    purged = [name for i, name in enumerate(names) if len(reached[i]) == len(names)]
    if len(purged) == len(names):
        yield "tuples of each input are purged: from each, all others are reached"
    elif purged:
        yield f"tuples of {' and '.join(purged)} are purged: all others are reached"
    for i, name in enumerate(names):
        if missing := [other for j, other in enumerate(names) if j not in reached[i]]:
            yield f"tuples of {name} are kept for ever: nothing leads to {' and '.join(missing)}"


def _places(number: int, wide: float, x: float, y: float) -> list[Area]:
    """Boxes of the inputs: two side by side, more on an ellipse so wide that no box hides an arrow between others."""
    if number == 2:
        return [Area(x + i * (wide + _GAP), y, wide, _HIGH) for i in range(2)]
    across, down = ((side + 46) / 2 / math.sin(math.pi / number) for side in (wide, _HIGH + 14))
    down = max(down, 84.0)
    turns = [2 * math.pi * i / number - math.pi / 2 for i in range(number)]
    middles = [(across * math.cos(turn), down * math.sin(turn)) for turn in turns]
    left, top = min(mx for mx, _ in middles), min(my for _, my in middles)
    return [Area(round(x + mx - left, 1), round(y + my - top, 1), wide, _HIGH) for mx, my in middles]


def _arrows(
    canvas: Canvas, graph: PunctuationGraph, shape: frozenset[int], target: int, places: Sequence[Area]
) -> None:
    """Draws an arrow from each input that has all classes of the shape; if none has, from one per class via a dot."""
    having = [i for i in range(graph.inputs) if i != target and shape.issubset(graph.known_from(i))]
    to = _middle(places[target])
    if having or not shape:
        for i in having or [i for i in range(graph.inputs) if i != target]:
            _arrow(canvas, _middle(places[i]), to, places[i], places[target])
        return
    givers = sorted({min(i for i in range(graph.inputs) if i != target and n in graph.known_from(i)) for n in shape})
    mean = tuple(sum(_middle(places[i])[axis] for i in givers) / len(givers) for axis in (0, 1))
    edge = _edge(to, (mean[0], mean[1]), places[target])
    away = 26 / math.hypot(mean[0] - to[0], mean[1] - to[1])
    dot = (edge[0] + away * (mean[0] - to[0]), edge[1] + away * (mean[1] - to[1]))
    for i in givers:
        start = _edge(_middle(places[i]), dot, places[i])
        canvas.path(f"M{start[0]:.1f} {start[1]:.1f} L{dot[0]:.1f} {dot[1]:.1f}", class_="arrow")
    canvas.circle(round(dot[0], 1), round(dot[1], 1), 4, class_="head")
    _arrow(canvas, dot, to, None, places[target])


def _arrow(canvas: Canvas, start: Point, end: Point, source: Area | None, target: Area) -> None:
    """Draws a straight arrow between edges, moved a little to its right to leave room for the opposite arrow."""
    length = math.hypot(end[0] - start[0], end[1] - start[1])
    along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
    aside = (-along[1] * 7, along[0] * 7) if source is not None else (0.0, 0.0)
    begin, stop = (start[0] + aside[0], start[1] + aside[1]), (end[0] + aside[0], end[1] + aside[1])
    begin = begin if source is None else _edge(begin, stop, source)
    stop = _edge(stop, begin, target)
    base = (stop[0] - along[0] * 8, stop[1] - along[1] * 8)
    across = (-along[1] * 4, along[0] * 4)
    canvas.path(f"M{begin[0]:.1f} {begin[1]:.1f} L{base[0]:.1f} {base[1]:.1f}", class_="arrow")
    wings = [(base[0] + s * across[0], base[1] + s * across[1]) for s in (1, -1)]
    corners = " L".join(f"{px:.1f} {py:.1f}" for px, py in (stop, *wings))
    canvas.path(f"M{corners} z", class_="head")


def _middle(box: Area) -> Point:
    return box.x + box.width / 2, box.middle


def _edge(inside: Point, outside: Point, box: Area) -> Point:
    """The point where the line from a point inside a box to a point outside leaves the box."""
    dx, dy = outside[0] - inside[0], outside[1] - inside[1]
    shares = []
    if dx:
        shares.append(((box.right if dx > 0 else box.x) - inside[0]) / dx)
    if dy:
        shares.append(((box.bottom if dy > 0 else box.y) - inside[1]) / dy)
    share = min(shares)
    return inside[0] + share * dx, inside[1] + share * dy


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
    """Draws the plan with its verdicts, and the punctuation graphs of its joins, as SVG.

    Args:
        verdict: The verdicts on the operators.
        remedies: Promises that would make the query safe; the first remedy is shown on the cards of its sources.
        changes: Changes to the query that would make it safe.
        concluded: Add the verdict on the query, and all remedies and changes, below the plan.
        live: Numbers of a run, by keys such as `group_by kept`; unknown ones get room on the cards.
        styled: Include a style sheet; without it the surrounding page must have it.
    """
    known = {one.node: one for one in verdict.operators}
    numbers = {one.node: i for i, one in enumerate(verdict.operators)}
    proposed = dict(remedies[0].promises) if remedies else {}
    cards = [_card(one, known, proposed, live=live) for one in verdict.operators]
    arrows = [(numbers[below], numbers[one.node]) for one in verdict.operators for below in one.node.inputs]
    canvas = Canvas()
    taken, _ = drawn(canvas, cards, arrows, _MARGIN, _MARGIN)
    right, low = taken.right, taken.bottom
    x, row_low = _MARGIN, low
    for one in verdict.operators:
        # Figures stand side by side, in rows as wide as the plan.
        aside = Canvas()
        figure = join_figure(aside, one.node, known, x, low + 30)
        if figure is not None and figure.right > max(right, 700) and x > _MARGIN:
            x, low, aside = _MARGIN, row_low, Canvas()
            figure = join_figure(aside, one.node, known, x, low + 30)
        if figure is not None:
            canvas.parts += aside.parts
            x, right, row_low = figure.right + 60, max(right, figure.right), max(row_low, figure.bottom)
    low = row_low
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
    known: dict[Node, OperatorVerdict],
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


def _schemes(one: OperatorVerdict, known: dict[Node, OperatorVerdict]) -> Iterator[Line]:
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
