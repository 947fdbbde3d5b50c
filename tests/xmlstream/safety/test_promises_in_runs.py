"""The numbers of `explain --promises` beside those of runs: each is a bound, and most are no more than 1.5 of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.nights import AT_NIGHT
from tests.harness.promised_runs import CLOSE, LOOSE, QUERIES, runs

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", QUERIES)
def test_the_numbers_are_those_of_a_run(in_process: InProcessSession, tmp_path: Path, name: str) -> None:
    found = list(runs(in_process, tmp_path, name, 400 if AT_NIGHT else 140))
    assert found
    for one in found:
        promised = one.promised
        assert promised.rows is not None
        assert one.kept <= promised.rows * 1.02 + 3, (str(promised), one)
        assert promised.rows <= one.kept * LOOSE.get(name, CLOSE), (str(promised), one)
        assert promised.bytes is not None
        assert one.bytes / CLOSE <= promised.bytes <= one.bytes * CLOSE, (str(promised), one)
        if one.after is not None:
            assert promised.after is not None
            assert one.after <= promised.after * 1.02 + 60, (str(promised), one)
            assert promised.after <= one.after * CLOSE, (str(promised), one)
