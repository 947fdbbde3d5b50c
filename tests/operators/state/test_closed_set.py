"""What a source has said, in memory and on disk, is one exact set, whatever lies where, and survives a restart."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.lifespans import LIFESPANS, Said, assert_true, is_over, lifespan
from tests.samples.strategies import SMALL, SmallSchema, small_punctuations, small_schemas
from xmlstream.operators.state import closed_set
from xmlstream.operators.state.closed_set import ConstantRuns, SourceClosedSet
from xmlstream.operators.state.expiring_set import Entry
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.punct_ns.errors import StateError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema

WORDS = [small for small in SMALL if small.domain.type in ("STRING", "BOOLEAN")]
SESSION = Schema.parse("sid STRING")


def store_in(directory: Path, slice_: int = 0) -> SegmentStore:
    nobody: Any = None
    store = SegmentStore(nobody, directory)
    store.begin(slice_)
    return store


class Kept:
    """What a source has said, from commit to commit, at every second of which another process takes it up."""

    def __init__(self, schema: Schema, directory: Path) -> None:
        self._schema, self._directory, self._number = schema, directory, 0
        self._changes = list[Entry]()
        self._store = store_in(directory)
        self.heard = SourceClosedSet(schema, (), self._store, {})

    def committed(self, *, whole: bool) -> SourceClosedSet:
        self._changes = [*([] if whole else self._changes), *self.heard.record(whole)]
        logs = self.heard.logs()
        self._store.retain(name for log in logs.values() for name in log.checksums)
        self.heard.settle()
        self._number += 1
        if self._number % 2 == 0:
            self._store = store_in(self._directory, self._number)
            self.heard = SourceClosedSet(self._schema, self._changes, self._store, logs)
        return self.heard


def is_on_disk(heard: SourceClosedSet, t: tuple[Any, ...]) -> bool:
    places = (i for i in heard.on_disk if t[i] is not None)
    return any(heard.closes(i, pa.array([t[i]], pa.string()))[0] for i in places)


def known(heard: SourceClosedSet, t: tuple[Any, ...]) -> bool:
    return heard.set.matches(t) or is_on_disk(heard, t)


def sessions(*sids: str) -> list[Punctuation]:
    return [Punctuation.of(SESSION, sid=f'"{sid}"') for sid in sids]


@st.composite
def said(draw: st.DrawFn) -> tuple[SmallSchema, list[list[Punctuation]]]:
    space = draw(small_schemas(most=2, among=WORDS))
    return space, draw(st.lists(st.lists(small_punctuations(space), max_size=4), max_size=8))


@given(said(), st.integers(0, 2), st.integers(1, 3))
def test_what_lies_on_disk_counts_as_what_lies_in_memory(
    drawn: tuple[SmallSchema, list[list[Punctuation]]], held: int, whole_every: int
) -> None:
    space, slices = drawn
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(closed_set, "HELD", held)
        patch.setattr(closed_set, "TOGETHER", 2)
        oracle, kept = PunctuationSet(space.schema), Kept(space.schema, Path(directory))
        heard = kept.heard
        for number, ps in enumerate(slices):
            before = oracle.copy()
            oracle.add_all(ps)
            new = heard.absorb(ps)
            for t in space.universe:
                assert known(heard, t) == oracle.matches(t), (t, list(map(str, heard.set)))
                assert before.matches(t) or oracle.matches(t) == any(p.matches(t) for p in new)
            assert not any(before.covers(p) for p in new), list(map(str, new))
            assert heard.set.is_all == oracle.is_all
            heard = kept.committed(whole=number % whole_every == 0)


@given(st.data(), st.integers(0, 2), st.integers(1, 3))
def test_what_has_a_lifespan_ends_whether_its_strings_are_on_disk_or_not(
    data: st.DataObject, held: int, whole_every: int
) -> None:
    """Strings that were closed for a time and then for ever, and the other way round, among others of both kinds."""
    space = data.draw(small_schemas(most=2, among=WORDS))
    ps = st.lists(st.tuples(small_punctuations(space), st.none() | LIFESPANS), max_size=4)
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(closed_set, "HELD", held)
        patch.setattr(closed_set, "TOGETHER", 2)
        said, state, kept = Said(space), (0, 0), Kept(space.schema, Path(directory))
        heard = kept.heard
        for number, given_ in enumerate(data.draw(st.lists(ps, max_size=8))):
            state = data.draw(st.sampled_from([each for each in said.later(state) if sum(each) <= sum(state) + 1]))
            heard.end(lambda ends, at=state: is_over(ends, at))  # type: ignore[misc]
            said.end(state)
            before = {t for t in space.universe if known(heard, t)}
            new = heard.absorb([p.lasting(ends) for p, ends in given_])
            said.every += [p.lasting(ends) for p, ends in given_]
            for t in space.universe:
                closed = any(p.matches(t) for p in said.every)
                assert known(heard, t) == closed, (t, list(map(str, heard.set)))
                assert t in before or closed == any(p.matches(t) for p in new)
            assert_true(new, said, state)
            every = [*heard.lasting, *heard.passing]
            for later in said.later(state):
                holding = [p for p in every if not is_over(p.lifespan, later)]
                on_disk = {t for t in space.universe if is_on_disk(heard, t)}
                assert on_disk | {t for t in space.universe if any(p.matches(t) for p in holding)} == said.closed(later)
            heard = kept.committed(whole=number % whole_every == 0)


def test_a_string_ends_with_its_lifespan_unless_it_is_on_disk_which_is_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_set, "HELD", 0)
    store = store_in(tmp_path)
    heard = SourceClosedSet(SESSION, (), store, {})
    hour = lifespan(1, None)
    assert list(map(str, heard.absorb([p.lasting(hour) for p in sessions("u1", "u2")]))) == [f"<{{u1,u2}}> {hour}"]
    assert not heard.on_disk
    assert list(map(str, heard.absorb(sessions("u1", "u3")))) == ["<{u1,u3}>"]
    assert heard.on_disk == (0,)
    # Of a list, what is on disk holds for ever: the rest alone is new.
    both = Punctuation.parse("<{u3,u4}>", SESSION)
    assert list(map(str, heard.absorb([both.lasting(hour)]))) == [f"<u4> {hour}"]
    again = SourceClosedSet(SESSION, heard.record(whole=True), store, heard.logs())
    for each in (heard, again):
        assert [known(each, (sid,)) for sid in ("u1", "u2", "u3", "u4")] == [True] * 4
        each.end(lambda ends: is_over(ends, (1, 0)))
        assert [known(each, (sid,)) for sid in ("u1", "u2", "u3", "u4")] == [True, False, True, False]
        assert not each.passes
        assert each.extent == 2


def test_runs_of_a_size_become_one_beside_the_slices(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    runs = ConstantRuns(store)
    for number in range(0, 6400, 100):
        runs.add([f"u{n * 7919 % 6400:04}" for n in range(number, number + 100)])
        record = runs.record()
        runs.settle()
        store.retain(record.checksums)
    record = runs.record()
    assert record.rows == 6400
    assert len(record.segments) < 2 * closed_set.TOGETHER
    asked = pa.array(["u0000", "u6399", "u6400", "", "u3000"])
    assert runs.contained(asked).tolist() == [True, True, False, False, True]
    again = ConstantRuns(store_in(tmp_path), record)
    assert again.rows == 6400
    assert again.contained(asked).tolist() == [True, True, False, False, True]


def test_a_run_on_disk_is_what_the_format_of_state_says(tmp_path: Path) -> None:
    """Who changes what a run holds changes `CHECKPOINT_FORMAT`: older ones are refused."""
    runs = ConstantRuns(store_in(tmp_path))
    runs.add(["u2", "u1"])
    (segment,) = runs.record().segments
    with pa.ipc.open_file(str(tmp_path / segment.name)) as file:
        assert (CHECKPOINT_FORMAT, file.read_all().to_pydict()) == (4, {"value": ["u1", "u2"]})


def test_a_run_that_is_not_as_it_was_written_is_damage(tmp_path: Path) -> None:
    runs = ConstantRuns(store_in(tmp_path))
    runs.add(["u1", "u2"])
    (segment,) = runs.record().segments
    path = tmp_path / segment.name
    text = bytearray(path.read_bytes())
    text[len(text) // 2] ^= 1
    path.write_bytes(text)
    with pytest.raises(StateError, match="the checkpoint is damaged"):
        store_in(tmp_path).require_sound({segment.name: segment.checksum})


def test_a_commit_of_more_strings_is_as_long_as_one_of_the_first(tmp_path: Path) -> None:
    heard = SourceClosedSet(SESSION, (), store_in(tmp_path), {})
    lengths, held = [], []
    for number in range(0, 40_000, 1000):
        heard.absorb(sessions(*(f"u{n * 7919 % 40_000:05}" for n in range(number, number + 1000))))
        whole = number % 10_000 == 0
        lengths.append(sum(map(len, heard.record(whole))) + len(str(heard.logs())))
        held.append(heard.set.extent)
        heard.settle()
    assert heard.extent == 40_000
    assert max(held) <= closed_set.HELD
    assert max(lengths) < 50_000
    # Those that were said before say nothing new, of a list only the others do.
    assert heard.absorb(sessions("u00007")) == []
    both = heard.absorb([Punctuation.of(SESSION, sid="{u00008,new}")])
    assert list(map(str, both)) == ["<new>"]
