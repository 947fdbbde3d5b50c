"""`xmlstream secret`: traces the answers of other engines, tuple by tuple, and explains differences."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from xmlstream.punct_ns.errors import UsageError
from xmlstream.secret.model import PROFILES, Element, Windows, profile, stream
from xmlstream.secret.trace import Step, comparison, draw_comparison, trace

OURS = "xmlstream"
"""The default engine."""

LONGEST = 100_000
"""Most units of time in a stream: a trace has at least one line for each."""

PICTURES = (".png", ".svg", ".pdf")


def secret(  # noqa: PLR0913, PLR0917 - one parameter for each option
    file: Annotated[str, typer.Argument(help="The stream: a file, a directory, a glob.", metavar="FILE")],
    size: Annotated[int, typer.Option(help="Length of a window.")],
    slide: Annotated[int, typer.Option(help="Distance from a window to the next.")],
    row_tag: Annotated[str, typer.Option(help="Tag of its tuples.", metavar="TAG")],
    engine: Annotated[
        str | None,
        typer.Option(
            "--profile",
            help=f"The engine: {', '.join(PROFILES)}, or one of your own, by t₀, its report and its tick:"
            " '(start rounded, report content change & non-empty, tick tuple)'. With --compare, beside the others.",
            metavar="ENGINE",
            show_default=OURS,
        ),
    ] = None,
    agg: Annotated[
        str, typer.Option(help="Aggregate over a window: avg, count, max, min, sum.", metavar="NAME")
    ] = "avg",
    time: Annotated[str, typer.Option(help="Attribute with the time, an integer.", metavar="NAME")] = "time",
    value: Annotated[str, typer.Option(help="Attribute to aggregate.", metavar="NAME")] = "val",
    batch: Annotated[
        str | None, typer.Option(help="Attribute with the batch; by default each tuple is a batch.", metavar="NAME")
    ] = None,
    tuples: Annotated[bool, typer.Option("--tuples", help="Size and slide are numbers of tuples, not times.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show all engines side by side, where they differ, and why.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option(help="With --compare, also draw a picture: PNG, SVG or PDF.", metavar="FILE")
    ] = None,
) -> None:
    """Show the answers of an engine to a query over windows, by the SECRET model (Botan et al. 2010)."""
    if figure is not None and not compare:
        raise UsageError("--figure needs --compare", hint="the picture shows engines side by side")
    if figure is not None and figure.suffix.lower() not in PICTURES:
        raise UsageError(f"{figure} has no suffix of a picture", hint=f"use one of {', '.join(PICTURES)}")
    elements, windows = _read(file, row_tag, time, value, batch), Windows(size, slide, of_tuples=tuples)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    if compare:
        own = [profile(engine)] if engine else []
        engines = [*PROFILES.values(), *(each for each in own if each.name not in PROFILES)]
        names = ("tuple", "t", *(each.name for each in engines), "differ in", "why")
        lines = comparison(elements, windows, agg, engines)
        console.print(_table(names, [(*line.cells, ", ".join(line.differs), line.why) for line in lines], lines))
        if figure is not None:
            draw_comparison(elements, windows, agg, engines, figure)
            console.print(f"As a picture: {figure}")
        return
    chosen = profile(engine or OURS)
    lines = trace(elements, windows, agg, chosen)
    console.print(f"{chosen.name}: {chosen.tick.value}; reports: {chosen.report}")
    names = ("tuple", "t", "report", "scope", "content", agg)
    console.print(_table(names, [line.cells for line in lines], lines))


def _read(file: str, row_tag: str, time: str, value: str, batch: str | None) -> tuple[Element, ...]:
    """Reads the stream from its source, in order.

    Raises:
        UsageError: There is no tuple, an attribute is missing, times are not in order, or the stream is too long.
    """
    from xmlstream.sources.xml.options.source import SourceOptions
    from xmlstream.sources.xml.parser.range_parser import read_through

    declared = [f"`{time}` BIGINT", f"`{value}` DOUBLE", *([f"`{batch}` BIGINT"] if batch else [])]
    source = SourceOptions.parse({"path": file, "rowTag": row_tag}, ", ".join(declared))
    names = [value, time, *([batch] if batch else [])]
    rows = [
        row
        for parsed in read_through(source)
        for row in zip(*(parsed.tuples[name].to_pylist() for name in names), strict=True)
    ]
    if not rows:
        raise UsageError(f"{file} has no {row_tag}", hint="--row-tag names the tuples, which `xmlstream infer` lists")
    for number, row in enumerate(rows, 1):
        if lacking := [name for name, found in zip(names, row, strict=True) if found is None]:
            hint = "--time, --value and --batch name the attributes"
            raise UsageError(f"tuple {number} has no {lacking[0]}", hint=hint)
    elements = stream(rows)
    if (span := elements[-1].app - elements[0].app) > LONGEST:
        what = f"{time} spans {span:,} units, and a trace has a line for each of them"
        raise UsageError(what, hint=f"use a part of the stream, or a larger unit, up to {LONGEST:,} units")
    return elements


def _table(names: tuple[str, ...], rows: list[tuple[str, ...]], steps: list[Step]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, justify="left")
    for row, step in zip(rows, steps, strict=True):
        table.add_row(*(Text(cell) for cell in row), style="bold" if step.differs else None)
    return table
