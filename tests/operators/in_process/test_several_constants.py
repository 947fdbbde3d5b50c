"""Sums and products of several attributes and constants, which Spark computes in another order in some plans.

Whatever the order, an answer of Spark's is that of whole numbers; so it is here, with an error only where that is no
value of the type.
"""

from __future__ import annotations

import random

import duckdb
import pytest

from tests.harness.drawn_rows import connected
from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.operators.expressions.operations.part import of_column
from xmlstream.operators.expressions.operations.spark_type import NotProven
from xmlstream.operators.in_process.expressions import translated

FORMS = ("(a + 3) + (b + 10)", "3 + a + b + 1", "a * 2 * b * 3", "(a + {top}) + (b + 7)", "abs(1 + a + 2 + b)")
TYPES = {"INT": 2**31 - 1, "BIGINT": 2**63 - 1}


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("form", FORMS)
def test_an_overflow_is_one_of_the_result(form: str, type_: str) -> None:
    top = TYPES[type_]
    text = form.format(top=top - 7)
    if type_ == "BIGINT" and "*" in form:
        with pytest.raises(NotProven):
            translated(text, {name: of_column(name, type_, False) for name in "ab"}, "UTC")
        return
    found = translated(text, {name: of_column(name, type_, False) for name in "ab"}, "UTC")
    draw, near = random.Random(SEED), (0, 1, -1, top, -top - 1, top - 12, -top + 5, top // 6)
    with connected() as database:
        for _ in range(2_000 if AT_NIGHT else 60):
            a, b = (draw.choice(near) + draw.choice((0, 0, 1, -1, 20)) for _ in "ab")
            if not all(-top - 1 <= each <= top for each in (a, b)):
                continue
            row = f"(SELECT '{a}'::{type_} AS a, '{b}'::{type_} AS b)"
            whole = eval(text, {"abs": abs}, {"a": a, "b": b})
            inner = abs(1 + a + 2 + b) if "abs" in text else 0
            if -top - 1 <= whole <= top and inner <= top:
                assert database.execute(f"SELECT {found.sql} FROM {row}").fetchall() == [(whole,)]
            else:
                with pytest.raises(duckdb.Error, match=r"Type INT128|Overflow"):
                    database.execute(f"SELECT {found.sql} FROM {row}").fetchall()


def test_sums_of_unlike_types_stay_refused() -> None:
    columns = {"a": of_column("a", "INT", False), "b": of_column("b", "BIGINT", False)}
    with pytest.raises(NotProven):
        translated("a + 3 + b + 10", columns, "UTC")
