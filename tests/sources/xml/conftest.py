"""Tests of sources have short documents, and try all ways to parse them: by templates, too."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from xmlstream.sources.xml.parser import range_parser


@pytest.fixture(scope="module", autouse=True)
def templates_of_short_texts() -> Iterator[None]:
    """Templates are learnt from texts of any length."""
    with mock.patch.object(range_parser, "LEAST_LEARNT", 0):
        yield
