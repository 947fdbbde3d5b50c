"""A query whose streams are joined in another way goes on with the tuples that its joins keep."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.dying import Died, dying
from tests.harness.nights import AT_NIGHT
from tests.xmlstream.runtime.change.test_changed_checkpoint import WRITES, House, Rows
from xmlstream.operators.state import closed_set
from xmlstream.operators.storage.store import Folder
from xmlstream.punct_ns.errors import StateError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.change import kept_inputs
from xmlstream.runtime.change.kept_inputs import KeptInputs
from xmlstream.runtime.checkpoint.commit_log import CommitLog

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session

SLICES = 6


def document(names: str, *items: tuple[Any, ...]) -> str:
    """A document of tuples; a None is a wildcard, and makes it a punctuation."""
    rows = []
    for item in items:
        tag = "p:t" if None in item else "t"
        cells = (f"<{n}>{'*' if v is None else v}</{n}>" for n, v in zip(names.split(), item, strict=True))
        rows.append(f"<{tag}>{''.join(cells)}</{tag}>")
    return f"<s xmlns:p='{PUNCT_NS}'>{''.join(rows)}</s>"


def bids(number: int) -> str:
    """Bids on the items of then and before, each twice; those before are closed one after the other."""
    some = [(item, price) for item in range(max(0, number - 1), number + 2) for price in (5, 5, 6)]
    return document("item price", *some, *([(number - 2, None)] if number > 1 else []))


def items(number: int) -> str:
    """An item, closed with its id; its seller comes before it, at once, or later."""
    last = number == SLICES - 1
    closed = [(None, seller, None) for seller in range(SLICES)] if last else [(None, number - 4, None)]
    return document("id seller what", (number, number // 2, "lamp"), (number, None, None), *closed)


def people(number: int) -> str:
    """A seller, who is closed at once."""
    return document("pid name", (SLICES - 1 - number, "Ann"), (SLICES - 1 - number, None))


RATES = {
    "join(join(item, person), bid)": (100, 5, 1),
    "join(join(bid, item), person)": (1, 5, 100),
    "multiway_join(bid, item, person)": (1, 100, 1),
}
"""The ways to join the three, and rates by which each is chosen."""

QUERY = "SELECT id, price, what, pid, name FROM bid JOIN item ON bid.item = item.id JOIN person ON seller = pid"


def market(home: Path) -> House:
    table = (
        "CREATE TABLE {0} ({1}) USING punctuated_xml"
        " OPTIONS (path 'HOME/{0}', rowTag 't', schemes '{2}', rate '{3}');\n"
    )
    tables = (
        table.format("bid", "item INT, price INT", "item", "RATE0")
        + table.format("item", "id INT, seller INT, what STRING", "id; seller", "RATE1")
        + table.format("person", "pid INT, name STRING", "pid", "RATE2")
    )
    return House(home, {"bid": bids, "item": items, "person": people}, tables)


def rated(plan: str, tables: str) -> str:
    for i, rate in enumerate(RATES[plan]):
        tables = tables.replace(f"RATE{i}", str(rate))
    return tables


def run(house: House, session: Any, plan: str, query: str = QUERY, out: str = "out", **options: Any) -> None:
    house.run(session, {out: query}, tables=rated(plan, house.tables), **options)


def whole(session: Any, home: Path, query: str = QUERY) -> Rows:
    """What the query answers to all, however it is joined."""
    house = market(home)
    house.send(*range(SLICES))
    run(house, session, "multiway_join(bid, item, person)", query)
    return house.rows("out")


@pytest.mark.parametrize(("one", "other"), [*permutations(RATES, 2)])
def test_each_way_goes_on_as_each_other_and_back(
    one: str, other: str, in_process: InProcessSession, tmp_path: Path
) -> None:
    house = market(tmp_path / "house")
    for number in range(SLICES):
        house.send(number)
        run(house, in_process, one if number % 3 == 0 else other, change=True)
    expected = whole(in_process, tmp_path / "whole")
    assert house.rows("out") == expected
    assert max(expected.values()) > 1


@pytest.mark.spark
def test_spark_goes_on_in_another_way_and_so_does_the_engine_in_process(
    in_process: InProcessSession, spark: Session, tmp_path: Path
) -> None:
    house, plans = market(tmp_path / "house"), list(RATES)
    for number in range(SLICES):
        house.send(number)
        run(house, in_process if number in (0, 3) else spark, plans[number % 3], change=True)
    assert house.rows("out") == whole(in_process, tmp_path / "whole")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_change_that_is_killed_leaves_one_way_or_the_other(in_process: InProcessSession, tmp_path: Path) -> None:
    one, other, _ = RATES
    house = market(tmp_path / "house")
    house.send(0, 1, 2)
    run(house, in_process, one)
    house.send(3)
    shutil.copytree(house.home, tmp_path / "kept")
    expected = whole(in_process, tmp_path / "whole") - house.rows("out")
    points, at = 1000, 0
    went_on: Counter[str] = Counter()
    while at < points:
        shutil.rmtree(house.home)
        shutil.copytree(tmp_path / "kept", house.home)
        with dying(at, *WRITES) as done, suppress(Died):
            run(house, in_process, other, out="new", change=True)
            points = len(done)
        with suppress(StateError):
            shutil.copytree(house.home / "state", tmp_path / "looked" / "state")
            run(house, in_process, one, state="../looked/state")
            went_on["before"] += 1
        shutil.rmtree(tmp_path / "looked")
        run(house, in_process, other, out="new", change=True)
        house.send(4, 5)
        run(house, in_process, other, out="new")
        assert house.rows("new") == expected, f"killed at {at}"
        went_on["killed"] += 1
        at += 1 if AT_NIGHT else 19
    print(points, dict(went_on))
    assert 0 < went_on["before"] < went_on["killed"]


def test_a_change_is_undone(in_process: InProcessSession, tmp_path: Path) -> None:
    one, other, _ = RATES
    house = market(tmp_path / "house")
    house.send(0, 1)
    run(house, in_process, one)
    run(house, in_process, other, change=True)
    house.send(2, 3, 4, 5)
    run(house, in_process, one, undo=True)
    assert house.rows("out") == whole(in_process, tmp_path / "whole")


def test_rows_without_the_attributes_that_joined_them_are_not_taken_apart(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    one, other, _ = RATES
    house, query = market(tmp_path / "house"), QUERY.replace("id, price, what, pid,", "price, what,")
    house.send(0, 1, 2, 3)
    run(house, in_process, other, query)
    with pytest.raises(StateError, match=r"join-2 keeps \d+ rows of join\(bid, item\) without item, id, which") as said:
        run(house, in_process, one, query, change=True)
    assert said.value.hint
    house.send(4, 5)
    run(house, in_process, other, query)
    assert house.rows("out") == whole(in_process, tmp_path / "whole", query)


def test_rows_are_not_taken_apart_where_keys_live_again(in_process: InProcessSession, tmp_path: Path) -> None:
    one, other, multi = RATES
    house = market(tmp_path / "house")
    lasting = document("pid name", (7, None)).replace("<p:t>", "<p:t p:lifespan='PT1H'>")
    house.send(0, 1, 2)
    (house.home / "person" / "3.xml").write_text(lasting)
    run(house, in_process, multi)
    run(house, in_process, other, change=True)
    with pytest.raises(StateError, match=r"join-2 keeps \d+ rows of join\(bid, item\), and what is closed has lifesp"):
        run(house, in_process, one, change=True)


def test_joins_under_another_condition_are_refused(in_process: InProcessSession, tmp_path: Path) -> None:
    one, other, _ = RATES
    house = market(tmp_path / "house")
    house.send(0, 1)
    run(house, in_process, one)
    for more, why in ((" AND price < pid", "under other conditions"), (" AND price = pid", "by other attributes")):
        with pytest.raises(StateError, match=f"it joins {why}"):
            run(house, in_process, other, f"{QUERY}{more}", change=True)


def test_a_static_table_is_joined_in_another_way(in_process: InProcessSession, tmp_path: Path) -> None:
    (tmp_path / "named.csv").write_text("p,called\n5,five\n5,cinq\n6,six\n")
    house = market(tmp_path / "house")
    named = (
        f"CREATE TABLE named (p INT, called STRING) USING csv OPTIONS (path '{tmp_path}/named.csv', header 'true');\n"
    )
    query = QUERY.replace("name FROM", "name, called FROM") + " JOIN named ON price = p"
    found: dict[str, Rows] = {}
    for plans in ([*RATES] * 2, ["multiway_join(bid, item, person)"] * SLICES):
        house = market(tmp_path / str(len(found)))
        for number, plan in zip(range(SLICES), plans, strict=True):
            house.send(number)
            house.run(in_process, {"out": query}, tables=rated(plan, house.tables) + named, change=True)
        found[plans[0]] = house.rows("out")
    one, other = found.values()
    assert one == other
    assert one.total() > 50


def test_closed_strings_that_lie_on_disk_are_closed_for_the_new_joins(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_set, "HELD", 2)
    found: list[tuple[Rows, dict[str, int]]] = []
    for plans in ([*RATES] * 2, [[*RATES][-1]] * SLICES):
        house = market(tmp_path / str(len(found)))
        tables = house.tables.replace("item INT", "item STRING").replace("id INT, s", "id STRING, s")
        for number, plan in enumerate(plans):
            house.send(number)
            house.run(in_process, {"out": QUERY}, tables=rated(plan, tables), change=True)
        last = CommitLog(Folder(house.home / "state").below("commits")).records()[-1]
        assert last.operators["item"].kept["added id"].rows > 0
        kept = {report.name: report.kept for report in last.report.operators if report.kept}
        found.append((house.rows("out"), kept))
    assert found[0] == found[1]


def parts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Tuples that lie in joined rows alone are lost."""
    patch.setattr(KeptInputs, "_missing", lambda *_: ())


def each_is_there_once(patch: pytest.MonkeyPatch) -> None:
    """Streams are taken for sets."""
    patch.setattr(
        kept_inputs, "factors", lambda products, known: dict.fromkeys((p for e in products for p in e.parts), 1)
    )


@pytest.mark.parametrize("fault", [parts_are_forgotten, each_is_there_once])
def test_a_fault_in_what_is_taken_apart_is_noticed(
    fault: Callable[[pytest.MonkeyPatch], None],
    in_process: InProcessSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, other, multi = RATES
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        test_each_way_goes_on_as_each_other_and_back(other, multi, in_process, tmp_path)


def test_a_lost_closed_string_is_noticed(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_set.SourceClosedSet, "on_runs", lambda _: ())
    with pytest.raises(AssertionError):
        test_closed_strings_that_lie_on_disk_are_closed_for_the_new_joins(in_process, tmp_path, monkeypatch)
