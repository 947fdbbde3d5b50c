from __future__ import annotations

import math
import operator
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import strategies
from xmlstream.punct_ns.domain import NAN, Domain
from xmlstream.punct_ns.sql_type import DiscreteType

COMPARE = operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge


@given(st.data(), strategies.domains())
def test_a_value_is_read_back_from_its_text(data: st.DataObject, domain: Domain) -> None:
    value = data.draw(strategies.values(domain))
    assert domain.read(domain.write(value)) == value
    assert domain.normal(value) == value
    assert domain.contains(value)


@given(st.data(), strategies.domains().filter(lambda domain: domain.discrete))
def test_ordinals_count_the_values_in_order(data: st.DataObject, domain: Domain) -> None:
    a, b = data.draw(strategies.values(domain)), data.draw(strategies.values(domain))
    assert isinstance(domain.sql, DiscreteType)
    assert (a < b) == (domain.sql.ordinal(a) < domain.sql.ordinal(b))
    assert domain.sql.value(domain.sql.ordinal(a)) == a
    assert domain.cut(a, after=True) == domain.cut(a, after=False) + 1


@given(strategies.domains())
def test_a_domain_survives_pickling(domain: Domain) -> None:
    twin = pickle.loads(pickle.dumps(domain))
    assert twin == domain
    assert (twin.bottom, twin.top, twin.sql) == (domain.bottom, domain.top, domain.sql)


@given(st.floats() | st.integers())
def test_nan_is_one_value_above_all_others(number: float) -> None:
    if math.isnan(number):
        assert [compare(NAN, number) for compare in COMPARE] == [True, False, False, True, False, True]
        assert [compare(number, NAN) for compare in COMPARE] == [True, False, False, True, False, True]
    else:
        assert [compare(NAN, number) for compare in COMPARE] == [False, True, False, False, True, True]
        assert [compare(number, NAN) for compare in COMPARE] == [False, True, True, True, False, False]
    assert pickle.loads(pickle.dumps(NAN)) is NAN
    assert hash(NAN) == hash(Domain("DOUBLE").normal(math.nan))


def test_names_and_bounds_have_one_form() -> None:
    assert Domain("integer", low=-(2**31), high=2**31 - 1) == Domain("INT")
    assert Domain("numeric(10)") == Domain("DECIMAL(10,0)")
    assert Domain("DECIMAL(5,2)", low=1) == Domain("decimal(5, 2)", low=Decimal("1.00"))
    assert Domain("array<struct<A:int>>").type == Domain("ARRAY< STRUCT<A: INT> >").type == "ARRAY<STRUCT<A:INT>>"
    assert Domain("VARCHAR(10)").opaque
    assert Domain("STRING COLLATE UNICODE_CI").opaque


def test_a_domain_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="no value lies between"):
        Domain("INT", low=5, high=4)
    with pytest.raises(ValueError, match="is not a type"):
        Domain("DECIMAL(39,0)")


@pytest.mark.parametrize(
    ("domain", "value"),
    [
        (Domain("INT"), True),
        (Domain("INT"), 1.0),
        (Domain("INT"), 2**31),
        (Domain("BOOLEAN"), 1),
        (Domain("DOUBLE"), "1"),
        (Domain("DOUBLE"), True),
        (Domain("DECIMAL(5,2)"), 1.5),
        (Domain("DECIMAL(5,2)"), Decimal("1.555")),
        (Domain("STRING"), 1),
        (Domain("DATE"), datetime(2003, 5, 15)),
        (Domain("TIMESTAMP"), datetime(2003, 5, 15)),
        (Domain("TIMESTAMP_NTZ"), datetime(2003, 5, 15, tzinfo=UTC)),
        (Domain("TIMESTAMP"), date(2003, 5, 15)),
    ],
)
def test_a_value_of_another_type_is_refused(domain: Domain, value: object) -> None:
    assert not domain.contains(value)
    with pytest.raises(ValueError, match=r"is|has|lacks"):
        domain.normal(value)


def test_bounds_and_null_decide_what_a_domain_contains() -> None:
    minute = Domain("INT", nullable=False, low=0, high=59)
    assert [minute.contains(value) for value in (0, 59, -1, 60, None)] == [True, True, False, False, False]
    plain = Domain("DOUBLE", high=math.inf)
    assert [plain.contains(value) for value in (math.inf, NAN, None)] == [True, False, True]


def test_a_float_is_written_as_short_as_it_can_be_read_back() -> None:
    single = Domain("FLOAT")
    assert single.write(single.read("0.1")) == "0.1"
    assert single.write(single.read("16777217")) == "16777216.0"
    assert single.read("1e39") == math.inf
