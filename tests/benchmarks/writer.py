"""How fast tuples become XML text on one core, beside a floor and what a user would write.

    make bench, or pytest --capture=no tests/benchmarks/writer.py

CPU seconds of this process. The floor is Arrow's own CSV writer, which has less to write.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from functools import partial
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
from lxml import etree
from pyarrow import csv

from tests.benchmarks.measuring import Measure, rates, scaled, take_turns
from xmlstream.punct_ns.schema import Schema
from xmlstream.sink.xml_text import rows_text

ROWS = scaled(1_000_000, at_least=10_000)
FEW = ROWS // 10
"""For what goes row by row; its rate is the same for more."""

SCHEMA = Schema.parse("sid STRING, hour INT, min INT, currtmp DOUBLE")


def reports() -> pa.Table:
    """Reports of two sensors, as the parser gives them."""
    random = np.random.default_rng(1)
    hour = pa.array(np.arange(ROWS, dtype=np.int32) // 1000)
    minute = pa.array(random.integers(0, 60, ROWS, dtype=np.int32))
    temperature = pa.array(random.integers(500, 900, ROWS) / 10)
    sid = pa.array(np.where(random.random(ROWS) < 0.5, "S1", "S2"))
    return pa.table({"sid": sid, "hour": hour, "min": minute, "currtmp": temperature})


def ours(table: pa.Table) -> bytes:
    """The writer of this project."""
    return b"".join(rows_text(table, SCHEMA, "tempdata"))


def arrow_csv(table: pa.Table) -> bytes:
    """The floor."""
    text = io.BytesIO()
    csv.write_csv(table, text)
    return text.getvalue()


def f_strings(table: pa.Table) -> bytes:
    """What a user would write in a hurry."""
    lines = (
        f"<tempdata><sid>{escape(sid)}</sid><hour>{hour}</hour><min>{minute}</min>"
        f"<currtmp>{temperature}</currtmp></tempdata>\n"
        for sid, hour, minute, temperature in zip(*(column.to_pylist() for column in table.columns), strict=True)
    )
    return "".join(lines).encode()


def xmlfile(table: pa.Table) -> bytes:
    """What a careful user would write."""
    text = io.BytesIO()
    with etree.xmlfile(text) as file, file.element("rows"):
        for row in table.to_pylist():
            with file.element("tempdata"):
                for name, value in row.items():
                    with file.element(name):
                        file.write(str(value))
            file.write("\n")
    return text.getvalue()


def values(text: bytes) -> list[tuple[str | None, ...]]:
    """What was written, leaf texts in order; numbers have one form."""
    root = etree.fromstring(text if text.startswith(b"<rows>") else b"<rows>" + text + b"</rows>")
    return [tuple(str(float(e.text or "")) if e.tag == "currtmp" else e.text for e in row) for row in root]


def test_writer(bench: list[Measure]) -> None:
    table = reports()
    few = table.slice(0, FEW)
    by_arrow: tuple[Callable[[pa.Table], bytes], ...] = ours, arrow_csv
    by_row: tuple[Callable[[pa.Table], bytes], ...] = f_strings, xmlfile
    assert values(ours(few)) == values(f_strings(few)) == values(xmlfile(few))

    def writing(write: Callable[[pa.Table], bytes], what: pa.Table) -> float:
        began = time.process_time()
        write(what)
        return time.process_time() - began

    contenders = {write.__name__: partial(writing, write, table) for write in by_arrow}
    contenders |= {write.__name__: partial(writing, write, few) for write in by_row}
    times = take_turns(contenders)
    rate = {name: rates(FEW if name in ("f_strings", "xmlfile") else ROWS, each) for name, each in times.items()}
    name = "XML writer, Arrow to text, CPU of one core"
    bench.append(Measure(name, "rows/s", "more", rate["ours"], "Arrow's CSV writer", rate["arrow_csv"], 3_000_000))
    bench.append(Measure(name, "rows/s", "more", rate["ours"], "a loop of f-strings", rate["f_strings"]))
    bench.append(Measure(name, "rows/s", "more", rate["ours"], "lxml's xmlfile", rate["xmlfile"]))
