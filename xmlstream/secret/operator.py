"""Profiles on Spark: the operator by which a query gets what another engine would report."""

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
    """The contents that an engine reports of these windows.

    Args:
        engine: Its profile.
        windows: Over `time`, or over tuples.
        time: The attribute with the application time.
        batch: The attribute with the number of the batch; without it each tuple is one.
        name: What the attributes that tell reports apart are called after.

    Raises:
        UsageError: The engine reports contents without a tuple, or periodically.
    """
    report = engine.report
    if not report.non_empty or report.every != 1 or engine.start not in _STARTS:
        raise UsageError(
            f"{engine.name} may report windows without a tuple, or leave some out by the clock",
            hint="predict it by xmlstream.secret.model; queries follow engines that report what is not empty",
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
