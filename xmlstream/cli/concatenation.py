"""Concatenates the documents of a query into one: copies their content in order, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import BinaryIO
from xml.parsers import expat

from lxml import etree

from xmlstream.operators.storage.object_urls import require_known_scheme
from xmlstream.punct_ns.errors import MalformedInput, StateError, UsageError
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.change.continued import final_in, is_final
from xmlstream.sink.document_names import require_slice, slice_of
from xmlstream.sink.output import Output
from xmlstream.sink.sink import INEXACT
from xmlstream.sink.standard_output import Written

CHUNK = 1 << 16
"""Bytes per read."""


def concatenate(place: Path | str, out: Written, earlier: Sequence[Path | str] = (), as_of: int | None = None) -> int:
    """Writes the committed documents of an output, a directory or a URL, as one well-formed document.

    Args:
        place: The output.
        out: Where to write.
        earlier: Outputs that are each continued by the next one; their tuples that are final there come first.
        as_of: The last slice of the output to write; None for all.

    Returns:
        The number of documents.

    Raises:
        UsageError: The directory does not exist, is on another file system, or has no XML document or no such slice.
        MalformedInput: A document is not well-formed.
        StateError: The start tags of the documents' roots differ, so they come from different queries.
    """
    require_known_scheme(str(place))
    output = Output(place)
    closed = [final_in(Output(each)) for each in (*earlier, place)[1:]]
    before = [(each, _documents(each)) for each in map(Output, earlier)]
    paths = _documents(output)
    if not paths:
        raise UsageError(
            f"there is no document in {output.where}",
            hint="a query writes its first document with its first result; the findings that `xmlstream run` prints "
            "may explain why there is none",
        )
    require_slice(as_of, slice_of(paths[-1]) or 0, output.where)
    paths = [path for path in paths if as_of is None or (slice_of(path) or 0) <= as_of]
    out.write(b'<?xml version="1.0" encoding="UTF-8"?>\n')
    exactness = INEXACT if paths and INEXACT in (_root(output, paths[-1]) or b"") else b""
    root: bytes | None = None
    ended_line = False
    for path in paths:
        begins = True
        with output.open(path) as document:
            for is_root, part in _parts(document, f"{output.where}/{path}"):
                if not is_root:
                    # A document's first line break follows the last one of the document before it.
                    kept = part.removeprefix(b"\n") if begins and ended_line else part
                    out.write(kept)
                    begins, ended_line = False, part.endswith(b"\n")
                elif root is None:
                    root = part.replace(INEXACT, b"")
                    out.write(root[:-1] + exactness + root[-1:])
                    if earlier:
                        out.write(b"\n")
                    for tuple_ in _final(before, closed):
                        out.write(tuple_)
                    ended_line = bool(earlier)
                elif part.replace(INEXACT, b"") != root:
                    what = f"the root of {path} differs from the root of the documents before it"
                    raise StateError(what, where=output.where)
    if root is None:
        root = f'<rows xmlns:punct="{PUNCT_NS}">'.encode()
        out.write(root)
    out.write(b"</" + root[1:].split(None, 1)[0].rstrip(b">") + b">\n")
    return len(paths)


def _documents(output: Output) -> list[str]:
    """The names of the committed documents of an output.

    Raises:
        UsageError: There is no such output, or it is not XML.
    """
    if not output.store.exists():
        raise UsageError(f"there is no output {output.where}", hint="name the directory that `xmlstream run -o` wrote")
    names = [name for name in output.documents() if slice_of(name) is not None and "/" not in name]
    paths = sorted(name for name in names if name.endswith(".xml"))
    if not paths and (others := sorted({PurePath(name).suffix[1:] for name in names})):
        what = f"{output.where} has {' and '.join(others)} documents, but no XML"
        raise UsageError(what, hint="`xmlstream cat` is only for XML")
    return paths


def _final(
    outputs: Sequence[tuple[Output, Sequence[str]]], closed: Sequence[tuple[Schema, PunctuationSet]]
) -> Iterator[bytes]:
    """The tuples of outputs that are final there; for each output, `closed` is what the next one has found closed."""
    for number, (output, names) in enumerate(outputs):
        for name in names:
            with output.open(name) as document:
                for _, element in etree.iterparse(document, events=("end",), huge_tree=True):
                    root = element.getparent()
                    if root is None or root.getparent() is not None or str(element.tag).startswith(f"{{{PUNCT_NS}}}"):
                        continue
                    if all(is_final(element, *each) for each in closed[number:]):
                        written = etree.tostring(element, with_tail=False)
                        for prefix, uri in root.nsmap.items():
                            written = written.replace(
                                f' xmlns{f":{prefix}" if prefix else ""}="{uri}"'.encode(), b"", 1
                            )
                        yield written + b"\n"
                    element.clear()


def _root(output: Output, name: str) -> bytes | None:
    """The start tag of the root; None if the root is empty. The last document's says whether all are exact."""
    with output.open(name) as document:
        return next((part for is_root, part in _parts(document, f"{output.where}/{name}") if is_root), None)


def _parts(document: BinaryIO, path: str) -> Iterator[tuple[bool, bytes]]:
    """Yields (True, start tag of the root), then (False, part of its content) until the end tag."""
    marks = _Marks()
    read = 0
    pending = b""
    has_root = False
    try:
        while chunk := document.read(CHUNK):
            pending += chunk
            marks.parser.Parse(chunk, False)
            if marks.content is None:
                continue
            if not has_root:
                tag = pending[marks.root - read : marks.content - read]
                if tag.endswith(b"/>"):
                    return
                yield True, tag
                pending, read, has_root = pending[marks.content - read :], marks.content, True
            # The end tag may have begun without the parser having reported it.
            safe = marks.end if marks.end is not None else marks.last
            if safe > read:
                yield False, pending[: safe - read]
                pending, read = pending[safe - read :], safe
        marks.parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise MalformedInput(
            f"the document is not well-formed: {expat.ErrorString(error.code)}",
            document=path,
            line=error.lineno,
            column=error.offset + 1,
        ) from None


class _Marks:
    """Byte offsets in a document: its root, the root's content, the root's end tag, the last parsed item."""

    def __init__(self) -> None:
        self.root = 0
        self.content: int | None = None
        self.end: int | None = None
        self.last = 0
        self._depth = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._leave
        self.parser.DefaultHandler = self._other

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._depth == 0:
            self.root = self.parser.CurrentByteIndex
        else:
            self._inside()
        self._depth += 1

    def _leave(self, name: str) -> None:
        self._inside()
        self._depth -= 1
        if self._depth == 0:
            self.end = self.last

    def _other(self, data: str) -> None:
        if self._depth > 0:
            self._inside()

    def _inside(self) -> None:
        self.last = self.parser.CurrentByteIndex
        if self.content is None:
            self.content = self.last
