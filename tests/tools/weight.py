"""The weight of the house: modules, lines, methods, words, counted by one command, and limits that hold some down.

python -m tests.tools.weight                  the figures
python -m tests.tools.weight --check          fails where a limit is passed (part of `make check`)
python -m tests.tools.weight --path q.sql     the modules through which one SQL text passes to its plan
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from grimp import build_graph

from tests.harness.pages import PACKAGES, ROOT, contracts

WORDS = (
    r"told|said|asks|asked|hears?|heard|of which|in hand|so-manieth|lately|to say of|what to say|that which|nobody"
    r"|all the same"
)
"""Words of conversation in place of the field's: a stream does not *tell* or *say*, it declares, promises, closes."""

LIMITS = {
    "contracts": 17,
    "words of conversation": 7,
    "names that stand for two things": 27,
    "branches on the kind of place": 25,
    "modules that branch on it": 15,
    "dicts of anything": 29,
    "accesses by string key": 23,
    "blocks above 25": 0,
}
"""What `--check` holds the figures to, lowered whenever they fall: nothing that went comes back unseen.

Modules and lines are printed alone: an issue has a budget of them, and a review asks what they are worth.
"""

LEAST_CODE = 105
"""Lines of code of a module, on average, at the least."""


@dataclass(frozen=True, slots=True)
class Module:
    """The lines of one module by what they are."""

    path: Path
    lines: int
    code: int
    docstrings: int
    imports: int
    words: int

    @staticmethod
    def of(path: Path) -> Module:
        """Counts the lines of a file; a line that ends a docstring or an import belongs to it."""
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        docstrings, imports, written = set[int](), set[int](), list[str]()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports |= _lines(node)
            elif (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                docstrings |= _lines(node)
            # Docstrings and messages; a string without a blank is a name or a key.
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                written.append(node.value)
        tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in _NO_CODE]
        code = {line for t in tokens for line in range(t.start[0], t.end[0] + 1)} - docstrings - imports
        words = sum(len(re.findall(rf"\b({WORDS})\b", each, re.IGNORECASE)) for each in written)
        return Module(path, len(text.splitlines()), len(code), len(docstrings), len(imports), words)


_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def _lines(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def paths() -> list[Path]:
    """The paths of all modules of the four packages, `__init__` included."""
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def lines_of_maps() -> dict[str, int]:
    """The lines of the two maps of the architecture."""
    lines = Counter({"lines of the core": 0, "lines around it": 0})
    for path in paths():
        lines["lines around it" if _is_around(path) else "lines of the core"] += len(
            path.read_text("utf-8").splitlines()
        )
    return lines


def figures() -> dict[str, float]:
    """The figures by name."""
    found = [Module.of(path) for path in paths()]
    code = sum(m.code for m in found)
    return {
        "modules": len(found),
        "lines": sum(m.lines for m in found),
        **lines_of_maps(),
        "lines of code": code,
        "lines of code a module": round(code / len(found), 1),
        "lines of docstrings": sum(m.docstrings for m in found),
        "lines of imports": sum(m.imports for m in found),
        "lines of tests": sum(len(p.read_text("utf-8").splitlines()) for p in (ROOT / "tests").rglob("*.py")),
        "mean complexity": round(sum(complex_ := sorted(complexities().values())) / len(complex_), 2),
        "blocks above 20": sum(each > 20 for each in complex_),
        "blocks above 25": sum(each > 25 for each in complex_),
        "the worst block": complex_[-1],
        "circles of files": len(circles()),
        "contracts": len(contracts()),
        "methods of the operator protocol": len(protocol()),
        "words of conversation": sum(m.words for m in found),
        "names that stand for two things": len(shared_names()),
        "branches on the kind of place": sum(branches := [len(kinds_asked(m.path)) for m in found]),
        "modules that branch on it": sum(map(bool, branches)),
        "dicts of anything": sum(dicts_of_anything(m.path) for m in found),
        "accesses by string key": sum(keys_read(m.path) for m in found),
    }


RECORDED = (
    "operators/state",
    "xmlstream/diagnosis",
    "xmlstream/monitor",
    "xmlstream/runtime",
)
"""The folders that hand on what a commit records; elsewhere a string key is mostly a column's, or a tree's."""


def dicts_of_anything(path: Path) -> int:
    """How often a module says `dict[str, Any]`, of which no reader knows what is in it: records are dataclasses."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return sum(isinstance(node, ast.Subscript) and ast.unparse(node) == "dict[str, Any]" for node in ast.walk(tree))


def keys_read(path: Path) -> int:
    """How often a module that hands on records says `record["key"]`, where a record has attributes, with types."""
    if not path.relative_to(ROOT).as_posix().startswith(RECORDED):
        return 0
    return sum(
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def _is_around(path: Path) -> bool:
    """Whether a module stands around the core, which imports none of these."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return any(
        f"{name}.".startswith(f"{one.removeprefix('xmlstream.')}.") or f"{name}.".startswith(f"{one}.")
        for one in contracts()["core"]["forbidden_modules"]
    )


_ONE_THING = {"main", "prepare", "read", "receive", "run", "start"}
"""What a command, a function of the library and what is behind both are called alike on purpose."""


def shared_names() -> dict[str, list[Path]]:
    """The public functions and classes of modules whose name another module's has, with these modules."""
    found: dict[str, set[Path]] = {}
    for path in paths():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, set()).add(path)
    return {name: sorted(paths) for name, paths in found.items() if len(paths) > 1 and name not in _ONE_THING}


_KINDS = {"ObjectStore", "Folder"}
_EITHER = {"remote", "objects", "_objects", "letter_objects", "store", "shared", "_shared", "apart"}
_EITHER_ATTRIBUTE = {"directory"}


def kinds_asked(path: Path) -> list[int]:
    """The lines of a module that ask whether a place is a local directory or an object store."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name("is_object_url"):
                found.append(node.lineno)
            case ast.Call(func=ast.Name("isinstance"), args=[_, kind]):
                found += [node.lineno] * bool(_KINDS & set(re.findall(r"\w+", ast.unparse(kind))))
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(None)]):
                name = left.id if isinstance(left, ast.Name) else left.attr if isinstance(left, ast.Attribute) else ""
                if name in _EITHER or (isinstance(left, ast.Attribute) and name in _EITHER_ATTRIBUTE):
                    found.append(node.lineno)
    return found


_BRANCHES = ast.If | ast.IfExp | ast.For | ast.While | ast.ExceptHandler | ast.match_case


def complexities() -> dict[str, int]:
    """The cyclomatic complexity of each function, by its place: one, and one more for each place where its path forks.

    These are branches, loops, comprehensions and their conditions, handlers of errors, cases, and each `and` and `or`.
    """
    return {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": 1 + sum(map(_forks, _inside(node)))
        for path in paths()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }


def _inside(block: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(block):
        if not isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield child
            yield from _inside(child)


def _forks(node: ast.AST) -> int:
    match node:
        case ast.comprehension():
            return 1 + len(node.ifs)
        case ast.BoolOp():
            return len(node.values) - 1
    return isinstance(node, _BRANCHES)


def circles() -> set[frozenset[str]]:
    """The circles of modules that import each other, for types only or not; the face of the package is in none."""
    graph = build_graph("xmlstream", exclude_type_checking_imports=False)
    for module in graph.find_modules_directly_imported_by("xmlstream"):
        graph.remove_import(importer="xmlstream", imported=module)
    left = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while free := [module for module, imported in left.items() if not imported & left.keys()]:
        left = {module: imported for module, imported in left.items() if module not in free}
    below = {module: graph.find_upstream_modules(module) for module in left}
    found = (frozenset({m, *(n for n in below[m] & left.keys() if m in below[n])}) for m in left)
    return {circle for circle in found if len(circle) > 1}


def protocol() -> list[str]:
    """The methods and properties that an operator answers, those of the protocols that it extends included."""
    from xmlstream.operators.behaviour import Operator

    names = {name for kind in Operator.__mro__[:-1] for name, value in vars(kind).items() if _is_method(value)}
    return sorted(name for name in names if not name.startswith("_"))


def _is_method(value: object) -> bool:
    return isinstance(value, property) or callable(value)


def path_of(query: Path) -> list[str]:
    """The modules of `xmlstream.sql` that reading a text enters, in order, each as often as it is entered anew."""
    from xmlstream.sql import script

    rooms: list[str] = []

    def enter(frame: FrameType, event: str, _: Any) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        if event == "call" and name.startswith("xmlstream.sql.") and (not rooms or rooms[-1] != name):
            rooms.append(name)

    text, names = query.read_text(encoding="utf-8"), re.compile(r"\$\{(\w+)\}")
    variables = dict.fromkeys(names.findall(text), "data")
    sys.setprofile(enter)
    try:
        script.read(text, variables, str(query))
    finally:
        sys.setprofile(None)
    return rooms


def excesses(found: dict[str, float]) -> Iterator[str]:
    """What passes a limit, as lines."""
    for name, most in LIMITS.items():
        if found[name] > most:
            yield f"{name}: {found[name]:,}, which is more than {most:,}"
    if found["lines of code a module"] < LEAST_CODE:
        yield f"lines of code a module: {found['lines of code a module']}, which is less than {LEAST_CODE}"


def words_found() -> list[str]:
    """The lines with words of conversation, each with the word."""
    return [
        f"  {path.relative_to(ROOT)}:{number}: {found[0]}"
        for path in paths()
        if Module.of(path).words
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for found in re.finditer(rf"\b({WORDS})\b", line, re.IGNORECASE)
    ]


def main(arguments: list[str]) -> int:
    """Prints the figures, or the path of a text; the exit code."""
    if arguments[:1] == ["--path"]:
        rooms = path_of(Path(arguments[1]))
        print(f"{len(rooms)} stays in {len(set(rooms))} modules, {len(rooms) - len(set(rooms))} returns")
        print("\n".join(dict.fromkeys(rooms)))
        return 0
    found = figures()
    for name, value in found.items():
        print(f"{name:34} {value:>10,}")
    failures = list(excesses(found)) if "--check" in arguments else []
    if failures and found["words of conversation"] > LIMITS["words of conversation"]:
        failures += words_found()
    for line in failures:
        print(line, file=sys.stderr)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
