"""A part of a source together with the options it was read by, so that it can be read again."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace

from sources.xml.options.source import SourceOptions
from sources.xml.splits.byte_ranges import ByteRange


@dataclass(frozen=True, slots=True)
class Part:
    """What one task read of a source.

    Read again by as fresh a parser, items have the same positions.

    Attributes:
        options: Of the reader: a source, and those beside it.
        stream: Which of these is meant; 0 is the first.
        ranges: What was read, in order.
    """

    options: SourceOptions
    stream: int
    ranges: tuple[ByteRange, ...]

    @property
    def source(self) -> SourceOptions:
        """The source that is meant."""
        return (self.options, *self.options.beside)[self.stream]

    def with_columns(self, names: Collection[str]) -> Part:
        """The same, with these attributes of the source read, too."""
        return replace(self, options=with_columns(self.options, self.stream, names))

    def text(self) -> str:
        """As the text of a staged row."""
        ranges = [asdict(range_) for range_ in self.ranges]
        return json.dumps({"options": dict(self.options.given), "stream": self.stream, "ranges": ranges})

    @staticmethod
    def of(text: str) -> Part:
        """What `text` gave."""
        known = json.loads(text)
        ranges = (ByteRange(**{**range_, "open": tuple(range_["open"])}) for range_ in known["ranges"])
        return Part(SourceOptions.parse(known["options"]), known["stream"], tuple(ranges))


def with_columns(options: SourceOptions, stream: int, names: Collection[str]) -> SourceOptions:
    """A reader's options, with attributes of one of its sources read beside those that are."""
    if stream == 0:
        columns = tuple(name for name in options.schema.names if name in options.columns or name in names)
        return replace(options, columns=columns)
    beside = list(options.beside)
    beside[stream - 1] = with_columns(beside[stream - 1], 0, names)
    return replace(options, beside=tuple(beside))
