"""A source from its beginning to its end, parsed in this process and piece by piece: no Spark, no slices."""

from __future__ import annotations

from collections.abc import Iterator

from sources.documents import Documents
from sources.malformed import as_error
from sources.planning import Offset, Planner
from sources.source import SourceOptions
from sources.xml_parser import Parsed, XmlParser


def read_through(options: SourceOptions) -> Iterator[Parsed]:
    """The parsed pieces of a source, in order.

    Raises:
        MalformedInput: An item cannot be read, and the source's mode is FAILFAST; or a document is not well-formed.
        InputError: There is no such source.
    """
    options = options.replace(follow="false", columns=None)
    parser = XmlParser(options)
    planner = Planner(options, Documents(options, log=False))
    _, ranges = planner.advance(Offset(), planner.sizes(Offset()), None)
    for range_ in ranges:
        for parsed in parser.parse(range_):
            if parsed.malformed and (options.mode == "FAILFAST" or parsed.is_last):
                raise as_error(parsed.malformed[0 if options.mode == "FAILFAST" else -1], options.encoding)
            yield parsed
