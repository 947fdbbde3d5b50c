"""Verdicts as text: the plan as a tree with promises, results and state; and the refusal of unsafe queries.

A query over inputs without an end is refused before it reads anything if it would wait or grow for ever.

Source: Li et al. 2006, §2.1 and §5: a continuous query is accepted if it is safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xmlstream.operators.closing_conditions import Grouping, Prefix
from xmlstream.operators.expressions.depth import at_any_depth
from xmlstream.operators.expressions.dialect import brief
from xmlstream.plan.nodes import Node, Results, Scan, out_of_order, topological
from xmlstream.plan.written_plan import described
from xmlstream.punct_ns.errors import UnsafeQuery
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, Term, is_compact
from xmlstream.punct_ns.slices import quoted
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.safety.changes import Change, by_source, changes, origins
from xmlstream.safety.remedies import Remedy, remedies
from xmlstream.safety.verdicts import END, Kept, OperatorVerdict, QueryVerdict, Verdicts, Waiting, When, judged


def verdict_tree(verdict: QueryVerdict) -> str:
    """The plan with its verdicts as an indented tree, each operator above its inputs; a shared node appears once."""
    known = verdict.by_node
    lines: list[str] = []
    written: set[Node] = set()

    def write(node: Node, depth: int) -> None:
        one = known[node]
        again = node in written
        lines.append(f"{'    ' * depth}{one.name}: {'as above' if again else brief(described(node))}")
        if again:
            return
        written.add(node)
        lines.extend(f"{'    ' * depth}  {line}" for line in _lines(one, known))
        for below in node.inputs:
            write(below, depth + 1)

    write(verdict.operators[-1].node, 0)
    return "\n".join(lines)


def _lines(one: OperatorVerdict, known: Verdicts) -> Iterator[str]:
    """The lines of an operator: its promises, and when it answers and what it keeps if it waits or keeps anything."""
    if isinstance(one.node.operator, Results):
        return
    ends = isinstance(one.node.operator, Scan) and END in one.promises.ended
    yield f"promises {promises_in_words(one.promises.running, one.node.schema)}{', and ends' if ends else ''}"
    if one.answers.when > When.AT_ONCE or one.keeps:
        yield answering(one.answers, one.node, known)
    order = one.node.operator.enabled_by(*one.node.input_schemas)
    if (
        one.answers.when is When.CLOSED
        and isinstance(order, Prefix)
        and order.begins_with_null(one.node.input_schemas[0])
    ):
        key = order.attribute.removeprefix("ORDER BY ")
        yield f"null of {key} comes first, and is waited for: declare NOT NULL, or write ORDER BY {key} NULLS LAST"
    for kept in one.keeps:
        yield f"keeps {kept_words(kept, one.node, known)}"


def promises_in_words(schemes: Iterable[Scheme], schema: Schema) -> str:
    """Schemes in their declared form; adds `(not null)` to a nullable attribute whose nulls are not promised.

    >>> here = Schema.parse("a INT, b INT NOT NULL")
    >>> promises_in_words([Scheme((Term("a", null=False), Term("b", null=False))), Scheme((Term("a"),))], here)
    'a (not null), b; a'
    """

    def text(term: Term) -> str:
        no_null = not term.null and schema.attribute(term.attribute).domain.nullable
        return f"{term} (not null)" if no_null else str(term)

    texts = (", ".join(map(text, scheme.terms)) or "its end" for scheme in schemes)
    return "; ".join(dict.fromkeys(texts)) or "nothing"


def answering(found: Waiting, node: Node, known: Verdicts) -> str:
    """When an operator answers: `answers when hour closes`, `never answers, since nothing closes hour`."""
    when = waiting(found, node, known)
    return f"never answers{when.removeprefix('never')}" if found.when is When.NEVER else f"answers {when}"


def waiting(found: Waiting, node: Node, known: Verdicts) -> str:
    """When a condition comes true: `at once`, `when hour of s1 closes`, `never, since nothing closes …`."""
    match found.when:
        case When.AT_ONCE:
            return "at once"
        case When.CLOSED:
            return f"when {_all(found, node, known)} closes"
        case When.AT_THE_END:
            return "at the end of its input"
        case When.NEVER:
            return f"never, since nothing closes {_all(found, node, known)}"


def kept_words(kept: Kept, node: Node, known: Verdicts) -> str:
    """The tuples of a log, and how long they are kept."""
    what = kept.model.what
    if kept.model.is_fixed:
        what += f" of each {', '.join(kept.model.per.names)}" if kept.model.per else ""
        if kept.until.when is When.AT_ONCE or (kept.until.when is When.NEVER and kept.is_bounded):
            return what
    if kept.until.when is When.AT_ONCE:
        return f"{what} for at most one slice"
    if kept.until.when < When.NEVER:
        until = waiting(kept.until, node, known)
        return f"{what} until {until.removeprefix('at ' if kept.until.when is When.AT_THE_END else 'when ')}"
    if kept.of.ends:
        return f"{what}, as many as {'the table has' if kept.of.is_static else 'come before their input closes'}"
    if kept.model.most is not None and kept.model.per is not None:
        each = f", one for each value of {', '.join(kept.model.per.names)}" if kept.model.per else ""
        return f"{what}{each}: at most {kept.model.most:,}"
    return f"{what} for ever, since nothing closes {_all(kept.until, node, known)}"


def _all(found: Waiting, node: Node, known: Verdicts) -> str:
    return " and ".join(dict.fromkeys(_named(grouping, node, known) for grouping in found.groupings))


def _named(grouping: Grouping, node: Node, known: Verdicts) -> str:
    """The attributes that must close a grouping: those of each scheme that closes it, or those that no scheme closes.

    Attributes are named as in the sources that they come from; with the source's name if there are several sources.
    """
    below = node.inputs[grouping.input]
    elsewhere = len(node.inputs) > 1 or known.has_several_sources
    of_inputs = f" of {known[below].name}" if len(node.inputs) > 1 else ""
    if ways := closing(grouping.attributes, below, known, null=grouping.null):
        names_of: dict[object, str] = {}
        for names in ways:
            of_sources = by_source([origins(below, name) for name in names])
            # Starts and ends of windows close together.
            if (same := tuple(of_sources) or names) not in names_of:
                own = ", ".join(names) or "its input"
                names_of[same] = _of(of_sources, known) if of_sources and elsewhere else f"{own}{of_inputs}"
        return " or ".join(names_of.values())
    names, whole = grouping.attributes, len(grouping.attributes) == len(below.schema.names) > 1
    of_sources = by_source([origins(below, name) for name in names])
    # A source that closes its attributes is not the one that lacks a promise.
    of_sources = [(source, own) for source, own in of_sources if not closing(own, source, known)] or of_sources
    if not of_sources or not (elsewhere or whole):
        called = "any of its attributes" if whole else ", ".join(names) or "its input"
        return f"{called} of {known[below].name}" if whole else f"{called}{of_inputs}"
    if whole:
        return f"any attribute of {_listed(known[source].name for source, _ in of_sources)}"
    return _of(of_sources, known)


def _of(of_sources: Iterable[tuple[Node, tuple[str, ...]]], known: Verdicts) -> str:
    """Attributes of sources: `hour of sensor1 and sensor2`."""
    together: dict[tuple[str, ...], list[str]] = {}
    for source, own in of_sources:
        together.setdefault(own, []).append(known[source].name)
    return " and ".join(f"{', '.join(own)} of {_listed(sources)}" for own, sources in together.items())


def closing(attributes: Sequence[str], node: Node, known: Verdicts, *, null: bool = True) -> list[tuple[str, ...]]:
    """The smallest attribute sets of a node's schemes that close groups of these attributes."""
    schemes = known[node].promises.running
    ways = dict.fromkeys(s.attributes for s in schemes if is_compact(attributes, s, node.schema, null=null))
    return [way for way in ways if not any(set(other) < set(way) for other in ways)]


def _listed(names: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(names))


def summary(verdict: QueryVerdict, remedies: Sequence[Remedy], changes: Sequence[Change] = ()) -> str:
    """The verdict on the query as a few lines, with the remedies and changes that would make it safe."""
    if not verdict.troubled():
        first = f"It answers {_WHEN[verdict.answers]}, and what it keeps is bounded."
        endless = judged(verdict.operators[-1].node, follow=True)
        if not (found := troubles(endless)):
            return first
        mending = [*_first_come(endless), "add --follow to see which promises mend that"]
        more = [f"with --keep-open its input does not end: {_first_of(found)}", *mending]
        return "\n".join([first, *(f"{line[0].upper()}{line[1:]}." for line in more)])
    lines = [f"{trouble}." for trouble in troubles(verdict)]
    mending = _advice(verdict, remedies, changes)
    lines += [f"Or {one}." if i else f"{one[0].upper()}{one[1:]}." for i, one in enumerate(mending)]
    return "\n".join(lines)


def _advice(verdict: QueryVerdict, remedies: Sequence[Remedy], changes: Sequence[Change]) -> list[str]:
    """Ways to make an unsafe query safe."""
    return [*_times_of_texts(verdict), *map(str, remedies), *map(str, changes)] or [_unmended(verdict)]


def _times_of_texts(verdict: QueryVerdict) -> list[str]:
    """Advises to declare a TIMESTAMP where a window casts strings to timestamps."""
    for one in verdict.operators:
        selection = one.node.operator.selection(*one.node.input_schemas)
        for expression in (selection.columns or {}).values() if selection is not None else ():
            texts = [a.name for a in one.node.inputs[0].schema if isinstance(a.domain.sql, StringType)]
            if name := next((n for n in texts if expression == f"CAST({quoted(n)} AS TIMESTAMP)"), None):
                return [f"declare {name} as TIMESTAMP, not STRING: an order of strings closes no window of their times"]
    return []


def _unmended(verdict: QueryVerdict) -> str:
    """The advice for a query that no tried remedy or change makes safe."""
    for one in verdict.troubled()[:1]:
        # If an operator below is the trouble, the order of the source is not what is missing.
        if keys := one.node.operator.sorts_by:
            return (
                f"remove ORDER BY {', '.join(keys)}, since tuples go out as soon as they are final; or sort by an"
                " attribute in whose order a source sends its tuples (punctuate 'order of ts')"
            )
    return (
        "no promise of one attribute per source is enough: restrict the query, for example by a window or a join"
        " condition in time"
    )


def _first_come(verdict: QueryVerdict) -> list[str]:
    """For the first row of each key in an order that nothing closes: the advice to take the first that comes."""
    for node in (one.node for one in verdict.troubled() if not one.is_enabled):
        if node.operator.takes_first and out_of_order(node.inputs[0]) is None:
            what = "if you want the first row of each key as it comes"
            return [f"{what}, write ORDER BY arrival within OVER (…), in Python drop_duplicates([…])"]
    return []


def _first_of(found: Sequence[str]) -> str:
    """The first of several troubles, and how many there are."""
    return f"{found[0]}{f', and {len(found) - 1} more' if len(found) > 1 else ''}"


_WHEN = {When.AT_ONCE: "at once", When.CLOSED: "when groups close", When.AT_THE_END: "at the end of its input"}


def line(verdict: QueryVerdict) -> str:
    """The verdict on the query in one line: its first trouble, or when it answers and what it keeps."""
    if verdict.troubled():
        return f"refused, {troubles(verdict)[0]}"
    logs = any(one.keeps for one in verdict.operators)
    kept = "nothing" if not logs else "what is open" if verdict.is_cleansed else "finitely much"
    return f"answers {_WHEN[verdict.answers]}, keeps {kept}"


def troubles(verdict: QueryVerdict) -> list[str]:
    """A line for each operator that never answers, and for each log that grows for ever."""
    known = verdict.by_node
    lines = []
    for one in verdict.troubled():
        if not one.is_enabled:
            lines.append(f"{one.name} {answering(one.answers, one.node, known)}")
        lines += [f"{one.name} keeps {kept_words(k, one.node, known)}" for k in one.keeps if not k.is_bounded]
    return lines


_FOLLOWED = "--allow-unsafe runs it anyway"
_STRICT = "without --strict it runs to the end of its input"


@at_any_depth
def caution(root: Node, *, keep_open: bool = False) -> str | None:
    """A line about the trouble of a plan if its inputs do not end; None if it is enabled and safe.

    With `keep_open`, the end of the inputs does not close them; then a second line shows what would mend the plan.
    """
    verdict = judged(root, follow=True)
    if not (found := troubles(verdict)):
        return None
    # A source may declare that it promises nothing, by empty schemes.
    nodes = [(one.name, one.node, one.node.operator) for one in verdict.operators]
    scans = [(name, node, operator) for name, node, operator in nodes if isinstance(operator, Scan)]
    promising = {below for _, node, op in nodes if node.inputs and op.declared_in for below in topological(node)}
    silent = [name for name, node, scan in scans if node not in promising and not scan.options.has_promise]
    without = f"; {' and '.join(silent)} promise{'s' if len(silent) == 1 else ''} nothing" if silent else ""
    if not keep_open:
        return f"only the end of its input lets this query answer or purge: {_first_of(found)}{without}"
    line = f"with --keep-open the input of this query does not end: {_first_of(found)}{without}"
    if verdict.is_enabled:
        return line
    mending = _advice(verdict, remedies(root, follow=True), changes(root, follow=True))
    return f"{line}\n  Hint: {'; or '.join([*_first_come(verdict), *mending])}"


def unsafe(root: Node, *, strict: bool = False, follow: bool = True) -> UnsafeQuery | None:
    """The refusal of a plan over inputs without an end; None if the plan is enabled and safe.

    Args:
        root: The plan.
        strict: The inputs of this run do end; the hint then names --strict instead of --allow-unsafe.
        follow: Whether no input has an end; otherwise, only streams of Spark's have none.
    """
    verdict = judged(root, follow=follow)
    if not verdict.troubled():
        return None
    hint = "; or ".join(_advice(verdict, remedies(root, follow=follow), changes(root, follow=follow)))
    return UnsafeQuery(
        "over inputs without an end this query would wait or grow for ever",
        where="\n  ".join(troubles(verdict)),
        hint=f"{hint}; {_STRICT if strict else _FOLLOWED}",
    )
