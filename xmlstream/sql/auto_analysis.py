"""Analysis for both engines: by the tables of what is proven, and by Spark's analyser once a part is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from xmlstream.punct_ns.errors import QueryError, is_left_to_spark, unproven
from xmlstream.sql.in_process_analysis import ProvenAnalyst
from xmlstream.sql.spark.analysis import SparkAnalyst, WholeAnalyst

if TYPE_CHECKING:
    from xmlstream.operators.frames.auto_engine import AutoEngine
    from xmlstream.plan.nodes import Node
    from xmlstream.punct_ns.domain import Domain
    from xmlstream.punct_ns.schema import Schema
    from xmlstream.sql.statements import Statement

Answer = TypeVar("Answer")


class AutoAnalyst(WholeAnalyst):
    """Analyst that leaves to Spark a query with a part that is not proven; types of both are equal where it is."""

    def __init__(self, engine: AutoEngine) -> None:
        self._engine, self._analyst = engine, ProvenAnalyst(engine.zone)
        self._of_spark: SparkAnalyst | None = None

    def columns(self, schema: Schema, expressions: Sequence[str]) -> list[tuple[str, Domain]]:
        """See `Analyst.columns`."""
        return self._answer(lambda analyst: analyst.columns(schema, expressions))

    def require_condition(self, schema: Schema, expression: str) -> None:
        """See `Analyst.require_condition`."""
        self._answer(lambda analyst: analyst.require_condition(schema, expression))

    def widened(self, schemas: Sequence[Schema]) -> list[str]:
        """See `Analyst.widened`."""
        return self._answer(lambda analyst: analyst.widened(schemas))

    def require_table(self, node: Node) -> None:
        """See `WholeAnalyst.require_table`."""
        self._answer(lambda analyst: analyst.require_table(node))

    def require_faithful(self, statement: Statement, tables: Mapping[str, Schema]) -> list[str] | None:
        """See `WholeAnalyst.require_faithful`."""
        return self._answer(lambda analyst: analyst.require_faithful(statement, tables))

    def _answer(self, ask: Callable[[WholeAnalyst], Answer]) -> Answer:
        if self._of_spark is None:
            try:
                return ask(self._analyst)
            except QueryError as error:
                if not is_left_to_spark(error):
                    raise
                self._of_spark = SparkAnalyst(self._engine.planned_by_spark(unproven(error)).spark)
        return ask(self._of_spark)
