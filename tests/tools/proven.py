"""The table of what is proven to be equal in both engines, with how many values were compared: for the manual.

    .ci/java .venv/bin/python -m tests.tools.proven [--rows 60] [--seed 1]

It prints Markdown: a line for each function, operator and kind of cast, with the types that were compared.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tests.harness.both_engines import Findings, compared
from tests.harness.drawn_rows import TYPES, Rows
from tests.operators.in_process import test_proven as cases
from xmlstream.operators.expressions.dialect import call_name, expression
from xmlstream.operators.expressions.operations.aggregate_functions import AGGREGATES, WINDOWS
from xmlstream.operators.expressions.operations.functions import FUNCTIONS
from xmlstream.session.spark_session import open_spark_session

_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "intdiv": "DIV", "neg": "-", "eq": "=", "neq": "<>",
    "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "nullsafeeq": "<=>", "nullsafeneq": "IS DISTINCT FROM",
    "and": "AND", "or": "OR", "not": "NOT", "is": "IS", "in": "IN", "between": "BETWEEN", "like": "LIKE", "dpipe": "||",
    "case": "CASE", "cast": "CAST", "trycast": "CAST", "bitwiseand": "&", "bitwiseor": "|", "bitwisexor": "^",
    "trim": "TRIM", "substring": "SUBSTRING", "extract": "EXTRACT", "interval": "INTERVAL", "window": "OVER",
    "filter": "FILTER", "distinct": "DISTINCT", "any": "any", "dot": "a field of a structure",
}  # fmt: skip


def entries(text: str) -> Iterator[str]:
    """The functions and operators in an expression."""
    for node in expression(text).walk():
        name = call_name(node) or _OPERATORS.get(node.key, "")
        if name in FUNCTIONS or name in AGGREGATES or name in WINDOWS or name in _OPERATORS.values():
            yield name


def types(text: str) -> set[str]:
    """The types of the columns in an expression."""
    return {type_ for begin in re.findall(r"\b([a-z]+)[123]\b", text) if (type_ := TYPES.get(begin))}


def table(values: Mapping[str, int]) -> str:
    """The Markdown table of expressions, by how many values of each were compared."""
    counts: dict[str, int] = defaultdict(int)
    expressions: dict[str, int] = defaultdict(int)
    of: dict[str, set[str]] = defaultdict(set)
    for text, number in values.items():
        for entry in set(entries(text)):
            counts[entry] += number
            expressions[entry] += 1
            of[entry] |= types(text)
    lines = ["| entry | expressions | values | types |", "| --- | ---: | ---: | --- |"]
    for entry in sorted(counts, key=str.lower):
        listed = ", ".join(type_ for type_ in TYPES.values() if type_ in of[entry]) or "–"
        shown = entry.replace("|", "\\|")
        lines.append(f"| `{shown}` | {expressions[entry]} | {counts[entry]} | {listed} |")
    return "\n".join([*lines, "", f"{len(counts)} entries, {len(values)} expressions, {sum(values.values())} values"])


def main() -> None:
    """Compares all expressions, and prints the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=60)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    spark = open_spark_session("local[2]", {"spark.driver.memory": "1g"}, name="proven")
    findings = Findings()
    rows = Rows.drawn(spark, given.rows, given.seed)
    single = (
        cases.arithmetic,
        cases.comparisons,
        cases.beside_texts,
        cases.casts,
        cases.texts,
        cases.moments,
        cases.choices,
    )
    compared(rows, [text for listed in single for text in listed()], findings)
    compared(rows, cases.aggregates(), findings, by="g")
    compared(rows, cases.over_rows(), findings, has_errors=False)
    print(table(findings.values))
    print(f"\n{len(findings.refused)} of the expressions are refused, {findings.errors} errors were compared.")
    spark.stop()
    if findings.differences:
        sys.exit(str(findings))


if __name__ == "__main__":
    main()
