"""The queries of `data/` in both engines, as a table for the manual: equal or refused, and how long each took.

python -m tests.tools.both_engines                        over 100,000 events, and XMark of factor 0.01
python -m tests.tools.both_engines --events 2000          over fewer
python -m tests.tools.both_engines nexmark_q9 xmark_q8    some of them

Each query runs alone, from an empty checkpoint to the end of its input. Spark has run a query before the first one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import xmlstream as xs
from tests.harness.data_queries import Asked, Written, queries, refusal, run, write_inputs, written

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

EVENTS, FACTOR = 100_000, 0.01


def table(events: int, factor: float, names: Collection[str] = ()) -> Iterator[str]:
    """The lines of the table, in Markdown, each as soon as its query has run."""
    with tempfile.TemporaryDirectory() as directory:
        inputs = Path(directory) / "in"
        inputs.mkdir()
        write_inputs(inputs, events, factor)
        sessions: dict[str, Session] = {
            "spark": xs.open_session("local[2]"),
            "in process": xs.open_session(engine="duckdb"),
        }
        chosen = [asked for asked in queries() if not names or asked.name in names]
        run(queries()[-1].inserts(sessions["spark"], inputs, Path(directory) / "first"))
        yield "| query | results | Spark, s | in process, s |"
        yield "| --- | --- | --- | --- |"
        for asked in chosen:
            yield _line(asked, sessions, inputs, Path(directory) / "out")
        for session in sessions.values():
            session.stop()


def _line(asked: Asked, sessions: dict[str, Session], inputs: Path, out: Path) -> str:
    took, why = dict[str, float](), None
    for name, session in sessions.items():
        begin = time.perf_counter()
        why = refusal(session, asked, inputs, out / name)
        took[name] = time.perf_counter() - begin
    if why is not None:
        return f"| `{asked.name}` | refused: {why} | {took['spark']:.1f} | – |"
    spark, in_process = map(partial(_of, asked, out), sessions)
    same = "equal" if spark == in_process else f"differ in {', '.join(_differing(spark, in_process))}"
    return f"| `{asked.name}` | {same} | {took['spark']:.1f} | {took['in process']:.2f} |"


def _of(asked: Asked, out: Path, engine: str) -> dict[str, Written]:
    return dict(written(out / engine / asked.name))


def _differing(one: dict[str, Written], other: dict[str, Written]) -> list[str]:
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="query")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--factor", type=float, default=FACTOR)
    given = parser.parse_args()
    for line in table(given.events, given.factor, given.names):
        print(line, flush=True)


if __name__ == "__main__":
    main()
