"""Inspection of a checkpoint: finds out what its query waits for, whether it runs, was stopped or was killed.

It writes nothing and takes no lock. While the query runs, its files come and go: if one is gone, the inspection starts
again with the next commit.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from xmlstream.dataclasses import replace
from xmlstream.diagnosis.kept_rows import ClosedOnDisk, KeptRows, log_attributes
from xmlstream.diagnosis.missing import Functions, Missing, MissingPunctuations, SentPunctuations, SliceTime, helps
from xmlstream.diagnosis.report import Example, Need, WaitingAnswer, WaitingReport, Waits, causes
from xmlstream.operators.punctuate import Punctuate, Streams
from xmlstream.operators.punctuators.roster import ByRoster
from xmlstream.operators.state.ages import Since
from xmlstream.operators.state.closed_set import added_punctuations
from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.store import LocalPlace, folder_at, unseal
from xmlstream.plan.nodes import (
    Node,
    Results,
    Scan,
    Static,
    declared_over,
    emitters,
    leaf,
    names,
    results,
    results_of,
    topological,
)
from xmlstream.plan.written_plan import PLAN_FILE, decoded
from xmlstream.punct_ns.errors import NotationError, StateError, UsageError, few
from xmlstream.punct_ns.notation import format_pattern
from xmlstream.punct_ns.pattern import Constant, matches, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.recast import over_first, placed
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import STREAM
from xmlstream.runtime.better_joins import BETTER
from xmlstream.runtime.checkpoint.commit_log import CommitLog, made_whole
from xmlstream.runtime.checkpoint.same_query import is_begun
from xmlstream.runtime.progress import closing_rules
from xmlstream.sources.xml.splits.slice_planner import Offset

SHOWN = 3
"""Number of example rows per log."""

_TRIES = 8

_MANY = 1000

_LONG_AGO = Since(-1, 0)

_Read = TypeVar("_Read")


def nobody(expression: str, *_: object) -> None:
    """Computes no expression: the default if there is no Spark session."""


def inspect(
    checkpoint: LocalPlace, key: Mapping[str, str] | None = None, *, functions: Functions = nobody
) -> WaitingReport:
    """Reports what the query of a checkpoint waits for.

    Args:
        checkpoint: The directory of the checkpoint.
        key: Patterns of attributes of a result, in notation, such as `{"hour": "17"}`: are these results out?
        functions: Computes expressions; without it, punctuations are traced less exactly through computed columns.

    Raises:
        StateError: There is no checkpoint, nothing was committed, or it is damaged or of another version.
        UsageError: No result has all attributes of the key, or a pattern is invalid.
    """
    root = plan_of(checkpoint)
    return as_of_last_commit(lambda: _Inspection(checkpoint, root, functions).report(key))


def senders_behind(checkpoint: LocalPlace) -> dict[str, tuple[str, ...]]:
    """For each source, the senders within it that others have passed while rows wait, in words; as of the last commit.

    Raises:
        StateError: Nothing was committed yet, or the checkpoint is damaged.
    """
    rules = closing_rules(plan_of(checkpoint))
    return {rules.get(each.source, each.source): each.senders for each in inspect(checkpoint).causes if each.senders}


def as_of_last_commit(read: Callable[[], _Read]) -> _Read:
    """Reads a checkpoint as of its last commit: again if the query has continued, and removed what was read."""
    for left in range(_TRIES, -1, -1):
        try:
            return read()
        except (OSError, pa.ArrowException, StateError):
            if not left:
                raise
            time.sleep(0.05)
    raise AssertionError


def plan_of(checkpoint: LocalPlace) -> Node:
    """The plan that the query of a checkpoint runs.

    Raises:
        StateError: There is no checkpoint, it has no plan, or it is damaged.
    """
    store = folder_at(checkpoint)
    if not is_begun(store):
        what = f"there is no checkpoint in {store.where()}"
        raise StateError(what, hint="name the directory that --checkpoint named")
    if store.size(PLAN_FILE) is None:
        what = f"the checkpoint {store.where()} has no plan"
        raise StateError(what, hint="run the query once more with this version of xmlstream")
    return decoded(unseal(store, PLAN_FILE))


def _promised(scan: object, lack: Missing) -> tuple[str, ...]:
    """The schemes of a source by which it promises what is missing."""
    return tuple(str(s) for s in scan.options.schemes if helps([s], lack.wanted)) if isinstance(scan, Scan) else ()


def _without(ps: Iterable[Punctuation], at: int) -> list[Punctuation]:
    """The punctuations without what they say of an attribute."""
    return [Punctuation.at(p.schema, {i: p.patterns[i] for i in p.restricted if i != at}) for p in ps]


class _Inspection:
    """A checkpoint as of its last commit."""

    def __init__(self, checkpoint: LocalPlace, root: Node, functions: Functions) -> None:
        self._store, self._root = folder_at(checkpoint), root
        self._names = names(self._root)
        self._records = CommitLog(self._store.below("commits")).records()
        last = made_whole(self._records)
        if last is None:
            raise StateError(f"nothing was committed yet in {self._store.where()}")
        self._last = last
        self._kept = {
            node: KeptRows(self._state_of(node), node.state_schema.logs, self._recorded(node).kept)
            for node in topological(self._root)
            if not isinstance(node.operator, Scan | Static | Results)
        }
        senders = [n for n in topological(self._root) if n.operator.declared_in is not None]
        self._sent_by = {node: SentPunctuations(self._records, self._names[node], node) for node in senders}
        sets = {n: self._recorded(n).sets for n in self._kept}
        sent = {n: by_node.whole() for n, by_node in self._sent_by.items()}
        scans = [node for node in senders if isinstance(node.operator, Scan)]
        on_disk = {n: ClosedOnDisk(self._state_of(n), n.schema, self._recorded(n).kept) for n in scans}
        self._lacks = MissingPunctuations(self._kept, sets, sent, functions, on_disk, dict(self._rosters()))

    def _state_of(self, node: Node) -> Path:
        return self._store.path(f"state/{self._names[node]}")

    def _rosters(self) -> Iterator[tuple[Node, Punctuate]]:
        """The nodes that punctuate by a roster, with the members that it has now."""
        for node in self._kept:
            match node.operator:
                case Punctuate(rule=ByRoster() as rule):
                    domain = node.schema.attribute(rule.member).domain
                    members = tuple(rule.members(self._recorded(node).notes, domain))
                    yield node, replace(node.operator, rule=replace(rule, roster=members))

    def _recorded(self, node: Node) -> OperatorRecord:
        """The last record of a node's state."""
        return self._last.state(self._names[node])

    def report(self, key: Mapping[str, str] | None) -> WaitingReport:
        """The report; with a key, the answer for it."""
        of = self._store.where(), SliceTime.of(self._last), self._last.report.closed
        if key:
            return WaitingReport(*of, (), self._answer(key))
        waits = tuple(self._waits())
        noticed = map(self._last.report.noticed, ("silent", BETTER))
        silent, better = (tuple(f"{source}: {what}" for source, what in each.items()) for each in noticed)
        why = tuple(causes(waits, results_of(self._root)))
        return WaitingReport(*of, waits, causes=why, silent=silent, better=better)

    def _waits(self) -> Iterator[Waits]:
        """The rows in each log that is not empty."""
        for node, kept in self._kept.items():
            inputs = _schemas(node)
            active = self._last.last_activity.get(self._names[node])
            for name, log in node.state_schema.waiting_logs.items():
                if count := kept.count(name):
                    key = log_attributes(log.names, (*inputs, node.schema))
                    each = kept.with_ages(name, [*key, *log.beside])
                    rows = heapq.nsmallest(SHOWN, each, key=lambda row: row[1] or _LONG_AGO)
                    examples = tuple(self._example(node, name, key, row, since) for row, since in rows)
                    yield Waits(
                        self._names[node],
                        name,
                        log.what,
                        count,
                        log.blocks,
                        examples[0].since if examples else None,
                        SliceTime(*active.last_left) if active and active.last_left else None,
                        examples,
                    )

    def _example(
        self, node: Node, log: str, key: Sequence[Attribute], row: Mapping[str, Any], since: Since | None
    ) -> Example:
        shown = {a.name: format_pattern(Constant(row[a.name]), a.domain) for a in key}
        return Example(shown, self._needs(self._lacks.of_row(node, log, row)), self._came(since))

    def _came(self, since: Since | None) -> SliceTime | None:
        """When a row came: exact for the last slice, else to the second."""
        if since is None:
            return None
        last = SliceTime.of(self._last)
        return last if since.slice == last.slice else SliceTime(since.slice, since.moment())

    def _needs(self, lacks: Sequence[Missing]) -> tuple[Need, ...]:
        sent: dict[Node, list[Punctuation]] = {}
        for lack in lacks:
            if not lack.missing:
                sent.setdefault(lack.node, []).append(lack.wanted)
        when = {node: self._sent_by[node].when(ps) for node, ps in sent.items()}
        order = sorted(lacks, key=lambda lack: (not lack.missing, self._names[lack.node]))
        return tuple(self._need(lack, when.get(lack.node, {}).get(lack.wanted)) for lack in order)

    def _need(self, lack: Missing, sent: SliceTime | None) -> Need:
        operator, missing = lack.node.operator, [_shown_as(p, lack.wanted) for p in lack.missing]
        promised: tuple[str, ...] = ()
        rule, behind = None, tuple[str, ...]()
        source = self._names[lack.node]
        if isinstance(operator, Streams):
            behind = tuple(self._streams_behind(lack))
            if isinstance(below := lack.node.inputs[0].operator, Punctuate):
                rule = f"by {below.rule.name}"
            else:
                source, promised = self._names[lack.node.inputs[0]], _promised(below, lack)
        elif isinstance(operator, Punctuate):
            now = dict(self._rosters()).get(lack.node, operator)
            rule, behind = f"by {now.rule.name}", tuple(self._senders_behind(lack))
        elif isinstance(operator, Scan):
            promised = _promised(operator, lack)
        lifespan = None if missing else self._sent_by[lack.node].lifespan(lack.wanted)
        holds = None if lifespan is None else str(lifespan)
        return Need(source, str(lack.wanted), tuple(dict.fromkeys(missing)), sent, promised, rule, holds, behind)

    def _senders_behind(self, lack: Missing) -> Iterator[str]:
        """The members of a roster that have not gone past what is missing, while others have."""
        rosters = {node: operator.rule for node, operator in self._rosters()} if lack.missing else {}
        match rosters.get(lack.node):
            case ByRoster(attribute=str() as name) as rule:
                member, value = (lack.node.schema.attribute(each) for each in (rule.member, name))
                domain, at = value.domain, lack.node.schema.index(name)
                top = max(cut for p in lack.missing for _, cut in values(p.patterns[at], domain).intervals())
                # Rows come in the order of their values, null first.
                rows = self._kept[lack.node].with_ages("latest", [member, value])
                latest = dict.fromkeys(rule.roster) | {row[member.name]: row[value.name] for row, _ in rows}
                pairs = [(who, latest[who]) for who in rule.roster]
                behind = [(who, v) for who, v in pairs if v is None or domain.cut(v, after=False) < top]
                for who, v in behind if len(behind) < len(pairs) else ():
                    stands = "it has sent nothing" if v is None else f"it is at {domain.write(v)}"
                    yield f"{member.domain.write(who)} ({stands})"

    def _streams_behind(self, lack: Missing) -> Iterator[str]:
        """The open streams that have not closed what is missing, while others have, by the names of their documents."""
        over = declared_over(lack.node)
        sent, at = PunctuationSet(over), over.index(STREAM)
        sent.add_all(added_punctuations(self._recorded(lack.node).sets.get("sent", ()), over))
        source, wanted = self._names[leaf(lack.node)], placed(lack.missing, lack.node.schema.names, over)
        ends = self._last.end
        open_ = [one for end in (ends.get(source), *ends.values()) if end for one in Offset.from_json(end).streams]
        names_of = {one.number: one.name for one in open_ if not one.ended}
        whole = [p for p in sent if at not in p.restricted]
        behind = dict[int, str]()
        for number in names_of:
            one = {at: Constant(number)}
            if not all(
                sent.covers(Punctuation.at(over, {i: p.patterns[i] for i in p.restricted} | one)) for p in wanted
            ):
                own = [p for p in sent if at in p.restricted and matches(p.patterns[at], number)]
                behind[number] = few(list(map(str, over_first(_without(own or whole, at), lack.node.schema))))
        for number, closed in behind.items() if len(behind) < len(names_of) else ():
            yield f"{names_of[number]} ({f'it has closed {closed}' if closed else 'it has closed nothing'})"

    def _answer(self, key: Mapping[str, str]) -> WaitingAnswer:
        """Of several results that have the key's attributes the first that is not out."""
        text = ", ".join(f"{name}={value}" for name, value in key.items())
        nodes = results_with(self._root, key)
        called = {node: name for name, node in emitters(self._root).items()} if len(nodes) > 1 else {}
        answers = (
            self._answer_of(node, key, f"{text} of {called[node]}" if called.get(node) else text) for node in nodes
        )
        found = next(answers)
        for each in answers:
            is_later = each.since is None or (found.since is not None and each.since.slice > found.since.slice)
            if found.out and (not each.out or is_later):
                found = each
        return found

    def _answer_of(self, node: Node, key: Mapping[str, str], text: str) -> WaitingAnswer:
        try:
            p = Punctuation.of(node.schema, dict(key))
        except (NotationError, ValueError) as reason:
            raise UsageError(f"--key {text} cannot be read: {reason}") from None
        lacks = self._lacks.of(node, p)
        needs = self._needs(lacks)
        sent = [need.sent for need in needs if need.sent is not None]
        is_out = not any(need.missing for need in needs)
        counts = {self._names[n]: count for n in self._kept if (count := self._held(n, key)) is not None}
        held = {name: count for name, count in counts.items() if count} if counts else None
        since = max(sent, key=lambda at: at.slice, default=None)
        return WaitingAnswer(text, self._names[node], is_out, since if is_out else None, held, needs)

    def _held(self, node: Node, key: Mapping[str, str]) -> int | None:
        """Number of kept rows of an operator that match a key; None if no log has all attributes of the key."""
        inputs = _schemas(node)
        found: int | None = None
        for log, declared in node.state_schema.waiting_logs.items():
            attributes = log_attributes(declared.names, (*inputs, node.schema))
            named = {a.name: key[name] for a in attributes for name in key if name.lower() == a.name.lower()}
            if len(named) == len(key):
                schema = Schema(tuple(attributes))
                rows = self._kept[node].rows(log, attributes, [Punctuation.of(schema, named)], schema)
                found = (found or 0) + (len(rows) if rows is not None else self._kept[node].count(log))
        return found


def results_with(root: Node, key: Collection[str]) -> list[Node]:
    """The results that have all attributes of a key; raises UsageError if none has."""
    wanted = {name.lower() for name in key}
    if found := [node for node in results(root) if wanted <= {name.lower() for name in node.schema.names}]:
        return found
    known = "; ".join(", ".join(node.schema.names) for node in results(root))
    raise UsageError(f"no result has the attributes {', '.join(key)}", hint=f"they have {known}")


def _shown_as(missing: Punctuation, wanted: Punctuation) -> str:
    """Drops from a missing punctuation what `wanted` does not restrict, unless few of its values are left."""
    kept = {
        i: missing.patterns[i]
        for i in missing.restricted
        if i in wanted.restricted or (values(missing.patterns[i], missing.schema[i].domain).size or _MANY) < _MANY
    }
    return str(Punctuation.at(missing.schema, kept))


def _schemas(node: Node) -> tuple[Schema, ...]:
    return tuple(below.schema for below in node.inputs)
