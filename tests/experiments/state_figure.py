"""Figures of what a query did, from its metrics: the state it keeps as items arrive (Tucker et al. 2003, Fig. 2a).

    python -m tests.experiments.state_figure FIGURE METRICS…

METRICS are what `xmlstream run --metrics` wrote, one file a run; a curve has the name of its file. matplotlib comes
with the extra `figures` and is loaded when a figure is drawn, not before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import typer

from xmlstream.punct_ns.errors import UsageError, counted, not_installed

Curve = Sequence[tuple[float, float]]
"""Points (x, y) in the order of x."""


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """The slices of a metrics file, in their order.

    Raises:
        UsageError: There is no such file, or it is not one JSON object a line.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as metrics: {error}") from error


def state_curves(slices: Sequence[Mapping[str, Any]]) -> dict[str, Curve]:
    """Per operator that ever keeps a tuple: how many it keeps, over the items (tuples and punctuations) arrived.

    Every curve begins at the origin: before the first slice nothing has arrived, and nothing is kept.
    """
    arrived = list(accumulate((one["items_in"] for one in slices), initial=0))
    kept: dict[str, list[int]] = {}
    for number, one in enumerate(slices):
        for operator in one["operators"]:
            kept.setdefault(operator["name"], [0] * (len(slices) + 1))[number + 1] = operator["kept"]
    return {name: list(zip(arrived, curve, strict=True)) for name, curve in kept.items() if any(curve)}


def draw(curves: Mapping[str, Curve], path: str | Path, title: str, x_label: str, y_label: str) -> None:
    """Draw curves into one figure, each with its own kind of line; the file's suffix says the format.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import StrMethodFormatter
    except ImportError as error:
        raise not_installed("matplotlib", "figures") from error
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for number, (name, curve) in enumerate(curves.items()):
        line = _LINES[number % len(_LINES)]
        axes.plot([x for x, _ in curve], [y for _, y in curve], line, label=name, marker=".")
    axes.set(title=title, xlabel=x_label, ylabel=y_label, xlim=(0, None), ylim=(0, None))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
    axes.grid(alpha=0.3)
    if curves:
        axes.legend()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=144)


_LINES = ("-", "--", ":", "-.")


def kept_curve(slices: Sequence[Mapping[str, Any]]) -> Curve:
    """The tuples that all operators together keep, over the items arrived."""
    curves = state_curves(slices).values()
    return [(points[0][0], sum(kept for _, kept in points)) for points in zip(*curves, strict=True)]


def draw_state(figure: Path, metrics: list[Path]) -> None:
    """Print what each run read and kept, and draw the tuples kept over the items that have arrived into one figure."""
    runs = {path.stem: read_metrics(path) for path in metrics}
    curves = {name: kept_curve(slices) for name, slices in runs.items()}
    for name, slices in runs.items():
        items, seconds = sum(one["items_in"] for one in slices), sum(one["seconds"] for one in slices)
        most = max((kept for _, kept in curves[name]), default=0)
        typer.echo(
            f"{name}: {items:,} items in {counted(len(slices), 'slice')}, {items / seconds:,.0f} items/s, "
            f"never more than {most:,.0f} tuples kept"
        )
    draw(curves, figure, "State of the query", "items arrived (tuples and punctuations)", "tuples kept")
    typer.echo(f"The state that each run kept, as a figure: {figure}")


if __name__ == "__main__":
    typer.run(draw_state)
