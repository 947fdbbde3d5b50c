"""Runs queries: to the end of their input, without end, in a loop of the program, or several queries together.

Queries that run together write each into its own output; a part that they share is computed once:

xs.run([prices.insert_into("out/prices", row_tag="price"), counts.insert_into("out/counts")], checkpoint="state")
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from xmlstream.builder.given_tables import found_in
from xmlstream.builder.run_options import (
    COMMON_OPTIONS,
    ON_INSERTS,
    ON_SUMMARIES,
    RUN_OPTIONS,
    CommonOptions,
    RunOptions,
    in_sentences,
    plan_to_run,
    require_known,
    require_safe,
    require_sql,
    settings_of,
    takes,
    watched,
)
from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, results, together
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.runtime import runner
from xmlstream.runtime.launched import Handle
from xmlstream.runtime.settings import Settings
from xmlstream.runtime.tally import Summary
from xmlstream.session.engines import Session, is_in_process
from xmlstream.session.spark_errors import quiet_failures
from xmlstream.sink.program_sink import EachSlice, Function, LoopSink, Sink, TwoPhaseSink
from xmlstream.sink.result_tables import ResultSlice, no_rows
from xmlstream.sink.target import Target
from xmlstream.sink.xml_documents import Vocabulary
from xmlstream.sql import script
from xmlstream.sql.created_functions import note_registered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


in_sentences("a summary", ON_SUMMARIES)(Summary)

_POLL_SECONDS = 0.05
"""Longest time before the end of a query is noticed."""


def _slices(spark: Session, root: Node, settings: Settings, sink: LoopSink) -> Iterator[ResultSlice]:
    with quiet_failures(spark):
        launched = runner.launch(spark, root, settings)
        try:
            while True:
                is_over = launched.is_over()
                if (slice_ := sink.next(0 if is_over else _POLL_SECONDS)) is not None:
                    yield slice_
                    sink.done()
                elif is_over:
                    launched.wait()
                    return
        finally:
            sink.leave()
            launched.stop()


@in_sentences("a query with its output", ON_INSERTS)
@dataclass(frozen=True, slots=True, repr=False)
class Insert:
    """A query and the target of its result; created by `Query.insert_into` and `inserts_from_sql`."""

    spark: Session = field(repr=False, compare=False)
    root: Node
    target: Target

    def __repr__(self) -> str:
        return f"Insert[{', '.join(self.root.schema.names)}] into {self.target.shown}"

    @takes(COMMON_OPTIONS)
    def run(self, checkpoint: str | Path | None = None, **options: Unpack[CommonOptions]) -> Summary:
        """Runs the query alone to the end of its input, as `xmlstream.run` does; returns a summary."""
        return run([self], checkpoint, **options)

    @takes(COMMON_OPTIONS)
    def start(self, checkpoint: str | Path | None = None, **options: Unpack[CommonOptions]) -> Handle:
        """Starts the query alone, as `xmlstream.start` does; returns a handle with the names of PySpark's."""
        return start([self], checkpoint, **options)


@takes(COMMON_OPTIONS)
def run(inserts: Sequence[Insert], checkpoint: str | Path | None = None, **options: Unpack[CommonOptions]) -> Summary:
    """Runs queries together to the end of their input, which closes them unless `keep_open`.

    Args:
        inserts: The queries, each with the target of its result.
        checkpoint: Directory for their state, from which a later run resumes; None for state that ends with the run.

    Raises:
        InputError: The input is malformed or ungrammatical.
        UnsafeQuery: The option `strict` is set, and a query answers or purges only because its input ends.
        StateError: The checkpoint or an output belongs to other queries.
        UsageError: There is no query, or two results have one target.
    """
    root, settings = _prepared(inserts, checkpoint, options, follow=False)
    return runner.run(inserts[0].spark, root, settings)


@takes(COMMON_OPTIONS)
def start(inserts: Sequence[Insert], checkpoint: str | Path | None = None, **options: Unpack[CommonOptions]) -> Handle:
    """Starts queries together and returns Spark's own handle; they wait for more input until they are stopped.

    Args:
        inserts: The queries, each with the target of its result.
        checkpoint: Directory for their state, from which a later start resumes; required.

    Raises:
        UnsafeQuery: A query would never answer, or keep tuples without bound, and `allow_unsafe` is not set.
        StateError: The checkpoint or an output belongs to other queries, or the queries were closed.
    """
    root, settings = _prepared(inserts, checkpoint, options, follow=True)
    if checkpoint is None:
        raise UsageError("start needs a checkpoint", hint='for example checkpoint="state"')
    return runner.start(inserts[0].spark, root, settings)


@in_sentences()
def inserts_from_sql(
    spark: Session, text: str, variables: Mapping[str, str] | None = None, tables: Mapping[str, Any] | None = None
) -> list[Insert]:
    """The INSERT INTO statements of a SQL text, in order; its arguments are those of `from_sql`.

    Raises:
        QueryError: The text is not SQL, does not fit its tables, or has a query without INSERT INTO.
    """
    require_sql(spark, text)
    note_registered(spark, text)
    read = script.read(text, variables, session=spark, given=found_in(spark, tables or {}))
    for warning in read.warnings:
        warnings.warn(warning, stacklevel=2)
    roots = results(read.plan(spark))
    inserts = []
    for root, answer in zip(roots, read.answers, strict=True):
        if answer.sink is None:
            hint = "write INSERT INTO before it, or use from_sql"
            raise answer.query.text.error("the result has no target", answer.query.start, hint)
        inserts.append(Insert(spark, root, answer.sink.target))
    return inserts


def _prepared(
    inserts: Sequence[Insert], checkpoint: str | Path | None, options: CommonOptions, *, follow: bool
) -> tuple[Node, Settings]:
    """The plan of queries that run together, checked to be safe, and the settings of their run."""
    require_known(options, of_several=True)
    given: Any = inserts
    if isinstance(given, str | Path):
        hint = "xs.run(xs.inserts_from_sql(session, text)), with the text of the file"
        raise UsageError(f"{str(given)!r} is no query", hint=hint)
    if given == []:
        raise UsageError("no query to run", hint="pass queries, each with insert_into")
    if not isinstance(given, Sequence) or not all(isinstance(insert, Insert) for insert in given):
        raise UsageError("a query without its output", hint='xs.run([query.insert_into("out")]), or query.run("out")')
    targets = [insert.target for insert in inserts]
    root = together([insert.root for insert in inserts], [target.shown for target in targets])
    settings = settings_of(targets, checkpoint, follow=follow, **options)
    root = plan_to_run(root, settings)
    require_safe(root, settings)
    return root, watched(settings, options.get("monitor", False))


@in_sentences()
@dataclass(frozen=True, slots=True, repr=False)
class Runnable:
    """A plan as written, the Spark session to run it in, and the methods that run it."""

    spark: Session = field(repr=False, compare=False)
    root: Node

    @property
    def schema(self) -> Schema:
        """The schema of the result."""
        return self.root.schema

    @property
    def plan(self) -> Node:
        """The optimized plan; with the option `as_written` the plan `root` runs instead."""
        return optimized(self.root)

    @takes(RUN_OPTIONS)
    def run(
        self,
        output: str | Path | None = None,
        checkpoint: str | Path | None = None,
        *,
        sink: Sink | TwoPhaseSink | None = None,
        **options: Unpack[RunOptions],
    ) -> Summary:
        """Runs to the end of the input, which closes the query unless `keep_open`; returns a summary.

        Args:
            output: A directory that gets one document per slice, or `-` for standard output.
            checkpoint: Directory for the query's state, from which a later run resumes; None for state that ends with
                the run.
            sink: Takes the slices, instead of an output: a sink of your own.

        Raises:
            UnsafeQuery: The option `strict` is set, and the query answers or purges only because its input ends.
            InputError: The input is malformed or ungrammatical.
            StateError: The checkpoint or the output belongs to another query.
        """
        tags, others = _tags_apart(options)
        return run([self.insert_into(output, **tags, sink=sink)], checkpoint, **others)

    @takes(RUN_OPTIONS)
    def start(
        self,
        output: str | Path | None = None,
        checkpoint: str | Path | None = None,
        *,
        sink: Sink | TwoPhaseSink | None = None,
        **options: Unpack[RunOptions],
    ) -> Handle:
        """Starts the query and returns Spark's own handle; it waits for more input until it is stopped.

        Args:
            output: A directory that gets one document per slice, or `-` for standard output.
            checkpoint: Directory for the query's state, from which a later start resumes; required.
            sink: Takes the slices, instead of an output: a sink of your own.

        Raises:
            UnsafeQuery: The query would never answer, or keep tuples without bound, and `allow_unsafe` is not set.
            StateError: The checkpoint or the output belongs to another query, or the query was closed.
        """
        tags, others = _tags_apart(options)
        return start([self.insert_into(output, **tags, sink=sink)], checkpoint, **others)

    @takes(COMMON_OPTIONS)
    def slices(
        self, checkpoint: str | Path | None = None, *, follow: bool = False, **options: Unpack[CommonOptions]
    ) -> Iterator[ResultSlice]:
        """Runs while a loop takes the slices: `for slice in query.slices(): print(slice.tuples, slice.punctuations)`.

        A slice is committed when the loop takes the next one. The query ends when the loop ends; a failure of the query
        is raised in the loop. With a checkpoint a later loop resumes after the last committed slice: the slice in which
        a loop ended by an error or by `break` comes again, under the same number.

        Args:
            checkpoint: Directory for the query's state; None for state that ends with the loop.
            follow: Wait for more input at the end of the input.

        Raises:
            UnsafeQuery: The query follows its input, and would never answer, or keep tuples without bound.
            InputError: The input is malformed or ungrammatical.
            StateError: The checkpoint belongs to another query.
        """
        sink = LoopSink(self.schema)
        insert = Insert(self.spark, self.root, Target("the loop over its slices", taken=sink))
        # Invalid settings raise here, before the loop takes a slice.
        return _slices(self.spark, *_prepared([insert], checkpoint, options, follow=follow), sink)

    @takes(COMMON_OPTIONS)
    def to_arrow(self, **options: Unpack[CommonOptions]) -> pa.Table:
        """Runs to the end of the input, and returns all tuples as an Arrow table, in order of arrival.

        Raises:
            InputError: The input is malformed or ungrammatical.
        """
        tables = [slice_.tuples for slice_ in self.slices(**options)]
        return pa.concat_tables(tables or [no_rows(self.schema)], promote_options="permissive")

    toArrow = to_arrow  # noqa: N815 - as PySpark spells it

    @takes(COMMON_OPTIONS)
    def to_pandas(self, **options: Unpack[CommonOptions]) -> Any:
        """Runs to the end of the input, and returns all tuples as a frame of pandas; raises as `to_arrow` does.

        Raises:
            UsageError: pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise UsageError("pandas is not installed", hint="pip install pandas; to_arrow() needs none")
        return self.to_arrow(**options).to_pandas()

    toPandas = to_pandas  # noqa: N815 - as PySpark spells it

    @takes(COMMON_OPTIONS)
    def head(self, n: int = 5, **options: Unpack[CommonOptions]) -> list[dict[str, object]]:
        """Runs until there are n tuples, and returns these, each as a dictionary; raises as `to_arrow` does."""
        if n < 0:
            raise UsageError(f"{n} tuples cannot be returned", hint="head(5) returns the first five")
        found: list[dict[str, object]] = []
        for slice_ in self.slices(**options):
            found += slice_.tuples.slice(0, n - len(found)).to_pylist()
            if len(found) >= n:
                break
        return found

    @takes(COMMON_OPTIONS)
    def count(self, **options: Unpack[CommonOptions]) -> int:
        """Runs to the end of the input, and returns the number of tuples; raises as `to_arrow` does."""
        return sum(slice_.tuples.num_rows for slice_ in self.slices(**options))

    @takes(COMMON_OPTIONS)
    def show(self, n: int = 20, **options: Unpack[CommonOptions]) -> None:
        """Runs until there are n tuples, and prints these as a table; raises as `to_arrow` does."""
        from rich import box
        from rich.console import Console
        from rich.table import Table

        table = Table(*self.schema.names, box=box.ASCII2)
        for row in self.head(n, **options):
            table.add_row(*(a.domain.shown(row.get(a.name)) for a in self.schema))
        Console(markup=False, highlight=False).print(table)

    @takes(COMMON_OPTIONS)
    def to_dataframe(self, **options: Unpack[CommonOptions]) -> DataFrame:
        """Runs to the end of the input, and returns all tuples as a Spark DataFrame; raises as `to_arrow` does."""
        if is_in_process(self.spark):
            hint = "to_arrow() returns the tuples as a table, to_arrow().to_pylist() as dicts"
            raise UsageError("there is no Spark in this session", hint=hint)
        return self.spark.createDataFrame(self.to_arrow(**options), self.schema.ddl())

    @takes(COMMON_OPTIONS)
    def collect(self, **options: Unpack[CommonOptions]) -> list[Row]:
        """Runs to the end of the input, and returns all tuples as Spark rows; raises as `to_arrow` does."""
        return self.to_dataframe(**options).collect()

    def insert_into(
        self,
        output: str | Path | None = None,
        row_tag: str = "row",
        root_tag: str = "rows",
        *,
        sink: Sink | TwoPhaseSink | None = None,
        partition_by: str | Sequence[str] = (),
        xml: str | Sequence[str] = (),
        paths: Mapping[str, str] | None = None,
        punctuations: str = "inline",
    ) -> Insert:
        """Pairs this query with the target of its result, for `xmlstream.run` to run it together with others.

        Args:
            output: A directory that gets one document per slice; `bids.parquet` gets Parquet.
            row_tag: In XML, the element of each tuple.
            root_tag: In XML, the root element, perhaps with attributes and namespaces: `b:Bills xmlns:b="urn:bills"`.
            sink: A sink of the program, instead of an output.
            partition_by: For Parquet, CSV and JSON, attributes with one directory for each of their values; a directory
                gets the file `_SUCCESS` once punctuations have closed its value.
            xml: Attributes whose texts are XML elements of the attribute's name; written unescaped.
            paths: In XML, the paths of attributes in a tuple's element: `{"currency": "b:Price/@currency"}`.
            punctuations: In XML, `inline`; `all`, also on what the query's selects leave out; `beside` for documents
                of their own; or `none`.
        """
        by, elements = ((each,) if isinstance(each, str) else tuple(each) for each in (partition_by, xml))
        names = Vocabulary(row_tag, root_tag, "", tuple((paths or {}).items()), elements, punctuations)
        target = replace(Target.of(output, names, sink), partition_by=by)
        return Insert(self.spark, self.root, target)

    def foreach_slice(self, function: Function) -> Insert:
        """Passes each slice to a function, as PySpark's `foreachBatch` does: `query.foreach_slice(f).run()`.

        `f(tuples, punctuations, number)` gets the tuples as a DataFrame, in process as an Arrow table, and a list of
        `Punctuation`, whose texts are the notation. It is called once a slice is committed, before later results of
        `xmlstream.run` get that slice. If it raises an error or the process dies, the next run begins with the same
        call: the number has the same tuples again. The DataFrame must not be used after the function has returned.

        Raises:
            UsageError: It is not a function.
        """
        sink = EachSlice(function, on_spark=not is_in_process(self.spark))
        return Insert(self.spark, self.root, Target("foreach_slice", taken=sink))

    def to_table(self, name: str) -> Insert:
        """Appends each slice once to a table of the session's catalog: `query.to_table("lake.db.hottest").run()`.

        Args:
            name: A table of Delta Lake or Iceberg that exists, as in PySpark's `toTable`.
        """
        return Insert(self.spark, self.root, Target(f"catalog://{name}"))

    toTable = to_table  # noqa: N815 - as PySpark spells it


def _tags_apart(options: RunOptions) -> tuple[Mapping[str, Any], Any]:
    """The tags of a result, and the other options of its run."""
    require_known(options)
    others: Any = options
    return {name: others.pop(name) for name in ("row_tag", "root_tag") if name in options}, others
