"""A user's session has settings: rows are the same under each of them, or it is refused in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lxml import etree

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from xmlstream.operators.frames import held
from xmlstream.operators.state import tuple_log
from xmlstream.operators.storage import segments
from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.sink import directory_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

REFUSED = {
    "spark.sql.ansi.enabled": ["false"],
    "spark.sql.caseSensitive": ["true"],
    "spark.sql.parser.escapedStringLiterals": ["true"],
    "spark.sql.timestampType": ["TIMESTAMP_NTZ"],
    "spark.sql.execution.arrow.useLargeVarTypes": ["true"],
    "spark.sql.execution.arrow.compression.codec": ["lz4"],
    "spark.sql.decimalOperations.allowPrecisionLoss": ["false"],
    "spark.sql.legacy.castComplexTypesToString.enabled": ["true"],
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": ["true"],
    "spark.sql.legacy.literal.pickMinimumPrecision": ["false"],
    "spark.sql.legacy.timeParserPolicy": ["LEGACY"],
}
"""Settings with which a query means something else, or cannot run."""

SET = {
    "spark.sql.parquet.outputTimestampType": ["TIMESTAMP_MILLIS", "INT96"],
    "spark.sql.parquet.datetimeRebaseModeInRead": ["LEGACY", "EXCEPTION"],
    "spark.sql.parquet.datetimeRebaseModeInWrite": ["LEGACY", "EXCEPTION"],
    "spark.sql.parquet.int96RebaseModeInRead": ["LEGACY"],
    "spark.sql.parquet.int96RebaseModeInWrite": ["LEGACY"],
}
"""Settings of files that we write and read ourselves."""

OTHERS = {
    "spark.sql.adaptive.enabled": ["true"],
    "spark.sql.ansi.doubleQuotedIdentifiers": ["true"],
    "spark.sql.ansi.enforceReservedKeywords": ["true"],
    "spark.sql.ansi.relationPrecedence": ["true"],
    "spark.sql.autoBroadcastJoinThreshold": ["-1"],
    "spark.sql.codegen.wholeStage": ["true"],
    "spark.sql.crossJoin.enabled": ["false"],
    "spark.sql.datetime.java8API.enabled": ["true"],
    "spark.sql.execution.arrow.maxRecordsPerBatch": ["1", "0"],
    "spark.sql.execution.arrow.maxBytesPerBatch": ["100"],
    "spark.sql.execution.arrow.compression.codec": ["zstd"],
    "spark.sql.execution.arrow.pyspark.enabled": ["true"],
    "spark.sql.execution.arrow.localRelationThreshold": ["0"],
    "spark.sql.execution.pythonUDF.arrow.enabled": ["true"],
    "spark.sql.execution.topKSortFallbackThreshold": ["0"],
    "spark.sql.execution.usePartitionEvaluator": ["true"],
    "spark.sql.files.ignoreCorruptFiles": ["true"],
    "spark.sql.files.ignoreMissingFiles": ["true"],
    "spark.sql.files.maxPartitionBytes": ["100"],
    "spark.sql.files.maxRecordsPerFile": ["1"],
    "spark.sql.groupByAliases": ["false"],
    "spark.sql.groupByOrdinal": ["false"],
    "spark.sql.inMemoryColumnarStorage.compressed": ["false"],
    "spark.sql.join.preferSortMergeJoin": ["false"],
    "spark.sql.legacy.allowNegativeScaleOfDecimal": ["true"],
    "spark.sql.legacy.charVarcharAsString": ["true"],
    "spark.sql.legacy.ctePrecedencePolicy": ["LEGACY"],
    "spark.sql.legacy.integerGroupingId": ["true"],
    "spark.sql.legacy.interval.enabled": ["true"],
    "spark.sql.legacy.setopsPrecedence.enabled": ["true"],
    "spark.sql.legacy.sizeOfNull": ["false"],
    "spark.sql.legacy.statisticalAggregate": ["true"],
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": ["true"],
    "spark.sql.legacy.parquet.nanosAsLong": ["true"],
    "spark.sql.mapKeyDedupPolicy": ["LAST_WIN"],
    "spark.sql.optimizer.inSetConversionThreshold": ["0"],
    "spark.sql.optimizer.maxIterations": ["10"],
    "spark.sql.orderByOrdinal": ["false"],
    "spark.sql.parquet.binaryAsString": ["true"],
    "spark.sql.parquet.columnarReaderBatchSize": ["1"],
    "spark.sql.parquet.compression.codec": ["zstd", "gzip"],
    "spark.sql.parquet.enableVectorizedReader": ["false"],
    "spark.sql.parquet.fieldId.read.enabled": ["true"],
    "spark.sql.parquet.filterPushdown": ["false"],
    "spark.sql.parquet.inferTimestampNTZ.enabled": ["false"],
    "spark.sql.parquet.mergeSchema": ["true"],
    "spark.sql.parquet.writeLegacyFormat": ["true"],
    "spark.sql.parser.quotedRegexColumnNames": ["true"],
    "spark.sql.shuffle.partitions": ["1", "7"],
    "spark.sql.sources.bucketing.enabled": ["false"],
    "spark.sql.sources.partitionColumnTypeInference.enabled": ["false"],
    "spark.sql.storeAssignmentPolicy": ["LEGACY"],
    "spark.sql.ui.explainMode": ["extended"],
    "spark.sql.variable.substitute": ["false"],
}

EXPECTED = {"refused": REFUSED, "set": SET, "either": OTHERS}
CASES = [(kind, name, value) for kind, table in EXPECTED.items() for name, values in table.items() for value in values]
BY_DAY = [each for each in CASES if each[0] == "set"][:3] + [each for each in CASES if each[0] == "refused"]

SCRIPT = """
CREATE TABLE e (k INT, at TIMESTAMP, here TIMESTAMP_NTZ, day DATE, s STRING, m DECIMAL(10,2), d DOUBLE)
USING punctuated_xml OPTIONS (path '{path}', rowTag 'e', schemes 'k', maxBytesPerSlice '700');
CREATE TABLE f (k INT, s STRING) USING punctuated_xml OPTIONS (path '{path}', rowTag 'f', schemes 'k');
CREATE TABLE joined USING parquet OPTIONS (path '{out}/joined');
INSERT INTO joined SELECT e.k, e.at, e.here, e.day, e.s, e.m, e.d, f.s AS t FROM e JOIN f ON e.k = f.k;
CREATE TABLE least USING parquet OPTIONS (path '{out}/least');
INSERT INTO least SELECT k, min(at) AS at, max(day) AS day, sum(m) AS m, max(d) AS d, count(DISTINCT s) AS n FROM e
GROUP BY k;
CREATE TABLE single USING parquet OPTIONS (path '{out}/single');
INSERT INTO single SELECT DISTINCT k, s, at FROM e;
CREATE TABLE firsts USING parquet OPTIONS (path '{out}/firsts');
INSERT INTO firsts SELECT k, s, at FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY at, s) AS n FROM e)
WHERE n <= 2;
CREATE TABLE texts USING parquet OPTIONS (path '{out}/texts');
INSERT INTO texts SELECT k, concat(s, '\\\\d', "x") AS a, CAST(at AS STRING) AS b, m * m / 3 AS c, 1e2 AS f,
size(NULL) AS g, date_format(at, 'yyyy-MM-dd HH:mm:ss') AS h, TIMESTAMP '2001-01-01 00:00:00' AS j, array(1, k) AS l,
CAST(array(s, NULL) AS STRING) AS o, element_at(map(s, k), s) AS q FROM e WHERE s RLIKE '^.*$';
CREATE TABLE both USING parquet OPTIONS (path '{out}/both');
INSERT INTO both SELECT k, s FROM e UNION SELECT k, s FROM f;
CREATE TABLE neither USING parquet OPTIONS (path '{out}/neither');
INSERT INTO neither SELECT k, s FROM e EXCEPT SELECT k, s FROM f;
CREATE TABLE outer_ USING parquet OPTIONS (path '{out}/outer');
INSERT INTO outer_ SELECT e.k, e.at, f.s FROM e LEFT JOIN f ON e.k = f.k AND e.s = f.s;
CREATE TABLE lots USING punctuated_xml OPTIONS (path '{out}/lots', rowTag 'row');
INSERT INTO lots SELECT k, at, here, day, s, m, d FROM e;
"""


def document(path: Path) -> Path:
    """Events of the tenth to the 21st century, with microseconds, whose keys close late."""
    lines = []
    for number in range(24):
        at = f"{(1000, 1582, 1900, 2026)[number % 4]}-0{number % 9 + 1}-0{number % 7 + 1}"
        lines.append(
            f"<e><k>{number % 6}</k><at>{at}T01:02:03.{number:06d}Z</at><here>{at}T01:02:03.00000{number % 10}</here>"
            f"<day>{at}</day><s>s{number % 3}\\n</s><m>{number}.25</m><d>{number / 7}</d></e>"
        )
        if number % 2:
            lines.append(f"<f><k>{number % 6}</k><s>s{number % 3}\\n</s></f>")
    lines += [f"<punct:{tag}><k>{k}</k></punct:{tag}>" for k in range(6) for tag in "ef"]
    path.write_text('<r xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct">' + "\n".join(lines) + "</r>")
    return path


@contextmanager
def small_bounds() -> Iterator[None]:
    """Tasks write segments and large results, and read them."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (segments, "HELD", 0),
            (segments, "COLLECTED", 0),
            (held, "FEW", 0),
            (held, "MOST", 0),
            (tuple_log, "SMALL", 0),
            (directory_sink, "FEW", 2),
            (directory_sink, "MANY", 5),
        ):
            patch.setattr(module, name, value)
        yield


def answers(spark: SparkSession, given: Path, out: Path) -> dict[str, list[str]]:
    with small_bounds():
        text = SCRIPT.format(path=given, out=out)
        xs.run(xs.inserts_from_sql(spark, text), out / "state")
    found = dict[str, list[str]]()
    for place in sorted(each for each in out.iterdir() if each.name != "state"):
        rows = list[str]()
        for path in sorted(place.rglob("*.parquet")):
            import pyarrow.parquet as pq

            rows += [json.dumps(row, default=str) for row in pq.ParquetFile(path).read().to_pylist()]
        for path in sorted(place.rglob("*.xml")):
            rows += [
                etree.tostring(row, with_tail=False).decode() for row in etree.parse(path).getroot().iterfind("row")
            ]
        found[place.name] = sorted(rows)
    return found


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    home = tmp_path_factory.mktemp("settings")
    found = answers(spark, document(home / "e.xml"), home / "out")
    assert all(found.values()), found
    return found


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        # Of those that are refused nothing is computed.
        pytest.param(*case, marks=() if case[0] == "refused" else pytest.mark.rest)
        for case in (CASES if AT_NIGHT else BY_DAY)
    ],
)
def test_rows_are_the_same_or_the_setting_is_refused(
    spark: SparkSession, request: pytest.FixtureRequest, kind: str, name: str, value: str, tmp_path: Path
) -> None:
    expected = None if kind == "refused" else request.getfixturevalue("expected")
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    found = None
    try:
        with suppress(XmlStreamError):
            found = answers(spark, document(tmp_path / "e.xml"), tmp_path / "out")
        assert (found is None) if kind == "refused" else (found == expected or (kind == "either" and found is None))
        assert spark.conf.get(name) == value
    finally:
        spark.conf.unset(name) if before is None else spark.conf.set(name, before)
