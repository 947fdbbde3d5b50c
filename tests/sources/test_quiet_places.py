"""A directory in which nothing happens costs one look at its time, and hides nothing that happens."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.sources import places
from xmlstream.sources.places import Place, place_of


def seen(place: Place) -> set[str]:
    return {key for key, _ in place.present()}


def aged(directory: Path) -> None:
    """As if nothing had happened in the directory for an hour."""
    an_hour_ago = time.time() - 3600
    os.utime(directory, (an_hour_ago, an_hour_ago))


@pytest.mark.parametrize("path", ["", "*.xml"])
def test_only_a_directory_that_has_changed_is_listed_again(path: str, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<r/>")
    aged(tmp_path)
    place = place_of(f"{tmp_path / path}", one=False, directories=False)
    assert place.may_differ()
    assert seen(place) == {"a.xml"}
    assert not place.may_differ()
    (tmp_path / "b.xml").write_text("<r/>")
    assert place.may_differ()
    assert seen(place) == {"a.xml", "b.xml"}
    # It has just changed: a coarse clock may hide what happens in the same moment.
    assert place.may_differ()


def test_directories_below_are_always_listed(tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    (tmp_path / "day" / "a.xml").write_text("<r/>")
    for path in ("*", "*/*.xml", "**"):
        place = place_of(f"{tmp_path / path}", one=False, directories=False)
        aged(tmp_path / "day")
        aged(tmp_path)
        assert seen(place) == {"day/a.xml"}
        assert place.may_differ(), path


def test_what_is_written_in_its_place_is_looked_at_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.xml").write_text("<r/>")
    aged(tmp_path)
    place = place_of(str(tmp_path), one=False, directories=False)
    monkeypatch.setattr(places, "FULL_LOOK", 0.0)
    assert seen(place) == {"a.xml"}
    while not place.may_differ():  # a hundred times as long as the listing took, which was longer on a busy machine
        time.sleep(0.1)


@pytest.mark.parametrize("draw", range(100 if AT_NIGHT else 10))
def test_a_place_that_is_asked_first_finds_what_one_that_always_lists_finds(draw: int, tmp_path: Path) -> None:
    chance = random.Random(f"{SEED} {draw}")
    asked = place_of(str(tmp_path), one=False, directories=False)
    known = set[str]()
    names = [f"{letter}.xml" for letter in "abcdef"]
    for _ in range(30):
        match chance.randrange(5):
            case 0 | 1:
                (tmp_path / "draft.tmp").write_text("<r/>")
                (tmp_path / "draft.tmp").rename(tmp_path / chance.choice(names))
            case 2:
                (tmp_path / chance.choice(names)).unlink(missing_ok=True)
            case 3:
                aged(tmp_path)
            case _:
                pass
        if asked.may_differ():
            known = seen(asked)
        assert known == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("draw", range(200 if AT_NIGHT else 20))
def test_names_alone_find_all_that_is_new_and_ask_for_few(
    draw: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents come, are read, are removed and come again; a name is asked for until it is known."""
    monkeypatch.setattr(places, "_MANY", 0)
    drawn, known = random.Random(SEED + draw), set[str]()
    place = place_of(str(tmp_path), one=False, directories=False)
    (tmp_path / "first.xml").write_text("<r/>")
    assert seen(place) == {"first.xml"}
    asked: list[str] = []

    def new(names: Sequence[str]) -> list[str]:
        asked.extend(names)
        return [name for name in names if name not in known]

    for _ in range(30):
        here = {path.name for path in tmp_path.iterdir()}
        for name in drawn.sample([f"{number}.xml" for number in range(9)], 3):
            path = tmp_path / name
            if name in here and name in known and drawn.random() < 0.5:
                path.unlink()  # as a query does that cleans, which then forgets it
                known.discard(name)
            elif name not in here:
                path.write_text("<r/>")
        here = {path.name for path in tmp_path.iterdir()}
        asked.clear()
        monkeypatch.setattr(place, "_next", time.monotonic() + 1000)
        assert {key for key, _ in place.present(new)} == here - known
        assert not place.is_complete
        assert len(set(asked)) == len(asked)
        known.update(drawn.sample(sorted(here), len(here) // 2))
    known.update(here)
    assert not list(place.present(new))
    asked.clear()
    assert not list(place.present(new))
    assert asked == []
