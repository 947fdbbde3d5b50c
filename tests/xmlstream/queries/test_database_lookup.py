"""A table of PostgreSQL that a query looks up: its types, when it is read and read again, and what is never written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import xmlstream as xs
from tests.harness.nights import SPARK_IN_THE_REST
from tests.harness.postgres import PASSWORD, postgres
from xmlstream.punct_ns.errors import InputError, QueryError, StateError, UsageError

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture
def rates(database: str) -> str:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS rates")
        connection.execute("CREATE TABLE rates (c varchar(3), rate numeric(6,2), note text)")
        connection.execute("INSERT INTO rates VALUES ('eur', 1.1, 'a'), ('usd', 1, NULL)")
    return database


class Query:
    """Payments, each with the rate of its currency."""

    def __init__(self, session: Session, directory: Path, database: str) -> None:
        self.session, self.directory, self.database = session, directory, database
        (directory / "in").mkdir()

    def text(self, version: str = "") -> str:
        options = f"url '{self.database}'{f', version {version!r}' if version else ''}"
        return f"""
            CREATE TABLE pay (c STRING, n INT) USING punctuated_xml OPTIONS (path '{self.directory}/in', rowTag 'pay');
            CREATE TABLE rates (c STRING, rate DECIMAL(6,2)) USING postgresql OPTIONS ({options});
            SELECT n, rate FROM pay JOIN rates ON pay.c = rates.c"""

    def pay(self, number: int, currency: str) -> None:
        text = f"<r><pay><c>{currency}</c><n>{number}</n></pay></r>"
        (self.directory / "in" / f"{number}.xml").write_text(text, encoding="utf-8")

    def run(self, version: str = "", **settings: Any) -> None:
        query = xs.from_sql(self.session, self.text(version))
        there: dict[str, Any] = {
            "output": self.directory / "out",
            "checkpoint": self.directory / "state",
            "keep_open": True,
        }
        query.run(**there, **settings)

    def rows(self) -> list[str]:
        text = "".join(path.read_text() for path in sorted((self.directory / "out").glob("*.xml")))
        return [f"{n}: {rate}" for n, rate in re.findall("<n>(.*?)</n><rate>(.*?)</rate>", text)]


def changed(database: str, statement: Any) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(statement)


@SPARK_IN_THE_REST
def test_it_is_read_when_the_query_begins_and_again_under_another_version(
    session: Session, tmp_path: Path, rates: str, caplog: pytest.LogCaptureFixture
) -> None:
    query = Query(session, tmp_path, rates)
    query.pay(1, "eur")
    query.run()
    changed(rates, "UPDATE rates SET rate = 1.2 WHERE c = 'eur'; INSERT INTO rates VALUES ('chf', 0.9)")
    query.pay(2, "eur")
    query.pay(3, "chf")
    query.run()
    assert query.rows() == ["1: 1.10", "2: 1.10"]
    said = [record.getMessage() for record in caplog.records if record.name == "xmlstream.inputs"]
    assert re.fullmatch(
        r"the static table rates was read at 20\d\d-\d\d-\d\d .* UTC, and stays as .*version.*", said[-1]
    )
    with pytest.raises(StateError, match="version"):
        query.run("2")
    query.run("2", change=True)
    query.pay(4, "eur")
    query.pay(5, "chf")
    query.run("2", change=True)
    assert query.rows() == ["1: 1.10", "2: 1.10", "4: 1.20", "5: 0.90"]


@SPARK_IN_THE_REST
def test_no_file_of_a_run_has_the_password(session: Session, tmp_path: Path, rates: str) -> None:
    query = Query(session, tmp_path, rates)
    query.pay(1, "eur")
    query.run()
    hidden = (PASSWORD.encode(), PASSWORD.replace(" ", "%20").encode())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert not [path for path in files if any(secret in path.read_bytes() for secret in hidden)]
    explained = xs.from_sql(session, query.text()).explain(format="text")
    assert "postgresql://ann@127.0.0.1" in explained
    assert not any(secret.decode() in explained for secret in hidden)


def test_the_password_may_be_in_the_environment(
    in_process: InProcessSession, tmp_path: Path, rates: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(in_process, tmp_path, re.sub(":what[^@]*@", "@", rates))
    query.pay(1, "eur")
    with pytest.raises(UsageError, match=r"no connection to postgresql://ann@127\.0\.0\.1") as raised:
        query.run()
    assert "PGPASSWORD" in (raised.value.hint or "")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    query.run()
    assert query.rows() == ["1: 1.10"]


VALUES: dict[str, tuple[str, str, Any]] = {
    "true": ("boolean", "BOOLEAN", True),
    "7": ("smallint", "INT", 7),
    "2147483647": ("integer", "BIGINT", 2**31 - 1),
    "9223372036854775807": ("bigint", "BIGINT", 2**63 - 1),
    "-7": ("integer", "DECIMAL(12,2)", Decimal("-7.00")),
    "0.25": ("real", "DOUBLE", 0.25),
    "0.1": ("double precision", "DOUBLE", 0.1),
    "12.345": ("numeric", "DECIMAL(9,3)", Decimal("12.345")),
    "'x'": ("character(3)", "STRING", "x"),
    "'{\"a\": 1}'": ("jsonb", "STRING", '{"a": 1}'),
    "'{1,2}'": ("integer[]", "STRING", "{1,2}"),
    "'2026-10-25'": ("date", "DATE", date(2026, 10, 25)),
    "'2026-10-25 02:30:00+02'": ("timestamptz", "TIMESTAMP", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
    "'2026-10-25 02:30:00.000001'": ("timestamp", "TIMESTAMP_NTZ", datetime(2026, 10, 25, 2, 30, 0, 1)),
    "NULL": ("text", "STRING", None),
}


@SPARK_IN_THE_REST
def test_each_type_is_read_as_it_is(session: Session, tmp_path: Path, database: str) -> None:
    columns = ", ".join(f'"C {n}" {kind}' for n, (kind, *_) in enumerate(VALUES.values()))
    changed(database, f"DROP TABLE IF EXISTS types; CREATE TABLE types (k int, {columns})")
    changed(database, f"INSERT INTO types VALUES (1, {', '.join(VALUES)})")
    (tmp_path / "a.xml").write_text("<r><t><k>1</k></t></r>", encoding="utf-8")
    declared = ", ".join(f"`c {n}` {type_}" for n, (_, type_, _) in enumerate(VALUES.values()))
    query = xs.from_sql(
        session,
        f"""CREATE TABLE t (k INT) USING punctuated_xml OPTIONS (path '{tmp_path}/a.xml', rowTag 't');
            CREATE TABLE types (k INT, {declared}) USING postgresql OPTIONS (url '{database}');
            SELECT types.* FROM t JOIN types ON t.k = types.k""",
    )
    (row,) = query.to_arrow().to_pylist()
    found = [row[f"c {n}"] for n in range(len(VALUES))]
    assert [each.rstrip() if isinstance(each, str) else each for each in found] == [
        value for *_, value in VALUES.values()
    ]


@pytest.mark.parametrize(
    ("columns", "options", "what", "hint"),
    [
        ("c STRING, r INT", "", "rates has no column r", "it has c character varying"),
        ("c STRING, rate INT", "", "rate is declared INT, and in rates it is numeric", "or STRING"),
        ("c STRING, rate DECIMAL(3,1), note INT", "", "note is declared INT", "or STRING"),
        ("c STRING, rate ARRAY<INT>", "", "is not read from PostgreSQL", "declare it STRING"),
        ("c STRING", ", table 'nothing'", "has no table nothing", "table names one of them"),
        ("c STRING", ", tabel 'x'", "has no option tabel", "it has url, table, version"),
        ("c STRING NOT NULL", "", "NOT NULL of c is not checked", "remove"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_write(
    in_process: InProcessSession, tmp_path: Path, rates: str, columns: str, options: str, what: str, hint: str
) -> None:
    (tmp_path / "a.xml").write_text("<r><t><c>eur</c></t></r>", encoding="utf-8")
    text = f"""CREATE TABLE t (c STRING) USING punctuated_xml OPTIONS (path '{tmp_path}/a.xml', rowTag 't');
        CREATE TABLE rates ({columns}) USING postgresql OPTIONS (url '{rates}'{options});
        SELECT rates.* FROM t JOIN rates ON t.c = rates.c"""
    with pytest.raises((UsageError, QueryError, InputError)) as raised:
        xs.from_sql(in_process, text).to_arrow()
    assert what in str(raised.value)
    assert hint in (raised.value.hint or "")
    assert PASSWORD not in str(raised.value)


def test_a_value_that_does_not_fit_is_an_error(in_process: InProcessSession, tmp_path: Path, rates: str) -> None:
    changed(rates, "ALTER TABLE rates ALTER rate TYPE numeric; UPDATE rates SET rate = 1.234")
    query = Query(in_process, tmp_path, rates)
    query.pay(1, "eur")
    with pytest.raises(InputError, match=r"a value of rate is not a DECIMAL\(6,2\)"):
        query.run()


def test_another_database_is_read_by_spark(in_process: InProcessSession) -> None:
    with pytest.raises(QueryError, match="USING jdbc is not supported") as raised:
        xs.from_sql(in_process, "CREATE TABLE t (c STRING) USING jdbc OPTIONS (url 'jdbc:x'); SELECT * FROM t")
    assert "createOrReplaceTempView" in (raised.value.hint or "")


LOOKED_UP = {
    "joined": ("SELECT n, fee FROM pay JOIN fees ON pay.c = fees.c", "{n}: {fee}"),
    "left": ("SELECT n, fee FROM pay LEFT JOIN fees ON pay.c = fees.c", "{n}: {fee}"),
    "projected": (
        "SELECT n, f FROM pay JOIN (SELECT c, fee + 1 AS f FROM fees WHERE fee < 99) x ON pay.c = x.c",
        "{n}: {more}",
    ),
    "grouped": (
        "SELECT n, m FROM pay JOIN (SELECT c, MAX(fee) AS m FROM fees GROUP BY c) x ON pay.c = x.c",
        "{n}: {fee}",
    ),
    "twice": ("SELECT n, a.fee FROM pay JOIN fees a ON pay.c = a.c JOIN fees b ON pay.c = b.c", "{n}: {fee}"),
    "in": ("SELECT n, c FROM pay WHERE c IN (SELECT c FROM fees WHERE fee > 5)", None),
}


@pytest.mark.parametrize("shape", LOOKED_UP)
def test_files_are_read_again_wherever_tuples_are_looked_up(
    in_process: InProcessSession, tmp_path: Path, shape: str
) -> None:
    select, form = LOOKED_UP[shape]
    (tmp_path / "in").mkdir()

    def run(version: int, *numbers: int, **settings: Any) -> None:
        for number in numbers:
            text = f"<r><pay><c>{'ab'[number % 2]}</c><n>{number}</n></pay></r>"
            (tmp_path / "in" / f"{number}.xml").write_text(text, encoding="utf-8")
        text = f"""
            CREATE TABLE pay (c STRING, n INT) USING punctuated_xml OPTIONS (path '{tmp_path}/in', rowTag 'pay');
            CREATE TABLE fees (c STRING, fee INT) USING csv OPTIONS (path '{tmp_path}/fees.csv', version '{version}');
            {select}"""
        there: dict[str, Any] = {"output": tmp_path / "out", "checkpoint": tmp_path / "state", "keep_open": True}
        xs.from_sql(in_process, text).run(**there, **settings)

    (tmp_path / "fees.csv").write_text("a,1\nb,2\n")
    run(1, 1, 2)
    (tmp_path / "fees.csv").write_text("a,10\nb,20\n")
    run(1, 3, 4)
    run(2, 5, 6, change=True)
    (tmp_path / "fees.csv").write_text("b,200\n")
    run(2, 7, change=True)
    run(3, 8, 9, change=True)
    text = "".join(path.read_text() for path in sorted((tmp_path / "out").glob("*.xml")))
    found = re.findall("<row>(?:<n>(.*?)</n>|<n/>)<[^>]*>([^<]*)(?=<)", text)
    fees = {n: (1, 2)[n % 2] for n in (1, 2, 3, 4)} | {n: (10, 20)[n % 2] for n in (5, 6, 7)} | {9: 200}
    if form is None:
        assert sorted(int(n) for n, _ in found) == [5, 6, 7, 9]
        return
    wanted = [form.format(n=n, fee=fee, more=fee + 1) for n, fee in fees.items() if form != "{n}: {more}" or fee < 99]
    assert sorted(f"{n}: {value}" for n, value in found if value.strip()) == sorted(wanted)


@pytest.mark.parametrize(
    "select",
    [
        "SELECT c FROM pay UNION ALL SELECT c FROM fees",
        "SELECT n, fee FROM fees LEFT JOIN pay ON pay.c = fees.c",
        "SELECT c FROM fees WHERE c NOT IN (SELECT c FROM pay WHERE c IS NOT NULL) AND c IS NOT NULL",
    ],
)
def test_a_table_that_is_not_looked_up_is_not_read_again(
    in_process: InProcessSession, tmp_path: Path, select: str
) -> None:
    (tmp_path / "a.xml").write_text("<r><pay><c>a</c><n>1</n></pay>", encoding="utf-8")
    (tmp_path / "fees.csv").write_text("a,1\nb,2\n")

    def run(version: int, **settings: Any) -> None:
        text = f"""
            CREATE TABLE pay (c STRING, n INT) USING punctuated_xml OPTIONS (path '{tmp_path}/a.xml', rowTag 'pay');
            CREATE TABLE fees (c STRING, fee INT) USING csv OPTIONS (path '{tmp_path}/fees.csv', version '{version}');
            {select}"""
        there: dict[str, Any] = {"output": tmp_path / "out", "checkpoint": tmp_path / "state", "keep_open": True}
        xs.from_sql(in_process, text).run(**there, **settings)

    run(1)
    with pytest.raises(StateError, match=r"is read again, in which \S+ does not only look tuples up"):
        run(2, change=True)


def test_of_several_tables_of_one_join_all_are_read_again(in_process: InProcessSession, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<r><pay><c>a</c><n>1</n></pay>", encoding="utf-8")
    (tmp_path / "fees.csv").write_text("a,1\n")
    (tmp_path / "n.csv").write_text("a,x\n")

    def run(fees: int, names: int, **settings: Any) -> None:
        text = f"""
            CREATE TABLE pay (c STRING, n INT) USING punctuated_xml OPTIONS (path '{tmp_path}/a.xml', rowTag 'pay');
            CREATE TABLE fees (c STRING, fee INT) USING csv OPTIONS (path '{tmp_path}/fees.csv', version '{fees}');
            CREATE TABLE called (c STRING, name STRING) USING csv OPTIONS (path '{tmp_path}/n.csv', version '{names}');
            SELECT n, fee, name FROM pay JOIN fees ON pay.c = fees.c JOIN called ON pay.c = called.c"""
        there: dict[str, Any] = {"output": tmp_path / "out", "checkpoint": tmp_path / "state", "keep_open": True}
        xs.from_sql(in_process, text).run(**there, **settings)

    run(1, 1)
    with (tmp_path / "a.xml").open("a") as file:
        file.write("<pay><c>a</c><n>2</n></pay>")
    (tmp_path / "fees.csv").write_text("a,9\n")
    with pytest.raises(StateError, match="and another is not: give each another version"):
        run(2, 1, change=True)
    run(2, 2, change=True)
    text = "".join(path.read_text() for path in sorted((tmp_path / "out").glob("*.xml")))
    assert re.findall("<n>(.*?)</n><fee>(.*?)</fee><name>(.*?)</name>", text) == [("1", "1", "x"), ("2", "9", "x")]
