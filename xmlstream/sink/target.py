"""Target of a result: the directory or the stream that it goes to, and the tags of its tuples and documents there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from punct_ns.errors import StateError, UsageError
from punct_ns.schema import Schema
from xmlstream.sink.standard_output import StandardOutput
from xmlstream.sink.xml_sink import DirectorySink, DocumentForm, Sink, StreamSink


@dataclass(frozen=True, slots=True)
class Target:
    """Where a result goes, and how it is spelt there.

    Attributes:
        output: A directory that gets one document per slice, or `-` for standard output.
        row_tag: The element of each tuple.
        root_tag: The element around them.
    """

    output: str
    row_tag: str = "row"
    root_tag: str = "rows"

    def sink(self, schema: Schema) -> Sink:
        """The sink for tuples of this schema.

        Raises:
            QueryError: An attribute cannot be written as XML.
            UsageError: A tag is no XML name.
        """
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
    found = [*directory.glob("slice-*.xml"), *directory.glob(".slice-*.xml")]
    if found and not overwrite:
        raise StateError(
            f"the output {output} holds {len(found)} documents of an earlier query",
            hint="name another directory, give the checkpoint that it goes on from, or --overwrite",
        )
    for path in found:
        path.unlink()
