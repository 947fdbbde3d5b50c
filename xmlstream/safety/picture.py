"""A plan drawn from left to right, each operator a card that says what goes in and out, and what is thought of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from punct_ns.scheme import Scheme
from xmlstream.drawing.canvas import Box, Canvas
from xmlstream.drawing.cards import Card, Line, drawn
from xmlstream.drawing.text_width import width, wrapped
from xmlstream.drawing.theme import COLOURS, SHAPES, Tone
from xmlstream.plan.nodes import Node, Results, Scan, Static
from xmlstream.plan.plan_text import brief, described
from xmlstream.safety.changes import Change
from xmlstream.safety.join_figure import join_figure
from xmlstream.safety.remedies import Remedy
from xmlstream.safety.verdicts import Kept, OperatorVerdict, QueryVerdict, When
from xmlstream.safety.words import answering, kept_words, promised, summary, troubles

_MARGIN = 20.0

_TONES: dict[When, Tone] = {
    When.AT_ONCE: "good",
    When.CLOSED: "good",
    When.AT_THE_END: "late",
    When.NEVER: "bad",
}


def picture(
    verdict: QueryVerdict,
    remedies: Sequence[Remedy],
    changes: Sequence[Change] = (),
    *,
    told: bool = True,
    live: Mapping[str, str] | None = None,
    styled: bool = True,
) -> str:
    """The plan with its verdicts, and the punctuation graphs of its joins, as SVG.

    Args:
        verdict: The verdicts on its operators.
        remedies: What would mend it; the first is drawn on the sources that it asks.
        changes: What else would.
        told: With the verdict on the whole, and all remedies, below it.
        live: The numbers of a run, by keys such as `group_by kept`; with room for those that are not known yet.
        styled: With a style sheet of its own; else the page that it is on has it.
    """
    known = {one.node: one for one in verdict.operators}
    numbers = {one.node: i for i, one in enumerate(verdict.operators)}
    asked = dict(remedies[0].promises) if remedies else {}
    cards = [_card(one, known, asked, live=live) for one in verdict.operators]
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
    if told:
        end = _conclusion(
            canvas, lines_of(verdict, remedies, changes), Box(_MARGIN, low + 26, max(right - _MARGIN, 480), 0)
        )
        right, low = max(right, end.right), end.bottom
    title = "The plan of the query, and when each of its operators answers"
    return svg(canvas, right + _MARGIN, low + _MARGIN, title, styled=styled)


def svg(canvas: Canvas, wide: float, high: float, title: str, *, styled: bool) -> str:
    """A drawing as a document of its own; with its looks, unless the page that it is on has them."""
    looks = f"<style>{COLOURS}\n.xs{{--wide:{wide:g}px}}\n{SHAPES}</style>\n" if styled else ""
    parts = "\n".join(canvas.parts)
    size = f'viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="xs" {size} role="group">\n<title>{title}</title>\n'
        f'{looks}<rect class="paper" width="100%" height="100%" rx="10"/>\n{parts}\n</svg>\n'
    )


def _card(
    one: OperatorVerdict,
    known: dict[Node, OperatorVerdict],
    asked: dict[str, Scheme],
    *,
    live: Mapping[str, str] | None,
) -> Card:
    node = one.node
    parameters = described(node)
    lines = [Line(brief(parameters), mono=True, rows=2, title=parameters)]
    if isinstance(node.operator, Results):
        return Card(one.name, tuple(lines))
    lines += _schemes(one, known)
    if not isinstance(node.operator, Scan | Static):
        tone = _TONES[one.answers.when]
        lines.append(Line(answering(one.answers, node, known), tone=tone, rows=3))
    lines += [Line(f"keeps {kept_words(kept, node, known)}", tone=_tone(kept), rows=4) for kept in one.keeps]
    if isinstance(node.operator, Scan) and (scheme := asked.get(node.operator.name)) is not None:
        lines.append(Line(f"lacks schemes '{scheme}'", tone="mend", rows=2))
    for label in _live(one) if live is not None else ():
        key = f"{one.name} {label}"
        lines.append(Line((live or {}).get(key, "nothing yet · nothing yet"), label=label, key=key))
    return Card(one.name, tuple(lines))


def _schemes(one: OperatorVerdict, known: dict[Node, OperatorVerdict]) -> Iterator[Line]:
    """What its inputs promise, and what it promises of its output."""
    inputs = one.node.inputs
    for below in inputs:
        of = f"{known[below].name}: " if len(inputs) > 1 else ""
        yield Line(f"{of}{promised(known[below].promises.running, below.schema)}", label="in")
    ends = isinstance(one.node.operator, Scan) and one.promises.ended != one.promises.running
    yield Line(f"{promised(one.promises.running, one.node.schema)}{', and ends' if ends else ''}", label="out", rows=2)


def _live(one: OperatorVerdict) -> Sequence[str]:
    """What a running operator has numbers of."""
    if isinstance(one.node.operator, Scan | Static):
        return ("tuples", "said")
    return ("tuples", "kept", "held") if one.keeps or one.answers.when > When.AT_ONCE else ("tuples",)


def _tone(kept: Kept) -> Tone:
    return _TONES[kept.until.when] if kept.until.when < When.NEVER else "good" if kept.is_bounded else "bad"


def lines_of(
    verdict: QueryVerdict, remedies: Sequence[Remedy], changes: Sequence[Change] = ()
) -> Iterator[tuple[str, Tone]]:
    """The verdict on the query, and what would mend it, each line with its tone."""
    trouble = len(troubles(verdict))
    for i, said in enumerate(summary(verdict, remedies, changes).splitlines()):
        yield said, _TONES[verdict.answers] if not trouble else "bad" if i < trouble else "mend"


def _conclusion(canvas: Canvas, lines: Iterable[tuple[str, Tone]], box: Box) -> Box:
    """Those lines, drawn."""
    y, right = box.y, box.x
    for said, tone in lines:
        for i, line in enumerate(wrapped(said, box.width - 18, 14, most=3)):
            if not i:
                canvas.circle(box.x + 5, y + 9, 5, class_=tone)
            canvas.text(box.x + 18, y + 14, line, size=14, class_=tone)
            y, right = y + 21, max(right, box.x + 18 + width(line, 14))
    return Box(box.x, box.y, right - box.x, y - box.y)
