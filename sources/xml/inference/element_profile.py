"""Profile of a document's elements: what each holds, and how often it comes in one parent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from lxml import etree

from punct_ns.domain import BLANKS
from punct_ns.errors import InputError
from sources.xml.inference.observed_values import ObservedValues
from sources.xml.options.leaf_tree import local_tag
from sources.xml.parser.leaf_text import XSI
from sources.xml.splits.charset import FlawError
from sources.xml.splits.documents import open_document
from sources.xml.splits.tags import parse_reason, safe_pull_parser

MOST_PLACES = 5_000
"""Different places of elements that are told apart."""

_BLOCK = 1 << 16


@dataclass(slots=True)
class ElementProfile:
    """The elements of one name at one place.

    Attributes:
        tag: Their name as lxml has it.
        count: How many there are.
        most: How many of them one parent holds at the most.
        values: Texts of those without elements inside.
        attributes: The values of their XML attributes.
        children: What is inside them, by names.
        is_mixed: Whether text stands beside elements in one of them.
    """

    tag: str
    count: int = 0
    most: int = 0
    values: ObservedValues = field(default_factory=ObservedValues)
    attributes: dict[str, ObservedValues] = field(default_factory=dict)
    children: dict[str, ElementProfile] = field(default_factory=dict)
    is_mixed: bool = False

    @property
    def local(self) -> str:
        """Their name without its namespace."""
        return local_tag(self.tag)

    @property
    def has_text(self) -> bool:
        """Whether their text is a value: some, beside no elements or among them, or else nothing at all is in them."""
        is_empty = not self.attributes and not self.children
        return self.is_mixed or bool(self.values.count and (is_empty or not self.values.is_blank))

    def below(self) -> Iterator[ElementProfile]:
        """It, and all that is inside."""
        yield self
        for child in self.children.values():
            yield from child.below()

    def merged(self, other: ElementProfile) -> ElementProfile:
        """Those of two places that are taken for one."""
        attributes = {
            name: self.attributes.get(name, ObservedValues()).merged(other.attributes.get(name, ObservedValues()))
            for name in {**self.attributes, **other.attributes}
        }
        children = {
            tag: self.children.get(tag, ElementProfile(tag)).merged(other.children.get(tag, ElementProfile(tag)))
            for tag in {**self.children, **other.children}
        }
        return replace(
            self,
            count=self.count + other.count,
            most=max(self.most, other.most),
            values=self.values.merged(other.values),
            attributes=attributes,
            children=children,
            is_mixed=self.is_mixed or other.is_mixed,
        )


@dataclass(slots=True)
class Sample:
    """What the beginning of a source's documents shows.

    Attributes:
        root: What is above their roots.
        prefixes: The prefix by which each namespace is first called; empty for the default.
        elements: How many there were.
        is_whole: Whether nothing was left out.
    """

    root: ElementProfile = field(default_factory=lambda: ElementProfile(""))
    prefixes: dict[str, str] = field(default_factory=dict)
    elements: int = 0
    is_whole: bool = True


def sampled(paths: list[str], limit: int, encoding: str | None = None) -> Sample:
    """The profile of the first bytes of documents, so many of them.

    Raises:
        InputError: A document cannot be read, or is not well-formed there.
    """
    found, left = Sample(), limit
    for path in paths:
        if left <= 0:
            found.is_whole = False
            break
        left -= _Profiler(found, path, encoding).read(left)
    return found


class _Profiler:
    """Goes through one document."""

    def __init__(self, sample: Sample, path: str, encoding: str | None) -> None:
        self._sample, self._path = sample, path
        self._parser = safe_pull_parser(encoding)
        self._stack: list[tuple[ElementProfile, Counter[str], int]] = [(sample.root, Counter(), 0)]
        self._places = sum(1 for _ in sample.root.below())

    def read(self, limit: int) -> int:
        """Takes in so many bytes at the most; how many there were."""
        size = 0
        try:
            with open_document(self._path) as file:
                while size < limit and (block := file.read(min(_BLOCK, limit - size))):
                    size += len(block)
                    self._parser.feed(block)
                    self._take()
                if file.read(1):
                    self._sample.is_whole = False
                else:
                    self._parser.close()
                    self._take()
        except (etree.XMLSyntaxError, FlawError) as error:
            with suppress(etree.XMLSyntaxError):
                self._take()
            if not self._sample.root.children:
                raise InputError(f"{self._path} is no XML document: {_reason(error)}") from None
            raise InputError(
                f"{self._path} is not well-formed: {_reason(error)}", hint="mend it, or infer from another"
            ) from None
        return size

    def _take(self) -> None:
        for event, element in self._parser.read_events():
            self._begin(element) if event == "start" else self._end(element)

    def _begin(self, element: etree._Element) -> None:
        parent, counts, _ = self._stack[-1]
        tag = str(element.tag)
        profile = parent.children.get(tag)
        if profile is None:
            profile = ElementProfile(tag)
            self._note_prefixes(element)
            if self._places < MOST_PLACES:
                parent.children[tag] = profile
                self._places += 1
        counts[tag] += 1
        self._sample.elements += 1
        profile.count += 1
        profile.most = max(profile.most, counts[tag])
        for name, value in element.attrib.items():
            if not str(name).startswith(XSI):
                profile.attributes.setdefault(str(name), ObservedValues()).add(self._sample.elements, str(value))
        self._stack.append((profile, Counter(), self._sample.elements))

    def _end(self, element: etree._Element) -> None:
        profile, counts, number = self._stack.pop()
        text = "".join([element.text or "", *(child.tail or "" for child in element)])
        if not counts:
            profile.values.add(number, text)
        elif text.strip(BLANKS):
            profile.is_mixed = True
            profile.values.add(number, text)
        # What it held is no longer needed; what follows it is its parent's.
        del element[:]
        element.attrib.clear()
        element.text = None

    def _note_prefixes(self, element: etree._Element) -> None:
        for prefix, uri in element.nsmap.items():
            known = self._sample.prefixes.get(uri)
            if not known:
                self._sample.prefixes[uri] = prefix or ""


def _reason(error: Exception) -> str:
    return parse_reason(error)
