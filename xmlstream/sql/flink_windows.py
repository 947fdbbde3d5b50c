"""Windows in time as Flink and RisingWave write them: their calls in a parsed query become those of Spark's windows.

    FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES))     a table with window_start, window_end, …
    FROM HOP(bid, ts, INTERVAL '2 MINUTES', INTERVAL '10 MINUTES')           RisingWave: first the slide, as in Flink
    CAST(t AS TIMESTAMP_LTZ(6))                                              Flink's, of Spark's own precision
    GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)                                   Flink's older form, with TUMBLE_START(…)

Sources: Flink's "Windowing table-valued functions" and "Group windows", RisingWave's "Time windows". Sessions as a
table and windows that cumulate are refused with what to write, of the same table, attribute and lengths.

Spark reads the text of a query too (`xmlstream.sql.spark.analysis`). So each call that is replaced in the tree comes
with the text that replaces it there; tables and subqueries within a call keep their own text and places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from operators.expressions.dialect import as_read, expression
from operators.expressions.duration import duration, length_text
from punct_ns.errors import QueryError, format_error
from xmlstream.sql.query_text import QueryText

_LENGTHS: Mapping[str, tuple[str, ...]] = {
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP",),
}
"""What each takes behind the table and the moment, in order."""

_ENDS = {"": "{}", "_START": "{}.start", "_END": "{}.end", "_ROWTIME": "({}.end - INTERVAL 1 MILLISECOND)"}
_FUNCTIONS = {f"{name}{end}": name for name in ("TUMBLE", "HOP", "SESSION") for end in _ENDS} | {"CUMULATE": "CUMULATE"}
_COLUMNS = {"window_start": "_START", "window_end": "_END", "window_time": "_ROWTIME"}
"""What a table in windows has beside its own columns."""

_DIFFERS = {
    "regexp_extract": (
        "REGEXP_EXTRACT without a match is '' in Spark and null in Flink, and without a number it is the first group"
        " in Spark and the whole match in Flink",
        "write nullif(regexp_extract(s, '…', 0), '') to get Flink's result",
    ),
    **{
        name: (
            f"{name.upper()} leaves nulls out in Spark, and is null in Flink where one argument is",
            f"write CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN {name}(a, b) END to get Flink's result",
        )
        for name in ("greatest", "least")
    },
}
"""Functions that both have, and that do not mean the same: what differs, and what to write."""

_MOMENTS = frozenset({exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ})
_DATA = "\0"
"""Stands for the table of a call in the text that is written around it."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The parts of a text that Spark reads otherwise: from where to where, and what it reads there."""

    text: QueryText
    replaced: list[tuple[int, int, QueryText]] = field(default_factory=list)

    def for_spark(self, start: int, end: int) -> QueryText:
        """What Spark reads between two places of the text."""
        parts, done = list[QueryText](), start
        for begin, until, instead in sorted(self.replaced, key=lambda part: part[0]):
            if done <= begin < end:
                parts += [self.text.part(done, begin), instead]
                done = until
        return QueryText.joined([*parts, self.text.part(done, end)]) if parts else self.text.part(start, end)

    def rewrite(self, tree: exp.Expr) -> None:
        """Puts Spark's windows and types into a tree in place of others.

        Raises:
            QueryError: A window has no like here; says what to write.
        """
        calls_in_from = set[int]()
        for node in list(tree.find_all(exp.DataType, exp.Table, exp.Anonymous, bfs=False)):
            match node:
                case exp.DataType(expressions=[exp.DataTypeParam(this=exp.Literal(this="6") as digits)]):
                    if node.this in _MOMENTS:
                        begin = self.text.text.rindex("(", 0, digits.meta["start"])
                        self._replace(begin, self.text.text.index(")", begin) + 1, "", begin)
                        node.set("expressions", [])
                case exp.Table(this=exp.Anonymous() as outer):
                    is_wrapped = str(outer.this).upper() == "TABLE" and len(outer.expressions) == 1
                    call = outer.expressions[0] if is_wrapped else outer
                    calls_in_from |= {id(outer), id(call)}
                    if isinstance(call, exp.Anonymous) and str(call.this).upper() in _LENGTHS:
                        node.replace(self._table(node, _Call.of(call, self.text)))
                case exp.Anonymous() if id(node) not in calls_in_from and str(node.this).upper() in _FUNCTIONS:
                    node.replace(self._function(node, _Call.of(node, self.text)))

    def _replace(self, begin: int, end: int, instead: str, at: int) -> None:
        self.replaced.append((begin, end, self.text.standing(instead, at)))

    def _table(self, table: exp.Table, call: _Call) -> exp.Subquery:
        """The table with the windows' ends as attributes, as a subquery."""
        data, moment, lengths = call.given("DATA", 0), call.moment(1), call.lengths(2)
        if isinstance(data, exp.Column):
            data = exp.Table(this=data.this, db=data.args.get("table"))
        begin, end = _span(data.this if isinstance(data, exp.Table) else data)
        if call.name == "SESSION":
            raise call.no_table_of_sessions(data, moment, lengths[0])
        if call.name == "CUMULATE":
            raise call.no_cumulation(self.text.text[begin:end], moment, lengths)
        alias = None
        if isinstance(data, exp.Table) and not (data.args.get("db") or table.args.get("alias")):
            alias = exp.TableAlias(this=data.this.copy())

        def in_windows(data: exp.Expr, moment: exp.Expr) -> exp.Select:
            ends = [exp.alias_(call.end(part, moment, lengths), column) for column, part in _COLUMNS.items()]
            return exp.Select(expressions=[exp.Star(), *ends], from_=exp.From(this=data))

        around = in_windows(exp.Table(this=exp.var(_DATA)), exp.var(call.written(moment)))
        before, behind = as_read(exp.Subquery(this=around, alias=alias)).split(_DATA)
        self._replace(table.this.meta["start"], begin, before, call.at)
        self._replace(end, table.this.meta["until"], behind, call.at)
        found = exp.Subquery(**{**table.args, "this": in_windows(data, moment)})
        if alias is not None:
            found.set("alias", alias)
        return found

    def _function(self, node: exp.Anonymous, call: _Call) -> exp.Expr:
        """The window, or its start or end, of a moment that stands beside what is grouped."""
        moment, lengths = call.moment(0), call.lengths(1)
        if call.name == "CUMULATE":
            raise call.no_cumulation("…", moment, lengths)
        part = call.name.removeprefix(call.window)
        instead = as_read(call.end(part, exp.var(call.written(moment)), lengths))
        self._replace(call.at, node.meta["until"], instead, call.at)
        return call.end(part, moment, lengths)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a window: its name, its arguments by name or by number, and where it stands."""

    name: str
    arguments: Mapping[str | int, exp.Expr]
    at: int
    text: QueryText

    @staticmethod
    def of(call: exp.Anonymous, text: QueryText) -> _Call:
        arguments: dict[str | int, exp.Expr] = {}
        for number, argument in enumerate(call.expressions):
            is_named = isinstance(argument, exp.Kwarg)
            arguments[argument.name.upper() if is_named else number] = argument.expression if is_named else argument
        return _Call(str(call.this).upper(), arguments, call.meta["start"], text)

    @property
    def window(self) -> str:
        """The window that it is, or a part of it: TUMBLE for TUMBLE_START."""
        return _FUNCTIONS[self.name]

    def given(self, name: str, number: int) -> exp.Expr:
        """An argument that it needs."""
        if (found := self.arguments.get(name) or self.arguments.get(number)) is None:
            lengths = ("INTERVAL '10' MINUTES" for _ in _LENGTHS[self.window][:-1])
            form = ", ".join(("TABLE bid", "DESCRIPTOR(ts)", *lengths))
            raise self.text.error(f"{self.name} without {name}", self.at, f"write {self.name}({form})")
        return found

    def moment(self, number: int) -> exp.Expr:
        """What it cuts."""
        found = self.given("TIMECOL", number)
        is_descriptor = isinstance(found, exp.Anonymous) and str(found.this).upper() == "DESCRIPTOR"
        return found.expressions[0] if is_descriptor and found.expressions else found

    def lengths(self, first: int) -> list[str | None]:
        """Its lengths as Spark's windows take them, from an argument on; None for an offset that is not given."""
        return [self._length(name, number) for number, name in enumerate(_LENGTHS[self.window], first)]

    def _length(self, name: str, number: int) -> str | None:
        if (found := self.arguments.get(name) or self.arguments.get(number)) is None:
            if name == "OFFSET":
                return None
            raise self.text.error(
                f"{self.name} without {name}", self.at, "write a length, such as INTERVAL '10' MINUTES"
            )
        if (length := _microseconds(found)) is None:
            hint = "write a constant length of weeks or less, such as INTERVAL '10' MINUTES"
            raise self.text.error(f"{self.written(found)} is no length of a window", _span(found)[0], hint)
        return length_text(length)

    def end(self, part: str, moment: exp.Expr, lengths: Sequence[str | None]) -> exp.Expr:
        """An end of Spark's window of a moment, or all of it: the size comes first, the slide behind it."""
        *slides, size, start = (*lengths, None) if self.window == "SESSION" else lengths
        slide = slides[0] if slides else size if start is not None else None
        given = [exp.Literal.string(length) for length in (size, slide, start) if length is not None]
        name = "session_window" if self.window == "SESSION" else "window"
        window = exp.Anonymous(this=name, expressions=[moment.copy(), *given])
        found = expression(_ENDS[part].format("w"))
        for node in (*found.walk(), window, *given):
            node.meta["start"] = self.at
        return found.transform(lambda node: window if isinstance(node, exp.Column) else node)

    def written(self, *trees: exp.Expr) -> str:
        """What stands in the text from the first of the trees to the last."""
        return self.text.text[_span(trees[0])[0] : _span(trees[-1])[1]]

    def no_table_of_sessions(self, data: exp.Expr, moment: exp.Expr, gap: str | None) -> QueryError:
        """That sessions are grouped by, and no table."""
        partition = data.args.get("partition")
        keys = f"{self.written(*partition.expressions)}, " if partition is not None else ""
        window = f"session_window({self.written(moment)}, '{gap}')"
        table = self.written(data.this if isinstance(data, exp.Table) else data)
        hint = (
            f"write SELECT {keys}session_window.start, session_window.end, count(*) AS n FROM {table} "
            f"GROUP BY {keys}{window}"
        )
        return self.text.error("SESSION(…) as a table is not supported", self.at, hint)

    def no_cumulation(self, table: str, moment: exp.Expr, lengths: Sequence[str | None]) -> QueryError:
        """That windows do not cumulate."""
        step, size, *_ = lengths
        hint = (
            f"count in steps and add them up: write SELECT begin, step, sum(n) OVER (PARTITION BY begin ORDER BY step)"
            f" AS n FROM (SELECT window(w, '{size}').start AS begin, w.end AS step, n FROM (SELECT window AS w,"
            f" count(*) AS n FROM {table} GROUP BY window({self.written(moment)}, '{step}')))"
        )
        return self.text.error("CUMULATE(…) is not supported", self.at, hint)


def differences(tree: exp.Expr, text: QueryText) -> list[str]:
    """Warnings for the functions in a query that give another result in Flink, one for each function."""
    found = {str(call.this).lower(): call for call in reversed([*tree.find_all(exp.Anonymous)])}
    warned = [(_DIFFERS[name], call) for name, call in found.items() if name in _DIFFERS]
    return [format_error(text.error(what, call, hint)) for (what, hint), call in warned]


def _span(tree: exp.Expr) -> tuple[int, int]:
    """From where to where an argument stands in the text, or else the names in it."""
    leaves = [node.meta for node in tree.walk() if "start" in node.meta]
    around = min((leaf["start"] for leaf in leaves), default=0), max((leaf["end"] + 1 for leaf in leaves), default=0)
    found: tuple[int, int] = tree.meta.get("span", around)
    return found


def _microseconds(tree: exp.Expr) -> int | None:
    match tree:
        case exp.Neg():
            found = _microseconds(tree.this)
            return None if found is None else -found
        case exp.Interval(this=exp.Literal() as number, args={"unit": exp.Var() as unit}):
            return duration(exp.Literal.string(f"{number.this} {unit.name}"))
        case exp.Interval(this=exp.Literal() as whole) if not tree.args.get("unit"):
            return duration(whole)
        case exp.Literal() if tree.is_string:
            return duration(tree)
    return None
