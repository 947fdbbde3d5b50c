"""Python functions: both engines call them alike, for values of every type; what they return is checked."""

from __future__ import annotations

import pickle
import random
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.harness.drawn_rows import TYPES, drawn
from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.operators.expressions.operations.python_functions import (
    ArrowCall,
    PythonFunction,
    as_written,
    declared_function,
)
from xmlstream.operators.frames.expression import Column, as_columns
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.slices import arrow_type
from xmlstream.session.engines import Session, engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession

ROWS, EXAMPLES = (200, 30) if AT_NIGHT else (40, 1)


def same(value: Any) -> Any:
    return value


def seen(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"


def both(one: Any, other: Any) -> str:
    return f"{one!r} {other!r}"


def column(value: pa.Array) -> pa.Array:  # type: ignore[type-arg]
    return value


def of(call: Any, returns: str, **declared: bool) -> PythonFunction:
    return declared_function(call, call.__name__, returns, **declared)


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    """The rows in an order of their own, with NaN, which no number equals, as text."""
    return sorted(map(repr, rows))


def test_both_engines_give_and_take_the_same_values(spark: SparkSession, in_process: InProcessSession) -> None:
    items: dict[str, str] = {}
    for name, type_ in TYPES.items():
        keys = [of(same, type_).key, of(column, type_).key, of(seen, "STRING").key]
        items |= {f"{name}{i}": f"{key}(`{name}`)" for i, key in enumerate(keys)}
    pairs = of(both, "STRING").key
    items |= {"nested": f"{pairs}(array(`i`, `ti`), named_struct('a', `s`, 'b', `x`))", "moments": f"{pairs}(`t`, `n`)"}
    ddl = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
    for seed in range(SEED, SEED + EXAMPLES):
        source = random.Random(seed)
        table = pa.table(
            {
                name: pa.array(
                    [None if source.random() < 0.2 else drawn(type_, source) for _ in range(ROWS)],
                    arrow_type(Domain(type_)),
                )
                for name, type_ in TYPES.items()
            }
        )
        both_rows = (engine_of(s).rows(table, ddl).select(*as_columns(items)) for s in (in_process, spark))
        here, there = (frame.to_arrow().to_pylist() for frame in both_rows)
        assert in_order(here) == in_order(there), f"seed {seed}"
        first = [{name: row[f"{name}0"] for name in TYPES} for row in here]
        expected = [
            {name: value + 0.0 if isinstance(value, float) else value for name, value in row.items()}
            for row in table.to_pylist()
        ]
        assert in_order(first) == in_order(expected), "and they are those that were given"


def test_a_function_sees_null_and_is_called_with_it(session: Session) -> None:
    key = of(seen, "STRING").key
    rows = engine_of(session).rows(pa.table({"n": pa.array([1, None], pa.int32())}), "n INT")
    found: list[Any] = rows.select(Column("s", f"{key}(n)")).to_arrow()["s"].to_pylist()
    assert sorted(found) == ["NoneType None", "int 1"]


def test_a_moment_is_in_utc_whatever_the_zone_of_the_session() -> None:
    call = ArrowCall(of(seen, "STRING"))
    moment = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "Europe/Berlin"))
    assert call(moment)[0].as_py().startswith("datetime datetime.datetime(2026, 1, 1, 0, 0, tzinfo=")
    assert call(pa.array([datetime(2026, 1, 1)], pa.timestamp("us")))[0].as_py() == (
        "datetime datetime.datetime(2026, 1, 1, 0, 0)"
    )


NAIVE, AWARE = datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)
WRONG = [
    ("DOUBLE", "1"), ("DOUBLE", True), ("DOUBLE", Decimal(1)), ("INT", 1.0), ("INT", True), ("INT", 2**31),
    ("TINYINT", 128), ("STRING", 1), ("STRING", b"a"), ("BOOLEAN", 1), ("DATE", NAIVE), ("DATE", "2026-01-01"),
    ("TIMESTAMP", NAIVE), ("TIMESTAMP_NTZ", AWARE), ("TIMESTAMP", date(2026, 1, 1)), ("DECIMAL(5,2)", 1.5),
    ("DECIMAL(5,2)", Decimal("1.505")), ("DECIMAL(5,2)", 1000), ("ARRAY<INT>", 3),
    ("ARRAY<TIMESTAMP>", [NAIVE]), ("STRUCT<a:INT>", {"b": 1}), ("STRING", "\ud800"),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "value"), WRONG)
def test_a_result_of_another_type_is_an_error_and_not_null(type_: str, value: Any) -> None:
    def gives(x: int) -> Any:
        return value if x else None

    with pytest.raises(QueryError) as raised:
        ArrowCall(of(gives, type_))(pa.array([0, 7]))
    assert f"which is not a valid {type_}, for (7)" in raised.value.what
    assert raised.value.where is not None
    assert "test_python_functions.py, line" in raised.value.where


RIGHT = [
    ("DOUBLE", 1, 1.0), ("DOUBLE", -0.0, 0.0), ("BIGINT", 2**62, 2**62), ("DECIMAL(5,2)", 1, Decimal("1.00")),
    ("DATE", date(2026, 1, 1), date(2026, 1, 1)), ("ARRAY<INT>", [1, None], [1, None]), ("TIMESTAMP", AWARE, AWARE),
    ("TIMESTAMP", datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), AWARE), ("STRING", "ä", "ä"),
    ("STRUCT<a:INT,b:STRING>", {"a": 1, "b": "x"}, {"a": 1, "b": "x"}),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "value", "found"), RIGHT)
def test_a_result_of_the_type_is_taken(type_: str, value: Any, found: Any) -> None:
    def gives(x: int) -> Any:
        return value

    assert repr(ArrowCall(of(gives, type_))(pa.array([1]))[0].as_py() == found) == "True"


def failing(x: int) -> float:
    return 1 / deeper(x)


def deeper(x: int) -> int:
    return {1: 1}[x]


def test_an_error_has_the_line_in_the_functions_own_file_and_its_arguments() -> None:
    with pytest.raises(QueryError) as raised:
        ArrowCall(of(failing, "DOUBLE"))(pa.array([1, 5]))
    assert raised.value.what == "the function failing raised KeyError for (5): 5"
    line = deeper.__code__.co_firstlineno + 1
    assert (raised.value.where or "").endswith(f"test_python_functions.py, line {line}")


def test_any_exception_of_a_function_is_an_error_of_its_row() -> None:
    def ends(x: int) -> int:
        if x == 2:
            raise StopIteration
        return x

    found: list[Any] = ArrowCall(of(ends, "INT"), in_fields=True)(pa.array([1, 2, 3])).to_pylist()
    assert [row["value"] for row in found] == [1, None, 3]
    assert "the function ends raised StopIteration for (2): no message" in found[1]["error"]


def test_an_error_counts_only_where_the_value_is_used(session: Session) -> None:
    key = of(failing, "DOUBLE").key
    rows = engine_of(session).rows(pa.table({"n": pa.array([1, 5], pa.int32())}), "n INT")
    found = rows.select(Column("x", f"CASE WHEN n = 1 THEN {key}(n) END")).to_arrow()["x"].to_pylist()
    assert sorted(found, key=str) == [1.0, None]
    with pytest.raises(Exception, match=r"the function failing raised KeyError for \(5\): 5"):
        rows.select(Column("x", f"{key}({key}(n))")).to_arrow()


def doubled(x: pa.Array) -> pa.Array:  # type: ignore[type-arg]
    return pc.multiply(x, 2)


def short(x: pa.Array) -> pa.Array:  # type: ignore[type-arg]
    return x[:1]


def as_floats(x: pa.Array) -> pa.Array:  # type: ignore[type-arg]
    return pc.cast(x, pa.float64())


def fails(x: pa.Array) -> pa.Array:  # type: ignore[type-arg]
    raise KeyError("no")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (short, "returned 1 values for 2 rows"),
        (as_floats, "values of another Arrow type"),
        (fails, "raised KeyError for 2 rows, first (1): 'no'"),
    ],
)
def test_a_vectorised_function_is_checked_too(call: Any, words: str) -> None:
    with pytest.raises(QueryError, match=re.escape(words)):
        ArrowCall(of(call, "INT"))(pa.array([1, 5], pa.int32()))
    assert ArrowCall(of(doubled, "BIGINT"))(pa.array([1, None], pa.int32())).to_pylist() == [2, None]


def none_for_two(x: int) -> int | None:
    return None if x == 2 else x


def test_a_declared_function_is_null_for_null_alone() -> None:
    call = ArrowCall(of(none_for_two, "INT", monotone=True))
    assert call(pa.array([1, None])).to_pylist() == [1, None]
    with pytest.raises(QueryError, match=r"returned None, .* declared rising"):
        call(pa.array([2]))


def test_another_function_of_a_name_has_another_key() -> None:
    def fahr(x: float) -> float:
        return x

    first = of(fahr, "DOUBLE")
    assert of(fahr, "DOUBLE") is first
    assert of(fahr, "DOUBLE", monotone=True).key != first.key

    def fahr(x: float) -> float:  # type: ignore[no-redef]
        return x * 2

    second = of(fahr, "DOUBLE")
    assert second.key != first.key
    assert second.version != first.version
    assert as_written(f"{first.key}({second.key}(x))") == "fahr(fahr(x))"


def test_a_function_goes_to_a_worker_by_value() -> None:
    from xmlstream.operators.frames.spark_functions import Sent

    sent = pickle.loads(pickle.dumps(Sent(of(failing, "DOUBLE"))))
    assert sent.function.call.__code__ is not failing.__code__
    assert sent(pa.array([1])).to_pylist() == [{"value": 1.0, "error": None}]


def rows_of(x: int) -> Any:
    yield x


class Aggregate:
    pass


REFUSED = [
    (rows_of, "INT", {}, "yields, and is a function of one row"),
    (Aggregate, "INT", {}, "is a class"),
    (3, "INT", {}, "is not a function"),
    (lambda: 1, "INT", {}, "takes no argument"),
    (same, "MAP<STRING,INT>", {}, r"cannot return a MAP<STRING,INT>"),
    (same, "NOTHING", {}, "cannot return a NOTHING"),
    (both, "INT", {"monotone": True}, "declared rising, and does not take one argument"),
    (same, "INT", {"monotone": True, "falling": True}, "to rise and to fall"),
]


@pytest.mark.parametrize(("call", "returns", "declared", "words"), REFUSED)
def test_what_is_no_function_of_a_row_is_refused(
    call: Any, returns: str, declared: dict[str, bool], words: str
) -> None:
    with pytest.raises(QueryError, match=words):
        declared_function(call, "f", returns, **declared)
