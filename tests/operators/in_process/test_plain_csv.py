"""CSV in process: what Spark's reader reads, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xmlstream.operators.expressions.operations.spark_type import NotProven
from xmlstream.operators.in_process.columns import declared
from xmlstream.operators.in_process.plain_csv import plain_csv
from xmlstream.punct_ns.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "a INT, b STRING, c DECIMAL(4,2), d DATE, e BOOLEAN, f TIMESTAMP, g TIMESTAMP_NTZ"
TEXT = (
    "x,y,z,u,v,w,n\n1,ä b ,0.05,2026-01-31,true,2026-01-31T12:00:00Z,2026-03-29 02:30:00\n\n"
    "-7,,12.5,,false,2020-02-29 23:59:59.5,\r\n,,,,,,\n"
    '5,"a, b",,"2026-01-31","true",,\n"6"," c ",1.5,,,,\n'
    "2147483647,=,99.99,1999-12-31,,1969-12-31T00:00:00.000001Z,1999-12-31T23:59:59.123456\n"
)


@pytest.mark.spark
def test_plain_csv_is_read_as_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TEXT, encoding="utf-8", newline="")
    options = {"header": "true", "mode": "FAILFAST"}
    read = spark.read.format("csv").schema(DDL).options(**options).load(str(tmp_path / "t.csv"))
    found = plain_csv(str(tmp_path / "t.csv"), declared(DDL), options)
    assert found.to_pylist() == read.toArrow().to_pylist()
    assert found.num_rows == 6
    (tmp_path / "l.csv").write_bytes("1,Köln,,,,,\n".encode("ISO-8859-1"))
    options = {"encoding": "ISO-8859-1"}
    read = spark.read.format("csv").schema(DDL).options(**options).load(str(tmp_path / "l.csv"))
    assert plain_csv(str(tmp_path / "l.csv"), declared(DDL), options).to_pylist() == read.toArrow().to_pylist()


@pytest.mark.parametrize(
    ("text", "options", "ddl"),
    [
        ('1,"a ""b"""', {}, "a INT, b STRING"),
        ('1,""', {}, "a INT, b STRING"),
        ('1,a"b"', {}, "a INT, b STRING"),
        ('1,"a\nb"', {}, "a INT, b STRING"),
        ("1,a", {"encoding": "UTF-16"}, "a INT, b STRING"),
        ("1,a\\", {}, "a INT, b STRING"),
        ("1,a", {"nullValue": "a"}, "a INT, b STRING"),
        ("1,a", {}, "a INT, b BINARY"),
    ],
)
def test_other_csv_is_refused(text: str, options: dict[str, str], ddl: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(NotProven):
        plain_csv(str(tmp_path / "t.csv"), declared(ddl), options)


def test_moments_in_a_zone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotProven):
        plain_csv(str(tmp_path), declared("a TIMESTAMP"), {}, "Europe/Berlin")


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,a\n2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"(?s)1 fields in place of 2.*line 2"):
        plain_csv(str(tmp_path / "t.csv"), declared("a INT, b STRING"), {})
    (tmp_path / "t.csv").write_text("1,a\nx,b\n", encoding="utf-8")
    with pytest.raises(InputError, match="'x' is not a valid INT as column a declares it"):
        plain_csv(str(tmp_path / "t.csv"), declared("a INT, b STRING"), {})
