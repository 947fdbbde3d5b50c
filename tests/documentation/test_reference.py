"""The tables of the documentation list what there is: every option, operator, query, command, finding; and no more."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import fields
from datetime import UTC, datetime
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

import xmlstream as xs
from tests.harness.pages import FORGE, PAGES, ROOT, blocks, first_cells, operator_modules, prose, section, text
from tests.tools.weight import path_of
from xmlstream.cli.commands import app
from xmlstream.monitor.routes import openmetrics
from xmlstream.operators.expressions.operations.aggregate_functions import AGGREGATES as MERGED
from xmlstream.runtime.better_joins import BETTER
from xmlstream.runtime.checkpoint.slice_report import OperatorReport, SliceReport
from xmlstream.runtime.metrics import Totals
from xmlstream.runtime.options import CommandOptions
from xmlstream.sources.xml.options.option_table import OPTIONS, SET_BY_QUERIES
from xmlstream.sql import script
from xmlstream.sql.spark.functions import AGGREGATES
from xmlstream.sql.tables.stream_options import _KINDS

SPARKS_OPTIONS = {"--py-files"}


def test_every_option_of_a_source_is_in_its_table() -> None:
    listed = set(first_cells(section("sources/README.md", "Options"))) - {"path.<column>", "prefix.<column>"}
    internal = {"schema", *SET_BY_QUERIES}
    assert listed == OPTIONS.keys() - internal


def test_every_operator_is_in_its_table_and_has_tests_of_its_own() -> None:
    rows = [row.split("|")[1].strip() for row in text("operators/README.md").splitlines() if row.startswith("| ")]
    listed = rows[2 : rows.index("rule")]
    modules = set(operator_modules())
    assert len(listed) == len(set(listed))
    assert set(listed) == modules | {"union"}  # which is distinct above merge
    for module in modules:
        assert (ROOT / "tests" / "operators" / f"test_{module}.py").exists()


def test_the_table_of_what_groups_keep_is_that_of_the_aggregates() -> None:
    keeps = {"counts": "a number", "sums": "a sum", "means": "a sum and a number", "values": "a value"}
    keeps["firsts"] = "a value and its place"
    rows = defaultdict[str, list[str]](list)
    for name in sorted(AGGREGATES):
        how = MERGED[name].merges if name in MERGED else None
        rows[keeps[how] if how else "its tuples"].append(f"`{name}`")
    page = text("operators/README.md").splitlines()
    for what, names in rows.items():
        assert any(line.startswith(f"| {', '.join(names)} | {what}") for line in page), (names, what)


def test_every_module_of_the_algebra_is_in_its_table() -> None:
    listed = {
        name.removeprefix("xmlstream.punct_ns.") for name in first_cells(section("punct_ns/README.md", "The modules"))
    }
    assert listed | {"errors", "entry_index", "__init__"} == {path.stem for path in (ROOT / "punct_ns").glob("*.py")}


def test_every_query_over_auctions_is_in_both_its_tables() -> None:
    queries = sorted(path.stem for path in (ROOT / "data" / "auctions").glob("*.sql"))
    by_kind, by_result = text("data/auctions/README.md").split("\n## What each computes\n")
    assert sorted(re.findall(r"`(\w+)`", by_kind.split("\n| kind | queries |")[1])) == queries
    assert set(re.findall(r"`(\w+)\.sql`", by_result)) == set(queries)
    assert f"{len(queries)} queries over auctions" in text("README.md")


def test_the_table_of_the_papers_counts_its_statements() -> None:
    top, *papers = text("xmlstream/manual/papers.md").split("\n## ")
    words = ("works", "otherwise", "in part", "not")
    for paper in papers:
        found = [row.split(" | ")[2] for row in paper.splitlines() if row.startswith("| ")][2:]
        assert {*found} <= {*words}
        counts = " | ".join(str(found.count(word)) for word in words)
        assert f"\n| {paper.partition(',')[0].splitlines()[0]} | {counts} |\n" in top


def test_the_path_of_a_sql_text_is_the_one_that_it_takes() -> None:
    page = section("xmlstream/README.md", "The path of a SQL text")
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in page.splitlines() if re.match(r"\| \d", row)]
    assert [int(number) for number, *_ in rows] == list(range(1, len(rows) + 1))
    (query,) = set(re.findall(r"`(data/\w+\.sql)`", page))
    assert [module.strip("`") for _, module, *_ in rows] == list(dict.fromkeys(path_of(ROOT / query)))
    for _, module, functions, *_ in rows:
        for name in re.findall(r"`([\w.]+)`", functions):
            assert attrgetter(name)(import_module(module.strip("`")))
    for path in re.findall(r"`(\w+/\w+\.py)`", page):
        assert (ROOT / "xmlstream" / "sql" / path).exists()


@pytest.mark.parametrize(("query", "most"), [("data/warehouse.sql", 125), ("data/auctions/nexmark_q5.sql", 160)])
def test_a_sql_text_does_not_wander_from_module_to_module(query: str, most: int) -> None:
    assert len(path_of(ROOT / query)) <= most


def test_every_finding_is_in_its_table() -> None:
    tree = ast.parse((ROOT / "xmlstream" / "runtime" / "likely_mistakes.py").read_text(encoding="utf-8"))
    pairs = [node.value for node in ast.walk(tree) if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple)]
    kinds = {pair.elts[0].value for pair in pairs if isinstance(pair.elts[0], ast.Constant)}
    assert kinds
    listed = set(first_cells(section("xmlstream/runtime/README.md", "Findings")))
    assert listed == kinds | {
        "malformed",
        "ungrammatical",
        "overdue",
        "too few",
        "silent",
        "sends again",
        "set back",
        BETTER,
    }


def test_every_key_of_the_metrics_is_in_their_table() -> None:
    table = section("xmlstream/runtime/README.md", "Metrics")
    assert set(first_cells(table)) == {field.name for field in fields(SliceReport)}
    (operators,) = [row for row in table.splitlines() if row.startswith("| `operators`")]
    keys = {field.name for field in fields(OperatorReport)}
    assert set(re.findall(r"`(\w+)`", operators)) == {"operators"} | keys


def test_every_text_that_the_limits_list_is_refused() -> None:
    table = (
        "CREATE TABLE bid (auction INT, price INT, ts TIMESTAMP) USING punctuated_xml OPTIONS (path 'b', rowTag 't');"
    )
    texts = first_cells(section("xmlstream/manual/limits.md", "SQL"))
    assert texts
    script.read(table + "SELECT * FROM bid").sketch()
    for refused in texts:
        with pytest.raises(xs.QueryError):
            script.read(table + refused).sketch()


def test_every_metric_that_the_operations_watch_is_one_that_prometheus_gets() -> None:
    operator = OperatorReport("group_by", **dict.fromkeys([f.name for f in fields(OperatorReport)][1:], 0))
    totals = Totals()
    totals.add(SliceReport(0, 1.0, 1, 1, (operator,), memory={"driver": 1}), datetime.now(UTC).isoformat())
    given = openmetrics(totals, "running", {"in4": datetime.now(UTC)}).decode()
    served = set(re.findall(r"^(xmlstream_\w+)", given, re.MULTILINE))
    for page in ("xmlstream/manual/operations.md", "xmlstream/monitor/static/grafana.json"):
        watched = set(re.findall(r"xmlstream_\w+", text(page)))
        assert watched
        assert watched <= served
    assert re.findall(r"`(xmlstream_\w+)`", section("xmlstream/monitor/README.md", "Metrics for Prometheus"))


def test_the_rules_for_prometheus_are_rules() -> None:
    yaml = pytest.importorskip("yaml")
    (shown,) = [block.text for block in blocks("xmlstream/manual/operations.md") if "- alert:" in block.text]
    ((group,),) = yaml.safe_load(shown).values()
    assert group["name"] == "xmlstream"
    for rule in group["rules"]:
        assert rule.keys() - {"for"} == {"alert", "expr"}
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert re.fullmatch(r"\d+[smhd]", rule.get("for", "1m"))


def test_every_error_is_in_its_table() -> None:
    named = set(re.findall(r"`xs\.(\w+)`", section("xmlstream/runtime/README.md", "Errors")))
    errors = {
        name for name in xs.__all__ if isinstance(kind := getattr(xs, name), type) and issubclass(kind, Exception)
    }
    assert named == errors


def test_every_command_is_in_its_table() -> None:
    listed = {words[1] for cell in first_cells(section("xmlstream/runtime/README.md", "The command line"))
              if (words := cell.split())[0] == "xmlstream"}  # fmt: skip
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    assert listed == set(root.commands)


def test_every_rule_of_punctuate_is_in_its_tables() -> None:
    forms = section("xmlstream/manual/closing.md", "The rules of punctuate")
    rows = set(re.findall(r"^\| \[`(\w+ of) ", forms, re.MULTILINE))
    assert rows == _KINDS.keys(), "closing.md has a row for each rule, which begins with [`KIND of …`](#its-section)"
    rules = first_cells(section("operators/README.md", "Punctuating a source that says too little"))
    assert set(rules) == {name for name in xs.__all__ if re.match("By[A-Z]", name)}


def test_every_option_of_a_run_is_in_their_table() -> None:
    table = section("xmlstream/runtime/README.md", "The command line").partition("The options of `run`")[2]
    rows = [row.split(" | ")[0] for row in table.splitlines() if row.startswith("| `-")]
    letters = [option.metadata["short"] for option in fields(CommandOptions) if option.metadata["short"]]
    names = [f"--{option.name.replace('_', '-')}" for option in fields(CommandOptions)]
    assert sorted(re.findall(r"`(--?[\w-]+)", "".join(rows))) == sorted([*names, *letters])


@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_option_that_it_names_is_there(page: str) -> None:
    root = typer.main.get_command(app)
    known = _options(root)
    inline = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose(page))
    for option in (word.partition(" ")[0] for word in inline if word.startswith("--")):
        assert option in known | SPARKS_OPTIONS, option
    fenced = [line for block in blocks(page) if block.language in {"sh", "console"} for line in block.text.splitlines()]
    for line in [*inline, *(line.removeprefix("$ ") for line in fenced)]:
        words = line.replace("… | ", "").split()
        if words[:1] != ["xmlstream"] or len(words) < 2:
            continue
        command: Any = root
        while isinstance(command, TyperGroup) and len(words) > 1 and not words[1].startswith("-"):
            command = command.commands[words.pop(1)]
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert options <= _options(command), line


def _options(command: Any) -> set[str]:
    own: set[str] = {option for parameter in command.params for option in parameter.opts}
    below = command.commands.values() if isinstance(command, TyperGroup) else ()
    return {"--help", "--install-completion"} | own.union(*(_options(one) for one in below))


@pytest.mark.parametrize("page", PAGES)
def test_every_target_that_it_names_is_in_the_makefile(page: str) -> None:
    named = set(re.findall(r"(?:`|^\$ )make ([a-z]+)", text(page), re.MULTILINE))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= targets


def test_the_readme_is_a_tour() -> None:
    lines = text("README.md").splitlines()
    assert len(lines) < 180
    assert any("pip install" in line for line in lines[:15])
    assert any(line.startswith("xmlstream ") for line in lines[:30])
    assert re.findall(r"`make ([a-z]+)`", text("README.md")) == ["wheel", "docs", "demo", "test"]


def test_every_page_is_known() -> None:
    hidden = {".venv", "out", "build", "node_modules", "site"}  # the site's own pages are Sphinx's markup
    found = {path.relative_to(ROOT) for path in ROOT.rglob("*.md") if not hidden & set(path.relative_to(ROOT).parts)}
    assert {path for path in found if ".pytest_cache" not in path.parts} == {Path(page) for page in (*PAGES, *FORGE)}
