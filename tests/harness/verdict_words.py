"""Verdicts in the words of Tucker et al. 2007."""

from __future__ import annotations

from xmlstream.safety.verdicts import QueryVerdict


def does_benefit(verdict: QueryVerdict) -> bool:
    """Whether a query is enabled and cleansed (§3.3)."""
    return verdict.is_enabled and verdict.is_cleansed
