"""What an output has closed is read from it alone, in the form and up to the slice in which it has it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.samples import strategies as samples
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.sink.closings import ClosedSoFar
from xmlstream.sink.sink import ComputedSlice, SinkHome
from xmlstream.sink.target import Target
from xmlstream.sink.xml_documents import Vocabulary

SCHEMA = Schema.parse("hour INT, temp DOUBLE")


def _write(
    output: str, slices: Sequence[Sequence[str | Punctuation]], schema: Schema = SCHEMA, names: Vocabulary | None = None
) -> None:
    """Writes an output of some slices, which have the punctuations only."""
    target = Target(output, names or Vocabulary())
    sink = target.sink(schema, (), SinkHome(Path(output) / "drafts", "q"))
    for number, said in enumerate(slices):
        parsed = [Punctuation.parse(each, schema) if isinstance(each, str) else each for each in said]
        sink.publish(sink.draft(ComputedSlice(number, [(None, parsed)])))


HOURS = [["<[,2], *>"], [], ["<5, *>", "<*, [,0.5]>"], ["<[3,4], *> for PT1H"], ["<*, *>"]]


@pytest.mark.parametrize("form", ["xml", "beside", "parquet"])
def test_each_form_has_closed_what_its_punctuations_close(tmp_path: Path, form: str) -> None:
    output = f"{tmp_path}/out.parquet" if form == "parquet" else f"{tmp_path}/out"
    names = Vocabulary(punctuations="beside") if form == "beside" else Vocabulary()
    closed = ClosedSoFar(output, "<[2,5], *>")
    assert (list(closed.read()), closed.schema) == ([], None)
    _write(output, HOURS[:2], names=names)
    assert list(closed.read()) == [0]
    assert list(map(str, closed.missing)) == ["<[3,5], *>"]
    again = ClosedSoFar(output, {"hour": "2", "temp": "1.5"})
    assert ([*again.read()], again.missing) == ([0], [])
    _write(f"{output}-all{Path(output).suffix}", HOURS[:4], names=names)
    whole = ClosedSoFar(f"{output}-all{Path(output).suffix}", "<[2,5], *>")
    assert list(whole.read()) == [0, 2]  # a punctuation with a lifespan closes nothing for good
    assert list(map(str, whole.missing)) == ["<[3,4], (0.5,)>", "<[3,4], null>"]
    table = xs.closed(f"{output}-all{Path(output).suffix}", slice=1)
    assert table.select(["slice", "punctuation", "hour_to"]).to_pylist() == [
        {"slice": 0, "punctuation": "<(,2], *>", "hour_to": 2}
    ]


def test_an_output_of_other_attributes_since_a_change_has_closed_all_values_of_those_that_it_lacks(
    tmp_path: Path,
) -> None:
    _write(f"{tmp_path}/out", [["<[,1], *>"]])
    _write(f"{tmp_path}/later", [["<1, *>"], ["<2, *>"]], Schema.parse("hour INT, _id INT"))
    (tmp_path / "later/slice-000000001.xml").rename(tmp_path / "out/slice-000000001.xml")
    table = xs.closed(tmp_path / "out", schema="hour INT, temp DOUBLE, _id INT")
    assert table["punctuation"].to_pylist() == ["<(,1], *, *>", "<2, *, *>"]
    assert "_id_to" in xs.closed(tmp_path / "later").column_names


def test_the_types_of_xml_are_those_of_its_texts_unless_they_are_declared(tmp_path: Path) -> None:
    words, texts = Schema.parse("name STRING, at TIMESTAMP, day DATE"), Schema.parse("code STRING")
    _write(f"{tmp_path}/w", [["<{b,c}, *, *>"], ["<*, [,2026-01-01T00:00:00Z], *>"], ["<*, *, 2026-01-02>"]], words)
    for wanted in ("<c, *, *>", "<*, 2025-12-31T00:00:00Z, *>", "<q, *, 2026-01-02>"):
        closed = ClosedSoFar(f"{tmp_path}/w", wanted)
        assert (len(list(closed.read())), closed.missing) == (3, [])
    with pytest.raises(UsageError, match="'5' is not a valid pattern of TIMESTAMP"):  # else it would wait for ever
        list(ClosedSoFar(f"{tmp_path}/w", "<*, 5, *>").read())
    _write(f"{tmp_path}/t", [["<[10,5]>"]], texts)  # as texts, 2 lies between 10 and 5
    for schema, is_closed in ((None, False), ("code STRING", True)):
        closed = ClosedSoFar(f"{tmp_path}/t", "<2>", schema)
        assert (len(list(closed.read())), not closed.missing) == (1, is_closed)
    _write(f"{tmp_path}/d", [["<[,16], *>"], ["<[17,25], *>"]], Schema.parse("n DOUBLE, day DATE"))
    doubles = ClosedSoFar(f"{tmp_path}/d", "<[16,17], *>")  # of integers all would be closed
    assert (len(list(doubles.read())), list(map(str, doubles.missing))) == (2, ["<(16.0,17.0), *>"])
    _write(f"{tmp_path}/n", [["<5>"]], texts)
    _write(f"{tmp_path}/n2", [["<5>"], ["<x>"]], texts)
    numbers = ClosedSoFar(f"{tmp_path}/n", "<5>")
    assert (list(numbers.read()), numbers.schema) == ([0], Schema.parse("code BIGINT"))
    widened = ClosedSoFar(f"{tmp_path}/n", "<x>")
    assert (list(widened.read()), len(widened.missing), widened.schema) == ([0], 1, texts)
    (tmp_path / "n2/slice-000000001.xml").rename(tmp_path / "n/slice-000000001.xml")
    assert (list(widened.read()), widened.missing) == ([1], [])
    assert (list(numbers.read()), numbers.missing, numbers.schema) == ([0, 1], [], texts)


@pytest.mark.parametrize(
    ("wanted", "what"),
    [
        ("<5>", "'<5>' has 1 patterns for 2 attributes"),
        ({"our": "5"}, "there is no attribute our"),
        ("<five, *>", "'five' is not a valid INT"),
        ("5", "expected < at its beginning"),
    ],
)
def test_what_does_not_fit_the_output_is_refused_with_its_attributes(
    tmp_path: Path, wanted: str | dict[str, str], what: str
) -> None:
    _write(f"{tmp_path}/out.parquet", HOURS)
    with pytest.raises(UsageError, match=what) as refused:
        list(ClosedSoFar(f"{tmp_path}/out.parquet", wanted).read())
    assert "hour INT, temp DOUBLE" in str(refused.value.hint)
    with pytest.raises(UsageError, match=what):  # declared ones refuse it before there is an output
        ClosedSoFar(f"{tmp_path}/none", wanted, "hour INT, temp DOUBLE")


def test_an_output_without_punctuations_is_refused_in_words(tmp_path: Path) -> None:
    schema = Schema.parse("hour INT, n INT")
    table = pa.table({"hour": pa.array([1], pa.int32()), "n": pa.array([1], pa.int32())})
    for output, by in ((f"{tmp_path}/out.csv", ()), (f"{tmp_path}/by.json", ("hour",))):
        sink = Target(output, partition_by=by).sink(schema, (), SinkHome(tmp_path / "drafts", "q"))
        sink.publish(sink.draft(ComputedSlice(0, [(table, [])])))
        with pytest.raises(UsageError, match="hold no punctuations"):
            list(ClosedSoFar(output, "<*, *>").read())
    for output in ("-", "catalog://lake.db.t"):
        with pytest.raises(UsageError, match="does not hold what a query has closed"):
            ClosedSoFar(output, "<*, *>")
    _write(f"{tmp_path}/out.parquet", HOURS)
    with pytest.raises(UsageError, match=r"out.parquet has no slice 9: its last one is 4"):
        xs.closed(tmp_path / "out.parquet", slice=9)


@given(data=st.data(), schema=samples.schemas(2))
def test_what_is_complete_is_covered_by_the_punctuations_up_to_then(data: st.DataObject, schema: Schema) -> None:
    """Of a declared XML output, and of Parquet, which has the types itself."""
    drawn = [[data.draw(samples.punctuations(schema))] for _ in range(4 if AT_NIGHT else 2)]
    wanted = data.draw(samples.punctuations(schema))
    for form in ("", ".parquet"):
        with tempfile.TemporaryDirectory() as home:
            try:
                _write(f"{home}/out{form}", drawn, schema)
            except (xs.QueryError, UsageError):
                continue  # the form has no place for such a name or value
            closed = ClosedSoFar(f"{home}/out{form}", str(wanted), schema.ddl())
            for number in closed.read():
                so_far = PunctuationSet(schema, [each for slice_ in drawn[: number + 1] for each in slice_])
                assert so_far.covers(wanted) == (not closed.missing)


SCRIPT = """
set -e
{run} &
query=$!
trap 'kill -INT $query; wait $query' EXIT
for hour in 1 2; do
    {write}
    {wait} out "<$hour, *>" --timeout 5m --every 100ms
    {cat} --as-of "$(ls out | tail -1 | tr -dc 0-9 | sed 's/^0*\\(.\\)/\\1/')" | grep "<hour>$hour</hour>"
done
code=0
{wait} out --where hour=4 --timeout 0s || code=$?
echo "exit code $code"
"""


def test_a_shell_script_goes_on_when_a_query_in_another_process_has_closed_an_hour(tmp_path: Path) -> None:
    xmlstream = f"{sys.executable} -m xmlstream"
    (tmp_path / "in").mkdir()
    (tmp_path / "q.sql").write_text(
        "CREATE TABLE r (hour INT) USING punctuated_xml OPTIONS (path 'in', rowTag 't', schemes 'hour');"
        "SELECT hour, count(*) AS n FROM r GROUP BY hour;"
    )
    text = (
        '<s xmlns:p="http://www.cse.ogi.edu/dot/niagara/punct"><t><hour>HOUR</hour></t><p:t><hour>HOUR</hour></p:t></s>'
    )
    (tmp_path / "template").write_text(text)
    script = SCRIPT.format(
        run=f"{xmlstream} run q.sql -o out --checkpoint state --follow --engine duckdb",
        write='sed "s/HOUR/$hour/g" template > in/$hour.tmp; mv in/$hour.tmp in/$hour.xml',
        wait=f"{xmlstream} wait",
        cat=f"{xmlstream} cat out",
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=550
    )
    assert done.returncode == 0, done.stderr
    rows = [f"<row><hour>{hour}</hour><n>1</n></row>" for hour in (1, 2)]
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("<row>")] == rows
    assert len([line for line in lines if line.startswith("out is complete since slice")]) == 2
    assert lines[-1] == "exit code 4"
    assert "out is not complete: it lacks <4, *>" in done.stderr


def test_a_wait_is_interrupted_like_any_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "xmlstream", "wait", "none", "<5>"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "nothing is closed in none yet: waiting" in process.stderr.readline()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 130
