"""Qualified names: the namespace prefixes that a source declares, and row tags, the names of the tuples' elements.

A declared prefix, as in `dc:creator`, stands for its namespace: documents may bind another prefix to it, or none. A row
tag names one or several elements, `open_auction|closed_auction`; `Samples/*` stands for all children of an element.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.xml_form import NAME

Prefixes = Mapping[str, str]
"""The namespace URI of each prefix."""

XML_PREFIXES: Prefixes = {"xml": "http://www.w3.org/XML/1998/namespace"}
"""The prefix that every document declares."""

_DECLARED = re.compile(rf"\s*({NAME})\s+(\S+?)\s*(?:,(?=\s*{NAME}\s+\S)|,?\Z)")
_QUALIFIED = re.compile(r"([^{}:]*):([^{}:]*)")


def namespace_prefixes(name: str, given: str) -> Prefixes:
    """Parses declarations of prefixes, as in `dc http://purl.org/dc/elements/1.1/, geo urn:geo`.

    Args:
        name: The option's name.
        given: The option's text.

    Raises:
        UsageError: The text is not a list of pairs of prefix and namespace, or declares a prefix twice.

    >>> namespace_prefixes("namespaces", "dc http://purl.org/dc/elements/1.1/")["dc"]
    'http://purl.org/dc/elements/1.1/'
    """
    found, at = dict(XML_PREFIXES), 0
    while given[at:].strip():
        declared = _DECLARED.match(given, at)
        if declared is None:
            raise UsageError(f"{name} '{given[at:].strip()}' declares no prefix", hint=_HINT)
        prefix, uri = declared.groups()
        if found.setdefault(prefix, uri) != uri:
            raise UsageError(f"{name} declares the prefix {prefix} twice, as {found[prefix]} and as {uri}")
        at = declared.end()
    return found


def with_namespace(name: str, prefixes: Prefixes, *, of: str) -> str:
    """Replaces the prefix of a name by its namespace; `{uri}name` and a plain name are unchanged.

    Args:
        name: The name of an element or an XML attribute.
        prefixes: The declared prefixes.
        of: The text that contains the name, for the error message.

    Raises:
        UsageError: The prefix is not declared.

    >>> with_namespace("xml:lang", XML_PREFIXES, of="@xml:lang"), with_namespace("id", XML_PREFIXES, of="id")
    ('{http://www.w3.org/XML/1998/namespace}lang', 'id')
    """
    qualified = _QUALIFIED.fullmatch(name)
    if qualified is None:
        return name
    prefix, local = qualified.groups()
    if prefix not in prefixes:
        known = sorted(prefixes.keys() - XML_PREFIXES.keys())
        declared = f"declared {'is' if len(known) == 1 else 'are'} {', '.join(known)}; " if known else ""
        hint = f"{declared}declare it as in namespaces '{prefix} http://…', or leave it out: {local} matches all"
        raise UsageError(f"'{of}' uses the prefix {prefix}, which is not declared", hint=hint)
    return f"{{{prefixes[prefix]}}}{local}"


_HINT = "a prefix and its namespace each, as in 'dc http://purl.org/dc/elements/1.1/, atom http://www.w3.org/2005/Atom'"


_BETWEEN = re.compile(r"\|(?![^{]*\})")


def canonical_row_tag(text: str, prefixes: Prefixes) -> str:
    """Replaces prefixes in a row tag by namespaces, and removes blanks.

    Raises:
        UsageError: A prefix is not declared, or a name is empty, occurs twice, or is a path.

    >>> canonical_row_tag("a | b:c|d/*", {"b": "urn:b"})
    'a|{urn:b}c|d/*'
    """
    names = [with_namespace(name.strip(), prefixes, of=f"rowTag {text}") for name in _BETWEEN.split(text)]
    if "" in names or len(set(names)) < len(names):
        raise UsageError(f"rowTag '{text}' has {'an empty name' if '' in names else 'a name twice'}")
    for name in names:
        local = name.rpartition("}")[2]
        if not _ROW.fullmatch(local) or (local != name and local.endswith(CHILDREN)):
            what = (
                f"rowTag '{text}' is not a valid row tag: {name.strip()} is neither an element nor all children of one"
            )
            raise UsageError(what, hint="a row tag is like bid, open_auction|closed_auction, or Samples/*")
    return "|".join(names)


CHILDREN = "/*"
"""The end of a row tag that stands for all children of the elements of a name, in any namespace."""

_ROW = re.compile(rf"{NAME}(?:/\*)?")


def row_parents(tags: Iterable[str]) -> frozenset[str]:
    """Returns the local names of the elements whose children are all rows.

    >>> row_parents(["a", "Samples/*"])
    frozenset({'Samples'})
    """
    return frozenset(tag.removesuffix(CHILDREN) for tag in tags if tag.endswith(CHILDREN))


def row_tags(canonical: str) -> tuple[str, ...]:
    """Splits a row tag into its names.

    >>> row_tags("a|{http://x|y/}c")
    ('a', '{http://x|y/}c')
    """
    return tuple(_BETWEEN.split(canonical))
