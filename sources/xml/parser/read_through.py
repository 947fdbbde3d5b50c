"""A source from its beginning to its end, parsed in this process and piece by piece: no Spark, no slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from sources.xml.options.source import SourceOptions
from sources.xml.parser.findings import Findings
from sources.xml.parser.findings_collector import FindingsCollector, restriction_counts
from sources.xml.parser.malformed import malformed_error
from sources.xml.parser.range_parser import Parsed, RangeParser
from sources.xml.splits.documents import Documents
from sources.xml.splits.planner import Offset, Planner


def read_through(options: SourceOptions) -> Iterator[Parsed]:
    """The parsed pieces of a source, in order.

    Raises:
        MalformedInput: An item cannot be read, and the source's mode is FAILFAST; or a document is not well-formed.
        InputError: There is no such source.
    """
    yield from Reading(options).pieces()


class Reading:
    """A source that is read through, and what is noticed on the way."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options.replace(follow="false", columns=None)
        self._parser = RangeParser(self._options)
        planner = Planner(self._options, Documents(self._options, log=False))
        _, self._ranges = planner.advance(Offset(), planner.sizes(Offset()), None)
        self._findings = FindingsCollector(self._options, self._parser.streams[0])
        self._said: Counter[str] = Counter()
        self._malformed = 0

    def pieces(self) -> Iterator[Parsed]:
        """The parsed pieces; `read_through` says what is raised."""
        stops = self._options.mode == "FAILFAST"
        for range_ in self._ranges:
            for parsed in self._parser.parse(range_):
                if parsed.malformed and (stops or parsed.is_last):
                    raise malformed_error(parsed.malformed[0 if stops else -1], self._options.encoding)
                self._malformed += len(parsed.malformed)
                self._findings.add(parsed)
                self._said += restriction_counts(pa.Table.from_batches([parsed.punctuations]), self._options.schema)
                yield parsed

    def findings(self) -> Findings:
        """What was noticed up to now."""
        found = self._findings.findings(self._ranges, self._said)
        return found + Findings(aside=Counter(malformed=self._malformed))
