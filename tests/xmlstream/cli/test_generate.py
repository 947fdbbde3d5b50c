"""`xmlstream generate auctions`: every option reaches the house, and the tables that it declares are what it wrote."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from xmlstream.cli.commands import main
from xmlstream.plan.nodes import Scan
from xmlstream.sources.generators import auction_documents
from xmlstream.sources.generators.auction_house import Form, House, documents
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sql.script import read

DEFAULT: dict[str, Any] = {"seed": 1}


def generate(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["xmlstream", "generate", "auctions", *map(str, arguments)])
    with pytest.raises(SystemExit) as raised:
        main()
    return int(str(raised.value.code))


OPTIONS: list[tuple[str, Any, str]] = [
    ("--seed", 2, "seed"),
    ("--xml", "nested", "form"),
    ("--schemes", "bid.auction; dateTime", "schemes"),
    ("--bid-streams", 2, "bid_streams"),
    ("--out-of-order", 2.5, "out_of_order"),
    ("--pace", 40, "pace"),
    ("--heartbeat", 3.5, "heartbeat"),
    ("--in-flight", 7, "in_flight"),
    ("--active", 5, "active"),
]


@pytest.mark.parametrize(("option", "value", "name"), OPTIONS, ids=str)
def test_each_option_is_that_parameter_of_the_house(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, value: object, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    assert generate(monkeypatch, "--out", "a", "--events", 900, "--seed", 1, option, value) == 0
    made = [path.read_bytes() for path in sorted(Path("a").iterdir())]
    auction_documents.write_auctions("a", 900, House(**{**DEFAULT, name: value}))
    assert [path.read_bytes() for path in sorted(Path("a").iterdir())] == made
    auction_documents.write_auctions("b", 900, House(**DEFAULT))
    assert [path.read_bytes() for path in sorted(Path("b").glob("*.xml"))] != made[:-1]


@pytest.mark.parametrize("form", get_args(Form))
def test_the_tables_are_the_documents_with_what_they_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: Form
) -> None:
    out = tmp_path / "it's"
    some = ["--xml", form, "--events", 500, "--bid-streams", 2, "--schemes", "person.id, bid.auction, bid.dateTime"]
    assert generate(monkeypatch, "--out", out, *some) == 0
    names = ["person", "auction", "bid1", "bid2"]
    assert capsys.readouterr().out.splitlines() == [
        str(out / name) for name in ("person.xml", "auction.xml", "bid1.xml", "bid2.xml", "tables.sql")
    ]
    text = (out / "tables.sql").read_text()
    union = " UNION ALL ".join(f"SELECT dateTime FROM {name}" for name in names)
    script = read(f"{text};{union}", {}, "tables.sql")
    promised = {"person": "id", "auction": "", "bid": "auction; dateTime prefix"}
    for name, stream in documents(2):
        scan = script.tables[name].operator
        assert isinstance(scan, Scan)
        direct = stream.options(form, out / f"{name}.xml", promised[stream.name])
        expected = SourceOptions.parse(direct, stream.schema)
        assert (scan.options.path, scan.options.paths, scan.options.row_tag) == (
            str(out / f"{name}.xml"),
            expected.paths,
            stream.name,
        )
        assert (scan.options.schema, scan.options.schemes) == (expected.schema, expected.schemes)
        assert check_grammar(scan.options).violation is None


def test_a_slice_is_of_about_the_same_time_in_every_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auction_documents, "KILOBYTES_A_SLICE", 2000)
    *made, tables = auction_documents.write_auctions(tmp_path, 20_000, House(seed=3, bid_streams=2))
    script = read(f"{tables.read_text()};SELECT id FROM person", {}, "tables.sql")
    slices = []
    for path in made:
        scan = script.tables[path.stem].operator
        assert isinstance(scan, Scan)
        assert scan.options.max_bytes_per_slice is not None
        slices.append(path.stat().st_size / scan.options.max_bytes_per_slice)
    assert slices == pytest.approx([slices[0]] * 4, rel=0.02)


def test_the_tables_of_a_live_auction_are_there_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[bool] = []
    monkeypatch.setattr(auction_documents, "write_live", lambda *_: there.append((tmp_path / "tables.sql").exists()))
    auction_documents.write_auctions(tmp_path, 10, rate=10)
    assert there == [True]
