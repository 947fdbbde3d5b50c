"""Target of a result: the directory, the stream or the program that it goes to, and how it is spelt there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from punct_ns.errors import StateError, UsageError
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from xmlstream.sink.directory_sink import DirectorySink, slice_of
from xmlstream.sink.document_form import DocumentForm
from xmlstream.sink.program_sink import LoopSink, ProgramSink, TwoPhaseSink, two_phases
from xmlstream.sink.sink import Form, Sink
from xmlstream.sink.standard_output import StandardOutput
from xmlstream.sink.stream_sink import StreamSink
from xmlstream.sink.table_forms import CsvForm, JsonForm, ParquetForm

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


@dataclass(frozen=True, slots=True)
class Target:
    """Where a result goes, and how it is spelt there.

    Attributes:
        output: A directory that gets one document per slice, or `-` for standard output.
        row_tag: The element of each tuple.
        root_tag: The element around them.
        form: `punctuated_xml`, `parquet`, `csv` or `json`; None for what the directory's name ends in, `out.parquet`.
        taken: By what of the program slices are taken, in place of a directory.
    """

    output: str
    row_tag: str = "row"
    root_tag: str = "rows"
    form: str | None = None
    taken: TwoPhaseSink | LoopSink | None = field(default=None, compare=False, repr=False)

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
        """The directory that it is, if it is one."""
        return None if self.output == "-" or self.taken is not None else Path(self.output)

    @property
    def recorded(self) -> dict[str, Any]:
        """What a checkpoint remembers of it."""
        place = {"output": self.output, "row_tag": self.row_tag, "root_tag": self.root_tag}
        return {**place, "form": self.form_name}

    @property
    def form_name(self) -> str:
        """The form of its documents."""
        suffix = PurePath(self.output).suffix.removeprefix(".")
        return self.form or (suffix if suffix in TABLE_FORMS else XML)

    def sink(self, schema: Schema, schemes: Sequence[Scheme] = ()) -> Sink:
        """The sink for tuples of this schema, and punctuations of these schemes.

        Raises:
            QueryError: An attribute cannot be written in the form.
            UsageError: A tag is no XML name.
        """
        if self.taken is not None:
            return self.taken if isinstance(self.taken, LoopSink) else ProgramSink(self.taken, schema)
        if self.form_name != XML:
            return DirectorySink(Path(self.output).absolute(), TABLE_FORMS[self.form_name](schema, schemes))
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
    if not (directory := Path(output)).exists():
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
