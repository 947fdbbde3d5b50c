"""Functions of groups and accumulators over drawn streams: at every cut, over restarts and deaths, against lists."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import xmlstream as xs
from tests.harness.dying import Died, dying
from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.runtime.checkpoint.checkpoint import Checkpoint
from xmlstream.session.engines import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession

PUNCT = 'xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct"'

Row = tuple[int | None, int | None, float | None]


def running(key: Any, rows: pa.Table) -> list[dict[str, Any]]:
    """For each row its number and the sum up to it: another order of rows gives other rows."""
    made, total = [], 0.0
    for number, v in enumerate(rows["v"].to_pylist()):
        total += v or 0.0
        made.append({"i": number, "total": total})
    return made


class Running:
    """The same as an accumulator: a row that is added twice, or not at all, changes the rows."""

    state = "vs ARRAY<DOUBLE>, n INT"

    def zero(self) -> Any:
        return [], 0

    def add(self, state: Any, rows: pa.Table) -> Any:
        assert state == {"vs": [], "n": 0}
        return self.merge(state, {"vs": rows["v"].to_pylist(), "n": rows.num_rows})

    def merge(self, one: Any, other: Any) -> Any:
        assert one["n"] == len(one["vs"])
        return {"vs": one["vs"] + other["vs"], "n": one["n"] + other["n"]}

    def finish(self, key: Any, state: Any) -> Any:
        return running(key, pa.table({"v": pa.array(sorted(state["vs"], key=lambda v: (v is None, v)), pa.float64())}))


class World:
    """A stream of rows and of the keys that are closed, as a document; some keys stay open to its end."""

    def __init__(self, random: Random) -> None:
        keys: list[int | None] = [None, *range(random.choice((1, 3, 12)))]
        self.rows: list[Row] = []
        self.items: list[str] = []
        for _ in range(random.choice((1, 10, 60))):
            if random.random() < 0.1 and keys:
                closed = keys.pop(random.randrange(len(keys)))
                self.items.append(f"<punct:t><k>{'null' if closed is None else closed}</k></punct:t>")
                continue
            if not keys:
                break
            row = random.choice(keys), random.choice((None, 1, 2)), random.choice((None, 0.1, 0.2, 1e9, -7.5, 0.3))
            self.rows.append(row)
            pairs = zip("klv", row, strict=True)
            self.items.append(f"<t>{''.join(f'<{n}>{x}</{n}>' for n, x in pairs if x is not None)}</t>")

    def expected(self, by: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The rows that go out, as texts."""
        groups: dict[tuple[Any, ...], list[float | None]] = {}
        for k, l, v in self.rows:  # noqa: E741 - the names of the attributes
            groups.setdefault(tuple({"k": k, "l": l}[name] for name in by), []).append(v)
        found = []
        for key, values in groups.items():
            total = 0.0
            for number, v in enumerate(sorted(values, key=lambda v: (v is None, v))):
                total += v or 0.0
                found.append((*("" if each is None else str(each) for each in key), str(number), repr(total)))
        return sorted(found)


def outcome(directory: Path, by: tuple[str, ...]) -> list[tuple[str, ...]]:
    found = []
    for path in sorted(directory.glob("slice-*.xml")):
        for text in re.findall("<row>(.*?)</row>", path.read_text()):
            values = dict(re.findall(r"<(\w+)>(.*?)</\1>", text))
            found.append((*(values.get(name, "") for name in by), values["i"], repr(float(values["total"]))))
    return sorted(found)


def answers_as_defined(session: Session, directory: Path, seed: int) -> None:
    random = Random(seed)
    world, by = World(random), random.choice((("k",), ("k",), ("k", "l")))
    function: Any = random.choice((running, Running))
    directory.mkdir(exist_ok=True)
    path = directory / "in.xml"
    text = f"<r {PUNCT}>{''.join(world.items)}</r>"
    cut = random.choice(("60", "300", "64m"))

    def run(*, keep_open: bool) -> None:
        given = xs.read(
            session,
            path,
            "k INT, l INT, v DOUBLE",
            rowTag="t",
            schemes="k",
            maxBytesPerSlice=cut,
            maxBytesPerPartition="60",
        )
        schema = f"{', '.join(f'{name} INT' for name in by)}, i INT, total DOUBLE"
        query = given.select("v", *by).group_by(*by).apply(function, schema)
        query.run(directory / "out", checkpoint=directory / "state", keep_open=keep_open)

    for _ in range(random.choice((0, 2))):  # while the document grows
        done = path.stat().st_size if path.exists() else 0
        path.write_text(text[: random.randrange(done, len(text) + 1)], encoding="utf-8")
        run(keep_open=True)
    path.write_text(text, encoding="utf-8")
    for slices in random.choice(((), (0, 1), (0, 0, 2))):  # it dies at a commit, and the next run goes on
        with suppress(Died), dying(slices, (Checkpoint, "commit"), behind=random.random() < 0.5):
            run(keep_open=False)
    run(keep_open=False)
    assert outcome(directory / "out", by) == world.expected(by), (seed, by, cut, function, text)


def test_every_cut_gives_the_same(in_process: InProcessSession, tmp_path: Path) -> None:
    items = ["<t><k>1</k><v>5</v></t>", "<t><k>1</k></t>", "<t><v>3</v></t>", "<t><k>1</k><v>4</v></t>",
             "<punct:t><k>1</k></punct:t>", "<t><v>2</v></t>", "<t><v>2</v></t>"]  # fmt: skip
    found = set()
    for cuts in islice(product((False, True), repeat=len(items) - 1), 0, None, 1 if AT_NIGHT else 5):
        documents = [items[0]]
        for item, cut in zip(items[1:], cuts, strict=True):
            documents = [*documents, item] if cut else [*documents[:-1], documents[-1] + item]
        directory = tmp_path / "".join(str(int(cut)) for cut in cuts)
        directory.mkdir()
        for number, text in enumerate(documents):
            (directory / f"{number}.xml").write_text(f"<r {PUNCT}>{text}</r>", encoding="utf-8")
        given = xs.read(in_process, directory, "k INT, v DOUBLE", rowTag="t", schemes="k", maxFilesPerSlice=1)
        rows = given.group_by("k").apply(Running, "k INT, i INT, total DOUBLE").to_arrow().to_pylist()
        found.add(str(sorted(rows, key=str)))
    assert found == {
        str(sorted([{"k": 1, "i": i, "total": t} for i, t in enumerate((4.0, 9.0, 9.0))]
                   + [{"k": None, "i": i, "total": t} for i, t in enumerate((2.0, 4.0, 7.0))], key=str))
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(SEED, SEED + (300 if AT_NIGHT else 12)))
def test_each_group_is_given_whole_and_once(in_process: InProcessSession, tmp_path: Path, seed: int) -> None:
    answers_as_defined(in_process, tmp_path, seed)


@pytest.mark.rest
def test_each_group_is_given_whole_and_once_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    for seed in range(SEED, SEED + (20 if AT_NIGHT else 2)):
        answers_as_defined(spark, tmp_path / str(seed), seed)
