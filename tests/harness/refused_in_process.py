"""Which errors are refusals of the engine in process: of what is not proven to be equal to Spark's."""

from __future__ import annotations

from xmlstream.punct_ns.errors import XmlStreamError

LEAVE_OUT = "leave out --engine duckdb"
"""With these words a hint begins."""


def is_refusal(error: XmlStreamError) -> bool:
    """Whether Spark is said to be what computes this."""
    return error.hint is not None and error.hint.startswith(LEAVE_OUT)
