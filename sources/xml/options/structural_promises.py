"""Promises that a document makes by its structure: an id comes once, and the end of a section closes what it holds.

    uniqueIds 'id'                        no tuple has the id of a tuple before it
    sectionEnds 'regions/* region; regions *'
                                          at the end of each child of `regions` its region is closed, at the end of
                                          `regions` everything

These are promises of the source, like its schemes; the tuples are held against them as against any other punctuation.
They are true of one document, not of several in sequence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from punct_ns.errors import UsageError
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, parse_schemes
from punct_ns.slices import quoted
from sources.xml.options.paths import LeafPath


@dataclass(frozen=True, slots=True)
class SectionEnd:
    """What the end tag of an element closes.

    Attributes:
        element: Local names from an ancestor down to the element itself; `*` at the end is any.
        attributes: Places of the attributes whose values there are closed; everything is if there are none.
    """

    element: tuple[str, ...]
    attributes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StructuralPromises:
    """All that a source's documents close by their structure.

    Attributes:
        unique: Places of the attributes that have each value once at the most.
        sections: The elements whose ends close something.
    """

    unique: tuple[int, ...] = ()
    sections: tuple[SectionEnd, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unique or self.sections)

    @staticmethod
    def parse(unique_ids: str, section_ends: str, schema: Schema, paths: Sequence[LeafPath]) -> StructuralPromises:
        """Read the options `uniqueIds` and `sectionEnds`; UsageError with the reason.

        >>> schema = Schema.parse("id INT, region STRING")
        >>> paths = [LeafPath.parse("@id"), LeafPath.parse("name(..)")]
        >>> StructuralPromises.parse("id", "regions/* region; regions *", schema, paths).sections
        (SectionEnd(element=('regions', '*'), attributes=(1,)), SectionEnd(element=('regions',), attributes=()))
        """
        unique = tuple(schema.index(name.strip()) for name in unique_ids.split(",") if name.strip())
        sections = tuple(_section(part, schema, paths) for part in section_ends.split(";") if part.strip())
        return StructuralPromises(unique, sections)

    def schemes(self, schema: Schema) -> tuple[Scheme, ...]:
        """What they promise: each attribute's values, one by one.

        >>> schema = Schema.parse("id INT, region STRING")
        >>> [str(scheme) for scheme in StructuralPromises((0,), (SectionEnd(("r",), (1,)),)).schemes(schema)]
        ['id', 'region']
        """
        closed = [(index,) for index in self.unique] + [end.attributes for end in self.sections if end.attributes]
        texts = [", ".join(quoted(schema[index].name) for index in places) for places in dict.fromkeys(closed)]
        return parse_schemes("; ".join(texts), schema)


def _section(text: str, schema: Schema, paths: Sequence[LeafPath]) -> SectionEnd:
    element, _, closed = text.strip().partition(" ")
    if not _ELEMENT.fullmatch(element) or not closed.strip():
        raise UsageError(f"'{text.strip()}' is no section's end", hint=_HINT)
    if closed.strip() == "*":
        return SectionEnd(tuple(element.split("/")), ())
    places = tuple(schema.index(name.strip()) for name in closed.split(","))
    for index in places:
        if not paths[index].up or paths[index].is_ancestors_leaf:
            name = schema[index].name
            raise UsageError(
                f"the end of {element} does not know {name}: its path {paths[index]} leads to no ancestor",
                hint=f"path.{name} '../@id' or 'name(..)' leads to one",
            )
    return SectionEnd(tuple(element.split("/")), places)


_ELEMENT = re.compile(r"(?:[^\W\d][\w.\-·]*/)*(?:[^\W\d][\w.\-·]*|(?<=/)\*)")
_HINT = "an element and what its end closes, as in 'open_auction id; regions/* region; people *'"
