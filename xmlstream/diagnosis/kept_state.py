"""What operators keep, as tables of Arrow: read from the last commit of a checkpoint, which is never written.

Rows are shown as their operator declares them: a group with the values of its aggregates so far, a tuple with the
attributes that are kept of it. Behind them is when each came: the slice, and its recorded time. Of a set of
punctuations, each is a row with its patterns, in notation.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from xmlstream.diagnosis.inspection import as_of_last_commit, plan_of
from xmlstream.diagnosis.kept_rows import ClosedOnDisk
from xmlstream.diagnosis.so_far import last_commit, linked
from xmlstream.operators.expressions.operations.spark_type import NotProven
from xmlstream.operators.state.ages import FIRST, Since
from xmlstream.operators.state.blocked_set import BlockedSet
from xmlstream.operators.state.closed_set import ClosedSet
from xmlstream.operators.state.state_schema import LogSchema, OperatorRecord
from xmlstream.operators.storage.records import LogRecord
from xmlstream.operators.storage.store import folder_at
from xmlstream.plan.nodes import Node, Results, names, topological
from xmlstream.punct_ns.errors import UsageError, did_you_mean
from xmlstream.punct_ns.notation import format_pattern
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import in_utc, is_own
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.checkpoint.remote_checkpoint import readable
from xmlstream.runtime.checkpoint.same_query import QueryRecord
from xmlstream.runtime.loop.plan_state import PlanState
from xmlstream.session.engines import engine_of, open_session

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame
    from xmlstream.operators.storage.store import Folder
    from xmlstream.session.engines import Session

SLICE, CAME = "_slice", "_came"
"""Columns behind those of a row: the slice in which it, or its first tuple, came, and that slice's recorded time."""

_METADATA = b"xmlstream.kept"


def kept(
    checkpoint: str | Path, operator: str | None = None, log: str | None = None, session: Session | None = None
) -> pa.Table:
    """What a query keeps, as of the last commit of its checkpoint; it may run, or have been stopped or killed.

    Args:
        checkpoint: The directory of the checkpoint, or its URL.
        operator: The name of an operator, as `explain` prints it; without it, the table of all.
        log: Which of its kinds of rows, if it keeps several, as the table of all names it: `side-0` of a join; or the
            name of a set of punctuations.
        session: What reads the rows; by default DuckDB in this process.

    Returns:
        Without an operator, a row for each kind of kept rows and each set that holds punctuations: `operator`, `log`,
        `what`, the numbers of `rows` and `bytes`. With one, its rows: the columns that it keeps, then `_slice` and
        `_came`, when each came; or the patterns of punctuations. The schema's metadata `xmlstream.kept` has the slice
        that was read, and its time, as JSON.

    Raises:
        StateError: There is no checkpoint, nothing was committed, or it is damaged or of another version.
        UsageError: There is no such operator, it keeps no rows, or it keeps several kinds and none is named.
        QueryError: The session cannot read a type.
    """
    with readable(str(checkpoint)) as (store, _):
        root = plan_of(store)
        if operator is None:
            return as_of_last_commit(lambda: _overview(store, root))
        node, name = _chosen(root, operator)
        log = _log(store, node, name, log)
        if log not in node.state_schema.logs:
            return as_of_last_commit(lambda: _punctuations(store, node, name, log))
        with _reading(session, store) as reading, _scratch() as scratch:
            last = as_of_last_commit(lambda: linked(store, scratch))
            return _said(_rows(reading, root, node, log, last, scratch), last)


@contextmanager
def _reading(session: Session | None, store: Folder) -> Iterator[Session]:
    """The session, or one of DuckDB for as long as it reads."""
    if session is not None:
        yield session
        return
    conf = {"spark.sql.session.timeZone": QueryRecord.of(store).timeZone, "threads": "1"}
    own = open_session(conf=conf, engine="duckdb")
    try:
        yield own
    finally:
        own.stop()


@contextmanager
def _scratch() -> Iterator[Folder]:
    with tempfile.TemporaryDirectory(prefix="xmlstream-", ignore_cleanup_errors=True) as directory:
        yield folder_at(directory)


def _said(table: pa.Table, last: Commit) -> pa.Table:
    said = {"slice": last.slice, "time": last.time.isoformat()}
    return table.replace_schema_metadata({_METADATA: json.dumps(said)})


def origin(table: pa.Table) -> str:
    """The commit that a table of kept rows was read from, in words."""
    slice_, time = json.loads((table.schema.metadata or {})[_METADATA]).values()
    return f"as of slice {slice_}, committed at {time}"


def _named(root: Node) -> Iterator[tuple[Node, str]]:
    """The sources and operators that keep something, with their names, in the order of the plan."""
    name_of = names(root)
    for node in topological(root):
        if not isinstance(node.operator, Results) and _kinds(node):
            yield node, name_of[node]


def _sets(node: Node) -> Mapping[str, Schema]:
    """The schemas of the sets of punctuations that a node declares, by name."""
    declared = node.state_schema
    return {**declared.sets, **declared.waiting, **declared.from_source}


def _kinds(node: Node) -> Mapping[str, str]:
    """What a node keeps, in words, by the names of its logs and sets."""
    logs = {log: declared.what or log for log, declared in node.state_schema.logs.items()}
    return {**dict.fromkeys(_sets(node), "punctuations"), **logs}


def _overview(store: Folder, root: Node) -> pa.Table:
    last = last_commit(store)
    return _said(_table([row for node, name in _named(root) for row in _listed(store, node, name, last)]), last)


class _Kind(NamedTuple):
    """A kind of what an operator keeps: a row of the overview."""

    operator: str
    log: str
    what: str
    rows: int
    bytes: int


def _listed(store: Folder, node: Node, name: str, last: Commit) -> Iterator[_Kind]:
    state = last.state(name)
    for log, what in _kinds(node).items():
        if is_set := log not in node.state_schema.logs:
            records = [state.kept[of] for of in _runs(node, log) if of in state.kept]
            rows = sum(1 for _ in _in_memory(node, log, state)) + sum(record.rows for record in records)
        else:
            records = [state.kept.get(log) or LogRecord()]
            rows = records[0].rows
        size = sum(int(sum_.partition("-")[0]) for record in records for sum_ in record.checksums.values())
        if rows or not is_set:
            yield _Kind(name, log, what, rows, size)


def _runs(node: Node, log: str) -> Collection[str]:
    """The logs on disk of a source's set."""
    return node.state_schema.runs(log).values() if log in node.state_schema.from_source else ()


def _in_memory(node: Node, log: str, state: OperatorRecord) -> Iterator[Punctuation]:
    """The punctuations of a set, without strings that are on disk."""
    schema, entries = _sets(node)[log], state.sets.get(log, ())
    if log in node.state_schema.waiting:
        yield from BlockedSet(schema, entries)
        return
    closed = ClosedSet(schema, entries)
    yield from closed.lasting
    yield from closed.passing


def _punctuations(store: Folder, node: Node, name: str, log: str) -> pa.Table:
    """The punctuations of a set, each with its patterns by attribute."""
    last, schema = last_commit(store), _sets(node)[log]
    found = list(_in_memory(node, log, last.state(name)))
    if _runs(node, log):
        found += ClosedOnDisk(store.path(f"state/{name}"), schema, last.state(name).kept).all()
    columns = {a.name: [format_pattern(p.patterns[i], a.domain) for p in found] for i, a in enumerate(schema)}
    return _said(pa.table({of: pa.array(patterns, pa.string()) for of, patterns in columns.items()}), last)


def _table(rows: list[_Kind]) -> pa.Table:
    texts, numbers = (pa.array([], type_) for type_ in (pa.string(), pa.int64()))
    empty = pa.table({"operator": texts, "log": texts, "what": texts, "rows": numbers, "bytes": numbers})
    return pa.Table.from_pylist([row._asdict() for row in rows], empty.schema)


def _chosen(root: Node, operator: str) -> tuple[Node, str]:
    found = list(_named(root))
    for node, name in found:
        if name.lower() == operator.lower():
            return node, name
    known = [name for _, name in found]
    there = f"what keeps something: {', '.join(known) or 'nothing'}"
    if operator.lower() in map(str.lower, names(root).values()):
        raise UsageError(f"{operator} keeps nothing", hint=there)
    raise UsageError(f"there is no operator {operator}", hint=did_you_mean(operator, known, there))


def _log(store: Folder, node: Node, name: str, log: str | None) -> str:
    """The name of a log or a set; in messages those come first that hold something."""
    rows = {row.log: row.rows for row in _listed(store, node, name, last_commit(store))}
    logs = node.state_schema.logs
    kinds = dict(sorted(_kinds(node).items(), key=lambda pair: (not rows.get(pair[0]), pair[0] not in logs)))
    there = ", ".join(each if each == what else f"{each} ({what})" for each, what in kinds.items())
    if log is None:
        found = list(logs or kinds)
        if len(found) > 1:
            raise UsageError(f"{name} keeps several kinds of rows", hint=f"name one of {there}")
    else:
        found = [each for each, what in kinds.items() if log in (each, what)]
    if not found:
        raise UsageError(f"{name} keeps no rows called {log}", hint=f"there are {there}")
    return found[0]


def _rows(session: Session, root: Node, node: Node, log: str, last: Commit, scratch: Folder) -> pa.Table:
    """The rows of a log, as people read them, with when they came."""
    states = PlanState(engine_of(session), root, scratch, last.operators)
    states.begin(last.slice + 1, last.time, lambda _: False)
    try:
        table = _shown(node.state_schema.logs[log], states[node].log(log).with_ages(combined=True))
    except NotProven:  # an accumulator combines them, and is not there: there may be a row for each slice
        table = _shown(node.state_schema.logs[log], states[node].log(log).with_ages(combined=False))
    states.settle()
    if FIRST not in table.column_names:
        return table
    came = [None if number is None else Since.first(number) for number in table[FIRST].to_pylist()]
    table = table.drop_columns([FIRST])
    table = table.append_column(SLICE, pa.array([each and each.slice for each in came], pa.int64()))
    moments = [each and each.moment() for each in came]
    return table.append_column(CAME, pa.array(moments, pa.timestamp("us", "UTC")))


def _shown(declared: LogSchema, frame: Frame | None) -> pa.Table:
    """Kept rows as people read them, with their first age."""
    if frame is None:
        return pa.table({})
    ages = [FIRST] if FIRST in frame.columns else []
    shown = frame if declared.shown is None else declared.shown(frame)
    return in_utc(shown.select(*(name for name in shown.columns if not is_own(name)), *ages).to_arrow())
