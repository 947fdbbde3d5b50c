from __future__ import annotations

import pickle

import pytest
from hypothesis import given

from tests.samples import strategies
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Schema


@strategies.fewer(3)
@given(strategies.schemas())
def test_ddl_is_read_back(schema: Schema) -> None:
    assert Schema.parse(schema.ddl()) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_ddl_as_spark_reads_it() -> None:
    schema = Schema.parse(
        "sid string, hour: INT NOT NULL comment 'x, NOT NULL', `a ``b` DECIMAL ( 10 , 2 ) ,"
        "l ARRAY<STRUCT<x: INT, Y: STRING>>, t TIMESTAMP_LTZ"
    )
    assert schema.names == ("sid", "hour", "a `b", "l", "t")
    assert [attribute.domain.type for attribute in schema] == [
        "STRING", "INT", "DECIMAL(10,2)", "ARRAY<STRUCT<x:INT,Y:STRING>>", "TIMESTAMP",
    ]  # fmt: skip
    assert [attribute.domain.nullable for attribute in schema] == [True, False, True, True, True]


def test_declared_bounds_do_not_imply_not_null() -> None:
    schema = Schema.parse("hour INT, min INT, t DOUBLE, d DATE", "hour 0.., `min` 0..59, t -20.5..95, d ..2003-05-15")
    assert schema["min"].domain == Domain("INT", low=0, high=59)
    assert schema["t"].domain.low == -20.5
    assert schema["hour"].domain.high is None


@pytest.mark.parametrize(
    "ddl",
    ["", " , ", "a", "a INT, A STRING", "a INT b STRING", "a DECIMAL(50,2)", "INT", "a `", "a INTT", "a ARRAY<INT"],
)
def test_ddl_that_declares_nothing_is_refused(ddl: str) -> None:
    with pytest.raises(UsageError):
        Schema.parse(ddl)


@pytest.mark.parametrize(
    "domains", ["min", "min 0", "min 0-59", "sec 0..59", "min x..", "min 9..0", "min 0..1, min 0..2"]
)
def test_domains_that_make_no_sense_are_refused(domains: str) -> None:
    with pytest.raises(UsageError):
        Schema.parse("min INT", domains)


def test_a_misspelt_name_gets_a_hint() -> None:
    with pytest.raises(UsageError, match="did you mean hour"):
        Schema.parse("sid STRING, hour INT").index("huor")
