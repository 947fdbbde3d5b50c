"""Stalled queries: all tuples came, and punctuations but for those that are withheld; what is told is held to that.

Of each row that is kept, what is told to be missing is of what is withheld; once it has come the row is gone, and not
before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.harness.walking import Walk
from tests.oracles.oracle import Tuple
from xmlstream.diagnosis.kept_rows import log_attributes
from xmlstream.diagnosis.missing import Missing, MissingPunctuations
from xmlstream.operators.expressions.constant_evaluation import evaluated
from xmlstream.operators.required_punctuations import Row
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, Scan, topological
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.image import Function
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.session.engines import engine_of
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

MOST = 30
"""Rows of one stall that are asked about."""


@dataclass(frozen=True, slots=True, repr=False)
class Stall:
    """A query, the tuples of both streams, what is said of each, and what is withheld."""

    query: str
    tuples: dict[str, list[Tuple]]
    said: dict[str, list[Punctuation]]
    withheld: dict[str, list[Punctuation]]

    def __repr__(self) -> str:
        shown = {name: [str(p) for p in ps] for name, ps in self.withheld.items()}
        said = {name: [str(p) for p in ps] for name, ps in self.said.items()}
        return f"{self.query}\n{self.tuples}\nsaid {said}\nwithheld {shown}"

    @staticmethod
    def pinned(
        schema: Schema,
        query: str,
        tuples: dict[str, list[Tuple]],
        said: Mapping[str, Sequence[str]],
        withheld: Mapping[str, Sequence[str]],
    ) -> Stall:
        """One that is written down, its punctuations in notation."""
        parsed = [
            {name: [Punctuation.parse(text, schema) for text in given.get(name, ())] for name in tuples}
            for given in (said, withheld)
        ]
        return Stall(query, tuples, *parsed)


@st.composite
def held_back(
    draw: st.DrawFn, whole: Mapping[str, Sequence[Punctuation]]
) -> tuple[dict[str, list[Punctuation]], dict[str, list[Punctuation]]]:
    """Of what closes streams, by their names, what is said and what is withheld: one or some."""
    every = [(name, p) for name, ps in whole.items() for p in ps]
    most = draw(st.sampled_from([1, 1, 3]))
    parts = draw(st.lists(st.sampled_from(every), min_size=1, max_size=most, unique=True))
    withheld = {name: [p for of, p in parts if of == name] for name in whole}
    return {name: [p for p in ps if p not in withheld[name]] for name, ps in whole.items()}, withheld


class Stalled:
    """A query that is stalled."""

    def __init__(self, session: Session, directory: Path, tables: str, stall: Stall) -> None:
        script = read(tables + stall.query)
        self.walk = Walk(session, directory, optimized(script.plan(session)))
        self.said = {name: PunctuationSet(script.tables[name].schema) for name in stall.tuples}
        self.walk.slice({n: (rows, self.said[n].add_all(stall.said[n])) for n, rows in stall.tuples.items()})

    def say(self, given: dict[str, list[Punctuation]]) -> None:
        """One slice of punctuations."""
        self.walk.slice({name: ([], self.said[name].add_all(given.get(name, ()))) for name in self.said})

    def waiting(self) -> Iterator[tuple[Node, str, Row]]:
        """All that is kept, by the operator and the name of the log."""
        for node in self.walk.nodes:
            inputs = [below.schema for below in node.inputs]
            for name, log in node.state_schema.waiting_logs.items():
                told = [*log_attributes(log.names, (*inputs, node.schema)), *log.beside]
                for row, _ in self.walk.kept(node).with_ages(name, told):
                    yield node, name, row

    def lacking(self, node: Node, log: str, row: Row) -> tuple[Missing, ...]:
        """What a row is told to wait for."""
        kept = {each: self.walk.kept(each) for each in self.walk.nodes}
        said = {scan: self.said[self.name(scan)] for scan in self.walk.scans}
        sets = {each: self.walk.sets(each) for each in self.walk.nodes}
        lacks = MissingPunctuations(kept, sets, said, self._function).of_row(node, log, row)
        return tuple(lack for lack in lacks if lack.missing)

    def name(self, scan: Node) -> str:
        assert isinstance(scan.operator, Scan)
        return scan.operator.name

    def _function(self, expression: str, x: Attribute, y: Domain, local: bool) -> Function:
        return evaluated(expression, x, y, engine_of(self.walk.spark), local=local)


def assert_told(stalled: Stalled, stall: Stall) -> Counter[str]:
    """Asks of all that is kept, and lets come what is told; how many questions there were, and how often anew.

    What comes lets other rows out, a group's answer for one, which an operator above may keep, and which hold back what
    it says: then that is what the row waits for next.
    """
    kept = list(stalled.waiting())
    asked = kept[:MOST]
    said = Counter(questions=len(asked))
    while asked:
        parts: dict[tuple[str, Punctuation], None] = {}
        for node, log, row in asked:
            told = [(stalled.name(lack.node), p) for lack in stalled.lacking(node, log, row) for p in lack.missing]
            assert told, (stall, node.label, row)
            for name, p in told:
                withheld = PunctuationSet(p.schema, stall.withheld[name])
                assert withheld.covers(p), (stall, node.label, log, row, name, str(p))
            parts |= dict.fromkeys(told)
            if len(told) > 1 and len(asked) == 1:
                stalled.say({told[0][0]: [told[0][1]]})
                assert asked[0] in list(stalled.waiting()), (stall, node.label, log, row)
        stalled.say({name: [p for of, p in parts if of == name] for name in stall.tuples})
        before, kept = kept, list(stalled.waiting())
        asked = [question for question in asked if question in kept]
        let_out = {node for node, log, row in kept if (node, log, row) not in before}
        for node, _, row in asked:
            assert not let_out.isdisjoint(topological(node)), (stall, node.label, row, [str(p) for _, p in parts])
        said["asked anew"] += len(asked)
    return said


def told_so_far(said: Counter[str]) -> str:
    """How many stalls there were, how many questions, and how many that what came made to be asked anew."""
    return ", ".join(f"{said[what]} {what}" for what in ("stalls", "questions", "asked anew"))
