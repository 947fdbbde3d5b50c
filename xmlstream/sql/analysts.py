"""The analyst of a session: who knows the types of a query's expressions there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xmlstream.session.engines import is_in_process

if TYPE_CHECKING:
    from xmlstream.session.engines import Session
    from xmlstream.sql.spark.analysis import WholeAnalyst


def analyst_of(session: Session) -> WholeAnalyst:
    """The analyst that knows the types of expressions in a session."""
    if is_in_process(session):
        from xmlstream.sql.in_process_analysis import ProvenAnalyst

        return ProvenAnalyst(session.engine.zone)
    from xmlstream.sql.spark.analysis import SparkAnalyst

    return SparkAnalyst(session)
