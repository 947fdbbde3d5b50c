from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.running import Running
from xmlstream.operators.explode import Explode
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

POSTS = Schema.parse("id INT, tags ARRAY<STRING>")
TAG = Attribute("tag", Domain("STRING"))
CAME = [(1, ["a", "b", "a"]), (2, []), (3, None), (4, [None])]


def said(*texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, POSTS) for text in texts]


def test_each_element_makes_a_tuple_and_no_element_none(session: Session, tmp_path: Path) -> None:
    done = Running(session, tmp_path, Explode("tags", TAG, replaces=True), POSTS).slice((CAME, []))
    assert sorted(done.tuples, key=str) == [(1, "a"), (1, "a"), (1, "b"), (4, None)]
    assert done.kept == 0


def test_outer_keeps_what_has_no_elements_once_with_null(session: Session, tmp_path: Path) -> None:
    done = Running(session, tmp_path, Explode("tags", TAG, outer=True), POSTS).slice((CAME, []))
    a = ["a", "b", "a"]
    assert sorted(done.tuples, key=str) == [(1, a, "a"), (1, a, "a"), (1, a, "b"), (2, [], None), (3, None, None),
                                            (4, [None], None)]  # fmt: skip


def test_a_slice_without_tuples_says_all_the_same(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, Explode("tags", TAG), POSTS)
    done = running.slice(([], said("<1, *>", "<*, null>")))
    assert (done.tuples, list(map(str, done.punctuations))) == ([], ["<1, *, *>", "<*, null, *>"])


def test_of_an_array_that_goes_no_further_nothing_is_said(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, Explode("tags", TAG, replaces=True), POSTS)
    done = running.slice(([], said("<1, *>", "<2, null>", "<*, *>")))
    assert list(map(str, done.punctuations)) == ["<1, *>", "<*, *>"]


def test_more_elements_than_were_thought_of(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xmlstream.operators.explode.LENGTH", 1)
    running = Running(session, tmp_path, Explode("tags", TAG, replaces=True), POSTS)
    assert len(running.slice(([(1, ["a"] * 500)], [])).tuples) == 500


def test_the_array_is_an_attribute_of_the_input() -> None:
    with pytest.raises(UsageError, match="no attribute words"):
        Explode("words", TAG).schema(POSTS)


def test_nobody_who_does_not_ask_for_the_array_gets_it() -> None:
    explode = Explode("tags", TAG)
    assert explode.required({"tag"}, POSTS) == [{"tags"}]
    assert explode.pruned({"tag", "id"}).schema(POSTS).names == ("id", "tag")
    assert explode.pruned({"tag", "tags"}) == explode
