"""What Spark's parser makes of a query: clauses that older versions do not parse, and whether two texts are read alike.

Spark only types and checks a query; the plan is this package's own. So an ASOF JOIN, which Spark parses since 4.3, can
be shown to an older one as the ordinary join with the same columns. What an older one cannot read is refused by name.

Spark must make the same plan of the SQL printed from the tree and of the SQL as written. Analysis is most of the cost
of planning. Two texts that Spark's parser reads alike need one analysis: plans that are equal before names are resolved
are equal after. If they differ, because a literal or a type is written in another way, the analysed plans are compared,
and then the optimized plans.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import Token, exp

from xmlstream.operators.expressions.dialect import tokens
from xmlstream.punct_ns.errors import UsageError
from xmlstream.session.engines import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


class Plans(Protocol):
    """What a session of Spark's knows of frames and texts before anything is computed."""

    def rowless(self, ddl: str, session: SparkSession) -> DataFrame:
        """A frame with these columns and without rows, which Spark's optimizer does not replace by an empty plan."""

    def apart(self, spark: SparkSession) -> SparkSession:
        """A session of its own, with the settings of another."""

    def understood(self, text: str, other: str, session: SparkSession) -> tuple[DataFrame, bool]:
        """Returns the frame of a text, and whether Spark makes the same plan of the other; optimizes the first.

        Errs towards different.
        """


def plans_of(spark: SparkSession) -> Plans:
    """The plans of a session, classic or of Spark Connect."""
    return ConnectPlans() if is_connect(spark) else SparkPlans(spark)


class SparkPlans:
    """Java's parsed and analysed plans of SQL texts, in a session with the tables."""

    def __init__(self, spark: SparkSession) -> None:
        java: Any = spark._jvm
        self._java, self._fields = java.java, java.org.apache.spark.sql.types.StructType.fromDDL
        self._frame = java.org.apache.spark.sql.classic.Dataset.ofRows
        self._sessions = java.org.apache.spark.sql.classic.SparkSession
        self._numbered_anew = java.org.apache.spark.sql.catalyst.plans.NormalizePlan.normalizeExprIds

    def rowless(self, ddl: str, session: SparkSession) -> DataFrame:
        """See `Plans`."""
        # From an RDD: Spark's optimizer would replace a local frame without rows by an empty plan.
        # With Spark's internal rows: they need no conversion from Java's.
        context: Any = session.sparkContext
        rows = context._jsc.emptyRDD().rdd()
        return _wrapped(session._jsparkSession.internalCreateDataFrame(rows, self._fields(ddl), False), session)

    def apart(self, spark: SparkSession) -> SparkSession:
        """See `Plans`."""
        new: Any = spark.newSession()
        settings = self._java.util.Properties()
        settings.putAll(spark._jsparkSession.conf().getAllAsJava())
        new._jsparkSession.sessionState().conf().setConf(settings)
        return new  # type: ignore[no-any-return]

    def understood(self, text: str, other: str, session: SparkSession) -> tuple[DataFrame, bool]:
        """See `Plans`."""
        parsed = self.parsed(text, session)
        frame = self.analysed(parsed, session)
        printed = self.parsed(other, session)
        printed_frame = None if self.is_parsed_alike(parsed, printed) else self.analysed(printed, session)
        # The optimizer folds constants: one without a value, such as 1 / 0, fails here, before any tuple arrives.
        frame.queryExecution().optimizedPlan()
        return _wrapped(frame, session), printed_frame is None or is_planned_alike(frame, printed_frame)

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


def _wrapped(frame: Any, session: SparkSession) -> DataFrame:
    """Wraps Java's frame in Python's."""
    from pyspark.sql.classic.dataframe import DataFrame as OfJava

    return OfJava(frame, session)


class ConnectPlans:
    """The plans of a server of Spark Connect, which analyses and compares them there."""

    def rowless(self, ddl: str, session: SparkSession) -> DataFrame:
        """See `Plans`; the function is never called."""
        return session.range(0).mapInArrow(lambda batches: batches, ddl)

    def apart(self, spark: SparkSession) -> SparkSession:
        """See `Plans`; it has the views of the other, too.

        Raises:
            UsageError: The server is older than Spark 4.1.
        """
        if version_of(spark) < (4, 1):
            raise UsageError(f"the server of Spark Connect is of Spark {spark.version}", hint="it takes 4.1 or newer")
        client: Any = spark
        new = client.cloneSession()
        # Spark abridges the texts of plans otherwise.
        new.conf.set("spark.sql.debug.maxToStringFields", "100000")
        return new  # type: ignore[no-any-return]

    def understood(self, text: str, other: str, session: SparkSession) -> tuple[DataFrame, bool]:
        """See `Plans`; optimized plans are compared by their texts and types."""
        frame, printed = session.sql(text), session.sql(other)
        optimized = _optimized(frame)
        if frame.sameSemantics(printed):
            return frame, True
        return frame, frame.schema == printed.schema and optimized == _optimized(printed)


def _optimized(frame: Any) -> str:
    """The text of the optimized plan, with the numbers of columns counted from 0; raises what the optimizer finds."""
    found = frame._explain_string(extended=True)
    text = found.partition("== Optimized Logical Plan ==")[2].partition("== Physical Plan ==")[0]
    numbers: dict[str, int] = {}
    return re.sub(r"#(\d+)", lambda each: f"#{numbers.setdefault(each[1], len(numbers))}", text)
