"""Pattern texts of punctuations: whether they are patterns, and which blanks belong to a constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from punct_ns.domain import BLANKS
from punct_ns.lifespan import Lifespan
from punct_ns.numeric_type import IntegerType
from punct_ns.sql_type import StringType
from punct_ns.xml_form import pattern_from_text, punctuation_from_texts
from sources.xml.options.arrow_text import has_blank_ends
from sources.xml.options.formats import PrefixRewriting
from sources.xml.options.source import SourceOptions
from sources.xml.parser.item_reader import quoted_constant
from sources.xml.parser.leaf_text import UnreadableError

pc: Any = pyarrow.compute


class PatternReader:
    """Looks at the pattern texts of one source's punctuations, attribute by attribute."""

    def __init__(self, options: SourceOptions) -> None:
        self._schema = options.schema
        self._trims = options.ignore_surrounding_spaces
        self._prefixes = {place: PrefixRewriting(prefix) for place, prefix in enumerate(options.prefixes) if prefix}

    def check(self, texts: Sequence[str | None]) -> None:
        """Of one punctuation, and its lifespan; UnreadableError with the reason."""
        try:
            *bare, lifespan = texts
            if lifespan is not None:
                Lifespan.read(lifespan, self._schema)
            for place, prefix in self._prefixes.items():
                text = texts[place]
                bare[place] = None if text is None else prefix.of_pattern(text)
            punctuation_from_texts(bare, self._schema, trim=self._trims)
        except ValueError as error:
            raise UnreadableError(str(getattr(error, "what", error))) from None

    def are_readable(self, columns: Sequence[pa.StringArray]) -> bool:
        """Whether all the texts of many punctuations are patterns for their attributes, and the last of lifespans."""
        *columns, lifespans = columns
        try:
            for text in pc.drop_null(lifespans.unique()).to_pylist():
                Lifespan.read(text, self._schema)
        except ValueError:
            return False
        for index, texts in enumerate(columns):
            domain, prefix = self._schema[index].domain, self._prefixes.get(index)
            try:
                for text in self._doubtful(index, texts):
                    pattern_from_text(prefix.of_pattern(text) if prefix else text, domain, trim=self._trims)
            except ValueError:
                return False
        return True

    def _doubtful(self, index: int, texts: Any) -> list[str]:
        different = texts.unique()
        type_ = self._schema[index].domain.sql
        if isinstance(type_, IntegerType) and index not in self._prefixes and len(different) > 1:
            # So few digits are a pattern, whichever they are.
            plain = rf"^(\*|-?\d{{1,{type_.free_digits}}})$"
            different = different.filter(pc.invert(pc.match_substring_regex(different, plain)))
        return [text for text in different.to_pylist() if text is not None and text != "*"]

    def quoted(self, columns: Sequence[pa.StringArray]) -> list[pa.StringArray]:
        """The texts with quotes around constants whose blanks count, in the notation none do outside of quotes.

        Where the values have a prefix, it is taken off. The last are those of lifespans, and stay.
        """
        *columns, lifespans = columns
        columns = [
            _without(self._prefixes[place], texts) if place in self._prefixes else texts
            for place, texts in enumerate(columns)
        ]
        if self._trims:
            return [*columns, lifespans]
        return [
            _quoted(texts) if isinstance(attribute.domain.sql, StringType) and has_blank_ends(texts) else texts
            for texts, attribute in zip(columns, self._schema, strict=True)
        ] + [lifespans]


def _without(prefix: PrefixRewriting, texts: Any) -> pa.StringArray:
    distinct = texts.dictionary_encode()
    bare = [prefix.of_pattern(text) for text in distinct.dictionary.to_pylist()]
    result: pa.StringArray = pa.array(bare, pa.string()).take(distinct.indices)
    return result


def _quoted(texts: Any) -> pa.StringArray:
    distinct = texts.dictionary_encode()
    quoted = [quoted_constant(text) if _is_blank_ended(text) else text for text in distinct.dictionary.to_pylist()]
    result: pa.StringArray = pa.array(quoted, pa.string()).take(distinct.indices)
    return result


def _is_blank_ended(text: str) -> bool:
    """Whether a text is a bare constant that begins or ends with a blank."""
    tidy = text.strip(BLANKS)
    return tidy != text and tidy not in ("*", "null") and tidy[:1] not in ('"', "[", "(", "{")
