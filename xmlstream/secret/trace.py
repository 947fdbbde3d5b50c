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
    """One line of a trace: its cells, and in which dimensions engines differ there, where several are compared."""

    cells: tuple[str, ...]
    differs: tuple[str, ...] = ()


def trace(elements: Sequence[Element], windows: Windows, aggregate: str, engine: Profile) -> list[Step]:
    """The calls of Report by one engine: tuple, t, whether it reports or why not, scope, content, result.

    Tuples at which the engine does not tick have a line, too. Instants before the first tuple, of which nothing can
    be reported but nothing, are left out up to the last.
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


def comparison(elements: Sequence[Element], windows: Windows, aggregate: str, engines: Sequence[Profile]) -> list[Step]:
    """The engines side by side: tuple, t, and for each what it answers there; and in which dimensions they differ."""
    called: dict[tuple[int, int], dict[str, Report]] = {}
    for engine in engines:
        secret = Secret(elements, windows, engine)
        for element, instants in secret.ticks():
            for instant in _telling(instants, element, elements):
                called.setdefault((element.sys, instant), {})[engine.name] = secret.report(instant, element.sys)
    found = []
    for (arrival, instant), reports in sorted(called.items()):
        answers = [_answered(reports.get(engine.name), aggregate) for engine in engines]
        cells = (_tuple(elements[arrival - 1]), str(instant), *answers)
        found.append(Step(cells, differences(reports, engines)))
    return found


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
