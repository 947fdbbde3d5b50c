"""A column of XML texts, declared: what its tuples look like, and the columns that are kept beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.xml.options.option_table import by_proper_names
from xmlstream.sources.xml.options.source import SourceOptions

_OF_DOCUMENTS = {
    "path": "the texts are in the column",
    "documents": "each text is a document, or a fragment of one",
    "partitionedBy": "the column is one input",
    "format": "the texts are XML",
    "sectionEnds": "an element's end closes nothing in other texts: write punctuations, or set the option punctuate",
    "cleanSource": "the frame's source keeps its texts",
    "sourceArchiveDir": "the frame's source keeps its texts",
    "unfinished": "a text without its end is a malformed item, and the option mode decides",
    "unfinishedAge": "a text without its end is a malformed item, and the option mode decides",
    "badDocuments": "a text that is not well-formed is a malformed item, and the option mode decides",
    "onReplaced": "the frame's source says what it does",
    "maxBytesPerSlice": "limit the frame's batches, as by maxOffsetsPerTrigger",
    "maxFilesPerSlice": "limit the frame's batches, as by maxFilesPerTrigger",
    "maxBytesPerPartition": "the frame's partitions are the tasks",
}
"""The options that documents have, but no column of texts, and what a user does instead."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of XML texts, as it travels to a task.

    Attributes:
        options: What its tuples look like.
        column: Its name in the frame.
        keep: The columns of the frame that become attributes of each tuple, and say where a text is from.
    """

    options: SourceOptions
    column: str
    keep: tuple[str, ...] = ()

    @staticmethod
    def of(given: Mapping[str, str], column: str, keep: Sequence[str] = ()) -> TextColumn:
        """The column with these options of a source.

        Raises:
            UsageError: An option is unknown or invalid, or is one of documents; or a column to keep has the name of an
                attribute.

        >>> TextColumn.of({"rowTag": "bid", "schema": "price INT", "path": "in"}, "value")
        Traceback (most recent call last):
        xmlstream.punct_ns.errors.UsageError: a column of XML texts has no option path
          Hint: the texts are in the column
        """
        named = by_proper_names(given, "user")
        for name, instead in _OF_DOCUMENTS.items():
            if name in named:
                raise UsageError(f"a column of XML texts has no option {name}", hint=instead)
        options = SourceOptions.parse({**named, "path": f"column {column}", "documents": "one"})
        if document := next((path for path in options.paths if path.function == "document"), None):
            what = f"a column of XML texts has no documents, and so no path {document}"
            raise UsageError(what, hint="keep a column of the frame, as keep 'partition, offset'")
        taken = {name.lower() for name in options.schema.names}
        for name in keep:
            if name.lower() in taken:
                what = f"the column {name} cannot be kept: the tuples have an attribute {name}"
                raise UsageError(what, hint=f"rename one of them; path.OTHER '{name}' gives the attribute another name")
            taken.add(name.lower())
        return TextColumn(options, column, tuple(keep))
