"""Functions over rows so far, in Spark: what each comes to by a row, over the last rows or over all of the group.

Of all rows so far the last one keeps what functions have come to, by their partial aggregates: it stands for all rows
up to it, however many there were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.expressions.over import NUMBER, Over
from operators.state.behaviour import Tuples
from operators.state.row_joins import semi_join
from operators.state.sort_key import SortKey, total
from operators.windows.numbered_rows import BEFORE, LATEST, NEW, numbered, partition, with_latest
from punct_ns.schema import Schema
from punct_ns.slices import POSITION, own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UP_TO = own("up_to")
"""The greatest key of the group."""

_DENSE, _AMONG, _FIRST = own("dense"), own("among"), own("first")
"""How many different keys there are up to a row's, in its group, among the rows at hand; its first peer's number."""


@dataclass(frozen=True, slots=True)
class RowFunctions:
    """Functions over the rows of `groups` in the order of `keys` or, without, of arrival."""

    functions: tuple[Over, ...]
    keys: tuple[SortKey, ...]
    groups: tuple[str, ...]

    @property
    def looks_back(self) -> int:
        """How many rows of each group are kept: as far as functions look back; the last one tells its number."""
        return max([1, *(over.first for over in self.functions if over.first is not None)])

    @property
    def distances(self) -> list[str]:
        """From how far before the group's last key on its rows are kept, each distance once, as Spark SQL."""
        return list(dict.fromkeys(over.distance for over in self.functions if over.distance is not None))

    @property
    def so_far(self) -> list[str]:
        """The columns that functions of all rows so far, and ranks, keep of a row."""
        kept = [name for number, over in self._growing for name, _ in over.partials(number)]
        return [*kept, _DENSE] if self._is_dense else kept

    def numbered(self, ready: Tuples, before: Tuples | None, schema: Schema) -> DataFrame:
        """The tuples, and the rows before them in their groups, each with its number."""
        from pyspark.sql import functions as F

        earlier = [] if before is None else [before.frame]
        if self.groups:
            earlier = [semi_join(rows, ready.frame, self.groups, ready.at_most) for rows in earlier]
        order = total(self.keys, schema, self.groups) if self.keys else [F.col(POSITION)]
        return numbered(ready.frame, earlier, self.groups, order)

    def told(self, rows: DataFrame) -> DataFrame:
        """The numbered rows with their functions, and with what those of all rows so far have come to."""
        grown = self._ranked(self._grown(rows))
        return grown.selectExpr("*", *(self._answer(number, over) for number, over in enumerate(self.functions)))

    def last(self, rows: DataFrame) -> DataFrame:
        """Of each group the last rows that functions look back at; those of several parts are among those of each."""
        kept, last = [f"{NUMBER} > {LATEST} - {self.looks_back}"], with_latest(rows, self.groups)
        if self.distances:
            key = quoted(self.keys[0].attribute)
            last = last.selectExpr("*", f"max({key}) OVER ({partition(self.groups)}) AS {_UP_TO}")
            kept += (f"coalesce({key} >= {_UP_TO} - {distance}, {key} IS NOT NULL)" for distance in self.distances)
        return last.where(" OR ".join(kept)).drop(LATEST, _UP_TO)

    def _answer(self, number: int, over: Over) -> str:
        """One function, as Spark SQL over rows that have grown."""
        group = partition(self.groups)
        if over.function == "row_number":
            text = NUMBER
        elif over.function == "dense_rank":
            text = _DENSE
        elif over.function == "rank":
            text = f"min({NUMBER}) OVER ({self._peers})"
        elif over.distance is not None:
            nulls = "FIRST" if self.keys[0].direction.nulls_first else "LAST"
            key = f"{quoted(self.keys[0].attribute)} NULLS {nulls}"
            text = f"{over.expression} OVER ({group} ORDER BY {key}{over.frame})"
        elif not over.is_rolling and (merging := over.merging(number)) is not None:
            whole = f"{self._peers} ORDER BY {NUMBER} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
            text = f"last_value({merging.last}) OVER ({whole})" if over.peers else merging.last
        else:
            text = f"{over.expression} OVER ({group} ORDER BY {NUMBER}{over.frame})"
        return f"CAST({text} AS {over.attribute.domain.type}) AS {quoted(over.attribute.name)}"

    @property
    def _peers(self) -> str:
        return partition([*self.groups, *(key.attribute for key in self.keys)])

    def _ranked(self, rows: DataFrame) -> DataFrame:
        """The rows with how many different keys there are up to theirs, where a function asks for it."""
        if not self._is_dense:
            return rows
        group = partition(self.groups)
        among = rows.selectExpr("*", f"min({NUMBER}) OVER ({self._peers}) AS {_FIRST}")
        among = among.selectExpr("*", f"dense_rank() OVER ({group} ORDER BY {_FIRST}) AS {_AMONG}").drop(_FIRST)
        others = [quoted(name) for name in rows.columns if name != _DENSE]
        if _DENSE not in rows.columns:
            return among.selectExpr(*others, f"{_AMONG} AS {_DENSE}")
        more = f"coalesce(max(IF({NEW}, NULL, {_DENSE} - {_AMONG})) OVER ({group}), 0)"
        return among.selectExpr(*others, f"{_AMONG} + {more} AS {_DENSE}")

    @property
    def _is_dense(self) -> bool:
        return any(over.function == "dense_rank" for over in self.functions)

    def _grown(self, rows: DataFrame) -> DataFrame:
        """The rows with the partial aggregates of all rows of their groups up to them."""
        running = {name: text for number, over in self._growing for name, text in over.partials(number)}
        if not running:
            return rows
        spec = f"{partition(self.groups)} ORDER BY {NUMBER}"
        alone = (
            f"{text} OVER ({spec} ROWS BETWEEN CURRENT ROW AND CURRENT ROW) AS {_alone(name)}"
            for name, text in running.items()
        )
        others = [quoted(name) for name in rows.columns if name not in running]
        before = (
            f"IF({NEW}, {_alone(name)}, IF({NUMBER} = {BEFORE}, {name}, NULL)) AS {name}"
            if name in rows.columns
            else f"{_alone(name)} AS {name}"
            for name in running
        )
        # What the last row before has come to stands for all rows up to it.
        so_far = f"{spec} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        merged = (
            f"{text} AS {name}" for number, over in self._growing for name, text in over.merged_over(number, so_far)
        )
        return rows.selectExpr("*", *alone).selectExpr(*others, *before).selectExpr(*others, *merged)

    @property
    def _growing(self) -> Sequence[tuple[int, Over]]:
        """The functions of all rows so far that are not told by the number of rows, by their places."""
        return [(i, over) for i, over in enumerate(self.functions) if not (over.is_rolling or over.is_rank)]


def _alone(name: str) -> str:
    """The partial aggregate of one row."""
    return f"{name}_alone"
