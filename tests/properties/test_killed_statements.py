"""Other people's statements, and what else came late, killed in each slice: what is written is what it would have been.

The statements are those of `test_foreign_statements`, over the same rows, cut into documents at drawn places, with
punctuations of values that do not come again. One left alone, read to its end, has the rows that DuckDB has of whole
tables. One that dies in each slice, at a drawn point, has the same tuples and punctuations in the same slices. On the
command line it is killed by SIGKILL, at the points and at drawn moments.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import xmlstream as xs
from tests.harness.data_queries import written
from tests.harness.nights import AT_NIGHT, SEED
from tests.harness.pages import ROOT
from tests.xmlstream.runtime import killed_run
from tests.xmlstream.runtime.killed_run import POINTS, dies
from tests.xmlstream.sql import test_foreign_statements as foreign
from xmlstream.punct_ns.xml_form import PUNCT_NS

_NUMBERED = (
    "CREATE FUNCTION numbered AS 'tests.samples.group_functions:numbered'"
    " RETURNS TABLE (auction INT, number INT, price INT);"
)
_SPAN = "CREATE FUNCTION span AS 'tests.samples.group_functions:Span' RETURNS TABLE (auction INT, n INT, spread INT);"
_INTO = "CREATE TABLE result USING punctuated_xml OPTIONS (path '${SENSORS}/out', rowTag 'row'"

OWN: Mapping[str, tuple[str, str]] = {
    "function": (
        f"{_NUMBERED} SELECT * FROM numbered(TABLE(bid) PARTITION BY auction)",
        "SELECT auction, row_number() OVER (PARTITION BY auction ORDER BY bidder, price) - 1, price FROM bid",
    ),
    "accumulator": (
        f"{_SPAN} SELECT * FROM span(TABLE(SELECT price, auction FROM bid) PARTITION BY auction)",
        "SELECT auction, count(*), max(price) - min(price) FROM bid GROUP BY auction",
    ),
    "accumulator of all": (
        f"{_SPAN.replace('auction INT, ', '')} SELECT * FROM span(TABLE(bid) WITH SINGLE PARTITION)",
        "SELECT count(*), max(price) - min(price) FROM bid",
    ),
    "XML beside a stream": (
        "CREATE TABLE fees (channel STRING, fee INT) USING xml OPTIONS (path '${SENSORS}/fees.xml', rowTag 'row');"
        " SELECT price, fee FROM bid JOIN fees ON bid.channel = fees.channel",
        "SELECT price, CASE channel WHEN 'bing' THEN 2 ELSE 3 END FROM bid WHERE channel <> 'yahoo'",
    ),
    "paths of fields": (
        f"{_INTO}, path.who.city '@town', path.all.price 'Price'); INSERT INTO result SELECT auction,"
        " named_struct('name', min(channel), 'city', 'x') AS who, array(named_struct('price', max(price))) AS all"
        " FROM bid GROUP BY auction",
        "",
    ),
    "all punctuations": (
        f"{_INTO}, punctuations 'all'); INSERT INTO result SELECT auction, price FROM bid WHERE price > 12",
        "",
    ),
}
"""What the statements of others lack, and the same question for DuckDB, where it has words for it."""

ANY_ROWS = re.compile(r"\b(LIMIT|OFFSET|FETCH)\b", re.IGNORECASE)
"""Whose rows depend on the cuts: the first of a group or a join are those of the first slice."""


def given() -> dict[str, list[tuple[str, str]]]:
    """The statements, each with DuckDB's, by kind; own ones are a kind each."""
    found = {name: [pair] for name, pair in OWN.items()}
    for each in foreign.STATEMENTS:
        if not each.refused:
            of_rows = "" if ANY_ROWS.search(each.text) else each.oracle
            found.setdefault(each.kind, []).append((each.text, of_rows))
    return found


KINDS = given()


@pytest.fixture(scope="module")
def whole() -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables in DuckDB."""
    with foreign.whole_tables() as connection:
        yield connection


def write_tables(whole: duckdb.DuckDBPyConnection, directory: Path, random: Random) -> str:
    """Writes each table as documents, one for each slice; returns their declarations."""
    made = []
    for name, (columns, schemes, _) in foreign.TABLES.items():
        cursor = whole.execute(f"SELECT * FROM {name}")
        names = [column[0] for column in cursor.description or ()]
        rows, closing = cursor.fetchall(), [s for s in schemes.split("; ") if "," not in s]
        texts = list[str]()
        for i, row in enumerate(rows):
            texts.append(f"<r>{''.join(map(foreign.elements, names, row))}</r>")
            for attribute in random.sample(closing, random.choice((0, 1, len(closing)))):
                at = names.index(attribute)
                if row[at] not in [other[at] for other in rows[i + 1 :]]:
                    texts[-1] += f"<p:r><{attribute}>{_pattern(row[at])}</{attribute}></p:r>"
        (directory / name).mkdir()
        cuts = sorted(random.sample(range(1, len(texts)), random.randint(len(texts) // 2, len(texts) - 1)))
        for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(texts)], strict=True)):
            text = f"<rows xmlns:p='{PUNCT_NS}'>{''.join(texts[begin:end])}</rows>"
            (directory / name / f"{number}.xml").write_text(text)
        options = f"path '${{SENSORS}}/{name}', rowTag 'r', schemes '{schemes}', maxFilesPerSlice '1'"
        made.append(f"CREATE TABLE {name} ({columns}) USING punctuated_xml OPTIONS ({options});")
    fees = "".join(f"<row><channel>{c}</channel><fee>{n}</fee></row>" for c, n in (("bing", 2), ("google", 3)))
    (directory / "fees.xml").write_text(f"<fees>{fees}</fees>")
    return "\n".join(made)


def _pattern(value: Any) -> str:
    return "null" if value is None else f"{value.isoformat()}Z" if isinstance(value, datetime) else str(value)


_DIGITS = re.compile(rb"(\.\d{9})\d+")


class Asked:
    """A statement over tables that were written, and what it has written itself."""

    def __init__(self, whole: duckdb.DuckDBPyConnection, directory: Path, statement: str, seed: int) -> None:
        directory.mkdir()
        self.directory, self.statement = directory, statement
        self.text = f"{write_tables(whole, directory, Random(seed))}\n{statement}"
        (directory / "query.sql").write_text(self.text)

    def run(self, session: xs.Session) -> None:
        """Runs it to the end of its input, or until it dies."""
        variables, out = {"SENSORS": str(self.directory)}, self.directory / "out"
        if "INSERT INTO" in self.text:
            inserts = xs.inserts_from_sql(session, self.text, variables)
        else:
            inserts = [xs.from_sql(session, self.text, variables).insert_into(out, row_tag="row")]
        xs.run(inserts, self.directory / "state")

    def begun(self, engine: str, point: str = "before the commit", slice_id: int = -2) -> subprocess.Popen[str]:
        """Runs it in a process of its own, which is killed at a point of a slice; of none by default."""
        out = "" if "INSERT INTO" in self.text else str(self.directory / "out")
        given = [self.directory / "query.sql", self.directory, out, self.directory / "state", point, slice_id, engine]
        command = [sys.executable, killed_run.__file__, *map(str, given)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        nowhere, pipe = subprocess.DEVNULL, subprocess.PIPE
        return subprocess.Popen(
            command, stdout=nowhere, stderr=pipe, text=True, env=environment, start_new_session=True
        )

    def killed(self, engine: str, point: str, slice_id: int) -> bool:
        """Whether a process was killed at a point of a slice, and did not end before."""
        process = self.begun(engine, point, slice_id)
        _, printed = process.communicate(timeout=600)
        assert process.returncode in (0, -signal.SIGKILL), printed
        return process.returncode != 0

    def killed_in(self, engine: str, seconds: float) -> bool:
        """Whether a process was killed after so many seconds, and did not end before."""
        process = self.begun(engine)
        try:
            _, printed = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return True
        assert process.returncode == 0, printed
        return False

    @property
    def written(self) -> dict[str, tuple[Counter[bytes], Counter[bytes]]]:
        """What it has written, by slice; of a number nine digits, since the last depend on the order of addition."""
        found = written(self.directory / "out").get(".", {}).items()
        return {
            number: (Counter(_DIGITS.sub(rb"\1", text) for text in tuples.elements()), punctuations)
            for number, (tuples, punctuations) in found
        }

    @property
    def slices(self) -> int:
        """How many slices it had."""
        return len([*(self.directory / "state" / "commits").iterdir()])


def drawn(kind: str, most: int = 1) -> list[tuple[str, str]]:
    """Statements of a kind, each with DuckDB's."""
    return Random(SEED).sample(KINDS[kind], min(most, len(KINDS[kind])))


def dies_in_each_slice(
    session: xs.Session, whole: duckdb.DuckDBPyConnection, directory: Path, pair: tuple[str, str], seed: int
) -> int:
    """Compares a statement that dies in each slice with one left alone; returns how often it died."""
    statement, oracle = pair
    directory.mkdir()
    alone = Asked(whole, directory / "alone", statement, seed)
    alone.run(session)
    if oracle:
        table = xs.from_sql(session, alone.text, {"SENSORS": str(alone.directory)}).to_arrow()
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        assert foreign.in_order(rows) == foreign.in_order(whole.execute(oracle).fetchall()), (seed, statement)
    asked, random = Asked(whole, directory / "killed", statement, seed), Random(seed)
    deaths = sum(dies(lambda: asked.run(session), random.choice([*POINTS]), i) for i in range(alone.slices))
    asked.run(session)
    assert asked.written == alone.written, (seed, statement)
    return deaths


TWO_COLUMNS = pytest.mark.filterwarnings("ignore:the result has several attributes")
"""Marks a test with statements whose columns have one name."""


@TWO_COLUMNS
@pytest.mark.parametrize("kind", [pytest.param(k, marks=[] if k in OWN else pytest.mark.rest) for k in KINDS])
def test_a_statement_that_dies_in_each_slice_writes_the_same(
    in_process: xs.Session, whole: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str
) -> None:
    pairs = drawn(kind, 8 if AT_NIGHT else 1)
    deaths = [dies_in_each_slice(in_process, whole, tmp_path / str(i), pair, SEED + i) for i, pair in enumerate(pairs)]
    assert min(deaths) > 0
    print(f"{kind}: {len(pairs)} statements died {sum(deaths)} times")


@TWO_COLUMNS
@pytest.mark.rest
@pytest.mark.parametrize("kind", KINDS if AT_NIGHT else ["accumulator"])
def test_a_statement_that_dies_in_each_slice_on_spark_writes_the_same(
    spark: xs.Session, whole: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str
) -> None:
    deaths = [dies_in_each_slice(spark, whole, tmp_path / "0", pair, SEED) for pair in drawn(kind)]
    assert min(deaths) > 0
    print(f"{kind}: {len(deaths)} statements died {sum(deaths)} times")


@TWO_COLUMNS
@pytest.mark.rest
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", *(["spark"] if AT_NIGHT else [])])
@pytest.mark.parametrize("kind", KINDS if AT_NIGHT else ["accumulator"])
def test_a_command_that_is_killed_again_and_again_writes_the_same(
    in_process: xs.Session, whole: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str, engine: str
) -> None:
    """By SIGKILL at points of slices, and at drawn moments."""
    ((statement, _),) = drawn(kind)
    alone, asked = (Asked(whole, tmp_path / name, statement, SEED) for name in ("alone", "killed"))
    alone.run(in_process)
    random, longest = Random(SEED), 25.0 if engine == "spark" else 3.0
    deaths = 0
    for i in range(0, alone.slices, 2 if engine == "spark" else 1):
        deaths += asked.killed(engine, random.choice([*POINTS]), i)
        deaths += asked.killed_in(engine, random.uniform(longest / 10, longest))
    assert deaths > 0
    assert not asked.killed(engine, "before the commit", -2)
    assert asked.written == alone.written, (SEED, statement)
    print(f"{kind}: killed {deaths} times on {engine}")
