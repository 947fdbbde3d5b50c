"""Random SQL over small tables: names from three letters that are swapped, repeated and shadowed in every clause.

A query's columns are named by different letters, whatever they are made of: `b AS a`, a table's alias with a list of
columns, a subquery in WITH that takes a table's name, a key of GROUP BY by its alias, its number or itself. All values
are integers or null, so that anything can be compared and combined with anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.properties.drawn_expressions import aggregates, conditions, values

LETTERS = "abc"

Tables = Mapping[str, tuple[str, ...]]
"""What is in reach in FROM: the columns of each table, by its name."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A query and the names of its columns; whether it needs brackets beside UNION and its like."""

    text: str
    names: tuple[str, ...]
    is_plain: bool = True

    @property
    def side(self) -> str:
        return self.text if self.is_plain else f"({self.text})"


@dataclass(frozen=True, slots=True)
class Source:
    """What stands in FROM, its alias, and its columns."""

    text: str
    alias: str
    names: tuple[str, ...]

    def column(self, draw: st.DrawFn, name: str | None = None, *, full: bool = False) -> str:
        """One of its columns, in one way or another of writing it."""
        name = name or draw(st.sampled_from(self.names))
        spelt = draw(st.sampled_from([name, name, name, name.upper(), f"`{name}`"]))
        return f"{self.alias}.{spelt}" if full or draw(st.booleans()) else spelt


def _permuted(draw: st.DrawFn, width: int) -> tuple[str, ...]:
    return tuple(draw(st.permutations(LETTERS))[:width])


def _as(draw: st.DrawFn, expression: str, name: str) -> str:
    """An item under a name, which need not be said where it is the expression's own."""
    if expression.rpartition(".")[2].strip("`") == name and draw(st.booleans()):
        return expression
    return f"{expression} AS {draw(st.sampled_from([name, name, name, name.upper(), f'`{name}`']))}"


@st.composite
def queries(draw: st.DrawFn, depth: int, tables: Tables, width: int | None = None) -> Drawn:
    """A query of so many operators above each other, about, with so many columns."""
    kinds = [_selected] if depth == 0 else [_selected, _distinct, _grouped, _grouped, _joined, _joined, _set_operation]
    if depth:
        kinds += [
            _with,
            _ranked,
            _limited,
            _windowed,
            _rolled,
            _joined_asof,
            _with_subqueries,
            _with_subqueries,
            _exploded,
        ]
    return draw(st.sampled_from(kinds))(draw, depth, tables, width or draw(st.sampled_from([1, 2, 2, 2, 3])))


def _source(draw: st.DrawFn, depth: int, tables: Tables, alias: str) -> Source:
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        name = draw(st.sampled_from(sorted(tables)))
        text, names = name, tables[name]
    else:
        inner = draw(queries(depth - 1, tables))
        text, names = f"({inner.text})", inner.names
    if draw(st.integers(0, 2)) == 0:
        names = _permuted(draw, len(names))
        return Source(f"{text} AS {alias}({', '.join(names)})", alias, names)
    return Source(f"{text} AS {alias}", alias, names)


def _where(draw: st.DrawFn, *sources: Source) -> str:
    if draw(st.booleans()):
        return ""
    return f" WHERE {draw(conditions(lambda: _any_column(draw, sources)))}"


def _any_column(draw: st.DrawFn, sources: Sequence[Source], bare: str | None = None) -> str:
    if bare and (not sources or draw(st.integers(0, 2)) == 0):
        return bare
    return draw(st.sampled_from(sources)).column(draw, full=bare is not None or len(sources) > 1)


def _items(draw: st.DrawFn, width: int, *sources: Source, bare: str | None = None) -> tuple[list[str], tuple[str, ...]]:
    """Columns and what is computed of them, under names of which some are taken below."""
    names = _permuted(draw, width)
    found = []
    for name in names:
        if draw(st.integers(0, 3)):
            text = _any_column(draw, sources, bare)
        else:
            text = draw(values(lambda: _any_column(draw, sources, bare)))
        found.append(_as(draw, text, name))
    return found, names


def _selected(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    source = _source(draw, depth, tables, "p")
    if width == len(source.names) and draw(st.integers(0, 4)) == 0:
        star = draw(st.sampled_from(["*", "p.*"]))
        return Drawn(f"SELECT {star} FROM {source.text}{_where(draw, source)}", source.names)
    items, names = _items(draw, width, source)
    return Drawn(f"SELECT {', '.join(items)} FROM {source.text}{_where(draw, source)}", names)


def _distinct(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    source = _source(draw, depth, tables, "p")
    items, names = _items(draw, width, source)
    return Drawn(f"SELECT DISTINCT {', '.join(items)} FROM {source.text}{_where(draw, source)}", names)


def _grouped(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    """Keys by themselves, by their aliases or by their numbers; aggregates beside them, and HAVING."""
    source = _source(draw, depth, tables, "p")
    names = _permuted(draw, width)
    items, by = [], []
    keys = draw(st.integers(0, min(2, width)))
    for number, name in enumerate(names):
        if number >= keys:
            items.append(_as(draw, draw(aggregates(lambda: source.column(draw))), name))
            continue
        plain = draw(st.integers(0, 2)) > 0
        text = source.column(draw) if plain else f"{source.column(draw)} DIV 2"
        items.append(_as(draw, text, name))
        ways = [text, text, str(number + 1)]
        # An attribute goes before an alias; so an alias that is an attribute's name would mean that.
        if name not in source.names and items[-1] != text:
            ways.append(name)
        by.append(draw(st.sampled_from(ways)))
    if keys == 0 and draw(st.booleans()):
        by.append(source.column(draw))
    group = f" GROUP BY {', '.join(by)}" if by else ""
    if keys and keys < width and not any(key.isdigit() for key in by) and draw(st.integers(0, 2)) == 0:
        sets = draw(
            st.sampled_from(["ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())", "GROUPING SETS (({0}), ({0}))"])
        )
        group = f" GROUP BY {sets.format(', '.join(by))}"
        if draw(st.booleans()):
            called = draw(st.sampled_from(["grouping_id()", f"grouping({by[0]})"]))
            items[-1] = f"CAST({called} AS INT) AS {names[-1]}"
    having = ""
    if draw(st.integers(0, 3)) == 0:
        having = f" HAVING {draw(st.sampled_from(['count(*) > 1', 'count(*) > 100', f'max(p.{source.names[0]}) > 0']))}"
    where = _where(draw, source)
    return Drawn(f"SELECT {', '.join(items)} FROM {source.text}{where}{group}{having}", names)


def _windowed(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    """Windows and sessions of a column taken for seconds, and what is computed of each."""
    source = _source(draw, depth, tables, "p")
    names = _permuted(draw, width)
    moment = f"timestamp_seconds({source.column(draw)})"
    lengths = draw(st.sampled_from(["'2 seconds'", "'2 seconds', '1 second'", "'3 seconds', '2 seconds', '1 second'"]))
    cut = draw(st.sampled_from([f"window({moment}, {lengths})", f"session_window({moment}, '1 second')"]))
    called = cut.partition("(")[0]
    items = [_as(draw, f"unix_seconds({called}.{draw(st.sampled_from(['start', 'end']))})", names[0])]
    items += [_as(draw, draw(aggregates(lambda: source.column(draw))), name) for name in names[1:]]
    by, text = [cut], source.text
    if draw(st.booleans()):
        by.insert(draw(st.integers(0, 1)), source.column(draw))
    if draw(st.integers(0, 2)) == 0:
        # What is cut, under a name of its own, may be a key beside its windows.
        text = f"(SELECT *, {moment} AS d FROM {source.text}) AS {source.alias}"
        by = [key.replace(moment, "d") for key in by]
        by.insert(draw(st.integers(0, len(by))), draw(st.sampled_from(["d", "D", f"{source.alias}.d"])))
    where = _where(draw, source)
    return Drawn(f"SELECT {', '.join(items)} FROM {text}{where} GROUP BY {', '.join(by)}", names)


def _rolled(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    """A function over the rows around each, in the order of all columns, so that those that are equal are alike."""
    source = _source(draw, depth, tables, "p")
    column = source.column(draw)
    by = draw(st.sampled_from(["", *(f"PARTITION BY {name} " for name in source.names)]))
    over = f"({by}ORDER BY {_order(draw, source.names)}{{}})"
    whole, aggregate = over.format(""), draw(st.sampled_from(["sum", "min", "max", "count"]))
    frames = ["2 PRECEDING", "UNBOUNDED PRECEDING"]
    frames += [f"BETWEEN {ends}" for ends in ("2 PRECEDING AND 1 PRECEDING", "1 PRECEDING AND 1 FOLLOWING")]
    frames += ["BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING"]
    rows = f" ROWS {draw(st.sampled_from(frames))}"
    function = draw(st.sampled_from([
        f"CAST({aggregate}({column}) OVER {over.format(rows)} AS BIGINT)",
        f"CAST(lag({column}{draw(st.sampled_from(['', ', 2', ', 1, 0']))}) OVER {whole} AS BIGINT)",
        f"CAST(lead({column}{draw(st.sampled_from(['', ', 2', ', 1, 0']))}) OVER {whole} AS BIGINT)",
        f"CAST(first_value({column}) OVER {whole} AS BIGINT)",
        f"CAST({aggregate}({column}) OVER ({by.strip()}) AS BIGINT)",
        f"ntile({draw(st.integers(1, 3))}) OVER {whole}",
        f"CAST(cume_dist() OVER {whole} * 100 AS INT)",
        f"dense_rank() OVER {whole}",  # A rank stands by itself.
    ]))  # fmt: skip
    inner = f"SELECT *, {function} AS d FROM {source.text}"
    items, names = _items(draw, width, Source(f"({inner}) AS q", "q", (*source.names, "d")))
    return Drawn(f"SELECT {', '.join(items)} FROM ({inner}) AS q", names)


JOINS = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]


def _joined(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    left, right = _source(draw, depth, tables, "p"), _source(draw, draw(st.integers(0, depth - 1)), tables, "q")
    kind = draw(st.sampled_from(JOINS))
    common = [name for name in left.names if name in right.names]
    shown = (left,) if "SEMI" in kind or "ANTI" in kind else (left, right)
    if common and draw(st.integers(0, 2)) == 0:
        # What is equal is neither side's alone: it is asked for by its bare name.
        key = draw(st.sampled_from(common))
        rest = [replace(side, names=tuple(name for name in side.names if name != key)) for side in shown]
        items, names = _items(draw, width, *(side for side in rest if side.names), bare=key)
        return Drawn(f"SELECT {', '.join(items)} FROM {left.text} {kind} {right.text} USING ({key})", names)
    on = f"{left.column(draw, full=True)} = {right.column(draw, full=True)}"
    if draw(st.integers(0, 2)) == 0:
        compared = draw(st.sampled_from(["<", "<=", ">", "<>"]))
        on += f" AND {left.column(draw, full=True)} {compared} {right.column(draw, full=True)}"
    if kind == "JOIN" and draw(st.integers(0, 3)) == 0:
        items, names = _items(draw, width, *shown)
        return Drawn(f"SELECT {', '.join(items)} FROM {left.text}, {right.text} WHERE {on}", names)
    items, names = _items(draw, width, *shown)
    return Drawn(f"SELECT {', '.join(items)} FROM {left.text} {kind} {right.text} ON {on}{_where(draw, *shown)}", names)


def _joined_asof(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    """Each of the left with the last of the right; of right ones that are equal in what is compared, only that."""
    left, right = _source(draw, depth, tables, "p"), _source(draw, draw(st.integers(0, depth - 1)), tables, "q")
    equal, at = (draw(st.sampled_from(right.names)) for _ in range(2))
    moment = draw(st.sampled_from(["{}", "CAST({} AS BIGINT)", "timestamp_seconds({})"]))
    sides = [moment.format(left.column(draw, full=True)), moment.format(right.column(draw, at, full=True))]
    match = draw(st.sampled_from(["{} >= {}", "{} > {}"])).format(*sides)
    on = f"{left.column(draw, full=True)} = {right.column(draw, equal, full=True)}"
    shown = left, replace(right, names=tuple(dict.fromkeys((equal, at))))
    items, names = _items(draw, width, *shown)
    kind = draw(st.sampled_from(["ASOF JOIN", "LEFT ASOF JOIN"]))
    joined = f"{left.text} {kind} {right.text} MATCH_CONDITION ({match}) ON {on}"
    return Drawn(f"SELECT {', '.join(items)} FROM {joined}{_where(draw, *shown)}", names)


def _with_subqueries(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    """Conditions with IN and EXISTS, values of aggregates; a bare name may mean either query's column."""
    source = _source(draw, depth, tables, "p")
    tests = [_compared_test(draw, depth, tables, source) for _ in range(draw(st.integers(0, 2)))]
    items, names = _items(draw, width, source)
    if not tests or draw(st.integers(0, 2)) == 0:
        items[-1] = f"{_value(draw, depth, tables, source)} AS {names[-1]}"
    where = _where(draw, source)
    tests = [where.replace(" WHERE ", "(") + ")", *tests] if where else tests
    if draw(st.integers(0, 3)) == 0:
        marked = draw(st.sampled_from(["CAST({} AS INT)", "CASE WHEN {} THEN 1 ELSE 0 END", "if({}, 2, 3)"]))
        items[0] = f"{marked.format(_compared_test(draw, depth, tables, source))} AS {names[0]}"
    tests = [f"NOT ({test})" if draw(st.integers(0, 5)) == 0 else test for test in tests]
    condition = f" WHERE {draw(st.sampled_from([' AND ', ' AND ', ' OR '])).join(tests)}" if tests else ""
    return Drawn(f"SELECT {', '.join(items)} FROM {source.text}{condition}", names)


COMPARED = [
    "({} = true)", "({} <> true)", "({} = {})", "({} <> {})", "({} <=> {})", "({} < {})", "({} IS TRUE)",
    "({} IS NOT FALSE)", "({} IS NULL)", "({} IS NOT NULL)", "coalesce({}, true)", "coalesce({}, {})",
    "if({}, {}, false)", "CASE WHEN {} THEN {} ELSE {} END", "CASE {} WHEN true THEN {} WHEN false THEN {} END",
    "({} AND {} OR {})", "({} IN ({}, true))", "({} <=> NULL)",
]  # fmt: skip
"""Comparisons of what is true, false or null: Spark's optimizer turns some of them into conditions of their own."""


def _compared_test(draw: st.DrawFn, depth: int, tables: Tables, source: Source) -> str:
    """A condition with subqueries, one in three compared with another."""
    if draw(st.integers(0, 2)):
        return _subquery_test(draw, depth, tables, source)
    begin, *rest = draw(st.sampled_from(COMPARED)).split("{}")
    return begin + "".join(f"({_subquery_test(draw, depth, tables, source)}){part}" for part in rest)


def _subquery_test(draw: st.DrawFn, depth: int, tables: Tables, source: Source) -> str:
    negated = draw(st.sampled_from(["", "NOT "]))
    column = source.column(draw, full=draw(st.booleans()))
    match draw(st.integers(0, 4)):
        case 0:
            return f"{column} {negated}IN ({draw(queries(depth - 1, tables, 1)).text})"
        case 1:
            inner, where = _correlated(draw, depth, tables, source)
            item = draw(st.sampled_from([inner.column(draw), f"{inner.column(draw)} + 1"]))
            return f"{column} {negated}IN (SELECT {item} FROM {inner.text}{where})"
        case 2:
            value = _value(draw, depth, tables, source)
            return f"({column} {draw(st.sampled_from(['=', '<', '>=', '<>', '<=>']))} {value} OR 1 = 0)"
        case 3:
            return f"{_value(draw, depth, tables, source)} {draw(st.sampled_from(['=', '<=', '>']))} {column}"
    inner, where = _correlated(draw, depth, tables, source)
    return f"{negated}EXISTS (SELECT {draw(st.sampled_from(['1', '*']))} FROM {inner.text}{where})"


def _correlated(
    draw: st.DrawFn, depth: int, tables: Tables, around: Source, *, only_equal: bool = False
) -> tuple[Source, str]:
    """A source of a subquery, and its WHERE, which may compare with the query around."""
    inner = _source(draw, draw(st.integers(0, depth - 1)), tables, "q")
    outer = [around.column(draw, full=draw(st.integers(0, 3)) > 0) for _ in range(draw(st.integers(0, 2)))]
    signs = ["=", "="] if only_equal else ["=", "=", "<", "<>"]
    tests = [f"{inner.column(draw)} {draw(st.sampled_from(signs))} {name}" for name in outer]
    if where := _where(draw, inner):
        tests.append(where.replace(" WHERE ", "(") + ")")
    return inner, f" WHERE {' AND '.join(tests)}" if tests else ""


def _value(draw: st.DrawFn, depth: int, tables: Tables, source: Source) -> str:
    inner, where = _correlated(draw, depth, tables, source, only_equal=True)
    whole = [
        "count(*)",
        "count(*) + 1",
        "max({0})",
        "CAST(sum({0}) AS BIGINT)",
        "-min({0}) - count({0})",
        "coalesce(max({0}), 7)",
    ]
    return f"(SELECT {draw(st.sampled_from(whole)).format(inner.column(draw))} FROM {inner.text}{where})"


def _set_operation(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    """Two queries by position; the names are those of the first."""
    one = draw(queries(depth - 1, tables, width))
    other = draw(queries(draw(st.integers(0, depth - 1)), tables, width))
    operation = draw(st.sampled_from(["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"]))
    return Drawn(f"{one.side} {operation} {other.side}", one.names, is_plain=False)


def _with(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    """Named subqueries, one perhaps called as a table is, which is not to be seen after it."""
    inner = draw(queries(depth - 1, tables))
    called = draw(st.sampled_from(["w", "w", "r", "s", "p"]))
    names, columns = inner.names, ""
    if draw(st.booleans()):
        names = _permuted(draw, len(inner.names))
        columns = f"({', '.join(names)})"
    outer = draw(queries(depth - 1, {**tables, called: names}, width))
    if outer.text.startswith("WITH"):
        outer = Drawn(f"SELECT * FROM ({outer.text}) AS x", outer.names)
    return Drawn(f"WITH {called}{columns} AS ({inner.text}) {outer.text}", outer.names, is_plain=False)


def _order(draw: st.DrawFn, names: Sequence[str]) -> str:
    """All of these columns in some order: ties are equal."""
    ways = ["", " DESC", " NULLS LAST", " DESC NULLS FIRST"]
    return ", ".join(f"{name}{draw(st.sampled_from(ways))}" for name in draw(st.permutations(names)))


def _limited(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    """The first in the order of all columns, some of which are perhaps not selected."""
    inner = draw(queries(depth - 1, tables))
    names = inner.names if len(inner.names) <= width else tuple(draw(st.permutations(inner.names)))[:width]
    ends = draw(st.sampled_from(["LIMIT {}", "LIMIT {}", "LIMIT {} OFFSET 1", "OFFSET {}"])).format(
        draw(st.integers(1, 3))
    )
    by = _order(draw, inner.names)
    if len(names) < width:
        return draw(queries(depth - 1, tables, width))
    return Drawn(f"SELECT {', '.join(names)} FROM ({inner.text}) AS p ORDER BY {by} {ends}", names, is_plain=False)


def _exploded(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    """Elements of arrays as rows, by SELECT or in FROM."""
    source = _source(draw, depth, tables, "p")
    called = draw(st.sampled_from(["explode", "explode_outer"]))
    array = f"{called}(array({source.column(draw)}, {source.column(draw)}))"
    items, names = _items(draw, width, source)
    if draw(st.booleans()):
        items[0] = f"{array} AS {names[0]}"
        return Drawn(f"SELECT {', '.join(items)} FROM {source.text}{_where(draw, source)}", names)
    items[0] = f"v.e AS {names[0]}"
    return Drawn(f"SELECT {', '.join(items)} FROM {source.text}, LATERAL {array} AS v(e){_where(draw, source)}", names)


def _ranked(draw: st.DrawFn, depth: int, tables: Tables, width: int) -> Drawn:
    """The first of each group; the rank has a letter that is free, and is perhaps selected."""
    source = _source(draw, depth, tables, "p")
    function = draw(st.sampled_from(["rank", "dense_rank", "row_number"]))
    order = _order(draw, source.names if function == "row_number" else source.names[:1])
    by = draw(st.sampled_from(["", *(f"PARTITION BY {name} " for name in source.names)]))
    free = [*(letter for letter in LETTERS if letter not in source.names), "d"]
    called = free[0]
    inner = f"SELECT *, {function}() OVER ({by}ORDER BY {order}) AS {called} FROM {source.text}"
    ranked = Source(f"({inner}) AS q", "q", (*source.names, called))
    items, names = _items(draw, width, ranked)
    return Drawn(f"SELECT {', '.join(items)} FROM {ranked.text} WHERE {called} <= {draw(st.integers(1, 2))}", names)
