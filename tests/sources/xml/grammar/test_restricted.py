"""The check of the grammar sees every attribute that a punctuation restricts, whatever columns the query reads."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xmlstream.operators.state.expiring_set import Entry
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT, LogRecord
from xmlstream.plan.nodes import Scan
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.slices import POSITION
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.loop.source_input import SourceInput
from xmlstream.sources.xml.grammar.grammar_filter import RESTRICTED_FILE
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.micro_batches import ReadTask
from xmlstream.sources.xml.slices.sources_reader import shared_scans
from xmlstream.sources.xml.slices.stage_writer import stage
from xmlstream.sources.xml.splits import split_points
from xmlstream.sources.xml.splits import split_scan as scan_module
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner

SCHEMA = "a INT, b INT, c STRING"
NAMES = ("a", "b", "c")
PATTERNS = {"a": ["0", "1", "[0,1]", "(,1]", "null"], "b": ["1", "{0,2}", "(,1]", "null"], "c": ["x", "[w,y]", "null"]}
VALUES = {"a": ["0", "1", "2", "3", None], "b": ["0", "1", "2", "3", None], "c": ["x", "z", None]}


class Made:
    """A document of tuples and punctuations, and what its ungrammatical tuples are by their definition."""

    def __init__(self, random: Random, tag: str = "t", other: str | None = None) -> None:
        self.lines: list[str] = []
        self.late: list[str] = []
        schema = SourceOptions.parse({"path": "x", "rowTag": "t", "schema": SCHEMA}).schema
        said: list[Punctuation] = []
        often, odd = random.choice([0.02, 0.1]), random.choice([0.0, 0.1])
        for number in range(random.choice([5, 60])):
            if random.random() < often:
                texts = {n: random.choice(PATTERNS[n]) for n in random.sample(NAMES, random.choice([1, 1, 2, 3]))}
                said.append(Punctuation.parse("<" + ", ".join(texts.get(n, "*") for n in NAMES) + ">", schema))
                inner = "".join(f"<{name}>{text}</{name}>" for name, text in texts.items())
                self.lines.append(f"<p:{tag}>{inner}</p:{tag}>")
                continue
            row = {name: random.choice(VALUES[name]) for name in NAMES}
            leaves = "".join(f"<{name}>{text}</{name}>" for name, text in row.items() if text is not None)
            extra = "<!-- odd -->" if random.random() < odd else ""
            self.lines.append(f'<{tag} n="{number}">{extra}{leaves}</{tag}>')
            values = [None if v is None else v if n == "c" else int(v) for n, v in row.items()]
            if any(p.matches(values) for p in said):
                self.late.append(self.lines[-1])
            if other is not None and random.random() < 0.3:
                self.lines.append(f"<{other}><a>{number}</a></{other}>")


class Running:
    """Sources as a query runs them, without Spark: each slice staged, then taken in; made anew now and then."""

    def __init__(self, directory: Path, sources: list[SourceOptions]) -> None:
        self.directory = directory
        named = [
            Reading.of(
                each,
                name=each.row_tag,
                stage=str(directory / "stage"),
                restricted=str(directory / each.row_tag / RESTRICTED_FILE),
            )
            for each in sources
        ]
        (self.reader,) = shared_scans(named)
        self.sources = {each.name: each for each in named}
        self.committed: dict[str, list[Entry]] = {name: [] for name in self.sources}
        self.positions: dict[str, list[int]] = {name: [] for name in self.sources}
        self.begin()

    def begin(self) -> None:
        self.states: dict[str, OperatorState] = {}
        for name, each in self.sources.items():
            declared = Scan(name, each).state_schema()
            kept = {log: LogRecord() for log in declared.runs("added").values()}
            record = OperatorRecord(CHECKPOINT_FORMAT, {"added": self.committed[name]}, kept)
            self.states[name] = OperatorState(None, (each.schema,), declared, record)  # type: ignore[arg-type]
        self.inputs = {
            name: SourceInput(
                None,  # type: ignore[arg-type]
                Scan(name, each),
                self.states[name],
                self.directory / "letters",
                name,
                Path(each.restricted or "").parent,
            )
            for name, each in self.sources.items()
        }

    def run(self, random: Random) -> None:
        planner = Planner(self.reader, Documents(self.reader, log=False))
        at, number = Offset(), 0
        while True:
            after, ranges = planner.advance(at, planner.sizes(at), random.choice([1, 400, 1 << 20]))
            if after == at:
                return
            tasks = ReadTask.of(ranges, self.reader.max_bytes_per_partition)
            staged = [range_ for task in tasks for range_ in stage(task.ranges, self.reader)]
            for name, one in self.inputs.items():
                paths: list[str] = []
                with patch.object(SourceInput, "_read", lambda _, read, _tuples, paths=paths: paths.extend(read)):
                    one.slice(number, [range_ for range_ in staged if range_.source == name])
                for path in paths:
                    self.positions[name] += pq.read_table(path)[POSITION].to_numpy().tolist()
                self.committed[name] += self.states[name].record(False).sets["added"]
            at, number = after, number + 1
            if random.random() < 0.3:
                self.begin()

    def letters(self, name: str) -> list[dict[str, Any]]:
        files = sorted((self.directory / "letters").glob(f"{name}-*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def source(path: Path, tag: str = "t", **options: str) -> SourceOptions:
    given = {"path": str(path), "rowTag": tag, "schema": SCHEMA, "ungrammatical": "divert", "follow": "false"}
    return SourceOptions.parse({**given, **options})


@given(st.integers(0, 1 << 40), st.sets(st.sampled_from(NAMES), min_size=1))
@example(7, {"a"})
def test_the_same_tuples_are_ungrammatical_whatever_columns_are_read(
    tmp_path_factory: pytest.TempPathFactory, seed: int, columns: set[str]
) -> None:
    random = Random(seed)
    made = Made(random, other="o" if seed % 3 == 0 else None)
    directory = tmp_path_factory.mktemp("running")
    path = directory / "document.xml"
    path.write_text(f'<s xmlns:p="{PUNCT_NS}">\n' + "\n".join(made.lines) + "\n</s>")
    size = random.choice(["300", "1500", "16m"])
    sources = [source(path, columns=",".join(columns), maxBytesPerPartition=size)]
    if seed % 3 == 0:
        sources.insert(seed % 2, source(path, "o", schema="a INT", maxBytesPerPartition=size))
    with (
        patch.object(split_points, "CHUNK_BYTES", random.choice([200, 1000, 1 << 20])),
        patch.object(scan_module, "SMALLEST_WINDOW", 1),
    ):
        running = Running(directory, sources)
        running.run(random)
    letters = running.letters("t")
    assert [letter["raw"] for letter in letters] == made.late
    lines = path.read_text().splitlines()
    assert [lines[letter["line"] - 1] for letter in letters] == made.late
    assert {(letter["column"], letter["document"], letter["within"]) for letter in letters} <= {
        (1, str(path), f'<s xmlns:p="{PUNCT_NS}">')
    }
    tuples = sum(line.startswith("<t ") for line in made.lines)
    assert len(running.positions["t"]) == len(set(running.positions["t"])) == tuples - len(made.late)
    assert not set(running.positions["t"]) & {letter["_position"] for letter in letters}
