"""The grammar of a punctuated stream: after a punctuation no tuple comes that it matches (Tucker et al. 2003, §3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from punct_ns.punctuation_set import PunctuationSet
from punct_ns.violations import violation

if TYPE_CHECKING:
    from punct_ns.domain import Value
    from punct_ns.errors import UngrammaticalStream
    from punct_ns.punctuation import Punctuation, Tuple
    from punct_ns.schema import Schema


@dataclass(frozen=True, slots=True)
class Offence:
    """A tuple, and the first punctuation before it that matches it, with their positions in the stream.

    The place of the tuple is known where it comes from a document; lines and columns count from 1.
    """

    tuple: tuple[Value | None, ...]
    tuple_position: int
    punctuation: Punctuation
    punctuation_position: int
    document: str | None = None
    line: int | None = None
    column: int | None = None

    def error(self) -> UngrammaticalStream:
        """What to raise where the stream must be grammatical.

        >>> from punct_ns.punctuation import Punctuation
        >>> from punct_ns.schema import Schema
        >>> print(Offence((5,), 9, Punctuation.parse("<5>", Schema.of(hour="INT")), 4, "sensor1.xml").error())
        the tuple (5) comes after the punctuation <5>, which matches it
          sensor1.xml, item at position 9
          Hint: mend the source, or let it drop or divert such tuples with the option ungrammatical
        """
        row = dict(zip(self.punctuation.schema.names, self.tuple, strict=True))
        error = violation(
            row,
            self.punctuation,
            document=self.document,
            line=self.line,
            column=self.column,
            position=self.tuple_position,
        )
        error.punctuation_position = self.punctuation_position
        return error


class GrammarCheck:
    """Reads the items of a stream in order and says of each tuple whether it may come.

    >>> from punct_ns.punctuation import Punctuation
    >>> from punct_ns.schema import Schema
    >>> hour = Schema.of(hour="INT")
    >>> check = GrammarCheck(hour)
    >>> check.tuple(1, (5,)) is None
    True
    >>> check.punctuation(2, Punctuation.parse("<5>", hour))
    >>> check.tuple(3, (5,)).punctuation_position
    2
    """

    def __init__(self, schema: Schema) -> None:
        self._closed = PunctuationSet(schema)
        self._told: list[tuple[int, Punctuation]] = []

    def tuple(self, position: int, values: Tuple) -> Offence | None:
        """The offence of a tuple at its position; None if it is grammatical."""
        if not self._closed.matches(values):
            return None
        told_at, punctuation = next((at, p) for at, p in self._told if p.matches(values))
        return Offence(tuple(values), position, punctuation, told_at)

    def punctuation(self, position: int, p: Punctuation) -> None:
        """Takes note of a punctuation; one that is covered already cannot be the first to match anything."""
        if self._closed.add(p):
            self._told.append((position, p))
