"""What the documents of an auction house say up to some point, in DuckDB: tuples as tables, closings as tables.

Shares no code with the sources: lxml reads the documents, and DuckDB the texts. A document that is still being written
lacks its end tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
from lxml import etree

PUNCT = "{http://www.cse.ogi.edu/dot/niagara/punct}"
_UNTIL = re.compile(r"\(,(.*)\)")

COLUMNS = {
    "person": "id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, city VARCHAR, state VARCHAR, "
    "dateTime TIMESTAMP, extra VARCHAR",
    "auction": "id BIGINT, itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT, "
    "dateTime TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra VARCHAR",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, dateTime TIMESTAMP, "
    "extra VARCHAR",
}
"""By the tuples' elements, of the form `flat`."""


def ledger(documents: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """A database that knows what the documents say, by their names.

    Each document is a table of its tuples. Of a document `bid` and its attribute `auction`, `bid_auction` is a table of
    the closed values; `bid_until` has one row, the time before which all is closed, null if nothing says.
    """
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for name, text in documents.items():
        rows, closed = _read(text)
        element = name.rstrip("0123456789")
        names = [column.split()[0] for column in COLUMNS[element].split(", ")]
        load(database, name, rows, COLUMNS[element])
        for attribute in names:
            values = [(text,) for text in closed.get(attribute, ()) if not _UNTIL.fullmatch(text)]
            if attribute != "dateTime":
                load(database, f"{name}_{attribute}", values, "value BIGINT")
        bounds = [found[1] for text in closed.get("dateTime", ()) if (found := _UNTIL.fullmatch(text))]
        load(database, f"{name}_until", [(max(bounds, default=None),)], "value TIMESTAMP")
    return database


def load(database: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Sequence[str | None]], columns: str) -> None:
    """Makes a table of texts, which DuckDB reads as values."""
    typed = [column.rsplit(" ", 1) for column in columns.split(", ")]
    lists = list(zip(*rows, strict=True)) or [()] * len(typed)
    texts = pa.table(
        {name: pa.array(list(column), pa.string()) for (name, _), column in zip(typed, lists, strict=True)}
    )
    database.register("texts", texts)
    casts = ", ".join(f'CAST("{name}" AS {type_}) AS "{name}"' for name, type_ in typed)
    database.execute(f"CREATE TABLE {table} AS SELECT {casts} FROM texts")
    database.unregister("texts")


def require_written(database: duckdb.DuckDBPyConnection, due: str, rows: Iterable[Sequence[str | None]]) -> None:
    """Makes sure that what was written is what is due, each row as often."""
    database.execute(f"CREATE TABLE due AS {due}")
    described = database.sql("FROM due").description
    load(database, "written", rows, ", ".join(f"{column[0]} {column[1]}" for column in described))
    for one, other in (("due", "written"), ("written", "due")):
        assert database.sql(f"FROM {one} EXCEPT ALL FROM {other}").fetchmany(3) == [], f"in {one} alone"
    database.execute("DROP TABLE due; DROP TABLE written")


def rows_of(directory: Path, tag: str, names: Sequence[str]) -> list[tuple[str | None, ...]]:
    """The texts of the tuples that a query has written so far; of what has elements inside, all of it as XML."""
    return [
        tuple(_leaf(row, name) for name in names)
        for path in sorted(directory.glob("slice-*.xml"))
        for row in etree.parse(path).iterfind(tag)
    ]


def _leaf(row: etree._Element, name: str) -> str | None:
    if name.startswith("_"):
        return row.get(name[1:])
    found = row.findall(name)
    if any(map(len, found)):
        return "".join(map(markup, found))
    return row.findtext(name)


def markup(element: etree._Element) -> str:
    """An element in canonical form, with single blanks for white space."""
    return " ".join(etree.tostring(element, method="c14n", exclusive=True, with_tail=False).decode().split())


def _read(document: str) -> tuple[list[tuple[str, ...]], dict[str, list[str]]]:
    """A document's tuples, and what each attribute's punctuations say; none of them restricts two."""
    rows, closed = [], dict[str, list[str]]()
    root = re.search(r"<(\w+) xmlns", document)
    assert root is not None
    end = f"</{root[1]}>"
    for element in etree.fromstring((document if end in document else document + end).encode()):
        if not element.tag.startswith(PUNCT):
            rows.append(tuple(leaf.text or "" for leaf in element))
            continue
        said = {leaf.tag: leaf.text or "" for leaf in element if leaf.text != "*"}
        ((attribute, pattern),) = said.items()
        closed.setdefault(attribute, []).append(pattern)
    return rows, closed
