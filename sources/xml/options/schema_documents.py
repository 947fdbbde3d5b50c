"""XML Schemas: their documents, all in one directory, and the check of items by a schema.

A schema is a file with what it includes and imports from beside it: files in its directory or below. Nothing is fetched
from a network: a location such as `http://www.w3.org/2001/xml.xsd` is the file `xml.xsd` in the directory.

Items are checked one by one, each against the declaration of its element: a global one, or the only local one of its
name. What a schema requires of a document as a whole (its root, the order of items, keys) is not checked.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lxml import etree

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.local_paths import local_path

XS = "{http://www.w3.org/2001/XMLSchema}"


@dataclass(frozen=True, slots=True)
class SchemaDocument:
    """One document of a schema.

    Attributes:
        path: Its path.
        root: Its root.
        namespace: The namespace of its declarations; empty for none.
    """

    path: Path
    root: etree._Element
    namespace: str

    def tag_of(self, declared: etree._Element) -> str:
        """The tag, as in lxml, of the elements or attributes that a declaration in it is of."""
        is_global = declared.getparent() is self.root
        kind = f"{etree.QName(declared).localname}FormDefault"
        is_qualified = is_global or declared.get("form", self.root.get(kind)) == "qualified"
        name = str(declared.get("name"))
        return f"{{{self.namespace}}}{name}" if is_qualified and self.namespace else name


def schema_documents(file: str) -> list[SchemaDocument]:
    """Reads a schema: the document itself, and all that it includes and imports.

    Raises:
        UsageError: A document is not beside the file, cannot be read, or is not a schema.
    """
    home = _file(file)
    found: dict[tuple[Path, str], SchemaDocument] = {}
    waiting: list[tuple[Path, str | None, str]] = [(home, None, file)]
    while waiting:
        path, including, named = waiting.pop(0)
        try:
            root = etree.parse(str(path), _parser()).getroot()
        except (OSError, etree.XMLSyntaxError) as error:
            raise UsageError(f"{named} cannot be read: {error}", hint=_HINT) from None
        if root.tag != f"{XS}schema":
            raise UsageError(f"{named} is not an XML Schema: its root is {root.tag}", hint=_HINT)
        # An included document without a namespace takes that of the including one.
        document = SchemaDocument(path, root, str(root.get("targetNamespace") or including or ""))
        if (path, document.namespace) in found:
            continue
        found[path, document.namespace] = document
        for kind in ("include", "import", "redefine", "override"):
            for each in root.findall(f"{XS}{kind}"):
                if (location := each.get("schemaLocation")) is not None:
                    beside = _beside(home.parent, location, path.parent)
                    if beside is None:
                        raise UsageError(
                            f"{path.name} has the {kind} {location}, which is not beside {file}", hint=_HINT
                        )
                    waiting.append((beside, None if kind == "import" else document.namespace, location))
    return list(found.values())


_HINT = "save the document beside the file; nothing is fetched from a network or read from elsewhere"


def _file(file: str) -> Path:
    path = Path(local_path(file)).resolve()
    if not path.is_file():
        raise UsageError(f"there is no schema {file}", hint="name a file with an XML Schema, such as bills.xsd")
    return path


def _beside(home: Path, location: str, base: Path) -> Path | None:
    """Returns the file that a location names; None if it is not in the directory or below."""
    parts = urlsplit(location)
    name = unquote(parts.path)
    path = home / Path(name).name if parts.scheme not in ("", "file") or parts.netloc else base / name
    path = path.resolve()
    return path if path.is_relative_to(home) and path.is_file() else None


def _parser() -> etree.XMLParser:
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)


class _Beside(etree.Resolver):
    """Gives libxml2 the documents of a schema, perhaps changed, and nothing else."""

    def __init__(self, home: Path, changed: Mapping[Path, bytes]) -> None:
        self._home, self._changed = home, changed

    def resolve(self, system_url: str, public_id: str, context: Any) -> Any:  # type: ignore[override]
        """Returns the document at a location."""
        path = _beside(self._home, system_url, self._home)
        if path is None:
            raise OSError(f"{system_url} is not beside the schema")
        if path in self._changed:
            return self.resolve_string(self._changed[path], context, base_url=str(path))
        return self.resolve_filename(str(path), context)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class _Check:
    """A schema with a global declaration for elements of a tag, which may differ from the tag that they have."""

    schema: etree.XMLSchema
    tag: str


class ItemValidator:
    """Checks items of some tags by a schema; for one thread."""

    def __init__(self, file: str, row_tags: Sequence[str]) -> None:
        """Reads the schema.

        Raises:
            UsageError: It cannot be read, is invalid, or does not declare the row tags, or not clearly.
        """
        self._file, self._documents = file, schema_documents(file)
        self._checks: dict[str, _Check] = {}
        for name in row_tags:
            # The rows of `Samples/*` and of a local name have tags that only the documents show.
            tags = {tag for tag, _, _ in self._declared(name.removeprefix("{}"))}
            if not tags and not name.endswith("/*"):
                raise UsageError(f"{file} declares no element {name}", hint="rowTag names an element of the schema")
            for tag in tags:
                self._checks[tag] = self._check(tag)

    def flaw(self, item: etree._Element) -> str | None:
        """Returns why an item is invalid, in libxml2's words; None if it is valid."""
        tag = str(item.tag)
        check = self._checks.get(tag)
        if check is None:
            try:
                check = self._checks[tag] = self._check(tag)
            except UsageError as error:
                return error.what
        item.tag = check.tag
        try:
            if check.schema.validate(item):
                return None
        finally:
            item.tag = tag
        log: Any = check.schema.error_log
        reasons = [str(error.message) for error in log]
        return f"{reasons[0]}{f' (and {len(reasons) - 1} more)' if len(reasons) > 1 else ''}"

    def _declared(self, name: str) -> Iterator[tuple[str, SchemaDocument, etree._Element]]:
        """Yields the declarations of elements of a name, which is local or has its namespace, the global ones first."""
        for depth in ("", ".//*/"):
            for document in self._documents:
                for declared in document.root.iterfind(f"{depth}{XS}element[@name]"):
                    tag = document.tag_of(declared)
                    if name == tag or ("}" not in name and tag.rpartition("}")[2] == name):
                        yield tag, document, declared

    def _check(self, tag: str) -> _Check:
        found = [one for one in self._declared(tag) if one[0] == tag]
        if not found:
            raise UsageError(f"{self._file} declares no element {tag}", hint="rowTag names an element of the schema")
        _, document, declared = found[0]
        changed: dict[Path, bytes] = {}
        if declared.getparent() is not document.root:
            if len({_text(each) for _, _, each in found}) > 1:
                what = f"{self._file} declares {tag} in {len(found)} ways, none of them for all elements of the name"
                raise UsageError(what, hint="make one a global element, or leave the option validate out")
            root = deepcopy(document.root)
            root.append(_alone(declared))
            changed[document.path] = etree.tostring(root)
        local = tag.rpartition("}")[2]
        name = f"{{{document.namespace}}}{local}" if document.namespace else local
        return _Check(compiled(self._documents, changed), name)


def compiled(documents: Sequence[SchemaDocument], changed: Mapping[Path, bytes] | None = None) -> etree.XMLSchema:
    """Returns the schema of documents, some of them changed.

    Raises:
        UsageError: It is not valid.
    """
    home, parser = documents[0].path, _parser()
    parser.resolvers.add(_Beside(home.parent, changed or {}))
    try:
        return etree.XMLSchema(etree.parse(str(home), parser))
    except (OSError, etree.XMLSyntaxError, etree.XMLSchemaParseError) as error:
        raise UsageError(
            f"{home} is not a valid schema: {error}", hint="correct it; it is one of XML Schema 1.0"
        ) from None


def _alone(declared: etree._Element) -> etree._Element:
    """Returns a copy of a declaration, without what it says of its place."""
    alone = deepcopy(declared)
    for name in {"minOccurs", "maxOccurs", "form"} & {*map(str, alone.attrib)}:
        del alone.attrib[name]
    return alone


def _text(declared: etree._Element) -> bytes:
    return re.sub(rb"\s+", b" ", etree.tostring(_alone(declared), with_tail=False))


def validator(file: str, row_tags: tuple[str, ...]) -> ItemValidator:
    """Returns the validator of items; raises as it does. A file that was changed is read again."""
    return _validator(file, _file(file).stat().st_mtime_ns, row_tags, threading.get_ident())


@lru_cache(maxsize=32)
def _validator(file: str, _changed: int, row_tags: tuple[str, ...], _thread: int) -> ItemValidator:
    return ItemValidator(file, row_tags)
