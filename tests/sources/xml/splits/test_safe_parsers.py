"""Nothing that a document names is fetched, and whether its ids are valid is nobody's question."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree

from xmlstream.sources.xml.splits.tags import safe_parser, safe_pull_parser

IDS = b"<r><a xml:id='x'/><a xml:id='x'/><a xml:id='1 2'/></r>"


def _whole(text: bytes) -> bytes:
    return etree.tostring(etree.fromstring(text, safe_parser()))


def _pulled(text: bytes) -> bytes:
    parser = safe_pull_parser()
    for at in range(len(text)):
        parser.feed(text[at : at + 1])
    return etree.tostring(parser.close())


@pytest.mark.parametrize("read", [_whole, _pulled])
@pytest.mark.parametrize("prolog", [b"", b"<!DOCTYPE r [<!ATTLIST a id ID #IMPLIED>]>"])
def test_ids_need_not_be_valid(read: object, prolog: bytes) -> None:
    assert callable(read)
    assert read(prolog + IDS) == read(IDS)
    assert etree.fromstring(read(prolog + IDS.replace(b"xml:id", b"id"))).tag == "r"


@pytest.mark.parametrize("name", ["_whole", "_pulled"])
@pytest.mark.parametrize("declared", ["r SYSTEM '{0}'", "r PUBLIC 'p' '{0}'", "r [<!ENTITY % e SYSTEM '{0}'> %e;]"])
def test_no_file_that_a_document_names_is_opened(tmp_path: Path, name: str, declared: str) -> None:
    # Whoever opens a pipe for which nobody writes waits.
    os.mkfifo(tmp_path / "named.dtd")
    text = f"<!DOCTYPE {declared.format(tmp_path / 'named.dtd')}><r/>"
    program = f"from tests.sources.xml.splits.test_safe_parsers import {name} as read; read({text.encode()!r})"
    subprocess.run([sys.executable, "-c", program], timeout=30, check=True)
