"""The XMark queries of `data/auctions`, held to DuckDB's answers while the document grows and at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.auctions.answers import SITE
from tests.auctions.ledger import require_written, rows_of
from tests.auctions.site import plain, site
from tests.harness.nights import AT_NIGHT

if TYPE_CHECKING:
    import duckdb

    from xmlstream.session.engines import Session

DATA = Path(__file__).parents[2] / "data"

CUTS = ("</person>", "</closed_auction>")
"""The document is cut behind about half of these."""

ENGINE = "spark" if AT_NIGHT else "in_process"
"""By day `tests.xmlstream.queries.test_both_engines` holds Spark to the other engine."""

pytestmark = [pytest.mark.slow, *([pytest.mark.spark] if AT_NIGHT else [])]


@dataclass(frozen=True, slots=True)
class Step:
    """What was there after a step: what the document said by then, and what each query had written, in its order."""

    database: duckdb.DuckDBPyConnection
    rows: Mapping[str, list[tuple[str | None, ...]]]
    is_end: bool


@pytest.fixture(scope="module")
def steps(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Step]:
    """The queries, run together while the document grows."""
    session: Session = request.getfixturevalue(ENGINE)
    directory, whole = tmp_path_factory.mktemp("site"), (DATA / "xmark.xml").read_text(encoding="utf-8")
    inserts = [
        xs.from_sql(
            session,
            (DATA / "auctions" / f"{name}.sql").read_text(encoding="utf-8"),
            {"XMARK": str(directory / "site.xml")},
        ).insert_into(directory / name, xml="description" if name == "xmark_q13" else ())
        for name in SITE
    ]
    found = []
    for cut in (*CUTS, "</site>"):
        ends = [i for i in range(len(whole)) if whole.startswith(cut, i)]
        document = whole[: ends[len(ends) // 2] + len(cut)] if cut != "</site>" else whole
        (directory / "site.xml").write_text(document, encoding="utf-8")
        xs.run(inserts, directory / "state", keep_open=document != whole)
        database = site(document)
        rows = {
            name: [
                tuple(map(plain, row))
                for row in rows_of(directory / name, "row", [c[0] for c in database.sql(answer.asked).description])
            ]
            for name, answer in SITE.items()
        }
        found.append(Step(database, rows, document == whole))
    return found


@pytest.mark.parametrize("name", SITE)
def test_at_every_prefix_what_is_due_is_out_and_nothing_else(name: str, steps: list[Step]) -> None:
    answer = SITE[name]
    for step in steps:
        require_written(step.database, answer.asked if step.is_end else answer.asked_and_due, step.rows[name])
    assert steps[-1].rows[name]


def test_items_come_in_the_order_of_their_locations(steps: list[Step]) -> None:
    for step in steps:
        locations = [row[1] for row in step.rows["xmark_q19"]]
        assert locations == sorted(filter(None, locations))
