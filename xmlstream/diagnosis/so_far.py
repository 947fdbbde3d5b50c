"""Answers so far: what open groups, windows, ranks and waiting tuples would give if the input ended now.

They are what one more slice would emit that closes every source and has no tuple. That slice is computed on a copy of
the state of the last commit, and never recorded. So the committed output and the answers so far are together the result
over the input that was committed, and no tuple is in both. The query is not disturbed: its checkpoint is read without a
lock, and the files of its state, which a running query may remove with its next commit, are linked into a temporary
directory first, or copied to another file system.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from xmlstream.builder.method_sql import argument
from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.diagnosis.inspection import as_of_last_commit, plan_of, results_with
from xmlstream.diagnosis.report import WaitingReport, in_numbers
from xmlstream.operators.behaviour import advance
from xmlstream.operators.expressions.operations.python_functions import called_in
from xmlstream.operators.frames.expression import Expression
from xmlstream.operators.frames.matching import condition
from xmlstream.operators.select import Select
from xmlstream.operators.state.slice_tuples import Slice
from xmlstream.operators.storage.records import Record
from xmlstream.operators.storage.store import Folder, LocalPlace, folder_at
from xmlstream.plan.nodes import Node, Results, Scan, Static, emitters, names, topological
from xmlstream.plan.written_plan import PLAN_FILE
from xmlstream.punct_ns.errors import (
    QueryError,
    StateError,
    UsageError,
    XmlStreamError,
    in_units,
    is_left_to_spark,
    original_error,
)
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import POSITION
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog, made_whole
from xmlstream.runtime.checkpoint.remote_checkpoint import readable
from xmlstream.runtime.checkpoint.same_query import QueryRecord
from xmlstream.runtime.loop.driving import is_apart
from xmlstream.runtime.loop.plan_state import PlanState
from xmlstream.session.engines import engine_of, is_in_process, open_session
from xmlstream.session.spark_errors import first_cause
from xmlstream.sink.result_tables import no_rows, objects_text, values_alone
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.script import plan_over

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from xmlstream.operators.frames.frame import Engine
    from xmlstream.session.engines import Session

_METADATA = b"xmlstream.so_far"


@dataclass(frozen=True, slots=True)
class Open(Record):
    """Kept rows that answers so far come from.

    Attributes:
        operator: The operator that keeps them.
        what: Kind of the rows: `groups`, `undecided tuples of the left side`.
        count: Their number.
        undecided: Whether later tuples may keep these rows from going out; otherwise they go out in the end, and only
            their values may change.
    """

    operator: str
    what: str
    count: int
    undecided: bool

    def __str__(self) -> str:
        kind = "undecided" if self.undecided else "open"
        number, _, what = in_numbers(self.count, self.what.removeprefix(f"{kind} ")).partition(" ")
        return f"{number} {kind} {what} of {self.operator}"


@dataclass(frozen=True, slots=True)
class SoFar:
    """The answers so far of one result, which are provisional.

    Attributes:
        result: Name of the result; None if the query has only one.
        slice: The last committed slice: the answers are those of the input up to its end.
        time: Its recorded time.
        closed: Whether the input has ended for good, so that no answer is open.
        open: The kept rows that the answers come from.
        schema: The attributes of the result.
        tuples: The answers, as an Arrow table; moments in UTC.
    """

    result: str | None
    slice: int
    time: datetime
    closed: bool
    open: tuple[Open, ...]
    schema: Schema = field(repr=False)
    tuples: pa.Table = field(repr=False)
    _session: Session = field(repr=False, compare=False)

    def to_arrow(self) -> pa.Table:
        """The answers as an Arrow table, whose metadata `xmlstream.so_far` has what they come from, as JSON."""
        return self.tuples.replace_schema_metadata({_METADATA: json.dumps(self._facts())})

    def to_dataframe(self) -> DataFrame:
        """The answers as a DataFrame of Spark; raises UsageError without Spark."""
        if is_in_process(self._session):
            raise UsageError("there is no Spark in this session", hint="to_arrow() returns the answers as a table")
        return self._session.createDataFrame(self.tuples, self.schema.ddl())

    def __str__(self) -> str:
        """What they are, in a line."""
        ago = in_units(datetime.now(UTC) - self.time)
        name = f"{self.result}, " if self.result else ""
        if self.closed:
            return f"{name}slice {self.slice}, {ago} ago: the input has ended, and all answers are out"
        return f"{name}provisional, as of slice {self.slice}, {ago} ago: {self.origin}"

    def columns(self, most: int) -> list[tuple[list[str], bool]]:
        """For each attribute its name and its first values as texts, and whether they are numbers."""
        found = []
        for name in self.tuples.column_names:
            column = self.tuples[name].slice(0, most)
            domain = self.schema.attribute(name).domain
            texts = [name, *map(domain.shown, column.to_pylist())]
            numeric = pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal
            found.append((texts, any(test(column.type) for test in numeric)))
        return found

    def first(self, most: int) -> Mapping[str, object]:
        """The first of them as texts, for a page: their `columns`, `rows`, and how many `more`."""
        columns = self.columns(most)
        return {
            **self._facts(),
            "result": self.result or "",
            "origin": self.origin,
            "columns": [texts[0] for texts, _ in columns],
            "rows": list(zip(*(texts[1:] for texts, _ in columns), strict=True)),
            "more": max(0, self.tuples.num_rows - most),
        }

    @property
    def origin(self) -> str:
        """The kept rows that they come from, in words."""
        return f"from {', '.join(map(str, self.open))}" if self.open else "nothing is open"

    def json(self) -> str:
        """They and what they come from, as JSON in one line."""
        return f'{json.dumps(self._facts())[:-1]}, "tuples": [{", ".join(self.objects())}]}}'

    def objects(self) -> list[str]:
        """Each as a JSON object, without nulls; arrays and structures are texts."""
        return objects_in(self.tuples)

    def _facts(self) -> Mapping[str, object]:
        came = {"provisional": True, "result": self.result, "slice": self.slice, "time": self.time.isoformat()}
        return {**came, "closed": self.closed, "open": [one.json() for one in self.open]}


def objects_in(table: pa.Table) -> list[str]:
    """Each row as a JSON object, without nulls; arrays and structures are texts."""
    for i, name in enumerate(table.column_names):
        if pa.types.is_nested(table[name].type):
            texts = [None if value is None else json.dumps(value, default=str) for value in table[name].to_pylist()]
            table = table.set_column(i, name, pa.array(texts, pa.string()))
    return objects_text(table).decode().splitlines()


def results_so_far(
    checkpoint: LocalPlace,
    session: Session,
    where: str | None = None,
    result: str | None = None,
    key: Mapping[str, str] | None = None,
) -> tuple[SoFar, ...]:
    """The answers so far of each result of a query.

    Args:
        checkpoint: The directory of its checkpoint.
        session: What computes them.
        where: A condition over the attributes of a result, in SQL.
        result: The name of the only result to return.
        key: Patterns of attributes, in notation: only the first result that has them, and only what they match.

    Raises:
        StateError: There is no checkpoint, nothing was committed, or it is damaged or of another version.
        UsageError: There is no such result.
        QueryError: The condition is not valid, or the engine does not compute the query.
        XmlStreamError: An expression of the query fails for these tuples.
    """
    store = folder_at(checkpoint)
    root = plan_of(store)
    _require_functions(store)
    chosen = _chosen(root, result)
    conditions: dict[Node, Expression | None] = {
        node: _predicate(session, node.schema, where, name) for name, node in chosen.items()
    }
    if key:
        nodes = results_with(root, key)
        conditions = {node: condition([Punctuation.of(node.schema, dict(key))]) for node in nodes}
        chosen = {name: each for name, each in chosen.items() if any(each is node for node in nodes)}
    home = tempfile.TemporaryDirectory(prefix="xmlstream-", ignore_cleanup_errors=True)
    with home as directory, _engine(session, Path(directory)) as engine, _failing_in_words():
        scratch = folder_at(directory)
        last = as_of_last_commit(lambda: linked(store, scratch))
        slices = _ended(engine, root, last, scratch)
        name_of = names(root)
        found = []
        for name, node in chosen.items():
            below = [each for each in topological(node) if each.inputs]
            opened = tuple(one for each in below for one in _open(name_of[each], each, last))
            origin = name, last.slice, last.time, last.report.closed, opened
            found.append(SoFar(*origin, node.schema, _table(slices[node], node, conditions[node]), session))
        return tuple(found)


def answers_so_far(checkpoint: str, session: Session, where: str | None = None, result: str | None = None) -> SoFar:
    """The answers so far of one result of a running query; of several, one must be named.

    Args:
        checkpoint: The directory of its checkpoint, or the URL.
        session: The session of the query.
        where: A condition over the attributes of the result, in SQL.
        result: The name of the result.

    Raises:
        StateError, UsageError, QueryError: As `results_so_far`; or there are several results, and none is named.
    """
    with readable(checkpoint) as (directory, _):
        found = results_so_far(directory, session, where, result)
    if len(found) > 1:
        known = ", ".join(str(each.result) for each in found)
        raise UsageError(
            "the query has several results", hint=f"name one: result={found[0].result!r}; there are {known}"
        )
    return found[0]


def _require_functions(store: Folder) -> None:
    """Makes sure that this process has the functions of Python that the query calls.

    Raises:
        QueryError: It lacks one, or has another one of that name.
    """
    known = {function.name: function.origin for function in called_in(store.read(PLAN_FILE).decode())}
    for name, version in QueryRecord.of(store).functions.items():
        origin = version.partition(" ")[0]
        if known.get(name) != origin:
            what = f"the query calls the function {name} of Python ({origin}), which this process does not have"
            raise QueryError(what, hint="in the process that runs it, handle.so_far() and --monitor have them")


@contextmanager
def _failing_in_words() -> Iterator[None]:
    """Raises whatever an engine raises as an error of this project."""
    try:
        yield
    except XmlStreamError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever Spark raises
        what = f"the answers so far cannot be computed: {first_cause(error)}"
        raise original_error(error) or XmlStreamError(what) from None


def computed_beside(checkpoint: LocalPlace, key: Mapping[str, str] | None = None) -> tuple[SoFar, ...] | None:
    """The answers so far, computed by DuckDB on one core of this machine; None where only Spark computes the query.

    Args:
        checkpoint: The directory of the checkpoint.
        key: As for `results_so_far`.

    Raises:
        XmlStreamError, OSError: As `results_so_far`.
    """
    if find_spec("duckdb") is None:
        return None
    conf = {"spark.sql.session.timeZone": QueryRecord.of(folder_at(checkpoint)).timeZone, "threads": "1"}
    session = open_session(conf=conf, engine="duckdb")
    try:
        return results_so_far(checkpoint, session, key=key)
    except QueryError as error:
        if not is_left_to_spark(error):
            raise
        return None
    finally:
        session.stop()


def with_value_so_far(report: WaitingReport, checkpoint: LocalPlace, key: Mapping[str, str]) -> WaitingReport:
    """A report whose answer for a key that is not out has the tuples so far, where DuckDB is able to compute them."""
    answer, answers = report.answer, None
    if answer is None or answer.out:
        return report
    with suppress(XmlStreamError, OSError):  # so-far says why
        answers = computed_beside(checkpoint, key)
    if not answers:
        return report
    root = plan_of(checkpoint)
    found = answers[[names(root)[node] for node in results_with(root, key)].index(answer.result)]
    nulls = dict.fromkeys(found.tuples.column_names)
    rows = tuple({**nulls, **json.loads(line)} for line in found.objects())
    return replace(report, answer=replace(answer, so_far=rows, undecided=any(one.undecided for one in found.open)))


def _chosen(root: Node, result: str | None) -> dict[str | None, Node]:
    """The results by name; if one is named, only that."""
    named: dict[str | None, Node] = dict(emitters(root).items()) or {None: root}
    if result is None:
        return named
    if result not in named:
        known = ", ".join(name for name in named if name)
        hint = f"there are {known}" if known else "the query has only one, which has no name"
        raise UsageError(f"there is no result {result}", hint=hint)
    return {result: named[result]}


def _predicate(session: Session, schema: Schema, where: str | None, result: str | None) -> str | None:
    """A condition on a result as the engine's SQL.

    Raises:
        QueryError: It is not valid, or needs other tables.
    """
    if where is None:
        return None
    answers = Node(Static("answers", schema), (), "answers")
    try:
        text = QueryText.joined(["SELECT * FROM `input` WHERE ", argument(where)])
        made = plan_over(session, text, {"input": answers})
    except QueryError as error:
        hint = error.hint if result is None else f"for the result {result}: {error.hint}; --result names another"
        raise QueryError(error.what, where=error.where, hint=hint) from None
    if not isinstance(made.operator, Select) or made.inputs != (answers,):
        raise QueryError(f"{where} is not a condition on the attributes of one tuple", hint="write hour = 17")
    return made.operator.predicate


@contextmanager
def _engine(session: Session, directory: Path) -> Iterator[Engine]:
    """The engine of a session; DuckDB where the workers of Spark do not see the directory."""
    if not is_apart(session, directory):
        yield engine_of(session)
        return
    beside = open_session(conf={"spark.sql.session.timeZone": engine_of(session).zone}, engine="duckdb")
    try:
        yield beside.engine
    except QueryError as error:
        if not is_left_to_spark(error):
            raise
        what = f"{error.what}, and the workers of Spark do not see the disk of this machine"
        raise UsageError(what, hint="run xmlstream so-far with the checkpoint, which starts Spark here") from None
    finally:
        beside.stop()


def last_commit(store: Folder) -> Commit:
    """The last commit of a checkpoint; StateError if there is none."""
    if (last := made_whole(CommitLog(store.below("commits")).records())) is None:
        raise StateError(f"nothing was committed yet in {store.where()}")
    return last


def linked(store: Folder, scratch: Folder) -> Commit:
    """The last commit, after the files of its state are in the scratch directory.

    Raises:
        OSError, StateError: The query has continued, and removed some of them.
    """
    last = last_commit(store)
    scratch.delete("state/")
    for name, state in last.operators.items():
        for segment in state.checksums:
            store.link(f"state/{name}/{segment}", scratch)
    return last


def _ended(engine: Engine, root: Node, last: Commit, scratch: Folder) -> dict[Node, Slice]:
    """The slice of each node in which every source ends, computed on the state of a commit."""
    states = PlanState(engine, root, scratch, last.operators)
    states.begin(last.slice + 1, last.time, lambda _: False)
    consumers = Counter(below for node in topological(root) for below in node.inputs)
    slices: dict[Node, Slice] = {}
    for node, state in states.items():
        match node.operator:
            case Scan():
                end = state.from_source("added").absorb([Punctuation.all(node.schema)])
                slices[node] = Slice(None, tuple(end))
            case Static() | Results():
                slices[node] = Slice(None)  # the first slice has read and closed it
            case operator:
                made = advance(operator, [slices[below] for below in node.inputs], state)
                if consumers[node] > 1 and made.tuples is not None:
                    made = Slice(state.computed(made.tuples), made.punctuations)
                slices[node] = made
    states.settle()
    return slices


def _open(name: str, node: Node, last: Commit) -> Iterator[Open]:
    """The kept rows of an operator that go out in the end."""
    kept = last.state(name).kept
    for log, declared in node.state_schema.waiting_logs.items():
        if declared.blocks and log in kept and kept[log].rows:
            yield Open(name, declared.what, kept[log].rows, declared.undecided)


def _table(slice_: Slice, node: Node, predicate: Expression | None) -> pa.Table:
    """The tuples of a result for which the condition is true, in order."""
    if slice_.tuples is None:
        return no_rows(node.schema)
    frame = slice_.tuples.frame
    frame = frame if predicate is None else frame.where(predicate)
    columns = [*node.schema.names, *([POSITION] if POSITION in frame.columns else [])]
    return values_alone(frame.select(*columns).to_arrow())
