"""Every operator's page has an example, and the operator does what the example shows.

Below the label `Example:` stand the operator as an expression, the schemas of its inputs and of its output, and in the
stream notation a line for each input and one for the output. In the expression the output's attributes go by their
names, and `schema` is the first input's. `09:05` is short for that minute of 1 January 1970 in UTC; a line `at` has the
time recorded with each slice.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness import notation
from tests.harness.pages import ROOT, blocks, operator_modules
from tests.harness.running import Running
from xmlstream.operators.behaviour import Operator
from xmlstream.operators.expressions.aggregates import Aggregate, Over
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.punctuators.order import ByOrder
from xmlstream.operators.sort_order import SortKey
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.temporal_type import TimestampType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession, Session

PARAMETERS = {each.__name__: each for each in (Aggregate, Attribute, ByOrder, Column, Domain, Over, SortKey)}

ORDERED = ("distinct_on", "punctuate", "secret_window")
"""The operators that need to know in which order tuples came."""

LABEL = re.compile(r"^Example: +(\S.*?)^(?=\S)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"(?P<expression>.*?)\s+over (?P<inputs>.*?)\s+gives (?P<output>\(.*?\))\n(?P<lines>.*)", re.DOTALL)
LINE = re.compile(r" +(at|in|out)(?: +(.*))?")
MINUTE = re.compile(r"\b(\d\d:\d\d)\b")


def page(module: str) -> str:
    """The docstring of an operator's module."""
    return ast.get_docstring(ast.parse((ROOT / "operators" / f"{module}.py").read_text(encoding="utf-8"))) or ""


@dataclass(frozen=True, slots=True)
class Example:
    """The example of a page."""

    module: str
    operator: Operator
    inputs: tuple[Schema, ...]
    output: Schema
    lines: tuple[tuple[str, str], ...]

    @staticmethod
    def of(module: str) -> Example:
        """The example of an operator's module."""
        label = LABEL.search(f"{page(module)}\n.")
        assert label is not None, f"the page of {module} has no Example"
        block = BLOCK.fullmatch(label[1].rstrip())
        assert block is not None, f"the example of {module} is not: operator, over, gives, in, out"
        inputs = tuple(schemas(block["inputs"]))
        (output,) = schemas(block["output"])
        parsed = [LINE.fullmatch(line) for line in block["lines"].splitlines()]
        lines = [(line[1], line[2] or "") for line in parsed if line is not None]
        assert len(lines) == len(parsed)
        assert [kind for kind, _ in lines if kind != "at"] == [*["in"] * len(inputs), "out"]
        starts = {tuple(bar.start() for bar in re.finditer(r"\|", line)) for line in block["lines"].splitlines()}
        assert len(starts) == 1, f"the slices of the example of {module} do not stand below each other"
        imported = importlib.import_module(f"xmlstream.operators.{module}")
        own = {n: each for n, each in vars(imported).items() if getattr(each, "__module__", "") == imported.__name__}
        attributes = {attribute.name: attribute for attribute in output}
        names = {**own, **PARAMETERS, **attributes, "schema": inputs[0]}
        return Example(module, eval(block["expression"], names), inputs, output, tuple(lines))

    def stream(self, kind: str) -> list[str]:
        """The lines of a kind, with moments written out."""
        return [MINUTE.sub(r"1970-01-01T\1:00Z", line) for each, line in self.lines if each == kind]

    def run(self, session: Session, directory: Path) -> tuple[list[str], list[str]]:
        """What the operator emits, slice by slice, and what the page shows."""
        running = Running(session, directory, self.operator, *self.inputs, positioned=self.module in ORDERED)
        assert [(a.name, a.domain.type) for a in running.output] == [(a.name, a.domain.type) for a in self.output]
        times = [TimestampType(zoned=True).read(text) for line in self.stream("at") for text in line.split("|")]
        (out,) = self.stream("out")
        emitted, shown = [], []
        slices = zip(notation.inputs(self.stream("in"), self.inputs), notation.slices(out, self.output), strict=True)
        for number, (came, expected) in enumerate(slices):
            running.time = times[number] if times else running.time
            running.positions = []
            done = running.slice(*came)
            in_order = bool(running.positions)
            items: list[notation.Item] = [*done.tuples, *done.punctuations]
            emitted.append(notation.shown(items, self.output, in_order=in_order))
            shown.append(notation.shown(expected, self.output, in_order=in_order))
        return emitted, shown


def schemas(text: str) -> Iterator[Schema]:
    """The schemas in parentheses; behind a semicolon stand the bounds of attributes.

    >>> [schema.names for schema in schemas("(a INT, b INT; b 0..9), (c INT)")]
    [('a', 'b'), ('c',)]
    """
    for each in re.findall(r"\(([^()]*)\)", text):
        attributes, _, domains = each.partition(";")
        yield Schema.parse(attributes, domains)


@pytest.mark.parametrize("module", operator_modules())
def test_every_page_has_an_example(module: str) -> None:
    assert Example.of(module).stream("in")


def test_the_manual_shows_the_page_of_distinct() -> None:
    (shown,) = [block.text for block in blocks("operators/README.md") if block.text.startswith("Meaning:")]
    assert shown in page("distinct")


@pytest.mark.parametrize("module", operator_modules())
def test_an_operator_does_what_its_example_shows(module: str, in_process: InProcessSession, tmp_path: Path) -> None:
    emitted, shown = Example.of(module).run(in_process, tmp_path)
    assert emitted == shown


@pytest.mark.spark
@pytest.mark.parametrize("module", operator_modules())
def test_so_it_does_on_spark(module: str, spark: SparkSession, tmp_path: Path) -> None:
    emitted, shown = Example.of(module).run(spark, tmp_path)
    assert emitted == shown
