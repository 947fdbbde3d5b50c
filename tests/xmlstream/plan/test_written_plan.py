from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from tests.harness.pages import ROOT
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.count import ByCount
from xmlstream.operators.punctuators.order import ByClock, ByOrder
from xmlstream.operators.punctuators.predicate import ByPredicate
from xmlstream.operators.punctuators.roster import ByRoster
from xmlstream.operators.punctuators.rule import Rule
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node
from xmlstream.plan.written_plan import decoded, encoded
from xmlstream.punct_ns.errors import StateError
from xmlstream.sql import script

QUERIES = sorted((ROOT / "data").rglob("*.sql"))


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_a_plan_is_read_back_as_it_was_written(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "x")
    root = optimized(script.read(text, variables).sketch())
    assert decoded(json.loads(json.dumps(encoded(root)))) == root


def test_values_of_parameters_keep_their_types() -> None:
    ddl = "s STRING, d DATE, ts TIMESTAMP, n DECIMAL(5,2)"
    options = "path 'x', rowTag 'r', domains 'd 2003-05-15.., ts ..2026-01-01T00:00:00Z, n 0.5..'"
    scan = script.read(f"CREATE TABLE r ({ddl}) USING punctuated_xml OPTIONS ({options}); SELECT * FROM r").tables["r"]
    rules: list[Rule] = [
        ByOrder("n", Decimal("0.25"), per="s"),
        ByClock("ts", timedelta(minutes=2)),
        ByRoster("n", "d", (date(2003, 5, 15),)),
        ByRoster("n", "ts", (datetime(2003, 5, 15, tzinfo=UTC),)),
        ByPredicate("s = 'x'", ("s",)),
        ByCount("s", 3, "d is not null"),
        ByPredicate(None, ("s",), timedelta(minutes=2), "ts"),
    ]
    root = scan
    for rule in rules:
        root = Node(Punctuate(rule, "drop"), (root,), "punctuate")
    assert decoded(json.loads(json.dumps(encoded(root)))) == root


@pytest.mark.parametrize(
    "operator",
    [{"class": "os:system"}, {"class": "operators.select:quoted"}, {"class": "operators.nothing:Select"}],
)
def test_a_file_names_what_is_built_and_never_what_is_run(operator: dict[str, str]) -> None:
    with pytest.raises(StateError, match="written by another version"):
        decoded({"format": 1, "nodes": [{"label": "x", "operator": operator, "inputs": []}]})
