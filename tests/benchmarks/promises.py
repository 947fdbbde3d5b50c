"""What runs keep, how long results wait, and the bytes of punctuations, beside what `explain --promises` says of them.

    make bench, or .venv/bin/pytest --capture=no tests/benchmarks/promises.py

Nothing here depends on the machine. Rows and times are bounds, which no ratio breaks but by 2 %; a slice is a minute,
which is added to a time. Bytes are about so many.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.measuring import Measure, scaled
from tests.harness.promised_runs import CLOSE, QUERIES, runs

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

pytestmark = [pytest.mark.slow]

MINUTES = scaled(200, at_least=120)
"""Slices of a run; values are open for sixty, and bytes are those of the last sixty."""


@pytest.mark.parametrize("name", QUERIES)
def test_a_run_keeps_what_is_promised(
    in_process: InProcessSession, bench: list[Measure], scratch: Path, name: str
) -> None:
    found = list(runs(in_process, scratch, name, MINUTES))
    assert found
    for one in found:
        promised = one.promised
        assert promised.rows is not None
        assert promised.bytes is not None
        measured: list[tuple[str, str, float, float, float]] = [
            ("rows kept", "rows", one.kept, promised.rows, 1.02),
            ("bytes of punctuations an hour", "bytes", one.bytes, promised.bytes, CLOSE),
        ]
        if one.after is not None:
            assert promised.after is not None
            measured += [("until a result comes", "s", one.after, promised.after + 60, 1.02)]
        for what, unit, ours, bound, most in measured:
            called = f"{what}, {name}, {one.schemes}"
            bench.append(Measure(called, unit, "less", [ours], "promised", [bound], ratio_target=most))
