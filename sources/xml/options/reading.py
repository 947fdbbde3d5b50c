"""A source as a run reads it: what its user has declared, and what the run adds.

It travels to other processes as it is, and is never parsed again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from xmlstream.dataclasses import dataclass, fields, replace
from xmlstream.sources.xml.options.source import SourceOptions


@dataclass(frozen=True, slots=True)
class Reading(SourceOptions):
    """A source that a run reads, in one pass with other streams of the same documents.

    Attributes:
        name: The source's name in staged ranges.
        stage: The directory or URL for parsed slices.
        restricted: The file with the names of the attributes that punctuations have restricted so far
            (`grammar_filter`); None if none is noted.
        clock: The file with the tick interval of the clock that punctuates it; absent while nothing waits
            (`query_clocks`). None if no clock does.
        beside: The other streams.
    """

    name: str = "source"
    stage: str = ""
    restricted: str | None = None
    clock: str | None = None
    beside: tuple[Reading, ...] = ()

    @staticmethod
    def of(options: SourceOptions, **added: Any) -> Reading:
        """The reading of a source; `added` are its own fields, and others in place of those of the options."""
        return Reading(**{each.name: getattr(options, each.name) for each in fields(options)} | added)

    @property
    def streams(self) -> tuple[Reading, ...]:
        """The source, and the streams beside it."""
        return (self, *self.beside)

    def staging(self, stage: str) -> Reading:
        """The same reading with another stage, also for the streams beside it."""
        return replace(self, stage=stage, beside=tuple(replace(other, stage=stage) for other in self.beside))

    def with_columns(self, stream: int, names: Collection[str]) -> Reading:
        """The reading that also reads these attributes of one of its streams."""
        if stream == 0:
            columns = tuple(name for name in self.schema.names if name in self.columns or name in names)
            return replace(self, columns=columns)
        beside = list(self.beside)
        beside[stream - 1] = beside[stream - 1].with_columns(0, names)
        return replace(self, beside=tuple(beside))
