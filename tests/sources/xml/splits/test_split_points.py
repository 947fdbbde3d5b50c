from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.sources.xml.splits.split_points import SplitPoint, fragments, last_split_point

ROOT = b"<r xmlns:p='u'>"
ROW = frozenset([b"row"])
START = SplitPoint(100, (ROOT,))


@pytest.mark.parametrize(
    ("text", "offset", "open_"),
    [
        (b"<row>1</row>", 12, (ROOT,)),
        (b"<row>1</row>\n<row>2</ro", 12, (ROOT,)),
        (b"<row>1</row><p:row><a>*</a></p:row>\n", 35, (ROOT,)),
        (b"<row>1</row><row><row>2</row>", 12, (ROOT,)),
        (b"<row>1</row></r>\n<row>2</row>", 16, ()),
        (b"<row/><row a='>'/>", 18, (ROOT,)),
        (b"<row>1</row><!-- <row>2</row>", 12, (ROOT,)),
        (b"<row><!-- </row> --><row>2</row>", 0, (ROOT,)),
        (b"<row><![CDATA[</row>]]></row><row>", 29, (ROOT,)),
        (b"<row>1</row><?p </row> ?><x", 12, (ROOT,)),
        (b"<w a='1'><row>1</row>", 21, (ROOT, b"<w a='1'>")),
        (b"<w\na='1'><row>1</row></w><v>", 28, (ROOT, b"<v>")),
        (b"a > b <row>1</row> </row", 18, (ROOT,)),
        (b"<rowx><row>1</row></rowx><row>2", 25, (ROOT,)),
        (b"text", 0, (ROOT,)),
        (b"", 0, (ROOT,)),
    ],
)
def test_the_last_cut_is_behind_whole_items_and_knows_what_is_open(
    text: bytes, offset: int, open_: tuple[bytes, ...]
) -> None:
    found = last_split_point(text, START, ROW)
    assert (found.offset - START.offset, found.open) == (offset, tuple(tag.replace(b"\n", b" ") for tag in open_))


def test_a_root_that_is_an_item_is_not_cut() -> None:
    start = SplitPoint(5, (b"<row>",))
    assert last_split_point(b"<a>1</a><b/>", start, ROW) == start
    assert last_split_point(b"<a>1</a><row>2</row>", start, ROW) == start
    assert last_split_point(b"<a>1</a></row>", start, ROW) == SplitPoint(19, ())


def test_pieces_are_items_and_what_stands_between() -> None:
    text = b"<!-- - --><row>1</row><w><p:row/></w><row><row>2</row></row> "
    found = list(fragments(text, (ROOT,), (ROOT,), frozenset({b"row"})))
    assert b"".join(text[piece.start : piece.end] for piece in found) == text
    assert [piece.tag for piece in found] == [b"", b"<row>", b"", b"<p:row/>", b"", b"<row>", b""]
    assert [len(piece.open) for piece in found] == [1, 1, 1, 2, 2, 1, 1]


def test_a_tag_does_not_end_within_the_value_of_an_attribute() -> None:
    assert last_split_point(b"<w>1</w><v a='x>", START, ROW) == SplitPoint(START.offset + 8, (ROOT,))
    assert last_split_point(b"<w>1</w><v a='x>'><u b=\">", START, ROW) == SplitPoint(
        START.offset + 18, (ROOT, b"<v a='x>'>")
    )


def test_no_cut_lies_inside_of_what_belongs_together() -> None:
    unit = frozenset([b"row", b"unit"])
    assert last_split_point(b"<unit><row>1</row></unit><unit><row>2</row>", START, unit).offset == START.offset + 25
    assert last_split_point(b"<unit><row>1</row>", START, unit) == START


def test_items_of_one_parent_are_told_from_those_of_another_that_looks_the_same() -> None:
    text = b"<w><row>1</row><row>2</row></w><w><row>3</row></w><row>4</row>"
    parents = [piece.parent for piece in fragments(text, (ROOT,), (ROOT,), frozenset({b"row"})) if piece.tag]
    assert parents[0] == parents[1]
    assert len(set(parents)) == 3


def test_what_is_open_is_found_in_one_go_however_deep_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    flatnonzero = np.flatnonzero

    def counted(values: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        nonlocal calls
        calls += 1
        return flatnonzero(values)

    monkeypatch.setattr(np, "flatnonzero", counted)
    for depth in (1, 50, 100_000):
        calls = 0
        text = b"".join(b"<a%d>" % level for level in range(depth)) + b"<row/>"
        found = last_split_point(text, START, ROW)
        assert found == SplitPoint(START.offset + len(text), (ROOT, *(b"<a%d>" % level for level in range(depth))))
        assert calls <= 4


@given(st.lists(st.sampled_from([b"<a>", b"<b>", b"</a>", b"<e/>", b"t"]), max_size=40))
def test_what_is_open_is_what_a_stack_holds(parts: list[bytes]) -> None:
    stack = [ROOT, b"<w>"]
    for number, part in enumerate(parts):
        if part == b"</a>":
            stack.pop()
        elif part in (b"<a>", b"<b>"):
            stack.append(part)
        if not stack:
            parts = parts[: number + 1]
            break
    text = b"".join(parts)
    found = last_split_point(text, SplitPoint(0, (ROOT, b"<w>")), ROW)
    assert found.open == tuple(stack)


def test_items_that_stand_beside_each_other_share_what_is_around_them() -> None:
    open_ = (ROOT, *(b"<a%d>" % level for level in range(1_000)))
    found = list(fragments(b"<row>1</row><row><b/></row><row/>" * 100, open_, open_, ROW))
    assert [piece.tag for piece in found] == [b"<row>", b"<row>", b"<row/>"] * 100
    assert len({id(piece.open) for piece in found} | {id(piece.after) for piece in found}) == 1
