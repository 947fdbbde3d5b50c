from __future__ import annotations

from xmlstream.sources.xml.splits.all_tags import fragments

ROOT = b"<r xmlns:p='u'>"
ROW = frozenset([b"row"])


def test_pieces_are_items_and_what_stands_between() -> None:
    text = b"<!-- - --><row>1</row><w><p:row/></w><row><row>2</row></row> "
    found = list(fragments(text, (ROOT,), (ROOT,), ROW))
    assert b"".join(text[piece.start : piece.end] for piece in found) == text
    assert [piece.tag for piece in found] == [b"", b"<row>", b"", b"<p:row/>", b"", b"<row>", b""]
    assert [len(piece.open) for piece in found] == [1, 1, 1, 2, 2, 1, 1]


def test_items_of_one_parent_are_told_from_those_of_another_that_looks_the_same() -> None:
    text = b"<w><row>1</row><row>2</row></w><w><row>3</row></w><row>4</row>"
    parents = [piece.parent for piece in fragments(text, (ROOT,), (ROOT,), ROW) if piece.tag]
    assert parents[0] == parents[1]
    assert len(set(parents)) == 3


def test_items_that_stand_beside_each_other_share_what_is_around_them() -> None:
    open_ = (ROOT, *(b"<a%d>" % level for level in range(1_000)))
    found = list(fragments(b"<row>1</row><row><b/></row><row/>" * 100, open_, open_, ROW))
    assert [piece.tag for piece in found] == [b"<row>", b"<row>", b"<row/>"] * 100
    assert len({id(piece.open) for piece in found} | {id(piece.after) for piece in found}) == 1
