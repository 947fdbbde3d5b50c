"""The report of what a query waits for, as a commit left it: for people, for programs, for pages that show it live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xmlstream.waiting.sayings import SliceTime


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
