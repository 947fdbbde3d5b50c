"""A change of a query: what the new query takes over from a checkpoint, what begins anew, and what refuses it.

Results of the new query that go where one of the old query went, or stand in its place, go on: each group that the old
query has not closed is answered by the new one, and no other. So every operator below that keeps tuples must take over
its state, and every operator that has kept some must be continued (`plan_comparison`). Other results are
added: they are answers over the input from now on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.dialect import brief
from xmlstream.operators.hand_over import HandOver, first_of
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.roster import ByRoster
from xmlstream.plan.nodes import Node, Results, Scan, Static, names, results, topological
from xmlstream.plan.written_plan import described
from xmlstream.punct_ns.errors import StateError, XmlStreamError, counted
from xmlstream.runtime.change.continued import closed_over
from xmlstream.runtime.change.join_trees import Rejoined
from xmlstream.runtime.change.plan_comparison import Comparison, is_static, keeps, not_final
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.checkpoint.same_query import QueryRecord
from xmlstream.sink.target import SINKS, OutputRecord

CONTINUES = "with --continues OLD_OUT and a checkpoint of its own it reads the input again"
"""The way on for a query that cannot take over the state."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a source, an operator or an output; `why` has the details."""

    name: str
    what: Literal["kept", "anew", "gone", "refused"]
    why: str
    says: str = ""

    def __str__(self) -> str:
        called = {"kept": "goes on", "anew": "begins anew", "gone": "ends", "refused": "refused"}[self.what]
        return f"{self.name}{self.says and f' ({self.says})'}: {called}{self.why and f', {self.why}'}"


class QueryChange:
    """The change from the query of a checkpoint to another one.

    Attributes:
        comparison: The plans beside each other.
        continued: For each result of the new query that goes on, the number of the old one.
        in_place: The results among them that go on in the same place.
        verdicts: What becomes of each source, operator and output.
        is_same: Whether it is the same query, which needs no change.
    """

    def __init__(
        self,
        before: QueryRecord,
        old: Node,
        mine: QueryRecord,
        new: Node,
        last: Commit | None,
        *,
        is_same: bool,
        moved: bool,
    ) -> None:
        self.is_same = is_same
        self.old, self.new, self.before, self.mine = old, new, before, mine
        self.last = last or Commit(-1)
        self.comparison = Comparison(old, new, moved=moved)
        self.continued, self.in_place = _pairs(before.outputs, mine.outputs, (_named(old), _named(new)), moved=moved)
        self.old_names, self.new_names = names(old), names(new)
        self.verdicts = [*self._of_query(), *self._of_nodes()]
        self.verdicts = [*self._of_hand_over(), *self.verdicts]
        if not self.refusals:
            self.verdicts += [*self._of_old_nodes(), *self._of_outputs()]

    @property
    def refusals(self) -> list[Verdict]:
        """The verdicts that refuse the change."""
        return [verdict for verdict in self.verdicts if verdict.what == "refused"]

    def require(self) -> None:
        """Makes sure that nothing refuses the change.

        Raises:
            StateError: Something does.
        """
        if refused := self.refusals:
            more = f"; and {len(refused) - 1} more" if len(refused) > 1 else ""
            what = f"the new query cannot go on with the state of the query before: {refused[0]}{more}"
            raise StateError(what, hint=f"{CONTINUES}; or undo this part of the change")

    @property
    def takes_all(self) -> bool:
        """Whether nothing is refused, and no operator that keeps tuples begins anew or ends."""
        return all(verdict.what == "kept" for verdict in self.verdicts)

    def closed_before(self) -> Iterator[str]:
        """What the outputs of the old query have closed that results go on with, each as a line.

        An output that holds no punctuations, or cannot be read, has none.
        """
        for k in sorted(set(self.continued.values())):
            output, schema = self.before.outputs[k], results(self.old)[k].schema
            types = {attribute.name.lower(): attribute.domain.type for attribute in schema}
            with suppress(XmlStreamError, OSError):
                closed, _ = closed_over(output.target, output.output, schema, types)
                if closed:
                    shown = first_of(tuple(map(str, closed)))
                    yield f"{_near(output.output)} has closed {shown}: the new query answers the rest"

    def groups_of(self, root: Node) -> dict[str, list[str]]:
        """The sources of a plan that are read in one pass, by the first of each, which has the position of all."""
        passes: dict[tuple[str, str | None], list[tuple[str, str]]] = {}
        for node, name in names(root).items():
            if isinstance(node.operator, Scan):
                options = node.operator.options
                passes.setdefault((options.path, options.encoding), []).append((name, options.row_tag))
        found: dict[str, list[str]] = {}
        for group in passes.values():
            if len({tag for _, tag in group}) == 1:
                found |= {name: [name] for name, _ in group}
            else:
                found[group[0][0]] = [name for name, _ in group]
        return found

    def _of_query(self) -> Iterator[Verdict]:
        if self.before.timeZone != self.mine.timeZone:
            why = f"its time zone is {self.mine.timeZone}, and was {self.before.timeZone}"
            yield Verdict("the query", "refused", why)
        if self.last.report.closed and not self.is_same:
            yield Verdict("the query", "refused", "its input has ended for good, and all is answered")

    def _of_hand_over(self) -> Iterator[Verdict]:
        """Refuses a result that does not leave out all that the hand-over on top of the result before it leaves out."""
        for i, k in self.continued.items():
            new, old = results(self.new)[i], results(self.old)[k]
            if not isinstance(old.operator, HandOver):
                continue
            final, stream, known = _near(old.operator.of), self.comparison.streams.get(new), self.comparison.before[old]
            why, left_out = f"what is final in {final} would come again", not_final(old, known)
            if not isinstance(new.operator, HandOver):
                why += f"; run --change --continues '{final}' leaves it out"
            elif self.refusals or (stream and stream.base is known.base and left_out in stream.conditions):
                continue
            yield Verdict(self.old_names[old], "refused", why, brief(described(old)))

    def _of_nodes(self) -> Iterator[Verdict]:
        """The sources and operators of the new query that keep tuples."""
        goes_on, refused = self._serving(self.new, self.continued.keys()), set[Node]()
        within = {inner for of in self.comparison.rejoined.values() for inner in of.new.inner}
        for node, name in self.new_names.items():
            if node in within:
                yield from self._of_rejoined(node, name)
                continue
            taken, says = self.comparison.taken.get(node), brief(described(node))
            if taken is not None or node in self.comparison.again:
                yield from self._of_taken(node, name)
            elif isinstance(node.operator, Punctuate):
                why = "it punctuates what comes from now on"
                if isinstance(node.operator.rule, ByRoster):
                    why += "; `xmlstream say --add` and `--remove` change a roster that goes on"
                yield Verdict(name, "anew", why, says)
            elif isinstance(node.operator, Static):
                yield Verdict(name, "anew", "it is read from its beginning", says)
            elif _looks_up(node):
                yield Verdict(name, "anew", "for what comes from now on", says)
            elif node in goes_on and (keeps(node) or len(node.inputs) != 1):
                if not isinstance(node.operator, Results) and refused.isdisjoint(topological(node)):
                    refused.add(node)
                    yield Verdict(name, "refused", self._why(node), says)
            elif keeps(node):
                yield Verdict(name, "anew", "with answers that are whole for groups without an earlier tuple", says)
            elif isinstance(node.operator, Scan):
                yield Verdict(name, "anew", "it is read from its beginning", says)
        yield from self._of_passes()

    def _of_taken(self, node: Node, name: str) -> Iterator[Verdict]:
        """A source or an operator that was there before; a static table that is read again, and what depends on it."""
        if node.inputs and not keeps(node):
            return
        says = brief(described(node))
        if node in self.comparison.again:
            again = "for what comes from now on" if node.inputs else "it is read again"
            yield Verdict(name, "anew", again, says)
        else:
            yield Verdict(name, "kept", self._kept(node), says)

    def _of_rejoined(self, node: Node, name: str) -> Iterator[Verdict]:
        """Joins that join the tuples of others in another way, as one."""
        if (of := self.comparison.rejoined.get(node)) is None:
            return
        if why := self._why_not_parted(of):
            yield Verdict(name, "refused", why, str(of.new))
        else:
            rows = counted(sum(map(self._rows, of.old.joins)), "row")
            yield Verdict(name, "kept", f"with the {rows} of {of.old}, joined again", str(of.new))

    def _why_not_parted(self, of: Rejoined) -> str | None:
        """Why rows that old joins keep of results of others cannot be taken apart; None if they can, or there are none.

        Of what has ended for a time, the tuples before and after its end have no results together.
        """
        for join, side in of.old.blocks:
            if not (rows := self._rows_of(join, side)):
                continue
            what = f"{self.old_names[join]} keeps {counted(rows, 'row')} of {of.old.written(join.inputs[side])}"
            if lacking := of.lacking(join, side):
                return f"{what} without {', '.join(lacking)}, which the new joins need; wait until they are closed"
            if any(map(self._has_lifespans, [*of.old.joins, *(n for i in of.old.inputs for n in topological(i))])):
                return f"{what}, and what is closed has lifespans; wait until they are closed"
        return None

    def _has_lifespans(self, old: Node) -> bool:
        sets = self.last.state(self.old_names[old]).sets
        return any(not isinstance(entry, str) for entries in sets.values() for entry in entries)

    def _why(self, node: Node) -> str:
        """The reason for which an operator takes over nothing: of the lowest one below it that does not."""
        for below in topological(node):
            is_passed = len(below.inputs) == 1 and not keeps(below) and below in self.comparison.streams
            if below in self.comparison.why and (below is node or not is_passed):
                where = "" if below is node else f"{self.new_names[below]}: "
                return f"{where}{self.comparison.why[below]}"
        return "the query before has no such operator"

    def _kept(self, node: Node) -> str:
        taken = self.comparison.taken[node]
        rows = self._rows(taken.old)
        parts = []
        if (earlier := self.old_names[taken.old]) != self.new_names[node]:
            parts.append(f"as {earlier} before")
        if keeps(node):
            parts.append(f"with {rows} {'row' if rows == 1 else 'rows'}")
        if conditions := {text for each in taken.conditions for text in each}:
            parts.append(f"less those without {' and '.join(sorted(map(brief, conditions)))}")
        return ", ".join(parts)

    def _rows(self, old: Node) -> int:
        """The rows that an operator of the old query keeps, but those of static tables."""
        kept, logs = self.last.state(self.old_names[old]).kept, old.state_schema.logs
        of_streams = {name for name, log in logs.items() if log.of is None or not is_static(old.inputs[log.of])}
        return sum(kept[log].rows for log in of_streams if log in kept)

    def _rows_of(self, old: Node, side: int) -> int:
        """The rows that an operator of the old query keeps of an input."""
        kept, logs = self.last.state(self.old_names[old]).kept, old.state_schema.logs
        return sum(kept[name].rows for name, log in logs.items() if log.models[0].input == side and name in kept)

    def _of_passes(self) -> Iterator[Verdict]:
        """Sources read in one pass have one position: the same ones must have been read together."""
        before, called = self.groups_of(self.old), {name: node for node, name in self.new_names.items()}
        of_old = {name: group for group in before.values() for name in group}
        for first, group in self.groups_of(self.new).items():
            taken = [self.comparison.taken.get(called[name]) for name in group]
            earlier = [self.old_names[each.old] for each in taken if each is not None]
            if earlier and (len(earlier) < len(group) or of_old[earlier[0]] != earlier):
                yield Verdict(first, "refused", f"it was read in one pass with {', '.join(of_old[earlier[0]])}")
            lifespans = any(not isinstance(entry, str) for name in earlier for entry in self._closed_by(name))
            if lifespans and earlier != group:
                yield Verdict(first, "refused", f"it was called {', '.join(earlier)} when its keys began to live")

    def _closed_by(self, source: str) -> Sequence[object]:
        return self.last.state(source).sets.get("added", ())

    def _of_old_nodes(self) -> Iterator[Verdict]:
        """What becomes of operators of the old query that the new one lacks, or that another result goes on with."""
        for i, k in self.continued.items():
            yield from self._of_continued(results(self.new)[i], results(self.old)[k])
        took = self._took(topological(self.new))
        for node, name in self.old_names.items():
            if isinstance(node.operator, Punctuate):
                if self.must_hand_down(node) and not self.source_of(node):
                    yield Verdict(name, "refused", "what it has closed must stay closed, and it is not on a source")
            elif keeps(node) and node not in took:
                rows = self._rows(node)
                yield Verdict(name, "gone", f"with {rows} rows" if rows else "", brief(described(node)))

    def _of_continued(self, new: Node, old: Node) -> Iterator[Verdict]:
        """Refuses a result that goes on with other operators than the result before it, or without one of these."""
        below, before = topological(new), set(topological(old))
        took = self._took(below)
        for node in below:
            taken = self.comparison.taken.get(node)
            if taken is not None and (keeps(node) or isinstance(node.operator, Scan)) and taken.old not in before:
                yield Verdict(
                    self.new_names[node], "refused", f"its result was not computed from {self.old_names[taken.old]}"
                )
            of = self.comparison.rejoined.get(node)
            if of is not None and of.old.root not in before:
                yield Verdict(self.new_names[node], "refused", f"its result was not computed from {of.old}")
        for node in topological(old):
            is_left = node not in took and keeps(node) and not isinstance(node.operator, Punctuate)
            if is_left and (rows := self._rows(node)):
                why = f"its result does not go on with the {rows} {'row' if rows == 1 else 'rows'} that it keeps"
                yield Verdict(self.old_names[node], "refused", why, brief(described(node)))

    def _took(self, nodes: Iterable[Node]) -> set[Node]:
        """The nodes of the old plan whose state, or tuples, some nodes of the new one take over."""
        comparison, nodes = self.comparison, list(nodes)
        took = {comparison.taken[node].old for node in nodes if node in comparison.taken}
        return took.union(*(comparison.rejoined[node].old.joins for node in nodes if node in comparison.rejoined))

    def must_hand_down(self, node: Node) -> bool:
        """Whether what a punctuate of the old plan has closed must be closed below it, as the rule is gone or other."""
        same = [new for new, taken in self.comparison.taken.items() if taken.old is node]
        closed = self.last.state(self.old_names[node]).sets.get("added")
        return bool(closed) and not any(new.operator.rule == node.operator.rule for new in same)  # type: ignore[union-attr]

    def source_of(self, node: Node) -> Node | None:
        """The source right below a punctuate, whose attributes are the same; None if there is none."""
        while isinstance(node.operator, Punctuate):
            (node,) = node.inputs
        return node if isinstance(node.operator, Scan) else None

    def _of_outputs(self) -> Iterator[Verdict]:
        new, old = results(self.new), results(self.old)
        for i, output in enumerate(self.mine.outputs):
            k = self.continued.get(i)
            if k is None:
                yield Verdict(_near(output.output), "anew", "with answers over the input from now on")
                continue
            before = self.before.outputs[k]
            if i not in self.in_place:
                yield Verdict(_near(output.output), "kept", f"where {_near(before.output)} ends")
                continue
            why = _otherwise(before, output) or self._other_columns(new[i], old[k], output)
            yield Verdict(_near(output.output), "refused" if why else "kept", why or "")
        for k, before in enumerate(self.before.outputs):
            if k not in self.continued.values():
                yield Verdict(_near(before.output), "gone", "")

    def _other_columns(self, new: Node, old: Node, output: OutputRecord) -> str | None:
        """Why a result cannot go on in its place: its columns are others, or mean something else."""
        stream, before = self.comparison.streams.get(new), self.comparison.before[old]
        if stream is None or stream.base is not before.base:
            return self.comparison.stuck or "its tuples are others, so give the new query another output"
        for name in old.schema.names:
            if name.lower() not in {other.lower() for other in new.schema.names}:
                continue
            if stream.columns.get(name.lower()) != before.columns.get(name.lower()):
                return f"its column {name} means something else, so give the new query another output"
        columns = [[(a.name, a.domain.type) for a in node.schema] for node in (new, old)]
        if columns[0] != columns[1] and output.form not in ("punctuated_xml", "json", "") and output.form in SINKS:
            return f"its columns are others, so give the new query another {output.form}"
        return None

    def _serving(self, root: Node, which: object) -> set[Node]:
        """The nodes of a plan below some of its results."""
        chosen = set(which)  # type: ignore[call-overload]
        return {node for i, result in enumerate(results(root)) if i in chosen for node in topological(result)}


def _looks_up(node: Node) -> bool:
    """Whether an operator looks each tuple of a stream up in static tables, so that no earlier tuple matters to it."""
    tables = {i for i, below in enumerate(node.inputs) if is_static(below)}
    return len(tables) == len(node.inputs) - 1 > 0 and tables <= {*node.operator.looked_up}


def _pairs(
    old: Sequence[OutputRecord], new: Sequence[OutputRecord], called: Sequence[Mapping[str, int]], *, moved: bool
) -> tuple[Mapping[int, int], frozenset[int]]:
    """For each result of the new query the one of the old query that it goes on with; and those in the same place.

    They have one place or one name; `called` are the numbers of both queries' results by their names.
    """
    places = {output.output: k for k, output in enumerate(old)}
    found = {i: places[output.output] for i, output in enumerate(new) if output.output in places}
    in_place = set(found)
    for name, i in called[1].items():
        k = called[0].get(name)
        if k is not None and i not in found and k not in found.values():
            found[i] = k
            in_place |= {i} if moved else set()
    return found, frozenset(in_place)


def _named(root: Node) -> dict[str, int]:
    """The numbers of a plan's results by their names; that of the only one by none."""
    called = root.operator.names if isinstance(root.operator, Results) else ("",)
    return {name: i for i, name in enumerate(called)}


def _otherwise(before: OutputRecord, now: OutputRecord) -> str | None:
    """Why an output cannot go on in its place; None if it can."""
    for name in ("form", "partition_by"):
        if getattr(before, name) != getattr(now, name):
            return f"its {name.replace('_', ' ')} is another one, so give the new query another output"
    return None


def _near(place: str) -> str:
    """A place as the user of this directory names it."""
    return place.removeprefix(f"{Path.cwd()}/")
