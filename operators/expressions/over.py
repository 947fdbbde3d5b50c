"""Functions over rows, as SQL's OVER has them: which rows each sees, and how it grows from one row to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from operators.expressions.decomposition import Aggregate, Partial, partial
from punct_ns.numeric_type import FloatType
from punct_ns.schema import Attribute
from punct_ns.sql_type import StringType


@dataclass(frozen=True, slots=True)
class Over:
    """One function over rows: Spark SQL, an aggregate, `lag(…)`, `row_number()` or `rank()`, and which rows it sees.

    Attributes:
        attribute: What the output calls it.
        expression: The function, over the input's attributes.
        first: So many rows before the tuple its rows begin; None where they begin with the group.
        last: So many rows before the tuple they end.
        peers: They end with the last tuple that has the tuple's keys; only from the group's first row on.
    """

    attribute: Attribute
    expression: str
    first: int | None = None
    last: int = 0
    peers: bool = False

    @property
    def function(self) -> str:
        """The function's name."""
        return self.expression.partition("(")[0].strip().lower()

    @property
    def is_rank(self) -> bool:
        """Whether it is told by the number of rows alone."""
        return self.function in ("row_number", "rank")

    @property
    def grows(self) -> bool:
        """Whether it can be computed of all rows so far from what it was before; a type not known yet may do.

        >>> from punct_ns.domain import Domain
        >>> [Over(Attribute("a", Domain(t)), f"{f}(`v`)").grows for f, t in (("sum", "INT"), ("avg", "DECIMAL(9,2)"))]
        [True, False]
        """
        is_average = self.function in ("avg", "mean")
        is_double = isinstance(self.attribute.domain.sql, FloatType | StringType)
        return self.is_rank or self.function in ("count", "sum", "min", "max") or (is_average and is_double)

    def merging(self, number: int) -> Partial | None:
        """How it grows with the group, for a function of the group's rows so far; None where it cannot."""
        return partial(Aggregate(self.attribute, self.expression), number)

    def partials(self, number: int, which: Literal["first", "merge"]) -> list[tuple[str, str]]:
        """Of a function that grows the columns of its partial aggregates, and how each is made or merged."""
        merging = self.merging(number)
        assert merging is not None
        parts = (text.rpartition(" AS ") for text in getattr(merging, which))
        return [(name, text) for text, _, name in parts]

    @property
    def frame(self) -> str:
        """The frame that follows its order, as Spark SQL; none of `lag`."""
        if self.function == "lag":
            return ""
        end = f"{self.last} PRECEDING" if self.last else "CURRENT ROW"
        return f" ROWS BETWEEN {self.first} PRECEDING AND {end}"

    def __str__(self) -> str:
        if self.is_rank or self.function == "lag":
            return self.expression
        begin = "UNBOUNDED" if self.first is None else str(self.first)
        end = "CURRENT ROW" if self.last == 0 else f"{self.last} PRECEDING"
        return f"{self.expression} {'RANGE' if self.peers else 'ROWS'} BETWEEN {begin} PRECEDING AND {end}"
