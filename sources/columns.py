"""From the texts of leaves to typed columns: vectorised where Arrow agrees with the algebra, value by value where not.

`Domain.read` says what a text means. Arrow's own readers are used only on texts for which they are known to give the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from punct_ns.domain import BLANKS, Domain
from punct_ns.slices import arrow_type
from sources.formats import IsoRewriting
from sources.source import SourceOptions


class Column:
    """Reads the texts of one attribute."""

    def __init__(
        self, name: str, domain: Domain, null_value: str | None, trim: bool, rewriting: IsoRewriting | None = None
    ) -> None:
        """`trim` says whether blanks around a string are no part of it; of other types they never are."""
        self._name = name
        self._domain = domain
        self.type = arrow_type(domain)
        self._null_value = null_value
        self._trim = trim or domain.type != "STRING"
        self._rewriting = rewriting

    @staticmethod
    def of(options: SourceOptions, index: int) -> Column:
        """For an attribute of a source."""
        attribute = options.schema[index]
        formats = {"DATE": options.date_format, "TIMESTAMP": options.timestamp_format}
        pattern = formats.get(attribute.domain.type.removesuffix("_NTZ"))
        rewriting = IsoRewriting.of(pattern) if pattern else None
        return Column(
            attribute.name, attribute.domain, options.null_value, options.ignore_surrounding_spaces, rewriting
        )

    def read(self, texts: pa.Array) -> tuple[pa.Array, Mapping[int, str]]:
        """Typed values, and for those that cannot be had, null among the values, the reason by row.

        Texts are strings; null is an absent leaf. Neither a blank text nor the null text is a value of a type other than
        STRING: both are null.
        """
        texts = self._tidy(texts)
        values = self._fast(texts)
        reasons: dict[int, str] = {}
        if values is None:
            values, reasons = self._slow(texts)
        reasons.update(self._outside(values, texts, reasons))
        return values, reasons

    def _tidy(self, texts: pa.Array) -> pa.Array:
        if self._trim and _has_blank_ends(texts):
            texts = pc.utf8_trim(texts, characters=BLANKS)
        if self._null_value is not None:
            texts = pc.if_else(pc.equal(texts, self._null_value), pa.scalar(None, pa.string()), texts)
        if self._rewriting is not None:
            texts = self._rewriting.rewrite(texts)
        return texts

    def _fast(self, texts: pa.Array) -> pa.Array | None:
        """The values, if Arrow can be trusted with every text."""
        kind = self._domain.type.partition("(")[0]
        if kind == "STRING":
            return texts
        plain = _PLAIN.get(kind)
        if plain is None or not plain[_bytes(texts)].all():
            return None
        try:
            if kind == "TIMESTAMP":
                return texts.cast(pa.timestamp("us")).cast(self.type)
            values = texts.cast(self.type)
        except pa.ArrowInvalid:
            return None
        if pa.types.is_floating(self.type):
            return pc.add(values, pa.scalar(0.0, self.type))  # one zero
        return values

    def _slow(self, texts: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """Each distinct text by the algebra's own reading."""
        distinct = texts.dictionary_encode()
        values: list[object] = []
        wrong: dict[int, str] = {}
        for code, text in enumerate(distinct.dictionary.to_pylist()):
            try:
                values.append(self._domain.read(text) if text else None)
            except ValueError as error:
                values.append(None)
                wrong[code] = f"{self._name}: {error}"
        codes = distinct.indices
        reasons = {}
        if wrong:
            rows = np.flatnonzero(np.isin(codes.fill_null(-1).to_numpy(), list(wrong)))
            reasons = {row: wrong[codes[row].as_py()] for row in rows.tolist()}
        return pa.array(values, self.type).take(codes), reasons

    def _outside(self, values: pa.Array, texts: pa.Array, known: Mapping[int, str]) -> dict[int, str]:
        """What is null or beyond its bounds though declared not to be."""
        found: dict[int, str] = {}
        domain = self._domain
        if not domain.nullable and values.null_count:
            for row in np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist():
                if row not in known:
                    found[row] = f"{self._name} is null, and declared never to be"
        wrong = [
            test(values, pa.scalar(bound, self.type))
            for test, bound in ((pc.less, domain.low), (_greater, domain.high))
            if bound is not None
        ]
        for outside in wrong:
            for row in np.flatnonzero(outside.fill_null(False).to_numpy(zero_copy_only=False)).tolist():
                found[row] = f"{self._name}: {texts[row].as_py()} is outside its domain"
        return found


def _greater(values: pa.Array, bound: pa.Scalar) -> pa.Array:
    greater = pc.greater(values, bound)
    # NaN is above all numbers.
    return pc.or_(greater, pc.is_nan(values)) if pa.types.is_floating(values.type) else greater


def _table(characters: bytes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    table = np.zeros(256, np.bool_)
    table[list(characters)] = True
    return table


_PLAIN = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _table(b"0123456789-")),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _table(b"0123456789-.")),
}
"""The characters of texts for which Arrow's reading is the algebra's, or fails."""


def _bytes(texts: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """All the characters of the texts, one after the other."""
    _, offsets, data = texts.buffers()
    if data is None:
        return np.zeros(0, np.uint8)
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]


def _has_blank_ends(texts: pa.Array) -> bool:
    """Whether a text begins or ends with a control character or a blank."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return False
    byte = np.frombuffer(data, np.uint8)
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    starts, ends = ends[:-1], ends[1:]
    some = ends > starts
    return bool((byte[starts[some]] <= 32).any() or (byte[ends[some] - 1] <= 32).any())
