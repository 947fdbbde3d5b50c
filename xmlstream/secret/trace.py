"""What an engine does with each tuple, step by step, and where engines differ, as the paper's tables show it.

Source: Botan et al. 2010, Tables 3 to 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xmlstream.secret.model import Report, Secret
from xmlstream.secret.prediction import answer
from xmlstream.secret.profile import Profile, Windows
from xmlstream.secret.stream import Element, Value

NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a trace: its cells; of engines that are compared, in which dimensions they differ there, and why."""

    cells: tuple[str, ...]
    differs: tuple[str, ...] = ()
    why: str = ""


def trace(elements: Sequence[Element], windows: Windows, aggregate: str, engine: Profile) -> list[Step]:
    """The calls of Report by one engine: tuple, t, whether it reports or why not, scope, content, result.

    Tuples at which the engine does not tick have a line, too. Of the instants that the first tuple lets pass the last
    alone has one: the windows before it are empty.
    """
    secret, found = Secret(elements, windows, engine), []
    for element, instants in secret.ticks():
        of = _tuple(element)
        if not instants:
            found.append(Step((of, NOTHING, "no tick", NOTHING, NOTHING, NOTHING)))
        for instant in _telling(instants, element, elements):
            report = secret.report(instant, element.sys)
            found.append(Step((of, str(instant), _why(report), *_seen(report), *_result(report, aggregate))))
    return found


@dataclass(frozen=True, slots=True)
class Compared:
    """One instant at one arrival: what each engine that reports there looks at, and in which dimensions they differ.

    Attributes:
        arrival: The tuple that arrives.
        instant: The instant that is reported of.
        reports: What each engine makes of it, by its name; without those that are not called there.
        differs: The dimensions, `Tick`, `Scope` and `Report`.
        why: What makes the difference, in words.
    """

    arrival: Element
    instant: int
    reports: Mapping[str, Report]
    differs: tuple[str, ...]
    why: str


def compared(elements: Sequence[Element], windows: Windows, engines: Sequence[Profile]) -> list[Compared]:
    """The engines' calls of Report side by side, in their order."""
    called: dict[tuple[int, int], dict[str, Report]] = {}
    for engine in engines:
        secret = Secret(elements, windows, engine)
        for element, instants in secret.ticks():
            for instant in _telling(instants, element, elements):
                called.setdefault((element.sys, instant), {})[engine.name] = secret.report(instant, element.sys)
    found = []
    for (arrival, instant), reports in sorted(called.items()):
        differs = differences(reports, engines)
        why = reasons(reports, engines, differs)
        found.append(Compared(elements[arrival - 1], instant, reports, differs, why))
    return found


def comparison(elements: Sequence[Element], windows: Windows, aggregate: str, engines: Sequence[Profile]) -> list[Step]:
    """The engines side by side: tuple, t, what each answers there; and in which dimensions they differ, and why."""
    found = []
    for line in compared(elements, windows, engines):
        answers = [_answered(line.reports.get(engine.name), aggregate) for engine in engines]
        found.append(Step((_tuple(line.arrival), str(line.instant), *answers), line.differs, line.why))
    return found


def reasons(reports: Mapping[str, Report], engines: Sequence[Profile], differs: Sequence[str]) -> str:
    """What makes engines differ at one arrival and instant, dimension by dimension, in words."""
    names = [engine.name for engine in engines]
    said = []
    if "Tick" in differs:
        said.append(f"no tick of {', '.join(name for name in names if name not in reports)}")
    if "Scope" in differs:
        scopes = {name: str(reports[name].scope or "none") for name in names if name in reports}
        said.append("; ".join(f"{', '.join(_of(scopes, scope))} {scope}" for scope in dict.fromkeys(scopes.values())))
    if "Report" in differs:
        unmet = {name: ", ".join(reports[name].unmet) for name in names if name in reports and reports[name].unmet}
        said += [f"{', '.join(_of(unmet, why))}: no {why}" for why in dict.fromkeys(unmet.values())]
    return "; ".join(said)


def _of(told: Mapping[str, str], what: str) -> list[str]:
    return [name for name, said in told.items() if said == what]


def differences(reports: Mapping[str, Report], engines: Sequence[Profile]) -> tuple[str, ...]:
    """In which of SECRET's dimensions engines differ at one arrival and instant.

    Tick where not all of them were called; of those that were, Scope where they look at other windows, and Report where
    of the same window some report and some do not. Content is then the same: at one arrival all have seen the same.
    """
    there = [reports[engine.name] for engine in engines if engine.name in reports]
    seen = {(report.scope, report.is_reported) for report in there}
    scopes = {report.scope for report in there}
    named = {"Tick": len(there) < len(engines), "Scope": len(scopes) > 1, "Report": len(seen) > len(scopes)}
    return tuple(name for name, holds in named.items() if holds)


def _telling(instants: tuple[int, ...], element: Element, elements: Sequence[Element]) -> tuple[int, ...]:
    return instants[-1:] if element is elements[0] else instants


def _tuple(element: Element) -> str:
    return f"t{element.sys} ({_text(element.value)}, {element.app})"


def _why(report: Report) -> str:
    return "yes" if report.is_reported else "no: " + ", ".join(report.unmet)


def _seen(report: Report) -> tuple[str, str]:
    content = "{" + ", ".join(_text(element.value) for element in report.content) + "}"
    return str(report.scope) if report.scope else NOTHING, content


def _result(report: Report, aggregate: str) -> tuple[str]:
    return (_answered(report, aggregate),)


def _answered(report: Report | None, aggregate: str) -> str:
    return NOTHING if report is None or not report.is_reported else _text(answer(report, aggregate))


def _text(value: Value | None) -> str:
    return "null" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
