"""Plain numbers: texts that are numbers of a type by their digits, told without making numbers of them.

So is what a query does not use looked at: nobody wants its values, and most of it is sound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from punct_ns.domain import Domain
from punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from sources.xml.options.arrow_text import characters, text_ends

_ZERO, _POINT = b"0."


@dataclass(frozen=True, slots=True)
class PlainNumbers:
    """Numbers of so few digits before the point, and behind it, that it does not matter which they are."""

    whole: int
    fraction: int = 0

    @staticmethod
    def of(domain: Domain) -> PlainNumbers | None:
        """Those that are values of a domain; None if that is not for their digits to say."""
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
        """Whether all texts are; errs towards no.

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
        is_other = character - np.uint8(_ZERO) > 9  # what is below zero is far above
        other = np.flatnonzero(is_other)
        if not len(other):
            length = end - start
            return int(length.min()) > 0 and int(length.max()) <= self.whole
        if not self.fraction or len(other) != len(texts) or (character[other] != _POINT).any():
            return False
        # Where each has a point, the first is in the first text, and so on.
        whole, fraction = other - start, end - 1 - other
        return (
            int(whole.min()) > 0
            and int(fraction.min()) > 0
            and int(whole.max()) <= self.whole
            and int(fraction.max()) <= self.fraction
        )
