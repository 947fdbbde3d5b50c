"""Report of what a query waits for as of a commit: as data, as JSON for programs and live pages, and as text.

For each operator: the rows that it keeps, and which source must send which punctuation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from xmlstream.dataclasses import dataclass
from xmlstream.diagnosis.missing import SliceTime
from xmlstream.operators.storage.records import Record
from xmlstream.punct_ns.errors import counted, few, in_units

_SHOWN = 3
"""The most tuples so far that a report in words shows."""


@dataclass(frozen=True, slots=True)
class Need(Record):
    """A punctuation that a source, or a rule of punctuate, must send or has sent.

    Attributes:
        wanted: The required punctuation, in notation.
        missing: The parts that it has not sent, in notation; empty if it has sent all.
        sent: When it sent the punctuation; None if it has not.
        promised: Schemes of the source that promise the punctuation; empty if none does.
        rule: The rule that must send it; None for a source.
        holds: Lifespan of the punctuation that it has sent, in notation (`until …`, `while …`); None for ever.
        behind: The senders on a roster that have not gone past it while others have, in words.
    """

    sparse = ("behind",)

    source: str
    wanted: str
    missing: tuple[str, ...]
    sent: SliceTime | None
    promised: tuple[str, ...]
    rule: str | None = None
    holds: str | None = None
    behind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Example(Record):
    """A group or a tuple that waits.

    Attributes:
        key: Its identifying attributes and their values, in notation.
        needs: The punctuations that it waits for.
        since: When it came (of a group, its first tuple); None if the checkpoint does not record it.
    """

    key: Mapping[str, str]
    needs: tuple[Need, ...]
    since: SliceTime | None = None


@dataclass(frozen=True, slots=True)
class Waits(Record):
    """The rows in one log of an operator.

    Attributes:
        what: Kind of its rows: `groups`, `tuples of the left side`.
        blocks: Whether the rows go out in the end; else they are kept for later tuples, and then purged.
        since: When the oldest row came; None if the checkpoint does not record it.
        progress: When a row last left.
        examples: The rows that wait longest; among equals the first in order of their keys.
    """

    operator: str
    log: str
    what: str
    count: int
    blocks: bool
    since: SliceTime | None
    progress: SliceTime | None
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Cause(Record):
    """A source, or a rule of punctuate, that the oldest rows of some operators wait for.

    Attributes:
        rows: Number of rows in the logs whose oldest row waits for it.
        what: These rows with their nouns, in words: `37 groups`.
        results: Names of the results that these rows belong to; empty if the plan has only one.
        since: When the oldest row came; None if the checkpoint does not record it.
        missing: The punctuations that the oldest rows lack, in notation.
        is_last: Whether all other sources have sent what an oldest row needs.
        senders: The senders on a roster that a rule waits for while others have gone on, in words.
    """

    source: str
    rule: str | None
    rows: int
    results: tuple[str, ...]
    since: SliceTime | None
    missing: tuple[str, ...]
    is_last: bool
    senders: tuple[str, ...] = ()
    what: str = ""

    def __str__(self) -> str:
        by = f" ({self.rule})" if self.rule else ""
        of = f" of {', '.join(self.results)}" if self.results else ""
        return f"{self.source}{by}: {self.what}{of}"


def causes(waits: Iterable[Waits], results: Mapping[str, Collection[str]]) -> Iterator[Cause]:
    """What the oldest rows wait for, one entry for each source, those with most rows first.

    Args:
        waits: The kept rows.
        results: For each result, if there are several, the operators that take part in it.
    """
    found: dict[tuple[str, str | None], list[tuple[Waits, Need]]] = {}
    for each in waits:
        for need in each.examples[0].needs if each.blocks and each.examples else ():
            if need.missing:
                found.setdefault((need.source, need.rule), []).append((each, need))
    for (source, rule), held in sorted(found.items(), key=lambda item: -sum(each.count for each, _ in item[1])):
        ages = [each.since for each, _ in held if each.since is not None]
        others = [need for each, _ in held for need in each.examples[0].needs if need.source != source]
        yield Cause(
            source,
            rule,
            sum(each.count for each, _ in held),
            tuple(name for name, of in results.items() if any(each.operator in of for each, _ in held)),
            min(ages, key=lambda at: at.slice, default=None),
            tuple(dict.fromkeys(text for _, need in held for text in need.missing))[:3],
            bool(others) and not any(need.missing for need in others),
            tuple(dict.fromkeys(sender for _, need in held for sender in need.behind)),
            all_in_numbers(each for each, _ in held),
        )


def all_in_numbers(waits: Iterable[Waits]) -> str:
    """The rows of some logs with their nouns, those of one kind together: `37 groups, 2 tuples`."""
    counts: Counter[str] = Counter()
    for each in waits:
        counts[each.what] += each.count
    return ", ".join(in_numbers(count, what) for what, count in counts.items())


@dataclass(frozen=True, slots=True)
class WaitingAnswer(Record):
    """Whether the results with a key are out, and which punctuations they wait for.

    Attributes:
        key: The key: `hour=17`.
        result: Name of the operator that emits the results.
        out: Whether all these results are out, and no more follow.
        since: The slice since which they are out.
        held: Number of rows with the key by operator; None if no operator keeps the attributes of the key.
        needs: The punctuations that the results wait for.
        so_far: The tuples that would go out if the input ended now; None if that was not computed.
        undecided: Whether later tuples may keep these from going out.
    """

    sparse = ("so_far", "undecided")

    key: str
    result: str
    out: bool
    since: SliceTime | None
    held: Mapping[str, int] | None
    needs: tuple[Need, ...]
    so_far: tuple[Mapping[str, Any], ...] | None = None
    undecided: bool | None = None


@dataclass(frozen=True, slots=True)
class WaitingReport(Record):
    """What a query waits for as of its last commit.

    Attributes:
        closed: Whether the input has ended for good.
        waits: The kept rows by operator and log, inputs first.
        answer: The answer for a key, if one was given.
        causes: What the oldest rows wait for, by source.
        silent: The sources that are silent, each with a sentence on it: what the run noticed.
        better: Joins that would keep less otherwise, each with a sentence on it.
    """

    sparse = ("better",)

    checkpoint: str
    at: SliceTime
    closed: bool
    waits: tuple[Waits, ...]
    answer: WaitingAnswer | None = None
    causes: tuple[Cause, ...] = ()
    silent: tuple[str, ...] = ()
    better: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        found = Record.json(self)
        del found["at"]
        return {**found, "slice": self.at.slice, "time": self.at.time.isoformat()}


def in_words(report: WaitingReport, now: datetime | None = None) -> str:
    """The report as text; ages are relative to `now`, by default the current time."""
    now = now or datetime.now(UTC)
    lines = [f"{report.checkpoint}: {_when(report.at, now)}{', and its input has ended' if report.closed else ''}"]
    if report.answer is not None:
        return "\n".join([*lines, *_answer(report.answer, now)])
    blocking = [waits for waits in report.waits if waits.blocks]
    keeping = [waits for waits in report.waits if not waits.blocks]
    lines += (f"noticed in {each}" for each in (*report.silent, *report.better))
    if not blocking:
        lines.append("Nothing waits.")
    if len(blocking) > len(report.causes):
        lines += [f"{each}{f', since {_when(each.since, now)}' if each.since else ''}" for each in report.causes]
    for waits in (*blocking, *keeping):
        lines += _waits(waits, now)
    return "\n".join(lines)


def _waits(waits: Waits, now: datetime) -> Iterator[str]:
    what = in_numbers(waits.count, waits.what)
    verb = "waits" if waits.count == 1 else "wait"
    held = f"{what} {verb}" if waits.blocks else f"{what} {'is' if waits.count == 1 else 'are'} kept for later tuples"
    since = f", {'the oldest ' if waits.count > 1 else ''}since {_when(waits.since, now)}" if waits.since else ""
    left = f"; the last one left in {_when(waits.progress, now)}" if waits.progress else "; none has left yet"
    yield f"{waits.operator}: {held}{since}{left}"
    for example in waits.examples:
        key = ", ".join(f"{name}={value}" for name, value in example.key.items()) or "the only group"
        yield f"  {key} {_needs(example.needs, now, example.since)}"
    if waits.count > len(waits.examples):
        yield f"  and {waits.count - len(waits.examples):,} more"


def in_numbers(count: int, what: str) -> str:
    """A number with its noun; the noun is given in the plural."""
    first, space, rest = what.partition(" ")
    if first.endswith("s"):
        return f"{counted(count, first[:-1])}{space}{rest}"
    second, space, more = rest.partition(" ")
    return f"{count:,} {first} {second.removesuffix('s') if count == 1 else second}{space}{more}"


def _needs(needs: Sequence[Need], now: datetime, waits_since: SliceTime | None = None) -> str:
    missing = [need for need in needs if need.missing]
    sent = [need for need in needs if not need.missing]
    parts = [_missing(need) for need in missing]
    parts += [
        f"{need.source} sent it{_ago(need.sent, now)}{f', {need.holds}' if need.holds else ''}" for need in sent[:3]
    ]
    since = "" if waits_since is None else f" since {_when(waits_since, now)},"
    if not missing:
        return f"waits{since} but no missing punctuation is known: {'; '.join(parts) or 'no input is left'}"
    return f"waits{since} for {'; '.join(parts)}"


def _missing(need: Need) -> str:
    shown = few(need.missing)
    of = f"; it waits for {few(need.behind)}" if need.behind else ""
    if need.rule is not None:
        return f"{need.source} ({need.rule}): {shown}{of}"
    promise = f"which promises {'; '.join(need.promised)}" if need.promised else "which promises no such punctuation"
    return f"{need.source}: {shown}, {promise}{of}"


def _answer(answer: WaitingAnswer, now: datetime) -> Iterator[str]:
    if answer.out:
        since = f" since {_when(answer.since, now)}" if answer.since is not None else ""
        yield f"{answer.key} is out, and final{since}."
    else:
        yield f"{answer.key} is not final: it {_needs(answer.needs, now)}"
    for operator, count in (answer.held or {}).items():
        yield f"  {operator} holds {counted(count, 'row')} of it"
    for row in (answer.so_far or ())[:_SHOWN]:
        texts = (f"{name}={'null' if value is None else value}" for name, value in row.items())
        yield f"  so far{', undecided' if answer.undecided else ''}: {', '.join(texts)}"
    if (more := len(answer.so_far or ()) - _SHOWN) > 0:
        yield f"  and {more:,} more; xmlstream so-far shows all"
    if not answer.out and answer.held == {}:
        yield "  no operator holds a row of it yet"


def _when(at: SliceTime, now: datetime) -> str:
    before = " or before" if at.or_before else ""
    return f"slice {at.slice}{before}, {in_units(now - at.time)} ago"


def _ago(at: SliceTime | None, now: datetime) -> str:
    if at is None:
        return ""
    more = " or more" if at.or_before else ""
    return f" {in_units(now - at.time)}{more} ago, in slice {at.slice}{' or before' if at.or_before else ''}"
