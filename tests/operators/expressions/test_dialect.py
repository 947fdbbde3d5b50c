"""One dialect: nothing but its module reads or prints SQL, whatever is planned."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlglot
from sqlglot.generator import Generator
from sqlglot.parser import Parser

from xmlstream.operators.expressions import dialect
from xmlstream.operators.expressions.dialect import StreamSql, expression, parsed, render
from xmlstream.optimizer.rules import optimized
from xmlstream.sql.script import read

HOUSE = Path(__file__).parents[3]
ROOMS = [HOUSE / name for name in ("punct_ns", "operators", "sources", "xmlstream")]
QUERIES = sorted((HOUSE / "data").rglob("*.sql"))
KNOWN = {"exp", "ParseError", "SqlglotError", "TokenError", "Token", "TokenType"}
"""What of sqlglot other modules may name: trees, what reading them raises, and words of a text."""


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for room in ROOMS:
        for path in sorted(room.rglob("*.py")):
            if path != Path(dialect.__file__).resolve():
                yield path.relative_to(HOUSE), ast.parse(path.read_text(encoding="utf-8"))


def test_other_modules_know_trees_alone() -> None:
    wrong = []
    for path, module in modules():
        for node in ast.walk(module):
            match node:
                case ast.Import(names=names) if any(name.name.split(".")[0] == "sqlglot" for name in names):
                    wrong.append(f"{path}:{node.lineno} imports sqlglot whole")
                case ast.ImportFrom(module=str(source), names=names) if source.split(".")[0] == "sqlglot":
                    wrong += [f"{path}:{node.lineno} imports {n.name}" for n in names if n.name not in KNOWN]
                case ast.Call(keywords=keywords) if any(keyword.arg == "dialect" for keyword in keywords):
                    wrong.append(f"{path}:{node.lineno} chooses a dialect")
                case ast.Call(func=ast.Attribute(value=of, attr="sql")) if ast.unparse(of) not in (
                    "spark",
                    "session",
                    "self.spark",
                ):
                    wrong.append(f"{path}:{node.lineno} prints {ast.unparse(of)}")
    assert not wrong


@pytest.fixture
def only_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading and printing by any other dialect is an error; so is a text that is read where a tree is meant."""
    parse, generate = Parser.parse, Generator.generate

    def ours_parses(self: Parser, *given: object, **options: object) -> object:
        assert isinstance(self, StreamSql.Parser), type(self)
        return parse(self, *given, **options)  # type: ignore[arg-type]

    def ours_generates(self: Generator, *given: object, **options: object) -> object:
        assert isinstance(self, StreamSql.Generator), type(self)
        return generate(self, *given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Parser, "parse", ours_parses)
    monkeypatch.setattr(Generator, "generate", ours_generates)


@pytest.mark.usefixtures("only_ours")
def test_another_dialect_would_be_noticed() -> None:
    with pytest.raises(AssertionError):
        sqlglot.parse_one("a + 1")
    with pytest.raises(AssertionError):
        str(expression("a + 1"))
    assert render(expression("a + 1")) == "`a` + 1"


@pytest.mark.usefixtures("only_ours")
@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.name)
def test_a_query_is_planned_by_one_dialect_alone(path: Path) -> None:
    parsed.cache_clear()
    variables = dict.fromkeys(("SENSORS", "FEED", "AUCTIONS", "XMARK", "SITE", "OUT"), "somewhere")
    script = read(path.read_text(encoding="utf-8"), variables, path.name)
    optimized(script.sketch())
