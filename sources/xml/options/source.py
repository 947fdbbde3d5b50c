"""The options of a source, parsed: its location, what a tuple looks like, what it promises, how it is split.

The data source, the planner of a query and `xmlstream check` all use one `SourceOptions`. Its names are those of
Spark's own XML source where the meaning is the same.

An option of a single attribute is `path.NAME`: its path in a row, or its format. That of a field in a structure is
`path.NAME.FIELD`: its path in the structure's element. The option without a name applies to all attributes of its type.

A document can promise by its structure that each id occurs once, or that the end of a section closes its contents:

    uniqueIds 'id'                        no tuple has the id of an earlier tuple
    sectionEnds 'regions/* region; regions *'
                                          the end of each child of `regions` closes its region, the end of
                                          `regions` closes everything

These are promises of the source, like its schemes; tuples are checked against them as against any other
punctuation. They hold for one document, not for several in sequence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.storage.object_urls import is_object_url, shown
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Attribute, Schema, flattened, windows
from xmlstream.punct_ns.scheme import Scheme, implied, parse_schemes
from xmlstream.punct_ns.slices import STREAM, quoted
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.punct_ns.temporal_type import DateType, TimestampType
from xmlstream.punct_ns.time_zones import full_zone, is_always_utc
from xmlstream.punct_ns.xml_form import NAME
from xmlstream.sources.local_paths import glob_of, local_path
from xmlstream.sources.places import is_glob, located
from xmlstream.sources.xml.options.formats import date_pattern, name_list
from xmlstream.sources.xml.options.leaf_paths import LeafPath, default_path
from xmlstream.sources.xml.options.local_times import LocalTimes
from xmlstream.sources.xml.options.nested_values import Structure, element_of, is_readable
from xmlstream.sources.xml.options.option_table import (
    OPTIONS,
    CleanSource,
    Format,
    Giver,
    ManyDocuments,
    Mode,
    OnUngrammatical,
    WhenBad,
    WhenDoctype,
    WhenReplaced,
    WhenUnfinished,
    by_proper_names,
    may_change,
)
from xmlstream.sources.xml.options.qualified_names import Prefixes, canonical_row_tag, row_tags


@dataclass(frozen=True, slots=True)
class SectionEnd:
    """What the end tag of an element closes.

    Attributes:
        element: Local names from an ancestor down to the element itself; a final `*` matches any.
            Without any name, the end of each document.
        attributes: The indexes of the attributes whose current values are closed; without any, everything is closed.
    """

    element: tuple[str, ...]
    attributes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StructuralPromises:
    """Everything that a source's documents close by their structure.

    Attributes:
        unique: The indexes of the attributes that have each value at most once.
        sections: The elements whose ends close something.
        documents: What the end of each document closes, of what its path or URL has.
    """

    unique: tuple[int, ...] = ()
    sections: tuple[SectionEnd, ...] = ()
    documents: tuple[SectionEnd, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unique or self.sections or self.documents)

    @staticmethod
    def parse(unique_ids: str, section_ends: str, schema: Schema, paths: Sequence[LeafPath]) -> StructuralPromises:
        """Parses the options `uniqueIds` and `sectionEnds`; UsageError with the reason if they are invalid.

        >>> schema = Schema.parse("id INT, region STRING")
        >>> paths = [LeafPath.parse("@id"), LeafPath.parse("name(..)")]
        >>> StructuralPromises.parse("id", "regions/* region; regions *", schema, paths).sections
        (SectionEnd(element=('regions', '*'), attributes=(1,)), SectionEnd(element=('regions',), attributes=()))
        """
        unique = tuple(map(schema.index, name_list("uniqueIds", unique_ids)))
        ends = [_section(part, schema, paths) for part in section_ends.split(";") if part.strip()]
        sections, documents = (tuple(e for e in ends if bool(e.element) is inside) for inside in (True, False))
        return StructuralPromises(unique, sections, documents)

    def schemes(self, schema: Schema) -> tuple[Scheme, ...]:
        """Returns the schemes of these promises: one for each unique attribute, and for the attributes of each section.

        >>> schema = Schema.parse("id INT, region STRING")
        >>> [str(scheme) for scheme in StructuralPromises((0,), (SectionEnd(("r",), (1,)),)).schemes(schema)]
        ['id', 'region']
        """
        ends = (*self.sections, *self.documents)
        closed = [(index,) for index in self.unique] + [end.attributes for end in ends if end.attributes]
        texts = [", ".join(quoted(schema[index].name) for index in places) for places in dict.fromkeys(closed)]
        return parse_schemes("; ".join(texts), schema)


def _section(text: str, schema: Schema, paths: Sequence[LeafPath]) -> SectionEnd:
    element, _, closed = text.strip().partition(" ")
    of_document = element == "document()" and closed.strip() != "*"
    if not (of_document or _SECTION.fullmatch(element)) or not closed.strip():
        raise UsageError(f"'{text.strip()}' is not a section's end", hint=_SECTION_HINT)
    if closed.strip() == "*":
        return SectionEnd(tuple(element.split("/")), ())
    places = tuple(map(schema.index, name_list("sectionEnds", closed)))
    for index in places:
        name, is_name = schema[index].name, paths[index].function == "document"
        if is_name is not of_document:
            hint = f"sectionEnds 'document() {name}', with a path.{name} 'document(…)', closes it as its document ends"
            raise UsageError(f"the end of {element} cannot close {name}, at {paths[index]}", hint=hint)
        if not paths[index].up and not is_name:
            raise UsageError(
                f"the end of {element} cannot close {name}: its path {paths[index]} leads to no ancestor",
                hint=f"path.{name} '../@id', '../id' or 'name(..)' leads to one",
            )
    return SectionEnd(() if of_document else tuple(element.split("/")), places)


_SECTION = re.compile(rf"(?:{NAME}/)*(?:{NAME}|(?<=/)\*)")
_SECTION_HINT = (
    "an element and what its end closes, as in 'open_auction id; regions/* region; people *; document() day'"
)


_FORMATS: Mapping[type, str] = {DateType: "dateFormat", TimestampType: "timestampFormat"}
"""The option with the format of a type's values."""


def prefixes_of(given: Mapping[str, str], schema: Schema) -> tuple[str, ...]:
    """Returns the prefix of each attribute's texts that is not part of the values; raises UsageError."""
    found = [""] * len(schema)
    for name, prefix in given.items():
        if name.startswith("prefix."):
            place = _place(name, schema)
            domain = _of_values(schema[place].domain)
            if domain.opaque or isinstance(domain.sql, StringType):
                what = f"{name} of a {schema[place].domain.type}"
                raise UsageError(what, hint="a prefix is only removed from values that are no strings, as in person17")
            found[place] = prefix
    return tuple(found)


def formats_of(given: Mapping[str, str], schema: Schema, read: Mapping[str, str | None]) -> tuple[str | None, ...]:
    """Returns the pattern of dates or timestamps of each attribute; raises UsageError."""
    types = [type(_of_values(attribute.domain).sql) for attribute in schema]
    found = [read[_FORMATS[type_]] if type_ in _FORMATS else None for type_ in types]
    for name, pattern in given.items():
        option, dot, _ = name.partition(".")
        if dot and option in _FORMATS.values() and not _is_of_field(name, schema):
            place = _place(name, schema)
            _require_format(name, schema[place].domain)
            found[place] = date_pattern(name, pattern)
    return tuple(found)


def _require_format(option: str, domain: Domain) -> None:
    """Checks that values of a domain have such a format; UsageError if not."""
    of = option.partition(".")[0]
    if _FORMATS.get(type(_of_values(domain).sql)) != of:
        kind = next(type_.__name__.removesuffix("Type").upper() for type_, each in _FORMATS.items() if each == of)
        raise UsageError(f"{option} of a {domain.type}", hint=f"it is for columns of type {kind}")


def _is_of_field(option: str, schema: Schema) -> bool:
    """Whether an option is for a field in a structure, `path.NAME.FIELD`."""
    column, names = option.partition(".")[2].lower(), [name.lower() for name in schema.names]
    return column not in names and any(column.startswith(f"{name}.") for name in names)


def _place(option: str, schema: Schema) -> int:
    """Returns the index of the attribute that an option is for."""
    column = option.partition(".")[2]
    if column.lower() not in [known.lower() for known in schema.names]:
        raise UsageError(f"{option} names no attribute", hint=f"the attributes are {', '.join(schema.names)}")
    return schema.index(column)


def _of_values(domain: Domain) -> Domain:
    """Returns the domain of an array's elements, or of single values."""
    return element_of(domain) or domain


def paths_of(
    given: Mapping[str, str], schema: Schema, prefixes: Prefixes, attribute_prefix: str, value_tag: str
) -> tuple[LeafPath, ...]:
    """Returns the path to the leaf of each attribute; raises UsageError."""
    declared_paths = {
        _place(name, schema): path
        for name, path in given.items()
        if name.startswith("path.") and not _is_of_field(name, schema)
    }
    paths = [
        LeafPath.parse(declared_paths[i], prefixes)
        if i in declared_paths
        else default_path(
            attribute.name, attribute_prefix, value_tag, prefixes, is_structure=_of_values(attribute.domain).opaque
        )
        for i, attribute in enumerate(schema)
    ]
    for i, name in windows(schema).items():
        for place, end in ((i, "start"), (i + 1, "end")):
            if place not in declared_paths:
                paths[place] = LeafPath(0, (name, end))
    return tuple(paths)


def structures_of(
    given: Mapping[str, str], schema: Schema, prefixes: Prefixes, read: Mapping[str, Any]
) -> tuple[Structure | None, ...]:
    """Returns the declared structure of each attribute, or of the elements of its array; raises UsageError."""
    of_fields = {name: text for name, text in given.items() if "." in name and _is_of_field(name, schema)}
    left = {name.lower(): (name, text) for name, text in of_fields.items()}

    def path(whole: str, name: str, domain: Domain) -> LeafPath:
        if (declared := left.pop(f"path.{whole}".lower(), None)) is None:
            return default_path(name, read["attributePrefix"], read["valueTag"], prefixes, is_structure=domain.opaque)
        found = LeafPath.parse(declared[1], prefixes)
        if any(place.is_outside for place in (found, *found.others)):
            hint = "the path of a field begins at the structure's element, and stays in it"
            raise UsageError(f"{declared[0]} '{declared[1]}' leads outside the structure", hint=hint)
        _require_kind(whole, domain, found)
        return found

    def format_(whole: str, domain: Domain) -> str | None:
        for option in _FORMATS.values():
            if (declared := left.pop(f"{option}.{whole}".lower(), None)) is not None:
                _require_format(declared[0], domain)
                return date_pattern(*declared)
        return read[_FORMATS[type(domain.sql)]] if type(domain.sql) in _FORMATS else None

    found = tuple(Structure.of(attribute.name, attribute.domain, path, format_) for attribute in schema)
    for option, _ in left.values():
        raise UsageError(f"{option} names no field", hint="path.line.sku is the field sku of the structures in line")
    return found


def _require_kind(name: str, domain: Domain, path: LeafPath) -> None:
    """Checks that a path leads to values of a domain, the array's or the attribute's own; UsageError if not."""
    if domain.opaque and not all(place.is_element for place in (path, *path.others)):
        what = f"{path} is not an element, and {name} a {domain.type}"
        raise UsageError(what, hint="a structure is an element in the row, with its fields inside")
    if path.function in ("xml", "string") and not isinstance(domain.sql, StringType):
        raise UsageError(f"{path} is text, and {name} a {domain.type}", hint="declare a STRING")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """A punctuated XML source; `parse` creates it.

    The other attributes are options, as in the table of `sources/README.md`, by their names in Python.

    Attributes:
        row_tag: The option, with names as `{uri}name`.
        schema: The attributes, with the declared bounds of their domains and what the schemes imply.
        paths: For each attribute, the path from the row element to its leaf.
        structures: For each attribute, the declaration of the structure that it is, or of those in its array.
        formats: For each attribute, the pattern of its dates or timestamps; None for ISO 8601.
        prefixes: For each attribute, the prefix of its texts that is not part of its values; empty for none.
        schemes: The promised schemes, including those by the documents' structure.
        structural: The promises by the structure of the documents.
        max_bytes_per_slice: None for `FIRST_SLICE`, and more while more than that is waiting.
        document_log: The directory of the log that records in which order a directory's documents were found.
        columns: The attributes whose values are wanted; punctuations are always read completely.
        given: The options as set, by documented name: `parse(dict(given))` is this source again.
    """

    path: str
    row_tag: str
    schema: Schema
    paths: tuple[LeafPath, ...]
    structures: tuple[Structure | None, ...]
    formats: tuple[str | None, ...]
    prefixes: tuple[str, ...]
    schemes: tuple[Scheme, ...]
    structural: StructuralPromises
    unit_tag: str
    punctuation_namespace: str
    null_value: str | None
    format: Format
    validate: str
    mode: Mode
    ungrammatical: OnUngrammatical
    encoding: str | None
    doctype: WhenDoctype
    time_zone: str
    locale: str | None
    ignore_surrounding_spaces: bool
    max_bytes_per_slice: int | None
    max_bytes_per_partition: int
    max_files_per_slice: int | None
    max_item_bytes: int
    rate: float
    follow: bool
    keep_open: bool
    close: bool
    unfinished: WhenUnfinished
    unfinished_age: float
    on_replaced: WhenReplaced
    bad_documents: WhenBad
    document_log: str | None
    columns: tuple[str, ...]
    documents: ManyDocuments
    partitioned_by: tuple[str, ...]
    clean_source: CleanSource
    source_archive_dir: str
    given: tuple[tuple[str, str], ...] = field(repr=False)

    @staticmethod
    def parse(options: Mapping[str, str], schema: str | None = None, giver: Giver = "query") -> SourceOptions:
        """Parses options; names are compared without regard to case, as in Spark.

        Args:
            options: As in `CREATE TABLE … OPTIONS (…)`.
            schema: Spark DDL of the attributes, if it is not among the options.
            giver: Who sets the options.

        Raises:
            UsageError: An option is unknown, missing, not allowed for `giver`, or has an invalid value.
        """
        given = by_proper_names(located(options), giver)
        if schema is not None:
            given["schema"] = schema
        for needed, hint in _NEEDED.items():
            if not given.get(needed):
                raise UsageError(f"the source has no {needed}", hint=hint)
        read = {
            name: option.read(name, given[name]) if name in given else option.default
            for name, option in OPTIONS.items()
        }
        local = partial(_moments_in, zone=read["timeZone"])
        declared = flattened(Schema.parse(read["schema"])).bounded(read["domains"], local)
        for attribute in declared:
            if not is_readable(attribute.domain):
                raise UsageError(
                    f"{attribute.name} has the type {attribute.domain.type}, which is not read from XML",
                    hint="readable types are strings, numbers, booleans, dates, timestamps, structures, and arrays of"
                    " these; arrays in an array and maps are not",
                )
        prefixes: Prefixes = read["namespaces"]
        read["rowTag"] = canonical_row_tag(read["rowTag"], prefixes)
        if {":", "}"} & set(read["unitTag"]):
            raise UsageError(
                f"unitTag '{read['unitTag']}' is not a valid local name",
                hint="it matches any namespace; leave the prefix out",
            )
        paths = paths_of(given, declared, prefixes, read["attributePrefix"], read["valueTag"])
        structural = StructuralPromises.parse(read["uniqueIds"], read["sectionEnds"], declared, paths)
        schemes = tuple(dict.fromkeys([*parse_schemes(read["schemes"], declared), *structural.schemes(declared)]))
        columns = tuple(declared.attribute(name).name for name in read["columns"])
        derived = {
            "schema": implied(declared, schemes),
            "schemes": schemes,
            "columns": columns or declared.names,
            "partitioned_by": tuple(declared.attribute(name).name for name in read["partitionedBy"]),
        }
        plain = {attribute: read[name] for name, attribute in _ATTRIBUTES.items()}
        source = SourceOptions(
            **{**plain, **derived},
            paths=paths,
            structures=structures_of(given, declared, prefixes, read),
            formats=formats_of(given, declared, read),
            prefixes=prefixes_of(given, declared),
            structural=structural,
            given=tuple(sorted(given.items())),
        )
        source._require_sense()
        if source.validate:
            from xmlstream.sources.xml.options.schema_documents import validator

            validator(source.validate, source.row_tags)
        return source

    @property
    def where(self) -> str:
        """The path, as messages name it."""
        return shown(self.path)

    @property
    def streams(self) -> tuple[SourceOptions, ...]:
        """The streams that are read in one pass: this one."""
        return (self,)

    @property
    def is_table(self) -> bool:
        """Whether its documents are tables of Parquet, as another query or a stream of Spark's has written them."""
        return self.format != "xml"

    @property
    def row_tags(self) -> tuple[str, ...]:
        """The names of the tuples' elements, with their namespaces if declared."""
        return row_tags(self.row_tag)

    @property
    def row_names(self) -> frozenset[str]:
        """The local names of the tuples' elements, `name/*` for all children of an element."""
        return frozenset(tag.rpartition("}")[2] for tag in self.row_tags)

    @property
    def unsplit(self) -> frozenset[bytes]:
        """The local names of the elements that are never split."""
        return frozenset(name.encode() for each in self.streams for name in (*each.row_names, each.unit_tag)) - {b""}

    @property
    def passed_over(self) -> frozenset[bytes]:
        """The local names of the elements that are passed over if they are too long: items, but no units."""
        skipping = (each for each in self.streams if each.mode != "FAILFAST")
        return frozenset(name.encode() for each in skipping for name in each.row_names - {each.unit_tag})

    @property
    def is_many(self) -> bool:
        """Whether each of its documents, or directories of documents, is a stream of its own."""
        return self.documents in ("files", "directories")

    @property
    def lasting(self) -> dict[str, str]:
        """The options as set, without those that may change from one run of a query to the next."""
        return {name: text for name, text in self.given if not (may_change(name) or (name, self.time_zone) == _UTC)}

    @property
    def has_promise(self) -> bool:
        """Whether it declares what its punctuations restrict, even if that is nothing."""
        return any(name in OPTIONS and OPTIONS[name].is_promise for name, _ in self.given)

    def _require_sense(self) -> None:
        self._require_paths()
        if (self.clean_source == "archive") != bool(self.source_archive_dir):
            raise UsageError(
                "cleanSource 'archive' and sourceArchiveDir require each other",
                hint="sourceArchiveDir names the directory that documents are moved to once they are read",
            )
        if self.source_archive_dir and any(map(is_object_url, (self.path, self.source_archive_dir))):
            hint = "cleanSource 'delete' removes them; or leave it out"
            raise UsageError("cleanSource 'archive' moves files, neither from nor to an object store", hint=hint)
        if self.source_archive_dir and _would_read(self.path, self.source_archive_dir):
            raise UsageError(f"documents moved to sourceArchiveDir {self.source_archive_dir} would be read again")
        if self.partitioned_by and not self.is_many:
            raise UsageError(
                f"partitionedBy needs several streams, and documents '{self.documents}' is one",
                hint="set documents 'directories' or 'files': each of them is a partition",
            )
        if self.documents == "directories" or (self.documents == "sequence" and is_glob(self.path)):
            self.require_more()

    def _require_paths(self) -> None:
        """Checks that each path goes together with its type, and with unitTag; UsageError if not."""
        if not self.unit_tag and (numbers := [path for path in self.paths if path.function == "position"]):
            raise UsageError(
                f"{numbers[0]} needs the option unitTag",
                hint="it names the elements within which rows are numbered, such as unitTag 'open_auction'",
            )
        for attribute, path in zip(self.schema, self.paths, strict=True):
            kind = _of_values(attribute.domain)
            _require_kind(attribute.name, kind, path)
            if path.function == "document" and kind is not attribute.domain:
                what = f"{path} is one text, and {attribute.name} a {attribute.domain.type}"
                raise UsageError(what, hint="declare a STRING, or the type of the part that is meant")
        if not self.unit_tag and (leaves := [path for path in self.paths if path.is_ancestors_leaf]):
            raise UsageError(
                f"{leaves[0]} needs the option unitTag",
                hint="it names the element with the leaf, or one around it; such an element is read as a whole",
            )

    def require_more(self) -> None:
        """Checks that no document closes everything; UsageError if one does, since others may follow it."""
        if (end := next((end for end in self.structural.sections if not end.attributes), None)) is not None:
            raise UsageError(
                f"the end of {'/'.join(end.element)} in one document closes everything, and others may follow it",
                hint="name the columns whose values it closes; or, documents 'files' reads each as a stream of its own,"
                " and closes what all of them close",
            )

    def replace(self, **options: str | None) -> SourceOptions:
        """Returns the same source with other options, by documented name; None removes an option."""
        given: dict[str, str] = dict(self.given)
        for name, value in options.items():
            given.pop(name, None)
            if value is not None:
                given[name] = value
        return SourceOptions.parse(given)


_OfStreams = TypeVar("_OfStreams", bound=SourceOptions)


def of_streams(options: _OfStreams) -> _OfStreams:
    """The options with the number of each item's stream as the last attribute, if its documents are many streams."""
    if not options.is_many:
        return options
    schema = Schema((*options.schema, Attribute(STREAM, Domain("BIGINT", nullable=False))))
    return replace(options, schema=schema, columns=(*options.columns, STREAM))


_UTC = ("timeZone", "UTC")
"""What a source has by default."""


def zoned(options: SourceOptions, zone: str) -> SourceOptions:
    """The options with a session's zone for times without a zone, if they have none of their own and it matters."""
    if "timeZone" in dict(options.given) or not has_moments(options.schema, options.structures):
        return options
    return options if is_always_utc(full_zone(zone)) else options.replace(timeZone=full_zone(zone))


def _moments_in(text: str, domain: Domain, *, zone: str) -> str:
    """The text of a domain's values, with moments for local times."""
    local = LocalTimes.of(domain.sql, zone)
    return text if local is None else local.of_pattern(text)


def has_moments(schema: Schema, structures: Sequence[Structure | None]) -> bool:
    """Whether attributes, or fields in them, are of the type TIMESTAMP."""
    within = [(each.fields, each.structures) for each in structures if each is not None]
    return any(_of_values(each.domain).sql == TimestampType(zoned=True) for each in schema) or any(
        has_moments(*each) for each in within
    )


def _would_read(path: str, directory: str) -> bool:
    """Whether a source would read documents of a directory; true in doubt, if a glob is involved."""
    home, pattern = Path(directory).resolve(), glob_of(local_path(path))
    if pattern is None:
        return Path(local_path(path)).resolve() == home
    parts = str(Path(pattern).absolute())
    return any(fnmatchcase(str(each), parts) for each in (home, home / "1.xml"))


_NEEDED = {
    "path": "path names a file, a directory or a glob",
    "rowTag": "rowTag names the elements that are tuples",
    "schema": "schema lists the attributes, as in 'sid STRING, hour INT'; `xmlstream infer FILE` proposes them",
}
"""The required options, and a hint for each."""

_READ_TOGETHER = frozenset(
    [
        "domains",
        "namespaces",
        "dateFormat",
        "timestampFormat",
        "attributePrefix",
        "valueTag",
        "uniqueIds",
        "sectionEnds",
    ]
)
"""Options that are not attributes of a source: they contribute to other attributes."""

_ATTRIBUTES = {name: option.attribute for name, option in OPTIONS.items() if name not in _READ_TOGETHER}
