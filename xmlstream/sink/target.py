"""Target of a result: the directory, stream, table or program that it goes to, and its form there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from operators.storage.store import store_at
from punct_ns.errors import StateError, UsageError
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from sources.local_paths import local_path
from xmlstream.sink.delta import DELTA
from xmlstream.sink.directory_sink import DirectorySink
from xmlstream.sink.document_names import documents_in, require_partitions
from xmlstream.sink.partitioned_sink import PartitionedSink
from xmlstream.sink.postgresql import POSTGRESQL
from xmlstream.sink.program_sink import PROGRAM, LoopSink, TwoPhaseSink, two_phases
from xmlstream.sink.result_tables import CSV, JSON, PARQUET, ParquetForm
from xmlstream.sink.sink import Sink
from xmlstream.sink.sink_kind import SinkHome, SinkKind
from xmlstream.sink.staged_sink import StagedSink
from xmlstream.sink.xml_documents import XML

SINKS: Mapping[str, SinkKind] = {kind.name: kind for kind in (XML, PARQUET, CSV, JSON, DELTA, POSTGRESQL)}
"""The kinds of sinks that an output or a table can name, by their names behind USING."""

PARTITIONED = ", ".join(name for name, kind in SINKS.items() if kind.form)
"""The names of those that may be partitioned, as hints list them."""

_URL = re.compile(r"[A-Za-z][\w+.-]*(:[A-Za-z][\w+.-]*)*:/")
_NOT_WRITTEN = "arrow avro db duckdb feather gz hudi iceberg jsonl ndjson orc sqlite tsv xls xlsx zip zst"
"""Endings of files that are not XML, and that no kind of sink writes."""

_OUTPUTS = f"an output is {', '.join(kind.example for kind in SINKS.values())}, or - for standard output"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a result goes, and in which form.

    Attributes:
        output: A directory that gets one document per slice, or `-` for standard output; or a table, in the form that
            its kind of sink has.
        row_tag: The element of each tuple.
        root_tag: The element around them.
        form: The name of its kind in `SINKS`; None if the output's scheme or ending names it.
        taken: What takes slices in the program, in place of an output.
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
        if not self.kind.is_path:
            return
        if _URL.match(self.output) and not Path(self.output).exists():
            if not self.output.lower().startswith("file:/"):
                raise UsageError(f"nothing is written to {self.output}", hint=_OUTPUTS)
            object.__setattr__(self, "output", local_path(f"file{self.output[4:]}"))
        ending = PurePath(self.output).suffix.removeprefix(".").lower()
        if self.form is None and self.kind is XML and ending in _NOT_WRITTEN.split():
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
        return Target(f"the sink {type(sink).__name__}", taken=two_phases(sink))

    @property
    def kind(self) -> SinkKind:
        """The kind of its sink."""
        if self.taken is not None:
            return PROGRAM
        if self.form is not None:
            return SINKS[self.form]
        return next((kind for kind in SINKS.values() if kind.is_named_by(self.output)), XML)

    @property
    def directory(self) -> Path | None:
        """The directory of documents that it is, if it is one."""
        is_one = self.kind.is_path and self.kind.loader is None and self.output != "-"
        return Path(self.output) if is_one else None

    @property
    def shown(self) -> str:
        """Its output as it may be shown and recorded: without a password."""
        return self.kind.shown(self.output)

    @property
    def recorded(self) -> dict[str, Any]:
        """What a checkpoint records of it."""
        is_table = self.kind.is_path and self.kind.loader is not None
        output = str(Path(self.output).absolute()) if is_table else self.shown
        others = {"partition_by": list(self.partition_by), "xml": list(self.xml)}
        given = {name: columns for name, columns in others.items() if columns}
        return {"output": output, "row_tag": self.row_tag, "root_tag": self.root_tag, "form": self.kind.name, **given}

    def require_reachable(self) -> None:
        """Makes sure, before anything starts, that slices can get there.

        Raises:
            UsageError: They cannot.
        """
        if self.kind.check is not None:
            self.kind.check(self.output)

    def sink(self, schema: Schema, schemes: Sequence[Scheme], home: SinkHome) -> Sink:
        """The sink for tuples of this schema, and punctuations of these schemes.

        Raises:
            QueryError: An attribute cannot be written in the form, or partitioned by.
            UsageError: A tag is no XML name, a table cannot be written to, what is no form is to be partitioned, or a
                column is to be elements that cannot be.
            StateError: A table has results of another query.
        """
        kind, path = self.kind, Path(self.output).absolute()
        if self.xml and not kind.has_elements:
            what = f"the column {self.xml[0]} of {self.shown} cannot be written as XML"
            raise UsageError(what, hint="only XML has elements; elsewhere it is a text")
        if self.partition_by and kind.form is None:
            hint = f"write {PARTITIONED}, or leave the attribute in the tuples"
            raise UsageError(f"the output {self.shown} is {kind.name}, which is not partitioned", hint=hint)
        if kind.loader is not None:
            return StagedSink(home.drafts, schema, schemes, kind.loader(self.output, schema, home))
        if kind.form is None:
            assert kind.sink is not None
            return kind.sink(self, schema)
        if not self.partition_by:
            return DirectorySink(path, kind.form(schema, schemes))
        by = require_partitions(schema, self.partition_by)
        form = kind.form(Schema(tuple(a for a in schema if a not in by)), ())
        closings = ParquetForm(schema, schemes) if isinstance(form, ParquetForm) else None
        return PartitionedSink(path, form, schema, by, closings)


def require_fresh(output: str, *, overwrite: bool) -> None:
    """Makes sure that a query that starts anew finds an output without documents of another.

    Raises:
        StateError: there are some, and they may not be removed.
    """
    directory = Path(output)
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"the output {output} is a file", hint="name a directory: it gets one document per slice")
    found = documents_in(directory)
    if found and not overwrite:
        raise StateError(
            f"the output {output} holds {len(found)} document{'' if len(found) == 1 else 's'} of an earlier query",
            hint="name another directory, give the checkpoint that it goes on from, or --overwrite",
        )
    store_at(directory).delete(*found)
