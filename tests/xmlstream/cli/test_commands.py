"""The command line as a user meets it: what it prints where, how it ends, and how quickly it begins."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from lxml import etree

import xmlstream as xs
from tests.harness.pages import blocks
from xmlstream.cli.commands import main
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.session.spark_session import cores_of
from xmlstream.sources.generators.sensors import write_sensors
from xmlstream.sql import script

ROOT = Path(__file__).parents[3]
SCHEMA = "sid STRING, hour INT, min INT, currtmp DOUBLE"
QUERY = ROOT / "data" / "warehouse.sql"
VARIABLES = {"AUCTIONS": "auctions"}


Result = subprocess.CompletedProcess[str]
Command = Callable[..., Result]


def xmlstream(*arguments: object, stdin: str | None = None) -> Result:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "xmlstream", *map(str, arguments)]
    wide = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=300, env=wide, cwd=ROOT
    )


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """The command in this process, for what needs no Spark: there is no Java."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    # The command is a script, also where these tests are run by `python -m pytest`.
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)

    def run(*arguments: object, stdin: str = "") -> Result:
        monkeypatch.setattr(sys, "argv", ["xmlstream", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as raised:
            main()
        out, err = capfd.readouterr()
        return Result([*map(str, arguments)], int(str(raised.value.code)), out, err)

    return run


def said(result: Result) -> list[str]:
    """Standard error, which holds no traceback, of Python's or of Java's."""
    assert "Traceback" not in result.stderr
    assert "\tat " not in result.stderr
    assert "WARN" not in result.stderr
    return result.stderr.splitlines()


def test_a_full_disk_is_named_with_how_the_query_goes_on(
    here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fails(*_: object, **__: object) -> None:
        raise full

    monkeypatch.setattr("xmlstream.cli.run.run_script", fails)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=0 if path == str(state) else 10))
    given = ["run", QUERY, "-D", "SENSORS=s", "-o", tmp_path / "out"]
    ended = here(*given, "--checkpoint", state)
    goes_on = f"make room; the same command then goes on from the checkpoint {state}"
    assert (ended.returncode, said(ended)[-2:]) == (1, [f"the disk of {state} is full", f"  Hint: {goes_on}"])
    full.filename = "/elsewhere/x"
    ended = here(*given)
    assert said(ended)[-2] == "the disk of /elsewhere/x is full"
    assert "then run the same command again" in said(ended)[-1]


@pytest.fixture
def sensors(tmp_path: Path) -> Path:
    write_sensors(tmp_path / "in", sensors=2, hours=3, reports_per_hour=10, seed=5)
    return tmp_path / "in"


# What needs no Spark, and must not load it.


@pytest.mark.parametrize("arguments", ["run q.sql --engine duckdb -o -", "explain q.sql --engine duckdb"])
def test_python_looks_for_garbage_again_once_a_command_has_started(arguments: str, tmp_path: Path) -> None:
    """A start does not; a process that runs for years must."""
    table = "CREATE TABLE r (v BIGINT) USING punctuated_xml OPTIONS (path 'r.xml', rowTag 'r');"
    (tmp_path / "q.sql").write_text(f"{table} SELECT v FROM r")
    (tmp_path / "r.xml").write_text("<rs><r><v>1</v></r></rs>")
    program = (
        "import atexit, gc, sys; from xmlstream.__main__ import main;"
        "atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 0, file=sys.stderr)); main()"
    )
    command = [sys.executable, "-c", program, *arguments.split()]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stderr.endswith("True True\n")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["generate", "auctions", "--help"], ["check", "-h"]]
)
def test_help_is_there_at_once(arguments: list[str]) -> None:
    program = (
        "import sys; from xmlstream.cli.commands import app; app(sys.argv[1:], standalone_mode=False);"
        "print(sorted({'pyspark', 'pyarrow', 'numpy', 'sqlglot', 'lxml'} & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert "Usage" in result.stdout
    assert result.stderr.strip() == "[]"


def test_the_same_seed_gives_the_same_bytes(here: Command, tmp_path: Path) -> None:
    for name in ("a", "b"):
        counts = ["--sensors", 2, "--hours", 2, "--punctuations-per-hour", 2, "--reports-per-hour", 6]
        result = here("generate", "sensors", *counts, "--seed", 7, "--out", tmp_path / name)
        assert result.returncode == 0
        assert result.stdout.split() == [str(tmp_path / name / f"sensor{n}.xml") for n in (1, 2)]
    written = (tmp_path / "a" / "sensor1.xml").read_bytes()
    assert written == (tmp_path / "b" / "sensor1.xml").read_bytes()
    root = etree.fromstring(written)
    assert len(root.findall("tempdata")) == 12
    assert len(root.findall(f"{{{PUNCT_NS}}}tempdata")) == 4


def test_check_says_what_is_grammatical_and_what_is_not(here: Command, sensors: Path) -> None:
    arguments = ["--schema", SCHEMA, "--row-tag", "tempdata"]
    result = here("check", sensors / "sensor1.xml", *arguments)
    assert result.returncode == 0
    assert result.stdout == f"{sensors / 'sensor1.xml'} is grammatical: 30 tuples, 3 punctuations\n"
    late = "<tempdata><sid>S1</sid><hour>1</hour><min>3</min><currtmp>1.5</currtmp></tempdata>"
    broken = sensors / "broken.xml"
    broken.write_text((sensors / "sensor1.xml").read_text().replace("</readings>", late + "</readings>"))
    result = here("check", broken, *arguments)
    assert (result.returncode, result.stdout) == (1, "")
    (what, where, *_) = said(result)
    assert "S1, 1, 3, 1.5" in what
    assert "<*, 1, *, *>" in what
    assert f"{broken}, line {len(broken.read_text().splitlines())}, column 1, item at position" in where


@pytest.mark.parametrize(
    ("schema", "tag", "words"),
    [(SCHEMA, "tempdate", ["no element is a tempdate", "tempdata"]), ("hours INT", "tempdata", ["hours", "currtmp"])],
)
def test_check_says_that_it_saw_nothing(here: Command, sensors: Path, schema: str, tag: str, words: list[str]) -> None:
    lines = (sensors / "sensor1.xml").read_text().splitlines()
    (sensors / "plain.xml").write_text("\n".join(line for line in lines if "<punct:" not in line))
    result = here("check", sensors / "plain.xml", "--schema", schema, "--row-tag", tag)
    assert (result.returncode, result.stdout) == (1, "")
    assert all(word in "".join(said(result)) for word in ["no tuple or punctuation", *words])


def test_a_later_run_repeats_no_old_dead_letter(here: Command, tmp_path: Path) -> None:
    (feed := tmp_path / "in").mkdir()
    query = tmp_path / "q.sql"
    query.write_text(
        f"CREATE TABLE r (a INT) USING punctuated_xml OPTIONS (path '{feed}', rowTag 't', mode 'PERMISSIVE');"
        "SELECT a FROM r"
    )
    noticed = []
    for night in (1, None, 2):
        if night is not None:
            (feed / f"{night}.xml").write_text(f"<r><t><a>{night}</a></t><t><a>x</a></t></r>")
        done = here(
            *("run", query, "--engine", "duckdb", "-o", tmp_path / "out"),
            *("--checkpoint", tmp_path / "state", "--keep-open"),
        )
        assert done.returncode == 0, done.stderr
        noticed.append([line.split(" were ")[0].split(" was ")[0] for line in said(done) if "malformed" in line])
    assert noticed == [["noticed in r: 1 malformed item"], [], ["noticed in r: 2 malformed items"]]


def test_check_counts_what_a_rule_would_find_late(here: Command, tmp_path: Path) -> None:
    feed, query = tmp_path / "feed.xml", tmp_path / "q.sql"
    feed.write_text("<r><t><n>1</n></t><t><n>3</n></t><t><n>2</n></t><t><n>1</n></t>")  # it may grow
    query.write_text(
        "CREATE TABLE feed (n INT) USING punctuated_xml OPTIONS (path '${FEED}', rowTag 't', punctuate 'order of n');"
        "SELECT n FROM feed"
    )
    tables = (f"CREATE TABLE {t} (n INT) USING punctuated_xml OPTIONS (path '{feed}', rowTag 't');" for t in "ab")
    (two := tmp_path / "two.sql").write_text(f"{''.join(tables)} SELECT * FROM a JOIN b USING (n)")
    of_file = ["check", feed, "--schema", "n INT", "--row-tag", "t"]
    of_query = ["check", query, "-D", f"FEED={feed}"]
    for arguments in ([*of_query], [*of_file, "--punctuate", "order of n"]):
        late = here(*arguments)
        assert (late.returncode, late.stdout) == (1, "")
        assert "2 of 4 tuples would be late: the tuple (2) comes after" in late.stderr
        assert "with slack 2 no tuple of this slice would be late" in late.stderr
    for arguments in (of_query, of_file):
        result = here(*arguments, "--punctuate", "order of n, slack 2")
        assert (result.returncode, result.stdout.endswith("is grammatical: 4 tuples, and none would be late\n")) == (
            0,
            True,
        )
    for arguments, what in (
        (["check", feed], "check needs the attributes of the tuples, and their tag"),
        ([*of_query, "--row-tag", "t"], "a query declares its streams itself"),
        (["check", two, "--punctuate", "order of n"], "--punctuate is for one stream, and there are a, b"),
        ([*of_file[:-1], "u", "--punctuate", "order of n"], "no tuple in"),
    ):
        refused = here(*arguments)
        assert refused.returncode == (1 if "tuple in" in what else 2)
        assert what in refused.stderr


def test_check_says_what_it_noticed(here: Command, sensors: Path) -> None:
    arguments = ["--schema", "hour INT, hours INT", "--row-tag", "tempdata", "--schemes", "hour; hours"]
    result = here("check", sensors / "sensor1.xml", *arguments)
    assert result.returncode == 0
    assert [line.split(": ")[1][:25] for line in said(result)] == [
        "no tuple has a value of h",
        "the scheme 'hours' was pr",
    ]


@pytest.mark.parametrize(
    ("page", "generated", "documents"),
    [
        ("xmlstream/manual/warehouse.md", "example", ["data/sensor1.xml"]),
        ("data/auctions/README.md", "generate auctions", ["auctions/auction.xml", "auctions/bid.xml"]),
    ],
)
def test_the_documentations_streams_are_free_of_findings(
    page: str, generated: str, documents: list[str], here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = next(block.text for block in blocks(page) if block.language == "sh" and generated in block.text)
    lines = [shlex.split(line)[1:] for line in commands.splitlines()]
    monkeypatch.chdir(tmp_path)
    assert not here(*next(line for line in lines if line[:2] == generated.split())).returncode
    checks = [line for line in lines if line[0] == "check"]
    if not checks:
        sources = script.read(
            (ROOT / next(line[1] for line in lines if line[0] == "run")).read_text(), VARIABLES
        ).sources
        for options in (source.options for source in sources):
            schemes = "; ".join(map(str, options.schemes))
            declared = ["--schema", options.schema.ddl(), "--row-tag", options.row_tag, "--schemes", schemes]
            checks.append(["check", options.path, *declared])
    assert [check[1] for check in checks] == documents
    for check in checks:
        result = here(*check)
        assert (result.returncode, said(result)) == (0, [])


def test_cat_of_no_output_is_an_error(here: Command, tmp_path: Path) -> None:
    result = here("cat", tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "no document" in said(result)[0]


def test_cat_prints_one_document(here: Command, tmp_path: Path) -> None:
    for number in (3, 1):
        (tmp_path / f"slice-00000000{number}.xml").write_text(f"<rows><row><n>{number}</n></row></rows>")
    result = here("cat", tmp_path)
    assert result.returncode == 0
    assert [n.text for n in etree.fromstring(result.stdout.encode()).iter("n")] == ["1", "3"]


def test_the_command_says_which_it_is(here: Command) -> None:
    result = here("--version")
    assert (result.returncode, result.stdout) == (0, f"xmlstream {xs.__version__}\n")


def test_the_shell_is_told_how_to_complete(monkeypatch: pytest.MonkeyPatch, here: Command) -> None:
    monkeypatch.setenv("_XMLSTREAM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "xmlstream che")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert here().stdout.split() == ["check", "checkpoint"]


def test_examples_are_written_and_nothing_else_is_overwritten(here: Command, tmp_path: Path) -> None:
    out = tmp_path / "data"
    assert here("example", "warehouse", "nexmark_q9.sql", "--out", out).stdout.split() == [
        str(out / "warehouse.sql"),
        str(out / "auctions" / "nexmark_q9.sql"),
    ]
    assert (out / "warehouse.sql").read_bytes() == QUERY.read_bytes()
    assert here("example", "--out", out).returncode == 0
    assert {path.name for path in out.rglob("*")} == {path.name for path in (ROOT / "data").rglob("*")}
    (out / "warehouse.sql").write_text("mine")
    result = here("example", "--out", out)
    assert (result.returncode, (out / "warehouse.sql").read_text()) == (2, "mine")
    assert "exists with other content" in said(result)[0]
    assert "nexmark_q9" in said(here("example", "nexmark_q99", "--out", out))[1]


USAGE = [
    (["run", "nowhere.sql", "-o", "out"], "nowhere.sql", None),
    (["run", "-", "-o", "out", "-D", "X"], "-D X", "NAME=VALUE"),
    (["run", "-", "-o", "out", "--conf", "=1"], "--conf =1", "KEY=VALUE"),
    (["run", "-"], "without FROM", None),
    (["run", "-", "-o", "out", "--folow"], "--folow", None),
    (["cat", "nowhere"], "nowhere", "run -o"),
    (["generate", "sensors", "--out", "out", "--sensors", "0"], "sensors", None),
    (["generate", "sensors"], "--out", None),
    (["generate", "auctions", "--out", "out", "--schemes", "bid.price"], "bid.price", "bid.auction"),
    (["check", "nowhere.xml", "--schema", "a INTT x", "--row-tag", "r"], "a INTT x", None),
    (["check", "nowhere.xml", "--schema", "a INT", "--row-tag", "r"], "no file nowhere.xml", None),
    (["nonsense"], "nonsense", None),
]


@pytest.mark.parametrize(("arguments", "what", "hint"), USAGE)
def test_bad_usage_ends_with_2_and_says_what_and_how(
    arguments: list[str], what: str, hint: str | None, here: Command
) -> None:
    result = here(*arguments, stdin="SELECT 1")
    assert result.returncode == 2
    assert not result.stdout
    text = "\n".join(said(result))
    assert what in text
    if hint is not None:
        assert hint in text


def test_a_bad_query_ends_with_2_before_spark_is_started(here: Command, tmp_path: Path) -> None:
    query = tmp_path / "q.sql"
    query.write_text(QUERY.read_text().replace("GROUP BY hour", "GROUP BY hours"))
    result = here("run", query, "-o", tmp_path / "out", "-D", "SENSORS=x")
    assert result.returncode == 2
    assert said(result) == [
        "there is no attribute hours",
        f"  {query}, line 12, column 10",
        "  Hint: did you mean hour?",
    ]
    assert not (tmp_path / "out").exists()


def test_a_variable_without_value_is_bad_usage(here: Command, tmp_path: Path) -> None:
    result = here("run", QUERY, "-o", tmp_path / "out")
    assert result.returncode == 2
    assert said(result)[0] == "the variable ${SENSORS} has no value"


def test_a_source_that_is_not_there_is_bad_usage(here: Command, tmp_path: Path) -> None:
    result = here("run", QUERY, "-o", tmp_path / "out", "-D", f"SENSORS={tmp_path}")
    assert result.returncode == 2
    assert said(result)[0] == f"there is no file {tmp_path / 'sensor1.xml'}"


def test_the_time_of_a_process_includes_pythons_start() -> None:
    late = "import time; time.sleep(0.5); from xmlstream.cli.progress import seconds_since_start as s; print(s())"
    done = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True, check=True, cwd=ROOT)
    assert float(done.stdout) >= 0.4


def test_without_java_the_command_says_so(here: Command, sensors: Path, tmp_path: Path) -> None:
    result = here("run", QUERY, "-o", tmp_path / "out", "-D", f"SENSORS={sensors}")
    assert result.returncode == 2
    assert said(result)[0] == "there is no Java"
    assert "Spark needs Java 17 or newer" in result.stderr
    assert "--engine duckdb" in result.stderr


@pytest.mark.parametrize(
    ("option", "what"),
    [
        (["--follow", "--trigger", "ten"], "trigger 'ten' is not a span of time"),
        (["--trigger", "10s"], "trigger 10s for a query that does not wait for more input"),
        (["--purge-after", "soon"], "purge_after 'soon' is neither a number of slices nor a span of time"),
        (["--follow", "--keep-open"], "--follow and --keep-open exclude each other"),
        (["--warn-after", "later"], "warn_after 'later' is neither a number of slices nor a span of time"),
    ],
)
def test_a_span_of_time_is_read_before_spark_is_started(
    option: list[str], what: str, here: Command, sensors: Path, tmp_path: Path
) -> None:
    result = here("run", QUERY, "-o", tmp_path / "out", "-D", f"SENSORS={sensors}", *option)
    assert (result.returncode, said(result)[0]) == (2, what)


@pytest.mark.parametrize(
    "command", [["explain", "-"], ["run", "-", "-o", "out"], ["run", "-", "-o", "out", "--follow"]]
)
def test_a_query_of_a_static_table_alone_is_refused_with_the_stream_to_declare(
    command: list[str], here: Command
) -> None:
    table = "CREATE TABLE t (a INT) USING xml OPTIONS (path 't.xml', rowTag 'r'); SELECT a FROM t"
    assert said(here(*command, stdin=table)) == [
        "the query reads no stream",
        "  Hint: declare t USING punctuated_xml, or use Spark itself if all tables are static",
    ]
    others = table.replace("xml OPTIONS", "csv OPTIONS")
    assert said(here(*command, stdin=others))[1] == "  Hint: use Spark itself if all tables are static"


def test_a_followed_query_says_which_table_is_read_once(here: Command) -> None:
    tables = "CREATE TABLE {0} (a INT) USING {1} OPTIONS (path '{0}.xml', rowTag 'r');"
    query = f"{tables.format('s', 'punctuated_xml')}{tables.format('t', 'xml')} SELECT a FROM s JOIN t USING (a)"
    assert said(here("explain", "-", "--follow", stdin=query)) == [
        "warning: t is read once, when the query begins: USING xml declares a table that does not change;"
        " USING punctuated_xml also reads what arrives later"
    ]
    assert not said(here("explain", "-", stdin=query))


def test_sections_of_many_documents_close_and_the_hint_for_one_that_closes_everything_leads_where_it_says(
    here: Command, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for number in (1, 2):
        (tmp_path / "in" / f"{number}.xml").write_text(f"<r><s id='{number}'><v>5</v></s></r>")
    query = f"CREATE TABLE t (s INT, v INT) USING punctuated_xml OPTIONS (path '{tmp_path / 'in'}', path.s '../@id',"
    query += " rowTag 'v', path.v '.', sectionEnds '{}'{}); SELECT s, sum(v) AS v FROM t GROUP BY s"

    def run(name: str, ends: str, more: str = "") -> subprocess.CompletedProcess[str]:
        into = ("-o", tmp_path / name, "--checkpoint", tmp_path / f"{name}-state", "--engine", "duckdb", "--keep-open")
        return here("run", "-", *into, stdin=query.format(ends, more))

    assert "2 tuples out" in said(run("each", "s s"))[-1]
    what, hint = said(run("all", "s s; r *"))
    assert what == "the end of r in one document closes everything, and others may follow it"
    (option,) = re.findall(r"documents 'files'", hint)
    assert "2 tuples out" in said(run("streams", "s s; r *", f", {option}"))[-1]


def test_one_document_of_an_earlier_query_is_one(here: Command, tmp_path: Path) -> None:
    (tmp_path / "slice-000000000.xml").write_text("<rows/>")
    for also in ((), ("slice-000000001.xml",)):
        for name in also:
            (tmp_path / name).write_text("<rows/>")
        result = here("run", QUERY, "-o", tmp_path, "-D", "SENSORS=x")
        assert f"holds {'2 documents' if also else '1 document'} of an earlier query" in said(result)[0]


def test_an_output_of_another_query_is_not_touched(here: Command, tmp_path: Path) -> None:
    (tmp_path / "slice-000000000.xml").write_text("<rows/>")
    result = here("run", QUERY, "-o", tmp_path, "-D", "SENSORS=x")
    assert result.returncode == 2
    assert "earlier query" in said(result)[0]
    assert (tmp_path / "slice-000000000.xml").exists()


def test_a_reader_that_has_seen_enough_leaves_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "slice-000000000.xml").write_text(f"<rows>{'<row><a>1</a></row>' * 100_000}</rows>")
    command = f"'{sys.executable}' -m xmlstream cat '{tmp_path}' | head -c 10"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (len(result.stdout), result.stderr) == (10, "")


def test_a_followed_input_that_has_ended_for_good_is_reported(tmp_path: Path) -> None:
    (tmp_path / "s.xml").write_text("<ts><t><day>1</day></t></ts>")
    table = (
        f"CREATE TABLE s (day INT) USING punctuated_xml OPTIONS (path '{tmp_path}/s.xml', rowTag 't', schemes 'day')"
    )
    (tmp_path / "q.sql").write_text(f"{table}; SELECT day, count(*) AS n FROM s GROUP BY day")
    into = ("-o", tmp_path / "out", "--checkpoint", tmp_path / "state", "--engine", "duckdb", "--follow")
    command = [sys.executable, "-m", "xmlstream", "run", str(tmp_path / "q.sql"), *map(str, into)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr is not None
        assert any("the input has ended for good, and the query is closed" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        assert "done: 1 slice" in process.stderr.read()
    again = xmlstream("run", tmp_path / "q.sql", *into)
    assert (again.returncode, "with another checkpoint and output" in again.stderr) == (0, True)


def test_a_master_on_this_machine_tells_its_cores() -> None:
    assert cores_of("local[*]") == len(os.sched_getaffinity(0))
    assert cores_of("local-cluster[2, 2, 1024]") == 4
    assert cores_of("spark://host:7077") is None


# What runs on Spark, each in a process of its own.


def maxima(document: bytes, row_tag: str = "maxtemp") -> dict[str, str]:
    rows = etree.fromstring(document).iterchildren(row_tag)
    return {row.findtext("hour") or "": row.findtext("maxtemp") or "" for row in rows}


def expected(sensors: Path) -> dict[str, str]:
    found: dict[str, float] = {}
    for path in sensors.glob("sensor[12].xml"):
        for row in etree.parse(path).getroot().iterchildren("tempdata"):
            hour, temperature = row.findtext("hour") or "", float(row.findtext("currtmp") or "")
            found[hour] = max(found.get(hour, temperature), temperature)
    return {hour: str(temperature) for hour, temperature in found.items()}


@pytest.mark.rest
@pytest.mark.spark
@pytest.mark.slow
def test_the_papers_query_from_the_shell_is_interrupted_and_goes_on(sensors: Path, tmp_path: Path) -> None:
    whole = {n: (sensors / f"sensor{n}.xml").read_text() for n in (1, 2)}
    for n, text in whole.items():
        # Up to the end of the second hour, and the document not yet at its end.
        (sensors / f"sensor{n}.xml").write_text(text[: text.index("<hour>2<")].rpartition("<tempdata>")[0])
    out, metrics = tmp_path / "out", tmp_path / "metrics.jsonl"
    arguments = ["run", QUERY, "-D", f"SENSORS={sensors}", "-o", out, "--row-tag", "maxtemp", "--as-written"]
    arguments += ["--checkpoint", tmp_path / "state", "--metrics", metrics, "--master", "local[2]"]
    command = [sys.executable, "-m", "xmlstream", *map(str, arguments), "--follow"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    deadline = time.monotonic() + 300
    while not list(out.glob("slice-*.xml")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, stdout) == (0, "")
    for n, text in whole.items():
        (sensors / f"sensor{n}.xml").write_text(text)
    result = xmlstream(*arguments)
    assert (result.returncode, result.stdout) == (0, "")
    # What is redirected says when it starts, when its first slice is out, and how it ends.
    begun, goes_on, slice_, ended = said(result)
    assert begun == "starting Spark"
    assert re.fullmatch(
        rf"going on from the checkpoint {tmp_path / 'state'}, after slice \d+ of [-\d]+ [:\d]+ UTC, .*", goes_on
    )
    assert re.match(r"slice \d+: 1 slice, 24 items", slice_)
    first, second = done(stderr.splitlines()[-1]), done(ended)
    assert [sum(counts) for counts in zip(first, second, strict=True)] == [68, 3]
    document = xmlstream("cat", out)
    assert maxima(document.stdout.encode()) == expected(sensors)
    reports = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert sum(report["items_in"] for report in reports) == 68
    names = {"name", "tuples_in", "tuples_out", "kept", "purged", "punctuations_in", "punctuations_out"}
    assert names | {"punctuations_held", "overdue"} == set(reports[0]["operators"][0])
    assert {"union", "group_by", "sensor1", "sensor2"} <= {o["name"] for o in reports[0]["operators"]}
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "all.xml").write_text(document.stdout)
    checked = xmlstream(
        "check", tmp_path / "again" / "all.xml", "--schema", "maxtemp DOUBLE, hour INT", "--row-tag", "maxtemp"
    )
    assert checked.returncode == 0, checked.stderr


def done(line: str) -> tuple[int, int]:
    """The items and the tuples of the only line that a run ends with."""
    found = re.fullmatch(r"done: \d slices?, (\d+) items in, (\d+) tuples? out in .*", line)
    assert found, line
    return int(found[1]), int(found[2])


@pytest.mark.spark
def test_standard_output_gets_one_document_and_temporary_directories_nothing(
    sensors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for variable in ("TMPDIR", "SPARK_LOCAL_DIRS"):
        monkeypatch.setenv(variable, str(scratch))
    few = ["--conf", "spark.sql.shuffle.partitions=1"]
    arguments = ["run", "-", "-D", f"SENSORS={sensors}", "-o", "-", "--verbose", *few]
    result = xmlstream(*arguments, stdin=QUERY.read_text())
    assert result.returncode == 0
    assert maxima(result.stdout.encode(), "row") == expected(sensors)
    assert [line for line in said(result) if line.startswith("slice ")]
    assert said(result)[-1].startswith("done: ")
    # Java ends a moment after the command, and takes with it what it wrote.
    deadline = time.monotonic() + 300
    while left := list(scratch.iterdir()):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


@pytest.mark.rest
@pytest.mark.spark
def test_bad_input_ends_with_1_and_says_where(sensors: Path, tmp_path: Path) -> None:
    bad = (
        (sensors / "sensor1.xml").read_text().replace("<min>", "<min><!-- -->", 1).replace("<hour>2<", "<hour>two<", 1)
    )
    (sensors / "sensor1.xml").write_text(bad)
    line = bad[: bad.index("two")].count("\n") + 1
    result = xmlstream("run", QUERY, "-D", f"SENSORS={sensors}", "-o", tmp_path / "out")
    assert result.returncode == 1
    text = "\n".join(said(result))
    assert "two" in text
    assert f"sensor1.xml, line {line}" in text
    assert not list((tmp_path / "out").glob("slice-*.xml"))


REPORT = "CREATE TABLE report (sid STRING, ts INT) USING punctuated_xml OPTIONS (path 'r.xml', rowTag 'r'{});\n"


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        (
            REPORT.format("") + "SELECT ts, soundex(sid) AS sound FROM report",
            ["the function soundex is not proven to be equal in DuckDB", "  standard input, line 2, column 12"],
        ),
        (
            REPORT.format(", punctuate 'order of ts, max_ahead 5'") + "SELECT ts FROM report",
            [
                "table report: max_ahead of the rule 'order of ts' is not proven to be equal in DuckDB",
                "  standard input, line 1, column 109",
            ],
        ),
        (
            REPORT.format("")
            + "CREATE TABLE place (sid STRING, at STRING) USING json OPTIONS (path 'places.json');\n"
            + "SELECT ts, at FROM report JOIN place USING (sid)",
            [
                "table place: a static table USING json is not proven to be equal in DuckDB",
                "  standard input, line 2, column 14",
            ],
        ),
    ],
)
def test_explain_says_what_an_engine_refuses_as_run_does_before_anything_starts(
    here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, refused: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.xml").write_text("<r/>", encoding="utf-8")
    assert here("explain", "-", stdin=query).returncode == 0
    for command in (["explain", "-"], ["run", "-", "-o", "out"]):
        result = here(*command, "--engine", "duckdb", stdin=query)
        assert result.returncode == 2
        assert said(result) == [*refused, "  Hint: leave out --engine duckdb: Spark computes it"]
        assert not result.stdout
    assert not Path("out").exists()
    fine = here("explain", "-", "--engine", "duckdb", stdin=REPORT.format("") + "SELECT ts FROM report")
    assert fine.returncode == 0
    assert fine.stdout
    assert said(here("explain", "-", "--engine", "flink", stdin=query))[0] == "there is no engine flink"


@pytest.mark.parametrize(
    "command",
    [
        ["cat", "hdfs://there/x"],
        ["check", "hdfs://there/x", "--schema", "a INT", "--row-tag", "a"],
        ["infer", "hdfs://there/x"],
        ["explain", "--checkpoint", "hdfs://there/x"],
        ["monitor", "--checkpoint", "hdfs://there/x"],
        *(
            ["run", "-", "-o", "out", "--engine", "duckdb", f"--{each}", "hdfs://there/x"]
            for each in ("metrics", "checkpoint")
        ),
    ],
)
def test_another_file_system_is_refused_everywhere_with_the_same_words(
    here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = here(*command, stdin=REPORT.format("") + "SELECT ts FROM report")
    assert result.returncode == 2
    assert said(result)[-2:] == [
        "hdfs://there/x is neither on this file system nor in an object store",
        "  Hint: mount it where all nodes see it, or use an object store: s3://bucket/path, gs://, az://",
    ]
    assert not list(tmp_path.iterdir())


def test_a_warning_of_a_run_is_printed_once(here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.xml").write_text("<s><r><sid>A</sid><ts>1</ts></r></s>", encoding="utf-8")
    table = "CREATE TABLE place (sid STRING, at STRING) USING csv OPTIONS (path 'places.csv');\n"
    query = REPORT.format("") + table + "SELECT ts, at FROM report JOIN place USING (sid)"
    for name in ("Bern", "Basel"):
        Path("places.csv").write_text(f"A,{name}\n", encoding="utf-8")
        result = here("run", "-", "-o", "out", "--keep-open", "--checkpoint", "c", "--engine", "duckdb", stdin=query)
        assert result.returncode == 0
        assert sum("of the static table place" in line for line in said(result)) == (name == "Basel")


@pytest.mark.parametrize(
    ("schema", "tag", "code", "line"),
    [
        ("a INT", "u", 1, "no tuple or punctuation in r.xml: no element is a u; there are a, b, t"),
        ("c INT", "t", 1, "no tuple or punctuation in r.xml: no tuple has a value of c, at the path c"),
        ("a INT, c INT", "t", 0, "noticed in r.xml: no tuple has a value of c, at the path c"),
    ],
)
def test_check_fails_if_nothing_is_as_declared_and_notices_a_column_that_no_tuple_has(
    here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str, tag: str, code: int, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.xml").write_text("<r><t><a>1</a><b>2</b></t></r>", encoding="utf-8")
    result = here("check", "r.xml", "--schema", schema, "--row-tag", tag)
    assert result.returncode == code
    assert said(result)[0].startswith(line)
    Path("r.xml").write_text("<r/>", encoding="utf-8")  # as a source writes it that has sent nothing
    assert here("check", "r.xml", "--schema", schema, "--row-tag", tag).returncode == 0
