from __future__ import annotations

import pytest

from xmlstream.sources.xml.splits.prolog import FlawError, read_prolog


@pytest.mark.parametrize(
    ("start", "root", "codec"),
    [
        (b"<r>", b"<r>", "utf-8"),
        (b"\xef\xbb\xbf<?xml version='1.0' encoding='ISO-8859-1'?><r>", b"<r>", "utf-8"),
        (b"<?xml version='1.0' encoding='windows-1252'?>\n<r a='\x80'>", "<r a='€'>".encode(), "cp1252"),
        ("\ufeff<r a='€'>".encode("utf-16-le"), "<r a='€'>".encode(), "utf-16-le"),
        ("<?xml version='1.0' encoding='UTF-16'?><r>".encode("utf-16-be"), b"<r>", "utf-16-be"),
        (b"<!-- <no> --><?p <no> ?>\n<p:r xmlns:p='u'\n a='>'>text", b"<p:r xmlns:p='u'  a='>'>", "utf-8"),
    ],
)
def test_the_root_is_found_in_any_encoding(start: bytes, root: bytes, codec: str) -> None:
    head = read_prolog(start, complete=False)
    assert head is not None
    assert (head.root, head.charset.codec, head.empty) == (root, codec, False)


def test_content_begins_behind_the_roots_start_tag() -> None:
    head = read_prolog(b"\xef\xbb\xbf<r><a/></r>", complete=True)
    assert head is not None
    assert head.content == 6


def test_an_empty_root_has_no_content() -> None:
    head = read_prolog(b"<r a='1'/>\n", complete=True)
    assert head is not None
    assert (head.root, head.empty) == (b"<r a='1'>", True)


@pytest.mark.parametrize(
    "start", [b"", b"<?xml versi", b"<?xml version='1.0'?>", b"<!-- ", b"<!", b"<r a='1", b"<r a='>' "]
)
def test_what_has_not_come_yet_is_waited_for_and_missing_in_the_end(start: bytes) -> None:
    assert read_prolog(start, complete=False) is None
    with pytest.raises(FlawError):
        read_prolog(start, complete=True)


DOCTYPES = [
    b"<!DOCTYPE r>",
    b"<!DOCTYPE\nr SYSTEM 'http://127.0.0.1:9/r.dtd'  >",
    b"""<!DOCTYPE r PUBLIC "-//x//y" "r.dtd?a>b" [ ]>""",
    b"<!DOCTYPE r [<!ENTITY e SYSTEM 'file:///etc/passwd'> %p; <!ENTITY % p '> ]>'>]>",
    b"<!DOCTYPE r [<!-- ]> ' --> <?p ]> \" ?>\n<!ELEMENT r ANY><!ATTLIST r a CDATA '1'>\n]\n>",
    b"<!DOCTYPE r [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;'>]>",
]


@pytest.mark.parametrize("doctype", DOCTYPES)
def test_a_document_type_declaration_is_skipped_or_refused(doctype: bytes) -> None:
    start = b"<?xml version='1.0'?>\n<!-- a -->" + doctype + b"\n<r><a/></r>"
    head = read_prolog(start, complete=True)
    assert head is not None
    assert (head.root, start[head.content :]) == (b"<r>", b"<a/></r>")
    for cut in range(len(start) - len(b"<r><a/></r>")):
        assert read_prolog(start[:cut], complete=False) is None
    with pytest.raises(FlawError, match="doctype 'refuse'") as refused:
        read_prolog(start, complete=True, doctype="refuse")
    assert refused.value.offset == start.index(b"<!DOCTYPE")


def test_a_long_document_type_declaration_is_read_in_linear_time() -> None:
    many = b"<!DOCTYPE r [" + b"<!-- a --><!ELEMENT a (b)>\n" * 30_000
    assert read_prolog(many, complete=False) is None
    with pytest.raises(FlawError, match="the document type declaration does not end"):
        read_prolog(many, complete=True)


def test_a_start_tag_that_is_too_long_names_the_limit() -> None:
    with pytest.raises(FlawError, match="the root's start tag does not end within 1 MiB, which is the limit"):
        read_prolog(b"<r a='" + b"x" * (1 << 20), complete=False)


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (b"<!DOCTYPE r><!DOCTYPE r><r/>", "invalid element name"),
        (b"<!DOCTYPE r [<!ELEMENT>]><r/>", "Space required after"),
        (b"PK\x03\x04abc", "unpack"),
        (b"\xef\xbb\xbf\xef\xbb\xbf<r/>", "two byte order marks"),
        (b"text", "begin with an element"),
        (b"<?xml version='1.0' encoding='klingon'?><r>", "klingon"),
        (b"<?xml version='1.0' encoding='rot13'?><r>", "rot13"),
        (b"<?xml encoding='utf-8'?><r>", "declaration"),
        (b"<r p:a='1'>", "prefix"),
        (b"<r a='1' a='2'>", "redefined"),
        (b"<r <a>", "begin with an element"),
        (b"</r>", "begin with an element"),
        (b"<!-- -- --><r>", "omment"),
    ],
)
def test_a_document_that_cannot_begin_so_is_refused(start: bytes, reason: str) -> None:
    with pytest.raises(FlawError, match=reason):
        read_prolog(start, complete=False)
