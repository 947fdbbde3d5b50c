"""A checkpoint that goes on with another query: what it keeps, what it answers, and whatever is killed meanwhile."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from lxml import etree

import xmlstream as xs
from tests.harness.dying import Died, dying
from tests.harness.nights import AT_NIGHT
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.operators.storage.store import Folder
from xmlstream.punct_ns.errors import StateError, UngrammaticalStream
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.checkpoint.remote_checkpoint import RemoteCheckpoint

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session

Rows = Counter[tuple[tuple[str, str], ...]]


def sensor(name: str, hour: int) -> str:
    """The reports of a sensor: of an hour, which is over then, and the first one of the next."""
    reports = [(hour, minute, 60 + (7 * hour + 3 * minute + len(name)) % 11) for minute in range(3)]
    rows = "".join(
        f"<t><sid>{name}</sid><hour>{h}</hour><min>{m}</min><temp>{temp}</temp></t>"
        for h, m, temp in [*reports, (hour + 1, 0, 63.5)]
    )
    closed = f"<p:t><sid>*</sid><hour>{hour}</hour><min>*</min><temp>*</temp></p:t>"
    return f"<s xmlns:p='{PUNCT_NS}'>{rows}{closed}</s>"


def items(number: int) -> str:
    """Two items of an auction house; each id is unique."""
    rows = "".join(f"<t><id>{i}</id><first>{10 + i}</first></t>" for i in (2 * number, 2 * number + 1))
    closed = "".join(f"<p:t><id>{i}</id><first>*</first></p:t>" for i in (2 * number, 2 * number + 1))
    return f"<s xmlns:p='{PUNCT_NS}'>{rows}{closed}</s>"


def bids(number: int) -> str:
    """Bids on these items and those before, of which one is closed then."""
    some = [(item, 3 + (5 * item + number) % 7) for item in range(max(0, 2 * number - 2), 2 * number + 2)]
    rows = "".join(f"<t><item>{item}</item><price>{price}</price></t>" for item, price in some)
    closed = "".join(f"<p:t><item>{i}</item><price>*</price></p:t>" for i in (2 * number - 2, 2 * number - 1) if i >= 0)
    return f"<s xmlns:p='{PUNCT_NS}'>{rows}{closed}</s>"


@dataclass(frozen=True)
class House:
    """Two streams in directories that fill, and queries over them."""

    home: Path
    documents: dict[str, Callable[[int], str]]
    tables: str

    def send(self, *numbers: int) -> None:
        for name, document in self.documents.items():
            (self.home / name).mkdir(parents=True, exist_ok=True)
            for number in numbers:
                (self.home / name / f"{number}.xml").write_text(document(number))

    def run(
        self, session: Any, queries: dict[str, str], state: str = "state", tables: str = "", **options: Any
    ) -> None:
        sinks = "".join(
            f"CREATE TABLE {out} USING punctuated_xml OPTIONS (path '{self.home / out}', rowTag 'row');\n"
            f"INSERT INTO {out} {query};\n"
            for out, query in queries.items()
        )
        declared = (tables or self.tables).replace("HOME", str(self.home))
        xs.run(xs.inserts_from_sql(session, declared + sinks), self.home / state, keep_open=True, **options)

    def rows(self, out: str) -> Rows:
        """The tuples in an output."""
        return Counter(
            tuple((child.tag, child.text or "") for child in element)
            for path in (self.home / out).glob("slice-*.xml")
            for element in etree.parse(path).getroot().iterfind("row")
        )


def warehouse(home: Path) -> House:
    table = (
        "CREATE TABLE {0} (sid STRING, hour INT, min INT, temp DOUBLE) USING punctuated_xml"
        " OPTIONS (path 'HOME/{0}', rowTag 't', domains 'min 0..59', schemes 'hour');\n"
    )
    documents = {"north": lambda hour: sensor("north", hour), "south": lambda hour: sensor("southern", hour)}
    return House(home, documents, table.format("north") + table.format("south"))


def auctions(home: Path) -> House:
    tables = (
        "CREATE TABLE item (id INT, first INT) USING punctuated_xml"
        " OPTIONS (path 'HOME/item', rowTag 't', schemes 'id');\n"
        "CREATE TABLE bid (item INT, price INT) USING punctuated_xml"
        " OPTIONS (path 'HOME/bid', rowTag 't', schemes 'item');\n"
    )
    return House(home, {"item": items, "bid": bids}, tables)


BOTH = "(SELECT temp, hour FROM north UNION ALL SELECT temp, hour FROM south)"
HOTTEST = f"SELECT max(temp) AS hottest, hour FROM {BOTH} GROUP BY hour"
PRICE = "SELECT id, first + sum(price) AS final FROM item JOIN bid ON id = item GROUP BY id, first"


@dataclass(frozen=True)
class Kind:
    """A kind of change: of which house, from which query to which, with which tables."""

    house: Callable[[Path], House]
    before: str
    after: str
    tables: Callable[[str], str] = field(default=lambda text: text)


KINDS = {
    "a condition on results": Kind(warehouse, HOTTEST, f"{HOTTEST} HAVING max(temp) > 68"),
    "other names": Kind(
        warehouse, HOTTEST, f"SELECT hour AS h, max(t) AS top FROM {BOTH.replace('temp', 'temp AS t')} GROUP BY hour"
    ),
    "a condition on the groups": Kind(warehouse, HOTTEST, f"{HOTTEST.replace(' GROUP', ' WHERE hour > 2 GROUP')}"),
    "a narrower condition on the groups": Kind(
        warehouse,
        HOTTEST.replace(" GROUP", " WHERE hour > 1 GROUP"),
        HOTTEST.replace(" GROUP", " WHERE hour > 2 GROUP"),
    ),
    "an aggregate less": Kind(
        warehouse, HOTTEST.replace("max(temp)", "min(temp) AS l, avg(temp) AS a, max(temp)"), HOTTEST
    ),
    "other aggregates of kept tuples": Kind(
        warehouse,
        HOTTEST.replace("max(temp)", "count(DISTINCT temp) AS n, max(temp)").replace("hottest", "h, sum(hour) AS s"),
        HOTTEST.replace("max(temp)", "min(temp) AS l, avg(temp)"),
    ),
    "a column of a source, renamed": Kind(
        warehouse,
        HOTTEST,
        HOTTEST.replace("temp, hour", "temp, h AS hour"),
        lambda text: (
            text.replace(" hour INT", " h INT")
            .replace("rowTag", "path.h 'hour', rowTag")
            .replace("schemes 'hour'", "schemes 'h'")
        ),
    ),
    "other schemes, and a source's columns less": Kind(
        warehouse,
        HOTTEST,
        HOTTEST,
        lambda text: text.replace("sid STRING, ", "").replace("schemes 'hour'", "schemes 'hour; min'"),
    ),
    "another table name": Kind(
        warehouse,
        HOTTEST,
        HOTTEST.replace("FROM north", "FROM cold"),
        lambda text: text.replace("TABLE north", "TABLE cold"),
    ),
    "wider domains": Kind(warehouse, HOTTEST, HOTTEST, lambda text: text.replace("0..59", "0..99")),
    "a computed column above a join": Kind(auctions, PRICE, f"SELECT id, final, 2 * final AS double FROM ({PRICE})"),
    "a condition that goes below a join": Kind(auctions, PRICE, f"{PRICE.replace(' GROUP', ' WHERE id > 2 GROUP')}"),
    "an input of a join with fewer columns": Kind(
        auctions,
        "SELECT id, first, price FROM item JOIN bid ON id = item",
        "SELECT id, price AS p FROM item JOIN bid ON id = item",
    ),
    "an input of a join under other names": Kind(
        auctions,
        "SELECT id, first, price FROM item JOIN bid ON id = item",
        "SELECT i, f, price FROM (SELECT id AS i, first AS f FROM item) JOIN bid ON i = item WHERE f > 11",
    ),
}


def alone(session: Any, kind: Kind, home: Path, before: int, slices: int) -> Rows:
    """What the new query answers by itself after the first slices."""
    house, answered = kind.house(home), Counter[Any]()
    for numbers in (range(before), range(before, slices)):
        house.send(*numbers)
        house.run(session, {"out": kind.after}, tables=kind.tables(house.tables))
        answered = house.rows("out") - answered
    return answered


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", KINDS)
def test_a_changed_query_goes_on_with_what_was_kept(name: str, in_process: InProcessSession, tmp_path: Path) -> None:
    kind, house = KINDS[name], KINDS[name].house(tmp_path)
    house.send(0, 1)
    house.run(in_process, {"out": kind.before})
    for numbers in ([2], [3, 4]):
        house.send(*numbers)
        house.run(in_process, {"new": kind.after}, tables=kind.tables(house.tables), change=numbers == [2])
    expected = alone(in_process, kind, tmp_path / "alone", 2, 5)
    assert house.rows("new") == expected
    assert expected


WRITES = [(Folder, name) for name in ("move", "link", "create", "replace", "delete", "write")]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("house_of", [warehouse, *([auctions] if AT_NIGHT else [])])
def test_a_change_that_is_killed_leaves_the_old_query_or_the_new_one(
    house_of: Callable[[Path], House], in_process: InProcessSession, tmp_path: Path
) -> None:
    kind = next(k for k in KINDS.values() if k.house is house_of and "WHERE" in k.after)
    house = house_of(tmp_path / "house")
    house.send(0, 1)
    house.run(in_process, {"out": kind.before})
    house.send(2)
    shutil.copytree(house.home, tmp_path / "kept")
    expected = alone(in_process, kind, tmp_path / "alone", 2, 4)
    points, at = 1000, 0
    went_on: Counter[str] = Counter()
    while at < points:
        shutil.rmtree(house.home)
        shutil.copytree(tmp_path / "kept", house.home)
        with dying(at, *WRITES) as done, suppress(Died):
            house.run(in_process, {"new": kind.after}, change=True)
            points = len(done)
        with suppress(StateError):
            # It has the state of the old query, or belongs to the new one; it commits nothing here.
            shutil.copytree(house.home / "state", tmp_path / "looked" / "state")
            house.run(in_process, {"out": kind.before}, state="../looked/state")
            went_on["before"] += 1
        shutil.rmtree(tmp_path / "looked")
        house.run(in_process, {"new": kind.after}, change=True)
        house.send(3)
        house.run(in_process, {"new": kind.after})
        assert house.rows("new") == expected, f"killed at {at}"
        went_on["killed"] += 1
        at += 1 if AT_NIGHT else 17
    print(points, dict(went_on))
    assert 0 < went_on["before"] < went_on["killed"]


def ordered(home: Path, *hours: int) -> str:
    """Reports without punctuations, in a document."""
    rows = "".join(f"<t><hour>{hour}</hour><temp>{10 * n + hour}</temp></t>" for n, hour in enumerate(hours))
    home.mkdir(parents=True, exist_ok=True)
    number = len(list(home.iterdir()))
    (home / f"{number}.xml").write_text(f"<s>{rows}</s>")
    return f"{number}.xml"


SLACK = "CREATE TABLE report (hour INT, temp INT) USING punctuated_xml OPTIONS (path 'HOME/report', rowTag 't'{});\n"
COUNTED = "SELECT hour, count(*) AS n FROM report GROUP BY hour"


def slack(home: Path, rule: str) -> House:
    return House(home, {}, SLACK.format(f", {rule}" if rule else ""))


def hours(house: House, out: str) -> dict[int, int]:
    return {int(dict(row)["hour"]): int(dict(row)["n"]) for row in house.rows(out)}


def test_a_query_with_more_slack_waits_longer_and_answers_no_group_twice(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    strict = slack(tmp_path, "punctuate 'order of hour'")
    lenient = slack(tmp_path, "punctuate 'order of hour, slack 2', ungrammatical 'divert'")
    ordered(tmp_path / "report", 1, 2, 3)
    strict.run(in_process, {"out": COUNTED})
    assert hours(strict, "out") == {1: 1, 2: 1}
    ordered(tmp_path / "report", 4, 3)
    with pytest.raises(UngrammaticalStream, match="with slack 1 no tuple") as raised:
        strict.run(in_process, {"out": COUNTED})
    assert "--change" in str(raised.value.hint)
    # Hour 2 is within the slack, and was answered by the query before.
    ordered(tmp_path / "report", 2, 4, 6)
    lenient.run(in_process, {"new": COUNTED}, change=True)
    assert hours(lenient, "new") == {3: 2}
    (letters,) = (tmp_path / "new" / "_dead_letters").iterdir()
    assert letters.read_text().count("ungrammatical") == 1
    ordered(tmp_path / "report", 4, 9)
    lenient.run(in_process, {"new": COUNTED})
    assert hours(lenient, "new") == {3: 2, 4: 3, 6: 1}


@pytest.mark.parametrize("rule", ["", "schemes 'hour'"])
def test_what_a_rule_has_closed_stays_closed_when_it_is_left_out(
    rule: str, in_process: InProcessSession, tmp_path: Path
) -> None:
    before, after = slack(tmp_path, "punctuate 'order of hour'"), slack(tmp_path, rule)
    ordered(tmp_path / "report", 1, 2, 3)
    before.run(in_process, {"out": COUNTED})
    ordered(tmp_path / "report", 3, 2)
    with pytest.raises(UngrammaticalStream, match="which matches it"):
        after.run(in_process, {"new": COUNTED}, change=True)


def test_a_new_rule_closes_what_comes_from_then_on(in_process: InProcessSession, tmp_path: Path) -> None:
    before, after = slack(tmp_path, "schemes 'hour'"), slack(tmp_path, "punctuate 'order of hour'")
    ordered(tmp_path / "report", 1, 2, 3)
    before.run(in_process, {"out": COUNTED})
    ordered(tmp_path / "report", 3, 4)
    after.run(in_process, {"new": COUNTED}, change=True)
    assert hours(after, "new") == {1: 1, 2: 1, 3: 2}


def test_what_narrower_domains_have_closed_stays_closed(in_process: InProcessSession, tmp_path: Path) -> None:
    def declared(domains: str) -> str:
        return (
            "CREATE TABLE report (sid INT NOT NULL, hour INT) USING punctuated_xml"
            f" OPTIONS (path 'HOME/report', rowTag 't', domains 'sid {domains}', schemes 'sid, hour',"
            " ungrammatical 'drop');"
        )

    def send(number: int, *elements: str) -> None:
        (tmp_path / "report").mkdir(exist_ok=True)
        cells = [each.split() for each in elements]
        texts = [f"<{tag}><sid>{sid}</sid><hour>{hour}</hour></{tag}>" for tag, sid, hour in cells]
        (tmp_path / "report" / f"{number}.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'>{''.join(texts)}</s>")

    two, three = (House(tmp_path, {}, declared(domains)) for domains in ("1..2", "1..3"))
    send(0, "t 1 5", "t 2 5", "p:t 1 5", "p:t 2 5", "t 1 6", "p:t 1 6")
    two.run(in_process, {"out": COUNTED})
    assert hours(two, "out") == {5: 2}
    send(1, "t 3 5", "t 3 6", "t 2 6", "p:t 2 6", "t 3 6", "p:t 3 6")
    three.run(in_process, {"new": COUNTED}, change=True)
    assert hours(three, "new") == {6: 4}


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_a_static_table_is_joined_to_results_from_then_on(
    join: str, in_process: InProcessSession, tmp_path: Path
) -> None:
    house = warehouse(tmp_path / "house")
    (tmp_path / "named.csv").write_text("h,called\n0,night\n1,late\n2,early\n")
    table = (
        f"CREATE TABLE named (h INT, called STRING) USING csv OPTIONS (path '{tmp_path}/named.csv', header 'true');\n"
    )
    joined = f"SELECT r.hour, called, hottest FROM ({HOTTEST}) AS r {join} named ON r.hour = named.h"
    house.send(0)
    house.run(in_process, {"out": HOTTEST})
    for number in range(1, 4):
        house.send(number)
        house.run(in_process, {"new": joined}, tables=house.tables + table, change=number == 1)
    called = {dict(row)["hour"]: dict(row).get("called") for row in house.rows("new")}
    assert called == {"1": "late", "2": "early", **({"3": None} if join == "LEFT JOIN" else {})}
    house.send(4)
    house.run(in_process, {"last": HOTTEST}, change=True)
    assert house.rows("last").total() == 1


def test_outputs_are_added_left_out_and_put_in_another_order(in_process: InProcessSession, tmp_path: Path) -> None:
    house = warehouse(tmp_path)
    every, coldest = f"SELECT hour, temp FROM {BOTH}", f"SELECT hour, min(temp) AS cold FROM {BOTH} GROUP BY hour"
    house.send(0)
    house.run(in_process, {"every": every, "hottest": HOTTEST})
    house.send(1)
    house.run(in_process, {"cold": coldest, "hottest": HOTTEST}, change=True)
    house.send(2)
    house.run(in_process, {"cold": coldest, "hottest": HOTTEST})
    whole = warehouse(tmp_path / "whole")
    whole.send(0, 1, 2)
    whole.run(in_process, {"hottest": HOTTEST})
    assert house.rows("hottest") == whole.rows("hottest")
    since = warehouse(tmp_path / "since")
    since.send(1, 2)
    since.run(in_process, {"cold": coldest})
    assert house.rows("cold") == since.rows("cold")
    assert house.rows("every").total() == 8


def test_a_result_does_not_go_on_with_the_groups_of_another(in_process: InProcessSession, tmp_path: Path) -> None:
    house = warehouse(tmp_path)
    north, south = (f"SELECT hour, max(temp) AS top FROM {name} GROUP BY hour" for name in ("north", "south"))
    house.send(0)
    house.run(in_process, {"a": north, "b": south})
    for queries in ({"a": south, "b": north}, {"a": south}):
        with pytest.raises(StateError, match=r"its result was not computed from (north|south)"):
            house.run(in_process, queries, change=True)
    house.run(in_process, {"b": south}, change=True)


def test_a_change_is_undone_until_the_next_slice(in_process: InProcessSession, tmp_path: Path) -> None:
    house = warehouse(tmp_path)
    renamed = HOTTEST.replace("hottest", "top")
    house.send(0)
    house.run(in_process, {"out": HOTTEST})
    house.run(in_process, {"new": renamed}, change=True)
    with pytest.raises(StateError, match=r"the query before the change in .* is another one"):
        house.run(in_process, {"new": renamed}, undo=True)
    house.send(1)
    house.run(in_process, {"out": HOTTEST}, undo=True)
    assert house.rows("out").total() == 2
    with pytest.raises(StateError, match="was not changed"):
        house.run(in_process, {"out": HOTTEST}, undo=True)
    house.send(2)
    house.run(in_process, {"new": renamed}, change=True)
    with pytest.raises(StateError, match="a slice was committed since"):
        house.run(in_process, {"out": HOTTEST}, undo=True)
    assert house.rows("new").total() == 1


def test_a_second_change_is_undone_with_all_that_was_published(in_process: InProcessSession, tmp_path: Path) -> None:
    house = warehouse(tmp_path)
    wider = f"SELECT hottest, hour, 2 * hottest AS twice FROM ({HOTTEST})"
    for number in range(3):
        house.send(number)
        house.run(in_process, {"out": wider if number > 1 else HOTTEST}, change=True)
    house.run(in_process, {"new": HOTTEST}, change=True)
    house.send(3)
    house.run(in_process, {"out": wider}, undo=True)
    assert house.rows("out").total() == 4
    assert not house.rows("new")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (HOTTEST.replace("max(temp)", "min(temp)"), r"group_by .*its groups were kept without min\(temp\)"),
        (HOTTEST.replace(" GROUP", " WHERE temp > 3 GROUP"), "the condition temp > 3 below it changes what it keeps"),
        (f"SELECT DISTINCT temp, hour FROM {BOTH}", "the query before has no such operator"),
        (HOTTEST.replace("FROM south", "FROM north AS s WHERE min > 3"), "merge"),
    ],
)
def test_what_cannot_go_on_is_refused_and_touches_nothing(
    query: str, reason: str, in_process: InProcessSession, tmp_path: Path
) -> None:
    house = warehouse(tmp_path)
    house.send(0)
    house.run(in_process, {"out": HOTTEST})
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "ended.json"}
    with pytest.raises(StateError, match=reason) as raised:
        house.run(in_process, {"new": query}, change=True)
    assert raised.value.hint
    with pytest.raises(StateError, match="belongs to another query") as raised:
        house.run(in_process, {"new": query})
    assert "xmlstream change" in str(raised.value.hint)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and p.name != "ended.json"} == files


def test_a_result_whose_columns_mean_something_else_needs_another_place(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    house = warehouse(tmp_path)
    house.send(0)
    house.run(in_process, {"out": HOTTEST})
    house.send(1)
    other = f"SELECT hottest, hour - 5 AS hour FROM ({HOTTEST})"
    with pytest.raises(StateError, match="its column hour means something else"):
        house.run(in_process, {"out": other}, change=True)
    house.run(in_process, {"out": f"SELECT hottest, hour, 2 * hottest AS twice FROM ({HOTTEST})"}, change=True)
    assert house.rows("out").total() == 2


@pytest.mark.spark
def test_spark_changes_a_query_that_has_begun_in_process(
    in_process: InProcessSession, spark: Session, tmp_path: Path
) -> None:
    house, after = warehouse(tmp_path), HOTTEST.replace(" GROUP", " WHERE hour > 1 GROUP")
    house.send(0, 1)
    house.run(in_process, {"out": HOTTEST})
    house.send(2)
    house.run(spark, {"new": after}, change=True)
    house.send(3)
    house.run(in_process, {"new": after})
    whole = warehouse(tmp_path / "whole")
    whole.send(0, 1, 2, 3)
    whole.run(in_process, {"new": after})
    assert house.rows("new") == whole.rows("new")


def test_a_checkpoint_in_an_object_store_is_changed_by_one_request(
    in_process: InProcessSession, bucket: str, tmp_path: Path
) -> None:
    house = warehouse(tmp_path / "house")
    after = HOTTEST.replace(" GROUP", " WHERE hour > 1 GROUP")

    def run(query: str, out: str, **options: Any) -> None:
        sink = f"CREATE TABLE o USING punctuated_xml OPTIONS (path '{house.home / out}', rowTag 'row');\n"
        text = f"{house.tables.replace('HOME', str(house.home))}{sink}INSERT INTO o {query};"
        xs.run(xs.inserts_from_sql(in_process, text), bucket, keep_open=True, **options)

    def killed(owner: type, name: str, is_there: Callable[..., bool] = lambda *_: True) -> None:
        original = getattr(owner, name)

        def dies(*args: Any) -> Any:
            if is_there(*args):
                raise Died
            return original(*args)

        with mock.patch.object(owner, name, dies), pytest.raises(Died):
            run(after, "new", change=True)

    house.send(0, 1)
    run(HOTTEST, "out")
    house.send(2)
    killed(ObjectStore, "write_file")
    killed(ObjectStore, "create", lambda _, key, pieces: "`hour` > 1" in b"".join(pieces).decode())
    with pytest.raises(StateError, match="belongs to another query"):
        run(after, "new")
    killed(RemoteCheckpoint, "note")
    with pytest.raises(StateError, match="belongs to another query"):
        run(HOTTEST, "out")
    run(after, "new")
    house.send(3)
    run(after, "new")
    whole = warehouse(tmp_path / "whole")
    whole.send(0, 1, 2, 3)
    whole.run(in_process, {"new": after})
    assert house.rows("new") == whole.rows("new")
    with pytest.raises(xs.UsageError, match="undo"):
        run(HOTTEST, "out", undo=True)
