"""By night tests search: many examples, new ones in each run, where by day they try few, and always the same.

`make nights` sets HYPOTHESIS_PROFILE=night, and a seed for tests that draw by `random`.
"""

from __future__ import annotations

import os

import pytest

AT_NIGHT = os.environ.get("HYPOTHESIS_PROFILE") == "night"
"""Whether tests search; decided by the environment alone, since modules ask before the profile is loaded."""

SEED = int(os.environ.get("NIGHT_SEED", "0"))
"""The first seed of a test that draws by `random`: 0 by day."""

IN_PROCESS_BY_DAY = pytest.mark.parametrize(
    "session", ["in process", *([pytest.param("spark", marks=pytest.mark.spark)] if AT_NIGHT else [])], indirect=True
)
"""Marks a test with a `session` that Spark runs by night only."""

SPARK_IN_THE_REST = pytest.mark.parametrize(
    "session", ["in process", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.rest])], indirect=True
)
"""Marks a test with a `session` that Spark runs in `make test-all`, and DuckDB in `make test`."""
