"""Values observed at one place of a document, and the narrowest SQL type that reads them all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import pyarrow as pa

from punct_ns.domain import BLANKS, Domain
from sources.xml.options.formats import IsoRewriting

MOST_TEXTS = 20_000
"""Texts that are kept of one place."""

ORDERED = ("TIMESTAMP", "DATE", "BIGINT")
"""Types in whose order tuples are likely to come, the likeliest first."""

_FORMS = {
    "BOOLEAN": r"true|false",
    # What begins with a zero is a code, of which a number would lose something.
    "BIGINT": r"-?(?:0|[1-9]\d{0,17})",
    "DOUBLE": r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|NaN|-?INF",
    "DATE": r"\d{4}-\d\d-\d\d",
    "TIMESTAMP": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?",
}
_MAIL = re.compile(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} ")
_MAIL_FORMATS = ("EEE, dd MMM yyyy HH:mm:ss Z", "EEE, d MMM yyyy HH:mm:ss z")
_COMPILED = {type_: re.compile(form, re.ASCII) for type_, form in _FORMS.items()}
_WIDER = {frozenset(("BIGINT", "DOUBLE")): "DOUBLE", frozenset(("DATE", "TIMESTAMP")): "TIMESTAMP"}


@dataclass(slots=True)
class ObservedValues:
    """The texts at one place, in document order.

    Attributes:
        count: How many there were.
        length: How many characters they had together.
        texts: The first of them, each with the number of the element that it was in.
    """

    count: int = 0
    length: int = 0
    texts: list[tuple[int, str]] = field(default_factory=list)

    def add(self, at: int, text: str) -> None:
        """One more, of the element with that number."""
        self.count += 1
        self.length += len(text)
        if len(self.texts) < MOST_TEXTS:
            self.texts.append((at, text.strip(BLANKS)))

    def merged(self, other: ObservedValues) -> ObservedValues:
        """Those of two places that are taken for one."""
        texts = sorted([*self.texts, *other.texts])[:MOST_TEXTS]
        return ObservedValues(self.count + other.count, self.length + other.length, texts)

    @property
    def is_blank(self) -> bool:
        """Whether there is no text but blanks."""
        return not any(text for _, text in self.texts)

    @property
    def type(self) -> str:
        """The narrowest type of all texts that are not blank; STRING without any."""
        return "TIMESTAMP" if self.format else type_of(text for _, text in self.texts)

    @property
    def format(self) -> str | None:
        """The format of all texts that are not blank, where they are moments as mails and RSS have them."""
        texts = [text for _, text in self.texts if text]
        if not texts or _MAIL.match(texts[0]) is None:
            return None
        return next((one for one in _MAIL_FORMATS if self._fit(one, texts)), None)

    @staticmethod
    def _fit(pattern: str, texts: list[str]) -> bool:
        domain = Domain("TIMESTAMP")
        try:
            for text in IsoRewriting.of(pattern).rewrite(pa.array(texts)).to_pylist():
                domain.read(str(text))
        except ValueError:
            return False
        return True

    @property
    def are_unique(self) -> bool:
        """Whether none came twice, as far as is known."""
        return len({text for _, text in self.texts}) == len(self.texts)

    @property
    def ascend(self) -> bool:
        """Whether each is as great as the one before or greater, and several differ."""
        domain, texts = Domain(self.type), [text for _, text in self.texts if text]
        iso = IsoRewriting.of(self.format).rewrite(pa.array(texts)).to_pylist() if self.format else texts
        values: list[object] = [domain.read(str(text)) for text in iso]
        return len(set(values)) > 2 and all(not b < a for a, b in pairwise(values))  # type: ignore[operator]


def type_of(texts: Iterable[str]) -> str:
    """The narrowest type that reads texts as they are; blank ones are null to all but STRING.

    >>> [type_of(texts) for texts in (["1", "", "-7"], ["1", "0.5"], ["007"], ["2024-02-30"], ["2024-02-29", "x"])]
    ['BIGINT', 'DOUBLE', 'STRING', 'STRING', 'STRING']
    """
    found = None
    for text in texts:
        if text:
            type_ = _type_of(text)
            found = type_ if found in (None, type_) else _WIDER.get(frozenset((found or "", type_)), "STRING")
        if found == "STRING":
            break
    return found or "STRING"


@lru_cache(maxsize=1 << 16)
def _type_of(text: str) -> str:
    for type_, form in _COMPILED.items():
        if form.fullmatch(text):
            try:
                Domain(type_).read(text)
            except ValueError:
                continue
            return type_
    return "STRING"
