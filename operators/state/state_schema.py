"""State schema of an operator: the names of its tuple logs, punctuation sets and notes, and what each of them holds.

An operator declares it, as it does its output's schema. A commit records what is declared, by name, and a restart takes
up just that: state that was recorded under another name is refused, and never read as empty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from punct_ns.errors import StateError
from punct_ns.schema import Schema
from punct_ns.sql_type import StringType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STATE_FORMAT = 3
"""Of an operator's record, and of the files that it names. It changes when what was recorded must be read otherwise.

A record without a number is of before state was declared: it leaves out the logs and sets that had not been used. In
format 2 the runs of closed strings (`operators.storage.constant_runs`) had no filter beside them.
"""


Combine = Callable[["DataFrame", Sequence[str]], "DataFrame"]
"""What rows of several slices come to, such as the partial aggregates of a group to one.

It must be idempotent, and may be applied to any part of the rows that no key straddles. The names are the columns of
their ages (`operators.state.ages`), which what they come to bears, too.
"""

Touching = Callable[["DataFrame", "DataFrame", int], "DataFrame"]
"""Of rows those that change when others, of which there are so many, are combined with them."""


@dataclass(frozen=True, slots=True)
class LogSchema:
    """A tuple log: the attributes of the punctuations that purge it, and how its rows combine, if they do.

    `of` is the input whose tuples it keeps; None where it notes something for its operator, and has an end by itself.
    `shown` makes of its overdue rows what people understand, where they are no tuples.
    With `touching`, combining changes what punctuations speak of, so that no row may be purged before it is combined;
    the attributes of `purging` tell combined rows apart.
    """

    purging: Schema
    combine: Combine | None = None
    of: int | None = 0
    shown: Callable[[DataFrame], DataFrame] | None = None
    touching: Touching | None = None


@dataclass(frozen=True, slots=True)
class StateSchema:
    """What an operator keeps from slice to slice.

    Attributes:
        logs: Tuple logs, by name.
        sets: Sets of punctuations, by name: the attributes that these are over.
        waiting: The same, of punctuations that kept tuples hold back.
        heard: The same, of all that a source has said, which is never forgotten.
        notes: Facts as JSON has them, by name; one that is not noted yet is not recorded.
    """

    logs: Mapping[str, LogSchema] = field(default_factory=dict)
    sets: Mapping[str, Schema] = field(default_factory=dict)
    notes: Collection[str] = ()
    waiting: Mapping[str, Schema] = field(default_factory=dict)
    heard: Mapping[str, Schema] = field(default_factory=dict)

    def __or__(self, other: StateSchema) -> StateSchema:
        """Both."""
        return StateSchema(
            {**self.logs, **other.logs},
            {**self.sets, **other.sets},
            (*self.notes, *other.notes),
            {**self.waiting, **other.waiting},
            {**self.heard, **other.heard},
        )

    def runs(self, heard: str) -> dict[str, str]:
        """What the logs are called in which values of a set that is never forgotten go to disk, by attribute."""
        strings = (a.name for a in self.heard[heard] if isinstance(a.domain.sql, StringType))
        return {name: f"{heard} {name}" for name in strings}

    def require(self, record: Mapping[str, Any]) -> None:
        """Makes sure that a record is of this state.

        Raises:
            StateError: It names what is not declared, or does not name all that is, or its format is another one.
        """
        number = record.get("format")
        if number not in (None, STATE_FORMAT):
            raise _refused(
                f"the recorded state has format {number}, and this version of xmlstream reads {STATE_FORMAT}"
            )
        for what, key, names in (
            ("logs", "kept", {*self.logs, *(log for name in self.heard for log in self.runs(name).values())}),
            ("punctuation sets", "sets", {**self.sets, **self.waiting, **self.heard}),
            ("notes", "notes", self.notes),
        ):
            found = record.get(key, {}).keys()
            may_lack = number is None or key == "notes"
            if found - set(names) or (set(names) - found and not may_lack):
                before, now = (", ".join(sorted(which)) or "none" for which in (found, names))
                raise _refused(
                    f"the recorded state has the {what} {before}; in this version of xmlstream they are {now}"
                )


def _refused(what: str) -> StateError:
    hint = "finish it with the version that wrote it, or begin anew with another checkpoint and output"
    return StateError(what, hint=hint)
