"""Qualified names: the namespace prefixes that a source declares, and row tags, the names of the tuples' elements.

A declared prefix, as in `dc:creator`, means its namespace: documents may use any other prefix for it, or none. A row
tag names one element or several, `open_auction|closed_auction`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from punct_ns.errors import UsageError

Prefixes = Mapping[str, str]
"""The namespace URI of each prefix."""

XML_PREFIXES: Prefixes = {"xml": "http://www.w3.org/XML/1998/namespace"}
"""What every document declares."""

_NAME = r"[^\W\d][\w.\-·]*"
_DECLARED = re.compile(rf"\s*({_NAME})\s+(\S+?)\s*(?:,(?=\s*{_NAME}\s+\S)|,?\Z)")
_QUALIFIED = re.compile(r"([^{}:]*):([^{}:]*)")


def namespace_prefixes(name: str, given: str) -> Prefixes:
    """The prefixes that a text declares, as in `dc http://purl.org/dc/elements/1.1/, geo urn:geo`.

    Args:
        name: The option's.
        given: Its text.

    Raises:
        UsageError: It is no list of a prefix and a namespace each, or declares a prefix twice.

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
    """A name with its namespace in place of its prefix; `{uri}name` and a plain one as they are.

    Args:
        name: Of an element or an XML attribute, as it is written.
        prefixes: Those that are declared.
        of: What the name stands in, for a message.

    Raises:
        UsageError: Its prefix is not declared.

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
        hint = f"{declared}declare it as in namespaces '{prefix} http://…', or leave it out: {local} is any namespace's"
        raise UsageError(f"'{of}' names the prefix {prefix}, which is not declared", hint=hint)
    return f"{{{prefixes[prefix]}}}{local}"


_HINT = "a prefix and its namespace each, as in 'dc http://purl.org/dc/elements/1.1/, atom http://www.w3.org/2005/Atom'"


_BETWEEN = re.compile(r"\|(?![^{]*\})")


def canonical_row_tag(text: str, prefixes: Prefixes) -> str:
    """A row tag with namespaces in place of prefixes, without blanks.

    Raises:
        UsageError: A prefix is not declared, or a name is missing or there twice.

    >>> canonical_row_tag("a | b:c", {"b": "urn:b"})
    'a|{urn:b}c'
    """
    names = [with_namespace(name.strip(), prefixes, of=f"rowTag {text}") for name in _BETWEEN.split(text)]
    if "" in names or len(set(names)) < len(names):
        raise UsageError(f"rowTag '{text}' has {'an empty name' if '' in names else 'a name twice'}")
    return "|".join(names)


def row_tags(canonical: str) -> tuple[str, ...]:
    """The names of a row tag.

    >>> row_tags("a|{http://x|y/}c")
    ('a', '{http://x|y/}c')
    """
    return tuple(_BETWEEN.split(canonical))
