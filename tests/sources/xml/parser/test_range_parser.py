"""The parser against XPath over whole documents, however it is cut into ranges and windows."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.xml_reading import END, any_cuts, read_cut, readable, source
from tests.oracles.xml_oracle import Item, items, well_formed
from tests.samples.xml_documents import PATHS, ROW, Writer, encoded

SEEDS = st.integers(0, 1 << 40)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents") / "document.xml"


def agrees(path: Path, document: bytes, random: Random) -> None:
    path.write_bytes(document)
    found = read_cut(path, any_cuts(random))
    root = well_formed(document)
    assert root is not None
    expected = items(root, ROW, PATHS)
    is_mixed = Item("stray") in expected
    assert (found.error is not None) == is_mixed
    assert found.items == readable(expected, source(path)) + [END] * (not is_mixed)
    assert found.dropped == sum(item.kind == "dropped" for item in expected)


@given(SEEDS)
def test_any_document_reads_as_xpath_does(path: Path, seed: int) -> None:
    random = Random(seed)
    document = Writer(random).document(random.choice([0, 1, 5, 30, 60]))
    agrees(path, encoded(document, random), random)
