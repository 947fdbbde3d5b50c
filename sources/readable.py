"""Whether the texts of a punctuation are patterns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from punct_ns.xml_form import punctuation_from_texts
from sources.elements import UnreadableError
from sources.source import SourceOptions

pc: Any = pyarrow.compute

_PLAIN = {"TINYINT": r"^(\*|-?\d{1,2})$", "SMALLINT": r"^(\*|-?\d{1,4})$", "INT": r"^(\*|-?\d{1,9})$"}
_PLAIN["BIGINT"] = r"^(\*|-?\d{1,18})$"
"""Texts that are patterns whatever they say."""


class Readable:
    """Looks at the pattern texts of one source's punctuations."""

    def __init__(self, options: SourceOptions) -> None:
        self._schema = options.schema
        self._trims = options.ignore_surrounding_spaces

    def check(self, texts: Sequence[str | None]) -> None:
        """Of one punctuation; UnreadableError with the reason."""
        try:
            punctuation_from_texts(texts, self._schema, trim=self._trims)
        except ValueError as error:
            raise UnreadableError(str(getattr(error, "what", error))) from None

    def first_wrong(self, columns: Sequence[pa.StringArray]) -> str | None:
        """A text that is no pattern for its attribute, among those of many punctuations; None if all are."""
        for index, texts in enumerate(columns):
            for text in self._doubtful(index, texts):
                alone: list[str | None] = [None] * len(columns)
                alone[index] = text
                try:
                    self.check(alone)
                except UnreadableError:
                    return text
        return None

    def _doubtful(self, index: int, texts: Any) -> list[str]:
        if not len(texts):
            return []
        plain = _PLAIN.get(self._schema[index].domain.type)
        if plain is not None:
            texts = texts.filter(pc.invert(pc.match_substring_regex(texts, plain)))
        return [text for text in texts.unique().to_pylist() if text is not None and text != "*"]
