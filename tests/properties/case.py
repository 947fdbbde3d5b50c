"""A case of the catalogue: an operator, and its specification for any one of the streams that go through it at once.

Each stream gets a number, the attribute `stream` in front of its own, which every operator carries along and every
punctuation restricts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.oracles.invariants import Invariants
from tests.oracles.oracle import Tuple
from tests.samples.strategies import SmallSchema
from xmlstream.operators.behaviour import Operator
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute, Schema

STREAM = Attribute("stream", Domain("INT", nullable=False))


@dataclass(frozen=True, slots=True)
class Case:
    """An operator over numbered streams, and its specification for one stream without its number.

    `inputs` are the schemas of the inputs, with the number; the streams drawn for the small schema are read with them.
    `outputs` are the possible output tuples as the specification writes them; `kept` counts what is kept by the tuples
    that its `ckeep` keeps. `number`, `bare` and `whole` take an output tuple apart and put it together. With `cuts`,
    punctuations are cut, moved or mapped, so that what they say anew may be of tuples that `outputs` do not hold.
    With `positions` tuples come with theirs. With `at_most`, fewer may be kept: what several slices bring together is
    kept only as far as it could be needed when it came.
    """

    operator: Operator
    inputs: tuple[Schema, ...]
    invariants: Invariants
    outputs: list[Tuple]
    kept: Callable[[list[Tuple]], int] = len
    number: Callable[[Tuple], int] = lambda t: t[0]
    bare: Callable[[Tuple], Tuple] = lambda t: t[1:]
    whole: Callable[[int, Tuple], Tuple] = lambda n, u: (n, *u)
    cuts: bool = False
    positions: bool = False
    at_most: bool = False


def numbered(schema: Schema) -> Schema:
    """The schema with the stream's number in front."""
    return Schema((STREAM, *schema.attributes))


def one(space: SmallSchema) -> tuple[Schema, ...]:
    """A single input over the small schema."""
    return (numbered(space.schema),)
