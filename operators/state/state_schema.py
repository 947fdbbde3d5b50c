"""State schema of an operator: the names of its tuple logs, punctuation sets and notes, and what each of them holds.

An operator declares it, as it does its output's schema. For each log it declares once what the rows are, their input,
until when they are kept, and which punctuations a row waits for. From that follow the verdict before a query runs
(Tucker et al. 2007, Table 3) and the account of what a query waits for while it runs.

A commit records what is declared, by name, and a restart takes up just that: state that was recorded under another name
is refused, and never read as empty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.closing_conditions import ALWAYS, Either, Grouping, StateModel
from xmlstream.operators.required_punctuations import Held, Row, Way, same, whole
from xmlstream.operators.state.expiring_set import Entry
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT, LogRecord, Record
from xmlstream.punct_ns.errors import StateError
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.sql_type import StringType

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame

Combine = Callable[["Frame", Sequence[str]], "Frame"]
"""Combines rows of several slices, for example the partial aggregates of a group to one row.

It must be idempotent, and may be applied to any part of the rows that holds all or no rows of each key. The names are
the columns of the rows' ages (`xmlstream.operators.state.ages`); the result has these columns, too.
"""

Touching = Callable[["Frame", "Frame", int], "Frame"]
"""Selects, from kept rows, those that new rows change when both are combined; the number is that of the new rows."""


Awaited = Callable[[Row, Held], Sequence[Way]]
"""Returns the ways that meet a kept row, from the row and the other state of its operator."""


@dataclass(frozen=True, slots=True)
class LogSchema:
    """A tuple log: what its rows are, until when they are kept, and how they combine, if they do.

    Attributes:
        purging: The attributes of the punctuations that purge it.
        models: For each kind of rows, what they are, their input, and until when they are kept. Without any model,
            it holds facts for its operator, at most one for each key.
        what: The name of waiting rows; by default that of the first model.
        names: The attributes that determine what a row waits for; by default those of the grouping that closes it.
        beside: Extra stored columns that also determine what a row waits for.
        blocks: Whether a row goes out once it is met; otherwise it is only kept for other rows, and then forgotten.
        undecided: Whether later tuples may keep a row that waits from going out.
        awaits: The ways that meet a row; by default, the end of the tuples that agree with it on `names`.
        combine: Combines rows of several slices.
        key: The attributes of `purging` that keep rows apart when they are combined: rows that differ in them stay as
            they are. A large log then has new rows combined with those of their keys alone. Without them, all rows are.
        shown: Makes overdue rows readable for people, if they are no tuples.
        touching: If given, combining changes the attributes of `purging`, so that no row may be purged before it is
            combined; these attributes distinguish combined rows.
    """

    purging: Schema
    models: tuple[StateModel, ...] = ()
    what: str = ""
    names: tuple[str, ...] = ()
    beside: tuple[Attribute, ...] = ()
    blocks: bool = True
    undecided: bool = False
    awaits: Awaited | None = None
    combine: Combine | None = None
    key: tuple[str, ...] = ()
    shown: Callable[[Frame], Frame] | None = None
    touching: Touching | None = None

    def __post_init__(self) -> None:
        if self.models:
            first = self.models[0]
            object.__setattr__(self, "what", self.what or first.what)
            if not self.names and isinstance(first.until, Grouping):
                object.__setattr__(self, "names", first.until.attributes)

    @property
    def of(self) -> int | None:
        """The input whose tuples it keeps until punctuations come; None if it keeps a fixed number for later ones."""
        return next((model.input for model in self.models if self.undecided or not model.is_fixed), None)

    @property
    def waits(self) -> bool:
        """Whether its rows wait for punctuations."""
        return any(model.until != ALWAYS for model in self.models)

    def ways(self, row: Row, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The ways that meet a row: the punctuations of the inputs that it waits for.

        Args:
            row: A row, by the names of `names` and `beside`.
            held: The operator's other state, and the meaning of its expressions.
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
class OperatorRecord(Record):
    """The state of a source or an operator in a commit: the changes of its sets, its logs, and its notes."""

    format: int | None = None
    sets: Mapping[str, Sequence[Entry]] = field(default_factory=dict)
    kept: Mapping[str, LogRecord] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def checksums(self) -> dict[str, str]:
        """The checksums of its segments, by their names."""
        return {name: checksum for log in self.kept.values() for name, checksum in log.checksums.items()}


@dataclass(frozen=True, slots=True)
class StateSchema:
    """The state that an operator keeps from slice to slice.

    Attributes:
        logs: Tuple logs, by name.
        sets: Punctuation sets, by name: the schema of their punctuations.
        waiting: The same for sets of punctuations that kept tuples block.
        from_source: The same for sets of all punctuations of a source, which are never forgotten.
        notes: Names of facts in JSON; a fact without a value is not recorded.
    """

    logs: Mapping[str, LogSchema] = field(default_factory=dict)
    sets: Mapping[str, Schema] = field(default_factory=dict)
    notes: Collection[str] = ()
    waiting: Mapping[str, Schema] = field(default_factory=dict)
    from_source: Mapping[str, Schema] = field(default_factory=dict)

    @property
    def models(self) -> list[StateModel]:
        """The kept rows, and until when; equal models of several logs count once."""
        return list(dict.fromkeys(model for log in self.logs.values() for model in log.models))

    @property
    def waiting_logs(self) -> dict[str, LogSchema]:
        """The logs whose rows wait for punctuations, by name."""
        return {name: log for name, log in self.logs.items() if log.waits}

    def __or__(self, other: StateSchema) -> StateSchema:
        """The state of both."""
        return StateSchema(
            {**self.logs, **other.logs},
            {**self.sets, **other.sets},
            (*self.notes, *other.notes),
            {**self.waiting, **other.waiting},
            {**self.from_source, **other.from_source},
        )

    def runs(self, from_source: str) -> dict[str, str]:
        """For a set that is never forgotten, the names of the logs that store its values on disk, by attribute."""
        strings = (a.name for a in self.from_source[from_source] if isinstance(a.domain.sql, StringType))
        return {name: f"{from_source} {name}" for name in strings}

    def require(self, record: OperatorRecord) -> None:
        """Checks that a record is of this state.

        Raises:
            StateError: The record has another format, undeclared names, or lacks declared ones.
        """
        if record.format != CHECKPOINT_FORMAT:
            known = f"and this version of xmlstream reads {CHECKPOINT_FORMAT}"
            raise _refused(f"the recorded state has format {record.format}, {known}")
        for what, recorded, names in (
            (
                "logs",
                record.kept.keys(),
                {*self.logs, *(log for name in self.from_source for log in self.runs(name).values())},
            ),
            ("punctuation sets", record.sets.keys(), {**self.sets, **self.waiting, **self.from_source}),
            ("notes", record.notes.keys(), self.notes),
        ):
            if recorded - set(names) or (set(names) - recorded and what != "notes"):
                before, now = (", ".join(sorted(which)) or "none" for which in (recorded, names))
                raise _refused(
                    f"the recorded state has the {what} {before}; in this version of xmlstream they are {now}"
                )


def _refused(what: str) -> StateError:
    hint = "finish the query with the version that wrote it, or begin anew with another checkpoint and output"
    return StateError(what, hint=hint)
