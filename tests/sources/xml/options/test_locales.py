"""Numbers and names of months in a locale are what Spark's own XML source makes of them, or refused."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from xmlstream.punct_ns.errors import InputError, UngrammaticalStream, UsageError
from xmlstream.sources.xml.options.locales import _FULL_MONTHS, _MONTHS, _NUMBERS, LocaleNumbers, marks
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.typed_columns import ColumnReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession

LOCALES = sorted(each for listed in _NUMBERS.values() for each in listed.split())
SOURCE = {"path": "in.xml", "rowTag": "t", "schema": "v DECIMAL(20,4), d DATE, w DOUBLE"}
PUNCT = 'xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct"'


def _column(index: int, **options: str) -> ColumnReader:
    return ColumnReader.of(SourceOptions.parse({**SOURCE, **options}), index)


def _drawn(draw: random.Random) -> list[str]:
    """Texts with digits and marks, most of them numbers of some locale."""
    texts = [
        "1,5",
        "1.5",
        "1.234,5",
        "1,234.5",
        "12.34,5",
        ",5",
        "1,",
        "007,50",
        "1.5E3",
        "1,5E-3",
        "1E3",
        "-5",
        "5-",
        "1..5",
    ]
    for _ in range(40):
        group, decimal = draw.choice([".", ",", "\xa0", "\u202f", "’", ""]), draw.choice(".,")
        whole = f"{draw.randrange(10**7):,}".replace(",", group)
        texts.append(draw.choice(["", "-"]) + whole + draw.choice(["", f"{decimal}{draw.randrange(10_000)}"]))
    return texts


@pytest.mark.spark
def test_a_decimal_is_sparks_or_refused(spark: SparkSession, tmp_path: Path) -> None:
    draw = random.Random() if AT_NIGHT else random.Random(54)
    texts = _drawn(draw)
    document = tmp_path / "in.xml"
    document.write_text(f"<r>{''.join(f'<t><v>{text}</v></t>' for text in texts)}</r>")
    read_by_both = 0
    for tag in LOCALES if AT_NIGHT else ("de-DE", "de-AT", "de-CH", "en-US", "fr-FR", "nl-NL", "pl-PL", "es-MX"):
        reader = spark.read.format("xml").schema("v DECIMAL(20,4)").options(rowTag="t", locale=tag)
        theirs = [row.v for row in reader.load(str(document)).collect()]
        ours = _column(0, locale=tag).read(pa.array(texts))[0].to_pylist()
        decimal, groups = marks(tag)
        for text, one, other in zip(texts, ours, theirs, strict=True):
            if other is None:  # more blanks are marks of groups here, and another minus
                assert one is None or set(text) & set(groups + "−"), (tag, text)
            elif one is None:  # groups of other than three digits, or more digits than there are places
                assert set(text) & set(groups) or len(text.rpartition(decimal)[2]) > 4, (tag, text)
            else:
                assert one == other, (tag, text)
                read_by_both += 1
    assert read_by_both > 100


@pytest.mark.spark
def test_every_month_is_read_that_spark_writes(spark: SparkSession) -> None:
    days = [date(2026, month, 25) for month in range(1, 13)]
    jvm: Any = spark._jvm
    for tag in LOCALES:
        for pattern in ("dd MMM yyyy", "dd MMMM yyyy", "EEEE, d MMMM yyyy", "EEE d. MMM yyyy"):
            form = jvm.java.time.format.DateTimeFormatter.ofPattern(pattern, jvm.java.util.Locale.forLanguageTag(tag))
            texts = [jvm.java.time.LocalDate.of(2026, month, 25).format(form) for month in range(1, 13)]
            if not any(" " in text.partition(",")[0] for text in texts if "EEEE" in pattern):  # days of two words
                values, reasons = _column(1, locale=tag, dateFormat=pattern).read(pa.array(texts))
                assert (values.to_pylist(), reasons) == (days, {}), (tag, pattern)


@pytest.mark.parametrize("tag", _MONTHS)
def test_months_may_have_a_point_and_any_case(tag: str) -> None:
    names = [name.partition("/")[0] for name in _MONTHS[tag].split()]
    column = _column(1, locale=tag, dateFormat="d. MMM yyyy")
    for texts in ([f"5. {name} 2026" for name in names], [f"5. {name.upper()}. 2026" for name in names]):
        if tag not in ("tr", "el") or texts[0] != texts[0].upper():  # Turkish and Greek have capitals of their own
            assert column.read(pa.array(texts))[0].to_pylist() == [date(2026, month, 5) for month in range(1, 13)]


@pytest.mark.parametrize("tag", _FULL_MONTHS)
def test_full_names_of_months_are_no_short_ones(tag: str) -> None:
    names = [name.partition("/")[0].replace("_", " ") for name in _FULL_MONTHS[tag].split()]
    texts = pa.array([f"5 {name} 2026" for name in names])
    days = [date(2026, month, 5) for month in range(1, 13)]
    assert _column(1, locale=tag, dateFormat="d MMMM yyyy").read(texts)[0].to_pylist() == days
    values, reasons = _column(1, locale=tag, dateFormat="d MMM yyyy").read(texts)
    assert all(value in (None, day) for value, day in zip(values.to_pylist(), days, strict=True))
    assert reasons


def test_full_names_are_english_without_a_locale() -> None:
    texts = pa.array(["Sunday, 25 October 2026", "Sun, 25 Oct 2026"])
    values, reasons = _column(1, dateFormat="EEEE, d MMMM yyyy").read(texts)
    assert values.to_pylist() == [date(2026, 10, 25), None]
    assert list(reasons) == [1]


def test_a_point_is_no_decimal_comma() -> None:
    values, reasons = _column(0, locale="de-DE").read(pa.array(["1,5", "1.5", "1.500", None, ""]))
    assert values.to_pylist() == [Decimal("1.5"), None, Decimal(1500), None, None]
    assert reasons == {1: "v: '1.5 is not a number of de-DE' is not a valid number"}


def test_a_double_is_not_read_in_a_locale_as_in_spark() -> None:
    values, reasons = _column(2, locale="de-DE").read(pa.array(["1.5", "1,5"]))
    assert values.to_pylist() == [1.5, None]
    assert list(reasons) == [1]


def test_a_prefix_stands_before_numbers_of_a_locale() -> None:
    assert _column(0, locale="de-DE", **{"prefix.v": "EUR "}).read(pa.array(["EUR 1.500"]))[0].to_pylist() == [1500]


def test_an_unknown_locale_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="locale 'xx-XX' is not known") as raised:
        SourceOptions.parse({**SOURCE, "locale": "xx-XX"})
    assert (raised.value.hint or "").startswith("as de-DE, of the languages bg, cs, da, de,")


def test_constants_of_punctuations_are_numbers_of_the_locale(in_process: InProcessSession, tmp_path: Path) -> None:
    document = tmp_path / "in.xml"

    def run(pattern: str, number: str) -> int:
        document.write_text(f"<r {PUNCT}><punct:t><v>{pattern}</v></punct:t><t><v>{number}</v></t></r>")
        query = xs.read(in_process, document, "v DECIMAL(9,2)", rowTag="t", locale="de-DE", schemes="v")
        return len(query.to_arrow())

    for pattern in ("1.500", "1.500,00", '["1.000,5",2.000]', '{1.500,"1,5"}', "[,1.500]"):
        with pytest.raises(UngrammaticalStream):
            run(pattern, "1.500,0")
        assert run(pattern, "2.000,01") == 1
    with pytest.raises(InputError, match=r"1\.5 is not a number of de-DE"):
        run("1.5", "1,5")


def test_structures_are_in_the_locale(in_process: InProcessSession, tmp_path: Path) -> None:
    document = tmp_path / "in.xml"
    document.write_text("<r><t><b><x>1.234,5</x><d>5. Mai 2026</d></b></t></r>")
    schema = "b STRUCT<x: DECIMAL(9,2), d: DATE>"
    query = xs.read(in_process, document, schema, rowTag="t", locale="de-DE", dateFormat="d. MMM yyyy")
    assert query.to_arrow().to_pylist() == [{"b": {"x": Decimal("1234.50"), "d": date(2026, 5, 5)}}]


def test_a_number_is_read_as_of_a_pattern_and_of_a_tuple() -> None:
    draw = random.Random() if AT_NIGHT else random.Random(1)
    for tag in LOCALES:
        numbers, texts = LocaleNumbers(tag), _drawn(draw)
        plain = numbers.rewrite(pa.array(texts)).to_pylist()
        for text, read in zip(texts, plain, strict=True):
            assert numbers.reads(text) is ("is not a number" not in str(read))
            if numbers.reads(text):
                assert numbers.of_pattern(text) == read
