"""A run with a monitor: its numbers are those of the metrics file, and who is silent is named until it speaks."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import xmlstream as xs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PUNCT = 'xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct"'


def hours(sid: str, numbers: range) -> str:
    """A report and a punctuation of each hour."""
    return "".join(
        f"<r><sid>{sid}</sid><hour>{hour}</hour></r><punct:r><sid>*</sid><hour>{hour}</hour></punct:r>"
        for hour in numbers
    )


def asked(url: str, path: str) -> Any:
    with urllib.request.urlopen(url + path, timeout=300) as answer:
        return answer.read()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_silent_input_is_named_until_it_speaks_and_numbers_are_those_of_the_metrics_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    paths = [tmp_path / f"s{n}.xml" for n in (1, 2)]
    for path, last in zip(paths, (4, 2), strict=True):
        path.write_text(f"<s {PUNCT}>{hours(path.stem, range(last))}", encoding="utf-8")
    read = [xs.read(spark, path, schema="sid STRING, hour INT", rowTag="r", schemes="hour") for path in paths]
    counted = read[0].union_all(read[1]).group_by("hour").agg("count(*) AS n")
    query: Any = counted.start(
        tmp_path / "out", tmp_path / "state", monitor=True, metrics=tmp_path / "m.jsonl", name="counted"
    )
    url = query.monitor
    try:
        assert f'is running: <a href="{url}"' in query._repr_html_()
        until(lambda: json.loads(asked(url, "healthz"))["slices"] > 0)

        def needs() -> list[Any]:
            (waits,) = json.loads(asked(url, "waiting.json"))["waits"]
            return [
                (e["key"], n["source"], n["missing"]) for e in waits["examples"] for n in e["needs"] if n["missing"]
            ]

        until(lambda: {n for _, n, _ in needs()} == {"s2"})
        assert needs() == [({"hour": "2"}, "s2", ["<*, 2>"]), ({"hour": "3"}, "s2", ["<*, 3>"])]
        (axis,) = json.loads(asked(url, "closed.json"))
        assert [row["lacks"] for row in axis["rows"]] == ["", "2 to 3"]
        with paths[1].open("a", encoding="utf-8") as file:
            file.write(hours("s2", range(2, 4)))
        until(lambda: json.loads(asked(url, "waiting.json"))["waits"] == [])
        assert json.loads(asked(url, "key.json?attribute=hour&value=3"))["result"]["out"]
        slices = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text(encoding="utf-8").splitlines()]
        families = text_string_to_metric_families(asked(url, "metrics").decode())  # type: ignore[no-untyped-call]
        found = {s.name: s.value for family in families for s in family.samples if not s.labels}
        assert found["xmlstream_slices_total"] == len(slices)
        assert found["xmlstream_items_in_total"] == sum(one["items_in"] for one in slices)
        assert found["xmlstream_tuples_out_total"] == sum(one["tuples_out"] for one in slices) == 4
    finally:
        query.stop()
    assert "has ended" in query._repr_html_()

    def is_gone() -> bool:
        try:
            asked(url, "healthz")
        except OSError:
            return True
        return False

    until(is_gone)
