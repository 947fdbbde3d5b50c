"""Which sessions can run queries: classic ones, whose Java is beside this process."""

from __future__ import annotations

from xmlstream.punct_ns.errors import UsageError


def require_classic(session: object) -> None:
    """Makes sure that a session is not a session of Spark Connect.

    A query's state is kept by this process, slice by slice, in files that Spark's workers see too; and its checks need
    Spark's parser. A client of Spark Connect has neither.

    Raises:
        UsageError: It is one.
    """
    if type(session).__module__.startswith("pyspark.sql.connect"):
        hint = (
            "run the program where Spark's driver runs, with a classic session: xs.open_session(), or "
            "SparkSession.builder.master(…) without .remote(…) and SPARK_REMOTE; on a managed platform, a job or a "
            "notebook on a dedicated cluster"
        )
        raise UsageError("a session of Spark Connect cannot run queries of xmlstream", hint=hint)
