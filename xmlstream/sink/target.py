"""Target of a result: the directory, stream, table or program that it goes to, and how it is spelt there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from punct_ns.errors import StateError, UsageError
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from sources.local_paths import local_path
from xmlstream.sink import postgresql
from xmlstream.sink.delta import DeltaLoader
from xmlstream.sink.directory_sink import DirectorySink
from xmlstream.sink.document_names import documents_in, require_partitions
from xmlstream.sink.partitioned_sink import PartitionedSink
from xmlstream.sink.program_sink import LoopSink, ProgramSink, TwoPhaseSink, two_phases
from xmlstream.sink.result_tables import CsvForm, JsonForm, ParquetForm
from xmlstream.sink.sink import Form, Sink
from xmlstream.sink.staged_sink import Loader, StagedSink
from xmlstream.sink.standard_output import StandardOutput
from xmlstream.sink.xml_documents import DocumentForm, StreamSink

XML = "punctuated_xml"
"""The form that results have unless another is asked for."""

PROGRAM = "program"
"""The form of what stays in the program."""

TABLE_FORMS: Mapping[str, Callable[[Schema, Sequence[Scheme]], Form]] = {
    "parquet": ParquetForm,
    "csv": CsvForm,
    "json": JsonForm,
}
"""Forms that any program reads, by the names that Spark has for them."""


TRANSACTIONS: Mapping[str, Callable[..., Loader]] = {"delta": DeltaLoader, "postgresql": postgresql.PostgresqlLoader}
"""Forms that are tables with transactions, and what loads slices into them."""

_URL = re.compile(r"[A-Za-z][\w+.-]*(:[A-Za-z][\w+.-]*)*:/")
_NOT_WRITTEN = "arrow avro db duckdb feather gz hudi iceberg jsonl ndjson orc sqlite tsv xls xlsx zip zst"
"""Endings of files that are not XML, and that no form writes."""

_OUTPUTS = (
    "an output is a directory: out for XML, out.parquet, out.csv, out.json, out.delta; or a table,"
    " postgresql://user@host/database#table; or - for standard output"
)


@dataclass(frozen=True, slots=True)
class SinkHome:
    """What a sink is told of the run that it is for.

    Attributes:
        drafts: A directory of its own in the checkpoint.
        query: The id of the query, the same in all runs of a checkpoint.
        goes_on: Whether slices of it have been committed.
        overwrite: Whether results of other queries may be removed.
    """

    drafts: Path
    query: str
    goes_on: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """Where a result goes, and how it is spelt there.

    Attributes:
        output: A directory that gets one document per slice, or `-` for standard output; a Delta table; or a table of
            PostgreSQL, `postgresql://user@host/database#table`.
        row_tag: The element of each tuple.
        root_tag: The element around them.
        form: `punctuated_xml`, `parquet`, `csv`, `json`, `delta` or `postgresql`; None for what the output's name
            begins or ends in: `out.parquet`, `out.delta`, `postgresql://…`.
        taken: By what of the program slices are taken, in place of a directory.
        partition_by: Attributes by whose values its documents lie in directories of their own; not of XML.
        xml: Columns whose texts are elements, written as such; of XML alone.
    """

    output: str
    row_tag: str = "row"
    root_tag: str = "rows"
    form: str | None = None
    partition_by: tuple[str, ...] = ()
    xml: tuple[str, ...] = ()
    taken: TwoPhaseSink | LoopSink | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Takes `file://` away, and refuses an address to which nothing is written."""
        if self.taken is not None or self.form_name == "postgresql":
            return
        if _URL.match(self.output) and not Path(self.output).exists():
            if not self.output.lower().startswith("file:/"):
                raise UsageError(f"nothing is written to {self.output}", hint=_OUTPUTS)
            object.__setattr__(self, "output", local_path(f"file{self.output[4:]}"))
        ending = PurePath(self.output).suffix.removeprefix(".").lower()
        if self.form is None and ending in _NOT_WRITTEN.split():
            raise UsageError(f"the output {self.output}: results are not written as {ending}", hint=_OUTPUTS)

    @staticmethod
    def of(
        output: str | Path | None, row_tag: str = "row", root_tag: str = "rows", sink: TwoPhaseSink | None = None
    ) -> Target:
        """The target that a call names: an output, or a sink of the program's.

        Raises:
            UsageError: It names none or both, or what is no sink.
        """
        if (output is None) == (sink is None):
            given = "an output and a sink" if sink is not None else "neither output nor sink"
            raise UsageError(f"{given} for one result", hint='name one: output="out", or sink=… with draft and commit')
        if output is not None:
            return Target(str(output), row_tag, root_tag)
        return Target(f"the sink {type(sink).__name__}", form=PROGRAM, taken=two_phases(sink))

    @property
    def directory(self) -> Path | None:
        """The directory of documents that it is, if it is one."""
        is_none = self.output == "-" or self.taken is not None or self.form_name in TRANSACTIONS
        return None if is_none else Path(self.output)

    @property
    def shown(self) -> str:
        """Its output as it may be shown and recorded: without a password."""
        return postgresql.shown(self.output) if self.form_name == "postgresql" else self.output

    @property
    def recorded(self) -> dict[str, Any]:
        """What a checkpoint remembers of it."""
        output = str(Path(self.output).absolute()) if self.form_name == "delta" else self.shown
        others = {"partition_by": list(self.partition_by), "xml": list(self.xml)}
        given = {name: columns for name, columns in others.items() if columns}
        return {"output": output, "row_tag": self.row_tag, "root_tag": self.root_tag, "form": self.form_name, **given}

    @property
    def form_name(self) -> str:
        """The form of its documents."""
        if self.form is None and self.output.startswith(("postgresql://", "postgres://")):
            return "postgresql"
        suffix = PurePath(self.output).suffix.removeprefix(".")
        return self.form or (suffix if suffix in {*TABLE_FORMS, "delta"} else XML)

    def require_reachable(self) -> None:
        """Makes sure that the server of a database is there, and lets the user in.

        Raises:
            UsageError: It is not, or does not.
        """
        if self.form_name == "postgresql":
            postgresql.require_reachable(self.output)

    def sink(self, schema: Schema, schemes: Sequence[Scheme], home: SinkHome) -> Sink:
        """The sink for tuples of this schema, and punctuations of these schemes.

        Raises:
            QueryError: An attribute cannot be written in the form, or partitioned by.
            UsageError: A tag is no XML name, a table cannot be written to, XML is to be partitioned, or a column is to
                be elements that cannot be.
            StateError: A table has results of another query.
        """
        if self.xml and (self.form_name != XML or self.taken is not None):
            what = f"the column {self.xml[0]} of {self.shown} cannot be written as XML"
            raise UsageError(what, hint="only XML has elements; elsewhere it is a text")
        if self.partition_by:
            return self._partitioned(schema, schemes)
        if self.form_name in TRANSACTIONS:
            known = {"goes_on": home.goes_on, "overwrite": home.overwrite}
            loader = TRANSACTIONS[self.form_name](self.output, schema, home.query, **known)
            return StagedSink(home.drafts, schema, schemes, loader)
        if self.taken is not None:
            return self.taken if isinstance(self.taken, LoopSink) else ProgramSink(self.taken, schema)
        if self.form_name != XML:
            return DirectorySink(Path(self.output).absolute(), TABLE_FORMS[self.form_name](schema, schemes))
        form = DocumentForm(schema, self.row_tag, self.root_tag, self.xml)
        return (
            StreamSink(StandardOutput(), form)
            if self.output == "-"
            else DirectorySink(Path(self.output).absolute(), form)
        )

    def _partitioned(self, schema: Schema, schemes: Sequence[Scheme]) -> Sink:
        if self.form_name not in TABLE_FORMS:
            hint = f"write {', '.join(TABLE_FORMS)}, or leave the attribute in the tuples"
            raise UsageError(f"the output {self.output} is {self.form_name}, which is not partitioned", hint=hint)
        by = require_partitions(schema, self.partition_by)
        form = TABLE_FORMS[self.form_name](Schema(tuple(a for a in schema if a not in by)), ())
        closings = ParquetForm(schema, schemes) if isinstance(form, ParquetForm) else None
        return PartitionedSink(Path(self.output).absolute(), form, schema, by, closings)


def require_fresh(output: str, *, overwrite: bool) -> None:
    """Makes sure that a query that starts anew finds an output without documents of another.

    Raises:
        StateError: there are some, and they may not be removed.
    """
    if not (directory := Path(output)).exists():
        return
    if not directory.is_dir():
        raise UsageError(f"the output {output} is a file", hint="name a directory: it gets one document per slice")
    found = [directory / name for name in documents_in(directory)]
    if found and not overwrite:
        raise StateError(
            f"the output {output} holds {len(found)} document{'' if len(found) == 1 else 's'} of an earlier query",
            hint="name another directory, give the checkpoint that it goes on from, or --overwrite",
        )
    for path in found:
        path.unlink()
