"""What an engine puts out by the SECRET model, as a list."""

from __future__ import annotations

from collections.abc import Sequence

from xmlstream.secret.model import Element, Profile, Secret, Value, Windows, answer


def predict(elements: Sequence[Element], windows: Windows, aggregate: str, engine: Profile) -> list[Value | None]:
    return [answer(report, aggregate) for report in Secret(elements, windows, engine).reports() if report.is_reported]
