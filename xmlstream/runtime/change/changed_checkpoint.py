"""The checkpoint of a query becomes that of another one, which takes over state (see `query_change`).

The new record of the last slice has the state that the new query would have, had it read the input from the beginning,
except that what was closed stays closed (`plan_comparison`). All new files are written beside the old ones, and
count together (`xmlstream.runtime.checkpoint.recovery`). Segments that stay as they are get a second name, where the
file system has such.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from xmlstream.dataclasses import replace
from xmlstream.operators.behaviour import advance
from xmlstream.operators.state.ages import AGES
from xmlstream.operators.state.blocked_set import BlockedSet
from xmlstream.operators.state.closed_set import ClosedSet
from xmlstream.operators.state.expiring_set import Entry, recorded, restored
from xmlstream.operators.state.log_parts import LogParts
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice
from xmlstream.operators.state.state_schema import LogSchema, OperatorRecord, StateSchema
from xmlstream.operators.storage.durable import sync
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT, LogRecord
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.operators.storage.store import Folder, sealed, unseal
from xmlstream.operators.taking_over import Names
from xmlstream.plan.nodes import Node, Results, Scan, declared_over, topological
from xmlstream.plan.written_plan import PLAN_FILE, decoded, encoded
from xmlstream.punct_ns.errors import StateError, XmlStreamError
from xmlstream.punct_ns.pattern import WILDCARD
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import over_first, placed, project, recast_pattern
from xmlstream.punct_ns.schema import Schema
from xmlstream.runtime.change.plan_comparison import Taken, keeps
from xmlstream.runtime.change.query_change import CONTINUES, QueryChange
from xmlstream.runtime.change.rejoining import Plan, Rejoining
from xmlstream.runtime.checkpoint.checkpoint import (
    CHANGING,
    DOCUMENTS,
    ENDED,
    FORMER,
    PUBLISHED,
    Checkpoint,
    Mirror,
    sealed_plan,
)
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog, made_whole
from xmlstream.runtime.checkpoint.migrations import Formats
from xmlstream.runtime.checkpoint.recovery import PublishedOutput, count_change, undo_change
from xmlstream.runtime.checkpoint.same_query import OWN, QUERY, QueryRecord, SameQuery
from xmlstream.sink.sink import Draft
from xmlstream.sink.target import SINKS, Target, require_fresh
from xmlstream.sources.xml.splits.slice_planner import Offset
from xmlstream.sources.xml.splits.streams_planner import OF_STREAM

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine
    from xmlstream.runtime.settings import Settings


def apply(checkpoint: Folder, change: QueryChange, engine: Engine) -> Commit:
    """Makes the checkpoint that of the new query, by one step, and returns its record; `change` must not be refused."""
    checkpoint.delete(f"{CHANGING}/")
    restored = Checkpoint(checkpoint)
    new = checkpoint.below(CHANGING)
    new.replace(QUERY, sealed(change.mine.json()), durable=False)
    new.replace(PLAN_FILE, sealed_plan(encoded(change.new)), durable=False)
    taking = _Taking(checkpoint, new, change, engine)
    record = replace(change.last, whole=True, operators=taking.states(), remote=None)
    record = _renamed(record, change)
    outputs, published = taking.published(restored)
    record = replace(record, outputs=outputs, published=published, documents=taking.document_logs(record))
    new.replace(f"commits/{record.slice:09d}.json", sealed(record.json()), durable=False)
    for folder in (DOCUMENTS, "state"):
        new.below(folder).make()
    sync([*new.path().rglob("*"), new.path(), checkpoint.path()])
    count_change(checkpoint)
    return record


def _renamed(record: Commit, change: QueryChange) -> Commit:
    """A record under the names of the new plan's nodes, with the positions of its sources."""
    pairs = {change.new_names[node]: change.old_names[taken.old] for node, taken in change.comparison.taken.items()}
    ends = {}
    for first, group in change.groups_of(change.new).items():
        earlier = next((pairs[name] for name in group if name in pairs), None)
        of = next((old for old, those in change.groups_of(change.old).items() if earlier in those), None)
        ends[first] = record.end[of] if of is not None else Offset().json()
    reports = {report.name: report for report in record.report.operators}
    operators = tuple(replace(reports[old], name=new) for new, old in pairs.items() if old in reports)
    noticed = {new: record.noticed[old] for new, old in pairs.items() if old in record.noticed}
    active = {new: record.last_activity[old] for new, old in pairs.items() if old in record.last_activity}
    now = {old: new for new, old in pairs.items()}
    of_each = ((now.get(finding.get("source", "")), finding) for finding in record.report.findings)
    findings = tuple({**finding, "source": name} for name, finding in of_each if name is not None)
    report = replace(record.report, operators=operators, findings=findings)
    return replace(record, end=ends, report=report, noticed=noticed, last_activity=active)


class _Taking:
    """Takes the state over, node by node, from the sources up."""

    def __init__(self, old: Folder, new: Folder, change: QueryChange, engine: Engine) -> None:
        self._old, self._new, self._change, self._engine = old, new, change, engine
        self._past: dict[Node, list[Punctuation]] = {}

    def _rejoining(self, found: Mapping[str, OperatorRecord]) -> Rejoining:
        change, new = self._change, self._new
        plans = (
            Plan(change.old, change.old_names, change.last.operators, self._old, new.below("seed/old")),
            Plan(change.new, change.new_names, found, new, new.below("seed/new")),
        )
        return Rejoining(*plans, change, self._engine)

    def states(self) -> dict[str, OperatorRecord]:
        """The states of the new plan's nodes, by their names."""
        found: dict[str, OperatorRecord] = {}
        regions = self._change.comparison.rejoined
        rejoining = self._rejoining(found) if regions else None
        within = {inner for of in regions.values() for inner in of.new.inner}
        for node in topological(self._change.new):
            if rejoining is not None and (of := regions.get(node)) is not None:
                states, self._past[node] = rejoining.states(of)
                found |= {self._change.new_names[inner]: state for inner, state in states.items()}
            if isinstance(node.operator, Results) or node in within:
                continue
            name, taken = self._change.new_names[node], self._change.comparison.taken.get(node)
            fresh = self._seeded(node)
            is_again = taken is None or node in self._change.comparison.again
            taken_over = None if taken is None or is_again else self._taken(node, taken)
            if taken_over is not None:
                found[name] = taken_over
            elif fresh is not None:
                found[name] = fresh
            if taken_over is not None and (which := node.operator.declared_in) is not None:
                held = ClosedSet(declared_over(node), taken_over.sets.get(which, ()))
                self._past[node] = over_first([*held.lasting, *held.passing], node.schema)
        return found

    def _seeded(self, node: Node) -> OperatorRecord | None:
        """The state of an operator that has met what its inputs have closed, and no tuple; None for an input.

        What it sends then is what it has sent up to now, unless kept tuples may have held back some of it.
        """
        if not node.inputs:
            self._past[node] = []
            return None
        if node.operator.begins_empty:
            # What was never sent is to be sent.
            self._past[node] = self._past[node.inputs[0]]
            return None
        store = SegmentStore(self._engine, self._new.below("seed"))
        state = OperatorState(store, node.input_schemas, node.state_schema)
        last = self._change.last
        store.begin(last.slice)
        state.begin(last.time, last.slice)
        inputs = [Slice(None, tuple(self._past[below])) for below in node.inputs]
        sent = list(advance(node.operator, inputs, state).punctuations)  # type: ignore[arg-type]
        taken = self._change.comparison.taken.get(node)
        holds_back = taken is not None and keeps(node) and node.operator.holds_back
        self._past[node] = [] if holds_back else sent
        return state.record(whole=True)

    def _taken(self, node: Node, taken: Taken) -> OperatorRecord | None:
        """The state of the operator of the old plan in the form of the new one; None if it cannot have that."""
        change = self._change
        name = change.old_names[taken.old]
        record, declared, before = change.last.state(name), node.state_schema, taken.old.state_schema
        called = taken.names
        sets = {}
        for kind in ("sets", "waiting", "from_source"):
            schemas, earlier = getattr(declared, kind), getattr(before, kind)
            if schemas.keys() - earlier.keys():
                return None
            for which, schema in schemas.items():
                entries = record.sets.get(which, ())
                sets[which] = moved_entries(entries, earlier[which], schema, called, is_waiting=kind == "waiting")
        if isinstance(node.operator, Scan):
            sets = {which: [*held, *map(recorded, self._also_closed(node, taken))] for which, held in sets.items()}
        logs = self._logs(node, taken, declared, before, record)
        notes = {which: fact for which, fact in record.notes.items() if which in declared.notes}
        return OperatorRecord(CHECKPOINT_FORMAT, sets, logs, notes)

    def _also_closed(self, node: Node, taken: Taken) -> list[Punctuation]:
        """What stays closed in a source, although the new query would have it open.

        These are values that were closed by the domains before, or by a rule that is gone or was stricter.
        """
        old, change, found = taken.old, self._change, list[Punctuation]()
        called = dict(taken.inputs[0])
        added = change.last.state(change.old_names[old]).sets.get("added", ())
        same = [name for name in node.schema.names if _domains(name, called, node.schema, old.schema)]
        if added and len(same) < max(len(old.schema), len(node.schema)) and same:
            before = [called[name.lower()] for name in same]
            held = ClosedSet(old.schema, added).lasting
            closed = project(held, before, old.schema.only(before))
            found += placed([_over(p, node.schema.only(same)) for p in closed], same, node.schema)
        for rule in topological(change.old):
            if rule.inputs and change.source_of(rule) == old and change.must_hand_down(rule):
                entries = change.last.state(change.old_names[rule]).sets.get("added", ())
                moved = moved_entries(entries, declared_over(rule), node.schema, called)
                found += (restored(entry, node.schema) for entry in moved)
        return found

    def _logs(
        self, node: Node, taken: Taken, declared: StateSchema, before: StateSchema, record: OperatorRecord
    ) -> dict[str, LogRecord]:
        name, earlier = self._change.new_names[node], self._change.old_names[taken.old]
        old, new = (folder.below(f"state/{of}") for folder, of in ((self._old, earlier), (self._new, name)))
        found = {}
        for log in declared.logs:
            kept = record.kept.get(log, LogRecord())
            found[log] = _log(kept, before.logs[log], declared.logs[log], node, taken, (old, new), self._engine)
        for which in declared.from_source:
            for attribute, log in declared.runs(which).items():
                called = taken.inputs[0].get(attribute.lower(), "")
                found[log] = record.kept.get(before.runs(which).get(called, ""), LogRecord())
                _link(found[log], old, new)
        return found

    def document_logs(self, record: Commit) -> dict[str, str]:
        """Copies the document logs of the sources, and what else is noted of them; returns their seals."""
        seals = {}
        for node, taken in self._change.comparison.taken.items():
            new, old = self._change.new_names[node], self._change.old_names[taken.old]
            if isinstance(node.operator, Scan):
                for folder in [each[:-1] for each in self._old.names(DOCUMENTS) if each.endswith("/")]:
                    of, at, stream = folder.partition(OF_STREAM)
                    for file in self._old.names(f"{DOCUMENTS}/{folder}") if of == old else ():
                        copy = f"{new}{at}{stream}/{file}"
                        self._new.replace(f"{DOCUMENTS}/{copy}", [self._old.read(f"{DOCUMENTS}/{folder}/{file}")])
                        if (seal := record.documents.get(f"{folder}/{file}")) is not None:
                            seals[copy] = seal
        return seals

    def published(self, restored: Checkpoint) -> tuple[tuple[Draft | None, ...], str]:
        """The last drafts of the results that go on in their places, and the seal of the list of their documents."""
        change = self._change
        numbers = {old: new for new, old in change.continued.items() if new in change.in_place}
        drafts = change.last.outputs
        outputs = [
            drafts[change.continued[i]] if i in change.in_place and drafts else None
            for i in range(len(change.mine.outputs))
        ]
        last = {
            (k, name)
            for k, draft in enumerate(drafts)
            if draft is not None
            for name in (draft.name, *(part for part, _ in draft.parts))
        }
        self._new.replace(PUBLISHED, [], durable=False)
        log = self._new.log(PUBLISHED)
        lines = [each for each in restored.documents if each.result in numbers and (each.result, each.name) not in last]
        log.append((json.dumps(each._replace(result=numbers[each.result])) for each in lines), durable=False)
        return tuple(outputs), log.seal()


def moved_entries(
    entries: Sequence[Entry], old: Schema, new: Schema, called: Names, *, is_waiting: bool = False
) -> list[Entry]:
    """The changes of a recorded set of punctuations, over the attributes that the set has now.

    Those on an attribute that is gone are gone, too; one that is new has a wildcard.

    Args:
        entries: The changes.
        old: The attributes before.
        new: The attributes now.
        called: The names before, by the names now in lower case.
        is_waiting: Whether the set is one of blocked punctuations.
    """
    places = [_place(called.get(name.lower(), name), old) for name in new.names]
    if places == list(range(len(old))) and all(a.domain == b.domain for a, b in zip(old, new, strict=True)):
        return list(entries)
    held: Iterable[Punctuation]
    if is_waiting:
        held = BlockedSet(old, entries)
    else:
        closed = ClosedSet(old, entries)
        held = [*closed.lasting, *closed.passing]
    found: list[Entry] = []
    for p in held:
        if set(p.restricted) <= {place for place in places if place is not None}:
            patterns = tuple(
                WILDCARD if place is None else recast_pattern(p.patterns[place], old[place].domain, attribute.domain)
                for place, attribute in zip(places, new, strict=True)
            )
            found.append(recorded(Punctuation(new, patterns, p.lifespan)))
    return found


def _place(name: str, schema: Schema) -> int | None:
    return next((i for i, other in enumerate(schema.names) if other.lower() == name.lower()), None)


def _domains(name: str, called: Names, new: Schema, old: Schema) -> bool:
    """Whether an attribute was there before, with the same domain."""
    before = called.get(name.lower())
    return before is not None and old.attribute(before).domain == new.attribute(name).domain


def _over(p: Punctuation, schema: Schema) -> Punctuation:
    return Punctuation(schema, p.patterns, p.lifespan)


def _link(log: LogRecord, old: Folder, new: Folder) -> None:
    for name in log.checksums:
        old.link(name, new)


def _log(
    kept: LogRecord,
    before: LogSchema,
    declared: LogSchema,
    node: Node,
    taken: Taken,
    folders: tuple[Folder, Folder],
    engine: Engine,
) -> LogRecord:
    """A log of kept rows, under the names that attributes have now, with the rows that satisfy further conditions.

    Its files are those of before, if nothing of that differs.
    """
    old_store, new_store = (SegmentStore(engine, folder) for folder in folders)
    if not kept.segments:
        return LogRecord()
    parts = LogParts(old_store, before.purging, kept)
    ages = [tuple(age for age in AGES if age in part.segment.struct) for part in parts.parts]
    parts.ages = min(ages, key=len)
    rows = parts.left_of(parts.parts)
    conditions = taken.conditions[before.of] if before.of is not None and taken.conditions else frozenset()
    now = _columns(rows.columns, node, taken, before.of)
    places = [_place(taken.names.get(name.lower(), name), before.purging) for name in declared.purging.names]
    same = places == list(range(len(before.purging))) and before.purging == declared.purging
    form = taken.state.form
    if form is None and same and not conditions and now == {c: c for c in rows.columns if c not in AGES}:
        _link(kept, *folders)
        return kept
    if before.combine is not None:
        rows = before.combine(rows, parts.ages)
    for condition in conditions:
        rows = rows.where(condition)
    rows = rows.renamed({**now, **{age: age for age in parts.ages}})
    if form is not None:
        rows, parts.ages = form(rows), ()
    elif declared.combine is not None:
        rows = declared.combine(rows, parts.ages)
    new_store.begin(0)
    segment = new_store.write(rows, parts.rows)
    made = LogParts(new_store, declared.purging, LogRecord())
    made.ages, made.oldest = parts.ages, parts.oldest
    made.become(segment)
    made.oldest = parts.oldest
    return made.record(unique=(bool(declared.key) and declared.combine is not None) or None)


def _columns(columns: Sequence[str], node: Node, taken: Taken, of: int | None) -> Mapping[str, str]:
    """The columns that kept rows have now, and those that they had."""
    named = taken.names if of is None else taken.inputs[of]
    proper = {name.lower(): name for schema in (*node.input_schemas, node.schema) for name in schema.names}
    there = {column.lower(): column for column in columns if column not in AGES}
    before = {name.lower() for schema in taken.old.input_schemas for name in schema.names}
    found = {proper[new]: there[old.lower()] for new, old in named.items() if old.lower() in there}
    if (renamed := taken.state.columns) is not None:
        return found | {new: old for new, old in renamed.items() if old in there}
    return found | {column: column for name, column in there.items() if name not in before}


def changed(mirror: Mirror, same: SameQuery, root: Node, engine: Engine, settings: Settings) -> None:
    """Makes a checkpoint that of another query, or of the one before, as `settings` has it.

    Args:
        mirror: Where the commits of the checkpoint count, which this run has locked.
        same: The identity of the new query.
        root: Its plan.
        engine: What computes tuples.
        settings: The settings of the run.

    Raises:
        StateError: The change is refused, or there is nothing to undo.
    """
    checkpoint = mirror.folder
    if settings.undo:
        same.require_is(QueryRecord.of(checkpoint.below(FORMER)) if checkpoint.has(f"{FORMER}/{QUERY}") else None)
        return undo_change(checkpoint)
    if not Checkpoint.has_commits(checkpoint) or same.is_that_of(
        before := QueryRecord.of(checkpoint), moved=settings.moved
    ):
        return None
    if not settings.change and same.record.rates == before.rates:
        return None  # another query, not another plan
    change = query_change(checkpoint, before, same, root, moved=settings.moved)
    change.require()
    if mirror.apart:
        what = f"the state in {checkpoint.where()} lies where only the executors of a cluster read it"
        raise StateError(what, hint="change the query in a run on one machine")
    for i, target in enumerate(settings.targets):
        if i not in change.in_place and (output := target.documents()) is not None:
            require_fresh(output, overwrite=settings.overwrite)
    _settle(checkpoint, change)
    report = settings.on_change if settings.change else None
    lines = list(change.closed_before()) if report is not None else []
    record = apply(checkpoint, change, engine)
    logs = {PUBLISHED: record.published, **{f"{DOCUMENTS}/{name}": seal for name, seal in record.documents.items()}}
    kept = {f"state/{name}/{segment}" for name, state in record.operators.items() for segment in state.checksums}
    mirror.restart(record, logs, kept, map(checkpoint.path, sorted(kept)))
    if report is not None:
        for line in lines:
            report(line)
    return None


def planned_change(
    checkpoint: Folder, root: Node, targets: Sequence[Target], zone: str, *, moved: bool = False
) -> QueryChange:
    """The change to a query, to be shown; writes nothing into the checkpoint.

    Args:
        checkpoint: The checkpoint of the query before.
        root: The new plan.
        targets: The targets of its results.
        zone: The time zone of the session.
        moved: Whether inputs or outputs have moved.

    Raises:
        StateError: The checkpoint is damaged, or another version has written its plan.
    """
    same = SameQuery(checkpoint, root, zone, targets)
    return query_change(checkpoint, QueryRecord.of(checkpoint), same, root, moved=moved)


def way_on(checkpoint: Folder, root: Node, targets: Sequence[Target], zone: str) -> str:
    """How a query may go on with the checkpoint of another one, as a hint; parameters as of `planned_change`."""
    try:
        change = planned_change(checkpoint, root, targets, zone)
    except XmlStreamError:
        return OWN
    if change.refusals:
        return f"xmlstream change shows why it cannot take the state over; {CONTINUES}"
    kept = "all that is kept" if change.takes_all else "what xmlstream change shows"
    return f"with --change it goes on with {kept}; or {OWN}"


def query_change(checkpoint: Folder, before: QueryRecord, same: SameQuery, new: Node, *, moved: bool) -> QueryChange:
    last = made_whole(CommitLog(checkpoint.below("commits")).records())
    Formats.of(checkpoint).require_today(-1 if last is None else last.slice)
    is_same = same.is_that_of(before, moved=moved)
    change = QueryChange(
        before, decoded(unseal(checkpoint, PLAN_FILE)), same.record, new, last, is_same=is_same, moved=moved
    )
    since = {new: before.outputs[old].since for new, old in change.continued.items() if new in change.in_place}
    change.mine = same.going_on(before.id, since)
    return change


def _settle(checkpoint: Folder, change: QueryChange) -> None:
    """Publishes what the query before has committed and not published.

    Raises:
        StateError: A database that the new query leaves may lack the last slice.
    """
    documents, stay = Checkpoint(checkpoint).documents, {change.continued[i] for i in change.in_place}
    for k, record in enumerate(change.before.outputs):
        kind = SINKS.get(record.form)
        if kind is None or record.output == "-":
            continue
        if kind.loader is not None:
            if k not in stay and change.last.outputs[k] is not None and checkpoint.size(ENDED) is None:
                what = f"the last slice in {record.output} may not be loaded, as the run before was killed"
                raise StateError(what, hint="run the query before once more, with --keep-open, and then change it")
            continue
        output = Target(record.output, form=record.form).documents(checkpoint.path(f"drafts/{k}"))
        if output is not None and output.store.exists():
            mine = {each.name: each.checksum for each in documents if each.result == k}
            PublishedOutput(output, mine).settle()
