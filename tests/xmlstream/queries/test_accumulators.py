"""Accumulators: one typed state is kept for a group in place of its rows; what it may be, and what is said else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import xmlstream as xs
from tests.xmlstream.queries.test_functions_of_groups import TABLE, TYPES, rows_of, slices, stream
from xmlstream.punct_ns.errors import QueryError, UnsafeQuery
from xmlstream.session.engines import InProcessSession

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


def together(one: Any, other: Any) -> Any:
    mosts = [most for most in (one["most"], other["most"]) if most is not None]
    return one["n"] + other["n"], one["total"] + other["total"], max(mosts, default=None)


class Sums:
    """The number of rows, the sum and the greatest value, null for none."""

    state = "n BIGINT, total DOUBLE, most DOUBLE"

    def zero(self) -> Any:
        return {"n": 0, "total": 0, "most": None}

    def add(self, state: Any, rows: pa.Table) -> Any:
        n, total, most = rows.num_rows, pc.sum(rows["v"]), pc.max(rows["v"])
        return together(state, {"n": n, "total": total.as_py() or 0.0, "most": most.as_py()})

    def merge(self, one: Any, other: Any) -> Any:
        return together(one, other)

    def finish(self, key: Any, state: Any) -> Any:
        yield {"n": state["n"], "total": state["total"], "most": state["most"]}


OUT = "k INT, n INT, total DOUBLE, most DOUBLE"


class Noted(Sums):
    """Notes each call in a file, which Spark's workers write, too."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def note(self, what: str) -> None:
        with self.log.open("a") as file:
            file.write(f"{what}\n")

    def add(self, state: Any, rows: pa.Table) -> Any:
        self.note(f"add {rows['k'][0].as_py()} {rows.num_rows}")
        return super().add(state, rows)

    def finish(self, key: Any, state: Any) -> Any:
        self.note(f"finish {key.k} {state['n']}")
        return super().finish(key, state)


@pytest.mark.parametrize("given", [Sums, Sums()])
def test_a_group_is_finished_once_it_is_closed(session: Session, tmp_path: Path, given: Any) -> None:
    documents = ("1,5 2,7 1,3", "1,4 <1> 2,1", "2,9 .,. <2>")
    query = stream(session, tmp_path, *documents).group_by("k").apply(given, OUT)
    assert slices(query) == [
        ([(1, 3, 12.0, 5.0)], ["<1, *, *, *>"]),
        ([(2, 3, 17.0, 9.0), (None, 1, 0.0, None)], ["<*, *, *, *>"]),
    ]


def test_the_rows_of_a_slice_are_added_once(session: Session, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    texts = " ".join(f"{k},{v}" for k in range(300) for v in range(5))
    query = stream(session, tmp_path, texts, "7,1 <7>").group_by("k").apply(Noted(log), OUT)
    assert query.where("n > 3").join(query.select("k AS l"), "k = l").to_arrow().num_rows == 300
    noted = sorted(
        [*(f"add {k} 5" for k in range(300)), *(f"finish {k} {5 + (k == 7)}" for k in range(300)), "add 7 1"]
    )
    assert sorted(log.read_text().splitlines()) == noted


class Last:
    """The value that a column had last: as a state comes back, whatever its type."""

    def __init__(self, type_: str) -> None:
        self.state = f"seen BOOLEAN, x {type_}"

    def zero(self) -> Any:
        return False, None

    def add(self, state: Any, rows: pa.Table) -> Any:
        return True, rows["x"][-1]

    def merge(self, one: Any, other: Any) -> Any:
        return other if other["seen"] else one

    def finish(self, state: Any) -> Any:
        return {"x": state["x"]}


@pytest.mark.parametrize("type_", TYPES)
def test_a_state_of_each_type_is_kept_as_it_is(session: Session, tmp_path: Path, type_: str) -> None:
    given = stream(session, tmp_path, "1,5 2,NaN 3,. .,4", "4,-2.5 <1> <2>", "").select("k", f"{TYPES[type_]} AS x")
    query = given.group_by("k").apply(Last(type_), f"k INT, x {type_}")
    assert str(rows_of(query)) == str(rows_of(given))  # since NaN is not NaN


def test_without_a_key_there_is_one_state_even_of_no_rows(session: Session, tmp_path: Path) -> None:
    for number, documents in enumerate((("1,5", "2,4"), ("",))):
        (tmp_path / str(number)).mkdir()
        query = stream(session, tmp_path / str(number), *documents).group_by()
        found = rows_of(query.apply(Sums, "n INT, total DOUBLE, most DOUBLE"))
        assert found == [(2, 9.0, 5.0) if number == 0 else (0, 0.0, None)]


def test_overlapping_windows_are_groups_of_their_own(session: Session, tmp_path: Path) -> None:
    given = stream(session, tmp_path, "11,5 12,6 21,1 25,2 <(,19]>", "30,1 41,3", schemes="k prefix")
    windows = given.select("timestamp_seconds(k * 60) AS ts", "v").window("ts", "20 minutes", "10 minutes")
    groups = windows.select("window.start AS begin", "v").group_by("begin")
    query = groups.apply(Sums, "begin TIMESTAMP, n INT, total DOUBLE, most DOUBLE")
    expected = groups.agg("CAST(count(*) AS INT) AS n", "sum(v) AS total", "max(v) AS most")
    assert rows_of(query) == rows_of(expected)


def test_a_frame_of_pandas_is_added_where_it_is_annotated(session: Session, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    space: dict[str, Any] = {"pd": pd, "Sums": Sums, "together": together}
    text = "class Frames(Sums):\n  def add(self, state, rows: pd.DataFrame):\n"
    exec(f"{text}    return together(state, dict(n=len(rows), total=rows.v.sum(), most=rows.v.max()))", space)
    query = stream(session, tmp_path, "1,5 1,6 <1>").group_by("k").apply(space["Frames"](), OUT)
    assert rows_of(query) == [(1, 2, 11.0, 6.0)]


def changed(**methods: Any) -> Any:
    """The accumulator with other methods."""
    return type("Sums", (Sums,), methods)


RETURNED = "of the accumulator sums returned what is not as declared, for the group k = 1, l = 2: "
RAISED = "of the accumulator sums raised ZeroDivisionError for the group k = 1, l = 2: "

WRONG: list[tuple[Any, str]] = [
    ({"add": lambda self, state, rows: {"n": "x", "total": 1, "most": 1}},
     f"add {RETURNED}n = 'x' is not a valid BIGINT: it is of Python's type str"),
    ({"add": lambda self, state, rows: {"n": 1.5, "total": 1, "most": 1}}, "n = 1.5 is not a valid BIGINT"),
    ({"add": lambda self, state, rows: {"n": 1 << 70, "total": 1, "most": 1}}, "n = 1180591620717411303424 is not a"),
    ({"add": lambda self, state, rows: None}, "None is no state"),
    ({"add": lambda self, state, rows: {"n": 1, "total": 2}}, "the state {'n': 1, 'total': 2} lacks most"),
    ({"add": lambda self, state, rows: {"n": 1, "total": 2, "most": 3, "m": 4}}, "has a column m"),
    ({"add": lambda self, state, rows: (1, 2)}, "the state (1, 2) has 2 columns, not 3"),
    ({"add": lambda self, state, rows: 1 // 0}, f"add {RAISED}"),
    ({"zero": lambda self: ("x", 0, 0)}, f"zero {RETURNED}n = 'x'"),
    ({"zero": lambda self: 1 // 0}, f"zero {RAISED}"),
    ({"merge": lambda self, one, other: (0, "y", 0)}, f"merge {RETURNED}total = 'y'"),
    ({"merge": lambda self, one, other: 1 // 0}, f"merge {RAISED}"),
    ({"finish": lambda self, key, state: [{"n": 1.5, "total": 1, "most": 1}]}, f"finish {RETURNED}n = 1.5 is not"),
    ({"finish": lambda self, key, state: 1 // 0}, f"finish {RAISED}"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_is_not_as_declared_is_an_error_with_method_and_group(
    session: Session, tmp_path: Path, number: int
) -> None:
    methods, words = WRONG[number]
    query = stream(session, tmp_path, "1,5", "1,6").group_by("k", "k + 1 AS l").apply(changed(**methods), OUT)
    with pytest.raises(QueryError, match=re.escape(words)) as raised:
        query.to_arrow()
    assert f"{Path(__file__).name}, line" in str(raised.value.where)


class Half:
    """Lacks three things."""

    def zero(self) -> Any:
        return ()

    def add(self, state: Any, rows: Any) -> Any:
        return state


def made_with(needed: Any) -> Any:
    class Needs(Sums):
        def __init__(self, log: Any) -> None: ...

    return Needs


NOT_SO: list[tuple[Any, str]] = [
    (Half, "the accumulator half lacks merge and finish and state"),
    (Half(), "the accumulator half lacks merge and finish and state"),
    (changed(state=None), "the accumulator sums lacks state"),
    (changed(merge=None), "the accumulator sums lacks merge"),
    (changed(state="n MAP<STRING, INT>"), "the accumulator sums cannot have the state n MAP<STRING, INT>"),
    (changed(state="n INT NOT NULL"), "NOT NULL of the column n"),
    (changed(state=""), "a schema without attributes"),
    (changed(zero=lambda self, key: 0), "zero of the accumulator sums takes 1 argument, not 0"),
    (changed(add=lambda self, rows: 0), "add of the accumulator sums takes 1 argument, not 2"),
    (changed(finish=lambda self: 0), "finish of the accumulator sums takes 0 arguments, not 2"),
    (made_with(1), "the class of the accumulator needs cannot be called: TypeError"),
    (dict, "dict is a class"),
]


@pytest.mark.parametrize("number", range(len(NOT_SO)))
def test_what_is_no_accumulator_is_said_before_it_runs(
    in_process: InProcessSession, tmp_path: Path, number: int
) -> None:
    given, words = NOT_SO[number]
    with pytest.raises((QueryError, xs.UsageError), match=re.escape(words)):
        stream(in_process, tmp_path, "1,5").group_by("k").apply(given, OUT)


def test_groups_are_kept_and_no_tuples(in_process: InProcessSession, tmp_path: Path) -> None:
    query = stream(in_process, tmp_path, "1,5 2,6 2,.", "2,7").group_by("k").apply(Sums, OUT)
    text = query.explain("text")
    assert "keeps groups until k closes" in text
    assert "tuples of groups" not in text
    query.run(tmp_path / "out", checkpoint=tmp_path / "state", keep_open=True)
    kept = xs.kept(tmp_path / "state", "group_by")
    assert sorted(kept.select(["k", "state"]).to_pylist(), key=str) == [
        {"k": 1, "state": {"n": 1, "total": 5.0, "most": 5.0}},
        {"k": 2, "state": {"n": 3, "total": 13.0, "most": 7.0}},
    ]
    command = [sys.executable, "-m", "xmlstream", "checkpoint", str(tmp_path / "state"), "--operator", "group_by"]
    elsewhere = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # knows no accumulator
    assert "{'n': 3, 'total': 13.0, 'most': 7.0}" in elsewhere
    unsafe = stream(in_process, tmp_path, "1,5", schemes="").group_by("k").apply(Sums, OUT)
    with pytest.raises(UnsafeQuery):
        unsafe.start(tmp_path / "out", tmp_path / "other")


ROWS = re.compile("<row>(.*?)</row>")


def test_states_outlive_a_restart_and_a_change_around_them(in_process: InProcessSession, tmp_path: Path) -> None:
    def run(output: str, documents: list[str], given: Any, *, condition: str, change: bool = False) -> list[str]:
        query = stream(in_process, tmp_path, *documents).group_by("k").apply(given, OUT).where(condition)
        query.run(tmp_path / output, checkpoint=tmp_path / "state", keep_open=True, change=change)
        return [text for path in sorted((tmp_path / output).glob("*.xml")) for text in ROWS.findall(path.read_text())]

    documents = ["1,5 2,6", "1,7 2,1 <1>", "2,3 <2>"]
    assert run("out", documents[:1], Sums, condition="n > 0") == []
    assert run("out", documents[:2], Sums, condition="n > 0") == ["<k>1</k><n>2</n><total>12</total><most>7</most>"]
    with pytest.raises(xs.StateError, match="belongs to another query"):
        run("out", documents, Sums, condition="n > 2")
    assert run("new", documents, Sums, condition="n > 2", change=True) == [
        "<k>2</k><n>3</n><total>10</total><most>6</most>"
    ]


def test_a_change_of_the_state_begins_anew(in_process: InProcessSession, tmp_path: Path) -> None:
    def run(given: Any, **options: Any) -> None:
        query = stream(in_process, tmp_path, "1,5 2,6").group_by("k").apply(given, OUT)
        query.run(tmp_path / "out", checkpoint=tmp_path / "state", keep_open=True, **options)

    run(Sums)
    with pytest.raises(xs.StateError, match="belongs to another query"):
        run(changed(state="n BIGINT, total DOUBLE, most FLOAT"))


def test_another_finish_is_another_version(
    in_process: InProcessSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def run(given: Any) -> None:
        query = stream(in_process, tmp_path, "1,5 2,6").group_by("k").apply(given, OUT)
        query.run(tmp_path / "out", checkpoint=tmp_path / "state", keep_open=True)

    run(Sums)
    run(Sums)
    assert "sums" not in caplog.text
    run(changed(finish=lambda self, key, state: []))
    assert caplog.text.count("the function sums is ") == 1


def test_open_groups_have_answers_so_far(in_process: InProcessSession, tmp_path: Path) -> None:
    query = stream(in_process, tmp_path, "1,5 2,6", "1,7 <1>").group_by("k").apply(Sums, OUT)
    handle = query.start(tmp_path / "out", tmp_path / "state")
    try:
        handle.processAllAvailable()
        assert handle.so_far().to_arrow().to_pylist() == [{"k": 2, "n": 1, "total": 6.0, "most": 6.0}]
    finally:
        handle.stop()


MODULE = """
class Count:
    state = "n BIGINT"
    def zero(self): return (0,)
    def add(self, state, rows): return {"n": state["n"] + rows.num_rows}
    def merge(self, one, other): return {"n": one["n"] + other["n"]}
    def finish(self, key, state): return [{"n": state["n"]}]

class Half:
    zero = merge = None
"""


@pytest.mark.parametrize("text", ["SELECT * FROM counted(TABLE(s) PARTITION BY k)", "SELECT * FROM half(TABLE(s))", ""])
def test_sql_names_its_class(session: Session, tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"accumulators{len(text)}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    stream(session, tmp_path, "1,5 2,7 1,3", "1,4")
    create = f"CREATE FUNCTION counted AS '{name}:Count' RETURNS TABLE (k INT, n INT);\n"
    if "half" in text:
        create = f"CREATE FUNCTION half AS '{name}:Half' RETURNS TABLE (k INT, n INT);\n"
    script = TABLE.format(path=tmp_path / "in") + create + (text or "SELECT counted(k) AS x FROM s")
    if "counted(TABLE" in text:
        assert rows_of(xs.from_sql(session, script)) == [(1, 3), (2, 1)]
        return
    words = "the accumulator half lacks zero and add and merge and finish and state" if text else "function of groups"
    with pytest.raises(QueryError, match=words):
        xs.from_sql(session, script)
