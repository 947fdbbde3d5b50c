"""Punctuated Parquet as a source: what a query has written is read with its punctuations, in the order of commits."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xmlstream as xs
from tests.samples import strategies as samples
from xmlstream.punct_ns.errors import MalformedInput, QueryError
from xmlstream.punct_ns.pattern import matches
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import POSITION, arrow_type
from xmlstream.punct_ns.sql_type import OpaqueType, StringType
from xmlstream.punct_ns.xml_form import PUNCT_NS, punctuation_from_texts
from xmlstream.sink.directory_sink import DirectorySink
from xmlstream.sink.result_tables import ParquetForm
from xmlstream.sink.sink import ComputedSlice, SinkHome
from xmlstream.sink.target import Target
from xmlstream.sources.parquet_table import parquet_options
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser, read_through
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner
from xmlstream.sql import script

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

SCHEMA = "sid STRING, hour INT, temp DOUBLE"
ROWS = [("a", 1, 0.5), ("b", 1, None), (None, 2, 1.5), ("a", 2, -0.0), ("c", 3, 2.5), ("a", 4, 3.5)]
CLOSED = {2: [1], 4: [2], 5: [3]}
"""Behind so many rows, which hours are closed."""


def _items() -> list[str]:
    found = []
    for at, row in enumerate(ROWS, 1):
        leaves = zip(("sid", "hour", "temp"), row, strict=True)
        found.append(f"<r>{''.join(f'<{name}>{value}</{name}>' for name, value in leaves if value is not None)}</r>")
        found += [f"<p:r><sid>*</sid><hour>{h}</hour><temp>*</temp></p:r>" for h in CLOSED.get(at, ())]
    return found


def _write(directory: Path, name: str, items: list[str]) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"<rs xmlns:p='{PUNCT_NS}'>{''.join(items)}</rs>")


def _sums(source: xs.Query) -> xs.Query:
    return source.where("hour < 9").group_by("hour").agg("count(*) AS n", "sum(temp) AS total")


def _answers(slices: list[xs.ResultSlice]) -> tuple[list[str], set[str]]:
    rows = sorted(str(row) for slice_ in slices for row in slice_.tuples.to_pylist())
    said = [p for slice_ in slices for p in slice_.punctuations]
    return rows, set(map(str, PunctuationSet(said[0].schema, said)))


def test_xml_to_parquet_to_query_is_xml_to_query_at_every_cut(session: Session, tmp_path: Path) -> None:
    items = _items()
    _write(tmp_path / "whole", "1.xml", items)
    options: dict[str, Any] = {"rowTag": "r", "schemes": "hour"}
    expected = _answers(list(_sums(xs.read(session, tmp_path / "whole", SCHEMA, **options)).slices()))
    assert len(expected[0]) == 4
    # Each cut into nights at another place; the reader follows night by night, from its checkpoint.
    for cut in range(1, len(items), 3):
        home = tmp_path / str(cut)
        home.mkdir()
        copied = xs.read(session, home / "in", SCHEMA, name="s", maxFilesPerSlice=1, **options).select(
            "temp", "hour", "sid"
        )
        found: list[xs.ResultSlice] = []
        for night, part in (("1.xml", items[:cut]), ("2.xml", items[cut:])):
            _write(home / "in", night, part)
            closes = night == "1.xml"
            copied.run(home / "out.parquet", home / "copied", keep_open=closes)
            read = xs.read_parquet(session, home / "out.parquet", name="copy")
            assert read.columns == ["temp", "hour", "sid"]
            assert [str(scheme) for scheme in read.root.schemes] == ["hour"]
            found += _sums(read).slices(home / "read", keep_open=True)
        assert _answers(found) == expected


def test_a_query_over_what_is_written_follows_it(session: Session, tmp_path: Path) -> None:
    items = _items()
    _write(tmp_path / "in", "1.xml", items[:6])
    copied = xs.read(session, tmp_path / "in", SCHEMA, rowTag="r", schemes="hour", name="s").select("hour", "temp")
    copied.run(tmp_path / "out.parquet", tmp_path / "copied", keep_open=True)
    tables = script.read(
        "CREATE TABLE copy (temp DOUBLE, hour BIGINT) USING punctuated_parquet OPTIONS (path '${OUT}', schemes 'hour');"
        "SELECT hour, count(*) AS n FROM copy GROUP BY hour",
        {"OUT": str(tmp_path / "out.parquet")},
    )
    query = xs.Query(session, tables.plan(session))
    seen = []
    for slice_ in query.slices(follow=True):
        seen += slice_.tuples.to_pylist()
        if len(seen) == 2:
            _write(tmp_path / "in", "2.xml", items[6:])
            copied.run(tmp_path / "out.parquet", tmp_path / "copied")
        if len(seen) == 4:
            break
    assert sorted(row["hour"] for row in seen) == [1, 2, 3, 4]


@st.composite
def _results(draw: st.DrawFn) -> tuple[Schema, list[tuple[list[tuple[Any, ...]], list[Punctuation]]]]:
    schema = draw(samples.schemas())
    rows = st.tuples(*(samples.values(attribute.domain) for attribute in schema))
    slices = st.tuples(st.lists(rows, max_size=5), st.lists(samples.punctuations(schema), max_size=3))
    return schema, draw(st.lists(slices, min_size=1, max_size=4))


@given(drawn=_results(), budget=st.none() | st.integers(1, 4000))
def test_what_was_written_is_read_in_its_order_whatever_a_slice_takes(
    drawn: tuple[Schema, list[tuple[list[tuple[Any, ...]], list[Punctuation]]]], budget: int | None
) -> None:
    schema, slices = drawn
    with TemporaryDirectory() as name:
        directory = Path(name)
        sink = DirectorySink(directory, ParquetForm(schema))
        for number, (rows, said) in enumerate(slices):
            sink.publish(sink.draft(ComputedSlice(number, [(_table(schema, rows), said)])))
        (directory / ".slice-000000099.parquet").write_bytes(b"a draft")
        if not list(directory.glob("slice-*")):
            return
        read, said_there = _parsed(directory, budget)
    expected = [
        {name: _plain(value) for name, value in zip(schema.names, row, strict=True)}
        for rows, _ in slices
        for row in rows
    ]
    assert [{name: _plain(value) for name, value in row.items()} for row in read] == expected
    assert said_there == [str(p) for _, said in slices for p in said]


def _plain(value: Any) -> Any:
    """NaN as something that equals itself; moments whatever zone they are told in."""
    if isinstance(value, float):
        return repr(float(value))
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value


def _parsed(directory: Path, budget: int | None = None, **more: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Tuples and punctuations, as the slices of a source have them."""
    options = SourceOptions.parse({**parquet_options({"path": str(directory)}), "follow": "false", **more})
    planner = Planner(options, Documents(options, log=False))
    parser, at, rows, said = RangeParser(options), Offset(), list[dict[str, Any]](), list[str]()
    positions: list[Any] = []
    sizes = planner.sizes(at)
    while True:
        after, ranges = planner.advance(at, sizes, budget)
        if after == at:
            break
        assert planner.ranges(at, after) == ranges
        for parsed in (parsed for range_ in ranges for parsed in parser.parse(range_)):
            assert not parsed.malformed, parsed.malformed
            rows += parsed.tuples.drop_columns([POSITION]).to_pylist()
            texts = [[row[name] for name in options.schema.names] for row in parsed.punctuations.to_pylist()]
            said += [str(punctuation_from_texts(text, options.schema)) for text in texts]
            positions += parsed.tuples[POSITION].to_pylist() + parsed.punctuations[POSITION].to_pylist()
        at = after
    assert positions == sorted(set(positions))
    return rows, said


@given(drawn=_results(), budget=st.none() | st.integers(1, 4000), data=st.data())
def test_what_was_written_in_partitions_is_read_slice_by_slice(
    drawn: tuple[Schema, list[tuple[list[tuple[Any, ...]], list[Punctuation]]]], budget: int | None, data: st.DataObject
) -> None:
    """The attributes in names of directories have their types; each slice's closings come behind all its tuples."""
    schema, slices = drawn
    by = [a for a in schema if not isinstance(a.domain.sql, OpaqueType) and data.draw(st.booleans(), label=a.name)]
    if not 0 < len(by) < len(schema):
        return

    def kept(attribute: Attribute, value: Any) -> Any:
        if attribute not in by:
            return value
        if value is None or value == "":
            return None if attribute.domain.nullable else value
        return attribute.domain.normal(value)

    with TemporaryDirectory() as name:
        directory = Path(name) / "out.parquet"
        names = tuple(attribute.name for attribute in by)
        sink = Target(str(directory), partition_by=names).sink(schema, (), SinkHome(Path(name), "q"))
        for number, (rows, said) in enumerate(slices):
            sink.publish(sink.draft(ComputedSlice(number, [(_table(schema, rows), said)])))
        if not list(directory.glob("*/*")):
            return
        read, said_there = _parsed(directory, budget)
    expected = [
        sorted(repr([_plain(kept(a, value)) for a, value in zip(schema, row, strict=True)]) for row in rows)
        for rows, _ in slices
    ]
    found = [repr([_plain(kept(a, row[a.name])) for a in schema]) for row in read]
    ends = list(accumulate(map(len, expected), initial=0))
    assert [sorted(found[a:b]) for a, b in pairwise(ends)] == expected
    strings = [schema.index(a.name) for a in by if a.domain.nullable and isinstance(a.domain.sql, StringType)]
    said = [p for _, closed in slices for p in closed]
    assert said_there == [
        str(p)
        for p in said
        if not any(matches(p.patterns[at], None) and not matches(p.patterns[at], "") for at in strings)
    ]


def _table(schema: Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, arrow_type(a.domain)) for column, a in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays([*arrays, pa.array(range(len(rows)))], names=[*schema.names, POSITION])


def test_a_punctuation_holds_for_the_columns_that_are_declared(tmp_path: Path) -> None:
    schema = Schema.parse("hour INT, sid STRING, temp DOUBLE")
    said = [Punctuation.parse(text, schema) for text in ("<1, *, *>", '<2, "a", *>', "<*, *, (,3)>")]
    table = pa.table({"hour": pa.array([3], pa.int32()), "sid": ["a"], "temp": [3.5]})
    sink = DirectorySink(tmp_path, ParquetForm(schema))
    sink.publish(sink.draft(ComputedSlice(0, [(table, said)])))
    rows, kept = _parsed(tmp_path, schema="SID STRING, Hour BIGINT")
    assert rows == [{"SID": "a", "Hour": 3}]
    assert kept == ["<*, 1>", "<a, 2>"]


@pytest.mark.parametrize(
    ("declared", "what"),
    [
        (
            "(hour INT) USING punctuated_parquet OPTIONS (path 'P', rowTag 'r')",
            "punctuated Parquet has no option rowTag",
        ),
        ("(hour INT) USING punctuated_parquet OPTIONS (path 'P', schemes 'minute')", "minute"),
        ("(hour INT) USING punctuated_parquet", "has no path"),
        ("USING punctuated_parquet OPTIONS (path 'P')", "no document at P has the columns"),
        ("USING punctuated_parquet OPTIONS (path 'P/none')", "no document at P/none has the columns"),
        ("USING punctuated_parquet OPTIONS (path 'P/*.parquet')", "declare them where the path is a glob"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_before_it_runs(tmp_path: Path, declared: str, what: str) -> None:
    pq.write_table(pa.table({"hour": [1]}), tmp_path / "1.parquet")
    with pytest.raises(QueryError) as error:
        script.read(f"CREATE TABLE t {declared}; SELECT * FROM t".replace("'P", f"'{tmp_path}"))
    assert what in str(error.value).replace(str(tmp_path), "P")


@pytest.mark.parametrize(
    ("columns", "said", "what"),
    [
        ({"hour": [1]}, None, "it has no column sid; it has hour"),
        ({"hour": ["x"], "sid": ["a"]}, None, "column hour has Parquet type string"),
        ({"hour": [1], "sid": ["a"]}, ["<1, 2, 3>"], "a punctuation of its metadata cannot be read"),
        (None, None, "it cannot be read as Parquet"),
    ],
)
def test_what_is_not_as_declared_is_said_in_words(
    tmp_path: Path, columns: dict[str, list[Any]] | None, said: list[str] | None, what: str
) -> None:
    path = tmp_path / "1.parquet"
    if columns is None:
        path.write_bytes(b"<rows/>")
    else:
        table = pa.table(columns)
        pq.write_table(table.replace_schema_metadata({"punctuations": json.dumps(said)} if said else None), path)
    given = {**parquet_options({"path": str(path)}, "hour INT, sid STRING"), "follow": "false"}
    options = SourceOptions.parse(given)
    with pytest.raises(MalformedInput, match=what):
        list(read_through(options))
