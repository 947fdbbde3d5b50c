"""The executable specification: relational operators over lists, and what Tucker et al. 2003 ask of their streams.

Everything here is written down as the papers define it, by going through all tuples, and shares no code with what it
checks: not even patterns are matched by `punct_ns`, only taken apart. A stream is a list of slices, a slice a pair of
tuples and punctuations. Where a definition speaks of all possible tuples, a finite `universe` stands for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from xmlstream.punct_ns.pattern import Constant, Empty, List, Pattern, Range, Wildcard
from xmlstream.punct_ns.punctuation import Punctuation

Tuple = tuple[Any, ...]
Slice = tuple[Sequence[Tuple], Sequence[Punctuation]]


# Patterns and punctuations (Tucker et al. 2003, §3).


def match_pattern(value: Any, pattern: Pattern) -> bool:
    """The five kinds of patterns, as the paper lists them; null is a value that only `*` and null itself match."""
    match pattern:
        case Wildcard():
            return True
        case Empty():
            return False
        case Constant(constant):
            return same(value, constant)
        case List(values):
            return any(same(value, listed) for listed in values)
        case Range(low, high, low_closed, high_closed):
            if value is None:
                return False
            above = low is None or before(low, value) or (low_closed and same(low, value))
            below = high is None or before(value, high) or (high_closed and same(value, high))
            return above and below


def same(a: Any, b: Any) -> bool:
    """Equality that is total: null is null, NaN is NaN."""
    if a is None or b is None:
        return a is b
    return is_nan(a) and is_nan(b) if is_nan(a) or is_nan(b) else bool(a == b)


def before(a: Any, b: Any) -> bool:
    """The order of values other than null, NaN last."""
    if is_nan(a) or is_nan(b):
        return not is_nan(a)
    return bool(a < b)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def match(t: Tuple, p: Punctuation) -> bool:
    return all(match_pattern(value, pattern) for value, pattern in zip(t, p.patterns, strict=True))


def set_match(t: Tuple, ps: Iterable[Punctuation]) -> bool:
    return any(match(t, p) for p in ps)


def described(universe: Iterable[Tuple], ps: Sequence[Punctuation]) -> list[Tuple]:
    """The interpretation of punctuations: the tuples of the universe of which no more will come."""
    return [t for t in universe if set_match(t, ps)]


def first_offence(items: Sequence[Tuple | Punctuation]) -> tuple[int, int] | None:
    """Where the first ungrammatical tuple of a stream is, and the first punctuation before it that it matches."""
    for j, item in enumerate(items):
        if not isinstance(item, Punctuation):
            for i, earlier in enumerate(items[:j]):
                if isinstance(earlier, Punctuation) and match(item, earlier):
                    return j, i
    return None


# Relational operators, over bags as lists.


def select(predicate: Callable[[Tuple], bool | None], ts: Sequence[Tuple]) -> list[Tuple]:
    return [t for t in ts if predicate(t) is True]


def project(columns: Callable[[Tuple], Tuple], ts: Sequence[Tuple]) -> list[Tuple]:
    return [columns(t) for t in ts]


def explode(array: Callable[[Tuple], Sequence[Any] | None], ts: Sequence[Tuple], *, outer: bool) -> list[Tuple]:
    """Each tuple with each element of its array behind it; outer: with null where there is none."""
    return [(*t, element) for t in ts for element in array(t) or ([None] if outer else [])]


def distinct(ts: Sequence[Tuple]) -> list[Tuple]:
    found: list[Tuple] = []
    for t in ts:
        if not is_in(t, found):
            found.append(t)
    return found


def merge(*inputs: Sequence[Tuple]) -> list[Tuple]:
    return [t for ts in inputs for t in ts]


def group_by(
    key: Callable[[Tuple], Tuple], aggregate: Callable[[list[Tuple]], Tuple], ts: Sequence[Tuple]
) -> list[Tuple]:
    """One tuple for each group: its key, then its aggregates."""
    return [k + aggregate([t for t in ts if same_tuple(key(t), k)]) for k in distinct([key(t) for t in ts])]


@dataclass(frozen=True, slots=True)
class Key:
    """What tuples are sorted by: the attribute at a place."""

    place: int
    descending: bool = False
    nulls_first: bool = True

    def compare(self, a: Tuple, b: Tuple) -> int:
        """Below zero where a comes first, zero where neither does."""
        x, y = a[self.place], b[self.place]
        if same(x, y):
            return 0
        if x is None or y is None:
            return -1 if (x is None) == self.nulls_first else 1
        return -1 if before(x, y) != self.descending else 1


def compare(keys: Sequence[Key], a: Tuple, b: Tuple) -> int:
    """Lexicographically."""
    return next((order for key in keys if (order := key.compare(a, b))), 0)


def sort(keys: Sequence[Key], ts: Sequence[Tuple]) -> list[Tuple]:
    """Ties are in the order of all attributes, ascending and null first."""
    if not ts:
        return []
    everything = [*keys, *(Key(place) for place in range(len(ts[0])))]
    by: Callable[[Tuple, Tuple], int] = lambda a, b: compare(everything, a, b)  # noqa: E731  typed
    return sorted(ts, key=cmp_to_key(by))


def ranked(rank: str, keys: Sequence[Key], ts: Sequence[Tuple]) -> list[Tuple]:
    """Each tuple with SQL's rank behind it: its number in order; or one more than tuples, or values, before it."""

    def counted(number: int, t: Tuple) -> int:
        before_it = [u for u in ts if compare(keys, u, t) < 0]
        match rank:
            case "row_number":
                return number
            case "rank":
                return len(before_it) + 1
            case _:
                return len(distinct([tuple(u[key.place] for key in keys) for u in before_it])) + 1

    return [(*t, counted(number, t)) for number, t in enumerate(sort(keys, ts), start=1)]


def init(keys: Sequence[Key], universe: Sequence[Tuple], ps: Sequence[Punctuation]) -> Callable[[Tuple], bool]:
    """Whether nothing more comes that is sorted before a tuple or beside it (Tucker et al. 2003, §5.2)."""
    still = [t for t in universe if not set_match(t, ps)]
    return lambda t: all(compare(keys, t, u) < 0 for u in still)


def join(kind: str, partners: Callable[[Tuple, Tuple], bool], ts: Sequence[Tuple], us: Sequence[Tuple]) -> list[Tuple]:
    """All pairs of partners, each `(0, *t, 0, *u)`; of an outer join `None` and nulls where a tuple has no partner."""
    found = [(0, *t, 0, *u) for t in ts for u in us if partners(t, u)]
    if kind in ("left", "full"):
        found += [(0, *t, None, *(None for _ in t)) for t in ts if not any(partners(t, u) for u in us)]
    if kind in ("right", "full"):
        found += [(None, *(None for _ in u), 0, *u) for u in us if not any(partners(t, u) for t in ts)]
    return found


def semi_join(partners: Callable[[Tuple, Tuple], bool], ts: Sequence[Tuple], us: Sequence[Tuple]) -> list[Tuple]:
    return [t for t in ts if any(partners(t, u) for u in us)]


def anti_join(partners: Callable[[Tuple, Tuple], bool], ts: Sequence[Tuple], us: Sequence[Tuple]) -> list[Tuple]:
    return [t for t in ts if not any(partners(t, u) for u in us)]


def intersect(ts: Sequence[Tuple], us: Sequence[Tuple]) -> list[Tuple]:
    return [t for t in distinct(ts) if is_in(t, us)]


def difference(ts: Sequence[Tuple], us: Sequence[Tuple]) -> list[Tuple]:
    return [t for t in distinct(ts) if not is_in(t, us)]


def same_tuple(a: Tuple, b: Tuple) -> bool:
    return all(same(x, y) for x, y in zip(a, b, strict=True))


def is_in(t: Tuple, ts: Iterable[Tuple]) -> bool:
    return any(same_tuple(t, other) for other in ts)


def same_bag(a: Sequence[Tuple], b: Sequence[Tuple]) -> bool:
    """Whether two lists hold the same tuples equally often."""
    return len(a) == len(b) and all(
        sum(same_tuple(t, other) for other in a) == sum(same_tuple(t, other) for other in b) for t in a
    )


# Safety (Tucker et al. 2003, §5.1).


def is_safe(
    put_out: Sequence[Tuple],
    operator: Callable[[Sequence[Tuple]], list[Tuple]],
    ts: Sequence[Tuple],
    ps: Sequence[Punctuation],
    additions: Iterable[Sequence[Tuple]],
) -> bool:
    """Safety of §5.1: what was put out is in the operator's result, whatever may still come."""
    for addition in additions:
        if any(set_match(t, ps) for t in addition):
            continue
        left = list(operator([*ts, *addition]))
        for t in put_out:
            at = next((i for i, other in enumerate(left) if same_tuple(t, other)), None)
            if at is None:
                return False
            del left[at]
    return True
