"""Calls that Spark lacks, rewritten to Spark's expressions: time windows of Flink and RisingWave, ISO 8601 durations.

    FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES))     a table with window_start, window_end, …
    FROM HOP(bid, ts, INTERVAL '2 MINUTES', INTERVAL '10 MINUTES')           RisingWave: first the slide, as in Flink
    FROM slope(TABLE(bid) PARTITION BY auction)                              Spark's call of a function of groups
    CAST(t AS TIMESTAMP_LTZ(6))                                              Flink's type with Spark's precision
    GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)                                   Flink's older form, with TUMBLE_START(…)
    FROM TABLE(SESSION(TABLE bid PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTES)) GROUP BY k, window_start, …
    FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY))
    iso_duration(delay), try_iso_duration(delay)                             'PT1H30M' as INTERVAL DAY TO SECOND

Sources: Flink's "Windowing table-valued functions" and "Group windows", RisingWave's "Time windows". Sessions in FROM
become those of the GROUP BY around them. Cumulating windows are those of the overlapping ones of the whole length that
end within it: of these, each has the tuples since the whole one's start.

Spark also reads the text of a query (`xmlstream.sql.spark.analysis`). So each replacement in the tree has a replacement
in the text; tables and subqueries within a call keep their own text and places. Where a query changes in several
places, Spark reads what its tree is printed as.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.expressions.dialect import as_read, call_name, expression, statement, tokens
from xmlstream.operators.expressions.duration import (
    ISO_DURATIONS,
    ISO_HINT,
    OF_FIXED_LENGTH,
    duration,
    is_iso_duration,
    iso_duration,
    length_text,
)
from xmlstream.operators.expressions.operations.python_functions import PythonFunction
from xmlstream.punct_ns.errors import QueryError, format_error
from xmlstream.sql.created_functions import require_arguments
from xmlstream.sql.query_text import QueryText

_LENGTHS: Mapping[str, tuple[str, ...]] = {
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP",),
}
"""Length arguments of each window function, in order, after the table and the moment."""

_ENDS = {"": "{}", "_START": "{}.start", "_END": "{}.end", "_ROWTIME": "({}.end - INTERVAL 1 MILLISECOND)"}
_FUNCTIONS = {f"{name}{end}": name for name in ("TUMBLE", "HOP", "SESSION") for end in _ENDS} | {"CUMULATE": "CUMULATE"}
_COLUMNS = {"window_start": "_START", "window_end": "_END", "window_time": "_ROWTIME"}
"""Columns that a windowed table adds to its own."""

_DIFFERS = {
    "regexp_extract": (
        "REGEXP_EXTRACT gives another result here (Spark) than in Flink: '' and not null without a match, the first"
        " group and not the whole match without a number",
        "write nullif(regexp_extract(s, '…', 0), '') to get Flink's result",
    ),
    **{
        name: (
            f"{name.upper()} gives another result here (Spark) than in Flink: it ignores nulls, while Flink's is null"
            " if any argument is null",
            f"write CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN {name}(a, b) END to get Flink's result",
        )
        for name in ("greatest", "least")
    },
}
"""Functions of both engines with different meanings: the difference, and a hint."""

_MOMENTS = frozenset({exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ})
_DATA = "\0"
"""Placeholder for a call's table in the text that surrounds it."""
_TABLE, _MOMENT = "xs table", "xs moment"
"""Placeholders for a call's table and moment in a query that is read."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Replacements in the text for Spark: start, end and new text of each; the Python functions that it may call.

    With anything `printed`, Spark reads the printed tree instead.
    """

    text: QueryText
    replaced: list[tuple[int, int, QueryText]] = field(default_factory=list)
    printed: list[exp.Expr] = field(default_factory=list)
    functions: Mapping[str, PythonFunction] = field(default_factory=dict)

    def for_spark(self, start: int, end: int) -> QueryText:
        """The text for Spark between two offsets."""
        parts, done = list[QueryText](), start
        for begin, until, instead in sorted(self.replaced, key=lambda part: part[0]):
            if done <= begin < end:
                parts += [self.text.part(done, begin), instead]
                done = until
        return QueryText.joined([*parts, self.text.part(done, end)]) if parts else self.text.part(start, end)

    def rewrite(self, tree: exp.Expr) -> None:
        """Replaces Flink's windows and types and ISO 8601 durations in a tree by Spark's expressions.

        Raises:
            QueryError: A window has no equivalent, or a constant is not a duration; the hint says what to write.
        """
        self._functions(tree)
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
                        self._table(node, _Call.of(call, self.text))
                case exp.Anonymous(expressions=[exp.Var(this=unit), *_]):
                    self._capitals(node.meta["start"], unit)
                case exp.Anonymous() if id(node) not in calls_in_from and str(node.this).upper() in _FUNCTIONS:
                    node.replace(self._function(node, _Call.of(node, self.text)))
        for call in reversed([*tree.find_all(exp.Anonymous, bfs=False)]):  # an argument is rewritten before its call
            if call_name(call) in ISO_DURATIONS:
                self._duration(call)

    def _functions(self, tree: exp.Expr) -> None:
        """Names the functions of Python that a tree calls by their keys; those in FROM become subqueries."""
        for call in reversed([*tree.find_all(exp.Anonymous, bfs=False)]):  # an argument is rewritten before its call
            function = self.functions.get(call_name(call))
            if function is None or isinstance(call.parent, exp.Lateral | exp.Window):
                continue
            if isinstance(call.parent, exp.Table):
                call.parent.replace(self._of_groups(call.parent, call, function))
                continue
            require_arguments(call, function, self.text)
            begin = call.meta["start"]
            self._replace(begin, begin + len(str(call.this)), function.key, begin)
            call.set("this", function.key)

    def _capitals(self, start: int, unit: str) -> None:
        """Writes a call's unit of time in capitals, as the tree has it: Spark's plans of `hour` and HOUR differ."""
        if written := re.compile(r"\w+\s*\(\s*(\w+)").match(self.text.text, start):
            self._replace(written.start(1), written.end(1), unit, written.start(1))

    def _duration(self, call: exp.Anonymous) -> None:
        """Replaces `iso_duration(text)` or `try_iso_duration(text)`; an item without a name is named by the call."""
        name, begin, end = call_name(call), call.meta["start"], call.meta["until"]
        if len(call.expressions) != 1:
            raise self.text.error(f"{name} takes one text", begin, f"write {name}(delay)")
        (given,) = call.expressions
        if isinstance(given, exp.Literal) and name == "iso_duration" and not is_iso_duration(str(given.this)):
            raise self.text.error(f"'{given.this}' is not {OF_FIXED_LENGTH}", given, ISO_HINT)
        written = self.for_spark(self.text.text.index("(", begin) + 1, end - 1)
        around, instead = (iso_duration(text, name, begin) for text in (exp.var(_DATA), given))
        if isinstance(call.parent, exp.Select) and call.arg_key == "expressions":
            title = f"{name}({as_read(given).replace('`', '')})"
            around, instead = (exp.alias_(each, title, quoted=True) for each in (around, instead))
        first, *others = (self.text.standing(part, begin) for part in as_read(around).split(_DATA))
        parts = [first, *(part for other in others for part in (written, other))]
        self.replaced.append((begin, end, QueryText.joined(parts)))
        call.replace(instead)

    def _replace(self, begin: int, end: int, instead: str, at: int) -> None:
        self.replaced.append((begin, end, self.text.standing(instead, at)))

    def _table(self, table: exp.Table, call: _Call) -> None:
        """Puts a subquery that adds the windows' ends as attributes in the place of a table."""
        if call.name == "SESSION":
            self._sessions(table, call)
            return
        data, moment, lengths = call.given("DATA", 0), call.moment(1), call.lengths(2)
        if isinstance(data, exp.Column):
            data = exp.Table(this=data.this, db=data.args.get("table"))
        begin, end = _span(data.this if isinstance(data, exp.Table) else data)
        alias = None
        if isinstance(data, exp.Table) and not (data.args.get("db") or table.args.get("alias")):
            alias = exp.TableAlias(this=data.this.copy())

        def in_windows(data: exp.Expr, moment: exp.Expr) -> exp.Expr:
            if call.name == "CUMULATE":
                return call.cumulated(data, moment, lengths)
            ends = [exp.alias_(call.end(part, moment, lengths), column) for column, part in _COLUMNS.items()]
            return exp.Select(expressions=[exp.Star(), *ends], from_=exp.From(this=data))

        around = in_windows(exp.Table(this=exp.var(_DATA)), exp.var(call.written(moment)))
        before, behind = as_read(exp.Subquery(this=around, alias=alias)).split(_DATA)
        self._replace(table.this.meta["start"], begin, before, call.at)
        self._replace(end, table.this.meta["until"], behind, call.at)
        found = exp.Subquery(**{**table.args, "this": in_windows(data, moment)})
        if alias is not None:
            found.set("alias", alias)
        table.replace(found)

    def _sessions(self, table: exp.Table, call: _Call) -> None:
        """Makes a table of sessions the table itself, and groups by sessions where its windows are grouped by."""
        data, moment, (gap,) = call.given("DATA", 0), call.moment(1), call.lengths(2)
        keys = [each.name.lower() for each in data.args["partition"].expressions] if data.args.get("partition") else []
        select = table.find_ancestor(exp.Select)
        group = None if select is None else select.args.get("group")
        grouped = [] if group is None else [key.name.lower() for key in group.expressions]
        is_alone = select is not None and isinstance(table.parent, exp.From) and not select.args.get("joins")
        if not is_alone or sorted(grouped) != sorted({*keys, "window_start", "window_end"}):
            raise call.no_table_of_sessions(data, moment, gap)
        assert select is not None and group is not None  # noqa: PT018  as `is_alone` says
        if isinstance(data, exp.Column):
            data = exp.Table(this=data.this, db=data.args.get("table"))
        data.set("partition", None)
        if table.args.get("alias"):
            data.set("alias", table.args["alias"])
        table.replace(data)
        for column in list(select.find_all(exp.Column)):
            if (part := _COLUMNS.get(column.name.lower())) is None or column.find_ancestor(exp.Select) is not select:
                continue
            end = call.end(part, moment, [gap])
            if column.parent is group:
                column.replace(call.end("", moment, [gap])) if part == "_START" else column.pop()
            else:
                is_item = column.parent is select and column.arg_key == "expressions"
                column.replace(exp.alias_(end, column.name) if is_item else end)
        self.printed.append(select)

    def _of_groups(self, table: exp.Table, call: exp.Anonymous, function: PythonFunction) -> exp.Subquery:
        """A subquery over the function's table whose one item is the call, with the keys of the groups."""
        data, at = call.expressions[0] if len(call.expressions) == 1 else None, call.meta["start"]
        if not function.is_of_groups:
            hint = f"write {function.name}(…) where an expression may stand; one that RETURNS TABLE (…) stands in FROM"
            raise self.text.error(f"{function.name} is a function of one row, and no table", at, hint)
        if not isinstance(data, exp.Table | exp.Subquery) or data.args.get("partition") is None:
            several = len(call.expressions) > 1
            what = f"{function.name} takes a table, and nothing else" if several else f"{function.name} has no groups"
            hint = (
                f"write FROM {function.name}(TABLE(t) PARTITION BY k), several keys as (k, l); or WITH SINGLE PARTITION"
            )
            raise self.text.error(what, at, hint)
        if data.args.get("order") is not None:
            hint = "the rows come sorted by their columns: name first what counts first, TABLE(SELECT ts, v, k FROM t)"
            raise self.text.error(f"ORDER BY of the rows of {function.name} is not supported", data.args["order"], hint)
        keys = data.args["partition"].expressions
        data.set("partition", None)

        def over(data: exp.Expr) -> exp.Select:
            of_groups = exp.Anonymous(this=function.key, expressions=[key.copy() for key in keys])
            of_groups.meta["start"] = at
            return exp.Select(
                expressions=[exp.Anonymous(this="inline", expressions=[of_groups])], from_=exp.From(this=data)
            )

        before, behind = as_read(exp.Subquery(this=over(exp.Table(this=exp.var(_DATA))))).split(_DATA)
        left, right = ("(", ")") if isinstance(data, exp.Subquery) else ("", "")
        begin, end = data.meta["data"]
        self._replace(at, begin, before + left, at)
        self._replace(end, call.meta["until"], right + behind, at)
        return exp.Subquery(**{**table.args, "this": over(data)})

    def _function(self, node: exp.Anonymous, call: _Call) -> exp.Expr:
        """Spark's window, or its start or end, for a call in SELECT or GROUP BY."""
        moment, lengths = call.moment(0), call.lengths(1)
        if call.name == "CUMULATE":
            raise call.no_cumulation()
        part = call.name.removeprefix(call.window)
        instead = as_read(call.end(part, exp.var(call.written(moment)), lengths))
        self._replace(call.at, node.meta["until"], instead, call.at)
        return call.end(part, moment, lengths)


@dataclass(frozen=True, slots=True)
class _Call:
    """Call of a window function: name, arguments by name or number, and offset in the text."""

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
        """Name of the window function: TUMBLE for TUMBLE_START."""
        return _FUNCTIONS[self.name]

    def given(self, name: str, number: int, hint: str | None = None) -> exp.Expr:
        """A required argument; the default hint is for a missing table or moment."""
        if (found := self.arguments.get(name) or self.arguments.get(number)) is None:
            lengths = ("INTERVAL '10' MINUTES" for _ in _LENGTHS[self.window][:-1])
            hint = hint or f"write {self.name}({', '.join(('TABLE bid', 'DESCRIPTOR(ts)', *lengths))})"
            raise self.text.error(f"{self.name} without {name} is not supported", self.at, hint)
        return found

    def moment(self, number: int) -> exp.Expr:
        """The moment to cut into windows."""
        found = self.given("TIMECOL", number)
        is_descriptor = isinstance(found, exp.Anonymous) and str(found.this).upper() == "DESCRIPTOR"
        return found.expressions[0] if is_descriptor and found.expressions else found

    def lengths(self, first: int) -> list[str | None]:
        """The lengths in the form of Spark's windows, from argument number `first` on; None for no offset."""
        found = [self._length(name, number) for number, name in enumerate(_LENGTHS[self.window], first)]
        if self.window == "CUMULATE":
            step, size = (duration(exp.Literal.string(str(length))) for length in found[:2])
            if step is None or size is None or step <= 0 or size % step:
                hint = "write a size that is a number of steps, such as INTERVAL '1' HOUR, INTERVAL '1' DAY"
                raise self.text.error(f"CUMULATE of {found[1]} in steps of {found[0]}", self.at, hint)
        return found

    def _length(self, name: str, number: int) -> str | None:
        if name == "OFFSET" and not self.arguments.keys() & {name, number}:
            return None
        found = self.given(name, number, "write a length, such as INTERVAL '10' MINUTES")
        if (length := _microseconds(found)) is None:
            hint = "write a constant length of weeks or less, such as INTERVAL '10' MINUTES"
            raise self.text.error(f"{self.written(found)} is not a window length", _span(found)[0], hint)
        return length_text(length)

    def end(self, part: str, moment: exp.Expr, lengths: Sequence[str | None]) -> exp.Expr:
        """Spark's window of a moment, or one of its ends; Spark takes the size first, then the slide."""
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
        """The text from the first of the trees to the last."""
        return self.text.text[_span(trees[0])[0] : _span(trees[-1])[1]]

    def no_table_of_sessions(self, data: exp.Expr, moment: exp.Expr, gap: str | None) -> QueryError:
        """Error: session windows are supported in GROUP BY, but not as a table."""
        partition = data.args.get("partition")
        keys = f"{self.written(*partition.expressions)}, " if partition is not None else ""
        window = f"session_window({self.written(moment)}, '{gap}')"
        table = self.written(data.this if isinstance(data, exp.Table) else data)
        hint = (
            f"write SELECT {keys}session_window.start, session_window.end, count(*) AS n FROM {table} "
            f"GROUP BY {keys}{window}"
        )
        return self.text.error("SESSION(…) as a table is not supported", self.at, hint)

    def cumulated(self, data: exp.Expr, moment: exp.Expr, lengths: Sequence[str | None]) -> exp.Expr:
        """The table with its cumulating windows."""
        step, size, offset = lengths
        whole, shifted = f"'{size}'", ""
        if offset is not None:
            lengths_ = (duration(exp.Literal.string(str(length))) or 0 for length in (step, size, offset))
            of_step, of_size, shift = lengths_
            whole = f"'{size}', '{size}', '{length_text(shift % of_size)}'"
            shifted = f", '{length_text(shift % of_step)}'"
        text = (
            "SELECT * EXCEPT (window_step, window_whole), window_whole.start AS window_start, window_step.end AS"
            " window_end, (window_step.end - INTERVAL 1 MILLISECOND) AS window_time FROM"
            f" (SELECT *, window(window_time(window_step), {whole}) AS window_whole FROM (SELECT *,"
            f" window(`{_MOMENT}`, '{size}', '{step}'{shifted}) AS window_step FROM `{_TABLE}`))"
            f" WHERE `{_MOMENT}` >= window_whole.start"
        )
        tree = statement(tokens(text), text)
        for node in tree.walk():
            node.meta["start"] = self.at

        def meant(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Table) and node.name == _TABLE:
                return data
            return moment.copy() if isinstance(node, exp.Column) and node.name == _MOMENT else node

        return tree.transform(meant, copy=False)

    def no_cumulation(self) -> QueryError:
        """Error: cumulating windows are a table."""
        hint = (
            "write FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY)) GROUP BY"
            " window_start, window_end"
        )
        return self.text.error("CUMULATE(…) outside of FROM is not supported", self.at, hint)


def differences_from_flink(tree: exp.Expr, text: QueryText) -> list[str]:
    """Warnings for functions in the query whose result differs in Flink, one per function."""
    found = {str(call.this).lower(): call for call in reversed([*tree.find_all(exp.Anonymous)])}
    warned = [(_DIFFERS[name], call) for name, call in found.items() if name in _DIFFERS]
    return [format_error(text.error(what, call, hint)) for (what, hint), call in warned]


def _span(tree: exp.Expr) -> tuple[int, int]:
    """Start and end of an argument in the text, or else of the names in it."""
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
