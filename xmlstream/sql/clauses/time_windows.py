"""Time windows as a plan: `window(ts, '10 minutes'[, slide[, start]])` adds the windows' ends to the attributes.

    SELECT window.start, window.end, count(*) FROM bid GROUP BY window(dateTime, '10 seconds', '2 seconds')

Spark replaces the call by a new column `window` below its SELECT; this module replaces the call by two columns.
"""

from __future__ import annotations

from sqlglot import exp

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.dialect import call_name, cast_to, expression, named, offset, render
from xmlstream.operators.expressions.duration import DAY, days_and_microseconds, duration
from xmlstream.operators.session import later
from xmlstream.operators.window import Window
from xmlstream.plan.nodes import Node, unique
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import END, START
from xmlstream.punct_ns.slices import own
from xmlstream.punct_ns.sql_type import MOMENTS, NUMBERS
from xmlstream.punct_ns.temporal_type import TimestampType
from xmlstream.sql.clauses.plan_builder import keyed, select_items
from xmlstream.sql.clauses.relation import Field, Item, Relation, resolve, trees_of
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.analysis import Analyst

_FORM = "write window(ts, '10 minutes'), or with a slide, for overlapping windows, window(ts, '10 minutes', '1 minute')"


def _is_window(node: exp.Expr) -> bool:
    return call_name(node) in ("window", "session_window")


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions of a SELECT: the moment, the gap in microseconds, their name, and the call as written.

    `days` of the gap are calendar days.
    """

    moment: str
    gap: int
    name: str
    call: exp.Expr
    days: int = 0

    @property
    def ends(self) -> tuple[str, str]:
        """The attributes of start and end."""
        return f"{self.name}{START}", f"{self.name}{END}"

    def not_grouped_by(self, text: QueryText) -> QueryError:
        """Error: the sessions are not in GROUP BY."""
        hint = f"GROUP BY {render(self.call)}".replace("`", "")
        return text.error("sessions without GROUP BY", self.call, hint)


def in_windows(
    select: exp.Select, relation: Relation, analyst: Analyst, text: QueryText
) -> tuple[exp.Select, Relation, Sessions | None]:
    """The SELECT with its window replaced by a field, and the relation with that field; unchanged without a window.

    For sessions, the field is the session of each tuple alone, from its moment to the end of the gap.

    Raises:
        QueryError: There are several windows, a length is wrong, or the first argument is not a moment.
    """
    calls = [call for tree in trees_of(select) for call in tree.find_all(exp.Anonymous) if _is_window(call)]
    if not calls:
        return select, relation, None
    first = calls[0]
    if (other := next((call for call in calls if render(call) != render(first)), None)) is not None:
        hint = "write two queries with one window each, and join their results"
        raise text.error("a second time window is not supported", other, hint)
    called = call_name(first)
    node, moment = _moment(first, relation, analyst, text)
    name = unique(called, [known.removesuffix(START) for known in node.schema.names])
    sessions = None
    if called == "window":
        window = Window(moment, *_lengths(first, text), name)
        if (own_call := window.call(node.schema)) is not None:
            analyst.columns(node.schema, [own_call])  # an engine may lack it
        cut = Node(window, (node,), "window")
    else:
        days, beside = _gap(first, text)
        sessions = Sessions(moment, days * DAY + beside, name, first, days)
        if select.args.get("group") is None:
            raise sessions.not_grouped_by(text)
        cut = _lone(node, sessions, analyst)
    # In windows over windows, the bare name still means the existing windows.
    meant = own(called) if relation.find(f"{called}{START}") else called
    ends = (Field(f"{meant}{end}", f"{name}{end}", starred=False) for end in (START, END))
    replaced = select.copy()
    for tree in replaced.expressions if meant != called else []:
        if _is_window(tree.unnest()):
            tree.replace(exp.alias_(tree.copy(), called))
    for tree in trees_of(replaced):
        for call in list(tree.find_all(exp.Anonymous)):
            if _is_window(call):
                _replace(call, meant)
    return replaced, Relation(cut, (*relation.fields, *ends)), sessions


def _gap(call: exp.Expr, text: QueryText) -> tuple[int, int]:
    """The calendar days of the gap, and its other microseconds."""
    given = call.expressions[1:]
    gap = days_and_microseconds(given[0]) if len(given) == 1 else None
    if gap is None or gap[0] * DAY + gap[1] <= 0:
        at = offset(given[0]) if given and offset(given[0]) is not None else offset(call)
        hint = "write session_window(ts, '5 minutes'); a gap that depends on the tuple is not supported"
        raise text.error("the gap of a session must be one constant length of time", at, hint)
    return gap


def _lone(node: Node, sessions: Sessions, analyst: Analyst) -> Node:
    """The node with the ends of each tuple's own session."""
    moment = node.schema.attribute(sessions.moment)
    items = [Item(name, named(name)) for name in node.schema.names]
    items.append(Item(f"{sessions.name}{START}", named(moment.name)))
    is_typed = isinstance(moment.domain.sql, TimestampType)
    end = expression(later(moment, sessions.gap, sessions.days)) if is_typed else named(moment.name)
    return select_items(node, [*items, Item(f"{sessions.name}{END}", end)], analyst).node


def _replace(call: exp.Expr, name: str) -> None:
    """Replaces the call by the field's name, and `call.end` by the field's end."""
    field = exp.column(name)
    if (at := offset(call)) is not None:
        field.this.meta["start"] = at
    dot = call.parent
    if isinstance(dot, exp.Dot) and dot.this is call:
        dot.replace(exp.Column(this=dot.expression, table=field.this))
    else:
        call.replace(field)


def _lengths(call: exp.Expr, text: QueryText) -> tuple[int, int, int]:
    """Size, slide and start of the windows, in microseconds."""
    given = call.expressions[1:]
    if not 1 <= len(given) <= 3:
        what = f"window needs a TIMESTAMP and 1 to 3 lengths (size, slide, start), not {len(given)}"
        raise text.error(what, call, _FORM)
    found = []
    for tree in given:
        if (length := duration(tree)) is None:
            hint = "use weeks, days, hours, minutes, seconds and parts of seconds, as in '1 hour 30 minutes'"
            raise text.error(f"{render(tree)} is not a constant length of time", tree, hint)
        found.append(length)
    size, slide, start = found[0], found[min(1, len(found) - 1)], found[2] if len(found) > 2 else 0
    if min(size, slide) <= 0:
        what, hint = "window size and slide must be longer than zero", "write lengths such as '10 minutes'"
        raise text.error(what, call, hint)
    if slide > size:
        raise text.error("a window is shorter than its slide", call, "write a slide that is not longer than the size")
    if abs(start) >= slide:
        hint = (
            "write a start shorter than the slide; windows without one begin at multiples of the slide since 1970-01-01"
        )
        raise text.error("the start of a window is not less than its slide", call, hint)
    return size, slide, start


def _moment(call: exp.Expr, relation: Relation, analyst: Analyst, text: QueryText) -> tuple[Node, str]:
    """The node with the moment to cut as an attribute, and the attribute's name."""
    if not call.expressions:
        raise text.error(f"{call_name(call)} without an argument", call, _FORM)
    tree = call.expressions[0]
    found = resolve(tree, relation, text, moment=True).unnest()
    node, names = keyed(relation.node, [found], [], analyst)
    attribute = node.schema.attribute(names[render(found)])
    of = attribute.domain.sql.kind
    if of in MOMENTS:
        return node, attribute.name
    if of in (*NUMBERS, "BOOLEAN"):
        what = f"{call_name(call)} needs a TIMESTAMP, but {attribute.name} is {attribute.domain.type}"
        raise text.error(what, tree, f"to group numbers in steps of 10, write GROUP BY {attribute.name} DIV 10")
    cast = cast_to(found, "TIMESTAMP")
    node, names = keyed(relation.node, [cast], [], analyst)
    return node, names[render(cast)]
