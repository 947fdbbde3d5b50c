"""What punctuations cost: very many at once, and many among the tuples.

make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/punctuations.py
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.benchmarks import asking
from tests.benchmarks.measuring import Measure, scaled, take_turns
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.generators import sensors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CONSTANTS = scaled(100_000, at_least=1000)


def orders(path: Path, *, punctuated: bool) -> None:
    """Two tuples for each of many keys, then a punctuation for each key, in no order.

    The keys are even: no two constants make a range, as they would if all numbers were there.
    """
    random = Random(1)
    keys = [2 * number for number in range(CONSTANTS)]
    with path.open("w", encoding="utf-8") as file:
        file.write(f'<orders xmlns:punct="{PUNCT_NS}">\n')
        for amount in (1, 2):
            random.shuffle(keys)
            file.writelines(f"<order><id>{key}</id><amount>{amount}</amount></order>\n" for key in keys)
        if punctuated:
            random.shuffle(keys)
            file.writelines(f"<punct:order><id>{key}</id><amount>*</amount></punct:order>\n" for key in keys)
        file.write("</orders>\n")


def test_very_many_constants_in_one_slice(spark: SparkSession, bench: list[Measure], scratch: Path) -> None:
    paths = {"none": scratch / "orders.xml", "constants": scratch / "closed-orders.xml"}
    for name, path in paths.items():
        orders(path, punctuated=name == "constants")

    def run(name: str) -> float:
        source = xs.read(
            spark, paths[name], schema="id INT, amount INT", rowTag="order", schemes="id", maxBytesPerSlice="512m"
        )
        done = asking.run(source.group_by("id").agg("sum(amount) AS total"), scratch / "totals", "total")
        assert [one["tuples_out"] for one in done.slices] == [CONSTANTS]
        assert done.slices[0]["items_in"] >= CONSTANTS * (3 if name == "constants" else 2)
        return done.seconds

    run("constants")
    times = take_turns({name: partial(run, name) for name in paths}, within=30)
    more = [one - none for one, none in zip(times["constants"], times["none"], strict=True)]
    note = "closing as many groups, of 2 tuples each; no two of them make a range; the time that they add"
    name = "100,000 constants in one slice"
    bench.append(Measure(name, "s more", "less", more, target=2, note=note, is_compared=False))
    all_of_it, without = times["constants"], times["none"]
    bench.append(
        Measure("200,000 tuples and 100,000 constants in one slice", "s", "less", all_of_it, "without any", without)
    )


def test_many_among_the_tuples(spark: SparkSession, bench: list[Measure], warehouse: Path, scratch: Path) -> None:
    dense = scratch / "dense"
    hours = scaled(1000, at_least=10)
    sensors.write_sensors(dense, 2, hours * 10 // 6, 60, 600, seed=1)

    def run(directory: Path) -> float:
        done = asking.run(asking.warehouse(spark, directory), scratch / "dense-out", "hottest")
        reports = [operator for one in done.slices for operator in one["operators"]]
        tuples = sum(int(each["tuples_in"]) for each in reports if each["name"].startswith("sensor"))
        assert tuples >= 2 * 1000 * hours * 0.9
        return tuples / done.seconds

    run(dense)
    rate = take_turns(
        {name: partial(run, path) for name, path in (("1 in 10", dense), ("1 in 1,000", warehouse))}, within=40
    )
    name = "warehouse query with a punctuation for every 10 tuples"
    beside = "with one for every 1,000"
    bench.append(Measure(name, "tuples/s", "more", rate["1 in 10"], beside, rate["1 in 1,000"], ratio_target=0.6))
