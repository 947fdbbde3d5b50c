"""Reads a punctuation from its XML element, as a whole: the inverse of `write_element`, for expectations of tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lxml import etree

from xmlstream.punct_ns.domain import BLANKS
from xmlstream.punct_ns.errors import NotationError
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.xml_form import LIFESPAN, PUNCT_NS, XSI_NIL, punctuation_from_texts


def read_element(
    element: etree._Element, schema: Schema, paths: Sequence[str] | None = None, namespace: str = PUNCT_NS
) -> Punctuation:
    """The punctuation that an element is; leaves are known by their local names. The inverse of `write_element`.

    Raises NotationError for an element that is not a punctuation, or cannot be read: without a declared leaf, with a
    leaf twice, with elements inside a leaf, with an undeclared leaf that restricts, with a pattern that is none, or
    with a lifespan that cannot be read.
    """
    if _namespace(element.tag) != namespace:
        raise NotationError(f"<{element.tag}> is not a punctuation: its namespace is not {namespace}")
    lifespan = element.get(f"{{{namespace}}}{LIFESPAN}")
    found = list(_leaves(element, (), namespace))
    for path, times in Counter(path for path, _ in found).items():
        if times > 1:
            raise NotationError(f"the punctuation has the leaf {path} twice")
    texts = dict(found)
    declared = list(paths or schema.names)
    if not any(path in texts for path in declared):
        raise NotationError("the punctuation has none of the declared leaves")
    for path, text in found:
        if path not in declared and text.strip(BLANKS) != "*":
            raise NotationError(f"the punctuation restricts {path}, which is not declared")
    p = punctuation_from_texts([texts.get(path) for path in declared], schema)
    return p if lifespan is None else p.lasting(Lifespan.read(str(lifespan), schema))


def _leaves(element: etree._Element, path: tuple[str, ...], namespace: str) -> Iterator[tuple[str, str]]:
    """The leaves below an element, by path, with their texts."""
    for name, text in element.attrib.items():
        if _namespace(name) == namespace and (path or _local(name) != LIFESPAN):
            raise NotationError(f"the punctuation has an attribute {_local(name)} where none is allowed")
        if _namespace(name) is None:
            yield "/".join((*path, f"@{name!s}")), str(text)
    children = [child for child in element if not isinstance(child, etree._Comment | etree._ProcessingInstruction)]
    # A comment inside a leaf splits its text.
    text = "".join([element.text or "", *(child.tail or "" for child in element)])
    if path and not children:
        nil = element.get(XSI_NIL, "false").strip(BLANKS) in ("true", "1")
        yield "/".join(path), "null" if nil else text
    elif text.strip(BLANKS):
        raise NotationError(f"the punctuation has text beside the elements of {_local(element.tag)}")
    for child in children:
        yield from _leaves(child, (*path, _local(child.tag)), namespace)


def _namespace(name: object) -> str | None:
    uri, brace, _ = str(name).partition("}")
    return uri[1:] if brace else None


def _local(name: object) -> str:
    return str(name).rpartition("}")[2]
