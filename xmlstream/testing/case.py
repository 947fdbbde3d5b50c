"""A query under test: slices are given to it one by one, and each is computed and committed as in a run.

What runs is the optimized plan with its operators, grammar check, state files and commits, and `restart` goes on from
the files alone. Only the reading of documents is left out: no file of a source is opened, and the items that a test
gives stand where a task of the parser would have put them. So what is declared of a document's form (paths, formats,
`sectionEnds`) has no effect, a source with `documents 'files'` is one stream, and values that a document could not have
are refused at once.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypedDict, Unpack

from xmlstream.builder.query import Query
from xmlstream.builder.run_options import keywords_of, require_safe, takes
from xmlstream.dataclasses import dataclass, replace
from xmlstream.diagnosis.inspection import inspect
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.roster import ByRoster
from xmlstream.operators.storage.store import Folder
from xmlstream.optimizer.rewrite import bottom_up
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, Scan, Static, names, results, topological
from xmlstream.plan.written_plan import encoded
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError, XmlStreamError, original_error
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import in_utc
from xmlstream.runtime.checkpoint.checkpoint import Mirror
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.checkpoint.recovery import Recovered, recover
from xmlstream.runtime.checkpoint.slice_report import BEFORE
from xmlstream.runtime.options import Options
from xmlstream.runtime.preflight import require_stream
from xmlstream.runtime.runner import built
from xmlstream.runtime.settings import Settings
from xmlstream.sink.result_tables import ResultSlice
from xmlstream.sink.target import Target
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.micro_batches import StagedRange
from xmlstream.sql import script
from xmlstream.testing import notation
from xmlstream.testing.items import END, Stream, slices_of
from xmlstream.testing.notation import Item, Tuple
from xmlstream.testing.staging import staged, written

BEGIN = "2026-01-01T00:00:00Z"
"""The time of a case until it is set."""

_MOMENT = Domain("TIMESTAMP")


def session_for(session: Any = None, engine: str | None = None) -> Any:
    """The session to compute in: the given one, or that of an engine by name; by default DuckDB's.

    Raises:
        UsageError: There is no such engine.
    """
    if session is not None:
        return session
    return _opened(engine or "duckdb")


@lru_cache(maxsize=2)
def _opened(engine: str) -> Any:
    from xmlstream.session.engines import open_session

    return open_session(engine=engine)  # type: ignore[call-overload]


class CaseOptions(TypedDict, total=False):
    """Options of a case.

    Attributes:
        session: The session to plan and run SQL in; a query of the builder has its own.
        engine: The engine by name, if no session is given.
        variables: The variables of the SQL.
        result: The name of one of several results; the others do not run.
        as_written: Run the plan as written, without the optimizer's rules.
        allow_unsafe: Run it also if over streams without an end it would never answer, or keep tuples without bound.
        purge_after: Longest time to keep tuples, as in a run.
        at: The time of the clock at the beginning, such as `2026-01-01T00:00:00Z`, which it is by default.
    """

    session: Any
    engine: str | None
    variables: Mapping[str, str] | None
    result: str | None
    as_written: bool
    allow_unsafe: bool
    purge_after: str | None
    at: datetime | str


CASE_OPTIONS = keywords_of(CaseOptions, {"as_written": False, "allow_unsafe": False, "at": BEGIN})


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan that may run, and the session to run it in."""

    root: Node
    session: Any
    purge_after: str | None
    at: datetime | str


def prepared(query: Query | str | Path, **options: Unpack[CaseOptions]) -> Prepared:
    """The plan of a query that a test may run; raises the errors of `case`."""
    for name in options:
        if name not in CaseOptions.__annotations__:
            raise UsageError(f"a case has no option {name}", hint=f"there are {', '.join(CaseOptions.__annotations__)}")
    if isinstance(query, Query):
        root, session = query.root, query.spark
    else:
        text = query.read_text(encoding="utf-8") if isinstance(query, Path) else query
        read = script.read(text, options.get("variables"), str(query) if isinstance(query, Path) else None)
        session = session_for(options.get("session"), options.get("engine"))
        called = [answer.sink.name if answer.sink else "result" for answer in read.answers]
        root = _one(read.plan(session, reads=False), called, options.get("result"))
    root = root if options.get("as_written") else optimized(root)
    require_stream(root)
    require_safe(root, Options(follow=True, allow_unsafe=options.get("allow_unsafe", False)))
    return Prepared(root, session, options.get("purge_after"), options.get("at", BEGIN))


def _one(root: Node, called: Sequence[str], result: str | None) -> Node:
    """One of the results of a plan, by its name."""
    roots = dict(zip(called, results(root), strict=True))
    if result is None and len(roots) == 1:
        return next(iter(roots.values()))
    if result not in roots:
        what = f"there are {len(roots)} results" if result is None else f"there is no result {result}"
        raise UsageError(what, hint=f"name one with result=…: {', '.join(roots)}")
    return roots[result]


@takes(CASE_OPTIONS)
def case(
    query: Query | str | Path, *, static: Mapping[str, Stream] | None = None, **options: Unpack[CaseOptions]
) -> Case:
    """Begins a test of a query.

    Args:
        query: A query of the builder, SQL with its CREATE statements, or the path of a file of SQL.
        static: The rows of static tables by name; the first slice reads them.

    Raises:
        QueryError: The text is not SQL, does not fit its tables, or reads no stream.
        UnsafeQuery: Over streams without an end the query would never answer, or keep tuples without bound, and
            `allow_unsafe` is not set.
        UsageError: There is no such table, result or engine; or rows do not fit their table.
    """
    return Case(prepared(query, **options), static)


@dataclass(frozen=True, slots=True)
class SliceResult:
    """What a query made of a slice.

    Attributes:
        number: The number of the slice, from 0.
        tuples: The tuples as Python values, in the order of the source, or else sorted by value.
        punctuations: The punctuations that went out with this slice.
        closed: All that has gone out up to this slice, as a set of punctuations.
        kept: How many tuples all operators keep after it.
        dead_letters: The items that were set aside, as in the files of a run.
        report: The slice's line in the metrics of a run.
        schema: The attributes of the result.
    """

    number: int
    tuples: list[Tuple]
    punctuations: list[Punctuation]
    closed: PunctuationSet
    kept: int
    dead_letters: list[dict[str, Any]]
    report: dict[str, Any]
    schema: Schema

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The tuples by the names of their attributes."""
        return [dict(zip(self.schema.names, each, strict=True)) for each in self.tuples]

    def __str__(self) -> str:
        """The slice in the notation: its tuples in order, then its punctuations."""
        return notation.shown([*self.tuples, *self.punctuations], self.schema, in_order=True)


class _Taken:
    """The sink of a case: it keeps the last slice."""

    slice: ResultSlice | None = None

    def draft(self, slice_: ResultSlice) -> None:
        self.slice = slice_

    def commit(self, number: int) -> None:
        """A slice counts with its commit record; there is nothing to show."""


class Case:
    """A query under test, with its state, its clock and all that it has put out; made by `case`.

    Attributes:
        root: The plan that runs.
        schema: The attributes of the result.
        slices: What has come out, slice by slice.
        static: The names of the static tables that have rows of the test, in lower case.
        directory: Where the files of the case lie, its checkpoint in `state`; it is removed at the end.
    """

    def __init__(self, prepared: Prepared, static: Mapping[str, Stream] | None = None) -> None:
        self._session = prepared.session
        self._purge_after = prepared.purge_after
        self.at(prepared.at)
        self.directory = Path(tempfile.mkdtemp(prefix="xmlstream-test-"))
        self._held: list[Recovered] = []
        self.close = weakref.finalize(self, _removed, self.directory, self._held)
        self.static = {name.lower() for name in static or ()}
        self.root = self._with_rows(prepared.root, static or {})
        self.schema = self.root.schema
        self.slices: list[SliceResult] = []
        self._sources = _sources(self.root)
        self._positions = dict.fromkeys(self._sources, 0)
        self._report = BEFORE
        self._begin()

    def __enter__(self) -> Case:
        return self

    def __exit__(self, *_: object) -> None:
        """Removes the state; without `with`, that happens once the case is not used any more."""
        self._end()
        self.close()

    def at(self, time: datetime | str) -> Case:
        """Sets the clock: slices from now on are recorded at this time; a query's time never goes back.

        Raises:
            UsageError: It is not a moment.
        """
        try:
            moment = _MOMENT.read(time) if isinstance(time, str) else _MOMENT.normal(time)
        except ValueError as error:
            raise UsageError(str(error), where="the clock", hint="write '2026-01-01T00:00:00Z'") from None
        assert isinstance(moment, datetime)
        self._now = moment
        return self

    def slice(self, streams: Mapping[str, Stream] | None = None, /, **named: Stream) -> SliceResult:
        """Computes and commits a slice: some items of each stream, by its table's name; none of the others.

        Raises:
            UsageError: There is no such stream, or an item does not fit it.
            UngrammaticalStream: An earlier punctuation matches a tuple, and the table has `ungrammatical 'fail'`. The
                slice does not count, and the next one is computed from the last commit, as by another run.
        """
        given: dict[str, list[Item]] = {}
        for name, stream in {**(streams or {}), **named}.items():
            source = self._source(name)
            parts = slices_of(stream, self.schema_of(source), name)
            if len(parts) > 1:
                raise UsageError(f"{len(parts)} slices for one", where=name, hint="`run` takes several slices")
            given[source] = parts[0]
        return self._slice(given)

    def run(self, streams: Mapping[str, Stream], *, end: bool = False) -> list[SliceResult]:
        """Computes several slices, the first of each stream together, then the second, and so on.

        Args:
            streams: Streams with their slices, by their tables' names.
            end: The last slice closes all streams, as the end of the input does in a run.
        """
        slices = self.parted(streams)
        if end:
            last = slices[-1]
            slices[-1] = {name: [*last.get(name, ()), END.of(self.schema_of(name))] for name in self._sources}
        return [self._slice(each) for each in slices]

    def parted(self, streams: Mapping[str, Stream]) -> list[dict[str, list[Item]]]:
        """The items of the slices of streams, by the names of sources in the plan; at least one slice."""
        read = {
            source: slices_of(stream, self.schema_of(source), name)
            for name, stream in streams.items()
            for source in (self._source(name),)
        }
        length = max((len(parts) for parts in read.values()), default=1)
        return [{name: parts[i] for name, parts in read.items() if i < len(parts)} for i in range(max(length, 1))]

    def end(self) -> SliceResult:
        """Closes all streams, as the end of the input does in a run: one more slice."""
        return self._slice({name: [END.of(self.schema_of(name))] for name in self._sources})

    def restart(self) -> Case:
        """Ends the run, and goes on as another one from the files of the last commit."""
        self._end()
        self._begin()
        return self

    @property
    def tuples(self) -> list[Tuple]:
        """All tuples that have come out."""
        return [each for slice_ in self.slices for each in slice_.tuples]

    @property
    def closed(self) -> PunctuationSet:
        """All that the punctuations that have come out close."""
        return self.slices[-1].closed if self.slices else PunctuationSet(self.schema)

    @cached_property
    def streams(self) -> list[str]:
        """The names of the streams."""
        return list(self._sources)

    def schema_of(self, name: str) -> Schema:
        """The attributes of a stream."""
        return next(iter(self._sources[self._source(name)].values())).schema

    def waiting(self) -> list[str]:
        """What waits to come out, and which punctuations it waits for, a line each; some of many."""
        found = []
        for waits in inspect(self.directory / "state").waits if self.slices else ():
            for example in waits.examples if waits.blocks else ():
                key = ", ".join(f"{name}={value}" for name, value in example.key.items()) or "the only group"
                needs = "; ".join(f"{n.source}: {', '.join(n.missing[:3])}" for n in example.needs if n.missing)
                found.append(f"{key} waits for {needs or 'no punctuation that is known'}")
        return found

    def _begin(self) -> None:
        directory, engine = self.directory / "state", _engine(self._session)
        self._taken = _Taken()
        settings = Settings((Target.of(None, sink=self._taken),), purge_after=self._purge_after)
        mirror = Mirror(Folder(directory))
        recovered = recover(mirror, self.root, settings.targets, engine.zone, overwrite=False, moved=False)
        self._held.append(recovered)
        self._checkpoint, self._dead_letters = recovered.checkpoint, recovered.dead_letters
        self._checkpoint.note_plan(encoded(self.root))
        readers = [Reading.of(scan.options, name=name) for name, scan in _scans(self.root)]
        self._execution, _ = built(engine, self.root, readers, settings, recovered, self._committed)
        self._execution.clock = lambda: self._now

    def _end(self) -> None:
        self._execution.end()
        while self._held:
            self._held.pop().end()

    def _committed(self, record: Commit) -> None:
        self._report = record.report

    def _slice(self, given: Mapping[str, Sequence[Item]]) -> SliceResult:
        number, positions = len(self.slices), dict(self._positions)
        self._taken.slice = None
        end = {name: {"clock": self._now.isoformat()} for name, _ in _scans(self.root)}
        ranges: list[StagedRange] = []
        for source, scans in self._sources.items():
            for name, options in scans.items():
                items = given.get(source, ())
                range_, positions[source] = staged(
                    items, options, name, number, self._positions[source], self._checkpoint.stage
                )
                ranges.append(range_)
        try:
            self._execution.process_ranges(number, end, lambda: ranges)
        except BaseException as error:
            self.restart()
            if not isinstance(error, XmlStreamError) and (known := original_error(error)) is not None:
                raise known from None  # in its own words, and not in those of Spark's task
            raise
        self._positions = positions
        self.slices.append(self._result(number))
        return self.slices[-1]

    def _result(self, number: int) -> SliceResult:
        taken = self._taken.slice
        tuples = [] if taken is None else _values(taken, self.schema)
        punctuations = [] if taken is None else list(taken.punctuations)
        closed = self.closed.copy()
        closed.add_all(p for p in punctuations if p.lifespan is None)
        letters = [
            json.loads(line)
            for path in sorted(self._dead_letters.glob(f"*-{number:09d}.jsonl"))
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
        kept = sum(operator.kept for operator in self._report.operators)
        return SliceResult(number, tuples, punctuations, closed, kept, letters, self._report.json(), self.schema)

    def _source(self, name: str) -> str:
        """The stream of a name, regardless of case."""
        found = next((known for known in self._sources if known.lower() == name.lower()), None)
        if found is None:
            raise UsageError(f"the query reads no stream {name}", hint=f"it reads {', '.join(self._sources)}")
        return found

    def _with_rows(self, root: Node, static: Mapping[str, Stream]) -> Node:
        """The plan with the rows of static tables in files of the case."""
        there = [node.operator for node in topological(root) if isinstance(node.operator, Static)]
        there += [rule.listed.table for rule in map(_listing, topological(root)) if rule is not None and rule.listed]
        rows = {name.lower(): stream for name, stream in static.items()}
        for name in static:
            if name.lower() not in {table.name.lower() for table in there}:
                known = ", ".join(dict.fromkeys(table.name for table in there)) or "none"
                raise UsageError(f"the query reads no static table {name}", hint=f"it reads {known}")
        made: dict[str, Static] = {}
        for table in there:
            if table.name.lower() not in rows:
                if table.frame is None:
                    raise UsageError(f"{table.name} is a static table", hint="give its rows: static={'…': […]}")
                continue
            (items,) = slices_of(rows[table.name.lower()], table.schema, table.name) or [[]]
            tuples, punctuations = notation.parted(items)
            if punctuations:
                raise UsageError("a static table has no punctuations", where=table.name, hint="it is closed once read")
            path = self.directory / f"static-{len(made)}.parquet"
            written(tuples, table.schema, path)
            made[table.name] = replace(table, format="parquet", options=(("path", str(path)),), frame=None)

        def rewritten(node: Node, inputs: tuple[Node, ...]) -> Node:
            operator = node.operator
            if isinstance(operator, Static):
                operator = made.get(operator.name, operator)
            elif (rule := _listing(node)) is not None and rule.listed and rule.listed.table.name in made:
                table = replace(rule.listed, table=made[rule.listed.table.name])
                operator = replace(operator, rule=replace(rule, listed=table))  # type: ignore[type-var]
            return Node(operator, inputs, node.label)  # the table of a roster is not compared

        return bottom_up(root, rewritten)


def _listing(node: Node) -> ByRoster | None:
    """The roster by which a node punctuates; None if it does not."""
    match node.operator:
        case Punctuate(rule=ByRoster() as rule):
            return rule
    return None


def _scans(root: Node) -> list[tuple[str, Scan]]:
    """The scans of a plan, by their names in it."""
    return [(name, node.operator) for node, name in names(root).items() if isinstance(node.operator, Scan)]


def _sources(root: Node) -> dict[str, dict[str, SourceOptions]]:
    """The options of the scans of each stream by their names in the plan; one stream may be read by several scans."""
    found: dict[tuple[str, str], str] = {}
    sources: dict[str, dict[str, SourceOptions]] = {}
    for name, scan in _scans(root):
        first = found.setdefault((scan.name.lower(), scan.options.path), name)
        sources.setdefault(first, {})[name] = scan.options
    return sources


def _values(taken: ResultSlice, schema: Schema) -> list[Tuple]:
    table = in_utc(taken.tuples)
    columns = [table[name].to_pylist() for name in schema.names]
    return [
        tuple(v if v is None or a.domain.opaque else a.domain.normal(v) for v, a in zip(row, schema, strict=True))
        for row in zip(*columns, strict=True)
    ]


def _engine(session: Any) -> Any:
    from xmlstream.session.engines import engine_of

    return engine_of(session)


def _removed(directory: Path, held: list[Recovered]) -> None:
    while held:
        held.pop().end()
    shutil.rmtree(directory, ignore_errors=True)
