"""What operators keep, as tables of Arrow: read from the last commit of a checkpoint, which is never written.

Rows are shown as their operator declares them: a group with the values of its aggregates so far, a tuple with the
attributes that are kept of it. Behind them is when each came: the slice, and its recorded time.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from xmlstream.diagnosis.inspection import as_of_last_commit, plan_of
from xmlstream.diagnosis.so_far import last_commit, linked
from xmlstream.operators.state.ages import FIRST, Since
from xmlstream.operators.state.state_schema import LogSchema
from xmlstream.operators.storage.records import LogRecord
from xmlstream.operators.storage.store import folder_at
from xmlstream.plan.nodes import Node, Results, names, topological
from xmlstream.punct_ns.errors import UsageError, did_you_mean
from xmlstream.punct_ns.slices import in_utc, is_own
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.checkpoint.remote_checkpoint import readable
from xmlstream.runtime.checkpoint.same_query import QueryRecord
from xmlstream.runtime.loop.plan_state import PlanState
from xmlstream.session.engines import engine_of, open_session

if TYPE_CHECKING:
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
        log: Which of its kinds of rows, if it keeps several, as the table of all names it: `side-0` of a join.
        session: What reads the rows; by default DuckDB in this process.

    Returns:
        Without an operator, a row for each kind of kept rows: `operator`, `log`, `what`, the numbers of `rows` and
        `bytes`. With one, its rows: the columns that it keeps, then `_slice` and `_came`, when each came. The schema's
        metadata `xmlstream.kept` has the slice that was read, and its time, as JSON.

    Raises:
        StateError: There is no checkpoint, nothing was committed, or it is damaged or of another version.
        UsageError: There is no such operator, it keeps no rows, or it keeps several kinds and none is named.
        QueryError: The session cannot read a type.
    """
    with readable(str(checkpoint)) as (store, _):
        root = plan_of(store)
        if operator is None:
            last = last_commit(store)
            return _said(_table([row for node, name in _named(root) for row in _logs(node, name, last)]), last)
        node, name = _chosen(root, operator)
        log = _log(node, name, log)
        own = open_session(conf={"spark.sql.session.timeZone": _zone(store), "threads": "1"}, engine="duckdb")
        try:
            with tempfile.TemporaryDirectory(prefix="xmlstream-", ignore_cleanup_errors=True) as directory:
                scratch = folder_at(directory)
                last = as_of_last_commit(lambda: linked(store, scratch))
                return _said(_rows(own if session is None else session, root, node, log, last, scratch), last)
        finally:
            own.stop()


def _zone(store: Folder) -> str:
    return QueryRecord.of(store).timeZone


def _said(table: pa.Table, last: Commit) -> pa.Table:
    said = {"slice": last.slice, "time": last.time.isoformat()}
    return table.replace_schema_metadata({_METADATA: json.dumps(said)})


def origin(table: pa.Table) -> str:
    """The commit that a table of kept rows was read from, in words."""
    slice_, time = json.loads((table.schema.metadata or {})[_METADATA]).values()
    return f"as of slice {slice_}, committed at {time}"


def _named(root: Node) -> Iterator[tuple[Node, str]]:
    """The sources and operators that keep rows, with their names, in the order of the plan."""
    name_of = names(root)
    for node in topological(root):
        if not isinstance(node.operator, Results) and node.state_schema.logs:
            yield node, name_of[node]


def _logs(node: Node, name: str, last: Commit) -> Iterator[dict[str, object]]:
    for log, declared in node.state_schema.logs.items():
        record = last.state(name).kept.get(log) or LogRecord()
        size = sum(int(checksum.partition("-")[0]) for checksum in record.checksums.values())
        yield {"operator": name, "log": log, "what": declared.what or log, "rows": record.rows, "bytes": size}


def _table(rows: list[dict[str, object]]) -> pa.Table:
    texts, numbers = (pa.array([], type_) for type_ in (pa.string(), pa.int64()))
    empty = pa.table({"operator": texts, "log": texts, "what": texts, "rows": numbers, "bytes": numbers})
    return pa.Table.from_pylist(rows, empty.schema)


def _chosen(root: Node, operator: str) -> tuple[Node, str]:
    found = list(_named(root))
    for node, name in found:
        if name.lower() == operator.lower():
            return node, name
    known = [name for _, name in found]
    if operator.lower() in map(str.lower, names(root).values()):
        raise UsageError(f"{operator} keeps no rows", hint=f"what keeps rows: {', '.join(known) or 'nothing'}")
    hint = did_you_mean(operator, known, f"what keeps rows: {', '.join(known) or 'nothing'}")
    raise UsageError(f"there is no operator {operator}", hint=hint)


def _log(node: Node, name: str, log: str | None) -> str:
    logs = {each: declared.what or each for each, declared in node.state_schema.logs.items()}
    there = ", ".join(each if each == what else f"{each} ({what})" for each, what in logs.items())
    if log is None and len(logs) > 1:
        raise UsageError(f"{name} keeps several kinds of rows", hint=f"name one of {there}")
    found = [each for each, what in logs.items() if log in (None, each, what)]
    if not found:
        raise UsageError(f"{name} keeps no rows called {log}", hint=f"there are {there}")
    return found[0]


def _rows(session: Session, root: Node, node: Node, log: str, last: Commit, scratch: Folder) -> pa.Table:
    """The rows of a log, as people read them, with when they came."""
    states = PlanState(engine_of(session), root, scratch, last.operators)
    states.begin(last.slice + 1, last.time, lambda _: False)
    declared: LogSchema = node.state_schema.logs[log]
    frame = states[node].log(log).combined()
    if frame is None:
        return pa.table({})
    ages = [FIRST] if FIRST in frame.columns else []
    shown = frame if declared.shown is None else declared.shown(frame)
    columns = [name for name in shown.columns if not is_own(name)]
    table = in_utc(shown.select(*columns, *ages).to_arrow())
    states.settle()
    if not ages:
        return table
    came = [None if number is None else Since.first(number) for number in table[FIRST].to_pylist()]
    table = table.drop_columns([FIRST])
    table = table.append_column(SLICE, pa.array([each and each.slice for each in came], pa.int64()))
    moments = [each and each.moment() for each in came]
    return table.append_column(CAME, pa.array(moments, pa.timestamp("us", "UTC")))
