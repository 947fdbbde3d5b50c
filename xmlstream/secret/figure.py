"""Engines side by side as a picture: the tuples over time, and below them the windows that each engine reports.

A bar is the scope of a reported content, with the engine's answer at its end; where engines differ it says in which
dimension. After Figures 4 to 6 of Botan et al. 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from punct_ns.errors import UsageError
from xmlstream.secret.prediction import answer
from xmlstream.secret.profile import Profile, Windows
from xmlstream.secret.stream import Element
from xmlstream.secret.trace import Compared, compared

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SAME, _OTHER = "#5a7fa6", "#c9682a"
MOST = 60
"""Reports of one engine up to which bars can be told apart."""


def draw_comparison(
    elements: Sequence[Element], windows: Windows, aggregate: str, engines: Sequence[Profile], path: str | Path
) -> None:
    """Draws the engines' reports into a file; its suffix says the format.

    Raises:
        UsageError: matplotlib is not installed, there are too many reports to be told apart, or it cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("matplotlib is not installed", hint="pip install 'xmlstream[figures]'") from error
    lines = compared(elements, windows, engines)
    shown = {engine.name: _reported(lines, engine) for engine in engines}
    if (most := max(map(len, shown.values()), default=0)) > MOST:
        raise UsageError(f"{most} reports are too many for a picture", hint=f"take a part of the stream: up to {MOST}")
    heights = [1.2, *(max(1.0, 0.24 * len(found) + 0.5) for found in shown.values())]
    figure = Figure(figsize=(9, sum(heights) + 0.9), layout="constrained")
    axes = figure.subplots(len(heights), sharex=True, height_ratios=heights)
    figure.suptitle(f"{aggregate} over windows of {windows.size} by {windows.slide}")
    _tuples(axes[0], elements)
    for engine, lane in zip(engines, axes[1:], strict=True):
        _lane(lane, engine, shown[engine.name], aggregate, windows, elements)
    axes[-1].set_xlabel("number of the tuple" if windows.of_tuples else "application time")
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=144)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _reported(lines: Sequence[Compared], engine: Profile) -> list[Compared]:
    found = [line for line in lines if engine.name in line.reports]
    return [line for line in found if line.reports[engine.name].is_reported]


def _tuples(axes: Axes, elements: Sequence[Element]) -> None:
    """The tuples, simultaneous ones above each other."""
    seen: dict[int, int] = {}
    for element in elements:
        height = seen[element.app] = seen.get(element.app, -1) + 1
        axes.plot(element.app, height, "o", color="black", markersize=4)
        axes.annotate(_text(element.value), (element.app, height), (5, -3), textcoords="offset points", fontsize=8)
    axes.set_ylim(-0.8, max(seen.values()) + 0.8)
    _plain(axes, "tuples")


def _lane(
    axes: Axes,
    engine: Profile,
    lines: Sequence[Compared],
    aggregate: str,
    windows: Windows,
    elements: Sequence[Element],
) -> None:
    for number, line in enumerate(lines):
        report = line.reports[engine.name]
        assert report.scope is not None
        begin, end = report.scope.start, report.scope.end
        if windows.of_tuples:
            begin, end = report.content[0].sys - 1, report.content[-1].sys
        colour = _OTHER if line.differs else _SAME
        axes.barh(-number, end - begin, left=begin, height=0.7, color=colour, alpha=0.75)
        told = answer(report, aggregate)
        why = f"  {', '.join(line.differs)}" if line.differs else ""
        axes.annotate(f"{_text(told)}{why}", (end, -number), (4, -3), textcoords="offset points", fontsize=8)
    axes.set_ylim(-max(len(lines), 1) + 0.4, 0.6)
    _plain(axes, f"{engine.name}\n{engine.tick.value}")


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(axes: Axes, label: str) -> None:
    axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9)
    axes.set_yticks([])
    axes.margins(x=0.04)
    axes.grid(axis="x", alpha=0.25)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
