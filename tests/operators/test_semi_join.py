from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operators.semi_join import SemiJoin
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import format_schemes, parse_schemes
from tests.harness.running import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PERSON = Schema.parse("id INT, city STRING")
SALE = Schema.parse("seller INT, amount INT")


def people(*texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, PERSON) for text in texts]


def sales(*texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, SALE) for text in texts]


@pytest.mark.spark
def test_each_left_tuple_comes_once_as_soon_as_a_partner_is_there(spark: SparkSession, tmp_path: Path) -> None:
    join = Running(spark, tmp_path, SemiJoin(("id",), ("seller",)), PERSON, SALE)
    first = join.slice(([(1, "a"), (1, "a"), (2, "b"), (None, "c")], []), ([(2, 5)], []))
    assert (first.tuples, first.kept) == ([(2, "b")], 3)  # two people and the seller 2
    join.restart()
    second = join.slice(([(2, "x")], []), ([(1, 5), (1, 6), (2, 9)], sales("<1, *>")))
    assert sorted(second.tuples) == [(1, "a"), (1, "a"), (2, "x")]
    # Sellers 1 and 2 wait for people of theirs. Those of id 1 can still come, and would be let out.
    assert (second.kept, second.punctuations) == (2, [])
    assert join.slice(([], people("<1, *>")), ([], [])).punctuations == people("<1, *>")
    # A seller who has sold nothing, and will not, is nobody's partner.
    assert join.slice(([], []), ([], sales("<3, *>"))).punctuations == people("<3, *>")


@pytest.mark.spark
def test_an_anti_join_lets_out_what_will_have_no_partner(spark: SparkSession, tmp_path: Path) -> None:
    join = Running(spark, tmp_path, SemiJoin(("id",), ("seller",), anti=True), PERSON, SALE)
    first = join.slice(([(1, "a"), (2, "b"), (None, "c")], people("<{1,2}, *>")), ([(2, 5)], []))
    assert (first.tuples, first.kept) == ([(None, "c")], 1)
    assert first.punctuations == people("<2, *>")
    second = join.slice(([], []), ([], sales("<[1,2], *>")))
    assert (second.tuples, second.kept) == ([(1, "a")], 0)
    assert second.punctuations == people("<1, *>")


@pytest.mark.spark
def test_with_a_condition_right_tuples_are_kept_not_their_keys(spark: SparkSession, tmp_path: Path) -> None:
    operator = SemiJoin(("id",), ("seller",), residual="amount > 100 AND city = 'a'")
    join = Running(spark, tmp_path, operator, PERSON, SALE)
    assert join.slice(([(1, "a"), (1, "b")], []), ([(1, 100), (1, 50), (1, 50)], [])).kept == 4
    done = join.slice(([], []), ([(1, 101)], []))
    assert done.tuples == [(1, "a")]
    assert join.slice(([(1, "a")], people("<*, *>")), ([], sales("<*, *>"))).kept == 0


def test_schemes_of_the_right_are_promised_of_the_left() -> None:
    left, right = parse_schemes("id; city", PERSON), parse_schemes("seller", SALE)
    assert format_schemes(SemiJoin(("id",), ("seller",)).schemes(left, right)) == "id; city"
    assert format_schemes(SemiJoin(("id",), ("seller",)).schemes(left[1:], right)) == "city"
    assert SemiJoin(("id",), ("seller",)).schemes(left, ()) == ()
