"""Typed columns from the texts of leaves: by Arrow where it agrees with the algebra, otherwise value by value.

`Domain.read` defines the meaning of a text. Arrow's parsers get only texts for which they return the same, or fail.

Plain numbers are texts that are valid numbers of a type because of the count of their digits, without conversion. They
are used to check columns that a query does not need: their values are not wanted, and most of them are valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from xmlstream.dataclasses import dataclass, replace
from xmlstream.punct_ns.domain import BLANKS, Domain
from xmlstream.punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from xmlstream.punct_ns.slices import arrow_type
from xmlstream.punct_ns.sql_type import SqlType, StringType
from xmlstream.punct_ns.temporal_type import DateType, TimestampType
from xmlstream.sources.xml.options.arrow_text import characters, only_bytes, read_array, text_ends, without_outer_blanks
from xmlstream.sources.xml.options.formats import IsoRewriting, PrefixRewriting
from xmlstream.sources.xml.options.local_times import LocalTimes
from xmlstream.sources.xml.options.locales import LocaleNumbers
from xmlstream.sources.xml.options.nested_values import Structure, element_of, read_structures
from xmlstream.sources.xml.options.source import SourceOptions

_ZERO, _POINT = b"0."


@dataclass(frozen=True, slots=True)
class PlainNumbers:
    """Numbers with so few digits before and after the point that any digits are valid."""

    whole: int
    fraction: int = 0

    @staticmethod
    def of(domain: Domain) -> PlainNumbers | None:
        """Returns the plain numbers of a domain; None if digits alone do not decide."""
        if domain.low is not None or domain.high is not None:
            return None
        match domain.sql:
            case IntegerType(free_digits=digits):
                return PlainNumbers(digits)
            case FloatType():
                return PlainNumbers(30, 300)
            case DecimalType(precision, scale):
                return PlainNumbers(precision - scale, scale)
        return None

    def are_all(self, texts: pa.StringArray) -> bool:
        """Whether all texts are plain numbers; errs towards False.

        >>> [PlainNumbers(2, 1).are_all(pa.array(texts)) for texts in (["1", "22"], ["1.5", "22.0"], [])]
        [True, True, True]
        >>> [PlainNumbers(2, 1).are_all(pa.array(texts)) for texts in (["1.5.5", "22"], ["122"], ["1.", ".5"], [None])]
        [False, False, False, False]
        """
        if texts.null_count:
            return False
        if not len(texts):
            return True
        end, character = text_ends(texts), characters(texts)
        start, end = end[:-1] - end[0], end[1:] - end[0]
        is_other = character - np.uint8(_ZERO) > 9  # characters below zero wrap around to large numbers
        other = np.flatnonzero(is_other)
        if not len(other):
            length = end - start
            return int(length.min()) > 0 and int(length.max()) <= self.whole
        if not self.fraction or len(other) != len(texts) or (character[other] != _POINT).any():
            return False
        # If each text has one point, the first point is in the first text, and so on.
        whole, fraction = other - start, end - 1 - other
        return (
            int(whole.min()) > 0
            and int(fraction.min()) > 0
            and int(whole.max()) <= self.whole
            and int(fraction.max()) <= self.fraction
        )


pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Spelling:
    """How values are written: dates and times by a pattern, behind a prefix, in a zone, numbers in a locale."""

    pattern: str | None = None
    prefix: str = ""
    zone: str = "UTC"
    locale: str | None = None

    def rewritings(self, domain: Domain) -> list[PrefixRewriting | IsoRewriting | LocaleNumbers]:
        """What makes texts that the domain reads, one after the other."""
        found: list[PrefixRewriting | IsoRewriting | LocaleNumbers] = []
        if self.prefix:
            found.append(PrefixRewriting(self.prefix))
        if self.pattern and isinstance(domain.sql, DateType | TimestampType):
            days = isinstance(domain.sql, DateType)
            found.append(IsoRewriting.of(self.pattern, days=days, locale=self.locale))
        if self.locale is not None and isinstance(domain.sql, DecimalType):
            found.append(LocaleNumbers(self.locale))
        return found


class ColumnReader:
    """Parses the texts of one attribute."""

    def __init__(
        self,
        name: str,
        domain: Domain,
        null_value: str | None,
        *,
        trim: bool,
        written: Spelling | None = None,
        structure: Structure | None = None,
    ) -> None:
        """With `trim`, blanks around a string are removed; for other types they always are.

        `structure` is the declaration of a structure, or of the structures in an array.
        """
        written = written or Spelling()
        self._name = name
        self._domain = domain
        element = element_of(domain)
        self._elements = (
            ColumnReader(name, element, null_value, trim=trim, written=written, structure=structure)
            if element
            else None
        )
        self._fields = (
            [] if element or structure is None else _fields(name, structure, null_value, trim=trim, written=written)
        )
        if self._elements:
            self.type: pa.DataType = pa.list_(pa.field("element", self._elements.type))
        elif structure is not None:
            kinds = [reader.type for reader in self._fields]
            self.type = pa.struct([pa.field(*each) for each in zip(structure.fields.names, kinds, strict=True)])
        else:
            self.type = arrow_type(domain)
        self._null_value = null_value
        self._trim = trim or not isinstance(domain.sql, StringType)
        self._rewritings = written.rewritings(domain)
        self._local = LocalTimes.of(domain.sql, written.zone)
        self._is_plain = null_value is None and not self._rewritings
        self._plain = PlainNumbers.of(domain) if self._is_plain else None

    @staticmethod
    def of(options: SourceOptions, index: int) -> ColumnReader:
        """Creates the reader for an attribute of a source."""
        attribute = options.schema[index]
        return ColumnReader(
            attribute.name,
            attribute.domain,
            options.null_value,
            trim=options.ignore_surrounding_spaces,
            written=Spelling(options.formats[index], options.prefixes[index], options.time_zone, options.locale),
            structure=options.structures[index],
        )

    def read(self, texts: Any) -> tuple[pa.Array[Any], Mapping[int, str]]:
        """Returns typed values, and the reason by row for invalid texts, which are null among the values.

        The texts of arrays are lists of texts, those of structures are structures of texts (`text_type`).

        An absent leaf is null. So is a blank text, except for STRING, where it is the empty string; and so is the
        null text of the source.
        """
        if self._elements is not None:
            arrays, wrong = read_array(texts, self._elements.read)
            return arrays, {**self._outside(arrays, texts, wrong), **wrong}
        if isinstance(self.type, pa.StructType):
            structures, wrong = read_structures(texts, self.type, [field.read for field in self._fields])
            return structures, {**self._outside(structures, texts, wrong), **wrong}
        values = self._quickly(texts) if self._is_plain else None
        reasons: dict[int, str] = {}
        if values is None:
            given, texts = texts, self._tidy(texts)
            values = self._quickly(texts)
            if values is None:
                values, reasons = self._one_by_one(texts, given)
        reasons.update(self._outside(values, texts, reasons))
        return values, reasons

    @property
    def takes_all(self) -> bool:
        """Whether every text is a valid value, and so is null."""
        return self._domain == Domain("STRING")

    def flaws(self, texts: Any) -> Mapping[int, str]:
        """Returns the reasons of `read`; without conversion if all texts are plain numbers."""
        is_plain = self._plain is not None and self._plain.are_all(texts)
        return {} if is_plain else self.read(texts)[1]

    def _tidy(self, texts: Any) -> Any:
        if self._trim:
            texts = without_outer_blanks(texts)
        if self._null_value is not None:
            texts = pc.if_else(pc.equal(texts, self._null_value), pa.scalar(None, pa.string()), texts)
        for rewriting in self._rewritings:
            texts = rewriting.rewrite(texts)
        return texts

    def _quickly(self, texts: pa.StringArray) -> Any:
        """Converts all texts by Arrow; returns None if Arrow would not do that correctly."""
        if isinstance(self._domain.sql, StringType):
            return without_outer_blanks(texts) if self._trim else texts
        try:
            if self._domain.sql in _FORMS:
                return self._moments(texts)
            plain = _PLAIN.get(type(self._domain.sql))
            if plain is None or not plain[characters(texts)].all():
                return None
            values = texts.cast(self.type)
        except pa.ArrowInvalid:
            return None
        # Convert -0.0 to 0.0: the algebra has one zero.
        return pc.add(values, pa.scalar(0.0, self.type)) if pa.types.is_floating(self.type) else values

    def _moments(self, texts: Any) -> Any:
        """Returns dates and timestamps if all are written in one of the usual forms; else None."""
        for form, type_ in _FORMS[self._domain.sql]:
            # Test the first text before all of them.
            first = texts.drop_null()[:1].to_pylist()
            if first and re.match(form, first[0]) and (_are_like(texts, first[0]) or _have_form(texts, form)):
                values: Any = texts.cast(type_)
                if self._local is not None and not form.endswith("Z$"):
                    values = self._local.moments(values)
                return values if values is None else values.cast(self.type)
        return None

    def _read(self, text: str) -> object:
        return self._domain.read(text if self._local is None else self._local.text(text.strip(BLANKS)))

    def _one_by_one(self, texts: Any, given: Any) -> tuple[pa.Array[Any], dict[int, str]]:
        """Parses each distinct text by the algebra's own rules; reasons show it as it was given."""
        distinct = texts.dictionary_encode()
        values: list[object] = []
        wrong: dict[int, str] = {}
        for code, text in enumerate(distinct.dictionary.to_pylist()):
            try:
                values.append(self._read(text) if text else None)
            except ValueError as error:
                values.append(None)
                wrong[code] = f"{self._name}: {error}"
        codes = distinct.indices
        reasons = {}
        if wrong:
            rows = np.flatnonzero(np.isin(codes.fill_null(-1).to_numpy(), list(wrong)))
            reasons = {row: wrong[codes[row].as_py()] for row in rows.tolist()}
            if self._rewritings and not isinstance(self._rewritings[-1], PrefixRewriting):
                shown = {row: (repr(texts[row].as_py()), given[row].as_py().strip(BLANKS)) for row in reasons}
                reasons |= {
                    row: reasons[row].replace(iso, repr(text))
                    for row, (iso, text) in shown.items()
                    if not iso[1:].startswith(f"{text} is not ")
                }
        return pa.array(values, self.type).take(codes), reasons

    def _outside(self, values: Any, texts: Any, known: Mapping[int, str]) -> dict[int, str]:
        """Returns the reasons for values that are null or out of bounds although the declaration forbids it."""
        found: dict[int, str] = {}
        domain = self._domain
        if not domain.nullable and values.null_count:
            for row in np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist():
                if row not in known:
                    found[row] = f"{self._name} is null, but declared NOT NULL"
        for beyond, bound in ((pc.less, domain.low), (_greater, domain.high)):
            if bound is not None:
                outside = beyond(values, pa.scalar(bound, self.type)).fill_null(False)
                for row in np.flatnonzero(outside.to_numpy(zero_copy_only=False)).tolist():
                    found[row] = f"{self._name}: {texts[row].as_py()} is outside its domain"
        if domain.listed is not None:
            strange = pc.invert(pc.is_in(values, pa.array(domain.listed, self.type))).to_numpy(zero_copy_only=False)
            for row in np.flatnonzero(strange & values.is_valid().to_numpy(zero_copy_only=False)).tolist():
                found[row] = f"{self._name}: {texts[row].as_py()} is not one of the values that its domain lists"
        return found


def _fields(
    name: str, structure: Structure, null_value: str | None, *, trim: bool, written: Spelling
) -> list[ColumnReader]:
    """Returns the readers of a structure's fields."""
    columns = zip(structure.fields, structure.formats, structure.structures, strict=True)
    return [
        ColumnReader(
            f"{name}.{field.name}",
            field.domain,
            null_value,
            trim=trim,
            written=replace(written, pattern=pattern, prefix=""),
            structure=below,
        )
        for field, pattern, below in columns
    ]


def _have_form(texts: Any, form: str) -> bool:
    """Whether a regular expression matches all texts that are not null."""
    return not pc.any(pc.invert(pc.match_substring_regex(texts, form))).as_py()


def _are_like(texts: pa.StringArray, first: str) -> bool:
    """Whether all texts are as long as one, do not begin with zero, and differ from it in digits only.

    >>> [_are_like(pa.array([other]), "2026-01-02") for other in ("1999-12-31", "0999-12-31", "1999-1-311")]
    [True, False, False]
    """
    like = first.encode()
    length, character = len(like), characters(texts)
    if length < _WORD or texts.null_count or len(character) != length * len(texts):
        return False
    ends = text_ends(texts)
    if (ends[1:] - ends[:-1] != length).any() or (character[::length] == _ZERO).any():
        return False
    for at in {*range(0, length - _WORD, _WORD), length - _WORD}:
        part = like[at : at + _WORD]
        there = np.ndarray((len(texts),), np.dtype("<u8"), character, at, (length,))
        # Of a digit the upper half counts; six more than a nine would change it.
        shape, six = (
            bytes(each) for each in zip(*((0xF0, 6) if 48 <= c <= 57 else (0xFF, 0) for c in part), strict=True)
        )
        mask, more = (np.uint64(int.from_bytes(each, "little")) for each in (shape, six))
        value = np.uint64(int.from_bytes(part, "little")) & mask
        if (there & mask != value).any() or ((there + more) & mask != value).any():
            return False
    return True


_WORD = 8


def _greater(values: Any, bound: Any) -> Any:
    greater = pc.greater(values, bound)
    # NaN is greater than all numbers.
    return pc.or_(greater, pc.is_nan(values)) if pa.types.is_floating(values.type) else greater


_PLAIN = {IntegerType: only_bytes(b"0123456789-"), FloatType: only_bytes(b"0123456789-.")}
"""The characters of texts that Arrow parses as the algebra does, or rejects; Arrow accepts hexadecimal, too."""

_DATE = r"^[1-9]\d{3}-\d\d-\d\d"
_CLOCK = _DATE + r"[T ]\d\d:\d\d:[0-5]\d(\.\d{1,6})?"
_FORMS: dict[SqlType, tuple[tuple[str, pa.DataType], ...]] = {
    DateType(): ((_DATE + "$", pa.date32()),),
    TimestampType(zoned=True): ((_CLOCK + "Z$", pa.timestamp("us", "UTC")), (_CLOCK + "$", pa.timestamp("us"))),
    TimestampType(zoned=False): ((_CLOCK + "$", pa.timestamp("us")),),
}
"""Forms of dates and timestamps, with the type as which Arrow parses them; without a zone they are in the source's."""
