"""Random SQL from document to document: a source with an attribute column, slices of few bytes, and the sink.

Several queries run together as a user runs them, by INSERT INTO; the documents that come out are read by another parser
and held to Spark's own batch answer. The columns are those of `drawn_queries`, of which `a` is called `_id` here.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from lxml import etree

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.oracles.relational import answers
from tests.properties.test_drawn_queries import SEEN, Streams, known, planned, streams
from tests.properties.test_random_plans import SPACE, TABLES
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.xml_form import PUNCT_NS, write_element

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:Generating overly large repr")]

PATHS = ("@id", "b", "c")


def renamed(sql: str) -> str:
    """The text with `_id` for the name `a`."""
    return re.sub(r"\b[aA]\b", "_id", sql)


def tables(directory: Path) -> str:
    text = renamed(TABLES)
    for name in "rs":
        text = text.replace(f"path '{name}.xml'", f"path '{directory / name}.xml', maxBytesPerSlice '400'")
    return text


def document(items: list[Any]) -> str:
    """A stream as XML: the first attribute of a tuple is one of its element, null is absent.

    No slice is less than about 1 kB: blanks behind each element make several of a few tuples.
    """
    lines = []
    for item in items:
        if isinstance(item, Punctuation):
            lines.append(write_element(item, "r", paths=PATHS))
            continue
        first, *rest = item
        start = "<r>" if first is None else f"<r id={quoteattr(str(first))}>"
        leaves = [f"<{name}>{value}</{name}>" for name, value in zip("bc", rest, strict=True) if value is not None]
        lines.append(f"{start}{''.join(leaves)}</r>")
    return f"<rs xmlns:punct='{PUNCT_NS}'>\n{chr(10).join(f'{line:<300}' for line in lines)}\n</rs>\n"


def written(directory: Path, names: list[str]) -> Counter[tuple[Any, ...]]:
    """The tuples of the documents in a directory."""
    found: Counter[tuple[Any, ...]] = Counter()
    for path in sorted(directory.glob("slice-*.xml")):
        for element in etree.parse(path).getroot().iterfind("row"):
            texts = {child.tag: child.text for child in element} | {
                "_" + str(name): v for name, v in element.attrib.items()
            }
            found[tuple(None if texts.get(name) is None else int(str(texts[name])) for name in names)] += 1
    return found


def check(spark: SparkSession, streams_: Streams, directory: Path) -> None:
    known(spark, streams_)
    for name, slices in zip("rs", streams_.slices, strict=True):
        spark.table(name).withColumnRenamed("a", "_id").createOrReplaceTempView(name)
        (directory / f"{name}.xml").write_text(document([*chain(*slices)]), encoding="utf-8")
    asked = [*planned(spark, [renamed(sql) for sql in streams_.asked], tables(directory))]
    expected = answers([spark.sql(sql) for sql in asked])
    columns = [spark.sql(sql).columns for sql in asked]
    # Together their tuples are counted in one job, alone as each operator hands them on.
    everything = range(len(asked))
    for folder, numbers in (("together", everything), ("alone", everything[-1:])):
        into = directory / folder
        sinks = "".join(
            f"CREATE TABLE out{n} USING punctuated_xml OPTIONS (path '{into / str(n)}', rowTag 'row');\n"
            f"INSERT INTO out{n} {asked[n]};\n"
            for n in numbers
        )
        xs.run(xs.inserts_from_sql(spark, tables(directory) + sinks))
        for n in numbers:
            assert written(into / str(n), columns[n]) == expected[n], f"{asked[n]}\n{streams_.slices}"


@pytest.mark.rest
def test_any_query_writes_what_spark_answers(spark: SparkSession, tmp_path: Path) -> None:
    @settings(
        max_examples=max(1, settings().max_examples // 250),
        deadline=None,
        # The first example that is drawn is the simplest there is: by day what was found once is enough.
        phases=[Phase.explicit, *([Phase.reuse, Phase.generate] if AT_NIGHT else [])],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(streams())
    def holds(streams_: Streams) -> None:
        directory = tmp_path / str(len(list(tmp_path.iterdir())))
        directory.mkdir()
        check(spark, streams_, directory)

    holds = example(SEEN[0])(holds)
    holds()
    assert SPACE.schema.names == ("a", "b", "c")
