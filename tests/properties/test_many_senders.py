"""Many senders in one table: each document, or each directory, is a stream; against the definition over lists."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT, SEED
from tests.oracles.senders import World
from xmlstream.session.engines import InProcessSession, Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CUTS = ("64m", "300", "60")


class Table:
    """The table over a world, read run after run, each to the end of what is there, in slices of some length."""

    def __init__(self, session: Session, world: World, directory: Path, cut: str) -> None:
        self.session, self.world, self.directory, self.cut = session, world, directory, cut
        self.directory.mkdir()

    def query(self, **options: Any) -> Any:
        world = self.world
        order = f"order of at{f', slack {world.slack}' if world.slack else ''}"
        if world.ahead is not None:
            order += f", max_ahead {world.ahead}"
        rule = order if world.roster is None else f"roster of who ({', '.join(world.roster)}), {order}"
        read = xs.read(
            self.session,
            world.place if world.in_directories else f"{world.place}/*.xml",
            "who STRING, at INT, n INT",
            name="t",
            rowTag="r",
            documents="directories" if world.in_directories else "files",
            punctuate=rule,
            ungrammatical="divert",
            schemes="",
            maxBytesPerSlice=self.cut,
            **options,
        )
        return read.group_by("at").agg("count(*) AS n", "sum(n) AS s")

    def run(self) -> None:
        self.query().run(self.directory / "out", checkpoint=self.directory / "state", keep_open=True)

    def answers(self) -> dict[int | None, tuple[int, int]]:
        """Each group that went out, once: its number of rows, and the sum of their numbers."""
        found: dict[int | None, tuple[int, int]] = {}
        for path in sorted((self.directory / "out").glob("slice-*.xml")):
            for row in re.findall("<row>(.*?)</row>", path.read_text()):
                values = dict(re.findall(r"<(\w+)>(-?\d+)</\1>", row))
                at = int(values["at"]) if "at" in values else None
                assert at not in found, f"{at} came twice"
                found[at] = int(values["n"]), int(values["s"])
        return found

    def set_aside(self) -> set[int]:
        letters = [
            line
            for path in self.directory.rglob("*.jsonl")
            if "_dead_letters" in str(path)
            for line in path.read_text().splitlines()
        ]
        return {int(re.search(r"<n>(\d+)</n>", json.loads(line)["raw"])[1]) for line in letters}  # type: ignore[index]


def expected(world: World, *, ended: bool = False) -> dict[int | None, tuple[int, int]]:
    groups: dict[int | None, list[int]] = {}
    for number, at in world.taken.items():
        if ended or (at is not None and at < world.closed):
            groups.setdefault(at, []).append(number)
    return {at: (len(those), sum(those)) for at, those in groups.items()}


def drawn(seed: int, directory: Path, *, ahead: bool) -> World:
    random = Random(seed)
    world = World(
        directory / "in", random, slack=random.choice([0, 0, 2, 5]), ahead=random.choice([None, 20 if ahead else None])
    )
    kind = random.random()
    world.in_directories = kind < 0.3
    if kind > 0.75:
        world.roster, world.ahead = ("a", "b", "c"), None
    world.place.mkdir()
    world.begin("a")
    return world


def answers_as_defined(session: Session, world: World, directory: Path, cuts: Sequence[str]) -> None:
    tables = [Table(session, world, directory / f"cut-{cut}", cut) for cut in cuts]
    for _ in range(6):
        world.step()
        world.read()
        for table in tables:
            table.run()
            assert table.set_aside() == world.late, table.cut
            assert table.answers() == expected(world), table.cut
    world.finish()
    for table in tables:
        table.query().run(table.directory / "out", checkpoint=table.directory / "state")
        assert table.answers() == expected(world, ended=True), table.cut


@pytest.mark.parametrize("seed", range(SEED, SEED + (200 if AT_NIGHT else 6)))
def test_many_senders_answer_as_the_definition_at_every_cut(
    in_process: InProcessSession, tmp_path: Path, seed: int
) -> None:
    answers_as_defined(in_process, drawn(seed, tmp_path, ahead=False), tmp_path, CUTS if seed % 3 else CUTS[:1])


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(SEED, SEED + (8 if AT_NIGHT else 1)))
def test_many_senders_answer_so_on_spark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    answers_as_defined(spark, drawn(seed, tmp_path, ahead=True), tmp_path, CUTS[:1])
