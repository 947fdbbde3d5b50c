"""What it takes to judge a query, counted: it is done before each run, and of plans with many inputs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.samples.rings import ring
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import topological
from xmlstream.safety import remedies as remedies_module
from xmlstream.safety import verdicts as promises_module
from xmlstream.safety.remedies import remedies
from xmlstream.safety.verdicts import judged
from xmlstream.sql.script import read

AUCTIONS = Path(__file__).parents[3] / "data" / "auctions"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[int]]:
    """Counts the calls of a module's function."""

    def counting(module: Any, name: str) -> list[int]:
        calls: list[int] = []
        does = getattr(module, name)

        def noted(*args: Any, **named: Any) -> Any:
            calls.append(1)
            return does(*args, **named)

        monkeypatch.setattr(module, name, noted)
        return calls

    return counting


def test_what_an_operator_promises_is_found_once(counted: Callable[[Any, str], list[int]]) -> None:
    root = optimized(read((AUCTIONS / "nexmark_q23.sql").read_text(encoding="utf-8"), {"AUCTIONS": "in"}).sketch())
    found = counted(promises_module, "promised_by")
    judged(root, follow=True)
    assert len(found) == sum(bool(node.inputs) for node in topological(root))


def test_a_ring_of_two_hundred_inputs_is_safe_unless_one_says_nothing() -> None:
    assert judged(ring(200), follow=True).is_cleansed
    assert judged(ring(200)).is_cleansed
    broken = judged(ring(200, silent=7), follow=True)
    assert [kept.is_bounded for kept in broken.operators[-1].keeps] == [i == 7 for i in range(200)]


def test_the_one_that_is_missing_among_many_is_found_by_halves(counted: Callable[[Any, str], list[int]]) -> None:
    tried = counted(remedies_module, "judged")
    found = [(name, str(scheme)) for r in remedies(ring(64, silent=7), follow=True) for name, scheme in r.promises]
    assert found == [("s7", "a7"), ("s7", "a7 prefix")]
    assert len(tried) <= 30, "of 64 sources with two attributes each"


@pytest.mark.parametrize(("command", "code"), [(["explain", "--follow"], 0), (["run", "--follow", "-o", "out"], 3)])
def test_it_needs_no_spark(command: list[str], code: int, tmp_path: Path) -> None:
    program = "import sys; from xmlstream.__main__ import main\ntry: main()\nfinally: print('pyspark' in sys.modules)"
    name, *options = command
    arguments = [name, str(AUCTIONS / "nexmark_q4.sql"), "-D", "AUCTIONS=in", *options]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.endswith("False\n"), done.stderr
    assert done.returncode == code
