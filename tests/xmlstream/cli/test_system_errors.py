"""Errors of the operating system at any moment of a run: said in words, and the next run loses and repeats nothing."""

from __future__ import annotations

import errno
import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.cli.commands import app
from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.punct_ns.xml_form import PUNCT_NS

QUERY = """
CREATE TABLE s (a INT, b INT) USING punctuated_xml
OPTIONS (path '${IN}', rowTag 'r', schemes 'a', mode 'PERMISSIVE', maxFilesPerSlice '1');
SELECT a, count(*) AS n FROM s GROUP BY a
"""
LOST = [errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.EIO, errno.EMFILE]
FULL = [errno.ENOSPC, errno.EDQUOT]
_WRITES = {"os.rename", "os.mkdir"}
_EVENTS = {*_WRITES, "open", "os.remove", "os.rmdir", "os.listdir", "os.scandir", "os.truncate"}
_MEETING: list[Callable[[str, str], None]] = []


def _audited(event: str, args: tuple[object, ...]) -> None:
    if _MEETING and event in _EVENTS and isinstance(path := args[event == "os.rename"], str | Path):
        is_write = event in _WRITES or (event == "open" and bool(int(str(args[2])) & (os.O_WRONLY | os.O_RDWR)))
        _MEETING[0]("write" if is_write else "read", str(path))


@contextmanager
def meeting(each: Callable[[str, str], None]) -> Iterator[None]:
    """Calls a function with each path that this process opens, lists, renames or removes; its errors are met there."""
    if _audited not in _HOOKS:
        sys.addaudithook(_audited)  # which lasts
        _HOOKS.append(_audited)
    _MEETING.append(each)
    try:
        yield
    finally:
        _MEETING.pop()


_HOOKS: list[object] = []


class Runs:
    """Runs of one query in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "in").mkdir(parents=True)
        (directory / "query.sql").write_text(QUERY)
        for key in range(3):
            rows = "".join(f"<r><a>{key}</a><b>{n}</b></r>" for n in range(3)) + "<r><a>x</a></r>"
            end = f"<p:r><a>{key}</a><b>*</b></p:r>"
            (directory / "in" / f"{key}.xml").write_text(f'<s xmlns:p="{PUNCT_NS}">{rows}{end}</s>')

    def run(self) -> Result:
        place = self.directory
        files = ["-o", f"{place}/out", "--checkpoint", f"{place}/state", "--metrics", f"{place}/m/metrics.jsonl"]
        given = ["run", f"{place}/query.sql", "-D", f"IN={place}/in", "--engine", "duckdb", *files]
        return CliRunner().invoke(app, given)

    def written(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in (self.directory / "out").glob("slice-*")}


def _draws(count: int) -> list[int]:
    return [SEED + number for number in range(count)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """What a run that meets no error writes, and what it does to files: reads or writes, and at which place."""
    runs, met = Runs(tmp_path_factory.mktemp("whole") / "runs"), list[tuple[str, str]]()

    def note(kind: str, path: str) -> None:
        if path.startswith(f"{runs.directory}/"):
            met.append((kind, path[len(str(runs.directory)) + 1 :].partition("/")[0]))

    with meeting(note):
        assert runs.run().exit_code == 0
    return runs.written(), met


@pytest.mark.parametrize("seed", _draws(300 if AT_NIGHT else 8))
def test_an_error_of_the_system_is_said_in_words_and_the_next_run_goes_on(
    seed: int, whole: tuple[dict[str, str], list[tuple[str, str]]], tmp_path: Path
) -> None:
    draws, (expected, met) = random.Random(seed), whole
    runs, number = Runs(tmp_path / "runs"), draws.choice([*LOST, *FULL])
    place, lasts = draws.choice(["in", "out", "state", "m"]), draws.random() < 0.7
    kinds = ["write"] if number in FULL else ["read", "write"]
    left = [draws.randrange(max(1, sum(kind in kinds and where == place for kind, where in met)))]

    def fail(kind: str, path: str) -> None:
        if kind in kinds and path.startswith(f"{runs.directory}/{place}"):
            left[0] -= 1
            if left[0] == -1 or (lasts and left[0] < 0):
                raise OSError(number, os.strerror(number), path)

    with meeting(fail):
        result = runs.run()
    if (error := result.exception) is not None and not isinstance(error, SystemExit):
        assert isinstance(error, XmlStreamError | OSError), repr(error)  # both are said by `main`
        if isinstance(error, XmlStreamError):
            assert not re.search(r"Traceback|\[Errno|\w(Error|Exception): ", str(error)), str(error)
    assert runs.run().exit_code == 0
    assert runs.written() == expected
