"""SQL as users of other systems write it: answered as DuckDB answers over whole tables, or refused with what to write.

`tests/data/foreign_statements.sql` has the statements by kind, the refused ones too: it says how much of other people's
SQL works as it stands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.harness.pages import ROOT
from tests.xmlstream.sql.refused.test_foreign_forms import FORMS
from tests.xmlstream.sql.refused.test_foreign_forms import TABLES as FORM_TABLES
from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.sink.xml_documents import DocumentForm
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.script import read
from xmlstream.sql.statements import parse_statements

TABLES = {
    "t": (
        "k INT, v INT, w DOUBLE, s STRING",
        "k; v; s; k, v; k, s",
        """(1, 1, 0.5, 'ab'), (1, 2, 1.5, 'ab'), (1, 2, 1.5, 'ab'), (2, 3, 2.0, 'b'), (2, NULL, 2.5, 'c'),
        (3, 5, NULL, 'ab'), (NULL, 4, 4.25, NULL), (5, 1, 1.0, 'a'), (5, 4, 0.0, 'abc')""",
    ),
    "u": (
        "k INT, v INT, x STRING",
        "k; v; k, v; x",
        "(1, 1, 'p'), (1, 1, 'p'), (2, 3, 'q'), (2, 2, 'r'), (4, 4, 's'), (NULL, 4, 't'), (3, 5, NULL)",
    ),
    "bid": (
        "auction INT, bidder INT, price INT, channel STRING, ts TIMESTAMP",
        "auction; bidder; channel; auction, bidder; channel, bidder; ts; price",
        """(1, 1, 10, 'google', '2026-01-01 00:01:00'), (1, 2, 20, 'yahoo', '2026-01-01 00:04:00'),
        (1, 1, 30, 'google', '2026-01-01 00:11:00'), (2, 3, 15, 'bing', '2026-01-01 00:12:00'),
        (2, 1, 25, 'google', '2026-01-01 00:25:00'), (2, 3, 5, 'yahoo', '2026-01-01 00:31:00'),
        (3, 2, 40, 'bing', '2026-01-01 01:02:00')""",
    ),
    "auction": (
        "id INT, seller INT, category INT, opens TIMESTAMP, expires TIMESTAMP",
        "id; seller; category; opens",
        """(1, 1, 7, '2026-01-01 00:00:00', '2026-01-01 00:10:00'),
        (2, 2, 8, '2026-01-01 00:10:00', '2026-01-01 00:30:00'),
        (3, 1, 7, '2026-01-01 00:20:00', '2026-01-01 00:50:00')""",
    ),
    "person": (
        "id INT, name STRING, city STRING, state STRING",
        "id; name; state; city; state, city",
        "(1, 'Ann', 'Portland', 'OR'), (2, 'Bob', 'Salem', 'OR'), (3, 'Cyd', 'Boise', 'ID'), (4, 'Dan', 'Boise', 'ID')",
    ),
    "item": (
        "order_id INT, sku STRING, qty INT, price DECIMAL(10,2), tags ARRAY<STRING>, ts TIMESTAMP",
        "order_id; sku; ts",
        """(1, 'x', 2, 1.25, ['new', 'red'], '2026-01-01 00:01:00'), (2, 'y', 3, 10.00, ['old'], '2026-01-01 00:02:00'),
        (3, 'z', NULL, 3.50, ['new'], '2026-01-01 00:03:00')""",
    ),
    "price_list": (
        "auction INT, name STRING, ts TIMESTAMP",
        "auction; ts; auction, ts",
        """(1, 'low', '2026-01-01 00:00:00'), (1, 'high', '2026-01-01 00:05:00'),
        (2, 'mid', '2026-01-01 00:10:00')""",
    ),
}
"""Columns, schemes and rows by table."""


@dataclass(frozen=True)
class Statement:
    """A statement, the same question for DuckDB, and where it is refused: "in process", "everywhere" or nowhere."""

    kind: str
    text: str
    oracle: str
    refused: str


_REFUSED = {"-- refused": "everywhere", "-- on Spark": "in process"}


def statements() -> Iterator[Statement]:
    kind, oracle, refused = "", "", ""
    for line in (ROOT / "tests/data/foreign_statements.sql").read_text().splitlines():
        if line.startswith("-- # "):
            kind = line[5:]
        elif line.startswith("-- = "):
            oracle = line[5:]
        elif line in _REFUSED:
            refused = _REFUSED[line]
        elif line and not line.startswith("--"):
            text = line.removesuffix(";")
            yield Statement(kind, text, oracle or text, refused)
            oracle, refused = "", ""


STATEMENTS = list(statements())
KINDS = list(dict.fromkeys(each.kind for each in STATEMENTS))


@contextmanager
def whole_tables() -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables in DuckDB."""
    with duckdb.connect(config={"default_null_order": "nulls_first_on_asc_last_on_desc"}) as connection:  # as Spark's
        for name, (columns, _, rows) in TABLES.items():
            made = f"CREATE TABLE {name} ({columns.replace('ARRAY<STRING>', 'VARCHAR[]')})"
            connection.execute(f"{made}; INSERT INTO {name} VALUES {rows}")
        yield connection


@pytest.fixture(scope="module")
def whole() -> Iterator[duckdb.DuckDBPyConnection]:
    with whole_tables() as connection:
        yield connection


@pytest.fixture(scope="module")
def tables(whole: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The declarations of the same as documents, by name."""
    directory, made = tmp_path_factory.mktemp("tables"), {}
    for name, (columns, schemes, _) in TABLES.items():
        cursor = whole.execute(f"SELECT * FROM {name}")
        names = [column[0] for column in cursor.description or ()]
        rows = ("".join(map(elements, names, row)) for row in cursor.fetchall())
        (directory / f"{name}.xml").write_text(f"<rows>{''.join(f'<r>{row}</r>' for row in rows)}</rows>")
        options = f"path '{directory / name}.xml', rowTag 'r', schemes '{schemes}'"
        made[name] = f"CREATE TABLE {name} ({columns}) USING punctuated_xml OPTIONS ({options});"
    return made


def elements(name: str, value: Any) -> str:
    """A value as elements of a row."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    texts = (f"{each.isoformat()}Z" if isinstance(each, datetime) else each for each in values)
    return "".join(f"<{name}>{each}</{name}>" for each in texts)


@pytest.mark.filterwarnings("ignore:the result has several attributes")
@pytest.mark.parametrize("kind", KINDS)
def test_statements_are_answered_as_they_stand_or_refused_with_what_to_write(
    kind: str, whole: duckdb.DuckDBPyConnection, tables: dict[str, str], in_process: xs.Session
) -> None:
    given = [each for each in STATEMENTS if each.kind == kind]
    assert not _findings(given, whole, tables, in_process, ("in process", "everywhere"))


@pytest.mark.rest
@pytest.mark.filterwarnings("ignore:the result has several attributes")
@pytest.mark.parametrize("kind", KINDS)
def test_spark_answers_what_is_not_proven_in_process_and_each_fifth_of_all(
    kind: str, whole: duckdb.DuckDBPyConnection, tables: dict[str, str], spark: xs.Session
) -> None:
    given = [
        each for i, each in enumerate(STATEMENTS) if each.kind == kind and (each.refused == "in process" or i % 5 == 0)
    ]
    assert not _findings(given, whole, tables, spark, ("everywhere",))


def _findings(
    given: list[Statement],
    whole: duckdb.DuckDBPyConnection,
    tables: dict[str, str],
    session: xs.Session,
    refused: tuple[str, ...],
) -> dict[str, str]:
    """What is not as the file says, by statement."""
    found = {}
    for each in given:
        used = [tables[name] for name in tables if re.search(rf"\b{name}\b", each.text)]
        try:
            query = xs.from_sql(session, "\n".join([*used, each.text]))
            if each.refused != "in process":  # an interval is such a value, and no text in XML
                DocumentForm(query.schema)  # it can be written, too
            table = query.to_arrow()
        except XmlStreamError as refusal:
            if each.refused not in refused or not refusal.hint:
                found[each.text] = f"refused: {refusal}"
            continue
        rows = in_order(zip(*(column.to_pylist() for column in table.columns), strict=True))
        if each.refused in refused:
            found[each.text] = "is answered: leave out the line before it"
        elif rows != (wanted := in_order(whole.execute(each.oracle).fetchall())):
            found[each.text] = f"{rows} in place of {wanted}"
    return found


def in_order(rows: Any) -> list[tuple[Any, ...]]:
    """The rows, with nulls last; numbers to nine digits."""
    return sorted(
        (tuple(map(_plain, row)) for row in rows), key=lambda row: [(each is None, str(each)) for each in row]
    )


def _plain(value: Any) -> Any:
    match value:
        case bool() | None | str():
            return value
        case float() | Decimal() | int():
            return "NaN" if math.isnan(value) else float(f"{float(value):.9g}")
        case datetime():
            return value.replace(tzinfo=None).isoformat()
        case date():
            return value.isoformat()
        case dict():
            return tuple(map(_plain, value.values()))
        case list() | tuple():
            return tuple(map(_plain, value))
    return str(value)


WAYS = {
    "as it stands": "{0}",
    "subquery": "SELECT * FROM ({0}) AS z",
    "WITH": "WITH z AS ({0}) SELECT * FROM z",
    "view": "CREATE VIEW z AS {0}; SELECT * FROM z",
    "UNION": "({0}) UNION ALL ({0})",
    "small letters": "{0}",
}
"""Where a statement may stand, by name."""


@pytest.mark.rest
@pytest.mark.filterwarnings("ignore:the result has several attributes")
@pytest.mark.parametrize("way", WAYS)
def test_spark_reads_what_is_read_in_process(
    way: str, tables: dict[str, str], spark: xs.Session, in_process: xs.Session, tmp_path: Path
) -> None:
    """Two parsers read a text: what ours takes, Spark's does, or reads it printed."""
    every = [("\n".join(tables.values()), each.text) for each in STATEMENTS]
    every += [(FORM_TABLES.format(tmp_path), form) for form in FORMS.strip().splitlines()]
    found = {}
    for declared, text in every[:: 1 if AT_NIGHT else 8]:
        query = WAYS[way].format(_in_small_letters(text) if way == "small letters" else text)
        if _refusal(f"{declared}\n{query}", in_process) is None:
            found[query] = _refusal(f"{declared}\n{query}", spark)
    assert {query: why for query, why in found.items() if why is not None} == {}
    assert found


def _refusal(text: str, session: xs.Session) -> str | None:
    """Why a statement is refused; None if it can be planned."""
    try:
        read(text).plan(session)
    except XmlStreamError as refusal:
        return str(refusal)
    return None


def _in_small_letters(text: str) -> str:
    """The words of SQL in small letters; what stands in quotes as it is."""
    return re.sub(r"'[^']*'|\b[A-Z]{2,}\b", lambda found: found[0] if "'" in found[0] else found[0].lower(), text)


def test_most_statements_are_answered() -> None:
    """The share that is answered as it stands."""
    answered = sum(each.refused != "everywhere" for each in STATEMENTS)
    assert len(STATEMENTS) > 300
    assert answered / len(STATEMENTS) >= 0.85


@pytest.mark.parametrize(
    ("query", "printed"),
    [
        ("SELECT s AS text FROM t", False),
        ("SELECT CAST(k AS STRING) AS varchar FROM t", True),  # which may be more than needed
        ("SELECT CAST(k AS VARCHAR) AS x FROM t", True),
        ("SELECT k::TEXT FROM t", True),
        ("SELECT * EXCLUDE (k) FROM t", True),
        ("SELECT * EXCEPT (k) FROM t", False),
        ("SELECT count() FROM t", True),
    ],
)
def test_spark_reads_the_text_itself_where_it_knows_all_words(query: str, printed: bool) -> None:
    """Errors of Spark's then have their places in it."""
    (statement,) = parse_statements(QueryText.of(query))
    assert bool(statement.rewriting.printed) == printed
