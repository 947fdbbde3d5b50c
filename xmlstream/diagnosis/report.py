"""Report of what a query waits for, as a commit left it: as data, as JSON for programs and live pages, and in words.

For each operator: the rows that it holds, and which source must send which punctuation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from xmlstream.diagnosis.last_heard_from import SliceTime
from xmlstream.runtime.metrics import counted


@dataclass(frozen=True, slots=True)
class Need:
    """What one source, or one rule of punctuate, must say, or has said.

    Attributes:
        source: Its name in the plan.
        wanted: The punctuation that is waited for, in notation.
        missing: What of it was not said yet, in notation; nothing if all was.
        said: When it was, where it was.
        promised: The source's schemes by which it would be said; none if it promises nothing of the kind.
        rule: What is known of the source, where a rule says it.
        holds: How long what was said holds, in notation (`until …`, `while …`); None for ever.
    """

    source: str
    wanted: str
    missing: tuple[str, ...]
    said: SliceTime | None
    promised: tuple[str, ...]
    rule: str | None = None
    holds: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "source": self.source,
            "wanted": self.wanted,
            "missing": list(self.missing),
            "said": self.said and self.said.json(),
            "promised": list(self.promised),
            "rule": self.rule,
            "holds": self.holds,
        }


@dataclass(frozen=True, slots=True)
class Example:
    """A group or a tuple that waits.

    Attributes:
        key: What tells it from others, in notation.
        needs: What it needs of whom.
        since: When it came, a group's first tuple; None where the checkpoint is of a version that did not keep that.
    """

    key: tuple[tuple[str, str], ...]
    needs: tuple[Need, ...]
    since: SliceTime | None = None

    def as_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "key": dict(self.key),
            "since": self.since and self.since.json(),
            "needs": [need.as_json() for need in self.needs],
        }


@dataclass(frozen=True, slots=True)
class Waits:
    """What waits in one log of an operator.

    Attributes:
        operator: Its name in the plan.
        log: The log.
        what: What its rows are: `groups`, `tuples of the left side`.
        count: How many rows there are.
        blocks: Whether they go out in the end; else they are kept for others, and then forgotten.
        since: When the oldest of them came; None where the checkpoint is of a version that did not keep that.
        progress: When some of them left the last time.
        examples: Some of them, those that wait longest, among equals the first in their order.
    """

    operator: str
    log: str
    what: str
    count: int
    blocks: bool
    since: SliceTime | None
    progress: SliceTime | None
    examples: tuple[Example, ...]

    def as_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "operator": self.operator,
            "log": self.log,
            "what": self.what,
            "count": self.count,
            "blocks": self.blocks,
            "since": self.since and self.since.json(),
            "progress": self.progress and self.progress.json(),
            "examples": [example.as_json() for example in self.examples],
        }


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of the results that a question names.

    Attributes:
        key: The question: `hour=17`.
        result: Of which result, the name of its operator.
        is_out: Whether all of them are out, and no more come.
        since: With which slice that was so.
        held: How many rows operators hold of them, by their names; None where none has the attributes of the question.
        needs: What is needed of whom, that they are.
    """

    key: str
    result: str
    is_out: bool
    since: SliceTime | None
    held: tuple[tuple[str, int], ...] | None
    needs: tuple[Need, ...]

    def as_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "key": self.key,
            "result": self.result,
            "out": self.is_out,
            "since": self.since and self.since.json(),
            "held": None if self.held is None else dict(self.held),
            "needs": [need.as_json() for need in self.needs],
        }


@dataclass(frozen=True, slots=True)
class WaitingReport:
    """What a query waits for as of its last commit.

    Attributes:
        checkpoint: Where its state lives.
        at: The last slice that was committed.
        closed: Whether the input has ended for good.
        waits: What operators hold, inputs before what is made of them.
        asked: The answer to a question, if there was one.
    """

    checkpoint: str
    at: SliceTime
    closed: bool
    waits: tuple[Waits, ...]
    asked: Asked | None = None

    def as_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "checkpoint": self.checkpoint,
            "slice": self.at.slice,
            "time": self.at.time.isoformat(),
            "closed": self.closed,
            "waits": [waits.as_json() for waits in self.waits],
            "asked": self.asked and self.asked.as_json(),
        }


_UNITS = (("day", 86400), ("h", 3600), ("min", 60), ("s", 1))


def in_words(report: WaitingReport, now: datetime | None = None) -> str:
    """The report in lines; `now` is the clock by which it is told how long ago something was."""
    now = now or datetime.now(UTC)
    lines = [f"{report.checkpoint}: {_when(report.at, now)}{', and its input has ended' if report.closed else ''}"]
    if report.asked is not None:
        return "\n".join([*lines, *_asked(report.asked, now)])
    blocking = [waits for waits in report.waits if waits.blocks]
    keeping = [waits for waits in report.waits if not waits.blocks]
    if not blocking:
        lines.append("Nothing waits.")
    for waits in (*blocking, *keeping):
        lines += _waits(waits, now)
    return "\n".join(lines)


def _waits(waits: Waits, now: datetime) -> Iterator[str]:
    what = _number(waits.count, waits.what)
    verb = "waits" if waits.count == 1 else "wait"
    held = f"{what} {verb}" if waits.blocks else f"{what} {'is' if waits.count == 1 else 'are'} kept for others"
    since = f", {'the oldest ' if waits.count > 1 else ''}since {_when(waits.since, now)}" if waits.since else ""
    left = f"; the last one left in {_when(waits.progress, now)}" if waits.progress else "; none has left yet"
    yield f"{waits.operator}: {held}{since}{left}"
    for example in waits.examples:
        key = ", ".join(f"{name}={value}" for name, value in example.key) or "the only group"
        yield f"  {key} {_needs(example.needs, now, example.since)}"
    if waits.count > len(waits.examples):
        yield f"  and {waits.count - len(waits.examples):,} more"


def _number(count: int, what: str) -> str:
    """How many there are of something, which is named in the plural."""
    first, space, rest = what.partition(" ")
    if first.endswith("s"):
        return f"{counted(count, first[:-1])}{space}{rest}"
    second, space, more = rest.partition(" ")
    return f"{count:,} {first} {second.removesuffix('s') if count == 1 else second}{space}{more}"


def _needs(needs: Sequence[Need], now: datetime, waits_since: SliceTime | None = None) -> str:
    missing = [need for need in needs if need.missing]
    said = [need for need in needs if not need.missing]
    parts = [_missing(need) for need in missing]
    parts += [f"{need.source} said it{_ago(need.said, now)}{_holding(need)}" for need in said[:3]]
    since = "" if waits_since is None else f" since {_when(waits_since, now)},"
    if not missing:
        return f"waits{since} and lacks nothing that is known: {'; '.join(parts) or 'no input is left'}"
    return f"waits{since} for {'; '.join(parts)}"


def _missing(need: Need) -> str:
    shown = ", ".join(need.missing[:3]) + (f" and {len(need.missing) - 3:,} more" if len(need.missing) > 3 else "")
    if need.rule is not None:
        return f"{need.source} ({need.rule}): {shown}"
    promise = f"which promises {'; '.join(need.promised)}" if need.promised else "which promises nothing of the kind"
    return f"{need.source}: {shown}, {promise}"


def _asked(asked: Asked, now: datetime) -> Iterator[str]:
    if asked.is_out:
        yield f"{asked.key} is out, and final{_final(asked.since, now)}."
    else:
        yield f"{asked.key} is not final: it {_needs(asked.needs, now)}"
    for operator, count in asked.held or ():
        yield f"  {operator} holds {counted(count, 'row')} of it"
    if not asked.is_out and asked.held == ():
        yield "  no operator holds anything of it yet"


def _final(since: SliceTime | None, now: datetime) -> str:
    return f" since {_when(since, now)}" if since is not None else ""


def _when(at: SliceTime, now: datetime) -> str:
    before = " or before" if at.or_before else ""
    return f"slice {at.slice}{before}, {_span(now - at.time)} ago"


def _holding(need: Need) -> str:
    """How long it holds, where that is not for ever; behind it the keys are new."""
    return f", {need.holds}" if need.holds else ""


def _ago(at: SliceTime | None, now: datetime) -> str:
    if at is None:
        return ""
    more = " or more" if at.or_before else ""
    return f" {_span(now - at.time)}{more} ago, in slice {at.slice}{' or before' if at.or_before else ''}"


def _span(span: timedelta) -> str:
    """A span of time in its largest unit.

    >>> _span(timedelta(seconds=40)), _span(timedelta(minutes=90)), _span(timedelta(days=3))
    ('40 s', '90 min', '3 days')
    """
    seconds = max(0, round(span.total_seconds()))
    unit, size = next(((unit, size) for unit, size in _UNITS if seconds >= 2 * size), ("s", 1))
    number = seconds // size
    return f"{number} {unit}{'s' if unit == 'day' else ''}"
