"""At any cut, what a query has put out and its answers so far are together the query over the input up to there.

Random plans over documents that come one after the other: another database answers over the tuples up to each cut. And
the queries of `data/`: the answers so far are what comes out when the inputs end there.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

import xmlstream as xs
from tests.harness.data_queries import Asked, queries, write_inputs
from tests.harness.nights import AT_NIGHT
from tests.harness.refused_in_process import is_refusal
from tests.harness.set_clock import set_clock
from tests.properties.plan_answers import OF_PLANS, Answers, Drawn, document, drawn_plans
from tests.properties.test_random_plans import TABLES
from xmlstream.diagnosis.so_far import results_so_far
from xmlstream.punct_ns.errors import QueryError

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr", "ignore:only the end of its input")

PLANS = settings().max_examples // (1 if AT_NIGHT else 2)


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def check(session: InProcessSession, drawn: Drawn, answers: Answers, home: Path) -> Counter[str]:
    """Runs the query up to each cut, and looks; returns how many answers there were at the cuts."""
    text = TABLES
    for name in "rs":
        text = text.replace(f"'{name}.xml'", f"'{home / name}'")
    query = xs.from_sql(session, text + drawn.query.spark)
    out: Counter[tuple[Any, ...]] = Counter()
    seen: Counter[str] = Counter()
    length = max(map(len, drawn.streams))
    for cut in range(length):
        for name, slices in zip("rs", drawn.streams, strict=True):
            (home / name).mkdir(parents=True, exist_ok=True)
            (home / name / f"{cut}.xml").write_text(
                document(slices[cut] if cut < len(slices) else []), encoding="utf-8"
            )
        for part in query.slices(home / "state", keep_open=True):
            out += rows(part.tuples)
        (answer,) = results_so_far(home / "state", session)
        prefix = {name: slices[: cut + 1] for name, slices in zip("rs", drawn.streams, strict=True)}
        expected = answers.of(drawn.query.duckdb, prefix)
        assert out + rows(answer.tuples) == expected, f"{drawn.query.spark}\n{prefix}"
        seen["provisional"] += answer.tuples.num_rows
        seen["undecided"] += any(one.undecided for one in answer.open)
    for part in query.slices(home / "state"):
        out += rows(part.tuples)
    assert out == answers.of(drawn.query.duckdb, dict(zip("rs", drawn.streams, strict=True))), drawn.query.spark
    (answer,) = results_so_far(home / "state", session)
    assert answer.closed
    assert answer.tuples.num_rows == 0
    return seen


def test_the_output_and_the_answers_so_far_are_the_query_over_the_prefix(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    seen: Counter[str] = Counter()
    answers = Answers()

    @settings(OF_PLANS, max_examples=PLANS)
    @given(drawn_plans())
    def holds(drawn: Drawn) -> None:
        seen["drawn"] += 1
        try:
            seen.update(check(in_process, drawn, answers, tmp_path / str(seen["drawn"])))
        except QueryError as error:
            if not is_refusal(error):
                raise
            seen["refused"] += 1

    holds()
    print(dict(seen))
    assert seen["provisional"]
    assert seen["refused"] <= seen["drawn"] / 3
    assert seen["undecided"] or not AT_NIGHT


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    """The inputs of the queries of `data/`, without their ends: what is left of each."""
    directory = tmp_path_factory.mktemp("inputs")
    write_inputs(directory, 400)
    ends = {}
    for path in directory.rglob("*.xml"):
        text = path.read_text(encoding="utf-8")
        at = text.rindex("</")
        lines = text[:at].splitlines(keepends=True)
        cut = len(lines) if path.name == "site.xml" else len(lines) * 3 // 5
        path.write_text("".join(lines[:cut]), encoding="utf-8")
        ends[path] = text[at:]
    return ends


BY_DAY = {"nexmark_q4", "nexmark_q5", "nexmark_q11", "nexmark_q16", "nexmark_q19", "tucker_2007_query_2"}
ASKED = [asked for asked in queries("32k") if not asked.writes and (AT_NIGHT or asked.name in BY_DAY)]
ASKED = [asked for asked in ASKED if asked.name != "xmark_q10"]  # documents of JSON have no arrays


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: str(asked.name))
def test_they_are_what_comes_out_when_the_input_ends_there(
    in_process: InProcessSession, unfinished: dict[Path, str], asked: Asked, tmp_path: Path
) -> None:
    inputs = next(path.parent for path in unfinished if path.name == "site.xml")

    def written() -> Counter[str]:
        lines = (path.read_text(encoding="utf-8").splitlines() for path in (tmp_path / "out.json").glob("slice-*"))
        return Counter(line for some in lines for line in some)

    (insert,) = asked.inserts(in_process, inputs, tmp_path)
    query = xs.Query(in_process, insert.root).insert_into(tmp_path / "out.json")
    with set_clock(seconds=4):
        query.run(tmp_path / "state", keep_open=True)
    before = written()
    (answer,) = results_so_far(tmp_path / "state", in_process)
    try:
        for path, end in unfinished.items():
            with path.open("a", encoding="utf-8") as file:
                file.write(end)
        with set_clock(seconds=4):
            query.run(tmp_path / "state")
    finally:
        for path, end in unfinished.items():
            path.write_text(path.read_text(encoding="utf-8").removesuffix(end), encoding="utf-8")
    assert written() - before == Counter(answer.objects())
    assert answer.tuples.num_rows or asked.name not in BY_DAY
