"""A function of groups and an accumulator over prices, which queries in other processes name, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa


def numbered(key: Any, rows: pa.Table) -> Iterator[dict[str, Any]]:
    """The prices of a group with their numbers."""
    for number, price in enumerate(rows["price"].to_pylist()):
        yield {"number": number, "price": price}


class Span:
    """The number of prices, and from the least to the greatest."""

    state = "n INT, least INT, most INT"

    def zero(self) -> Any:
        return 0, None, None

    def add(self, state: Any, rows: pa.Table) -> Any:
        for price in rows["price"].to_pylist():
            state = self.merge(state, {"n": 1, "least": price, "most": price})
        return state

    def merge(self, one: Any, other: Any) -> Any:
        if not one["n"] or not other["n"]:
            return one if one["n"] else other
        least, most = min(one["least"], other["least"]), max(one["most"], other["most"])
        return {"n": one["n"] + other["n"], "least": least, "most": most}

    def finish(self, state: Any) -> Any:
        return {"n": state["n"], "spread": state["most"] - state["least"]}
