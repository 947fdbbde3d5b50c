"""Lossless casts: what is known of an attribute is known of its copy of a wider type."""

from __future__ import annotations

from punct_ns.domain import Domain
from punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from punct_ns.sql_type import SqlType


def lossless_cast(domain: Domain, wider: str) -> Domain | None:
    """The domain of the attribute once it is cast to the wider type; None where the cast may change a value.

    Numbers only: what a date is as a timestamp depends on the time zone, and texts compare otherwise than numbers.

    >>> lossless_cast(Domain("INT", low=0), "BIGINT")
    Domain(type='BIGINT', nullable=True, low=0, high=None)
    >>> lossless_cast(Domain("BIGINT"), "DOUBLE") is None
    True
    """
    target = Domain(wider, domain.nullable)
    if not loses_nothing(domain.sql, target.sql):
        return None
    low, high = (None if end is None else target.normal(end) for end in (domain.low, domain.high))
    return Domain(target.type, domain.nullable, low, high)


def loses_nothing(type_: SqlType, wider: SqlType) -> bool:
    """Whether a cast from one type to the other keeps every value.

    >>> from punct_ns.domain import sql_type
    >>> loses_nothing(sql_type("SMALLINT"), sql_type("FLOAT")), loses_nothing(sql_type("INT"), sql_type("DECIMAL(9,0)"))
    (True, False)
    """
    if type_ == wider:
        return True
    match type_, wider:
        case (IntegerType(bits=bits), IntegerType(bits=more)) | (FloatType(bits=bits), FloatType(bits=more)):
            return bits < more
        case IntegerType(bits=bits), FloatType(significand=exact):
            return bits <= exact
        case IntegerType(digits=digits), DecimalType(precision, scale):
            return digits <= precision - scale
        case DecimalType(digits, after_point), DecimalType(precision, scale):
            return digits - after_point <= precision - scale and after_point <= scale
    return False
