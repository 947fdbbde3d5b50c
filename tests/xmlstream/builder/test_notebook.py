"""SQL in a notebook's cells, pictures of explanations, and errors as sentences; at last in a real notebook."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import xmlstream as xs
from tests.harness.pages import blocks
from xmlstream.builder.notebook import CellResult, Cells
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.session.engines import Session

READINGS = f"""<s xmlns:punct="{PUNCT_NS}"><r><sid>A</sid><v>0.1</v></r><r><sid>A</sid><v>0.2</v></r>
<punct:r><sid>A</sid></punct:r>"""
TABLE = "CREATE TABLE r (sid STRING, v DOUBLE) USING punctuated_xml OPTIONS (path '${F}', rowTag 'r', schemes 'sid');"
TEXT = TABLE + "SELECT place, sum(v) AS v FROM r JOIN places USING (sid) GROUP BY place;"


@pytest.fixture
def variables(in_process: Session, tmp_path: Path) -> dict[str, Any]:
    """The variables of a notebook."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "r.xml").write_text(READINGS + "</s>")
    places = pa.table({"sid": ["A"], "place": ["<north>"]})
    return {"session": in_process, "F": str(tmp_path / "in"), "places": places, "_": places, "Table": pa.Table}


def test_a_cell_shows_rows_counts_and_plan_and_names_the_rows(variables: dict[str, Any]) -> None:
    answer = Cells(variables).cell("sums", TEXT)
    assert isinstance(answer, CellResult)
    assert variables["sums"].to_pylist() == [{"place": "<north>", "v": 0.1 + 0.2}]
    shown = answer._repr_html_()
    assert "<td>&lt;north&gt;</td><td>0.3</td>" in shown
    assert "tuples out" in shown
    assert "<svg" in shown
    # What a cell has answered is a table for the next one.
    text = TABLE + "SELECT r.v, sums.v AS s FROM r JOIN places USING (sid) JOIN sums USING (place);"
    again = Cells(variables).cell("", text)
    assert isinstance(again, CellResult)
    assert again.tuples.num_rows == 2


def test_a_cell_explains_writes_and_follows(variables: dict[str, Any], tmp_path: Path) -> None:
    cells, out = Cells(variables), tmp_path / "out"
    verdict: Any = cells.cell("--explain", TEXT)
    assert "answers" in verdict
    assert "<svg" in verdict._repr_html_()
    summary: Any = cells.cell(f"-o {out}", TEXT)
    assert (summary.tuples_out, out.is_dir()) == (1, True)
    inserts = TEXT.replace(
        "SELECT", f"CREATE TABLE o USING punctuated_xml OPTIONS (path '{tmp_path}/o'); INSERT INTO o SELECT"
    )
    summary = cells.cell("", inserts)
    assert (summary.tuples_out, (tmp_path / "o").is_dir()) == (1, True)
    handle: Any = cells.cell(f"--follow --checkpoint {tmp_path}/state -o {tmp_path}/followed", TEXT)
    handle.processAllAvailable()
    handle.stop()
    assert list((tmp_path / "followed").iterdir())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--folow", "unrecognized arguments: --folow"),
        ("9", "'9' is not the name of a variable"),
        ("--follow -o out", "a query that is followed needs a checkpoint"),
        ("--follow --checkpoint state", "a query that is followed needs an output"),
        ("--engine duckdb -o", "expected one argument"),
    ],
)
def test_a_cell_that_cannot_be_read_is_refused(variables: dict[str, Any], line: str, words: str) -> None:
    with pytest.raises(xs.UsageError, match=words) as refused:
        Cells(variables).cell(line, TEXT)
    assert "%%xmlstream" in str(refused.value)


def test_a_text_that_names_its_outputs_takes_none_beside(variables: dict[str, Any]) -> None:
    with pytest.raises(xs.UsageError, match="by INSERT INTO"):
        Cells(variables).cell(
            "-o out", TABLE + "CREATE TABLE o USING punctuated_xml OPTIONS (path 'o'); INSERT INTO o SELECT * FROM r;"
        )


def test_without_a_session_among_the_variables_one_is_opened_once(variables: dict[str, Any]) -> None:
    del variables["session"]
    cells = Cells(variables)
    first: Any = cells.cell("--engine duckdb", TEXT)
    opened = cells._opened
    assert first.tuples.num_rows == 1
    cells.cell("", TEXT)
    assert cells._opened is opened
    opened.stop()  # type: ignore[union-attr]


def test_a_notebook_shows_a_sentence_in_the_place_of_a_traceback(
    variables: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(xs.XmlStreamError) as raised:
        Cells(variables).cell("", TABLE + "SELECT nothing FROM r;")
    lines = raised.value._render_traceback_()
    assert lines == [f"{type(raised.value).__name__}: {raised.value}"]
    code = compile("q.where('x = 1')", "cell", "exec")
    monkeypatch.setattr("linecache.getline", lambda *_: "q.where('x = 1')\n")
    with pytest.raises(xs.QueryError) as raised:
        exec(
            code,
            {"__name__": "__main__", "q": xs.from_sql(variables["session"], TABLE + "SELECT * FROM r", {"F": "r"})},
        )
    assert raised.value._render_traceback_()[0] == "in line 1 of the cell: q.where('x = 1')"
    verbose = SimpleNamespace(mode="Verbose", structured_traceback=lambda *_: ["all of it"])
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(InteractiveTB=verbose))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    assert raised.value._render_traceback_() == ["all of it"]


@pytest.mark.parametrize(
    ("format_", "drawn"), [(None, True), ("text", True), ("svg", True), ("html", True), ("json", False)]
)
def test_an_explanation_draws_itself(variables: dict[str, Any], format_: Any, drawn: bool) -> None:
    query = xs.from_sql(variables["session"], TEXT, {"F": variables["F"]}, {"places": variables["places"]})
    explanation: Any = query.explain(format_)
    html = explanation._repr_html_()
    assert (html is not None and "<svg" in html) == drawn
    assert ("<pre>" in (html or "")) == (format_ in (None, "text"))
    if format_ is None:
        assert "It answers" in html


@pytest.mark.rest
def test_the_notebook_of_the_cookbook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells run in a kernel of Jupyter's; an error in one is a sentence."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(xs.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    (tmp_path / "orders").mkdir()
    rows = [(1, "2026-11-19T10:00:00Z", "NO"), (2, "2026-11-19T11:00:00Z", "SE"), (3, "2026-11-20T10:00:00Z", "SE")]
    text = "".join(f'<order id="{i}"><at>{at}</at><country>{country}</country></order>' for i, at, country in rows)
    (tmp_path / "orders" / "1.xml").write_text(f"<orders>{text}</orders>")
    magic = [block.text for block in blocks("xmlstream/manual/cookbook.md") if block.language == "none"]
    first = "import pyarrow as pa\nimport xmlstream as xs\nsession = xs.open_session(engine='duckdb')"
    cells = [first, *magic, "days.num_rows", "%%xmlstream\nSELECT * FROM nowhere"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, kernel_name="python3", allow_errors=True, timeout=300).execute()
    outputs = [cell.outputs for cell in book.cells]
    assert [each.output_type for each in (*outputs[0], *outputs[1])] == []
    assert "<td>Sweden</td><td>1</td>" in outputs[2][-1].data["text/html"]
    assert outputs[3][0].data["text/plain"] == "3"
    assert [each.output_type for each in outputs[4]] == ["error"]
    assert outputs[4][0].traceback[0].startswith("QueryError: there is no table nowhere")
