from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from tests.harness.xml_reading import any_cuts, read_cut
from xmlstream.punct_ns.errors import MalformedInput, UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.receivers.message import Message, MessageItems, MessageReader


def _read(payload: bytes, *key: str, id: str | None = None, max_bytes: int = 1000) -> MessageItems:
    return MessageReader("report", key, max_bytes).items(Message(payload, "test", id=id))


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"<report><sid>a</sid></report>", b"<report><sid>a</sid></report>"),
        (b" \n<report/>\n<report/> ", b"<report/>\n<report/>"),
        (b"<?xml version='1.0'?>\n<report a='&lt;'/>", b"<report a='&lt;'/>"),
        (b"<?xml version='1.0' encoding='UTF-8'?><report>\xc3\xa9</report>", b"<report>\xc3\xa9</report>"),
        (b"\xef\xbb\xbf<report/>", b"<report/>"),
        (b"<?xml version='1.0' encoding='ISO-8859-1'?><report>\xe9</report>", b"<report>\xc3\xa9</report>"),
        ("<?xml version='1.0' encoding='UTF-16'?><report>é</report>".encode("utf-16"), b"<report>\xc3\xa9</report>"),
        (b"<punct:report><sid>a</sid></punct:report>", b"<punct:report><sid>a</sid></punct:report>"),
        (b"<p:report xmlns:p='%s'/>" % PUNCT_NS.encode(), b"<p:report xmlns:p='%s'/>" % PUNCT_NS.encode()),
        (b"<batch><report/><report/></batch>", b"<batch><report/><report/></batch>"),
        (b"<!-- first --><report><![CDATA[<]]></report>", b"<!-- first --><report><![CDATA[<]]></report>"),
    ],
)
def test_elements_are_written_as_they_came_in_utf_8(payload: bytes, text: bytes) -> None:
    assert _read(payload).text == text


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "no element"),
        (b"hello", "text beside the elements"),
        (b"<report/>,<report/>", "text beside the elements"),
        (b"<report>", "not well-formed"),
        (b"<report/></m><m>", "not well-formed"),
        (b"</m><report/><m>", "not well-formed"),
        (b"<other/>", "neither a <report> nor a punctuation; there is <other>"),
        (b"<q:report/>", "not well-formed"),
        (b"<p:report/><report xmlns='2'/>", "not well-formed: Namespace prefix p on report is not defined"),
        (b"<report xmlns:a='u' xmlns:b='u' a:x='' b:x=''/><report xmlns='2'/>", "not well-formed: .* redefined"),
        (b"<report/><p:report xmlns:p='urn:x'/>", "an element of two namespaces, of none and of 'urn:x'"),
        (b"<punct:other><sid>1</sid></punct:other>", "neither a <report> nor a punctuation"),
        (b"<report>\xe9</report>", "not well-formed"),
        (b"<!DOCTYPE report [<!ENTITY a 'b'>]><report>&a;</report>", "not well-formed"),
        ("<?xml version='1.0' encoding='UTF-16'?><!DOCTYPE r><report/>".encode("utf-16"), "document type declaration"),
        (b"<report>" + b"x" * 1000 + b"</report>", "1,017 bytes, more than the 1,000"),
    ],
)
def test_what_would_spoil_a_document_or_says_nothing_is_malformed(payload: bytes, why: str) -> None:
    with pytest.raises(MalformedInput, match=why):
        _read(payload)


def test_a_message_is_known_again_by_its_id_else_by_the_key_of_its_tuples() -> None:
    one = b"<report><sid>a</sid><at hour='1'/><v>1</v></report>"
    again = b"<report><v>2</v><sid> a </sid><at hour='1'></at></report>"
    other = b"<report><sid>a</sid><at hour='2'/></report>"
    key = ("sid", "at/@hour")
    assert _read(one, *key).id == _read(again, *key).id != _read(other, *key).id
    assert _read(one + other, *key).id != _read(other + one, *key).id
    assert _read(one).id is None
    assert _read(one, *key, id="17").id == "17"
    # A punctuation may be said again.
    assert _read(b"<punct:report><sid>a</sid></punct:report>", *key).id is None


def test_a_tuple_without_its_key_is_malformed_and_a_key_that_is_no_leaf_is_refused() -> None:
    with pytest.raises(MalformedInput, match="without at/@hour, which is in its key"):
        _read(b"<report><sid>a</sid><at/></report>", "sid", "at/@hour")
    with pytest.raises(UsageError, match="'a//b' is not a leaf"):
        MessageReader("report", ["a//b"])


def test_written_elements_stay_well_formed_below_a_root_of_any_declarations() -> None:
    for payload in (b"<report xmlns='urn:a' xmlns:punct='urn:b'><punct:x>1</punct:x></report>", b"<punct:report/>"):
        root = etree.fromstring(b"<stream xmlns:punct='%s'>%s</stream>" % (PUNCT_NS.encode(), _read(payload).text))
        assert etree.QName(root[0]).localname == "report"


def test_a_tag_with_its_namespace_names_the_tuples_as_it_does_for_the_reader() -> None:
    other = b"<p:report xmlns:p='urn:x'/>"
    assert MessageReader("{}report").items(Message(b"<report/>" + other, "test")).row is None
    for tag, payload in (("{}report", other), ("{urn:x}report", b"<report/>")):
        with pytest.raises(MalformedInput, match=r"neither a <\{.*report> nor a punctuation"):
            MessageReader(tag).items(Message(payload, "test"))
    for payload in (b"<a/>", b"<b/>"):
        assert MessageReader("a | b").items(Message(payload, "test")).text == payload


NAMES = ["row", "a", "b", "p:row", "p:a", "punct:row", "punct:a", "xml:a", "xmla", "é"]
ATTRIBUTES = [
    "id",
    "p:id",
    "xml:id",
    "xml:lang",
    "xml:space",
    "xml:base",
    "xmlns",
    "xmlns:p",
    "xmlns:punct",
    "xmlns:xml",
]
VALUES = [
    "",
    "1",
    "x",
    "x y",
    "urn:p",
    "&lt;",
    "&#10;",
    "&no;",
    "*",
    "a:b:c",
    "preserve",
    PUNCT_NS,
    "http://[",
    "\ufffe",
]
BESIDE = ["", " ", "1", "é", "]]>", "]]", "&amp;", "&no;", "&#0;", "<!-- c -->", "<!---->", "<![CDATA[<row>]]>", "\x01"]
BEFORE = ["", "<?xml version='1.0'?>", "<?xml version='1.1'?>", "<?x y?>", "<?xml-x?>", "<?a:b?>", "<!DOCTYPE row>"]


@st.composite
def messages(draw: st.DrawFn, deep: int = 3) -> str:
    """Texts that are messages, or nearly."""
    name, attributes = draw(st.sampled_from(NAMES[: 10 if deep < 3 else 7])), list[str]()
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        attributes.append(f' {draw(st.sampled_from(ATTRIBUTES))}="{draw(st.sampled_from(VALUES))}"')
    if name.startswith("p:") and draw(st.integers(0, 3)):
        attributes.append(' xmlns:p="urn:p"')
    inner = draw(st.lists(messages(deep - 1), max_size=2)) if deep else []
    text = draw(st.sampled_from(BESIDE)) if draw(st.booleans()) else ""
    return f"<{name}{''.join(attributes)}>{text}{''.join(inner)}</{name}>"


@given(
    payloads=st.lists(st.tuples(st.sampled_from([""] * 6 + BEFORE), messages()), min_size=1, max_size=5),
    seed=st.integers(0, 1 << 30),
)
@example(payloads=[("", '<row xml:id="x"/>'), ("", '<row xml:id="x"/>')], seed=0)
@example(payloads=[("", '<row><a xml:id="1"/></row>')], seed=0)
def test_no_message_that_was_taken_spoils_its_document(payloads: list[tuple[str, str]], seed: int) -> None:
    reader, taken, namespaces = MessageReader("row"), list[bytes](), set[str]()
    for before, text in payloads:
        try:
            items = reader.items(Message((before + text).encode("utf-8", "surrogatepass"), "test"))
        except MalformedInput:
            continue
        # As a spool does, which takes the tuples of one namespace.
        if items.row is not None and not namespaces <= {etree.QName(items.row).namespace}:
            continue
        namespaces |= {etree.QName(items.row).namespace} if items.row is not None else set()
        taken.append(items.text + b"\n")
    with TemporaryDirectory() as directory:
        path = Path(directory) / "1.xml"
        path.write_bytes(b"<stream xmlns:punct='%s'>\n%s</stream>\n" % (PUNCT_NS.encode(), b"".join(taken)))
        found = read_cut(path, any_cuts(Random(seed)))
    assert found.error is None, taken
