"""What Spark's parser makes of a query: clauses that older versions do not parse, and whether two texts are read alike.

Spark only types and checks a query; the plan is this package's own. So an ASOF JOIN, which Spark parses since 4.3, can
be shown to an older one as the ordinary join with the same columns. What an older one cannot read is refused by name.

Spark must make the same plan of the SQL printed from the tree and of the SQL as written. Analysis is most of the cost
of planning. Two texts that Spark's parser reads alike need one analysis: plans that are equal before names are resolved
are equal after. If they differ, because a literal or a type is written in another way, the analysed plans are compared,
and then the optimized plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import Token, exp

from xmlstream.operators.expressions.dialect import tokens

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.sql.statements import Statement


Version = tuple[int, int]

ASOF_SINCE: Version = (4, 3)
"""The first version of Spark that parses ASOF JOIN."""

_SINCE: dict[type[exp.Expression], tuple[str, Version, str]] = {
    exp.Qualify: ("QUALIFY", (4, 2), "number the rows in a subquery, and filter by WHERE around it")
}
"""Clauses: their name, the first version of Spark that parses them, and what to write instead."""


def version_of(spark: SparkSession) -> Version:
    """The version of Spark in a session, its first two numbers."""
    major, minor, *_ = spark.version.split(".")
    return int(major), int(minor)


def require_parsed(statement: Statement, version: Version) -> None:
    """Makes sure that the statement has no clause that this version of Spark does not parse.

    Raises:
        QueryError: It has one.
    """
    for kind, (name, since, hint) in _SINCE.items():
        if version < since and (found := statement.tree.find(kind)) is not None:
            what = f"{name} needs Spark {since[0]}.{since[1]}, and this is {version[0]}.{version[1]}"
            raise statement.text.error(what, found.this, hint)


def without_asof(text: str) -> str:
    """The text with ordinary joins for ASOF JOINs: the word and the MATCH_CONDITION are blank, all else is in place.

    >>> without_asof("SELECT * FROM a ASOF JOIN b MATCH_CONDITION (f(a.t) >= b.t) ON a.k = b.k")
    'SELECT * FROM a      JOIN b                                 ON a.k = b.k'
    """
    blank = list[tuple[int, int]]()
    found = tokens(text)
    for number, token in enumerate(found):
        word = token.text.upper()
        if word == "ASOF" and found[number + 1 : number + 2] and found[number + 1].text.upper() == "JOIN":
            blank.append((token.start, token.end + 1))
        elif word == "MATCH_CONDITION" and (end := _closing(found, number + 1)) is not None:
            blank.append((token.start, end + 1))
    for start, end in blank:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _closing(found: list[Token], at: int) -> int | None:
    """The offset of the parenthesis that closes the one at a token; None if there is none."""
    depth = 0
    for token in found[at:]:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth <= 0:
            return token.end if token.text == ")" else None
    return None


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
