"""Experiments measure: their session is as users have it."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def spark_conf() -> dict[str, str]:
    """Nothing otherwise, and Java with all it has."""
    os.environ.pop("SPARK_SUBMIT_OPTS", None)
    return {}
