"""Drawn texts of expressions over the columns of `drawn_rows`, with few brackets: operators stand side by side."""

from __future__ import annotations

import random

_NUMBERS = ("i1", "i2", "i3", "b1", "b3", "ti1", "ti3", "si2", "d1", "e3", "x1", "x3")
_WHOLE = ("i1", "i2", "i3", "b1", "b3", "ti1", "ti3", "si2")
_TEXTS = ("s1", "s2", "s3", "'a'", "'ab'", "'it''s'", "''")
_LITERALS = ("0", "1", "2", "-1", "10", "2.5", "-0.5", "3L", "1e2", "100", "NULL")
_MOMENTS = ("t1", "t2", "t3", "TIMESTAMP '2020-02-29 12:00:00'")


class Drawn:
    """Texts drawn from a source of chance."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def text(self) -> str:
        """An expression of any kind."""
        return self._source.choice((self.condition, self.number, self.word, self.condition))(3)

    def _brackets(self, text: str) -> str:
        return f"({text})" if self._source.random() < 0.35 else text

    def number(self, depth: int) -> str:
        """An expression of numbers."""
        pick = self._source.random()
        if depth == 0 or pick < 0.25:
            return self._source.choice(_NUMBERS if self._source.random() < 0.7 else _LITERALS)
        one, other = self.number(depth - 1), self.number(depth - 1)
        if pick < 0.7:
            return self._brackets(f"{one} {self._source.choice('+-*/%+-')} {other}")
        forms = (
            lambda: f"-{self._source.choice(_NUMBERS)}",
            lambda: f"- {one}",
            lambda: f"{self._source.choice(_WHOLE)} DIV {self._source.choice(_WHOLE)}",
            lambda: f"CASE WHEN {self.condition(depth - 1)} THEN {one} ELSE {other} END",
            lambda: f"IF({self.condition(depth - 1)}, {one}, {other})",
            lambda: f"coalesce({one}, {other})",
            lambda: f"abs({one})",
            lambda: f"nullif({self._source.choice(_WHOLE)}, {self._source.choice(_WHOLE)})",
            lambda: f"greatest({self._source.choice(_WHOLE)}, {self._source.choice(_WHOLE)})",
            lambda: f"CAST({one} AS {self._source.choice(('BIGINT', 'DOUBLE', 'INT', 'DECIMAL(12,2)', 'STRING'))})",
            lambda: f"{self._source.choice(_WHOLE)} {self._source.choice('&|^')} {self._source.choice(_WHOLE)}",
            lambda: f"length({self.word(depth - 1)})",
            lambda: f"CASE {one} WHEN {self.number(0)} THEN {other} END",
            lambda: f"hour({self._source.choice(_MOMENTS)})",
            lambda: f"try_add({self._source.choice(_WHOLE)}, 1)",
            lambda: f"pmod({self._source.choice(_WHOLE)}, 7)",
        )
        return self._source.choice(forms)()

    def word(self, depth: int) -> str:
        """An expression of texts."""
        pick = self._source.random()
        if depth == 0 or pick < 0.4:
            return self._source.choice(_TEXTS)
        one, other = self.word(depth - 1), self.word(depth - 1)
        forms = (
            lambda: self._brackets(f"{one} || {other}"),
            lambda: f"concat({one}, {other})",
            lambda: f"coalesce({one}, {other})",
            lambda: f"CASE WHEN {self.condition(depth - 1)} THEN {one} ELSE {other} END",
            lambda: f"replace({one}, 'a', 'b')",
            lambda: f"get(split({one}, '/'), 1)",
            lambda: f"IF({self.condition(depth - 1)}, {one}, {other})",
            lambda: f"CAST({self._source.choice(_WHOLE)} AS STRING)",
            lambda: f"date_format({self._source.choice(_MOMENTS)}, 'yyyy-MM-dd')",
            lambda: f"trim({one})",
        )
        return self._source.choice(forms)()

    def condition(self, depth: int) -> str:
        """A condition."""
        pick = self._source.random()
        if depth == 0 or pick < 0.1:
            return self._source.choice(("p1", "p2", "p3", "true", "i1 > 0", "s1 = 'a'", "NOT p1"))
        one, other = self.condition(depth - 1), self.condition(depth - 1)
        compared = self._source.choice(("=", "<>", "<", "<=", ">", ">=", "<=>", "!=", "=="))
        sides = self._source.choice((self.number, self.number, self.word))
        a, b, c = (sides(depth - 1) for _ in range(3))
        forms = (
            lambda: f"{one} AND {other}",
            lambda: f"{one} OR {other}",
            lambda: f"NOT {one}",
            lambda: f"{a} {compared} {b}",
            lambda: f"{a} {compared} {b}",
            lambda: f"{a} {compared} {b} {self._source.choice(('AND', 'OR'))} {other}",
            lambda: f"{a} BETWEEN {b} AND {c}",
            lambda: f"{a} NOT BETWEEN {b} AND {c} AND {one}",
            lambda: f"{a} IN ({b}, {c})",
            lambda: f"{a} NOT IN ({b})",
            lambda: f"{a} IS NULL",
            lambda: f"{a} {compared} {b} IS NOT NULL",
            lambda: f"{one} = {other}",
            lambda: f"! {one}",
            lambda: f"{self.word(0)} LIKE '%a_'",
            lambda: f"{a} IS DISTINCT FROM {b}",
            lambda: f"contains({self.word(1)}, 'a')",
            lambda: f"{self._source.choice(_MOMENTS)} {compared} {self._source.choice(_MOMENTS)}",
        )
        return self._brackets(self._source.choice(forms)())
