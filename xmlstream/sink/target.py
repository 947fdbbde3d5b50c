"""Target of a result: the directory, stream, table or program that receives it, and its form there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from xmlstream.dataclasses import dataclass, field
from xmlstream.extensions import extensions
from xmlstream.operators.storage.object_urls import is_object_url
from xmlstream.operators.storage.object_urls import shown as without_options
from xmlstream.operators.storage.store import Store, store_at
from xmlstream.punct_ns.errors import StateError, UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.sink.directory_sink import DirectorySink
from xmlstream.sink.document_names import require_partitions
from xmlstream.sink.output import Output
from xmlstream.sink.partitioned_sink import PartitionedSink
from xmlstream.sink.program_sink import (
    TWO_PHASE,
    WRITTEN,
    LoopSink,
    ProgramSink,
    Sink,
    SinkLoader,
    Taken,
    made_sink,
    name_of_sink,
    sink_of,
)
from xmlstream.sink.result_tables import CSV, JSON, PARQUET, ParquetForm
from xmlstream.sink.sink import SinkHome, SinkKind, SliceSink
from xmlstream.sink.staged_sink import StagedSink
from xmlstream.sink.standard_output import StandardOutput
from xmlstream.sink.xml_documents import PLAIN, XML, DocumentForm, StreamSink, Vocabulary
from xmlstream.sources.local_paths import local_path

SINKS: Mapping[str, SinkKind] = {kind.name: kind for kind in (XML, PARQUET, CSV, JSON, *extensions("sink"))}
"""Kinds of sinks that an output or a table can name, by the name that follows USING."""

PARTITIONED = ", ".join(name for name, kind in SINKS.items() if kind.form)
"""Names of the kinds that may be partitioned, as hints list them."""

_URL = re.compile(r"[A-Za-z][\w+.-]*(:[A-Za-z][\w+.-]*)*:/")
_NOT_WRITTEN = "arrow avro db duckdb feather gz hudi iceberg jsonl ndjson orc sqlite tsv xls xlsx zip zst"
"""File endings that no kind of sink writes; an output with any other unknown ending is a directory of XML."""

_ELEMENTS = "write punctuated_xml, or leave it out: only XML has elements with names of one's own"
_OUTPUTS = f"an output is {', '.join(kind.example for kind in SINKS.values())}, or - for standard output"


@dataclass(frozen=True, slots=True)
class OutputRecord(Vocabulary):
    """A target in the record of a query; documents of slices before `since` need not exist."""

    sparse = Vocabulary.sparse | {"partition_by"}

    output: str = ""
    form: str = ""
    partition_by: tuple[str, ...] = ()
    since: int = 0

    @property
    def target(self) -> Target:
        """The target by its place and its form, without names of elements."""
        return Target(self.output, form=self.form if self.form in SINKS else None)


@dataclass(frozen=True, slots=True)
class Target:
    """Destination and form of a result.

    Attributes:
        output: Directory that receives one document per slice, `-` for standard output, or a table in the notation of
            its kind of sink.
        names: Names of elements; only for XML.
        form: Name of the kind in `SINKS`; None if the output's scheme or ending names the kind.
        taken: Object in the program that takes the slices in place of an output.
        partition_by: Attributes to partition the documents by, one directory per value; not for XML.
    """

    output: str
    names: Vocabulary = PLAIN
    form: str | None = None
    partition_by: tuple[str, ...] = ()
    taken: Taken | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Removes `file://`, and refuses addresses and file endings that cannot be written."""
        if not self.kind.is_path:
            return
        ending = PurePath(without_options(self.output)).suffix.removeprefix(".").lower()
        if self.form is None and self.kind is XML and ending in _NOT_WRITTEN.split():
            raise UsageError(f"the output {self.shown}: results cannot be written as {ending}", hint=_OUTPUTS)
        if is_object_url(self.output):
            return
        if _URL.match(self.output) and not Path(self.output).exists():
            if not self.output.lower().startswith("file:/"):
                raise UsageError(f"cannot write to {self.output}", hint=_OUTPUTS)
            object.__setattr__(self, "output", local_path(f"file{self.output[4:]}"))

    @staticmethod
    def of(output: str | Path | None, names: Vocabulary = PLAIN, sink: object = None) -> Target:
        """Target named by a call: an output, or a sink object of the program.

        Raises:
            UsageError: The call names neither or both, or the object is not a sink.
        """
        if (output is None) == (sink is None):
            given = "an output and a sink" if sink is not None else "neither output nor sink"
            raise UsageError(f"{given} for one result", hint='give one: output="out", or sink=…, an xs.Sink')
        if output is not None:
            return Target(str(output), names)
        return Target(name_of_sink(sink), taken=sink_of(sink))

    @staticmethod
    def of_class(name: str, options: Mapping[str, str]) -> Target:
        """Target of a user's class of sinks, named `module:Class`, which is called with the options as keywords.

        Raises:
            UsageError: There is no such class, it does not take these options, or it makes no sink.
        """
        sink = made_sink(name, options)
        return Target(f"the sink {name}", taken=sink)

    @property
    def kind(self) -> SinkKind:
        if self.taken is not None:
            return WRITTEN if isinstance(self.taken, Sink) else TWO_PHASE
        if self.form is not None:
            return SINKS[self.form]
        return next((kind for kind in SINKS.values() if kind.is_named_by(self.output)), XML)

    @property
    def store(self) -> Store | None:
        """Directory or object store that receives documents or tables; None if the target is not one."""
        return store_at(self.output).resolved() if self.kind.is_path and self.output != "-" else None

    def documents(self, *drafts: Path) -> Output | None:
        """Documents at the target, with the folder for the `drafts` of an object store; None if it has none."""
        return None if self.store is None or self.kind.loader is not None else Output(self.store, *drafts)

    @property
    def shown(self) -> str:
        """Output without its password and its options, to be shown."""
        return without_options(self.output)

    @property
    def place(self) -> str:
        """Output as `shown`, by the one name that it has without links."""
        return self.shown if self.store is None else self.store.where()

    @property
    def recorded(self) -> OutputRecord:
        """Description of the target that a checkpoint records."""
        form, by = self.kind.name, tuple(self.partition_by)
        return OutputRecord.extending(self.names, output=self.place, form=form, partition_by=by)

    def require_reachable(self) -> None:
        """Checks before the query starts that the target can be reached.

        Raises:
            UsageError: It cannot be reached.
        """
        if self.kind.check is not None:
            self.kind.check(self.output)
        if (output := self.documents()) is not None:
            output.store.require_usable()

    def sink(self, schema: Schema, schemes: Sequence[Scheme], home: SinkHome) -> SliceSink:
        """Sink for tuples of this schema and punctuations of these schemes.

        Raises:
            QueryError: The form cannot hold an attribute, or a partition attribute has no text.
            UsageError: A tag is not an XML name, a table cannot be written, the kind cannot be partitioned, or a column
                cannot be written as XML.
            StateError: The table holds results of another query.
        """
        kind = self.kind
        names = self.names
        if names.xml and not kind.has_elements:
            what = f"the column {names.xml[0]} of {self.shown} cannot be written as XML"
            raise UsageError(what, hint="write punctuated_xml; other forms write the column as text")
        for option in () if kind.has_elements else ("namespaces", "paths", "punctuations"):
            if getattr(names, option) != getattr(PLAIN, option):
                raise UsageError(f"the output {self.shown} is {kind.name}, which has no {option}", hint=_ELEMENTS)
        if self.partition_by and kind.form is None:
            hint = f"write {PARTITIONED}, or leave the attribute in the tuples"
            raise UsageError(f"the output {self.shown} is {kind.name}, which cannot be partitioned", hint=hint)
        if kind.loader is not None:
            return StagedSink(home.drafts, schema, schemes, kind.loader(self.output, schema, home))
        if isinstance(self.taken, Sink):
            return StagedSink(home.drafts, schema, schemes, SinkLoader(self.taken, home))
        if isinstance(self.taken, LoopSink):
            self.taken.query = home.query
            return self.taken
        if self.taken is not None:
            return ProgramSink(self.taken, schema, home.query)
        output = self.documents(home.drafts)
        if kind.form is None:
            xml, is_apart = DocumentForm(schema, names), names.punctuations == "beside"
            if output is None and is_apart:
                what = "standard output is one document, which has none beside it for punctuations"
                raise UsageError(what, hint="write punctuations 'inline' or 'none', or to a directory")
            beside = DocumentForm(schema, names, is_beside=True) if is_apart else None
            return StreamSink(StandardOutput(), xml) if output is None else DirectorySink(output, xml, beside)
        assert output is not None
        if not self.partition_by:
            return DirectorySink(output, kind.form(schema, schemes))
        by = require_partitions(schema, self.partition_by)
        form = kind.form(Schema(tuple(a for a in schema if a not in by)), ())
        closings = ParquetForm(schema, schemes) if isinstance(form, ParquetForm) else None
        return PartitionedSink(output, form, schema, by, closings)


def require_fresh(output: Output, *, overwrite: bool) -> None:
    """Checks that the output of a new query holds no documents of another query; `overwrite` removes them.

    Raises:
        StateError: It holds such documents, and `overwrite` is not set.
    """
    found = output.documents()
    if found and not overwrite:
        raise StateError(
            f"the output {output.where} holds {len(found)} document{'' if len(found) == 1 else 's'} "
            "of an earlier query",
            hint="name another directory, give the checkpoint of that query, or --overwrite",
        )
    output.delete(*found)
