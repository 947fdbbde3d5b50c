"""Storage is one floor: nothing above it touches the files of a checkpoint, a stage or an output by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

HOME = Path(__file__).parents[3]

METHODS = {
    "open", "rename", "unlink", "rmdir", "mkdir", "write_text", "write_bytes", "touch", "truncate", "symlink_to",
    "hardlink_to", "fsync", "savefig",
}  # fmt: skip
"""Methods of paths and of open files, and functions of `os`, that no other class of the four packages has."""

OF_OS = {"remove", "replace", "link", "makedirs", "removedirs", "fdatasync", "sync", "symlink"}
OF_SHUTIL = {"rmtree", "move", "copy", "copy2", "copyfile", "copyfileobj", "copytree"}
NAMES = {"open", "FileIO"}

ALLOWED: Mapping[str, str] = {
    "operators/storage/": "the floor itself",
    "operators/in_process/engine.py": "scratch of DuckDB",
    "sources/generators/": "writes the documents of samples, which are inputs",
    "sources/receivers/open_documents.py": "the documents of a spool grow while others read them",
    "sources/receivers/spool.py": "makes the directory of the journal",
    "sources/places.py": "opens input documents",
    "sources/xml/parser/plain_tables.py": "reads the documents of static tables",
    "sources/xml/slices/sources_reader.py": "cleanSource removes or archives input documents",
    "xmlstream/cli/concatenation.py": "reads published documents for standard output",
    "xmlstream/sink/closings.py": "reads the punctuations of published documents",
    "xmlstream/cli/manual.py": "pages of the documentation as HTML, and example files, where the user says",
    "xmlstream/cli/prepare.py": "archives of classes that Java starts from",
    "xmlstream/cli/run.py": "the null device",
    "xmlstream/runtime/loop/query_inputs.py": "reads files of static tables for their fingerprints",
    "xmlstream/secret/trace.py": "writes a figure where the user says",
    "xmlstream/session/": "scratch of Java and of Python workers, sockets, the null device",
    "xmlstream/testing/case.py": "the temporary directory of a user's test",
    "xmlstream/sink/output.py": "reads published documents for standard output",
    "xmlstream/sink/standard_output.py": "the null device",
}
"""Modules, or folders of them, that handle other files, each with what they are."""


def touches(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The lines of a module that handle files, and by what."""
    imported = {
        name.name.partition(".")[0] if isinstance(node, ast.Import) else (node.module or "").partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name("os" | "shutil" as module), attr=attr):
                if attr in (OF_OS | METHODS if module == "os" else OF_SHUTIL):
                    yield node.lineno, f"{module}.{attr}"
            case ast.Call(func=ast.Name(name)) if name in NAMES:
                yield node.lineno, name
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in METHODS:
                yield node.lineno, f".{attr}"
            # A path is replaced by another; a store replaces a key, and a text one part by another.
            case ast.Call(func=ast.Attribute(attr="replace"), args=[_], keywords=[]) if "pathlib" in imported:
                yield node.lineno, ".replace"


@cache
def found() -> Mapping[str, list[tuple[int, str]]]:
    paths = sorted(
        path for package in ("punct_ns", "operators", "sources", "xmlstream") for path in (HOME / package).rglob("*.py")
    )
    each = {str(path.relative_to(HOME)): list(touches(ast.parse(path.read_text()))) for path in paths}
    return {name: lines for name, lines in each.items() if lines}


def test_no_module_above_the_floor_handles_files_of_a_checkpoint_a_stage_or_an_output() -> None:
    others = {name: lines for name, lines in found().items() if not name.startswith(tuple(ALLOWED))}
    assert not others, "take a store's operation (operators/storage/store.py), or say here which other files these are"


def test_no_module_is_allowed_that_handles_no_files() -> None:
    there = found()
    assert [allowed for allowed in ALLOWED if not any(name.startswith(allowed) for name in there)] == []


@pytest.mark.parametrize(
    "line",
    ["open(p)", "p.open('rb')", "os.replace(a, b)", "os.fsync(1)", "shutil.rmtree(p)", "p.replace(q)", "p.rename(q)",
     "atexit.register(shutil.rmtree, p)", "p.with_name('x').mkdir()", "Path(p).write_text('')", "p.unlink()"],
)  # fmt: skip
def test_each_way_to_handle_a_file_is_found(line: str) -> None:
    assert list(touches(ast.parse(f"from pathlib import Path\n{line}")))


@pytest.mark.parametrize(
    "line", ["store.replace(key, pieces)", "text.replace('a', 'b')", "shutil.which('java')", "os.stat(p)"]
)
def test_nothing_else_is_taken_for_that(line: str) -> None:
    assert not list(touches(ast.parse(f"from pathlib import Path\n{line}")))
