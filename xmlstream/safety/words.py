"""Verdicts in words: the plan as a tree with promises, results and state; and the refusal of unsafe queries.

A query that would wait or grow for ever over inputs without an end is refused before anything is read.

Source: Li et al. 2006, §2.1 and §5: a continuous query is accepted if it is safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from operators.closing_conditions import Grouping
from operators.project import Project
from operators.sort import Sort
from punct_ns.errors import UnsafeQuery
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, Term, is_compact
from punct_ns.slices import quoted
from punct_ns.sql_type import StringType
from xmlstream.plan.nodes import Node, Results, Scan
from xmlstream.plan.written_plan import brief, described
from xmlstream.safety.changes import Change, by_source, changes, origins
from xmlstream.safety.remedies import Remedy, remedies
from xmlstream.safety.verdicts import END, Kept, OperatorVerdict, QueryVerdict, Waiting, When, judged


def tree(verdict: QueryVerdict) -> str:
    """The plan with its verdicts, an operator above what it reads; what is used twice is said once."""
    known = {one.node: one for one in verdict.operators}
    lines: list[str] = []
    said: set[Node] = set()

    def write(node: Node, depth: int) -> None:
        one = known[node]
        again = node in said
        lines.append(f"{'    ' * depth}{one.name}: {'as above' if again else brief(described(node))}")
        if again:
            return
        said.add(node)
        lines.extend(f"{'    ' * depth}  {line}" for line in _lines(one, known))
        for below in node.inputs:
            write(below, depth + 1)

    write(verdict.operators[-1].node, 0)
    return "\n".join(lines)


def _lines(one: OperatorVerdict, known: dict[Node, OperatorVerdict]) -> Iterator[str]:
    """What an operator promises; when it answers and what it keeps, where it waits or keeps anything."""
    if isinstance(one.node.operator, Results):
        return
    ends = isinstance(one.node.operator, Scan) and END in one.promises.ended
    yield f"promises {promised(one.promises.running, one.node.schema)}{', and ends' if ends else ''}"
    if one.answers.when > When.AT_ONCE or one.keeps:
        yield answering(one.answers, one.node, known)
    for kept in one.keeps:
        yield f"keeps {kept_words(kept, one.node, known)}"


def promised(schemes: Iterable[Scheme], schema: Schema) -> str:
    """Schemes as sources declare them, and where null may be and is not promised, that.

    >>> here = Schema.parse("a INT, b INT NOT NULL")
    >>> promised([Scheme((Term("a", null=False), Term("b", null=False))), Scheme((Term("a"),))], here)
    'a (not null), b; a'
    """

    def text(term: Term) -> str:
        no_null = not term.null and schema.attribute(term.attribute).domain.nullable
        return f"{term} (not null)" if no_null else str(term)

    found = (", ".join(map(text, scheme.terms)) or "its end" for scheme in schemes)
    return "; ".join(dict.fromkeys(found)) or "nothing"


def answering(found: Waiting, node: Node, known: dict[Node, OperatorVerdict]) -> str:
    """When an operator answers: `answers when hour closes`, `never answers, since nothing closes hour`."""
    when = waiting(found, node, known)
    return f"never answers{when.removeprefix('never')}" if found.when is When.NEVER else f"answers {when}"


def waiting(found: Waiting, node: Node, known: dict[Node, OperatorVerdict]) -> str:
    """When something comes: `at once`, `when hour of s1 closes`, `at the end`, `never, since nothing closes …`."""
    match found.when:
        case When.AT_ONCE:
            return "at once"
        case When.CLOSED:
            return f"when {_all(found, node, known)} closes"
        case When.AT_THE_END:
            return "at the end of its input"
        case When.NEVER:
            return f"never, since nothing closes {_all(found, node, known)}"


def kept_words(kept: Kept, node: Node, known: dict[Node, OperatorVerdict]) -> str:
    """What is kept, and how long."""
    what = kept.model.what
    if kept.model.is_fixed:
        return f"{what} of each {', '.join(kept.model.per.names)}" if kept.model.per else what
    if kept.until.when is When.AT_ONCE:
        return f"{what} for a slice at the most"
    if kept.until.when < When.NEVER:
        until = waiting(kept.until, node, known)
        return f"{what} until {until.removeprefix('at ' if kept.until.when is When.AT_THE_END else 'when ')}"
    if kept.of.ends:
        return f"{what}, as many as {'the table has' if kept.of.is_static else 'come before their input closes'}"
    if kept.model.most is not None and kept.model.per is not None:
        values = ", ".join(kept.model.per.names)
        return f"{what}, one for each value of {values}: {kept.model.most:,} at the most"
    return f"{what} for ever, since nothing closes {_all(kept.until, node, known)}"


def _all(found: Waiting, node: Node, known: dict[Node, OperatorVerdict]) -> str:
    return " and ".join(dict.fromkeys(_named(grouping, node, known) for grouping in found.groupings))


def _named(grouping: Grouping, node: Node, known: dict[Node, OperatorVerdict]) -> str:
    """What must close: the attributes of the schemes that close it, of one or of another, or those that none closes.

    They are those of sources, where they come from sources, and said to be where there is more than one.
    """
    below = node.inputs[grouping.input]
    elsewhere = len(node.inputs) > 1 or sum(isinstance(each.operator, Scan) for each in known) > 1
    of_inputs = f" of {known[below].name}" if len(node.inputs) > 1 else ""
    if ways := _closing(grouping.attributes, below, known, null=grouping.null):
        told: dict[object, str] = {}
        for names in ways:
            of_sources = by_source([origins(below, name) for name in names])
            # Starts and ends of windows close together.
            if (same := tuple(of_sources) or names) not in told:
                own = ", ".join(names) or "its input"
                told[same] = _of(of_sources, known) if of_sources and elsewhere else f"{own}{of_inputs}"
        return " or ".join(told.values())
    names, whole = grouping.attributes, len(grouping.attributes) == len(below.schema.names) > 1
    of_sources = by_source([origins(below, name) for name in names])
    # Those that do close it are not those who are missing.
    of_sources = [(source, own) for source, own in of_sources if not _closing(own, source, known)] or of_sources
    if not of_sources or not (elsewhere or whole):
        called = "any of its attributes" if whole else ", ".join(names) or "its input"
        return f"{called} of {known[below].name}" if whole else f"{called}{of_inputs}"
    if whole:
        return f"any attribute of {_listed(known[source].name for source, _ in of_sources)}"
    return _of(of_sources, known)


def _of(of_sources: Iterable[tuple[Node, tuple[str, ...]]], known: dict[Node, OperatorVerdict]) -> str:
    """Attributes of sources: `hour of sensor1 and sensor2`."""
    together: dict[tuple[str, ...], list[str]] = {}
    for source, own in of_sources:
        together.setdefault(own, []).append(known[source].name)
    return " and ".join(f"{', '.join(own)} of {_listed(sources)}" for own, sources in together.items())


def _closing(
    attributes: Sequence[str], node: Node, known: dict[Node, OperatorVerdict], *, null: bool = True
) -> list[tuple[str, ...]]:
    """The attributes of a node's schemes by each of which groups by these attributes close; of as few as will do."""
    schemes = known[node].promises.running
    ways = dict.fromkeys(s.attributes for s in schemes if is_compact(attributes, s, node.schema, null=null))
    return [way for way in ways if not any(set(other) < set(way) for other in ways)]


def _listed(names: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(names))


def summary(verdict: QueryVerdict, remedies: Sequence[Remedy], changes: Sequence[Change] = ()) -> str:
    """The verdict on the query, and what would mend it, in a few lines."""
    if not verdict.troubled():
        return f"It answers {_WHEN[verdict.answers]}, and what it keeps is bounded."
    lines = [f"{trouble}." for trouble in troubles(verdict)]
    mending = [*times_of_texts(verdict), *map(str, remedies), *map(str, changes)] or [unmended(verdict)]
    lines += [f"Or {one}." if i else f"{one[0].upper()}{one[1:]}." for i, one in enumerate(mending)]
    return "\n".join(lines)


def times_of_texts(verdict: QueryVerdict) -> list[str]:
    """What to do about texts that a troubled query cuts into windows: of their times no order of texts closes any."""
    for one in verdict.operators if verdict.troubled() else ():
        for column in one.node.operator.columns if isinstance(one.node.operator, Project) else ():
            texts = [a.name for a in one.node.inputs[0].schema if isinstance(a.domain.sql, StringType)]
            if name := next((n for n in texts if column.expression == f"CAST({quoted(n)} AS TIMESTAMP)"), None):
                return [f"declare {name} TIMESTAMP, no STRING: no order of texts closes what their times are"]
    return []


def unmended(verdict: QueryVerdict) -> str:
    """What to do about a query that nothing mends which was tried."""
    for one in verdict.troubled():
        if isinstance(one.node.operator, Sort):
            keys = ", ".join(key.attribute for key in one.node.operator.keys)
            return (
                f"leave ORDER BY {keys} out, since tuples come as soon as they are final; or order by what a source has"
                " in order, as punctuate 'order of ts' says"
            )
    return "no promise of one attribute of each source mends it: bound what is asked"


_WHEN = {When.AT_ONCE: "at once", When.CLOSED: "when groups close", When.AT_THE_END: "at the end of its input"}


def line(verdict: QueryVerdict) -> str:
    """The verdict on the query in a line, such as a comment in its file: the first trouble, or when it answers."""
    if verdict.troubled():
        return f"refused, {troubles(verdict)[0]}"
    logs = any(one.keeps for one in verdict.operators)
    kept = "nothing" if not logs else "what is open" if verdict.is_cleansed else "finitely much"
    return f"answers {_WHEN[verdict.answers]}, keeps {kept}"


def troubles(verdict: QueryVerdict) -> list[str]:
    """Which operators never answer, and which keep tuples for ever."""
    known = {one.node: one for one in verdict.operators}
    found = []
    for one in verdict.troubled():
        if not one.is_enabled:
            found.append(f"{one.name} {answering(one.answers, one.node, known)}")
        found += [f"{one.name} keeps {kept_words(k, one.node, known)}" for k in one.keeps if not k.is_bounded]
    return found


_FOLLOWED = "--allow-unsafe (in Python allow_unsafe=True) runs it all the same"
_STRICT = "without --strict (in Python strict=True) it runs to the end of its input"


def caution(root: Node) -> str | None:
    """In a line, what would be wrong with a plan if its inputs went on; None if it is enabled and safe."""
    verdict = judged(root, follow=True)
    if not (found := troubles(verdict)):
        return None
    others = f", and {len(found) - 1} more" if len(found) > 1 else ""
    silent = [one.name for one in verdict.operators if isinstance(one.node.operator, Scan) and _promises_nothing(one)]
    unsaid = f"; {' and '.join(silent)} promise{'s' if len(silent) == 1 else ''} nothing" if silent else ""
    return f"only the end of its input lets this query answer or forget: {found[0]}{others}{unsaid}"


def _promises_nothing(one: OperatorVerdict) -> bool:
    """Whether nobody has said what a source punctuates, be it nothing, nor does a rule."""
    return isinstance(one.node.operator, Scan) and not one.node.operator.options.has_promise


def unsafe(root: Node, *, strict: bool = False) -> UnsafeQuery | None:
    """What is wrong with a plan over inputs that are waited for; None if it is enabled and safe.

    Args:
        root: The plan.
        strict: Of inputs that are read to their end, too, which mends everything in the end.
    """
    verdict = judged(root, follow=True)
    if not verdict.troubled():
        return None
    mending = [*times_of_texts(verdict), *map(str, remedies(root, follow=True)), *map(str, changes(root, follow=True))]
    hint = "; or ".join(mending) or unmended(verdict)
    what = "over inputs without an end this query would wait or grow for ever"
    return UnsafeQuery(
        what,
        where="\n  ".join(troubles(verdict)),
        hint=f"{hint}; {_STRICT if strict else _FOLLOWED}",
    )
