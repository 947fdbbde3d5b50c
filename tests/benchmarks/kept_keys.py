"""What a slice of 10,000 tuples with random keys costs beside millions of kept tuples, and beside none.

    .ci/java .venv/bin/pytest --capture=no tests/benchmarks/kept_keys.py     on both engines, in a quarter of an hour
    BENCH_SCALE=0.2 .venv/bin/pytest --capture=no tests/benchmarks/kept_keys.py -k duckdb     two million, in a minute

Each slice also closes a hundred of the kept keys. A distinct meets new tuples alone; half of what comes to a join has
partners among the kept tuples; half of what comes to a group is of a kept one. Beside none, only the keys that are
closed are kept at first, and partners are those of the slice before. The seconds are those from commit to commit.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pytest

import xmlstream as xs
from tests.benchmarks import asking
from tests.benchmarks.measuring import Measure, scaled
from xmlstream.punct_ns.xml_form import PUNCT_NS

pytestmark = [pytest.mark.slow]

KEPT, SLICE, CLOSED, SLICES = scaled(10_000_000, at_least=200_000), 10_000, 100, 32
LEFT_OUT = 4
"""The first slices, which start the query."""

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Stream:
    """The documents of a stream of random keys: what is kept, if anything, and then one of each slice."""

    def __init__(self, directory: Path, seed: int) -> None:
        directory.mkdir(parents=True)
        self._directory, self._random = directory, np.random.default_rng(seed)

    def new(self, count: int) -> Numbers:
        """Keys that no other tuple has."""
        return self._random.integers(0, 1 << 62, count)

    def write(self, number: int, keys: Numbers, closed: Numbers | None = None) -> None:
        """Writes a document of tuples with these keys, and of punctuations behind them."""
        with (self._directory / f"{number:03d}.xml").open("w", encoding="utf-8") as file:
            file.write(f'<all xmlns:punct="{PUNCT_NS}">\n')
            for first in range(0, len(keys), 100_000):
                file.writelines(f"<one><k>{k}</k><v>7</v></one>\n" for k in keys[first : first + 100_000].tolist())
            for k in () if closed is None else closed.tolist():
                file.write(f"<punct:one><k>{k}</k><v>*</v></punct:one>\n")
            file.write("</all>\n")


def made(directory: Path, operator: str, kept: int) -> list[Path]:
    """The directories of an operator's inputs."""
    names = ["first", "second"] if operator == "join" else ["first"]
    streams = [Stream(directory / name, seed) for seed, name in enumerate(names)]
    known = streams[0].new(kept or CLOSED * SLICES)
    streams[0].write(0, known)
    for other in streams[1:]:
        other.write(0, other.new(0))
    parts = np.array_split(known, SLICES)
    last = known[:0]
    for number, part in enumerate(parts, 1):
        here = part[CLOSED : CLOSED + SLICE // 2] if kept else last
        news = [stream.new(SLICE) for stream in streams]
        last = news[0][SLICE // 2 :]
        for stream, new in zip(streams, news, strict=True):
            hits = here if stream is streams[-1] and operator != "distinct" else here[:0]
            stream.write(number, np.concatenate([hits, new[len(hits) :]]), part[:CLOSED])
    return [directory / name for name in names]


def distinct(read: Callable[[Path], xs.Query], first: Path) -> xs.Query:
    return read(first).distinct()


def group(read: Callable[[Path], xs.Query], first: Path) -> xs.Query:
    return read(first).group_by("k").agg("count(*) AS n", "max(v) AS most")


def join(read: Callable[[Path], xs.Query], first: Path, second: Path) -> xs.Query:
    return read(first).join(read(second).select("k AS k2", "v AS v2"), on="k = k2")


OPERATORS: dict[str, Callable[..., xs.Query]] = {"distinct": distinct, "group": group, "join": join}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_kept_keys(
    request: pytest.FixtureRequest, bench: list[Measure], scratch: Path, engine: str, operator: str
) -> None:
    session = request.getfixturevalue("spark") if engine == "spark" else xs.open_session(engine="duckdb")

    def read(path: Path) -> xs.Query:
        options = {"rowTag": "one", "schemes": "k", "maxFilesPerSlice": "1", "maxBytesPerSlice": "2g"}
        return xs.read(session, path, schema="k BIGINT, v INT", **options)

    took: list[list[float]] = []
    for kept in (KEPT, 0):
        inputs = made(scratch / f"{operator}-{engine}-{kept}", operator, kept)
        done = asking.run(OPERATORS[operator](read, *inputs), scratch / "kept-out", "one")
        # The last one ends the query.
        took.append(done.between_commits[LEFT_OUT : SLICES - 1])
    name = f"slice of {SLICE:,} tuples beside {KEPT:,} kept, random keys, {operator}, {engine}"
    of: dict[str, tuple[Callable[[list[float]], float], float]] = {
        "median": (median, 1.5),
        "mean": (fmean, 2),
        "worst": (max, 4),
    }
    for what, (by, target) in of.items():
        ours, theirs = [by(took[0])], [median(took[1]) if what == "worst" else by(took[1])]
        note = "beside the median where none are" if what == "worst" else ""
        bench.append(
            Measure(f"{name}: {what}", "s", "less", ours, "beside none", theirs, ratio_target=target, note=note)
        )
