"""Names that PySpark has: what joins are called there, and what to write for what there is not here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

_OUTER = {"outer": "full", **{f"{side}outer": side for side in ("left", "right", "full")}}
JOINS = {**_OUTER, "leftsemi": "semi", "leftanti": "anti"}
"""What PySpark also calls joins, without the underscores that it allows anywhere."""

_WRITTEN = 'run(output="out") writes the result as XML, or Parquet as "out.parquet"'
_TAKEN = "collect(), to_dataframe() and to_arrow() have all tuples, slices() one slice after the other"
ON_QUERIES = {
    **dict.fromkeys(("show", "count", "take", "head", "first", "toPandas", "foreach", "foreachBatch"), _TAKEN),
    **dict.fromkeys(("write", "writeStream", "save", "saveAsTable", "cache", "persist", "checkpoint"), _WRITTEN),
    **dict.fromkeys(
        ("dropDuplicates", "drop_duplicates"), "distinct(), or group_by(…).top(1, …) for one of each group"
    ),
    **dict.fromkeys(("intersectAll", "exceptAll"), "intersect and subtract are of sets, as SQL's INTERSECT and EXCEPT"),
    **dict.fromkeys(("agg", "cube", "rollup", "pivot"), 'group_by(…).agg("count(*) AS n")'),
    **dict.fromkeys(("alias", "toDF"), 'select("a AS b"), or join(…, left="l", right="r")'),
    **dict.fromkeys(("withColumns", "withColumnsRenamed"), "with_column or with_column_renamed for each"),
    "crossJoin": 'join on an equality; select("*", "1 AS k") on both sides and join(other, ["k"]) pairs all with all',
    "unionByName": "select in the order of the other, then union_all",
    "withWatermark": "punctuate(xs.ByOrder(…)) says that the tuples come in an order",
    "printSchema": "schema, columns and explain() tell",
    "dtypes": "schema tells",
    "createOrReplaceTempView": "xs.from_sql(spark, text) takes CREATE TABLE and CREATE VIEW",
}
"""What PySpark has and a query has not, with what to write instead."""

ON_GROUPS = dict.fromkeys(
    ("count", "sum", "avg", "mean", "min", "max", "pivot", "apply", "applyInPandas", "cogroup"),
    'agg("count(*) AS n", "max(a) AS a")',
)


def no_such_name(name: str, what: str, instead: Mapping[str, str], kind: type) -> str:
    """What to say of a name that a class does not have."""
    near = difflib.get_close_matches(name, [known for known in dir(kind) if not known.startswith("_")], n=1)
    hint = instead.get(name) or (f"did you mean {near[0]}?" if near else None)
    return f"{what} has no {name}" + (f"; Hint: {hint}" if hint else "")
