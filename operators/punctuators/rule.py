"""Rules of punctuate, one for each kind of knowledge: which tuples are late, and which punctuations hold after a slice.

A rule marks the tuples of a slice in the order of their positions: a tuple is late if an earlier tuple, of the same
slice or of one before, has closed its value. A rule that remembers earlier slices adds rows without a position.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from xmlstream.operators.frames.expression import Expression, sql
from xmlstream.operators.frames.matching import condition, is_inline, matching, not_matching
from xmlstream.operators.required_punctuations import Way
from xmlstream.operators.state.closed_set import ClosedSet
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.state_schema import Combine, StateSchema
from xmlstream.punct_ns.domain import Value
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.pattern import Constant, Range
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme, Term
from xmlstream.punct_ns.slices import STREAM, arrow_type, own, quoted

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine, Frame

ASIDE = own("aside")
"""STRING: why a tuple is set aside; null for a tuple that is emitted."""

UNGRAMMATICAL = "ungrammatical"
"""Set aside because an earlier punctuation matches the tuple."""

CONTRADICTORY = "contradictory"
"""Set aside because the tuple and those before it cannot all be as the rule states; reported as ungrammatical."""

AHEAD = "ahead"
"""Set aside because the tuple is implausibly far ahead of those before it."""

Facts = Mapping[str, Any]

DISTANCES = frozenset({"slack", "max_ahead", "delay"})
"""The parameters of rules that do not change what a rule keeps."""


class Rule(Protocol):
    """One kind of knowledge about a stream; by default it keeps and counts nothing.

    Messages show its `name`, plans its text (`str`), which is as in the option `punctuate`.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The rule in a few words."""

    @property
    def closes(self) -> str:
        """What made a tuple late, as the beginning of a sentence."""
        return f"punctuate by {self.name} closed its values"

    @property
    def cure(self) -> str:
        """What helps against late tuples, beside what helps with each rule."""
        return "with more slack, or other properties, the query goes on by --change"

    @property
    def condition(self) -> str | None:
        """The condition on tuples that it has, in Spark SQL; None without one."""
        return None

    def require(self, schema: Schema) -> None:
        """Checks that the rule fits an input of this schema; QueryError or UsageError if it does not."""

    def of_each(self, key: str) -> Rule:
        """The rule among the tuples that agree on an attribute, each for itself: those of one document stream.

        Raises:
            UsageError: The rule compares tuples of different ones.
        """
        return self

    def promises(self, schemes: Sequence[Scheme] = ()) -> tuple[Scheme, ...]:
        """The schemes of the punctuations that the rule adds to an input that promises these schemes."""

    def wanted(self, p: Punctuation) -> Sequence[Way]:
        """The punctuations of the input from which the rule derives `p`, beside `p` itself."""
        return ()

    def awaited(self, p: Punctuation) -> tuple[str, Value] | None:
        """The attribute and the least value of it with which a tuple, or the clock, makes the rule send `p`."""
        return None

    def state_schema(self, schema: Schema) -> StateSchema:
        """The state that the rule keeps for an input of this schema, beside the punctuations that it has added."""
        return StateSchema()

    def flagged(self, tuples: Frame, state: OperatorState) -> Frame:
        """The tuples with the column `ASIDE`, and the rule's own rows, which have no position."""

    def aggregates(self, schema: Schema) -> dict[str, str]:
        """Aggregates over the flagged rows, as Spark SQL by name; `new_punctuations` gets their values."""
        return {}

    def facts_of(self, rows: pa.Table, state: OperatorState) -> Facts | None:
        """The aggregates over few rows that are here, if all are on time; None where the engine must flag them.

        `new_punctuations` gets them without flagged rows.
        """
        return None

    def new_punctuations(self, flagged: Frame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """The punctuations that hold after the slice; `flagged` are its computed rows, None if no tuple came."""

    def is_passed(self, state: OperatorState) -> bool | None:
        """Whether some of the senders that it waits for have closed more than all have; None if the slice tells not."""
        return False

    def following(self, new: Sequence[Punctuation], state: OperatorState) -> list[Punctuation]:
        """The punctuations that follow from new ones of the input and of the rule, which are in the set `sent`."""
        return []

    def broken(self, values: Facts, flagged: Frame, schema: Schema) -> tuple[Punctuation, str]:
        """The punctuation that the first late tuple of a slice breaks, if it was added within that slice; and a remark.

        `flagged` are the computed rows of the slice. The remark is a text such as by how much the tuple is late.
        """

    def contradiction(self, values: Facts, schema: Schema) -> str:
        """A sentence on what a contradictory tuple contradicts, from its computed row; by default there is none."""
        return ""

    def forget(self, closed: Sequence[Punctuation], state: OperatorState) -> None:
        """Forgets what it keeps of what punctuations have closed, its own among them; by default nothing."""
        return


def some_closed_more(closed: PunctuationSet, sender: int) -> bool:
    """Whether a punctuation of some senders, at this place of the schema, closes what is not closed for all."""
    alone = (
        Punctuation.at(closed.schema, {i: p.patterns[i] for i in p.restricted if i != sender})
        for p in (entry.punctuation for entry in closed.several())
        if sender in p.restricted
    )
    return any(not closed.covers(p) for p in alone)


def added(state: OperatorState) -> ClosedSet:
    """The punctuations that punctuate has added, and is responsible for."""
    return state.punctuations("added")


def ordered_attribute(schema: Schema, name: str) -> Attribute:
    """The attribute of that name; QueryError if its type has no order."""
    attribute = schema.attribute(name)
    if attribute.domain.opaque:
        raise QueryError(f"no punctuation can restrict {attribute.name}: {attribute.domain.type} has no order")
    return attribute


def in_each(names: Sequence[str]) -> list[str]:
    """What the text of a rule adds if it holds in each document stream: that the number of the stream is a key."""
    return ["in each stream"] if STREAM in names else []


def prefix_of(name: str) -> tuple[Scheme, ...]:
    """The promise of ever longer prefixes of the attribute."""
    return (Scheme((Term(name, "prefix"),)),)


def up_to(name: str, values: Facts, schema: Schema) -> Punctuation:
    """The punctuation that closes a tuple's value of the attribute of that name, and all values below it."""
    attribute = schema.attribute(name)
    value = attribute.domain.normal(values[attribute.name])
    return Punctuation.of(schema, {name: Range(None, value, high_closed=True)})


def constants(schema: Schema, names: Sequence[str], values: Iterable[object]) -> Punctuation:
    """The punctuation that restricts the attributes of these names to these values, null among them."""
    pairs = [(schema.attribute(name), value) for name, value in zip(names, values, strict=True)]
    return Punctuation.of(schema, {a.name: Constant(None if v is None else a.domain.normal(v)) for a, v in pairs})


def with_ended(tuples: Frame, state: OperatorState, name: str) -> Frame:
    """The tuples with a column of that name: whether a punctuation of an earlier slice, added here, matches them."""
    ended = list(added(state).set)
    if is_inline(ended):
        return tuples.with_column(name, condition(ended))
    late, others = matching(tuples, ended), not_matching(tuples, ended)
    return late.with_column(name, "true").union(others.with_column(name, "false"))


def unless_late(tuples: Frame, late: Expression) -> Frame:
    """The tuples with the column `ASIDE`, where `late` is true for late ones."""
    return tuples.with_column(ASIDE, sql("IF(", late, f", '{UNGRAMMATICAL}', NULL)"))


def greatest_of(keys: Sequence[str], attribute: str) -> Combine:
    """Combines rows to the greatest value of an attribute for each of these keys."""
    greatest = {attribute: f"max({quoted(attribute)})"}
    return lambda rows, _ages: rows.group_by(keys, greatest)


def one_row(engine: Engine, attribute: Attribute, value: Value | None) -> Frame:
    """A row with a value of an attribute: no literal, so that Spark generates the same code in every slice."""
    table = pa.table({attribute.name: pa.array([value], arrow_type(attribute.domain))})
    return engine.rows(table, f"{quoted(attribute.name)} {attribute.domain.type}")
