"""Traces of an engine, step by step, and comparisons of several engines, as tables and as a picture.

The tables are those of Botan et al. 2010, Tables 3 to 8. The picture, after Figures 4 to 6, has the tuples over time,
and below them the windows that each engine reports: a bar is the scope of a reported content, with the engine's answer
at its end, and the dimensions in which engines differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import UsageError, not_installed
from xmlstream.secret.model import Element, Profile, Report, Secret, Value, Windows, answer

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Step:
    """A line of a trace: its cells; in a comparison, also the dimensions in which the engines differ, and why."""

    cells: tuple[str, ...]
    differs: tuple[str, ...] = ()
    why: str = ""


def trace(elements: Sequence[Element], windows: Windows, aggregate: str, engine: Profile) -> list[Step]:
    """The calls of Report by an engine, as lines: tuple, t, whether it reports or why not, scope, content, result.

    A tuple at which the engine does not tick has a line, too. Of the instants before the first tuple only the last one
    has a line, since the windows before it are empty.
    """
    secret, found = Secret(elements, windows, engine), []
    for element, instants in secret.ticks():
        of = _tuple(element)
        if not instants:
            found.append(Step((of, NOTHING, "no tick", NOTHING, NOTHING, NOTHING)))
        for instant in _listed(instants, element, elements):
            report = secret.report(instant, element.sys)
            why = "yes" if report.is_reported else f"no: {', '.join(report.unmet)}"
            content = f"{{{', '.join(_text(element.value) for element in report.content)}}}"
            cells = of, str(instant), why, str(report.scope or NOTHING), content, _answered(report, aggregate)
            found.append(Step(cells))
    return found


@dataclass(frozen=True, slots=True)
class Compared:
    """The engines' calls of Report at one arrival and instant.

    Attributes:
        instant: The application time of the calls.
        reports: The call of each engine, by name; without engines that make no call here.
        differs: The dimensions in which the engines differ: `Tick`, `Scope`, `Report`.
        why: The reason of the difference, as text.
    """

    arrival: Element
    instant: int
    reports: Mapping[str, Report]
    differs: tuple[str, ...]
    why: str


def compared(elements: Sequence[Element], windows: Windows, engines: Sequence[Profile]) -> list[Compared]:
    """The calls of Report of several engines side by side, in order."""
    called: dict[tuple[int, int], dict[str, Report]] = {}
    for engine in engines:
        secret = Secret(elements, windows, engine)
        for element, instants in secret.ticks():
            for instant in _listed(instants, element, elements):
                called.setdefault((element.sys, instant), {})[engine.name] = secret.report(instant, element.sys)
    found = []
    for (arrival, instant), reports in sorted(called.items()):
        differs = differing_dimensions(reports, engines)
        why = reasons(reports, engines, differs)
        found.append(Compared(elements[arrival - 1], instant, reports, differs, why))
    return found


def comparison(elements: Sequence[Element], windows: Windows, aggregate: str, engines: Sequence[Profile]) -> list[Step]:
    """The engines side by side, as lines: tuple, t, each answer; the dimensions in which they differ, and why."""
    found = []
    for line in compared(elements, windows, engines):
        answers = [_answered(line.reports.get(engine.name), aggregate) for engine in engines]
        found.append(Step((_tuple(line.arrival), str(line.instant), *answers), line.differs, line.why))
    return found


def reasons(reports: Mapping[str, Report], engines: Sequence[Profile], differs: Sequence[str]) -> str:
    """The reasons why engines differ at one arrival and instant, as text, by dimension."""
    names = [engine.name for engine in engines]
    parts = []
    if "Tick" in differs:
        parts.append(f"no tick of {', '.join(name for name in names if name not in reports)}")
    if "Scope" in differs:
        scopes = {name: str(reports[name].scope or "none") for name in names if name in reports}
        parts.append("; ".join(f"{', '.join(_of(scopes, scope))} {scope}" for scope in dict.fromkeys(scopes.values())))
    if "Report" in differs:
        unmet = {name: ", ".join(reports[name].unmet) for name in names if name in reports and reports[name].unmet}
        parts += [f"{', '.join(_of(unmet, why))}: no {why}" for why in dict.fromkeys(unmet.values())]
    return "; ".join(parts)


def _of(values: Mapping[str, str], wanted: str) -> list[str]:
    return [name for name, value in values.items() if value == wanted]


def differing_dimensions(reports: Mapping[str, Report], engines: Sequence[Profile]) -> tuple[str, ...]:
    """The dimensions of SECRET in which engines differ at one arrival and instant.

    Tick: not all engines call Report. Scope: those that do have different windows. Report: for the same window some
    report and some do not. Content never differs for equal scopes, since all engines have received the same tuples.
    """
    there = [reports[engine.name] for engine in engines if engine.name in reports]
    seen = {(report.scope, report.is_reported) for report in there}
    scopes = {report.scope for report in there}
    named = {"Tick": len(there) < len(engines), "Scope": len(scopes) > 1, "Report": len(seen) > len(scopes)}
    return tuple(name for name, holds in named.items() if holds)


def _listed(instants: tuple[int, ...], element: Element, elements: Sequence[Element]) -> tuple[int, ...]:
    """The instants that have a line: at the first tuple only the last one, since the windows before it are empty."""
    return instants[-1:] if element is elements[0] else instants


def _tuple(element: Element) -> str:
    return f"t{element.sys} ({_text(element.value)}, {element.app})"


def _answered(report: Report | None, aggregate: str) -> str:
    return NOTHING if report is None or not report.is_reported else _text(answer(report, aggregate))


def _text(value: Value | None) -> str:
    return "null" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


_SAME, _OTHER = "#5a7fa6", "#c9682a"
MOST = 60
"""Most reports of an engine in a picture; with more, bars cannot be distinguished."""


def draw_comparison(
    elements: Sequence[Element], windows: Windows, aggregate: str, engines: Sequence[Profile], path: str | Path
) -> None:
    """Draws the engines' reports into a file, in the format of its suffix.

    Raises:
        UsageError: matplotlib is not installed, there are too many reports, or the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise not_installed("matplotlib", "figures") from error
    lines = compared(elements, windows, engines)
    shown = {
        name: [line for line in lines if name in line.reports and line.reports[name].is_reported]
        for name in (engine.name for engine in engines)
    }
    if (most := max(map(len, shown.values()), default=0)) > MOST:
        raise UsageError(
            f"{most} reports are too many for a picture", hint=f"use a part of the stream, with at most {MOST} reports"
        )
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


def _tuples(axes: Axes, elements: Sequence[Element]) -> None:
    """Draws the tuples; simultaneous ones above each other."""
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
        label = _answered(report, aggregate)
        why = f"  {', '.join(line.differs)}" if line.differs else ""
        axes.annotate(f"{label}{why}", (end, -number), (4, -3), textcoords="offset points", fontsize=8)
    axes.set_ylim(-max(len(lines), 1) + 0.4, 0.6)
    _plain(axes, f"{engine.name}\n{engine.tick.value}")


def _plain(axes: Axes, label: str) -> None:
    axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9)
    axes.set_yticks([])
    axes.margins(x=0.04)
    axes.grid(axis="x", alpha=0.25)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
