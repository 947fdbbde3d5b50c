"""Profiles as operators: the operator with which a query reports the windows of another engine."""

from __future__ import annotations

from operators.secret_window import SecretWindow, Start
from operators.secret_window import Tick as TickName
from punct_ns.errors import UsageError
from xmlstream.secret.profile import Profile, Tick, Windows, aligned, before_first, rounded

_STARTS: dict[object, Start] = {before_first: "before", rounded: "rounded", aligned: "aligned"}
_TICKS: dict[Tick, TickName] = {Tick.TUPLE: "tuple", Tick.TIME: "time", Tick.BATCH: "batch"}


def secret_window(
    engine: Profile, windows: Windows, time: str, batch: str | None = None, name: str = "window"
) -> SecretWindow:
    """The operator that computes the contents that an engine reports for these windows.

    Args:
        engine: The profile of the engine.
        windows: Windows over `time`, or over tuples.
        time: The attribute with the application time.
        batch: The attribute with the batch number; by default each tuple is a batch.
        name: Prefix of the attributes that identify a report.

    Raises:
        UsageError: The engine reports empty contents, or reports periodically.
    """
    report = engine.report
    if not report.non_empty or report.every != 1 or engine.start not in _STARTS:
        raise UsageError(
            f"{engine.name} may report empty windows, or report periodically, which no query can",
            hint="xmlstream.secret.model predicts its answers",
        )
    return SecretWindow(
        time,
        windows.size,
        windows.slide,
        _STARTS[engine.start],
        _TICKS[engine.tick],
        report.window_close,
        report.content_change,
        windows.of_tuples,
        batch,
        name,
    )
