"""Functions of Python in queries: declared by CREATE FUNCTION or in a program, where they may stand, what goes out."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql import script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.builder.query import Query
    from xmlstream.session.engines import InProcessSession, Session

PUNCT = 'xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct"'


def stream(session: Session, directory: Path, *documents: str, schemes: str = "x prefix") -> Query:
    """A query of documents, one in each slice: `1 5 (,5]` has two tuples and a punctuation."""
    (directory / "in").mkdir(exist_ok=True)
    for number, items in enumerate(documents):
        names = ((item, "punct:t" if item[0] in "([{" else "t") for item in items.split())
        text = f"<r {PUNCT}>{''.join(f'<{name}><x>{item}</x></{name}>' for item, name in names)}</r>"
        (directory / "in" / f"{number}.xml").write_text(text, encoding="utf-8")
    return xs.read(session, directory / "in", "x INT", rowTag="t", schemes=schemes, maxFilesPerSlice=1)


def values(query: Query, name: str) -> list[Any]:
    """The values of an attribute of the result, in order."""
    found: list[Any] = query.to_arrow()[name].to_pylist()
    return sorted(found)


def slices(query: Query) -> list[tuple[list[Any], list[str]]]:
    """The values of the first attribute, and the punctuations, of each slice."""
    return [
        (sorted((row[query.columns[0]] for row in found.tuples.to_pylist()), key=str), [*map(str, found.punctuations)])
        for found in query.slices()
    ]


@xs.function("DOUBLE", monotone=True)
def fahr(x: float) -> float:
    return x * 1.8 + 32


@xs.function("STRING", injective=True)
def code(x: int) -> str:
    return "abcdefghij"[x] + "!"


@xs.function("INT", falling=True, injective=True, name="opposite_of")
def opposite(x: int) -> int:
    return -x


@xs.function("INT", monotone=True)
def falls(x: int) -> int:
    return -x


@xs.function("INT", injective=True)
def halves(x: int) -> int:
    return x // 2


@xs.function("ARRAY<INT>")
def upto(x: int | None) -> list[int] | None:
    return None if x is None else [*range(x)]


THROUGH = [
    ("fahr(x) AS y", [([33.8, 41.0, 44.6], ["<(,42.8)>"]), ([46.4], ["<*>"])]),
    ("floor(fahr(x) / 10) AS y", [([3, 4, 4], ["<(,3]>"]), ([4], ["<*>"])]),
    ("opposite_of(x) AS y", [([-1, -5, -7], ["<[-5,)>"]), ([-8], ["<*>"])]),
    ("opposite_of(x + 1) AS y", [([-2, -6, -8], ["<[-6,)>"]), ([-9], ["<*>"])]),
    ("x + opposite_of(x) AS y", [([0, 0, 0], []), ([0], ["<*>"])]),
]


@pytest.mark.parametrize(("item", "expected"), THROUGH)
def test_punctuations_pass_through_a_function_that_is_declared_monotone(
    session: Session, tmp_path: Path, item: str, expected: list[Any]
) -> None:
    assert slices(stream(session, tmp_path, "1 5 (,5] 7", "8 (,)").select(item)) == expected


def test_constants_pass_through_a_function_that_is_declared_injective(session: Session, tmp_path: Path) -> None:
    query = stream(session, tmp_path, "1 5 {1,5} 7", "8", schemes="x").select("code(x) AS y")
    assert [str(scheme) for scheme in query.plan.schemes] == ["y"]
    assert slices(query)[0] == (["b!", "f!", "h!"], ["<{b!,f!}>"])


@pytest.mark.parametrize(
    ("item", "documents", "words"),
    [
        ("falls(x) AS y", ("1 5 (,5]", "7"), "the function falls is declared rising, and is not"),
        ("falls(x) + 1 AS y", ("1 5 (,5]", "7"), "the function falls is declared rising, and is not"),
        ("halves(x) AS y", ("4 {4}", "5"), "the function halves is declared injective, and is not"),
    ],
)
def test_a_false_declaration_is_found_by_what_comes_out(
    session: Session, tmp_path: Path, item: str, documents: tuple[str, ...], words: str
) -> None:
    query = stream(session, tmp_path, *documents, schemes="x")
    with pytest.raises(QueryError, match=words) as raised:
        slices(query.select(item))
    assert "came after the punctuation" in (raised.value.where or "")


def test_a_false_declaration_is_found_after_a_restart(in_process: InProcessSession, tmp_path: Path) -> None:
    def run() -> None:
        query = stream(in_process, tmp_path, *documents).select("falls(x) AS y")
        query.run(output=tmp_path / "out", checkpoint=tmp_path / "state", keep_open=True)

    documents = ["1 5 (,5]"]
    run()
    documents.append("7")
    with pytest.raises(QueryError, match="the function falls is declared rising, and is not"):
        run()


def test_it_stands_in_every_clause_of_one_row(session: Session, tmp_path: Path) -> None:
    query = stream(session, tmp_path, "1 5 7", "8 (,8]")
    grouped = (
        query.where("fahr(x) > 40").group_by("opposite_of(x) DIV 2 AS k").agg("max(fahr(x)) AS m", "count(*) AS n")
    )
    assert sorted(map(tuple, (row.values() for row in grouped.to_arrow().to_pylist()))) == [
        (-4, 46.4, 1), (-3, 44.6, 1), (-2, 41.0, 1),
    ]  # fmt: skip
    having = query.group_by("x").agg("sum(x) AS s").where("fahr(s) > 42")
    assert values(having, "x") == [7, 8]
    joined = query.join(
        query.select("opposite_of(x) AS z"), "opposite_of(left.x) = right.z AND fahr(left.x) > fahr(-right.z) - 1"
    )
    assert values(joined, "x") == [1, 5, 7, 8]
    assert len(query.explode("upto(x)", "e").to_arrow()) == 21
    assert query.select("fahr(x)", "fahr(x) IS NULL AS n").columns == ["fahr(x)", "n"]
    assert query.group_by().agg("count(fahr(x)) AS n").to_arrow()["n"].to_pylist() == [4]


NOT_HERE = [
    (lambda q: q.select("fahr(x, 1) AS y"), "fahr takes 1 argument, not 2"),
    (lambda q: q.select("fahr(DISTINCT x) AS y"), "DISTINCT is not supported here"),
    (lambda q: q.select("fahr(x) OVER (ORDER BY x) AS y"), "OVER is not supported"),
    (lambda q: q.select("fahr(NULL) AS y"), "cannot take a VOID"),
    (lambda q: q.join(q, "left.x = right.x AND fahr(left.x) > right.x", "left"), "ON clause of this join"),
    (lambda q: q.punctuate(xs.ByPredicate("fahr(x) > 3", ("x",))), "cannot stand in the condition of a rule"),
    (lambda q: q.select("nothing(x) AS y"), "the function nothing is not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "words"), NOT_HERE)
def test_where_it_may_not_stand_is_refused_by_name(session: Session, tmp_path: Path, build: Any, words: str) -> None:
    with pytest.raises(QueryError, match=re.escape(words)):
        build(stream(session, tmp_path, "1"))


def test_a_function_of_sql_keeps_its_name() -> None:
    for name, words in (("abs", "abs is a function of SQL"), ("minus", "minus is a word of SQL")):
        with pytest.raises(QueryError, match=words):
            xs.function("INT", name=name)(opposite)
    with pytest.raises(QueryError, match="needs the type of the results"):
        xs.function(opposite)  # type: ignore[arg-type]


MODULE = """
from beside_{n} import FACTOR

def twice(x):
    return None if x is None else x * FACTOR

def many(x):
    yield x
"""
TABLE = "CREATE TABLE s (x INT) USING punctuated_xml OPTIONS (path '{path}', rowTag 't', schemes 'x prefix');"
QUERY = TABLE + "CREATE FUNCTION twice AS 'fns_{n}:twice' RETURNS INT MONOTONE; SELECT twice(x) AS y FROM s"


@pytest.fixture
def modules(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The end of the names of two modules beside the files of SQL of a test, which no other test has."""
    n = re.sub(r"\W", "_", request.node.name)
    (tmp_path / f"fns_{n}.py").write_text(MODULE.format(n=n), encoding="utf-8")
    (tmp_path / f"beside_{n}.py").write_text("FACTOR = 2\n", encoding="utf-8")
    yield n
    sys.path[:] = [path for path in sys.path if path != str(tmp_path)]


def written(directory: Path, text: str, n: str) -> Path:
    (directory / "t.xml").write_text(f"<r {PUNCT}><t><x>1</x></t><t><x>4</x></t></r>", encoding="utf-8")
    (directory / "q.sql").write_text(text.format(path=directory / "t.xml", n=n), encoding="utf-8")
    return directory / "q.sql"


def test_a_script_creates_a_function_from_a_module_beside_it(session: Session, tmp_path: Path, modules: str) -> None:
    file = written(tmp_path, QUERY, modules)
    read = script.read(file.read_text(encoding="utf-8"), source=str(file))
    assert read.sketch().schema.names == ("y",)
    query = type(stream(session, tmp_path, "1"))(session, read.plan(session))
    assert values(query, "y") == [2, 8]


def test_two_scripts_may_give_one_name_to_two_functions(
    in_process: InProcessSession, tmp_path: Path, modules: str
) -> None:
    written(tmp_path, QUERY, modules)
    sys.path.append(str(tmp_path))
    texts = [
        QUERY.format(path=tmp_path / "t.xml", n=modules),
        QUERY.format(path=tmp_path / "t.xml", n=modules).replace(f"fns_{modules}:twice", "operator:neg"),
    ]
    queries = [xs.from_sql(in_process, text) for text in texts]
    assert [values(query, "y") for query in queries] == [[2, 8], [-4, -1]]


WRONG = [
    ("CREATE FUNCTION f AS 'no_such_module:f' RETURNS INT", "there is no module no_such_module"),
    ("CREATE FUNCTION f AS 'math:sqr' RETURNS INT", "math has no sqr"),
    ("CREATE FUNCTION f AS 'math' RETURNS INT", "'math' names no function of a module"),
    ("CREATE FUNCTION abs AS 'math:fabs' RETURNS DOUBLE", "abs is a function of SQL"),
    ("CREATE FUNCTION f AS 'math:sqrt'", "the function f has no type"),
    ("CREATE FUNCTION f AS 'operator:setitem' RETURNS TABLE(a INT)", "does not take a key and rows"),
    ("CREATE FUNCTION f(x DOUBLE) RETURNS DOUBLE RETURN x * 2", "this CREATE FUNCTION is not supported"),
    ("CREATE FUNCTION f AS 'math:sqrt' RETURNS DOUBLE MONOTONE FALLING", "to rise and to fall"),
    ("CREATE FUNCTION f AS 'fns_{n}:many' RETURNS INT", "yields, and is a function of one row"),
    ("CREATE FUNCTION f AS 'collections:Counter' RETURNS INT", "is a class"),
    ("CREATE AGGREGATE FUNCTION f AS 'math:fsum' RETURNS DOUBLE", "CREATE AGGREGATE FUNCTION is not supported"),
]


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_a_wrong_create_function_is_refused_at_its_place(tmp_path: Path, modules: str, text: str, words: str) -> None:
    file = written(tmp_path, TABLE + "\n" + text + "; SELECT x FROM s", modules)
    with pytest.raises(QueryError, match=re.escape(words)) as raised:
        script.read(file.read_text(encoding="utf-8"), source=str(file))
    assert raised.value.line == 2


def test_a_run_with_another_function_says_so_once(
    in_process: InProcessSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    query = stream(in_process, tmp_path, "1 (,1]")

    def declare(factor: str) -> None:
        space: dict[str, Any] = {"__name__": __name__}
        exec(f"def scaled(x): return x * {factor}", space)
        xs.function("INT")(space["scaled"])

    def said() -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            query.select("scaled(x) AS y").run(output=tmp_path / "out", checkpoint=tmp_path / "state", keep_open=True)
        return [record.getMessage() for record in caplog.records]

    declare("2")
    assert said() == []
    declare("2")
    assert said() == [], "the same code again"
    declare("3")
    (line,) = said()
    assert line.startswith(f"the function scaled is {__name__}:scaled ")
    assert said() == [], "the checkpoint has the new one"


def test_a_function_registered_with_a_session_of_spark_is_called(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    spark.udf.register("plus_one", lambda x: None if x is None else x + 1, "int")
    spark.udf.register("at_random", F.udf(lambda x: x, "int", useArrow=False).asNondeterministic())
    query = stream(spark, tmp_path, "1 5")
    assert values(query.where("plus_one(x) > 1").select("plus_one(x) AS y"), "y") == [2, 6]
    with pytest.raises(QueryError, match="the function at_random is not deterministic"):
        query.select("at_random(x) AS y")


@pytest.mark.rest
@pytest.mark.slow
def test_the_shell_gives_equal_output_on_both_engines(tmp_path: Path, modules: str, spark: SparkSession) -> None:
    file = written(tmp_path, QUERY, modules)
    for engine in ("duckdb", "spark"):
        command = [sys.executable, "-m", "xmlstream", "run", str(file), "--engine", engine, "-o", engine]
        subprocess.run(command, check=True, cwd=tmp_path, timeout=580, capture_output=True)
    outputs = [sorted((tmp_path / engine).glob("*.xml")) for engine in ("duckdb", "spark")]
    assert [file.name for file in outputs[0]] == [file.name for file in outputs[1]]
    assert [file.read_bytes() for file in outputs[0]] == [file.read_bytes() for file in outputs[1]]
