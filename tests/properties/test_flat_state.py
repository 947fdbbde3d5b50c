"""What is held stays flat over hundreds of keys, by whatever way each input closes them, in every operator.

A key's tuples come in one slice; then it is closed: at once, by halves of `t`, by an upper half and a watermark of `t`,
by lists, up to a key, or slices later. Each input has its own way. Keys are words, or integers that do not coalesce.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from random import Random

import pytest

import xmlstream.testing as xt
from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.punct_ns.punctuation import Punctuation

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
