"""The tuples of a region's inputs, as far as its joins keep them: in the logs of inputs, and in those of results.

A join of two forgets a tuple of `a` once `b` is closed for its key. What it was joined to may lie above, in the log of
the join with `c`: it is a part of rows there. A tuple that is in neither can be in no result to come.

Streams are bags, so it matters how often a tuple is there. The log of an input has each of its tuples. A row of joined
tuples is kept as often as the product of the numbers of its parts: once all of its copies are closed they are dropped
together. So where a row is there once, each part is; and where all parts but one are known, so is the last. Where more
are not known, any whole numbers with these products serve: such parts are closed below, so that only rows that are kept
have results to come. There are such numbers, since the true ones are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import starmap
from typing import TYPE_CHECKING, Any, TypeAlias

from xmlstream.dataclasses import dataclass
from xmlstream.operators.state.log_parts import LogParts
from xmlstream.operators.state.slice_tuples import Tuples, bag_union, semi_join
from xmlstream.operators.storage.lookup import struct_with, types_in
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.errors import StateError
from xmlstream.runtime.change.query_change import CONTINUES

if TYPE_CHECKING:
    import pyarrow as pa

    from xmlstream.operators.frames.frame import Engine, Frame
    from xmlstream.operators.storage.segments import SegmentStore
    from xmlstream.runtime.change.join_trees import Rejoined
    from xmlstream.runtime.change.rejoining import Plan

Part: TypeAlias = tuple[int, str]
"""A tuple of an input: the input's number, and the values."""

_TIMES, _LEAST = "times", "least"


@dataclass(frozen=True, slots=True)
class Product:
    """Parts of a row that is kept, and how often it is."""

    parts: tuple[Part, ...]
    times: int


class KeptInputs:
    """What is kept of the tuples of the old region's inputs, with the attributes that the new region needs of them.

    `spare` holds what is computed on the way.
    """

    def __init__(self, of: Rejoined, old: Plan, engine: Engine, spare: SegmentStore) -> None:
        self._of, self._old, self._engine, self._spare = of, old, engine, spare
        self._columns = {
            number: {name: f"i{number}_{k}" for k, name in enumerate(of.needed(i))}
            for i, number in enumerate(of.numbers)
        }
        self._logs = {number: self._log(below, number) for number, below in enumerate(of.old.inputs)}
        self._rows = list(filter(None, starmap(self._counted_rows, of.old.blocks)))
        self._parts = {number: parts for number in self._logs if (parts := self._counted_parts(number)) is not None}

    def tuples(self, number: int) -> Tuples | None:
        """The tuples of an input, under the names that they have in the old plan."""
        found = bag_union((self._logs[number], *self._missing(number)))
        return found and found.some(found.frame.renamed(self._columns[number]))

    def _missing(self, number: int) -> Iterator[Tuples]:
        """The tuples of an input that are parts of rows alone."""
        if (parts := self._parts.get(number)) is None or not self._are_missing:
            return
        columns = list(self._columns[number].values())
        yield parts.some(parts.frame.where(f"{_TIMES} IS NULL AND {_LEAST} = 1").select(*columns))
        table, types = self._doubtful[number]
        if table.num_rows:
            again = [row for row, part in enumerate(_parts_of(table, number)) for _ in range(self._solved[part])]
            rows = self._engine.rows(table.take(again), struct_with({name: types[name] for name in columns}))
            yield Tuples(rows, len(again), computed=True)

    @cached_property
    def _are_missing(self) -> bool:
        """Whether any input has tuples that are parts of rows alone.

        Raises:
            StateError: It has, and a tuple is there more often than a row that it is a part of.
        """
        found = any(parts.frame.where(f"{_TIMES} IS NULL").limit(1).count() for parts in self._parts.values())
        for parts in self._parts.values() if found else ():
            if parts.frame.where(f"{_TIMES} > {_LEAST}").limit(1).count():
                raise _no_products()
        return found

    def _kept(self, join: Node, side: int, columns: Mapping[str, str]) -> Tuples | None:
        """The rows that a join keeps of an input, with these columns, each by the name of the attribute it has."""
        record, declared = self._old.record(join), join.state_schema.logs
        for name, log in declared.items():
            kept = record.kept.get(name) if record is not None and log.models[0].input == side else None
            if kept is not None and kept.segments:
                parts = LogParts(self._old.store(join, self._engine), log.purging, kept)
                rows = parts.left_of(parts.parts)
                there = {column.lower(): column for column in rows.columns}
                return Tuples(rows.renamed({c: there[name.lower()] for c, name in columns.items()}), parts.rows)
        return None

    def _log(self, below: Node, number: int) -> Tuples | None:
        join = next(join for join in self._of.old.joins if below in join.inputs)
        return self._kept(join, join.inputs.index(below), {c: name for name, c in self._columns[number].items()})

    def _counted_rows(self, join: Node, side: int) -> tuple[list[int], Tuples] | None:
        """The inputs whose tuples a join keeps joined, and its different rows of them, with their numbers."""
        parts = self._of.parts(join, side)
        columns = {self._columns[i][name]: there for i, of in parts.items() for name, there in of.items()}
        rows = self._kept(join, side, {column: there for column, there in columns.items() if there is not None})
        if rows is None:
            return None
        return list(parts), self._computed(rows.frame.group_by(list(columns), {_TIMES: "count(1)"}), rows.at_most)

    def _counted_parts(self, number: int) -> Tuples | None:
        """The different tuples of an input in rows or in its log: how often, if it has a log, and the least of rows."""
        columns = list(self._columns[number].values())
        found = []
        for numbers, rows in self._rows:
            if number in numbers:
                least = rows.frame.group_by(columns, {_LEAST: f"min({_TIMES})"})
                found.append(rows.some(least.with_column(_TIMES, _UNKNOWN).select(*columns, _TIMES, _LEAST)))
        if not found:
            return None
        if (log := self._logs[number]) is not None:
            times = log.frame.group_by(columns, {_TIMES: "count(1)"})
            found.append(log.some(times.with_column(_LEAST, _UNKNOWN).select(*columns, _TIMES, _LEAST)))
        both = bag_union(found)
        assert both is not None
        together = {_TIMES: f"max({_TIMES})", _LEAST: f"min({_LEAST})"}
        return self._computed(both.frame.group_by(columns, together), both.at_most)

    def _computed(self, frame: Frame, at_most: int) -> Tuples:
        segment = self._spare.write(frame, at_most)
        return Tuples(self._spare.frame(segment), segment.rows, computed=True)

    @cached_property
    def _doubtful(self) -> dict[int, tuple[pa.Table, Mapping[str, Any]]]:
        """For each input the tuples that only rows have, each row more than once; with the types of their columns."""
        found = {}
        for number, parts in self._parts.items():
            rows = parts.frame.where(f"{_TIMES} IS NULL AND {_LEAST} > 1").select(*self._columns[number].values())
            found[number] = rows.to_arrow(), types_in(rows.struct())
        return found

    @cached_property
    def _solved(self) -> dict[Part, int]:
        """How often each of these is there."""
        products, known = list[Product](), dict[Part, int]()
        for numbers, rows in self._rows:
            several = rows.some(rows.frame.where(f"{_TIMES} > 1"))
            table = several.frame.to_arrow()
            of_each = [_parts_of(table.select(list(self._columns[i].values())), i) for i in numbers]
            times_of: list[Any] = table[_TIMES].to_pylist()
            products += (Product(parts, n) for parts, n in zip(zip(*of_each, strict=True), times_of, strict=True))
            for i in numbers:
                columns = list(self._columns[i].values())
                some = semi_join(self._parts[i], several, columns).frame.to_arrow()
                times = zip(some[_TIMES].to_pylist(), some[_LEAST].to_pylist(), strict=True)
                for part, (number, least) in zip(_parts_of(some.select(columns), i), times, strict=True):
                    if number is not None or least == 1:
                        known[part] = number or 1
        return factors(products, known)


_UNKNOWN = "CAST(NULL AS BIGINT)"


def _parts_of(table: pa.Table, number: int) -> list[Part]:
    """The tuples of an input, as they are compared: 0 and -0 are the same number."""
    columns = ([str(0.0 if value == 0 else value) for value in column.to_pylist()] for column in table.columns)
    return [(number, repr(values)) for values in zip(*columns, strict=True)]


def factors(products: Iterable[Product], known: Mapping[Part, int]) -> dict[Part, int]:
    """Whole numbers of the parts that are not known, so that each product is right.

    Raises:
        StateError: None were found.

    >>> a, b, c = (1, "a"), (2, "b"), (2, "c")
    >>> factors([Product((a, b), 6), Product((a, c), 4)], {})
    {(1, 'a'): 2, (2, 'b'): 3, (2, 'c'): 2}
    """
    waiting = [product for product in products if not known.keys() >= {*product.parts}]
    having: dict[Part, list[Product]] = {}
    for product in waiting:
        for part in product.parts:
            if part not in known:
                having.setdefault(part, []).append(product)
    search = _Search(dict(known), having)
    for part in having:
        search.tries = MOST_TRIES
        if part not in search.found and not search.finds(search.around(part)):
            raise _no_products()
    return {part: search.found[part] for part in having}


def _no_products() -> StateError:
    what = "the joined tuples that its joins keep are no products of tuples, as where purge_after has dropped some"
    return StateError(what, hint=CONTINUES)


MOST_TRIES = 500
"""The numbers tried for parts that depend on each other."""


@dataclass(slots=True)
class _Search:
    """A search for the numbers of parts; `having` are the products that contain a part."""

    found: dict[Part, int]
    having: Mapping[Part, Sequence[Product]]
    tries: int = 0

    def around(self, part: Part) -> list[Product]:
        """The products that depend on the number of a part, directly or through others."""
        seen, products, left = {part}, dict[int, Product](), [part]
        while left:
            for product in self.having[left.pop()]:
                if id(product) not in products:
                    products[id(product)] = product
                    more = [each for each in product.parts if each not in self.found and each not in seen]
                    seen.update(more)
                    left += more
        return list(products.values())

    def finds(self, products: Sequence[Product]) -> bool:
        """Whether numbers for all parts of products were found; if not, none of these is left."""
        begun = len(self.found)
        if self._followed(products):
            if (part := self._open(products)) is None:
                return True
            rest = (product.times // self._known(product) for product in self.having[part])
            for number in _divisors(math.gcd(*rest)):
                self.tries -= 1
                if self.tries < 0:
                    break
                self.found[part] = number
                if self.finds(products):
                    return True
                del self.found[part]
        while len(self.found) > begun:
            self.found.popitem()  # the last ones
        return False

    def _followed(self, products: Sequence[Product]) -> bool:
        """Whether what follows from the known numbers, which become known, contradicts no product."""
        left = list(products)
        while left:
            product = left.pop()
            unknown, known = [part for part in product.parts if part not in self.found], self._known(product)
            if product.times % known or (not unknown and product.times != known):
                return False
            if len(unknown) == 1 or product.times == known:
                for part in unknown:
                    self.found[part] = product.times // known
                    left += self.having[part]
        return True

    def _known(self, product: Product) -> int:
        return math.prod(self.found.get(part, 1) for part in product.parts)

    def _open(self, products: Sequence[Product]) -> Part | None:
        return next((part for product in products for part in product.parts if part not in self.found), None)


def _divisors(number: int) -> list[int]:
    """The divisors, the greatest first."""
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)}, reverse=True)
