"""Results as punctuated XML: one well-formed document per slice, or one document on a byte stream, extended per slice.

In a document, the tuples of a slice precede its punctuations. So that a result meets an XSD, its elements have
prefixes, its root has attributes, columns have paths, and punctuations stand in a document beside, or nowhere:

    rootTag 'b:Bills version="2.1"', namespaces 'b urn:bills', rowTag 'b:Bill',
    path.price 'b:Price', path.currency 'b:Price/@currency', punctuations 'beside'

    <b:Bills version="2.1" xmlns:b="urn:bills">
    <b:Bill><b:Price currency="EUR">12.50</b:Price></b:Bill>
    </b:Bills>
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
from lxml import etree

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.object_urls import OPTIONS
from xmlstream.operators.storage.records import Record
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema, leaves, schema_within
from xmlstream.punct_ns.slices import quoted
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.punct_ns.xml_form import PUNCT_NS, in_quotes, write_element
from xmlstream.sink.arrow_columns import ArrowColumn, in_row_order, pc, plain_array
from xmlstream.sink.sink import INEXACT, Bytes, ComputedSlice, Draft, Exactness, Moment, Part, SinkKind, SliceSink
from xmlstream.sink.standard_output import Written
from xmlstream.sink.xml_text import nested_leaf, require_xml_columns, rows_text
from xmlstream.sink.xml_values import (
    ATTRIBUTE_PREFIX,
    REPLACE,
    VALUE,
    element_type,
    is_computed,
    is_name,
    is_nested,
    leaf_of,
    require_writable,
)
from xmlstream.sources.xml.options.leaf_paths import LeafPath
from xmlstream.sources.xml.options.qualified_names import XML_PREFIXES, namespace_prefixes
from xmlstream.sources.xml.splits.tags import parse_reason, safe_parser

PREFIX = "punct"

ALL = "all"
PLACES = ("inline", "beside", "none", ALL)
"""Where the punctuations of a result stand: among its tuples, in documents beside theirs, or nowhere.

With `all` they stand among its tuples, together with those on what its selects leave out.
"""


@dataclass(frozen=True, slots=True)
class Vocabulary(Record):
    """Names of a result in XML.

    Attributes:
        row_tag: Tag of each tuple's element, perhaps with a prefix.
        root_tag: Tag of the element around them, perhaps followed by its attributes.
        namespaces: Prefixes and their namespaces, as in the option of a source.
        paths: Columns, and the paths of their leaves in a tuple's element: `b:Price/@currency`.
        xml: Columns whose texts are written as elements.
        punctuations: Where punctuations stand, and which, one of `PLACES`.
    """

    sparse = frozenset(("namespaces", "paths", "xml"))

    row_tag: str = "row"
    root_tag: str = "rows"
    namespaces: str = ""
    paths: tuple[tuple[str, str], ...] = ()
    xml: tuple[str, ...] = ()
    punctuations: str = "inline"

    def __post_init__(self) -> None:
        """Refuses a place for punctuations that there is not, and paths that cannot be written."""
        if self.punctuations not in PLACES:
            what = f"the option punctuations is '{self.punctuations}'"
            raise UsageError(what, hint=f"it is one of {', '.join(PLACES)}")
        self.steps()

    def steps(self) -> dict[str, tuple[str, ...]]:
        """Steps of the paths, by column: names of elements, and perhaps of an XML attribute, with `@`, at the end.

        Raises:
            UsageError: A path does not lead to an element or an XML attribute in the row, or the root is malformed.
        """
        prefixes, found = self.prefixes(), dict[str, tuple[str, ...]]()
        for column, path in self.paths:
            read = LeafPath.parse(path, prefixes)
            found[column] = steps = tuple(step.strip() for step in path.split("/") if step.strip() != ".")
            if read.is_outside or read.function or read.others or set(path) & set("{}[]*") or "" in steps or not steps:
                hint = f"write 'xml({column})', a path such as b:Price or b:Price/@currency, or leave it out"
                raise UsageError(f"path.{column} '{path}' cannot be written", hint=hint)
        return found

    @property
    def root_name(self) -> str:
        """Name of the root, without its attributes."""
        return next(iter(self.root_tag.split(None, 1)), "")

    def prefixes(self) -> dict[str, str]:
        """Prefixes that names may have, with their namespaces."""
        return {**XML_PREFIXES, **{prefix: uri for prefix, uri in self.nsmap().items() if prefix}}

    def declarations(self) -> str:
        """Declarations of the prefixes in the root's start tag.

        >>> Vocabulary(namespaces="b urn:b").declarations()
        ' xmlns:b="urn:b"'
        """
        declared = namespace_prefixes("namespaces", self.namespaces)
        return "".join(f" xmlns:{p}={in_quotes(uri)}" for p, uri in declared.items() if p not in XML_PREFIXES)

    def nsmap(self) -> dict[str | None, str]:
        """Namespaces in the scope of the root, by prefix; None is the default namespace.

        Raises:
            UsageError: The root's start tag is not well-formed.
        """
        if not is_name(self.root_name.rpartition(":")[2]):
            return {}  # refused with the name of a result's columns, which may be no names of XML either
        try:
            if set(self.root_tag) & set("<>"):
                raise ValueError("it has < or >, which an attribute writes as &lt; and &gt;")
            return etree.fromstring(f"<{self.root_tag}{self.declarations()}/>", safe_parser()).nsmap
        except (etree.XMLSyntaxError, ValueError) as error:
            reason = parse_reason(error).partition(", line ")[0]
            hint = "a name, then its attributes, as in rootTag 'b:Bills version=\"2.1\"', namespaces 'b urn:bills'"
            raise UsageError(f"the root tag {self.root_tag!r} is not well-formed: {reason}", hint=hint) from None


PLAIN = Vocabulary()
"""The names of a result without options."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Child element or XML attribute of a row or of an element in it: a column, or a structure of several columns."""

    name: str
    attribute: Attribute
    column: str | None = None
    inner: tuple[_Place, ...] = ()

    def values(self, tuples: pa.Table) -> ArrowColumn:
        """Values of the place; null where all of its columns are.

        Raises:
            QueryError: A string is null where its element has XML attributes or children; it would be read as empty.
        """
        if self.column is not None:
            return tuples[self.column]
        parts = [_whole(plain_array(place.values(tuples))) for place in self.inner]
        absent = parts[0].is_null()
        for part in parts[1:]:
            absent = pc.and_(absent, part.is_null())
        own = self.inner[0]
        is_text = own.name == VALUE and isinstance(own.attribute.domain.sql, StringType)
        if is_text and pc.any(pc.and_not(parts[0].is_null(), absent)).as_py():
            what = (
                f"the result's column {own.column} is null where {self.name} has other contents: it would be read as ''"
            )
            raise QueryError(what, hint=f"write coalesce({own.column}, '') AS {own.column}")
        return pa.StructArray.from_arrays(parts, names=[place.attribute.name for place in self.inner], mask=absent)


def _whole(values: ArrowColumn) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _places(columns: Sequence[tuple[tuple[str, ...], Attribute]]) -> Iterator[_Place]:
    """Places of columns by their paths, in the order of the first column at each.

    Raises:
        UsageError: Two columns have one path, or one has a path through the text of another.
    """
    order = {path[0]: None for path, _ in columns}
    for step, group in groupby(sorted(columns, key=lambda one: [*order].index(one[0][0])), lambda one: one[0][0]):
        found = list(group)
        ends = [attribute for path, attribute in found if len(path) == 1]
        below = [path[1] for path, _ in found if len(path) > 1]
        # Beside the text of an element there are only its XML attributes: all text in it would be read.
        if len(ends) > 1 or (ends and below and (is_nested(ends[0]) or not all(one[0] == "@" for one in below))):
            both = " and ".join(attribute.name for _, attribute in found[:2])
            raise UsageError(f"the columns {both} are both written at {step}", hint="give one another path")
        if len(found) == 1 and ends:
            name = f"{ATTRIBUTE_PREFIX}{step[1:]}" if step.startswith("@") else step
            yield _Place(step, Attribute(name, ends[0].domain), ends[0].name)
            continue
        own = [_Place(VALUE, Attribute(VALUE, end.domain), end.name) for end in ends]
        inner = (*own, *_places([(path[1:], attribute) for path, attribute in found if len(path) > 1]))
        fields = ", ".join(f"{quoted(place.attribute.name)}: {place.attribute.domain.type}" for place in inner)
        yield _Place(step, Attribute(step, Domain(f"STRUCT<{fields}>")), None, inner)


def with_field_names(schema: Schema, paths: Mapping[str, tuple[str, ...]]) -> Schema:
    """A schema whose structures have other names for fields, by paths such as `{"bid.price": ("@eur",)}`.

    Raises:
        UsageError: There is no such field, its path has several steps, or two fields have one name.
    """
    left = {name.lower(): (name, path) for name, path in paths.items()}

    def renamed(domain: Domain, within: str) -> Domain:
        if (element := element_type(Attribute("", domain))) is not None:
            return Domain(f"ARRAY<{renamed(element, within).type}>", domain.nullable)
        if (fields := schema_within(domain.sql)) is None:
            return domain
        found = []
        for field in fields:
            whole = f"{within}.{field.name}".lower()
            option, path = left.pop(whole, ("", (field.name,)))
            if len(path) > 1:
                what = f"path.{option} '{'/'.join(path)}' has several steps"
                raise UsageError(what, hint="a field of a structure is an element in it, town, or an attribute, @town")
            name = f"{ATTRIBUTE_PREFIX}{path[0][1:]}" if option and path[0].startswith("@") else path[0]
            type_, ends = renamed(field.domain, whole).type, "" if field.domain.nullable else " NOT NULL"
            found.append(f"{quoted(name)}: {type_}{ends}")
        return Domain(f"STRUCT<{', '.join(found)}>", domain.nullable)

    made = Schema(tuple(Attribute(a.name, renamed(a.domain, a.name)) if left else a for a in schema))
    for option, _ in left.values():
        raise UsageError(f"path.{option} names no field", hint=f"there are {', '.join(schema.names)} and their fields")
    return made


class DocumentForm:
    """Encoding of a result as XML: its tags, and its attributes in the schema's order.

    A result with punctuations beside has two forms: one for the documents with its tuples, one for those beside.
    """

    def __init__(self, schema: Schema, given: Vocabulary = PLAIN, *, is_beside: bool = False) -> None:
        """`is_beside` is for the documents beside those with the tuples.

        Raises:
            QueryError: A column has a name or a type that XML cannot hold.
            UsageError: A tag is not an XML name, a path cannot be written, or a column cannot be written as XML.
        """
        root_tag, prefixes = given.root_name, given.prefixes()
        self.schema, self.row_tag = schema, given.row_tag
        # What is computed without AS has another name in XML.
        paths: dict[str, tuple[str, ...]] = {name: (leaf_of(name),) for name in schema.names if is_computed(name)}
        declared, known = given.steps(), {name.lower() for name in schema.names}
        fields = {name: path for name, path in declared.items() if "." in name and name.lower() not in known}
        paths |= {schema.attribute(name).name: path for name, path in declared.items() if name not in fields}
        shown = with_field_names(schema, fields)
        steps = [paths.get(attribute.name, (leaf_of(attribute.name),)) for attribute in shown]
        # The names of a window's start and end share an element, without a path.
        self._places = tuple(_places(list(zip(steps, shown, strict=True)))) if paths else ()
        self._written = Schema(tuple(place.attribute for place in self._places)) if paths else shown
        require_writable(self._written, given.row_tag, root_tag, prefixes)
        local = given.row_tag.rpartition(":")[2]
        self._local, self._xml = local, require_xml_columns(self._written, given.xml, local)
        self._leaves = [
            "/".join((*paths[attribute.name][:-1], nested_leaf(Attribute(paths[attribute.name][-1], attribute.domain))))
            if attribute.name in paths
            else nested_leaf(attribute)
            if is_nested(attribute)
            else leaf_of(place)
            for attribute, place in zip(shown, leaves(shown), strict=True)
        ]
        self._nested = frozenset(i for i, attribute in enumerate(schema) if is_nested(attribute))
        self._has_tuples, self._has_punctuations = not is_beside, is_beside or given.punctuations in ("inline", ALL)
        self.suffix = ".xml.punct" if is_beside else ".xml"
        beside = "".join(f" xmlns{':' * bool(p)}{p or ''}={in_quotes(uri)}" for p, uri in given.nsmap().items())
        start = f"{root_tag}{beside}" if is_beside else f"{given.root_tag}{given.declarations()}"
        start += f' xmlns:{PREFIX}="{PUNCT_NS}"' if self._has_punctuations else ""
        self._head = f'<?xml version="1.0" encoding="UTF-8"?>\n<{start}'.encode()
        self.tail = f"</{root_tag}>\n".encode()

    def document(self, parts: Sequence[Part], exactness: Exactness, written: Moment) -> Sequence[Bytes]:
        """A well-formed document; without items only in the slice in which the result stops being exact."""
        items = self.items(parts, written)
        if not items and not (exactness is Exactness.LOST and self._has_punctuations):
            return ()
        return (self.head(exactness), *items, self.tail)

    def head(self, exactness: Exactness) -> bytes:
        """The XML declaration and the root's start tag; a document without punctuations has no mark of exactness."""
        is_marked = exactness is not Exactness.EXACT and self._has_punctuations
        return self._head + (INEXACT if is_marked else b"") + b">\n"

    def items(self, parts: Sequence[Part], written: Moment) -> list[Bytes]:
        """The elements of a slice; in each part, tuples precede punctuations.

        Raises:
            QueryError: A value cannot be written so that it reads back the same.
        """
        rows: list[Bytes] = []
        for tuples, punctuations in parts:
            if tuples is not None and self._has_tuples:
                rows += rows_text(self._placed(in_row_order(tuples)), self._written, self.row_tag, self._xml)
            # A punctuation on a null array would close empty arrays, too: both are written alike.
            said = punctuations if self._has_punctuations else ()
            rows += [self._punctuation(p, written) for p in said if not self._nested & {*p.restricted}]
        return rows

    def _placed(self, tuples: pa.Table) -> pa.Table:
        """Tuples with a column for each place, if columns have paths."""
        if not self._places:
            return tuples
        return pa.table({place.attribute.name: place.values(tuples) for place in self._places})

    def _punctuation(self, punctuation: Punctuation, written: Moment) -> bytes:
        lives = punctuation.lifespan
        lifespan = None if lives is None else lives.written(written.now, written.names)
        try:
            return write_element(punctuation, self._local, PREFIX, self._leaves, lifespan).encode() + b"\n"
        except ValueError as error:
            raise QueryError(f"a punctuation of the result cannot be written: {error}", hint=REPLACE) from None


class StreamSink(SliceSink):
    """One document on a byte stream, extended by each slice; a restart cannot take back printed slices.

    A slice is printed before its commit: a slice that could not be printed is not committed, and a restart prints
    uncommitted slices again.
    """

    def __init__(self, out: Written, form: DocumentForm) -> None:
        self._out, self._form = out, form
        self._items: list[Bytes] = []
        self._exactness = Exactness.EXACT
        self._open = False
        self._broken = False

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Keeps the slice's elements until `deliver` prints them."""
        self._items, self._exactness = self._form.items(slice_.parts, slice_.written), slice_.exactness
        if self._open and slice_.exactness is Exactness.LOST:
            self._items.insert(0, b'<!-- from here on exact="false": kept tuples were overdue -->\n')
        return None

    def deliver(self) -> None:
        """Prints the drafted elements."""
        self._print(self._items)
        self._items = []

    def publish(self, draft: Draft | None) -> None:
        """Prints the head of the document if no slice has yet."""
        self._print(())

    def break_off(self) -> None:
        """Leaves the document without its end, which would say that nothing follows."""
        self._broken = True

    def close(self) -> None:
        """Prints the end of the document, unless printing or the query failed before."""
        if not self._broken:
            self._print((self._form.tail,))

    def _print(self, items: Iterable[Bytes]) -> None:
        # Holds until all bytes are written.
        self._broken = True
        if not self._open:
            self._out.write(self._form.head(self._exactness))
            self._open = True
        for item in items:
            self._out.write(item)
        self._out.flush()
        self._broken = False


XML = SinkKind(
    name="punctuated_xml",
    example="out for XML",
    options=("path", "rowTag", "rootTag", "namespaces", "punctuations", *OPTIONS),
    has_elements=True,
)
"""Documents in a directory, or one on standard output; the default kind of an output."""
