"""Static tables that a program gives: which types they may have, on each engine, and how they are named in SQL."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import xmlstream as xs
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.session.engines import Session

READINGS = f"""<s xmlns:punct="{PUNCT_NS}"><r><sid>A</sid><hour>1</hour></r><r><sid>B</sid><hour>1</hour></r>
<punct:r><hour>1</hour></punct:r></s>"""
TABLE = (
    "CREATE TABLE r (sid STRING, hour INT) USING punctuated_xml OPTIONS (path '${PATH}', rowTag 'r', schemes 'hour');"
)


class Offered:
    """What another library offers: a table by Arrow's interface, and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]


COLUMNS: dict[str, tuple[pa.DataType, object, object]] = {
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), "x", "x"),
    "large": (pa.large_string(), "x", "x"),
    "view": (pa.string_view(), "x", "x"),
    "u8": (pa.uint8(), 255, 255),
    "u16": (pa.uint16(), 65535, 65535),
    "u32": (pa.uint32(), 2**32 - 1, 2**32 - 1),
    "u64": (pa.uint64(), 2**64 - 1, Decimal(2**64 - 1)),
    "half": (pa.float16(), 0.5, 0.5),
    "ms": (pa.timestamp("ms"), datetime(2026, 10, 25, 2, 30), datetime(2026, 10, 25, 2, 30)),
    "ns": (pa.timestamp("ns"), datetime(2026, 10, 25, 2, 30), datetime(2026, 10, 25, 2, 30)),
    "day": (pa.date64(), date(2026, 10, 25), date(2026, 10, 25)),
    "decimal": (pa.decimal128(9, 2), Decimal("1.50"), Decimal("1.50")),
    "nothing": (pa.null(), None, None),
    "flag": (pa.bool_(), True, True),
}


def table() -> pa.Table:
    """A table with all these columns, in two rows: the values, and nulls."""
    columns = {name: pa.array([value, None], type_) for name, (type_, value, _) in COLUMNS.items()}
    return pa.table({"sid": ["A", "B"], **columns})


def joined(session: Session, path: Path, given: object) -> list[dict[str, object]]:
    (path / "r.xml").write_text(READINGS)
    query = xs.from_sql(
        session, TABLE + "SELECT * FROM r JOIN Places USING (sid)", {"PATH": str(path / "r.xml")}, {"places": given}
    )
    return sorted(query.to_arrow().to_pylist(), key=lambda row: str(row["sid"]))


def expected() -> list[dict[str, object]]:
    values = {name: value for name, (_, _, value) in COLUMNS.items()}
    return [{"sid": "A", "hour": 1, **values}, {"sid": "B", "hour": 1, **dict.fromkeys(COLUMNS)}]


@pytest.mark.parametrize("kind", [lambda given: given, Offered])
def test_a_table_of_arrows_is_a_static_table_in_process(in_process: Session, tmp_path: Path, kind: Any) -> None:
    assert joined(in_process, tmp_path, kind(table())) == expected()


@pytest.mark.spark
def test_a_table_of_arrows_is_a_static_table_on_spark(spark: Session, tmp_path: Path) -> None:
    assert joined(spark, tmp_path, table()) == expected()


def test_it_is_an_input_of_the_builder(in_process: Session, tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(READINGS)
    readings = xs.read(in_process, tmp_path / "r.xml", schema="sid STRING, hour INT", rowTag="r", schemes="hour")
    one, other = (pa.table({"sid": ["A"], "place": [place]}) for place in ("north", "south"))
    both = [xs.from_dataframe(each, "places", session=in_process) for each in (one, other)]
    # Two tables of one name, with other rows, are two.
    query = readings.join(both[0].union_all(both[1]), "sid")
    assert sorted(row["place"] for row in query.to_arrow().to_pylist()) == ["north", "south"]


def test_a_declared_table_is_meant_before_a_given_one(in_process: Session, tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(READINGS)
    query = xs.from_sql(in_process, TABLE + "SELECT * FROM r", {"PATH": str(tmp_path / "r.xml")}, {"r": table()})
    assert query.schema.names == ("sid", "hour")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1, 2], "the table places is a list of builtins"),
        (pa.table({"sid": [[1]]}), "the column sid of the table places is of Arrow's type list"),
        (pa.table({"sid": pa.array([1], pa.timestamp("ns"))}), "a value that Spark's types do not hold"),
        (pa.table([["A"], ["B"]], names=["sid", "SID"]), "two columns of the table places have one name"),
        (pa.Table, "the table places is a "),
    ],
)
def test_what_is_no_static_table_is_refused(in_process: Session, tmp_path: Path, given: object, words: str) -> None:
    with pytest.raises(xs.UsageError, match=words):
        joined(in_process, tmp_path, given)


def test_a_table_without_a_session_is_refused_with_the_way() -> None:
    with pytest.raises(xs.UsageError, match="session=session") as refused:
        xs.from_dataframe(table())
    assert "is not a DataFrame of Spark's" in str(refused.value)
