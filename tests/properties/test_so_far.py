"""At any cut, what a query has put out and its answers so far are together the query over the input up to there.

Random plans over documents that come one after the other. Another database answers over the tuples up to each cut.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.harness.refused_in_process import is_refusal
from tests.properties.plan_answers import Answers, Drawn, drawn_plans
from tests.properties.test_random_plans import SPACE, TABLES
from xmlstream.diagnosis.so_far import results_so_far
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.xml_form import PUNCT_NS, write_element

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr", "ignore:only the end of its input")

PLANS = settings().max_examples // (1 if AT_NIGHT else 2)


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def element(item: Any) -> str:
    if isinstance(item, Punctuation):
        return write_element(item, "r")
    named = zip(SPACE.schema.names, item, strict=True)
    return f"<r>{''.join(f'<{name}>{value}</{name}>' for name, value in named if value is not None)}</r>"


def write(directory: Path, number: int, items: list[Any]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    text = f"<rs xmlns:punct='{PUNCT_NS}'>{''.join(map(element, items))}</rs>"
    (directory / f"{number}.xml").write_text(text, encoding="utf-8")


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
            write(home / name, cut, slices[cut] if cut < len(slices) else [])
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

    @settings(
        max_examples=PLANS,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
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
