from __future__ import annotations

import pytest
from lxml import etree

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
