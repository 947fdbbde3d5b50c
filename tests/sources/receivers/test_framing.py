from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from encodings.aliases import aliases
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


def codecs_known() -> set[str]:
    return set(aliases.values())


def _in(codec: str, text: str) -> bytes:
    try:
        return text.encode(codec)
    except (LookupError, UnicodeError):
        return text.encode()


CHUNK = 1 << 10

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


@pytest.mark.parametrize("codec", sorted({*codecs_known(), "hex", "rot13", "zlib", "undefined", "no"}))
def test_each_encoding_that_python_knows_is_read_or_refused_in_words(codec: str) -> None:
    text = f"<?xml version='1.0' encoding='{codec}'?><a>1</a>"
    for sent in (text.encode(), _in(codec, text)):
        for size in (1, 3, 1000):
            with suppress(MalformedInput):
                assert _all(Elements("a"), sent, list(range(0, len(sent), size))) == [b"<a>1</a>"]


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "shift_jis", "euc_kr", "cp1252"])
@given(cuts=CUTS)
def test_a_stream_in_another_encoding_is_the_same_however_it_comes(codec: str, cuts: list[int]) -> None:
    declared = "" if codec == "utf-8-sig" else f"<?xml version='1.0' encoding='{codec}'?>"
    assert _all(Elements("a"), f"{declared}<a>1</a>\n<a>2</a>".encode(codec), cuts) == [b"<a>1</a>", b"<a>2</a>"]


def test_what_stands_before_bytes_of_no_encoding_is_handed_on() -> None:
    framing = Elements("a")
    found = framing.feed(b"<a>1</a><a>2</a><a>\xff</a>")
    assert [next(found), next(found)] == [b"<a>1</a>", b"<a>2</a>"]
    with pytest.raises(MalformedInput, match="not well-formed"):
        next(found)


SHAPES: dict[str, Callable[[int], bytes]] = {
    "a line": lambda n: b"x" * n,
    "a text": lambda n: b"<a>" + b"x" * n,
    "an attribute": lambda n: b"<a b='" + b"x" * n,
    "a comment": lambda n: b"<a><!--" + b"x" * n,
    "a processing instruction": lambda n: b"<a><?x " + b"x" * n,
    "a section": lambda n: b"<a><![CDATA[" + b"x" * n,
    "a tag": lambda n: b"<a " + b"\n" * n,
    "no end": lambda n: b"<a>" + b"</q " * (n // 4),
    "children": lambda n: b"<a>" + b"<b/>" * (n // 4),
    "short lines": lambda n: b"<a/>\n" * (n // 5),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("made", [lambda: Elements("a"), Lines])
def test_the_work_grows_as_the_stream_does(made: Callable[[], Framing], shape: str) -> None:
    def seconds(size: int) -> float:
        framing, text, begun = made(), SHAPES[shape](size), time.process_time()
        for at in range(0, size, CHUNK):
            try:
                list(framing.feed(text[at : at + CHUNK]))
            except MalformedInput:
                break
        return time.process_time() - begun

    size = 1 << (16 if shape in ("children", "short lines") else 19)
    small = min(seconds(size) for _ in range(3))
    assert min(seconds(8 * size) for _ in range(2)) < 24 * small + 0.02


@pytest.mark.parametrize("text", [b"<a>1</a><a>2</a><a></b>", b"<e><a>1</a></e><e>2</e><a></b>"])
def test_what_stands_before_what_is_no_xml_is_handed_on(text: bytes) -> None:
    framing = Elements("a")
    found = framing.feed(b"<a/>" + text)
    assert len([next(found) for _ in range(3)]) == 3
    with pytest.raises(MalformedInput):
        next(found)
    assert framing.pending.endswith(b"<a></b>")
