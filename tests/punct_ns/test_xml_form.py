from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tests.harness.punctuation_elements import read_element
from tests.samples import strategies
from xmlstream.punct_ns.errors import NotationError
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.xml_form import PUNCT_NS, punctuation_from_texts, write_element

SENSOR = Schema.parse("sid STRING, hour INT, min INT, currtmp DOUBLE")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def element(inner: str, attributes: str = "", prefix: str = "punct") -> etree._Element:
    return etree.fromstring(f'<{prefix}:tempdata xmlns:{prefix}="{PUNCT_NS}" {attributes}>{inner}</{prefix}:tempdata>')


def read(inner: str, attributes: str = "") -> str:
    return str(read_element(element(inner, attributes), SENSOR))


def test_the_papers_own_punctuation() -> None:
    text = "<sid>*</sid> <hour>[17,20)</hour> <min>*</min> <currtmp>*</currtmp>"
    assert read(text) == "<*, [17,19], *, *>"
    assert str(read_element(element(text, prefix="p"), SENSOR)) == "<*, [17,19], *, *>"


@strategies.fewer(3)
@given(st.data(), strategies.schemas())
def test_what_is_written_is_read_back(data: st.DataObject, schema: Schema) -> None:
    p = data.draw(strategies.punctuations(schema))
    paths = ["@zero", "row/one", "row/@two", "three"][: len(schema)]
    text = write_element(p, "r", "p", paths)
    assert read_element(etree.fromstring(text.replace("<p:r", f'<p:r xmlns:p="{PUNCT_NS}"', 1)), schema, paths) == p


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("<hour>5</hour>", "<*, 5, *, *>"),
        ("<hour> {5,\n 9} </hour><min/>", None),
        ("<sid/>", '<"", *, *, *>'),
        ("<sid> S<!-- x -->01 </sid>", "<S01, *, *, *>"),
        ("<sid><![CDATA[*]]></sid><hour>1</hour>", "<*, 1, *, *>"),
        ('<sid>"*"</sid>', '<"*", *, *, *>'),
        ("<sid>null</sid>", "<null, *, *, *>"),
        ('<hour xmlns:x="http://www.w3.org/2001/XMLSchema-instance" x:nil="true"/>', "<*, null, *, *>"),
        ('<t:hour xmlns:t="urn:t">5</t:hour>', "<*, 5, *, *>"),
        ("<hour>5</hour><unknown>*</unknown>", "<*, 5, *, *>"),
        ("<hour>5</hour><unknown>3</unknown>", None),
        ("<huor>5</huor>", None),
        ("", None),
        ("<hour>5</hour><hour>6</hour>", None),
        ("<hour>5<b>6</b></hour>", None),
        ("<hour><b/></hour>", None),
        ("5<hour>5</hour>", None),
        ("<hour>x</hour>", None),
        ("<hour>5.5</hour>", None),
    ],
)
def test_elements(inner: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(NotationError):
            read(inner)
    else:
        assert read(inner) == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("PT1H", "for PT1H"),
        (" P1DT90M ", "for P1DT1H30M"),
        ("min &lt; 30", "while min < 30"),
        ("min&lt;=30", "while min <= 30"),
        ("PT1H and sid &lt; S5", "for PT1H while sid < S5"),
    ],
)
def test_a_lifespan_is_a_duration_or_a_bound_and_is_written_again(text: str, shown: str) -> None:
    head = f'<punct:tempdata xmlns:punct="{PUNCT_NS}" punct:lifespan="{text}"><hour>5</hour></punct:tempdata>'
    p = read_element(etree.fromstring(head), SENSOR)
    assert p.lifespan is not None
    assert str(p) == f"<*, 5, *, *> {shown}"
    begun = p.lifespan.begun(NOW, "tempdata")
    written = write_element(p, "tempdata", lifespan=begun.written(NOW, {("tempdata", n): n for n in SENSOR.names}))
    again = read_element(etree.fromstring(written.replace(">", f' xmlns:punct="{PUNCT_NS}">', 1)), SENSOR)
    assert again.lifespan is not None
    assert str(again) == str(p)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("soon", "'soon' is not a valid duration"),
        ("", "'' is not a valid duration"),
        ("PT", "not a valid duration"),
        ("PT1H and PT2H", "two durations"),
        ("zone &lt; 3", "zone"),
        ("min &lt; x", "x"),
        ("min > 3", "not a valid bound, such as"),
    ],
)
def test_a_lifespan_that_cannot_be_read_says_why(text: str, words: str) -> None:
    with pytest.raises(NotationError, match=words) as raised:
        read("<hour>5</hour>", f'punct:lifespan="{text}"')
    assert "the lifespan" in str(raised.value)


def test_what_is_not_declared_is_refused() -> None:
    with pytest.raises(NotationError, match="where none is allowed"):
        read("<hour>5</hour>", 'punct:life="PT1H"')
    with pytest.raises(NotationError, match="restricts @zone"):
        read("<hour>5</hour>", 'zone="3"')


def test_an_element_of_another_namespace_is_no_punctuation() -> None:
    with pytest.raises(NotationError, match="is not a punctuation"):
        read_element(etree.fromstring("<tempdata><hour>5</hour></tempdata>"), SENSOR)


def test_what_xml_cannot_hold_is_refused() -> None:
    p = Punctuation.of(Schema.of(sid="STRING"), sid=Constant("\0"))
    with pytest.raises(ValueError, match="XML does not allow"):
        write_element(p, "r")
    p = Punctuation.of(Schema.of(sid="STRING"), sid=Constant("a\rb<&>\n"))
    assert write_element(p, "r") == '<punct:r><sid>"a&#13;b&lt;&amp;&gt;\n"</sid></punct:r>'


def test_blanks_belong_to_a_constant_only_where_tuples_keep_theirs() -> None:
    texts = {" S01 ": Constant(" S01 "), "  ": Constant("  "), ' " S01"': Constant(" S01"), "S01": Constant("S01")}
    schema = Schema.of(sid="STRING")
    for text, constant in texts.items():
        assert punctuation_from_texts([text], schema, trim=False).patterns == (constant,)
    assert punctuation_from_texts([" S01 "], schema).patterns == (Constant("S01"),)
    assert punctuation_from_texts([" * "], schema, trim=False).is_all


def test_twenty_thousand_are_read_quickly() -> None:
    rows = [[None, str(hour), None, "*"] for hour in range(20_000)]
    started = time.process_time()
    ps = [punctuation_from_texts(row, SENSOR) for row in rows]
    seconds = time.process_time() - started
    print(f"20,000 punctuations of distinct constants: {seconds:.3f} s")
    assert ps[5].patterns[1] == Constant(5)
    assert seconds < 30
