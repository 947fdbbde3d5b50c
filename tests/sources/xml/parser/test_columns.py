"""Typed columns against the algebra's own reading of every text."""

from __future__ import annotations

from datetime import datetime
from email.utils import parsedate_to_datetime

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xmlstream.punct_ns.domain import Domain
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.typed_columns import ColumnReader, Spelling

TYPES = ["TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(5,2)", "FLOAT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP"]
TYPES += ["TIMESTAMP_NTZ", "STRING"]

TEXTS = st.one_of(
    st.none(),
    st.integers().map(str),
    st.integers(-130, 130).map(str),
    st.floats().map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.dates().map(str),
    st.datetimes().map(str),
    st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
    st.text("0123456789+-.eExXnaif TZ: \t\n", max_size=12),
    st.sampled_from(["0x1F", "+5", "-0", "-0.0", "007", "1.", ".5", "1e3", "NaN", "INF", "true", "1", "", " ", " 3 "]),
    st.sampled_from(
        ["9999-12-31", "0000-01-01", "2003-05-15 24:00:00", "2003-02-30", "1e400", "\N{ARABIC-INDIC DIGIT ONE}"]
    ),
)


CLOCKS = st.tuples(
    *(st.integers(0, most) for most in (9999, 13, 32, 25, 61, 61)), st.sampled_from(["", ".5", ".123456"])
)
FORMS = ["{:04}-{:02}-{:02}", "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}Z", "{:04}-{:02}-{:02} {:02}:{:02}:{:02}{}"]
ONE_FORM = st.tuples(st.sampled_from(FORMS), st.lists(CLOCKS, max_size=4)).map(
    lambda drawn: [drawn[0].format(*clock) for clock in drawn[1]]
)
"""Dates or clocks, possible or not, all spelt alike."""


def _with_another(texts: list[str], row: int, at: int, character: str) -> list[str]:
    """The same texts, of which one has another character somewhere."""
    if not texts:
        return texts
    text = texts[row % len(texts)]
    place = at % len(text)
    return [text[:place] + character + text[place + 1 :] if each is text else each for each in texts]


ALMOST_ONE_FORM = st.builds(
    _with_another, ONE_FORM, st.integers(0, 3), st.integers(0, 30), st.sampled_from(list("0123456789:;/?-T Z.+x\t"))
)


@given(st.sampled_from(TYPES), st.lists(TEXTS, max_size=6) | ONE_FORM | ALMOST_ONE_FORM)
@example("INT", ["0x1F"])
@example("TIMESTAMP", ["2003-05-15T10:00:00Z", "2003-05-15T24:00:00Z"])
@example("TIMESTAMP", ["0999-05-15T10:00:00Z", "2003-02-30T00:00:00Z"])
@example("DOUBLE", ["-0.0", "0x1p3"])
@example("DOUBLE", ["1_0"])
@example("TIMESTAMP", ["2003-05-15T10:00:00Z", "2003-05-15"])
def test_a_column_holds_what_the_algebra_reads(kind: str, texts: list[str | None]) -> None:
    domain = Domain(kind)
    values, reasons = ColumnReader("x", domain, None, trim=True).read(pa.array(texts, pa.string()))
    read = values.to_pylist()
    for row, text in enumerate(texts):
        tidy = text if text is None else text.strip(" \t\r\n")
        if tidy is None or (tidy == "" and kind != "STRING"):
            assert read[row] is None
            assert row not in reasons
            continue
        try:
            expected = domain.read(tidy)
        except ValueError:
            assert row in reasons
            continue
        assert row not in reasons
        assert domain.normal(read[row]) == expected


def test_blanks_around_a_string_can_be_kept() -> None:
    texts = pa.array([" a ", "\n", ""])
    assert ColumnReader("x", Domain("STRING"), None, trim=False).read(texts)[0].to_pylist() == [" a ", "\n", ""]
    assert ColumnReader("x", Domain("STRING"), None, trim=True).read(texts)[0].to_pylist() == ["a", "", ""]


def test_the_null_text_is_null_whatever_blanks_are_around_it() -> None:
    values, reasons = ColumnReader("x", Domain("INT"), "n/a", trim=True).read(pa.array([" n/a", "3"]))
    assert (values.to_pylist(), reasons) == ([None, 3], {})


@pytest.mark.parametrize(
    ("domain", "text", "is_outside"),
    [
        (Domain("INT", low=0, high=59), "59", False),
        (Domain("INT", low=0, high=59), "60", True),
        (Domain("INT", low=0, high=59), "-1", True),
        (Domain("INT", low=0, high=59), None, False),
        (Domain("INT", nullable=False), None, True),
        (Domain("INT", nullable=False), "", True),
        (Domain("DOUBLE", high=float("inf")), "NaN", True),
        (Domain("DOUBLE", low=0.0), "NaN", False),
        (Domain("DOUBLE", low=0.0), "-0.5", True),
        (Domain("STRING", nullable=False), "", False),
    ],
)
def test_a_declared_domain_is_checked_and_not_believed(domain: Domain, text: str | None, is_outside: bool) -> None:
    _, reasons = ColumnReader("x", domain, None, trim=True).read(pa.array([text], pa.string()))
    assert bool(reasons) == is_outside


def test_other_forms_of_dates_are_read_by_their_pattern_alone() -> None:
    column = ColumnReader("x", Domain("DATE"), None, trim=True, written=Spelling("MM/dd/yyyy"))
    values, reasons = column.read(pa.array(["07/05/2000", "2000-07-05", "02/30/2000", "", None]))
    assert [str(value) for value in values.to_pylist()] == ["2000-07-05", "None", "None", "None", "None"]
    assert list(reasons) == [1, 2]


def test_timestamps_have_fractions_and_zones_in_their_patterns() -> None:
    written = Spelling("dd.MM.yyyy 'at' HH:mm:ss.SSSXXX")
    column = ColumnReader("x", Domain("TIMESTAMP"), None, trim=True, written=written)
    values, reasons = column.read(pa.array(["05.07.2000 at 10:00:00.250+02:00"]))
    assert not reasons
    assert values[0].as_py().isoformat() == "2000-07-05T08:00:00.250000+00:00"


@pytest.mark.parametrize(
    ("pattern", "text", "iso"),
    [
        ("EEE, dd MMM yyyy HH:mm:ss Z", "Tue, 03 Jun 2003 09:39:21 GMT", "2003-06-03T09:39:21Z"),
        ("EEE, dd MMM yyyy HH:mm:ss Z", "Sun, 30 Nov 2003 09:39:21 +0530", "2003-11-30T04:09:21Z"),
        ("EEE, dd MMM yyyy HH:mm:ss Z", "Tue, 3 Jun 2003 09:39:21 GMT", None),
        ("EEE, dd MMM yyyy HH:mm:ss Z", "Tue, 03 Jun 2003 09:39:21 EST", None),
        ("EEE, dd MMM yyyy HH:mm:ss Z", "Tue, 03 Foo 2003 09:39:21 GMT", None),
        ("EEE, d MMM yyyy HH:mm:ss z", "Tue, 3 Jun 2003 09:39:21 EDT", "2003-06-03T13:39:21Z"),
        ("EEE, d MMM yyyy HH:mm:ss z", "Tue, 13 Jun 2003 09:39:21 PST", "2003-06-13T17:39:21Z"),
        ("d.MM.yyyy HH:mm", "3.06.2003 09:39", "2003-06-03T09:39:00Z"),
    ],
)
def test_dates_of_mails_are_those_of_the_standard_library(pattern: str, text: str, iso: str | None) -> None:
    written = Spelling(pattern)
    reader = ColumnReader("x", Domain("TIMESTAMP"), None, trim=True, written=written)
    values, wrong = reader.read(pa.array([text, None, ""]))
    assert values.to_pylist()[1:] == [None, None]
    if iso is None:
        assert f"{text} is not {pattern}" in wrong[0]
        return
    assert values.to_pylist()[0] == datetime.fromisoformat(iso)
    if text.startswith(("Tue", "Sun")):
        assert parsedate_to_datetime(text) == datetime.fromisoformat(iso)


def test_a_column_may_have_a_format_of_its_own() -> None:
    given = {"path": "x", "rowTag": "r", "timestampFormat": "dd.MM.yyyy", "timestampFormat.b": "MM/dd/yyyy"}
    options = SourceOptions.parse(given, "a TIMESTAMP, b ARRAY<TIMESTAMP>, c DATE, d TIMESTAMP")
    assert options.formats == ("dd.MM.yyyy", "MM/dd/yyyy", None, "dd.MM.yyyy")
    values, wrong = ColumnReader.of(options, 1).read(pa.array([["07/05/2000", "07/06/2000"]]))
    (read,) = values.to_pylist()
    assert [str(each)[:10] for each in read or ()] == ["2000-07-05", "2000-07-06"]
    assert not wrong
