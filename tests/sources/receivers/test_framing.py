from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.punct_ns.errors import MalformedInput
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.receivers.framing import Elements, Framing, Lines


def _all(framing: Framing, text: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    found = [message for a, b in pairwise(places) for message in framing.feed(text[a:b])]
    return [*found, *framing.end()]


CUTS = st.lists(st.integers(0, 200), max_size=8)
ITEMS = [b"<a>1</a>", b"<a>\n<b>&lt;\xc3\xa9</b></a>", b"<punct:a><b>*</b></punct:a>", b"<a/>"]


@given(cuts=CUTS)
def test_lines_are_the_same_however_they_come(cuts: list[int]) -> None:
    assert _all(Lines(), b"<a/>\r\n\n <b/>\n<c/>", cuts) == [b"<a/>", b"<b/>", b"<c/>"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b"\n<!-- bare -->", b""),
        (b"<?xml version='1.0' encoding='utf-8'?>", b""),
        (b"<all>", b"</all>\n"),
        (b"<?xml version='1.0'?>\n<all xmlns:punct='%s'>" % PUNCT_NS.encode(), b"</all>"),
    ],
)
@given(cuts=CUTS)
def test_elements_are_the_same_however_they_come_bare_or_below_a_root(
    before: bytes, after: bytes, cuts: list[int]
) -> None:
    assert _all(Elements("a"), before + b" \n".join(ITEMS) + after, cuts) == ITEMS


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (b"<a>1</a>junk<a>2</a>", [b"<a>1</a>", b"junk", b"<a>2</a>"]),
        (b"first <!-- 1 --> one<?pi x?>two<a/>x &lt; y", [b"first  one", b"two", b"<a/>", b"x &lt; y"]),
        (b"<r>1<a>2</a>3<q/>4</r>5", [b"1", b"<a>2</a>", b"3", b"<q/>", b"4", b"5"]),
    ],
)
@given(cuts=CUTS)
def test_text_beside_the_elements_is_a_message_too(text: bytes, messages: list[bytes], cuts: list[int]) -> None:
    assert _all(Elements("a"), text, cuts) == messages


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("made", [lambda: Elements("a"), Lines])
def test_what_is_no_message_yet_is_there_as_it_came(made: Callable[[], Framing], size: int) -> None:
    framing = made()
    text = b"<a>1</a>\n<a b='>'>2"
    for at in range(0, len(text), size):
        list(framing.feed(text[at : at + size]))
    assert framing.pending == b"<a b='>'>2"


def test_another_encoding_is_read_and_namespaces_of_the_root_stay_with_the_elements() -> None:
    text = "<?xml version='1.0' encoding='ISO-8859-1'?><r xmlns:q='urn:q'><q:a>é</q:a></r>".encode("latin-1")
    assert _all(Elements("a"), text, []) == ['<q:a xmlns:q="urn:q">é</q:a>'.encode()]


@pytest.mark.parametrize(
    "text", [b"<a>1</a><a>", b"<a></b>", b"<r><a/></r></r>", b"<?xml version='1.0' encoding='no'?><a/>"]
)
def test_what_can_be_told_apart_no_more_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedInput):
        _all(Elements("a"), text, [])


def test_what_was_handed_on_is_held_no_more() -> None:
    framing = Elements("a")
    for _ in range(20_000):
        assert len(list(framing.feed(b"<a>" + b"x" * 100 + b"</a>\n"))) == 1
    assert len(framing._path) == 1
    assert len(framing._path[0]) == 1


@pytest.mark.parametrize("text", [b"<a>1</a><a>2</a><a></b>", b"<e><a>1</a></e><e>2</e><a></b>"])
def test_what_stands_before_what_is_no_xml_is_handed_on(text: bytes) -> None:
    framing = Elements("a")
    found = framing.feed(b"<a/>" + text)
    assert len([next(found) for _ in range(3)]) == 3
    with pytest.raises(MalformedInput):
        next(found)
    assert framing.pending.endswith(b"<a></b>")
