"""State schema of an operator: the names of its tuple logs, punctuation sets and notes, and what each of them holds.

An operator declares it, as it does its output's schema. Of each log it declares once what the rows are, of which input,
until when they are kept, and which punctuations a row waits for. From that follow the verdict before a query runs
(Tucker et al. 2007, Table 3) and the account of what a query waits for while it runs.

A commit records what is declared, by name, and a restart takes up just that: state that was recorded under another name
is refused, and never read as empty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from operators.closing_conditions import ALWAYS, Either, Grouping, StateModel
from operators.required_punctuations import Held, Row, Way, same, whole
from punct_ns.errors import StateError
from punct_ns.schema import Attribute, Schema
from punct_ns.sql_type import StringType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STATE_FORMAT = 4
"""Of an operator's record, and of the files that it names. It changes when what was recorded must be read otherwise."""


Combine = Callable[["DataFrame", Sequence[str]], "DataFrame"]
"""What rows of several slices come to, such as the partial aggregates of a group to one.

It must be idempotent, and may be applied to any part of the rows that no key straddles. The names are the columns of
their ages (`operators.state.ages`), which what they come to bears, too.
"""

Touching = Callable[["DataFrame", "DataFrame", int], "DataFrame"]
"""Of rows those that change when others, of which there are so many, are combined with them."""


Awaited = Callable[[Row, Held], Sequence[Way]]
"""The ways in which a kept row is met, from the row and what else its operator keeps."""


@dataclass(frozen=True, slots=True)
class LogSchema:
    """A tuple log: what its rows are, until when they are kept, and how they combine, if they do.

    Attributes:
        purging: The attributes of the punctuations that purge it.
        models: What its rows are, of which input, and until when they are kept; several where it holds rows of several
            kinds. Without any it notes facts for its operator, as many as there are keys.
        what: What its rows are called while they wait; by default as in the first of the models.
        names: The attributes that determine what a row waits for; by default those of the grouping that it waits for.
        beside: Further columns that rows are kept with, which also determine it.
        blocks: Whether a row goes out once it is met; else it is only kept for others, and then forgotten.
        awaits: The ways in which a row is met; by default, that the tuples come no more which agree with it on `names`.
        combine: How rows of several slices become one.
        shown: Makes of overdue rows what people understand, where they are no tuples.
        touching: With it, combining changes what punctuations speak of, so that no row may be purged before it is
            combined; the attributes of `purging` tell combined rows apart.
    """

    purging: Schema
    models: tuple[StateModel, ...] = ()
    what: str = ""
    names: tuple[str, ...] = ()
    beside: tuple[Attribute, ...] = ()
    blocks: bool = True
    awaits: Awaited | None = None
    combine: Combine | None = None
    shown: Callable[[DataFrame], DataFrame] | None = None
    touching: Touching | None = None

    def __post_init__(self) -> None:
        if self.models:
            first = self.models[0]
            object.__setattr__(self, "what", self.what or first.what)
            if not self.names and isinstance(first.until, Grouping):
                object.__setattr__(self, "names", first.until.attributes)

    @property
    def of(self) -> int | None:
        """The input whose tuples it keeps until something comes; None where so many are kept of each key."""
        return next((model.input for model in self.models if not model.is_fixed), None)

    @property
    def waits(self) -> bool:
        """Whether its rows wait for punctuations."""
        return any(model.until != ALWAYS for model in self.models)

    def ways(self, row: Row, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The ways in which a row is met: the punctuations of the inputs that it waits for.

        Args:
            row: A row, by the names of `names` and `beside`.
            held: What else the operator keeps, and what its expressions mean.
            inputs: The schemas of the operator's inputs.
        """
        if self.awaits is not None:
            return self.awaits(row, held)
        until = self.models[0].until
        groupings = until.conditions if isinstance(until, Either) else (until,)
        closing = [grouping for grouping in groupings if isinstance(grouping, Grouping)]
        ways = [((g.input, same(row, self.names, self.purging, g.attributes, inputs[g.input])),) for g in closing]
        return ways or [whole(*inputs)]


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

    @property
    def models(self) -> list[StateModel]:
        """What is kept, and until when; a log that declares the same as the one before it counts as one with it."""
        found: list[StateModel] = []
        for model in (model for log in self.logs.values() for model in log.models):
            if not found or model != found[-1]:
                found.append(model)
        return found

    @property
    def waiting_logs(self) -> dict[str, LogSchema]:
        """The logs whose rows wait for punctuations, by name."""
        return {name: log for name, log in self.logs.items() if log.waits}

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
        if (number := record.get("format")) != STATE_FORMAT:
            raise _refused(
                f"the recorded state has format {number}, and this version of xmlstream reads {STATE_FORMAT}"
            )
        for what, key, names in (
            ("logs", "kept", {*self.logs, *(log for name in self.heard for log in self.runs(name).values())}),
            ("punctuation sets", "sets", {**self.sets, **self.waiting, **self.heard}),
            ("notes", "notes", self.notes),
        ):
            found = record.get(key, {}).keys()
            if found - set(names) or (set(names) - found and key != "notes"):
                before, now = (", ".join(sorted(which)) or "none" for which in (found, names))
                raise _refused(
                    f"the recorded state has the {what} {before}; in this version of xmlstream they are {now}"
                )


def _refused(what: str) -> StateError:
    hint = "finish it with the version that wrote it, or begin anew with another checkpoint and output"
    return StateError(what, hint=hint)
