"""Punctuation by streams: what each document stream of a source has closed is closed in the source.

Where each document, or each directory of documents, is a stream, an attribute of the items has the number of theirs
(`STREAM`), and each punctuation restricts it: `<(,7], 2>` is what stream 2 has closed. The streams that have begun and
have not ended are *open*. What all open ones have closed holds for the source: the meets of their punctuations, as of a
merge. A stream that ends closes everything, `<*, 2>`: no other one waits for it. While none is open, what any of them
had closed before its end is closed; what is behind that may come in a stream that begins later. A stream that begins
has closed what the source has: its tuples that are behind that are late.

Some attributes tell streams apart: the keys of partitions, and the members of a roster. A punctuation of one stream on
constants of such attributes holds for all streams at once, since no other has tuples of these values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass
from xmlstream.operators.punctuators.rule import Facts, Rule, added, some_closed_more, unless_late, with_ended
from xmlstream.operators.state.operator_state import NewPunctuations, OperatorState
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.punct_ns.pattern import Constant, Pattern, matches
from xmlstream.punct_ns.punctuation import Punctuation, listed
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema, written_name
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import STREAM, own

if TYPE_CHECKING:
    import pyarrow as pa

    from xmlstream.operators.frames.frame import Frame

_CLOSED = own("closed")

_BEGUN, _FIRST, _OVER = "begun", "first", "over"
"""The number of streams that have begun; that number when the source first closed something; what those had closed that
have ended."""

MOST_OVER = 1 << 10
"""The number of ranges and single values that ended streams had closed, and that are kept while others are open."""


@dataclass(slots=True)
class OpenStreams(NewPunctuations):
    """Scratch of a slice: the numbers of the streams that are open at its end."""

    numbers: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class ByStreams(Rule):
    """What every open stream has closed is closed.

    Attributes:
        keys: Attributes whose values together belong to one stream each: the punctuations on constants of all
            attributes of one of these hold for all streams.
    """

    keys: tuple[tuple[str, ...], ...] = ()

    @property
    def name(self) -> str:
        return "streams"

    def __str__(self) -> str:
        return "; ".join(["all streams", *(f"by {', '.join(map(written_name, some))}" for some in self.keys)])

    @property
    def closes(self) -> str:
        others = ", or one closed values of its own," if self.keys else ""
        return f"the streams that were open{others} closed its values"

    @property
    def cure(self) -> str:
        begins = "a stream that begins later goes on behind what is closed"
        keys = (f"with partitionedBy {', '.join(some)}, or a roster of it" for some in self.keys)
        return "; ".join([*(f"{key}, a value that one stream closes is closed in all" for key in keys), begins])

    def require(self, schema: Schema) -> None:
        """The input has the number of the stream, and the keys."""
        for name in (STREAM, *(name for some in self.keys for name in some)):
            schema.attribute(name)

    def promises(self, schemes: Sequence[Scheme] = ()) -> tuple[Scheme, ...]:
        """The schemes of the streams, without their numbers."""
        found = []
        for scheme in schemes:
            others = tuple(term for term in scheme.terms if term.attribute != STREAM)
            if others and len(others) < len(scheme.terms):
                found.append(Scheme(others))
        return tuple(found)

    def state_schema(self, schema: Schema) -> StateSchema:
        """The numbers of streams, and what those that have ended had closed."""
        return StateSchema(sets={_OVER: schema}, notes=[_BEGUN, _FIRST])

    def end(self, punctuations: Sequence[Punctuation], state: OperatorState) -> None:
        """Keeps what the streams had closed that end with these new punctuations, as far as it is not much."""
        over, sent, at = state.punctuations(_OVER), state.punctuations("sent").set, state.inputs[0].index(STREAM)
        ended = [p.patterns[at] for p in punctuations if p.restricted == (at,)]
        if ended and over.extent < MOST_OVER:
            known = (Punctuation.at(p.schema, _without(p, at)) for each in ended for p in _given(sent, {at: each}))
            over.absorb([p for p in known if not sent.covers(p)])

    def flagged(self, tuples: Frame, state: OperatorState) -> Frame:
        """Late is a tuple that the source had closed before the slice; its stream has begun since then."""
        return unless_late(with_ended(tuples, state, _CLOSED), _CLOSED).drop(_CLOSED)

    def facts_of(self, rows: pa.Table, state: OperatorState) -> Facts | None:
        """Nothing, where no tuple can be late."""
        return None if self.may_be_late(state) else {}

    def may_be_late(self, state: OperatorState) -> bool:
        """Whether a tuple may be late that is not late in its stream: what others have closed binds it, too."""
        first = state.notes.get(_FIRST)
        return bool(added(state).set) and (bool(self.keys) or first is None or int(first) < self.begun(state))

    def new_punctuations(self, flagged: Frame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """None but those that follow."""
        return []

    def is_passed(self, state: OperatorState) -> bool:
        """Whether some open streams have closed what others have not."""
        return some_closed_more(state.punctuations("sent").set, state.inputs[0].index(STREAM))

    def following(self, new: Sequence[Punctuation], state: OperatorState) -> list[Punctuation]:
        """What all open streams have closed, and what one has of values that are its own, because of new ones."""
        sent, at = state.punctuations("sent"), state.inputs[0].index(STREAM)
        each = [p for p in new if at in p.restricted]
        if not each:
            return []
        shared = [Punctuation.at(p.schema, _without(p, at), p.lifespan) for p in each if self._is_own(p)]
        streams, over = range(self.begun(state)), state.punctuations(_OVER)

        def of_all(closed: PunctuationSet, *, new: Sequence[Punctuation]) -> list[Punctuation]:
            return common(closed, new, at, streams)

        if any(True for _ in open_streams(sent.lasting, at, streams)):
            found = [*shared, *sent.following(each, of_all)]
        elif state.scratch(OpenStreams).numbers:
            found = [Punctuation.all(sent.set.schema)]  # each has closed everything before its end
        else:
            found = [*shared, *over.set]
            over.forget(found)
        if found and _FIRST not in state.notes:
            state.notes[_FIRST] = str(self.begun(state))
        return found

    def broken(self, values: Facts, flagged: Frame, schema: Schema) -> tuple[Punctuation, str]:
        """The punctuation of wildcards: those of earlier slices alone make a tuple late, and they are known."""
        return Punctuation.all(schema), ""

    def begin(self, streams: int, numbers: Collection[int], state: OperatorState) -> None:
        """Counts the streams that have begun with the slice; these numbers are those of the open ones."""
        state.notes[_BEGUN] = str(streams)
        state.scratch(OpenStreams).numbers = numbers

    def begun(self, state: OperatorState) -> int:
        """The number of streams that have begun."""
        return int(state.notes.get(_BEGUN) or 1)

    def _is_own(self, p: Punctuation) -> bool:
        """Whether it is about values that belong to one stream."""
        return any(all(listed(p.patterns[p.schema.index(name)]) for name in some) for some in self.keys)


def common(closed: PunctuationSet, new: Iterable[Punctuation], at: int, streams: range) -> list[Punctuation]:
    """What all open streams have closed, because of new punctuations, which the set has; nothing if none is open.

    Args:
        closed: What the streams have closed.
        new: The new punctuations among that.
        at: The place of the number of the stream.
        streams: The numbers of the streams that have begun.

    >>> schema = Schema.parse("hour INT, stream BIGINT NOT NULL")
    >>> every = [Punctuation.parse(text, schema) for text in ("<(,7], 0>", "<(,5], 1>", "<*, 2>")]
    >>> [str(p) for p in common(PunctuationSet(schema, every), every, 1, range(3))]
    ['<(,5], *>']
    """
    schema, left = closed.schema, list(open_streams(closed, at, streams))
    if not left:
        return []
    found = list(PunctuationSet(schema, (Punctuation.at(schema, _without(p, at)) for p in new)))
    given = [{i: p.patterns[i] for i in p.restricted} for p in found]
    near = {entry.punctuation: None for each in given for entry in closed.several(each)}
    of_streams: dict[int, list[Punctuation]] = {number: [] for number in left}
    for p in near:
        if at in p.restricted:
            alone = Punctuation.at(schema, _without(p, at))
            for number in _among(p.patterns[at], left, of_streams):
                of_streams[number].append(alone)
    for some in of_streams.values():
        found = PunctuationSet(schema, some).meets(found) if some else []
        if not found:
            break
    return found


def open_streams(closed: PunctuationSet, at: int, streams: range) -> Iterator[int]:
    """The numbers of the streams that have not ended, of these that have begun."""
    if at not in closed.singles:
        yield from () if closed.is_all else streams
        return
    begin = streams.start
    for low, high in closed.singles[at].value_set().intervals():
        yield from range(begin, min(int(low), streams.stop))
        begin = max(begin, int(high))
    yield from range(begin, streams.stop)


def _among(pattern: Pattern, left: Sequence[int], known: dict[int, list[Punctuation]]) -> Sequence[int]:
    """The numbers that a pattern matches, among those that are left."""
    if isinstance(pattern, Constant):
        return [pattern.value] if pattern.value in known else []  # type: ignore[list-item]
    return [number for number in left if matches(pattern, number)]


def _given(closed: PunctuationSet, given: Mapping[int, Pattern]) -> Iterator[Punctuation]:
    """The punctuations that restrict several attributes, these to given values."""
    return (entry.punctuation for entry in closed.several(given) if given.keys() <= set(entry.restricted))


def _without(p: Punctuation, at: int) -> dict[int, Pattern]:
    return {i: p.patterns[i] for i in p.restricted if i != at}
