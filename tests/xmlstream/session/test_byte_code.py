"""Byte code is made of all that a start imports, where there is none."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from xmlstream.session import warm_start
from xmlstream.session.warm_start import compile_byte_code, places

OTHERS = "_distutils_hack", "mypy_extensions", "typing_extensions"
"""What Python or a dependency imports where it is installed, and nothing requires."""


def test_modules_and_packages_without_byte_code_are_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    (package / "below").mkdir(parents=True)
    files = [package / "__init__.py", package / "below" / "one.py", tmp_path / "alone.py"]
    for file in files:
        file.write_text("A = 1\n")
    (package / "broken.py").write_text("A = (\n")
    monkeypatch.setattr(warm_start, "places", lambda: [package, tmp_path / "alone.py"])
    compile_byte_code()
    assert all(Path(cache_from_source(str(file))).exists() for file in files)


def test_what_the_command_line_imports_lies_where_byte_code_is_made() -> None:
    program = (
        "import sys, xmlstream.cli.commands, xmlstream.cli.run, xmlstream.sources.xml.slices.stage_writer\n"
        "print(*sorted({m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)}), sep='\\n')"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    known = places()
    library = Path(subprocess.__file__).parent
    missed = [
        path
        for path in map(Path, ran.stdout.splitlines())
        if path.suffix == ".py"
        and not any(place in (path, *path.parents) for place in known)
        and (library not in path.parents or "site-packages" in path.parts)
        and not path.name.startswith(("__editable__", "_virtualenv", *OTHERS))
        and path.parent.name not in OTHERS
    ]
    assert missed == []
