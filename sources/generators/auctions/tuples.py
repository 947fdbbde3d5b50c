"""Tuples of an auction house on their way to XML, and the randomness that they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sources.generators.text_columns import Numbers, letters


@dataclass(frozen=True, slots=True)
class EventTuples:
    """Tuples of one stream, in the order of their events.

    Attributes:
        number: Of the event, from 0.
        at: When it happens, in milliseconds.
        values: The text of every attribute, as XML has it.
    """

    number: Numbers
    at: Numbers
    values: Mapping[str, pa.StringArray]

    def __len__(self) -> int:
        return len(self.number)

    def before(self, event: int) -> EventTuples:
        """Those with a smaller number."""
        there = int(np.searchsorted(self.number, event))
        values = {name: texts.slice(0, there) for name, texts in self.values.items()}
        return EventTuples(self.number[:there], self.at[:there], values)


def randomness(seed: int, purpose: str, go: int = 0) -> np.random.Generator:
    """A source of random numbers of its own for every purpose and go: what one of them draws moves no other."""
    return np.random.default_rng([seed, int.from_bytes(purpose.encode(), "big"), go])


def random_below(random: np.random.Generator, bounds: Numbers) -> Numbers:
    """Random numbers, each from 0 to its bound, without it."""
    return (random.random(bounds.shape) * bounds).astype(np.int64)


def prices(random: np.random.Generator, count: int) -> Numbers:
    """Log-uniform prices from 1 to 1,000,000, in cents, as in NEXMark."""
    return np.rint(10.0 ** (6 * random.random(count)) * 100).astype(np.int64)


def extra(random: np.random.Generator, size: Numbers, average: int) -> pa.StringArray:
    """Letters that bring tuples of so many bytes to an average size, give or take a fifth, as in NEXMark."""
    missing = np.maximum(average - size, 0)
    delta = np.rint(missing * 0.2).astype(np.int64)
    return letters(random, missing - delta + random_below(random, 2 * delta))
