"""What is held stays flat over hundreds of keys, by whatever way each input closes them, in every operator.

A key's tuples come in one slice; then it is closed: at once, by halves of `t`, by an upper half and a watermark of `t`,
by lists, up to a key, or slices later. Each input has its own way. Keys are words, or integers that do not coalesce.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import settings

import xmlstream.testing as xt
from tests.harness.nights import AT_NIGHT, SEED
from tests.harness.refused_in_process import is_refusal
from xmlstream.operators.top_n import TopN
from xmlstream.plan.nodes import topological
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.pattern import Constant, List, Pattern, Range
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.safety.verdicts import OperatorVerdict, QueryVerdict, judged

QUERIES = {
    "group_by": "SELECT k, max(v) AS most FROM s GROUP BY k",
    "distinct": "SELECT DISTINCT k FROM s",
    "first of each key": "SELECT k, v FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY arrival) = 1",
    "top_n": "SELECT k, v FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) = 1",
    "lag": "SELECT k, t, lag(v) OVER (PARTITION BY k ORDER BY t) AS before FROM s",
    "union": "SELECT k FROM s UNION SELECT k FROM r",
    "union all": "SELECT k, t FROM s UNION ALL SELECT k, t FROM r",
    "intersect": "SELECT k FROM s INTERSECT SELECT k FROM r",
    "intersect, of two attributes": "SELECT k, t FROM s INTERSECT SELECT k, t FROM r",
    "except": "SELECT k FROM s EXCEPT SELECT k FROM r",
    "except, of two attributes": "SELECT k, t FROM s EXCEPT SELECT k, t FROM r",
    "join": "SELECT s.k, v, w FROM s JOIN r ON s.k = r.k",
    "join on two": "SELECT s.k, v, w FROM s JOIN r ON s.k = r.k AND s.t = r.t",
    "anti join on two": "SELECT k, v FROM s WHERE NOT EXISTS (SELECT * FROM r WHERE r.k = s.k AND r.t = s.t)",
    "left join": "SELECT s.k, v, w FROM s LEFT JOIN r ON s.k = r.k",
    "full join": "SELECT s.k, r.k AS other, v, w FROM s FULL JOIN r ON s.k = r.k",
    "join, grouped": "SELECT s.k, sum(w) AS total FROM s JOIN r ON s.k = r.k GROUP BY s.k",
    "semi join": "SELECT k, v FROM s WHERE k IN (SELECT k FROM r)",
    "anti join": "SELECT k, v FROM s WHERE NOT EXISTS (SELECT * FROM r WHERE r.k = s.k)",
    "range join": "SELECT s.k, v, w FROM s JOIN r ON s.k = r.k AND r.t BETWEEN s.t AND s.t + 5",
    "range left join": "SELECT s.k, v, w FROM s LEFT JOIN r ON s.k = r.k AND r.t BETWEEN s.t AND s.t + 5",
    "range anti join": "SELECT k, v FROM s WHERE NOT EXISTS (SELECT * FROM r WHERE r.k = s.k AND r.t > s.t)",
    "as-of join": "SELECT s.k, v, w FROM s ASOF JOIN r MATCH_CONDITION (s.t >= r.t) ON s.k = r.k",
    "as-of left join": "SELECT s.k, v, w FROM s LEFT ASOF JOIN r MATCH_CONDITION (s.t > r.t) ON s.k = r.k",
    "as-of join, of an age": "SELECT s.k, v, w FROM s ASOF JOIN r MATCH_CONDITION (s.t >= r.t) ON s.k = r.k "
    "AND r.t >= s.t - 5",
    "join of three": "SELECT s.k, v, w, x FROM s JOIN r ON s.k = r.k JOIN q ON q.k = r.k",
}
TABLE = """
CREATE TABLE {} (k {} NOT NULL, t INT NOT NULL, {} INT)
USING punctuated_xml OPTIONS (path 'none.xml', rowTag 'r');
"""
TYPES = [("INT", "INT"), ("STRING", "STRING"), ("INT", "BIGINT"), ("DATE", "DATE")]
PER_SLICE = 8
SLICES = 12 if AT_NIGHT else 8
TEXT: dict[str, Callable[[int], str]] = {
    "INT": lambda n: str(2 * n),
    "BIGINT": lambda n: str(2 * n),
    "STRING": lambda n: f'"u{n:05}"',
    "DATE": lambda n: date.fromordinal(730_000 + 2 * n).isoformat(),
}


def keys_of(slice_: int) -> list[int]:
    """The keys whose tuples come in a slice, in no order."""
    keys = range(PER_SLICE * slice_, PER_SLICE * (slice_ + 1)) if 0 <= slice_ < SLICES else ()
    return sorted(keys, key=lambda n: n * 7919 % 101)


def at_once(text: Callable[[int], str], i: int) -> list[str]:
    return [f"<{text(n)}, *, *>" for n in keys_of(i - 1)]


def by_halves(text: Callable[[int], str], i: int) -> list[str]:
    return [
        *(f"<{text(n)}, (,5], *>" for n in keys_of(i - 1)),
        *(f"<{text(n)}, [6,), *>" for n in keys_of(i - 2)),
    ]


def by_a_watermark(text: Callable[[int], str], i: int) -> list[str]:
    return [
        *(f"<{text(n)}, [{10 * i},), *>" for n in keys_of(i - 1)),
        *([f"<*, (,{10 * (i - 1)}), *>"] if i > 1 else []),
    ]


def by_lists(text: Callable[[int], str], i: int) -> list[str]:
    return [f"<{{{', '.join(map(text, keys))}}}, *, *>"] if (keys := keys_of(i - 1)) else []


def up_to_a_key(text: Callable[[int], str], i: int) -> list[str]:
    return [f"<(,{text(max(keys))}], *, *>"] if (keys := keys_of(i - 1)) else []


def late(text: Callable[[int], str], i: int) -> list[str]:
    return [f"<{text(n)}, *, *>" for n in keys_of(i - 3)]


WAYS = [at_once, by_halves, by_a_watermark, by_lists, up_to_a_key, late]
DRAWS = 40 if AT_NIGHT else 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("draw", range(DRAWS))
@pytest.mark.parametrize("name", QUERIES)
def test_what_is_held_does_not_grow_with_the_closed_keys(name: str, draw: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xmlstream.operators.state.completion.EXACT_PUNCTUATIONS", 8)  # kept of what completes nothing
    random = Random(f"{SEED} {name} {draw}")
    types, ways = random.choice(TYPES), random.choices(WAYS, k=3)
    tables = zip("srq", (types[0], types[1], types[0]), "vwx", ways, strict=True)
    named = {table: (TEXT[type_], way, TABLE.format(table, type_, other)) for table, type_, other, way in tables}
    held = []
    with xt.case("".join(ddl for *_, ddl in named.values()) + QUERIES[name], allow_unsafe=True) as case:
        for i in range(SLICES + 4):
            given = {}
            for table in case.streams:
                text, way, _ = named[table]
                schema = case.schema_of(table)
                tuples = [
                    (schema[0].domain.read(text(n).strip('"')), n % 10 if way is by_halves else 10 * i, n)
                    for n in keys_of(i)
                ]
                given[table] = [*tuples, *(Punctuation.parse(each, schema) for each in way(text, i))]
            operators = [o for o in case.slice(given).report["operators"] if o["name"] not in named]
            held.append(sum(o["punctuations_held"] + o["kept"] for o in operators))
            if i == SLICES // 2:
                case.restart()
    what = types, [way.__name__ for way in ways], held
    assert max(held[SLICES // 2 :]) < max(held[: SLICES // 2]) + PER_SLICE, what


IN_TIME = {
    **{name: query for name, query in QUERIES.items() if not re.search("three|range|age", name)},
    "last of each": "SELECT k, t, v FROM s QUALIFY row_number() OVER ({by_k} DESC) = 1",
    "first in time": "SELECT k, t, v FROM s QUALIFY row_number() OVER ({by_k}) = 1",
    "first three in time": "SELECT k, t FROM (SELECT k, t, rank() OVER ({by_k}) AS n FROM s) WHERE n < 4",
    "dense ranks in time": "SELECT t, v FROM s QUALIFY dense_rank() OVER (ORDER BY t) <= 2",
    "ranks of values": "SELECT t, v FROM s QUALIFY rank() OVER (ORDER BY v) <= 2",
    "limit": "SELECT k, t, v FROM s ORDER BY t, v LIMIT 3",
    "limit, of values": "SELECT k, t, v FROM s ORDER BY v DESC LIMIT 3",
    "sort": "SELECT k, t, v FROM s ORDER BY t, k",
    "numbered": "SELECT k, t, row_number() OVER ({by_k}) AS n FROM s",
    "numbered, of all": "SELECT k, t, row_number() OVER (ORDER BY t, k) AS n FROM s",
    "numbered by two": "SELECT k, t, row_number() OVER (PARTITION BY k, v ORDER BY t) AS n FROM s",
    "so far": "SELECT k, t, sum(v) OVER ({by_k}) AS total, rank() OVER ({by_k}) AS n FROM s",
    "the last rows": "SELECT k, t, max(v) OVER ({by_k} ROWS 2 PRECEDING) AS most FROM s",
    "lag, of all": "SELECT k, t, lag(v) OVER (ORDER BY t) AS before FROM s",
    "within": "SELECT k, t, sum(v) OVER ({by_k} {near}) AS near FROM s",
    "within, of all": "SELECT k, t, count(v) OVER (ORDER BY t {near}) AS near FROM s",
    "within, and lag": ("SELECT k, t, lag(v) OVER ({by_k}) AS before, sum(v) OVER ({by_k} {near}) AS near FROM s"),
    "lead": "SELECT k, t, lead(v) OVER ({by_k}) AS next FROM s",
    "lead, of all": "SELECT k, t, lead(v) OVER (ORDER BY t) AS next FROM s",
    "the next rows": "SELECT k, t, max(v) OVER ({by_k} ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS most FROM s",
    "as of": "SELECT s.k, s.t, v, w FROM s ASOF JOIN r MATCH_CONDITION (s.t >= r.t) ON s.k = r.k",
    "as of, left": "SELECT s.k, s.t, v, w FROM s LEFT ASOF JOIN r MATCH_CONDITION (s.t > r.t) ON s.k = r.k",
    "as of, lately": (
        "SELECT s.k, s.t, v, w FROM s ASOF JOIN r MATCH_CONDITION (s.t >= r.t) ON s.k = r.k AND r.t >= s.t - {w}"
    ),
    "in time and key": "SELECT s.k, v, w FROM s JOIN r ON s.k = r.k AND r.t BETWEEN s.t AND s.t + {w}",
    "in time": "SELECT s.k, v, w FROM s JOIN r ON s.t = r.t",
    "grouped by time": "SELECT t, count(*) AS n FROM s GROUP BY t",
    "grouped by both": "SELECT k, t, count(*) AS n FROM s GROUP BY k, t",
    "grouped, numbered": "SELECT k, max(n) AS n FROM (SELECT k, t, row_number() OVER ({by_k}) AS n FROM s) GROUP BY k",
    "distinct of all": "SELECT DISTINCT k, t, v FROM s",
    "sessions": "SELECT k, count(*) AS n FROM s GROUP BY k, session_window(t, '{w_text}')",
    "windows": "SELECT window.start AS since, count(*) AS n FROM s GROUP BY window(t, '20 seconds')",
    "windows of each": "SELECT k, window.start AS since, count(*) AS n FROM s GROUP BY k, window(t, '20 seconds')",
}
"""Queries whose verdict is held against many slices of values that are always new."""

KEYS: dict[str, Callable[[int], Any]] = {
    "INT": lambda n: 2 * n,
    "BIGINT": lambda n: 2 * n,
    "STRING": lambda n: f"u{n:05}",
    "DATE": lambda n: date.fromordinal(730_000 + 2 * n),
    "DECIMAL(10,2)": lambda n: Decimal(n) / 4 + Decimal("0.01"),
    "DOUBLE": lambda n: n + 0.5,
    "TIMESTAMP": lambda n: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=2 * n),
}
MOMENTS: dict[str, tuple[Callable[[int], Any], str]] = {
    "INT": (lambda n: n, "5"),
    "BIGINT": (lambda n: n, "5"),
    "DATE": (lambda n: date.fromordinal(730_000 + n), "INTERVAL 5 DAY"),
    "DECIMAL(10,2)": (Decimal, "5"),
    "DOUBLE": (float, "5"),
    "TIMESTAMP": (lambda n: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n), "INTERVAL 5 SECOND"),
}
SCHEMES = ["", "t prefix", "k", "t prefix; k", "k, t prefix", "k, t", "t", "v", PARTS := "t prefix, v"]
"""What sources promise; each is drawn for itself."""

LONG = 14
"""The slices of a run in which what is kept must grow or stay flat."""


@dataclass(frozen=True)
class Endless:
    """A query over sources whose values are always new, what they promise, and the types of `k` and `t`."""

    name: str
    schemes: tuple[str, str]
    types: tuple[str, str]
    listed: bool

    @property
    def sql(self) -> str:
        key, moment = self.types
        limits = "u00000, u00001, u00002" if key == "STRING" else "0, 2, 4"
        domains = f", domains 'k {{{limits}}}'" if self.listed else ""
        tables = (
            f"CREATE TABLE {name} (k {key} NOT NULL, t {moment} NOT NULL, {value} INT NOT NULL) USING punctuated_xml"
            f" OPTIONS (path 'none.xml', rowTag 'r', schemes '{schemes.replace('v', value)}'{domains});\n"
            for name, value, schemes in zip("sr", "vw", self.schemes, strict=True)
        )
        width = MOMENTS[moment][1]
        return "".join(tables) + IN_TIME[self.name].format(
            w=width,
            w_text=width.removeprefix("INTERVAL ").lower(),
            by_k="PARTITION BY k ORDER BY t",
            near=f"RANGE BETWEEN {width} PRECEDING AND CURRENT ROW",
        )

    def slice(self, i: int, schemes: str, schema: Schema) -> list[Any]:
        """The tuples of a slice, of new keys in later time, and what closes them by each scheme.

        One of three keys has tuples of `s` alone, one of `r` alone.
        """
        key, moment = KEYS[self.types[0]], MOMENTS[self.types[1]][0]
        numbers = range(3) if self.listed else range(3 * i, 3 * (i + 1))
        there = [n for n in numbers if n % 3 != (0 if schema[2].name == "w" else 1)]
        tuples = [(key(n), moment(10 * i + 2 * j), 10 * i + 2 * (n % 3) + j) for n in there for j in range(2)]
        seen = range(3) if self.listed else range(3 * (i + 1))
        closed: list[Punctuation] = []
        for scheme in schemes.split("; ") if schemes else ():
            given: dict[str, list[Pattern]] = {}
            for term in scheme.split(", "):
                name, _, prefix = term.partition(" ")
                domain = schema[name if name != "v" else 2].domain
                if prefix:
                    given[schema[1].name] = [Range(None, moment(10 * i + 9), high_closed=True)]
                elif name == "k":
                    # All keys are over with their slice, or, as those of a list, close in ever more parts.
                    given["k"] = [Constant(domain.normal(key(n))) for n in (seen if "," in scheme else numbers)]
                elif name == "t":
                    given["t"] = [List(tuple(domain.normal(moment(n)) for n in range(-10, 10 * (i + 1))))]
                else:
                    given[schema[2].name] = [List(tuple(range(10 * (i + 1))))]
            closed += (Punctuation.of(schema, dict(zip(given, each, strict=True))) for each in product(*given.values()))
        return [*tuples, *closed]


@dataclass(frozen=True)
class Held:
    """What the operators of a query hold after each slice: tuples, and punctuations, of each by name."""

    verdict: QueryVerdict
    tuples: dict[str, list[int]]
    punctuations: dict[str, list[int]]

    @staticmethod
    def by(case: Endless) -> Held:
        """Runs the query slice by slice; raises QueryError if it is refused in process."""
        tuples, punctuations = dict[str, list[int]](), dict[str, list[int]]()
        with xt.case(case.sql, allow_unsafe=True) as run:
            verdict = judged(run.root, follow=True)
            schemes = dict(zip("sr", case.schemes, strict=True))
            for i in range(LONG):
                given = {name: case.slice(i, schemes[name], run.schema_of(name)) for name in run.streams}
                for one in run.slice(given).report["operators"]:
                    if one["name"] not in given:
                        tuples.setdefault(one["name"], []).append(one["kept"])
                        punctuations.setdefault(one["name"], []).append(one["punctuations_held"])
        return Held(verdict, tuples, punctuations)

    def is_reached(self, one: OperatorVerdict) -> bool:
        """Whether it is said that tuples come, and are kept for ever; of ranks alone, only equal ones are many."""
        below = {each for input_ in one.node.inputs for each in topological(input_)}
        kept = [each.model for each in one.keeps if not each.is_bounded]
        ties = isinstance(one.node.operator, TopN) and all(model.per is None for model in kept)
        return not (one.is_safe or ties) and all(
            each.is_enabled for each in self.verdict.operators if each.node in below
        )


def growing(held: dict[str, list[int]]) -> list[str]:
    """The operators that hold more in the second half of the run than they ever held in the first."""
    half = LONG // 2
    return [name for name, counts in held.items() if max(counts[half:]) > max(counts[:half]) + 2]


def drawn(name: str, random: Random) -> Endless:
    moments = [*MOMENTS]
    if "window" in name or "session" in name:
        moments = ["TIMESTAMP"]
    elif "lately" in name:
        moments = ["INT", "BIGINT", "TIMESTAMP"]
    key = random.choice([*KEYS])
    listed = key in ("INT", "BIGINT", "STRING") and random.random() < 0.3
    # To close each key of a list is to end.
    among = [scheme for scheme in SCHEMES if not listed or "k" not in scheme.split("; ")]
    schemes = random.choice(among), random.choice(among)
    return Endless(name, schemes if random.random() < 0.6 else schemes[:1] * 2, (key, random.choice(moments)), listed)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", IN_TIME)
def test_what_is_called_bounded_stays_flat_and_what_is_not_grows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xmlstream.operators.state.completion.EXACT_PUNCTUATIONS", 8)  # kept of what completes nothing
    random, said = Random(f"{SEED} {name}"), Counter[str]()
    for _ in range(max(1, settings().max_examples // len(IN_TIME))):
        case = drawn(name, random)
        try:
            held = Held.by(case)
        except QueryError as error:
            if not is_refusal(error):
                raise
            said["refused in process"] += 1
            continue
        if held.verdict.is_safe:
            said["flat"] += 1
            assert not growing(held.tuples), f"{case} is said to be bounded: {held.tuples}"
            # What one input has closed and another one never will has to be known, and so has what is closed of a part
            # of all groups, which other parts may complete.
            alike = case.schemes[0] == case.schemes[1] != PARTS
            if held.verdict.is_enabled and alike:
                assert not growing(held.punctuations), f"{case} is said to be bounded: {held.punctuations}"
        elif any(map(held.is_reached, held.verdict.troubled())):
            said["growing"] += 1
            assert growing(held.tuples), f"{case} is said to grow: {held.tuples}"
    print(name, dict(said))
