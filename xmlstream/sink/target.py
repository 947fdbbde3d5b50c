"""Target of a result: the directory or the stream that it goes to, and the tags of its tuples and documents there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from punct_ns.errors import StateError, UsageError
from punct_ns.schema import Schema
from xmlstream.sink.directory_sink import DirectorySink, slice_of
from xmlstream.sink.document_form import DocumentForm
from xmlstream.sink.sink import Form, Sink
from xmlstream.sink.standard_output import StandardOutput
from xmlstream.sink.stream_sink import StreamSink
from xmlstream.sink.table_forms import CsvForm, JsonForm, ParquetForm

XML = "punctuated_xml"
"""The form that results have unless another is asked for."""

TABLE_FORMS: Mapping[str, Callable[[Schema], Form]] = {"parquet": ParquetForm, "csv": CsvForm, "json": JsonForm}
"""Forms that any program reads, by the names that Spark has for them."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a result goes, and how it is spelt there.

    Attributes:
        output: A directory that gets one document per slice, or `-` for standard output.
        row_tag: The element of each tuple.
        root_tag: The element around them.
        form: `punctuated_xml`, `parquet`, `csv` or `json`; None for what the directory's name ends in, `out.parquet`.
    """

    output: str
    row_tag: str = "row"
    root_tag: str = "rows"
    form: str | None = None

    @property
    def form_name(self) -> str:
        """The form of its documents."""
        suffix = PurePath(self.output).suffix.removeprefix(".")
        return self.form or (suffix if suffix in TABLE_FORMS else XML)

    def sink(self, schema: Schema) -> Sink:
        """The sink for tuples of this schema.

        Raises:
            QueryError: An attribute cannot be written in the form.
            UsageError: A tag is no XML name.
        """
        if self.form_name != XML:
            return DirectorySink(Path(self.output).absolute(), TABLE_FORMS[self.form_name](schema))
        form = DocumentForm(schema, self.row_tag, self.root_tag)
        return (
            StreamSink(StandardOutput(), form)
            if self.output == "-"
            else DirectorySink(Path(self.output).absolute(), form)
        )


def require_fresh(output: str, *, overwrite: bool) -> None:
    """Makes sure that a query that starts anew finds an output without documents of another.

    Raises:
        StateError: there are some, and they may not be removed.
    """
    if output == "-" or not (directory := Path(output)).exists():
        return
    if not directory.is_dir():
        raise UsageError(f"the output {output} is a file", hint="name a directory: it gets one document per slice")
    found = [path for path in directory.iterdir() if slice_of(path.name.removeprefix(".")) is not None]
    if found and not overwrite:
        raise StateError(
            f"the output {output} holds {len(found)} documents of an earlier query",
            hint="name another directory, give the checkpoint that it goes on from, or --overwrite",
        )
    for path in found:
        path.unlink()
