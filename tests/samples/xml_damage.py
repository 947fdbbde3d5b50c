"""Damages documents in the ways in which they come damaged: bytes, markup, characters, references, names, ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

MARKUP = [
    b"<",
    b">",
    b"&",
    b"]]>",
    b"<!-- a -- b -->",
    b"<!-- a --->",
    b"<!-->",
    b"<!--",
    b"-->",
    b"<![CDATA[",
    b"<![CDATA[x]]>",
    b"<![cdata[x]]>",
    b"<?xml version='1.0'?>",
    b"<?XML x?>",
    b"<?xmlx y?>",
    b"<? p?>",
    b"<?a:b c?>",
    b"<?p",
    b"?>",
    b"<!DOCTYPE r>",
    b"<!ELEMENT a ANY>",
    b"<a",
    b"<a ",
    b"<a/",
    b"</a>",
    b"</row>",
    b"</root>",
    b"<row>",
    b"<row/>",
    b"<row><a>7</a><b>8</b></row>",
    b"<row><a>7</b></row>",
    b"<row a=1/>",
    b"<row id=''id2=''/>",
    b"<row id='<'/>",
    b"<row id='1' id='2'/>",
    b"<row p:id='1' p:id='2'/>",
    b"<row xmlns:s='urn:p' s:id='1' p:id='2'/>",
    b"<row xmlns:p=''/>",
    b"<row xmlns:xmlns='u'/>",
    b"<row xmlns:xml='u'/>",
    b"<none:row/>",
    b"<row none:id='1'/>",
    b"<:row/>",
    b"<row:/>",
    b"<p:row:a/>",
    b"<1row/>",
    b"<-a/>",
    b"<a xml:id='1 2'/>",
    b"<row xml:id='x'/>",
    b"<wrap>",
    b"</wrap>",
    b"</wrap ><wrap up='x'>",
    b"<wrap></row></wrap>",
    b"</row><row>",
    b"</root><root>",
    b"</ row>",
    b"</row a='1'>",
    b"< row/>",
    b"\xef\xbb\xbf",
    b"text",
    b"'",
    b'"',
    b"=",
    b"/>",
]
REFERENCES = [
    b"&none;",
    b"&amp",
    b"&;",
    b"&#;",
    b"&#0;",
    b"&#x;",
    b"&#xFFFE;",
    b"&#xD800;",
    b"&#x110000;",
    b"&#99999999999;",
    b"&#1;",
    b"&#x20;",
    b"&lt;",
    b"&nbsp;",
    b"& ",
    b"&a b;",
    b"&amp;&lt;",
    b"&ampx;",
]
BYTES = [
    b"\x00",
    b"\x01",
    b"\x0b",
    b"\x1f",
    b"\x7f",
    b"\r",
    b"\xff",
    b"\xc3",
    b"\xc3\xa9",
    b"\xe9",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\xf4\x90\x80\x80",
    b"\xef\xbf\xbe",
    b"\xef\xbf\xbf",
    b"\xf0\x9f\x98",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
]
HEADS = [
    b"<?xml version='1.0'?>",
    b"<?xml version='1.1'?>",
    b"<?xml version='2.0'?>",
    b"<?xml version=1.0?>",
    b"<?xml?>",
    b"<?xml encoding='utf-8' version='1.0'?>",
    b"<?xml version='1.0' encoding='us-ascii'?>",
    b"<?xml version='1.0' encoding='utf-8'?>",
    b"<?xml version='1.0' encoding='-8'?>",
    b"<?xml version='1.0' standalone='maybe'?>",
    b"<?xml version='1.0' standalone='yes' encoding='utf-8'?>",
    b"<?xml version='1.0'encoding='utf-8'?>",
    b" <?xml version='1.0'?>",
    b"<?xml version='1.0'?><?xml version='1.0'?>",
    b"<?xml version='1.0'?>\n<?xml version='1.0'?>",
    b"<!-- a --><?xml version='1.0'?>",
    b"<!-- a -- b -->",
    b"<?p?><?p q?>",
    b"<?P:x y?>",
    b"text",
    b"&amp;",
    b"<![CDATA[ ]]>",
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbf\xef\xbb\xbf",
    b"</root>",
    b"<!-- \xff -->",
    b"<?p \xc3?>",
    b"<!-- \x01 -->",
]
TAILS = [
    b"<root/>",
    b"<row><a>1</a></row>",
    b"text",
    b"&#32;",
    b"<![CDATA[]]>",
    b"<!-- -- -->",
    b"<!-- ",
    b"<?p",
    b"<?xml version='1.0'?>",
    b"</root>",
    b"\x00",
    b"\xff",
    b"<!-- \xff -->",
    b"\xef\xbb\xbf",
    b" \n<!-- fine --><?p fine?>",
]

_TAG = re.compile(rb"<(/?)([^\s<>/!?]+)([^<>]*)>")


def damaged(document: bytes, random: Random) -> bytes:
    """The document with one change, seldom several; now and then it stays well-formed."""
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        document = random.choice(_CHANGES)(document, random)
    return document


def _place(document: bytes, random: Random) -> int:
    """Anywhere, more often where markup ends or begins."""
    at = random.randrange(len(document) + 1)
    match random.randrange(3):
        case 0:
            return at
        case 1:
            return document.find(b">", at) + 1 or at
        case _:
            return max(document.find(b"<", at), 0) or at


def _inserted(these: list[bytes]) -> Callable[[bytes, Random], bytes]:
    def change(document: bytes, random: Random) -> bytes:
        at = _place(document, random)
        return document[:at] + random.choice(these) + document[at:]

    return change


def _flipped(document: bytes, random: Random) -> bytes:
    at = random.randrange(max(len(document), 1))
    return document[:at] + bytes([document[at] ^ (1 << random.randrange(8))]) + document[at + 1 :] if document else b""


def _deleted(document: bytes, random: Random) -> bytes:
    at = _place(document, random)
    return document[:at] + document[at + random.choice([1, 1, 2, 5, 20]) :]


def _doubled(document: bytes, random: Random) -> bytes:
    at = _place(document, random)
    return document[: at + random.choice([1, 2, 5, 20, 60])] + document[at:]


def _cut_off(document: bytes, random: Random) -> bytes:
    return document[: _place(document, random)]


def _moved(document: bytes, random: Random) -> bytes:
    at, other, length = _place(document, random), _place(document, random), random.choice([1, 5, 20, 60])
    return document[:at] + document[other : other + length] + document[at + length :]


def _with_another_tag(document: bytes, random: Random) -> bytes:
    """One tag lost, turned, doubled, renamed, or with an attribute that is wrong."""
    tags = list(_TAG.finditer(document))
    if not tags:
        return document
    tag = random.choice(tags)
    slash, name, rest = tag.groups()
    local = name.rpartition(b":")[2]
    changed = random.choice(
        [
            b"",
            tag[0] * 2,
            b"<" + slash + name + rest + b" x='1' x='2'>",
            b"<" + slash + name + rest + b" none:x='1'>",
            b"<" + slash + b"none:" + local + rest + b">",
            b"<" + slash + local + rest + b">",
            b"<" + slash + name + b"x" + rest + b">",
            b"<" + slash + name.upper() + rest + b">",
            b"<" + name + rest + b">",
            b"</" + name + rest + b">",
            b"<" + slash + name + rest + b"/>",
            b"<" + slash + name + rest,
            b"<" + slash + name + rest.replace(b'"', b"", 1) + b">",
            b"<" + slash + name + rest.replace(b'"', b"'", 1) + b">",
            b"<" + slash + name + rest.replace(b'="', b'="<', 1) + b">",
            b"<" + slash + name + rest.replace(b'="', b'="&', 1) + b">",
            b"<" + slash + name + rest.replace(b'="', b'"', 1) + b">",
            b"<" + slash + name + rest.replace(b" ", b"", 1) + b">",
        ]
    )
    return document[: tag.start()] + changed + document[tag.end() :]


def _with_another_head(document: bytes, random: Random) -> bytes:
    return random.choice(HEADS) + document


def _with_another_tail(document: bytes, random: Random) -> bytes:
    return document + random.choice(TAILS)


_CHANGES: list[Callable[[bytes, Random], bytes]] = [
    _inserted(MARKUP),
    _inserted(MARKUP),
    _inserted(REFERENCES),
    _inserted(BYTES),
    _flipped,
    _deleted,
    _doubled,
    _cut_off,
    _moved,
    _with_another_tag,
    _with_another_tag,
    _with_another_head,
    _with_another_tail,
]
