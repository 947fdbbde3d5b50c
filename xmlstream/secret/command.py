"""`xmlstream secret`: what other engines would answer, tuple by tuple, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from punct_ns.errors import UsageError
from xmlstream.secret.figure import draw_comparison
from xmlstream.secret.profile import PROFILES, Windows, profile
from xmlstream.secret.stream import Element, stream
from xmlstream.secret.trace import Step, comparison, trace


def secret(  # noqa: PLR0913, PLR0917 - one parameter for each option
    file: Annotated[str, typer.Argument(help="The stream: a file, a directory, a glob.", metavar="FILE")],
    size: Annotated[int, typer.Option(help="How long a window is.")],
    slide: Annotated[int, typer.Option(help="How far apart windows are.")],
    row_tag: Annotated[str, typer.Option(help="Tag of its tuples.")],
    engine: Annotated[
        str, typer.Option("--profile", help=f"The engine: {', '.join(PROFILES)}.", metavar="ENGINE")
    ] = "xmlstream",
    agg: Annotated[str, typer.Option(help="Aggregate over a window: avg, count, max, min, sum.")] = "avg",
    time: Annotated[str, typer.Option(help="Attribute with the time, a whole number.", metavar="NAME")] = "time",
    value: Annotated[str, typer.Option(help="Attribute that is aggregated.", metavar="NAME")] = "val",
    batch: Annotated[
        str | None, typer.Option(help="Attribute with the batch; without it each tuple is one.", metavar="NAME")
    ] = None,
    tuples: Annotated[bool, typer.Option("--tuples", help="Size and slide are numbers of tuples, not times.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="All engines side by side, where they differ, and why.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option(help="With --compare, also a picture: a PNG, SVG or PDF.", metavar="FILE")
    ] = None,
) -> None:
    """Show how an engine answers a query over windows, by the SECRET model (Botan et al. 2010)."""
    elements, windows = _read(file, row_tag, time, value, batch), Windows(size, slide, of_tuples=tuples)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    if figure is not None and not compare:
        raise UsageError("--figure is a picture of engines side by side", hint="add --compare")
    if compare:
        engines = list(PROFILES.values())
        names = ("tuple", "t", *(each.name for each in engines), "differ in", "why")
        lines = comparison(elements, windows, agg, engines)
        console.print(_table(names, [(*line.cells, ", ".join(line.differs), line.why) for line in lines], lines))
        if figure is not None:
            draw_comparison(elements, windows, agg, engines, figure)
            console.print(f"As a picture: {figure}")
        return
    chosen = profile(engine)
    lines = trace(elements, windows, agg, chosen)
    console.print(f"{chosen.name}: {chosen.tick.value}; reports: {chosen.report}")
    names = ("tuple", "t", "report", "scope", "content", agg)
    console.print(_table(names, [line.cells for line in lines], lines))


def _read(file: str, row_tag: str, time: str, value: str, batch: str | None) -> tuple[Element, ...]:
    """The stream that the source is, its tuples in their order.

    Raises:
        UsageError: An attribute is missing in a tuple, or time goes back.
    """
    from sources.xml.options.source import SourceOptions
    from sources.xml.parser.read_through import read_through

    declared = [f"`{time}` BIGINT NOT NULL", f"`{value}` DOUBLE NOT NULL"]
    declared += [f"`{batch}` BIGINT NOT NULL"] if batch else []
    source = SourceOptions.parse({"path": file, "rowTag": row_tag}, ", ".join(declared))
    names = [value, time, *([batch] if batch else [])]
    rows = [
        row
        for parsed in read_through(source)
        for row in zip(*(parsed.tuples[name].to_pylist() for name in names), strict=True)
    ]
    if not rows:
        raise UsageError(f"{file} has no {row_tag}")
    return stream(rows)


def _table(names: tuple[str, ...], rows: list[tuple[str, ...]], steps: list[Step]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, justify="left")
    for row, step in zip(rows, steps, strict=True):
        table.add_row(*(Text(cell) for cell in row), style="bold" if step.differs else None)
    return table
