"""A query's tuples in groups: what `Query.group_by` gives, to be aggregated or ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from operators.top_n import Rank
from punct_ns.errors import QueryError
from punct_ns.slices import quoted
from xmlstream.builder.arguments import has_aggregate, listed, sort_key
from xmlstream.builder.sparks_names import ON_GROUPS, no_such_name
from xmlstream.sql.plan_builder import unique

if TYPE_CHECKING:
    from xmlstream.builder.query import Query


@dataclass(frozen=True, slots=True, repr=False)
class Groups:
    """A query's tuples in groups, to be aggregated or ranked."""

    query: Query
    keys: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Groups[{', '.join(self.keys)}] of {self.query!r}"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(no_such_name(name, "a grouped query", ON_GROUPS, Groups))

    def agg(self, *aggregates: str) -> Query:
        """One tuple of each group, as soon as it is complete: the keys, then these.

        An item is an aggregate or an expression over aggregates and keys: `agg("max(a) - min(a) AS spread")`.
        """
        if not self.keys and not aggregates:
            raise QueryError("nothing to group by and nothing to aggregate", hint='for example agg("count(*) AS n")')
        items = listed((*self.keys, *aggregates))
        numbers = ", ".join(str(number + 1) for number in range(len(self.keys)))
        if not numbers and not any(map(has_aggregate, aggregates)):
            raise QueryError(f"no aggregate: {', '.join(aggregates)}", hint="name what to group by, or use select")
        return self.query._of("SELECT ", *items, " FROM `input`", f" GROUP BY {numbers}" if numbers else "")

    def top(self, n: int, *order: str, number: str | None = None, rank: Rank = "row_number") -> Query:
        """The first n tuples of each group in an order, as soon as it is complete: `top(3, "price DESC", "ts")`.

        Args:
            n: How many there are of each group.
            order: Attributes, each perhaps with a direction.
            number: An attribute for the tuple's rank in its group, if it is wanted.
            rank: How tuples are counted, as SQL's functions of that name do; `rank` and `dense_rank` keep ties.

        Raises:
            QueryError: There is no order to be first in.
        """
        if not order:
            raise QueryError("the first tuples of no order", hint=f'for example top({n}, "price DESC")')
        called = number or unique("rank", self.query.schema.names)
        by = [" PARTITION BY ", *listed(self.keys)] if self.keys else []
        over = [*by, " ORDER BY ", ", ".join(sort_key(key) for key in order), f") AS {quoted(called)} FROM `input`"]
        items = "*" if number else ", ".join(map(quoted, self.query.schema.names))
        ranked = [f"SELECT {items} FROM (SELECT *, {rank}() OVER (", *over]
        return self.query._of(*ranked, f") WHERE {quoted(called)} <= {n}")
