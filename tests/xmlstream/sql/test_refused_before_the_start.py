"""What DuckDB is not proven to compute is refused before the first slice: each clause over attributes of each type."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT, SEED
from tests.harness.refused_in_process import is_refusal
from xmlstream.punct_ns.errors import InputError, QueryError

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

TYPES = {
    "INT": "1 2",
    "TINYINT": "1 -128",
    "DOUBLE": "0.5 NaN",
    "FLOAT": "0.5 -0.0",
    "DECIMAL(12,2)": "1.50 2.25",
    "DECIMAL(38,10)": "1.5 99999999999999999999",
    "STRING": "a b",
    "BOOLEAN": "true false",
    "DATE": "2020-02-29 9999-12-31",
    "TIMESTAMP": "2020-02-29T00:00:00Z 9999-12-31T23:59:59Z",
    "TIMESTAMP_NTZ": "2020-02-29T00:00:00 9999-12-31T23:59:59",
    "ARRAY<INT>": "1</v><v>2 3",
    "ARRAY<DOUBLE>": "0.5</v><v>NaN -0.0",
    "STRUCT<p: INT, q: STRING>": "<p>1</p> <q>b</q>",
    "ARRAY<STRUCT<p: INT>>": "<p>1</p> <p>2</p>",
}
"""Types of the attribute `v`, each with two values of which each is closed in a slice of its own."""

QUERIES = """\
SELECT DISTINCT v FROM a
SELECT v, count(*) AS n FROM a GROUP BY v
SELECT k, count(DISTINCT v) AS n, count(v) AS m, count_if(v IS NULL) AS o FROM a GROUP BY k
SELECT k, max(v) AS n FROM a GROUP BY k
SELECT max(v) AS n FROM a
SELECT k, sum(v) AS n FROM a GROUP BY k
SELECT k, avg(v) AS n FROM a GROUP BY k
SELECT k, bit_or(v) AS n, bit_and(v) AS m, bit_xor(v) AS o FROM a GROUP BY k
SELECT k, max_by(k, v) AS n FROM a GROUP BY k
SELECT k, max_by(v, k) AS n FROM a GROUP BY k
SELECT k, sort_array(collect_list(v)) AS n FROM a GROUP BY k
SELECT a.k, a.v FROM a JOIN b ON a.v = b.v
SELECT a.k, a.v, b.v AS w FROM a LEFT JOIN b ON a.v = b.v
SELECT a.k, a.v, b.v AS w FROM a FULL JOIN b ON a.v = b.v
SELECT a.k, a.v FROM a LEFT ANTI JOIN b ON a.v = b.v
SELECT a.k, a.v FROM a LEFT SEMI JOIN b ON a.v = b.v AND a.k < b.k
SELECT a.k, a.v FROM a JOIN b ON a.k = b.k AND a.v <= b.v
SELECT a.k, a.v FROM a LEFT ANTI JOIN b ON a.k = b.k AND a.v < b.v
SELECT a.k, a.v FROM a LEFT ANTI JOIN b ON a.k = b.k AND a.v <> b.v
SELECT a.k FROM a WHERE v IN (SELECT v FROM b)
SELECT a.k FROM a WHERE v NOT IN (SELECT v FROM b WHERE v IS NOT NULL) AND v IS NOT NULL
SELECT v FROM a EXCEPT SELECT v FROM b
SELECT v FROM a INTERSECT SELECT v FROM b
SELECT v FROM a UNION SELECT v FROM b
SELECT k, v FROM a ORDER BY v
SELECT k, v FROM a ORDER BY k DESC, v DESC LIMIT 2
SELECT k, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM a
SELECT k, row_number() OVER (PARTITION BY v ORDER BY k) AS r FROM a
SELECT k, lag(v) OVER (ORDER BY k) AS r FROM a
SELECT k, sum(v) OVER (ORDER BY k) AS r FROM a
SELECT k, max(v) OVER (PARTITION BY k ORDER BY k ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS r FROM a
SELECT k, first_value(v) OVER (PARTITION BY k ORDER BY k) AS r FROM a
SELECT k, v FROM a QUALIFY row_number() OVER (PARTITION BY v ORDER BY arrival) = 1
SELECT k, v FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC) <= 1
SELECT k, v FROM a QUALIFY rank() OVER (PARTITION BY v ORDER BY k) <= 1
SELECT window.start AS s, count(*) AS n FROM a GROUP BY window(v, '1 hour')
SELECT window.start AS s, max(v) AS n FROM a GROUP BY window(v, '1 hour', '30 minutes')
SELECT session_window.start AS s, k, count(*) AS n FROM a GROUP BY session_window(v, '5 minutes'), k
SELECT a.k, b.v FROM a ASOF JOIN b MATCH_CONDITION (a.v >= b.v) ON a.k = b.k
SELECT a.k, x FROM a LATERAL VIEW explode(v) AS x
SELECT k, named_struct('v', v) AS s, array(v) AS l FROM a
SELECT k, max(named_struct('v', v)) AS s FROM a GROUP BY k
SELECT k, CAST(v AS STRING) AS s FROM a
SELECT a.k, a.v FROM a, b, a AS c WHERE a.v = b.v AND b.v = c.v AND a.k = c.k
SELECT k, (SELECT max(v) FROM b WHERE a.k = b.k) AS m FROM a
SELECT k FROM a WHERE v = (SELECT max(v) FROM b)
SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.v = b.v AND a.k <> b.k)"""

EACH = len(TYPES) if AT_NIGHT else 1
"""Over how many types each query is computed."""


@pytest.mark.parametrize("query", QUERIES.splitlines())
def test_a_query_that_explain_accepts_is_not_refused_while_it_runs(
    in_process: Session, tmp_path: Path, query: str
) -> None:
    for type_ in random.Random(f"{SEED} {query}").sample(sorted(TYPES), EACH):
        document, tables = tmp_path / "a.xml", ""
        document.write_text(written(*TYPES[type_].split()))
        for name in "ab":
            options = f"path '{document}', rowTag 'row', schemes 'k', maxBytesPerSlice '260'"
            tables += f"CREATE TABLE {name} (k INT, v {type_}) USING punctuated_xml OPTIONS ({options});\n"
        try:
            plan = xs.from_sql(in_process, tables + query)
            plan.explain()
        except QueryError:
            continue  # also what has no meaning with this type
        assert not is_refused(plan), (type_, query)


def is_refused(plan: xs.Query) -> bool:
    """Whether a run is refused for what the plan computes; what is refused by value has the condition NOT_PROVEN.

    A text that is no moment is an error of the input, as on Spark.
    """
    try:
        assert list(plan.slices())
    except (QueryError, InputError) as error:
        return isinstance(error, QueryError) and is_refusal(error)
    return False


def written(one: str, other: str) -> str:
    """Two slices, each with both values and null, of which the keys are closed at the end."""
    rows = f"<row><k>1</k><v>{one}</v></row><row><k>2</k></row><row><k>1</k><v>{other}</v></row>"
    closed = "<punct:row><k>1</k><v>*</v></punct:row>"
    later = rows.replace("<k>1", "<k>3") + closed.replace("1", "3")
    return f'<r xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct">\n{rows}{closed}\n{later}</r>'
