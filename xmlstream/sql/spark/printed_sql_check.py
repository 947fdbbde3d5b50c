"""Check of printed SQL: Spark must make the same plan of the SQL printed from the tree and of the SQL as written.

Analysis is most of the cost of planning. Two texts that Spark's parser reads alike need one analysis: plans that are
equal before names are resolved are equal after. If they differ, because a literal or a type is written in another way,
the analysed plans are compared, and then the optimized plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkPlans:
    """Java's parsed and analysed plans of SQL texts, in a session with the tables."""

    def __init__(self, spark: SparkSession) -> None:
        java: Any = spark._jvm
        self._frame = java.org.apache.spark.sql.classic.Dataset.ofRows
        self._sessions = java.org.apache.spark.sql.classic.SparkSession
        self._numbered_anew = java.org.apache.spark.sql.catalyst.plans.NormalizePlan.normalizeExprIds

    def parsed(self, text: str, session: SparkSession) -> Any:
        """The parsed plan of a text, with the session's settings."""
        # The parser uses the settings of the thread's active session, which may be another.
        before = self._sessions.getActiveSession()
        self._sessions.setActiveSession(session._jsparkSession)
        try:
            return session._jsparkSession.sessionState().sqlParser().parsePlan(text)
        finally:
            if before.isDefined():
                self._sessions.setActiveSession(before.get())
            else:
                self._sessions.clearActiveSession()

    def analysed(self, parsed: Any, session: SparkSession) -> Any:
        """The frame of a parsed plan; raises the analyser's errors."""
        return self._frame(session._jsparkSession, parsed)

    def is_parsed_alike(self, one: Any, other: Any) -> bool:
        """Whether two parsed plans are equal except for the numbers that Spark gives to aliases.

        Errs towards different: plans with WITH elsewhere than at the beginning count as different.
        """
        if one.nodeName() == other.nodeName() == "UnresolvedWith":
            # Queries in WITH are not part of the tree, and are not renumbered with it.
            ones, others = one.cteRelations(), other.cteRelations()
            return (
                bool(one.allowRecursion() == other.allowRecursion() and ones.size() == others.size())
                and all(self._is_named_alike(ones.apply(i), others.apply(i)) for i in range(ones.size()))
                and self.is_parsed_alike(one.child(), other.child())
            )
        return bool(self._numbered_anew(one).equals(self._numbered_anew(other)))

    def _is_named_alike(self, one: Any, other: Any) -> bool:
        is_named = one._1() == other._1() and one._3().equals(other._3())
        return is_named and self.is_parsed_alike(one._2(), other._2())


def is_planned_alike(one: Any, other: Any) -> bool:
    """Whether two frames have the same plan, analysed or else optimized."""
    executions = [frame.queryExecution() for frame in (one, other)]
    if executions[0].analyzed().sameResult(executions[1].analyzed()):
        return True
    # The optimizer makes a typed literal and a cast of a string the same.
    return bool(executions[0].optimizedPlan().sameResult(executions[1].optimizedPlan()))
