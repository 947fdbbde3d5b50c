"""Grammar of a punctuated stream: no tuple follows a punctuation that matches it (Tucker et al. 2003, §3.1).

A violation is reported in one message, which names the tuple, the punctuation and the positions of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import UngrammaticalStream, place
from xmlstream.punct_ns.notation import format_pattern
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from xmlstream.punct_ns.domain import Value


MEND = "fix the source, or drop or divert such tuples with the option ungrammatical"
"""The hint of a violation, for the operator of the source."""

UNKNOWN = "?"
"""The placeholder for an attribute whose value was not read."""


def written(row: Mapping[str, Any], schema: Schema) -> str:
    """Writes a tuple in the notation of punctuations.

    >>> written({"sid": "*", "hour": None}, Schema.parse("sid STRING, hour INT, min INT"))
    '("*", null, ?)'
    """
    return "(" + ", ".join(_written(row[a.name], a) if a.name in row else UNKNOWN for a in schema) + ")"


def _written(value: Any, attribute: Attribute) -> str:
    if attribute.domain.opaque:
        # Opaque types have no patterns but the wildcard and null.
        return "null" if value is None else str(value)
    return format_pattern(Constant(None if value is None else attribute.domain.normal(value)), attribute.domain)


def sentence(row: Mapping[str, Any], punctuation: Punctuation) -> str:
    """Describes the violation: a tuple (its values by attribute) that follows a punctuation.

    >>> hours = Schema.parse("sid STRING, hour INT")
    >>> sentence({"sid": "S1", "hour": 5}, Punctuation.parse("<*, [0,5]>", hours))
    'the tuple (S1, 5) comes after the punctuation <*, [0,5]>, which matches it'
    """
    tuple_ = written(row, punctuation.schema)
    return f"the tuple {tuple_} comes after the punctuation {punctuation}, which matches it"


@dataclass(frozen=True, slots=True)
class Offence:
    """A tuple, and the first punctuation before it that matches it, with their positions in the stream.

    Document, line and column locate a tuple that comes from a document; lines and columns count from 1.
    """

    tuple: tuple[Value | None, ...]
    tuple_position: int
    punctuation: Punctuation
    punctuation_position: int
    document: str | None = None
    line: int | None = None
    column: int | None = None

    def error(self) -> UngrammaticalStream:
        """Builds the error to raise if the stream must be grammatical.

        >>> from xmlstream.punct_ns.punctuation import Punctuation
        >>> from xmlstream.punct_ns.schema import Schema
        >>> print(Offence((5,), 9, Punctuation.parse("<5>", Schema.of(hour="INT")), 4, "sensor1.xml").error())
        the tuple (5) comes after the punctuation <5>, which matches it
          sensor1.xml, item at position 9
          Hint: fix the source, or drop or divert such tuples with the option ungrammatical
        """
        return UngrammaticalStream(
            sentence(dict(zip(self.punctuation.schema.names, self.tuple, strict=True)), self.punctuation),
            values=self.tuple,
            tuple_position=self.tuple_position,
            punctuation=self.punctuation,
            punctuation_position=self.punctuation_position,
            where=place(self.document, self.line, self.column, self.tuple_position),
            hint=MEND,
        )
