"""Windows that another engine would report for a stream, as an operator of a plan.

The option `semantics` cuts the stream into windows with the semantics of another engine:

    streambase, size 5, slide 1, of time
    coral8, size 4, slide 1, of time, batch bid
    stream, size 100 tuples, slide 10, of time
    (start aligned, report content change & non-empty, tick tuple), size 5, slide 1, of time

The table then has four more attributes, to group by where that engine aggregates: window_start, window_end, window_at
and window_tuple (`xmlstream.operators.secret_window`).
"""

from __future__ import annotations

from xmlstream.operators.secret_window import SecretWindow, Start
from xmlstream.operators.secret_window import Tick as TickName
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import split_name
from xmlstream.punct_ns.type_names import split_outside
from xmlstream.secret.model import Profile, Tick, Windows, aligned, before_first, profile, rounded
from xmlstream.sql.clauses.row_windows import require_arrival_order

_HINT = "write 'streambase, size 5, slide 1, of time'; 'size 5 tuples' counts tuples"
_WORDS = ("size", "slide", "of", "batch")


def reported_windows(node: Node, text: str) -> Node:
    """The windows that an engine reports over a source, each tuple once per window.

    Raises:
        UsageError: The text cannot be read, or the engine is unknown.
        QueryError: An attribute does not fit, or the tuples have no order.
    """
    engine, *parts = (part.strip() for part in split_outside(text, ","))
    given: dict[str, str] = {}
    for part in parts:
        word, _, value = part.partition(" ")
        if word.lower() not in _WORDS or not value.strip() or word.lower() in given:
            raise UsageError(f"'{part}' in semantics '{text}' cannot be read", hint=_HINT)
        given[word.lower()] = value.strip()
    if missing := [word for word in _WORDS[:3] if word not in given]:
        raise UsageError(f"semantics '{text}' lacks {' and '.join(missing)}", hint=_HINT)
    size, _, unit = given["size"].partition(" ")
    length, slide = (int(number) if number.isdecimal() else 0 for number in (size, given["slide"]))
    if unit.strip().lower() not in ("", "tuples") or not (length and slide):
        raise UsageError(f"semantics '{text}' needs a size and a slide that are whole numbers above 0", hint=_HINT)
    batch = split_name(given["batch"])[0] if "batch" in given else None
    return in_windows_of(
        node, engine, split_name(given["of"])[0], length, slide, batch=batch, of_tuples=bool(unit.strip())
    )


def in_windows_of(
    node: Node, engine: str, time: str, size: int, slide: int, *, batch: str | None = None, of_tuples: bool = False
) -> Node:
    """As `reported_windows`, for any node whose tuples have positions."""
    windows = Windows(size, slide, of_tuples)
    require_arrival_order(node, f"windows with the semantics of {engine}")
    return Node(secret_window(profile(engine), windows, time, batch), (node,), "secret_window")


_STARTS: dict[object, Start] = {before_first: "before", rounded: "rounded", aligned: "aligned"}
_TICKS: dict[Tick, TickName] = {Tick.TUPLE: "tuple", Tick.TIME: "time", Tick.BATCH: "batch"}


def secret_window(engine: Profile, windows: Windows, time: str, batch: str | None = None) -> SecretWindow:
    """The operator that computes the contents that an engine reports for these windows.

    Args:
        engine: The profile of the engine.
        windows: Windows over `time`, or over tuples.
        time: The attribute with the application time.
        batch: The attribute with the batch number; by default each tuple is a batch.

    Raises:
        UsageError: The engine reports empty contents, or reports periodically.
    """
    report = engine.report
    if not report.non_empty or report.every != 1 or engine.start not in _STARTS:
        what = f"{engine.name} may report empty windows or periodically, or starts at a number, which no query can"
        raise UsageError(what, hint="xmlstream secret FILE --profile shows its answers")
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
    )
