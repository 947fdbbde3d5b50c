"""Row tags: the names of the elements that are tuples, one or several, `open_auction|closed_auction`."""

from __future__ import annotations

import re

from punct_ns.errors import UsageError
from sources.xml.options.namespace_prefixes import Prefixes, with_namespace

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
