"""What a small slice costs in process, in numbers that no busy machine changes: none may grow unnoticed."""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.samples.joined_streams import EACH, Shape, join_of, write_streams
from xmlstream.sources.generators.auction_documents import write_auctions
from xmlstream.sources.generators.auction_house import House

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

CLOSING_PRICE = Path("data/auctions/tucker_2007_query_2.sql")


class Counted:
    """DuckDB's connection, which counts its statements."""

    def __init__(self, connection: Any, counts: Counter[str]) -> None:
        self._connection, self._counts = connection, counts

    def execute(self, *given: Any, **named: Any) -> Any:
        self._counts["statements"] += 1
        return self._connection.execute(*given, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class Costs:
    """Counts statements and syncs, slice by slice."""

    def __init__(self, session: InProcessSession, monkeypatch: pytest.MonkeyPatch) -> None:
        self._counts: Counter[str] = Counter()
        self._seen: list[Counter[str]] = []
        sync = os.fsync

        def synced(descriptor: int) -> None:
            self._counts["syncs"] += 1
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", synced)
        engine: Any = session.engine
        monkeypatch.setattr(engine, "_connection", Counted(engine._connection, self._counts))

    def note(self, slice_: dict[str, Any]) -> None:
        """Called after each slice."""
        self._seen.append(self._counts + Counter(tuples=slice_["tuples_out"]))

    @property
    def of_slices(self) -> set[tuple[int, int]]:
        """The statements and syncs of each slice but the first three and the last."""
        costs = [after - before for before, after in pairwise(self._seen)][2:-1]
        return {(each["statements"], each["syncs"]) for each in costs}


@pytest.fixture
def costs(in_process: InProcessSession, monkeypatch: pytest.MonkeyPatch) -> Costs:
    return Costs(in_process, monkeypatch)


@pytest.mark.parametrize(
    ("streams", "shape", "most"),
    [(2, "star", 11), (5, "path", 29), (5, "star", 15), (10, "path", 25), (20, "star", 45)],
)
def test_a_small_slice_of_a_join_of_many_takes_no_statement(
    streams: int, shape: Shape, most: int, in_process: InProcessSession, tmp_path: Path, costs: Costs
) -> None:
    write_streams(tmp_path, streams, slices=5)
    query = xs.from_sql(in_process, join_of(tmp_path, streams, shape))
    done = query.run(tmp_path / "out", row_tag="row", on_slice=costs.note)
    assert done.tuples_out == 5 * EACH
    ((statements, syncs),) = costs.of_slices
    assert statements == 0
    # A document that was found and kept tuples for each stream; five inputs along a path are joined two by two.
    assert syncs <= most


def test_a_small_slice_of_the_closing_price_takes_one_statement(
    in_process: InProcessSession, tmp_path: Path, costs: Costs
) -> None:
    write_auctions(tmp_path, 10_000, House(seed=2, bid_streams=2))
    text = CLOSING_PRICE.read_text(encoding="utf-8").replace("'55m'", "'110k'").replace("'160m'", "'320k'")
    query = xs.from_sql(in_process, text, {"AUCTIONS": str(tmp_path)})
    query.run(tmp_path / "out", row_tag="row", on_slice=costs.note)
    # That of the groups.
    assert max(statements for statements, _ in costs.of_slices) == 1
    assert max(syncs for _, syncs in costs.of_slices) <= 9
