"""What an output has closed, and its last tuples, read from the output alone.

XML has punctuations among its rows, or in documents beside them; Parquet has them in its metadata; a database has a
table of closed values. All but XML know the types of the attributes. Those of XML are declared, or read from the
texts: the first of `_TYPES` that fits all patterns of an attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path, PurePath
from typing import BinaryIO, TypeAlias
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq

from xmlstream.operators.storage.object_urls import require_known_scheme
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import MalformedInput, NotationError, UsageError
from xmlstream.punct_ns.notation import parse_pattern, split_patterns
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet, remainder
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.xml_form import LIFESPAN, PUNCT_NS
from xmlstream.sink.closed_table import Closings, closed_rows, closed_schema, punctuation_texts
from xmlstream.sink.document_names import SUCCESS, require_slice, slice_of
from xmlstream.sink.output import Output
from xmlstream.sink.target import OutputRecord, Target
from xmlstream.sink.xml_values import ATTRIBUTE_PREFIX
from xmlstream.sources.parquet_table import CLOSED, SCHEMA, is_partition

_TYPES = {"BIGINT": ".eE", "DOUBLE": "", "DATE": ":", "TIMESTAMP": "", "STRING": ""}
"""Types that texts may have, and characters that no value of the type has; as an end of a range they would be read."""

_TIMES = ("DATE", "TIMESTAMP")
"""Types that their texts show beyond doubt."""

Reader: TypeAlias = Callable[[], Closings]
"""Reads what an output has closed since the last call."""


def closed(output: str | Path, slice: int | None = None, schema: str | None = None) -> pa.Table:
    """Table of what an output has closed, up to a slice or to its last one.

    Args:
        output: The directory, URL or table that a query writes to, as `-o` names it.
        slice: The number of a slice, as in `cat --as-of`.
        schema: The attributes of an XML output as Spark DDL; by default their types are read from its punctuations.

    Raises:
        UsageError: There is no such result, it has no punctuations, or it has no such slice yet.
    """
    found = reader_of(str(output))()
    if found.last is None:
        raise UsageError(f"there is no result at {output}", hint='name the output of a query, as in output="out"')
    require_slice(slice, found.last, str(output))
    texts = [(number, text) for number, text in found.punctuations if slice is None or number <= slice]
    attributes = _typed(found.names, found.types or schema, [text for _, text in found.punctuations])
    tables = [closed_rows(number, [Punctuation.parse(text, attributes)], attributes) for number, text in texts]
    return pa.concat_tables([closed_schema(attributes).empty_table(), *tables])


class ClosedSoFar:
    """Whether an output has closed what is wanted, as far as it was read.

    Attributes:
        schema: The attributes; None until the output shows them.
        missing: What is wanted, and not closed yet.
    """

    def __init__(self, output: str, wanted: str | Mapping[str, str], schema: str | None = None) -> None:
        """Begin to read an output.

        Args:
            output: The output, as `-o` names it; it need not exist yet.
            wanted: A punctuation in notation, or patterns by the names of attributes.
            schema: The attributes, if they are declared, as Spark DDL.

        Raises:
            UsageError: The wanted punctuation does not fit the declared attributes.
        """
        self._output, self._wanted_as, self._declared = output, wanted, schema
        self._read = reader_of(output)
        self._known: list[tuple[int, str]] = []
        self.schema: Schema | None = None
        self.missing: list[Punctuation] = []
        if schema is not None:
            self._begin(Schema.parse(schema), typed=True)

    def _begin(self, schema: Schema, *, typed: bool) -> None:
        self.schema, self._closed = schema, PunctuationSet(schema)
        try:
            of = self._wanted_as
            self._wanted = Punctuation.parse(of, schema) if isinstance(of, str) else Punctuation.of(schema, of)
        except (UsageError, ValueError) as error:
            what = error.what if isinstance(error, NotationError | UsageError) else str(error)
            known = [f"{a.name} {a.domain.type}" if typed or a.domain.type in _TIMES else a.name for a in schema]
            raise UsageError(what, hint=f"the attributes of {self._output} are {', '.join(known)}") from None
        self.missing = [self._wanted]

    def read(self) -> Iterator[int]:
        """Reads what is new, one slice after the other; yields the number of each once it counts.

        Raises:
            UsageError: What is wanted does not fit the attributes of the output, or it has no punctuations.
        """
        found = self._read()
        if not found.names:
            return
        self._known += found.punctuations
        new, declared = found.punctuations, found.types or self._declared
        if self.schema is None:
            self._begin(self._typed(found.names, declared), typed=declared is not None)
            new = self._known
        try:
            parsed = self._parsed(new)
        except NotationError:
            if declared is not None:
                raise
            # The texts that came show another type than those before.
            self._begin(self._typed(found.names, None), typed=False)
            parsed = self._parsed(self._known)
        if declared is not None:
            self._known = []
        for number in sorted({number for number, _ in parsed}):
            self._closed.add_all([punctuation for each, punctuation in parsed if each == number])
            self.missing = [] if self._closed.covers(self._wanted) else remainder(self._wanted, self._closed)
            yield number

    def _parsed(self, texts: Sequence[tuple[int, str]]) -> list[tuple[int, Punctuation]]:
        assert self.schema is not None
        return [(number, Punctuation.parse(text, self.schema)) for number, text in texts]

    def _typed(self, names: Sequence[str], declared: str | None) -> Schema:
        """The attributes; where they have no types, the texts of what is wanted count, too, but not against times."""
        known = _typed(names, declared, [text for _, text in self._known])
        wanted, texts = self._wanted_as, [text for _, text in self._known]
        if not isinstance(wanted, str):
            wanted = f"<{', '.join(wanted.get(name, '*') for name in names)}>"
        with suppress(NotationError):
            if len(split_patterns(wanted)) == len(names):
                texts.append(wanted)
        both = zip(known, _typed(names, declared, texts), strict=True)
        return Schema(tuple(one if one.domain.type in _TIMES else other for one, other in both))


def _typed(names: Sequence[str], declared: str | None, texts: Sequence[str]) -> Schema:
    """The attributes of an output: as declared, or by the texts of its punctuations.

    Raises:
        UsageError: Others are declared than it has.
    """
    if declared is not None:
        schema = Schema.parse(declared)
        if len(schema) != len(names):
            what = f"{len(schema)} attributes are declared, and the output has {len(names)}: {', '.join(names)}"
            raise UsageError(what, hint="declare all of them in this order, such as --schema 'hour INT, n BIGINT'")
        return schema
    columns = list(zip(*map(split_patterns, texts), strict=True)) or [()] * len(names)
    return Schema(tuple(Attribute(name, _domain(column)) for name, column in zip(names, columns, strict=True)))


def _domain(texts: Sequence[str]) -> Domain:
    """The domain of the first type that reads all texts as patterns; for wildcards alone that is BIGINT."""
    known = dict.fromkeys(texts)
    for domain, others in ((Domain(type_), others) for type_, others in _TYPES.items()):
        with suppress(NotationError):
            for text in known:
                parse_pattern(text, domain)
            if not any(set(others).intersection(text) for text in known):
                return domain
    return Domain("STRING")


def reader_of(output: str | Target) -> Reader:
    """What reads an output: each call returns what is new.

    Raises:
        UsageError: The output cannot be reached, or names nothing that a query writes.
    """
    target = output if isinstance(output, Target) else Target(output)
    if (read := target.kind.closings) is None:
        if target.documents() is None:
            hint = "name a directory, or a table of Delta Lake, Iceberg or PostgreSQL that a query writes"
            raise UsageError(f"{target.shown} does not hold what a query has closed", hint=hint)
        require_known_scheme(target.output)
        return _Documents(target.output)
    last = [-1]

    def new() -> Closings:
        found = read(target.output, last[0])
        last[0] = max([last[0], *(number for number, _ in found.punctuations)])
        return found

    return new


class _Documents:
    """The documents of an output; each is read once."""

    def __init__(self, output: str) -> None:
        self._output, self._seen = Output(output), set[str]()

    def __call__(self) -> Closings:
        """The punctuations of the documents that are new.

        Raises:
            UsageError: Its documents have no punctuations.
            MalformedInput: A document is not well-formed.
        """
        there = {name: number for name in self._output.documents() if (number := slice_of(name)) is not None}
        self._require_punctuations(there)
        names, types, found = dict[str, None](), None, list[tuple[int, Mapping[str, str]]]()
        for name, number in there.items():
            if name in self._seen or "/" in name.removeprefix(f"{CLOSED}/") or not _has_them(name):
                continue
            types_, given = _read(self._output, name)
            types = types_ or types
            for patterns in given:
                names |= dict.fromkeys(patterns)
                found.append((number, patterns))
        if types is not None:
            names = dict.fromkeys(Schema.parse(types).names)
        # A query that was changed may have had fewer attributes, or others.
        texts = [(number, f"<{', '.join(one.get(name, '*') for name in names)}>") for number, one in found]
        self._seen = set(there)
        return Closings(tuple(names), types, sorted(texts, key=itemgetter(0)), max(there.values(), default=None))

    def _require_punctuations(self, names: Mapping[str, int]) -> None:
        if not names or any(not is_partition(name.partition("/")[0]) and _has_them(name) for name in names):
            return
        first = next(iter(names))
        where, hint = self._output.where, "write the result as XML or Parquet"
        if "/" in first:
            what = f"the result at {where} is partitioned, and its files hold no punctuations"
            raise UsageError(what, hint=f"a complete partition has a file {SUCCESS}; or {hint}")
        raise UsageError(f"{where} has {PurePath(first).suffix[1:]} documents, which hold no punctuations", hint=hint)


def _has_them(name: str) -> bool:
    return name.endswith((".xml", ".punct", ".parquet", ".closed"))


def _read(output: Output, name: str) -> tuple[str | None, list[Mapping[str, str]]]:
    """What a document has: the types of the attributes, and for each punctuation its patterns by their names."""
    if name.endswith((".xml", ".punct")):
        with output.open(name) as file:
            return None, list(_of_xml(file, f"{output.where}/{name}"))
    metadata = pq.read_schema(output.store.source(name)).metadata or {}
    if SCHEMA not in metadata:
        return None, []
    types = metadata[SCHEMA].decode()
    names, texts = Schema.parse(types).names, punctuation_texts(metadata)
    return types, [dict(zip(names, split_patterns(text), strict=True)) for text in texts]


def _of_xml(file: BinaryIO, where: str) -> Iterator[Mapping[str, str]]:
    """The punctuations of an XML document: their patterns by the names of the attributes.

    Left out are those with a lifespan, which do not close for good.
    """
    depth, root = 0, None
    try:
        for event, element in ElementTree.iterparse(file, ("start", "end")):  # noqa: S314 - what a query wrote
            depth += 1 if event == "start" else -1
            root = element if root is None else root
            if event == "start" or depth != 1:
                continue
            if element.tag.startswith(f"{{{PUNCT_NS}}}") and f"{{{PUNCT_NS}}}{LIFESPAN}" not in element.attrib:
                yield dict(_leaves(element))
            root.clear()
    except ElementTree.ParseError as error:
        line, column = error.position
        what = f"the document is not well-formed: {error}"
        raise MalformedInput(what, document=where, line=line, column=column + 1) from None


def _leaves(element: ElementTree.Element, above: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of a punctuation in their order, attributes first: their names and their patterns."""
    for name, text in element.attrib.items():
        yield f"{above}{ATTRIBUTE_PREFIX}{name.rpartition('}')[2]}", text
    for child in element:
        name = f"{above}{child.tag.rpartition('}')[2]}"
        if len(child) or child.attrib:
            yield from _leaves(child, f"{name}.")
        if not len(child):
            yield name, child.text or '""'


_END = 1 << 16
"""Bytes at the end of a document in which its last tuples are looked for."""


def last_tuples(record: OutputRecord, most: int) -> list[Mapping[str, str]]:
    """The last tuples of the documents of an output, as texts by the names of their leaves; the newest comes last.

    They are read from the ends of the last documents, XML or Parquet. Any other output gives none.

    Raises:
        OSError, StateError: The output cannot be read.
        ValueError: A document is damaged.
    """
    if record.target.documents() is None:
        return []
    output, found = Output(record.output), list[Mapping[str, str]]()
    for name, size in reversed(output.documents().items()):
        if slice_of(name) is not None and "/" not in name and name.endswith((".xml", ".parquet")):
            read = _tuples_at_end if name.endswith(".xml") else _rows_at_end
            found = [*read(output, name, size, record), *found]
        if len(found) >= most:
            break
    return found[-most:]


def _tuples_at_end(output: Output, name: str, size: int, record: OutputRecord) -> list[Mapping[str, str]]:
    """The tuples at the end of an XML document; each begins a line."""
    text = b"\n" + output.store.read(name, max(0, size - _END), size)
    tag = re.escape(record.row_tag.encode())
    begins = rb"\n(?=<(?:/|(?:punct:)?" + tag + rb"[\s/>]))"
    rows = [row for row in re.split(begins, text)[1:] if re.match(rb"<" + tag + rb"[\s/>]", row)]
    root = f'<{record.root_tag}{record.declarations()} xmlns:punct="{PUNCT_NS}">'.encode()
    close = f"</{record.root_name}>".encode()
    return [dict(_leaves(ElementTree.fromstring(root + row + close)[0])) for row in rows]  # noqa: S314


def _rows_at_end(output: Output, name: str, size: int, record: OutputRecord) -> list[Mapping[str, str]]:
    """The rows of the last group of a Parquet file."""
    file = pq.ParquetFile(output.store.source(name))
    rows = file.read_row_group(file.num_row_groups - 1).to_pylist() if file.num_row_groups else []
    return [{column: str(value) for column, value in row.items() if value is not None} for row in rows]
