"""Bloom filters: what is held is never missed, few others are taken for it, and files of other processes stay true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from operators.storage.constant_runs import bloom_filter, candidates, hashes

WORDS = st.lists(st.text(max_size=12), min_size=1, max_size=60)


def strings(words: list[str]) -> pa.Array[Any]:
    return pa.array(words, pa.string())


@given(WORDS, WORDS)
def test_no_string_that_is_held_is_missed(held: list[str], others: list[str]) -> None:
    cells = bloom_filter(hashes(strings(held)))
    assert len(cells) == len(held)
    asked = [*others, *held]
    found = {asked[at] for at in candidates(cells, hashes(strings(asked)))}
    assert found >= set(held)


@given(WORDS, st.data())
def test_a_string_has_its_hash_wherever_it_stands(words: list[str], data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(words)))
    assert hashes(strings(words)[begin:]).tolist() == [int(hashes(strings([word]))[0]) for word in words[begin:]]


def test_hashes_are_those_that_files_were_written_with() -> None:
    assert list(map(hex, hashes(strings(["", "a", "u1", "grün"])).tolist())) == [
        "0x0",
        "0xd80391ffb30d1390",
        "0x9e04b38a8ee07172",
        "0x7654abc4be474c73",
    ]


def test_few_others_are_taken_for_held_and_of_no_kind_more() -> None:
    kinds = (str, "person{:07}".format, "{0}{0:b}".format, "\0{}".format)
    for kind in kinds:
        words = [kind(n) for n in range(100_000)]
        hashed = hashes(strings(words))
        assert len(np.unique(hashed)) == len(words)
        assert len(candidates(bloom_filter(hashed[:20_000]), hashed[20_000:])) < 0.004 * 80_000
