"""Which punctuations to ask for: the smallest sets of schemes under which a query answers and stays bounded.

The schemes that sources declare are set aside, and the joins are chosen anew for each set. For each set: what a result
waits for, and how long after its first tuple at most; how many rows are kept at most; and about how many bytes of
punctuations an hour its sources write. The numbers follow from rates: how many tuples a source sends, how many new
values an attribute has, and how long a value is open, from its first tuple to its punctuation.

By Little's law a log has no more rows than come while the value is open that they wait for. What a join emits is taken
for as much as its greatest input, as by the choice of joins; so what is kept above one is an estimate, and is called
one, unless its rows are by attributes of one source.

Source: Tucker et al. 2007, §10 (sets of schemes, a bound on state, how much a query benefits); Li et al. 2006, §5.2
(Plan Parameter I).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.behaviour import Combines, JoinsTwo
from xmlstream.optimizer.choose_joins import joined_at_once
from xmlstream.plan.nodes import Node, Scan, Static, topological
from xmlstream.punct_ns.errors import UsageError, did_you_mean
from xmlstream.punct_ns.numeric_type import NumericType
from xmlstream.punct_ns.schema import Attribute
from xmlstream.punct_ns.scheme import Scheme, format_schemes
from xmlstream.punct_ns.temporal_type import DateType, TemporalType
from xmlstream.safety.changes import by_source, origins
from xmlstream.safety.remedies import remedies, single_terms
from xmlstream.safety.verdicts import Kept, QueryVerdict, Verdicts, Waiting, When, judged
from xmlstream.safety.words import closing, waiting
from xmlstream.sources.xml.options.formats import seconds

MOST = 6
"""Most sets to list."""

_FORM = "bid 500/s; bid.auction 20/s, open 10m: tuples of a source, new values of an attribute, how long one is open"
_RATE = re.compile(
    r"\s*(?P<of>[^\s;,]+)\s+(?:(?P<number>\d+(?:\.\d+)?)\s*/\s*(?P<unit>s|m|min|h|d)\b)?"
    r"\s*,?\s*(?:open\s+(?P<open>[^;,]+?))?\s*",
    re.IGNORECASE,
)
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
"""The seconds of a unit of time behind `/`."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast tuples of a source, or new values of an attribute, come, and how many seconds a value is open."""

    per_second: float | None = None
    open: float | None = None


Rates = Mapping[str, Rate]
"""Rates by the names of sources, and of their attributes as `bid.auction`, in lower case."""


def rates_of(text: str, root: Node) -> dict[str, Rate]:
    """The rates that a text states for the sources of a plan, such as `bid 500/s; bid.auction 20/s, open 10m`.

    Raises:
        UsageError: A rate cannot be read, or there is no such source or attribute.
    """
    known = {
        name
        for node in topological(root)
        if isinstance(node.operator, Scan)
        for name in (node.operator.name, *(f"{node.operator.name}.{of}" for of in node.schema.names))
    }
    found: dict[str, Rate] = {}
    for part in filter(str.strip, text.split(";")):
        read = _RATE.fullmatch(part)
        if read is None or not (read["number"] or read["open"]):
            raise UsageError(f"the rate '{part.strip()}' cannot be read", hint=_FORM)
        if read["of"].lower() not in map(str.lower, known):
            hint = did_you_mean(read["of"], sorted(known), f"there are {', '.join(sorted(known))}")
            raise UsageError(f"there is no {read['of']}", hint=hint)
        number = float(read["number"]) / _UNITS[read["unit"].lower()] if read["number"] else None
        found[read["of"].lower()] = Rate(number, seconds("open", read["open"]) if read["open"] else None)
    return found


@dataclass(frozen=True, slots=True)
class PromiseSet:
    """A set of schemes under which a query answers and stays bounded.

    Attributes:
        schemes: The schemes of each source that has some.
        waits: What results wait for, in words; empty for nothing.
        after: The most seconds from the first tuple of a result to the result; None if that is not known.
        kept: For each log its operator, its rows in words, and how many they are at most; None if that is not known.
        estimated: Whether what is kept is an estimate, since a join emits it.
        bytes: About how many bytes of punctuations an hour sources write; None if that is not known.
        lacks: The rates that would be needed to know more.
        declared: Whether the sources declare it now.
    """

    schemes: Mapping[str, Sequence[Scheme]]
    waits: str
    after: float | None
    kept: tuple[tuple[str, str, float | None], ...]
    estimated: bool
    bytes: float | None
    lacks: tuple[str, ...]
    declared: bool = False

    @property
    def rows(self) -> float | None:
        """How many rows are kept at most; None if that is not known."""
        found = [rows for *_, rows in self.kept]
        return None if None in found else sum(filter(None, found))

    def __str__(self) -> str:
        schemes = "; ".join(f"{name}: schemes '{format_schemes(of)}'" for name, of in self.schemes.items())
        lines = [f"{schemes or 'no schemes'}{' (declared now)' if self.declared else ''}"]
        after = "" if self.after is None else f", at most {_time(self.after)} after its first tuple"
        lines.append(f"  a result comes {self.waits or 'at once'}{after if self.waits else ''}")
        logs = [f"{name} {what} {'(unknown)' if rows is None else f'{rows:,.0f}'}" for name, what, rows in self.kept]
        most = (
            "an unknown number of"
            if self.rows is None
            else f"{'about' if self.estimated else 'at most'} {self.rows:,.0f}"
        )
        lines.append(f"  it keeps {most} rows: {', '.join(logs)}" if logs else "  it keeps nothing")
        size = "an unknown number of bytes" if self.bytes is None else _size(self.bytes)
        lines.append(f"  punctuations take {size} an hour" if self.schemes else "  it needs no punctuations")
        return "\n".join(lines)

    def json(self) -> dict[str, object]:
        """The set as JSON."""
        return {
            "schemes": {name: format_schemes(of) for name, of in self.schemes.items()},
            "declared": self.declared,
            "waits": self.waits,
            "seconds": self.after,
            "kept": [{"operator": name, "rows": what, "at most": rows} for name, what, rows in self.kept],
            "rows": self.rows,
            "estimated": self.estimated,
            "bytes an hour": self.bytes,
            "unknown": list(self.lacks),
        }


def promise_sets(root: Node, plan: Callable[[Node], Node], rates: Rates, most: int = MOST) -> list[PromiseSet]:
    """The smallest sets of schemes under which a query over streams without an end answers and stays bounded.

    The set that its sources declare is the last one, unless it is among the others.

    Args:
        root: The query as it is written.
        plan: Makes the plan that runs, with the joins chosen.
        rates: The known rates.
        most: Most sets to list.
    """
    scans = {node.operator.name: node.operator for node in topological(root) if isinstance(node.operator, Scan)}
    bare = _with_schemes(root, {})
    found = [dict[str, Sequence[Scheme]]()] if _is_bounded(judged(plan(bare), follow=True)) else []
    found += [{name: [scheme] for name, scheme in one.promises} for one in remedies(bare, follow=True, most=most)]
    found = found or list(filter(None, [_least(bare, plan)]))
    written = {name: _written(scan) for name, scan in scans.items() if _written(scan)}
    if _texts(written) not in map(_texts, found) and _is_bounded(judged(plan(root), follow=True)):
        found.append(written)
    return [
        _counted(plan(_with_schemes(root, one)), one, rates, declared=_texts(one) == _texts(written)) for one in found
    ]


def _least(bare: Node, plan: Callable[[Node], Node]) -> dict[str, Sequence[Scheme]] | None:
    """A set that does not suffice without any of its schemes; None if all schemes do not suffice."""
    any_plan = joined_at_once(bare)
    scans = {node.operator.name: node for node in topological(bare) if isinstance(node.operator, Scan)}
    left = [(name, scheme) for name, scan in scans.items() for scheme in single_terms(scan.schema)]

    def by_source(some: Sequence[tuple[str, Scheme]]) -> dict[str, Sequence[Scheme]]:
        return {name: [scheme for of, scheme in some if of == name] for name in dict.fromkeys(of for of, _ in some)}

    def suffice(some: Sequence[tuple[str, Scheme]]) -> bool:
        return _is_bounded(judged(any_plan, follow=True, additions=by_source(some)))

    if not suffice(left):
        return None
    for one in reversed(left):  # prefixes, which need an order, go first
        if suffice(fewer := [other for other in left if other is not one]):
            left = fewer
    found = by_source(left)
    return found if _is_bounded(judged(plan(_with_schemes(bare, found)), follow=True)) else None


def _texts(schemes: Mapping[str, Sequence[Scheme]]) -> dict[str, str]:
    return {name: format_schemes(of) for name, of in schemes.items()}


def _written(scan: Scan) -> Sequence[Scheme]:
    """The schemes that a source declares by its option `schemes`."""
    bare = scan.options.replace(schemes=None).schemes
    return [scheme for scheme in scan.options.schemes if scheme not in bare]


def _is_bounded(verdict: QueryVerdict) -> bool:
    return verdict.is_enabled and verdict.is_safe


def _with_schemes(root: Node, schemes: Mapping[str, Sequence[Scheme]]) -> Node:
    """The plan whose sources declare these schemes by their option, and no others."""
    made: dict[Node, Node] = {}
    for node in topological(root):
        operator = node.operator
        if isinstance(operator, Scan):
            text = format_schemes(schemes.get(operator.name, ()))
            operator = replace(operator, options=operator.options.replace(schemes=text or None))
        made[node] = Node(operator, tuple(made[below] for below in node.inputs), node.label)
    return made[root]


def _counted(root: Node, schemes: Mapping[str, Sequence[Scheme]], rates: Rates, *, declared: bool) -> PromiseSet:
    """A set with its numbers."""
    verdict = judged(root, follow=True)
    counts = _Counts(rates, verdict.by_node)
    waits = [one for one in verdict.operators if one.answers.when is When.CLOSED]
    kept = tuple(
        (one.name, each.model.what, counts.rows(each, one.node)) for one in verdict.operators for each in one.keeps
    )
    after = [counts.open_for(one.answers, one.node) for one in waits]
    words = dict.fromkeys(waiting(one.answers, one.node, counts.known) for one in waits)
    size = counts.bytes(root, schemes)
    return PromiseSet(
        schemes,
        " and ".join(words),
        None if None in after else max(filter(None, after), default=0.0),
        kept,
        counts.estimates,
        size,
        tuple(dict.fromkeys(counts.lacks)),
        declared,
    )


@dataclass(slots=True)
class _Counts:
    """What follows from rates, with the verdicts on a plan; rates that are not known are noted in `lacks`."""

    rates: Rates
    known: Verdicts
    lacks: list[str] = field(default_factory=list)
    estimates: bool = False

    def _rate(self, name: str, of: str) -> float | None:
        """A rate by its name: `per_second` or `open`; noted if it is not known."""
        value: float | None = getattr(self.rates.get(name.lower(), Rate()), of)
        if value is None:
            self.lacks.append(f"{name} {'…/s' if of == 'per_second' else 'open …'}")
        return value

    def _tuples(self, node: Node) -> float | None:
        """The most tuples a second that a node emits, above a join an estimate; None if that is not known."""
        match node.operator:
            case Scan(name=name):
                return self._rate(name, "per_second")
            case Static():
                return 0.0
        below = [self._tuples(each) for each in node.inputs]
        if None in below:
            return None
        self.estimates |= isinstance(node.operator, Combines)
        return (
            max(filter(None, below), default=0.0) if isinstance(node.operator, Combines) else sum(filter(None, below))
        )

    def open_for(self, found: Waiting, node: Node) -> float | None:
        """The most seconds that a value is open for which an operator waits; None if that is not known.

        A value is handed on as closed once the operators below have no tuple with it any more.
        """
        times: list[float | None] = []
        for grouping in found.groupings:
            below = node.inputs[grouping.input]
            ways = closing(grouping.attributes, below, self.known, null=grouping.null)
            of = [source for name in (ways[0] if ways else ()) for source in origins(below, name)]
            times += [self._open_of(source, name) for source, name in of if isinstance(source.operator, Scan)]
            times += [
                self.open_for(kept.until, each)
                for each in topological(below)
                for kept in self.known[each].keeps
                if kept.until.when is When.CLOSED
            ]
        return None if None in times else max(filter(None, times), default=0.0)

    def _open_of(self, source: Node, name: str) -> float | None:
        """How many seconds a value of a source's attribute is open at most; a unique one is closed with its tuple."""
        assert isinstance(source.operator, Scan)
        options = source.operator.options
        if options.schema.index(name) in options.structural.unique:
            return 0.0
        return self._rate(f"{source.label}.{name}", "open")

    def rows(self, kept: Kept, node: Node) -> float | None:
        """The most rows of a log; None if that is not known."""
        model = kept.model
        if kept.until.when is When.AT_ONCE and not kept.until.groupings:
            return 0.0
        came = None if model.per is None else self._new_keys(node.inputs[model.input], model.per.names)
        came = self._tuples(node.inputs[model.input]) if came is None else came
        time = self.open_for(kept.until, node)
        if came is None or time is None:
            return None if model.most is None else float(model.most)
        return came * time if model.most is None else min(came * time, model.most)

    def _new_keys(self, node: Node, names: Sequence[str]) -> float | None:
        """The most new values a second of attributes that one source has, or each branch of a union has for itself.

        None if that is not known.
        """
        found = [origins(node, name) if name in node.schema.names else () for name in names]
        sources = by_source(found)
        if not sources or not all(isinstance(source.operator, Scan) for source, _ in sources):
            return None
        if any(len(each) != len(sources) for each in found) or (
            len(sources) > 1 and any(isinstance(each.operator, Combines | JoinsTwo) for each in topological(node))
        ):
            return None
        new = []
        for source, own in sources:
            known = [
                self.rates.get(f"{source.label}.{name}".lower(), Rate()).per_second for name in own if len(own) == 1
            ]
            known.append(self.rates.get(source.label.lower(), Rate()).per_second)
            new.append(min((rate for rate in known if rate is not None), default=None))
        return None if None in new else sum(filter(None, new))

    def bytes(self, root: Node, schemes: Mapping[str, Sequence[Scheme]]) -> float | None:
        """About how many bytes of punctuations an hour sources write; None if that is not known."""
        total = 0.0
        for node in topological(root):
            if not isinstance(node.operator, Scan):
                continue
            for scheme in schemes.get(node.operator.name, ()):
                new = [self.rates.get(f"{node.label}.{name}".lower(), Rate()).per_second for name in scheme.attributes]
                each = self._rate(node.label, "per_second") if None in new else max(filter(None, new), default=0.0)
                if each is None:
                    return None
                total += each * 3600 * _punctuation_bytes(node.operator, scheme)
        return total


def _punctuation_bytes(scan: Scan, scheme: Scheme) -> int:
    """The bytes of a punctuation of a scheme as an element with its leaves, on a line of its own."""
    tag = scan.options.row_tags[0].rpartition("}")[2]
    size = 2 * len(f"punct:{tag}") + 6
    for term in scheme.terms:
        name = scan.schema.attribute(term.attribute)
        size += 2 * len(name.name) + 5 + _value_bytes(name) + (3 if term.kind == "prefix" else 0)
    return size


def _value_bytes(attribute: Attribute) -> int:
    """The bytes of a common value of an attribute's type."""
    sql = attribute.domain.sql
    if isinstance(sql, TemporalType):
        return 10 if isinstance(sql, DateType) else 20
    return 6 if isinstance(sql, NumericType) else 8


def sets_in_words(found: Sequence[PromiseSet]) -> str:
    """The sets as text for people."""
    if not found:
        return "No promises of one attribute each make it answer and stay bounded: explain says what else would."
    lines = ["It answers and stays bounded under each of these sets of promises:"]
    lines += [f"\n{number}. {one}" for number, one in enumerate(found, 1)]
    if lacks := list(dict.fromkeys(each for one in found for each in one.lacks)):
        lines.append(f"\nMore is known with --rates '{'; '.join(lacks)}'.")
    return "\n".join(lines)


def _time(length: float) -> str:
    for unit, of in (("d", 86400), ("h", 3600), ("min", 60)):
        if length >= of:
            return f"{length / of:.3g} {unit}"
    return f"{length:.3g} s"


def _size(number: float) -> str:
    for unit, of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= of:
            return f"about {float(f'{number / of:.2g}'):g} {unit}"
    return f"about {number:.0f} bytes"
