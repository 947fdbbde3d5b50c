"""Options of the builder's `run` and `start`, how `help()` shows them, and what wrong names and arguments are answered.

`ON_QUERIES` and the tables beside it have, for each method of PySpark, pandas or polars that the builder lacks, what to
write instead; names are compared without case and underscores.
"""

from __future__ import annotations

import difflib
import inspect
import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial, wraps
from inspect import Parameter
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, TypedDict, TypeVar, cast

from xmlstream.extensions import extension
from xmlstream.plan.nodes import Node, is_endless, topological
from xmlstream.punct_ns.errors import UsageError
from xmlstream.runtime.settings import Settings
from xmlstream.safety.words import unsafe
from xmlstream.sink.target import Target
from xmlstream.sink.xml_documents import PLAIN


class CommonOptions(TypedDict, total=False):
    """Options of a run of one or several queries.

    Attributes:
        keep_open: The end of the input does not close the query: a later run resumes.
        metrics: A file that gets one JSON object per slice.
        overwrite: Remove the documents of an earlier query from the output first.
        moved: Accept that inputs or outputs have moved since the last run, or that published documents or loaded slices
            are gone.
        change: Go on with the state of the query that the checkpoint belongs to, as far as the plan allows.
        undo: Return to the query before a change, if no slice was committed since.
        trigger: For `start`, shortest time between two slices, such as `10s`.
        purge_after: Longest time to keep tuples, such as `1000 slices`, `1 hour` or `PT1H`. Older tuples become dead
            letters, and from then on the result is not exact.
        warn_after: Warn if tuples wait and a promised scheme sends no punctuation for so long: `40 slices`,
            `10 minutes`, `PT10M`; by default after both 40 slices and a minute.
        name: Name of the query in Spark.
        continues: An output of an earlier query, in XML or Parquet, or that query's checkpoint: what it has closed is
            final, and left out here.
        incomplete: Where documents are gone that the earlier query has read: punctuations of what cannot be whole, and
            is left out; or `none`.
        on_slice: Called with the report of each committed slice.
        work: With a checkpoint in an object store, the directory of its working copy; by default a temporary one.
        as_written: Run the plan as written, without the optimizer's rules.
        monitor: Serve a live page of the run: at this port, at `HOST:PORT`, or with True at a free port. The handle's
            `monitor` is its URL. Needs the extra `monitor`.
        allow_unsafe: For `start`, also run a query that never answers or keeps tuples without bound.
        strict: For `run`, refuse a query that answers or purges only because its input ends.
    """

    keep_open: bool
    metrics: str | Path | None
    overwrite: bool
    moved: bool
    change: bool
    undo: bool
    trigger: str | None
    purge_after: str | None
    warn_after: str | None
    name: str | None
    continues: str | Path | None
    incomplete: str | Sequence[str] | None
    on_slice: Callable[[dict[str, Any]], None] | None
    work: str | Path | None
    as_written: bool
    monitor: bool | int | str
    allow_unsafe: bool
    strict: bool


class RunOptions(CommonOptions, total=False):
    """Options of a run of a query with one result.

    Attributes:
        row_tag: Tag of the result's tuples, `row` by default.
        root_tag: Tag of the result's documents, `rows` by default.
    """

    row_tag: str
    root_tag: str


class Keyword(NamedTuple):
    """An option that a function takes by `**options`: what `help()` shows of it."""

    name: str
    type: str
    default: Any
    meaning: str


Function = TypeVar("Function", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=Callable[..., Any])


def takes(keywords: Iterable[Keyword]) -> Callable[[Function], Function]:
    """Decorates a function with `**options`: its signature and its docstring list these keywords."""
    listed = list(keywords)

    def described(function: Function) -> Function:
        signature = inspect.signature(function)
        *own, rest = signature.parameters.values()
        others = [] if str(rest.annotation).startswith("Unpack") else [rest]
        new = [Parameter(k.name, Parameter.KEYWORD_ONLY, default=k.default, annotation=k.type) for k in listed]
        vars(function)["__signature__"] = signature.replace(parameters=[*own, *new, *others])
        if function.__doc__:  # absent under `python -OO`
            section = "\n".join(["Keyword Args:", *(f"    {k.name}: {k.meaning}" for k in listed)])
            before, raises, after = inspect.cleandoc(function.__doc__).partition("\n\nRaises:\n")
            function.__doc__ = f"{before}\n\n{section}{raises}{after}"
        checked: Function = _checked(function)
        return checked

    return described


def keywords_of(defaults: Mapping[str, Any], *kinds: type) -> list[Keyword]:
    """The keys of a TypedDict, the last of `kinds`, as keywords; the docstrings of all kinds say what each means."""
    documented = "".join(inspect.cleandoc(kind.__doc__ or "") + "\n" for kind in kinds)
    meanings = dict(re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", documented, re.MULTILINE))
    return [
        Keyword(name, str(getattr(kind, "__forward_arg__", kind)), defaults.get(name), meanings.get(name, ""))
        for name, kind in kinds[-1].__annotations__.items()
    ]


def keywords_in(text: str) -> list[Keyword]:
    r"""Keywords of a text: `name = default: meaning`, with the type in brackets if the default does not show it.

    >>> keywords_in("    rate = 1.0: Tuples per time unit.\n    most (int | None) = None: How many.")[1].type
    'int | None'
    """
    listed = re.findall(r"^    (\w+)(?: \((.*?)\))? = (.*?): (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    types = (
        (name, type_, literal_eval(default), " ".join(meaning.split())) for name, type_, default, meaning in listed
    )
    return [Keyword(n, t or ("str | None" if d is None else type(d).__name__), d, m) for n, t, d, m in types]


_DEFAULTS = {
    **{setting.name: setting.default for setting in fields(Settings)},
    **dict.fromkeys(("as_written", "monitor", "allow_unsafe", "strict"), False),
    **dict.fromkeys(("continues", "incomplete")),
    **{name: getattr(PLAIN, name) for name in ("row_tag", "root_tag")},
}
COMMON_OPTIONS = keywords_of(_DEFAULTS, CommonOptions)
RUN_OPTIONS = keywords_of(_DEFAULTS, CommonOptions, RunOptions)


_TAKEN = (
    "to_arrow() returns all tuples as a table, and to_arrow().to_pandas() as a frame of pandas; slices() returns one"
    " slice after the other"
)
_WRITTEN = 'run(output="out") writes XML, or Parquet as "out.parquet"; to_table("lake.db.t").run() appends to a table'
_GROUPED = 'group_by("k").agg("max(a) AS a", "count(*) AS n")'
_IN_SQL = "xs.from_sql(session, text) takes CREATE TABLE, CREATE VIEW and a SELECT"
_FUNCTION = 'declare a function with @xs.function("DOUBLE"), and call it by its name, select("f(a) AS b")'
_PLANNED = "leave it out: how the work is divided is planned for each slice"


def _table(default: str, listed: Mapping[str, str]) -> Mapping[str, str]:
    names = {name.lower(): hint for several, hint in listed.items() for name in several.split()}
    return {**names, "": default}


ON_QUERIES = _table(
    "help(xs.Query) lists its methods; " + _IN_SQL,
    {
        "show count take head first tail toPandas toLocalIterator toDF df pl fetchall fetchone toList toDicts display"
        " rows execute compute iterrows itertuples values index iloc loc shape print sample slice toPolars": _TAKEN,
        "foreach foreachBatch": "foreach_slice(f).run() calls f(tuples, punctuations, number)",
        "write writeStream save saveAsTable cache persist checkpoint sink toSql": _WRITTEN,
        "toCsv toParquet toJson toXml writeParquet sinkParquet writeCsv": 'run(output="out.parquet"), "out.csv",'
        ' "out.json" or "out"',
        "awaitTermination stop trigger": 'start("out", "state") returns a handle with awaitTermination() and stop()',
        "sortValues nlargest reverse offset": 'order_by("a DESC"), or group_by("k").top(3, "a DESC")',
        "rename": 'with_column_renamed("old", "new"), or select("old AS new", …)',
        "assign fillna na eval mutate replace": 'with_column("a", "coalesce(a, 0)")',
        "cast astype": 'with_column("a", "CAST(a AS DOUBLE)")',
        "withColumns withColumnsRenamed": "with_column or with_column_renamed for each",
        "dropna": 'where("a IS NOT NULL")',
        "query having": 'where("n > 3"), also behind agg',
        "merge": 'join(other, ["key"], "left")',
        "mergeAsof asofJoin": 'join_asof(other, "ts", by=["key"])',
        "map apply mapInPandas mapInArrow flatMap transform": _FUNCTION,
        "pipe": "pass the query to the function, f(query)",
        "intersectAll exceptAll": "intersect and subtract, which remove duplicates, as in SQL",
        "agg cube rollup pivot max min sum mean avg median nunique size keyBy partitionBy": _GROUPED,
        "groupByDynamic resample tumble hop": 'window("ts", "10 minutes").group_by("window").agg("count(*) AS n")',
        "diff shift cumsum rolling over lag": 'select("*", "lag(a) OVER (PARTITION BY k ORDER BY ts) AS b")',
        "alias": 'select("a AS b"), or join(…, left="l", right="r")',
        "unique": 'distinct(), or drop_duplicates(["key"])',
        "append concat": "union_all(other)",
        "crossJoin": 'join on an equality; select("*", "1 AS k") on both sides and join(other, ["k"]) pairs all with'
        " all",
        "unionByName": "select the attributes in the other query's order, then union_all",
        "withWatermark watermark": 'punctuate("order of ts, slack 5 minutes") if the tuples come in an order',
        "printSchema describe summary info": "print schema, columns or explain()",
        "dtypes": "schema has the types",
        "rdd repartition coalesce hint": _PLANNED,
        "sparkSession isStreaming": "spark is its session; run() reads to the end, start() waits for more",
        "createOrReplaceTempView createTempView sql": _IN_SQL,
    },
)
"""Methods that a query lacks, with what to write instead."""

ON_GROUPS = _table(
    'agg("count(*) AS n", "max(a) AS a")', {"first head tail nth": 'top(1, "ts"), with the order that is meant'}
)
ON_WINDOWS = _table('agg("count(*) AS n", "max(a) AS a")', {})
ON_SUMMARIES = _table("it counts tuples, in tuples_out; the query's to_arrow() has them", {})
ON_INSERTS = _table("run() or start(checkpoint) writes the result; the query's to_arrow() returns it as a table", {})
OF_PACKAGE = _table(
    "help(xs) lists what there is",
    {
        "query readSql execute table": "xs.from_sql(session, text)",
        "max min sum count avg mean median upper lower when coalesce": 'expressions are SQL text, agg("max(a) AS a")',
        "open readXml fromXml readCsv readStream stream scan load dataframe infer": 'xs.read(session, "in/*.xml")',
        "col lit expr functions f": 'expressions are SQL text, q.select("a + 1 AS b")',
        "udf registerFunction pandasUdf": '@xs.function("DOUBLE") declares a function, which SQL calls by its name',
        "session sparkSession connect getSession builder": 'xs.open_session(engine="duckdb"), or xs.open_session()',
        "explain check": 'q.explain("text")',
        "concat union": "a.union_all(b)",
        "window tumble": 'q.window("ts", "10 minutes")',
        "write save": 'q.run(output="out")',
    },
)


def no_such_name(name: str, what: str, instead: Mapping[str, str], known: Iterable[str]) -> str:
    """The message for a name that there is not: what, and what to write."""
    near = difflib.get_close_matches(name, [each for each in known if not each.startswith("_")], n=1, cutoff=0.75)
    hint = instead.get(name.replace("_", "").lower()) or (f"did you mean {near[0]}?" if near else instead[""])
    return f"{what} has no {name}; Hint: {hint}"


def no_column(name: object) -> str:
    """The message for a PySpark column such as `query.hour`, or for rows such as `query[:5]`."""
    if isinstance(name, int | slice):
        return f"a query has no rows before it runs; Hint: {_TAKEN}"
    names = [name] if isinstance(name, str) else name if isinstance(name, list) else ["hour"]
    listed, text = ", ".join(f'"{each}"' for each in names), names[0] if names else "hour"
    return f'expressions are SQL text; Hint: write "{text}", for example select({listed}) or where("{text} = 3")'


_OF_CALLS = {
    "distinct": 'drop_duplicates(["a", "b"])',
    "where": 'where("a > 3 AND b < 5")',
    "left_on": 'on="left.a = right.b" names an attribute of each side',
    **dict.fromkeys(("extended", "mode"), 'explain("text")'),
    **dict.fromkeys(
        ("by", "descending", "desc", "reverse"), 'the names stand alone: group_by("k"), order_by("a DESC")'
    ),
    "suffix": 'with_column_renamed("a", "b") on one side first',
    "keep": "of each key the first tuple is kept; the last one is max_by(a, ts) of a group",
    "columns": 'the names stand alone: drop("a", "b")',
}
_TYPES: Mapping[str, tuple[str, type]] = {
    "int": ("a whole number", int),
    "str": ("a text", str),
    "float": ("a number", float),
    "bool": ("True or False", bool),
    "None": ("nothing", type(None)),
}


def _mistaken(function: Callable[..., Any], error: Exception, given: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    """The message for a call with arguments that the function does not take; empty if they are not the fault."""
    own = inspect.signature(function)
    shown = [str(p.replace(annotation=p.empty)) for p in own.parameters.values() if p.kind <= p.VAR_POSITIONAL]
    has_more = any(p.kind > p.VAR_POSITIONAL for p in own.parameters.values())
    call = f"{function.__name__}({', '.join([*(name for name in shown if name != 'self'), *['…'] * has_more])})"
    if error.__traceback__ is not None and error.__traceback__.tb_next is None:
        words = re.sub(r"takes .* given$", "has too many arguments", str(error).replace("()", "").rpartition(".")[2])
        keyword = re.search(r"unexpected keyword argument '(\w+)'", words)
        hint = _OF_CALLS.get(keyword[1] if keyword else function.__name__ if "many" in words else "", f"it is {call}")
        return f"{words}; Hint: {hint}"
    try:
        bound = own.bind(*given, **named).arguments
    except TypeError:
        return ""
    for name, value in bound.items():
        takes = str(own.parameters[name].annotation).split(" | ")
        if set(takes) <= set(_TYPES) and not isinstance(value, tuple(_TYPES[each][1] for each in takes)):
            return f"{function.__name__} takes {name} as {_TYPES[takes[0]][0]}, not {value!r}; Hint: it is {call}"
    return ""


def _checked(function: Function) -> Function:
    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except (TypeError, AttributeError) as error:
            if not (message := _mistaken(function, error, given, named)):
                raise
        raise TypeError(message)

    return cast("Function", call)


def in_sentences(what: str = "", instead: Mapping[str, str] | None = None) -> Callable[[Kind], Kind]:
    """Decorates a function, or a class: wrong names and wrong arguments are answered with what to write."""
    known = instead or {}

    def missing(self: Any, name: str) -> Any:
        # Slots come first: an object that is being unpickled has none yet.
        has_columns = (
            hasattr(type(self), "columns") and not name.startswith("_") and name not in self.__dataclass_fields__
        )
        columns = self.columns if has_columns else ()
        if name.lower() in (attribute.lower() for attribute in columns):
            raise AttributeError(no_column(name))
        raise AttributeError(no_such_name(name, what, known, dir(type(self))))

    def item(self: Any, name: object) -> Any:
        has_columns = hasattr(type(self), "columns")
        raise TypeError(no_column(name) if has_columns else f"{what} has no items; Hint: {known['']}")

    def rows(self: Any, *_: Any) -> Any:
        raise TypeError(f"{what} has no rows to go through; Hint: {known.get('rows', known[''])}")

    def decorated(kind: Any) -> Any:
        if isinstance(kind, FunctionType):
            return _checked(kind)
        for name, function in list(vars(kind).items()):
            if isinstance(function, FunctionType) and not name.startswith("_") and not hasattr(function, "__wrapped__"):
                setattr(kind, name, _checked(function))
        if instead:
            kind.__getattr__, kind.__getitem__, kind.__iter__, kind.__len__ = missing, item, rows, rows
            kind.__contains__, kind.__bool__ = rows, lambda _: True
        return kind

    return decorated


_OF_SPARK = {
    "follow": "start() follows its input, without this option; run() ends with it",
    "format": 'the output has it in its name: output="out.parquet", "out.csv", "out.json"',
    "mode": "overwrite=True removes the documents of an earlier query first",
}
"""Options that a run does not have, and what to write instead."""


def called(value: object) -> str:
    """How messages name an argument: a DataFrame, not its rows."""
    kind, is_short = type(value), isinstance(value, str | int | type(None))
    return repr(value) if is_short else f"a {kind.__name__} of {kind.__module__.partition('.')[0]}"


def require_session(session: Any) -> None:
    """Refuses what is given in the place of a session.

    Raises:
        UsageError: It is neither a session of Spark nor one in process.
    """
    if not (hasattr(session, "engine") or hasattr(session, "createDataFrame")):
        hint = 'session = xs.open_session(engine="duckdb"), or xs.open_session() of Spark, is the first argument'
        raise UsageError(f"{called(session)} is not a session", hint=hint)


def require_sql(session: Any, text: Any) -> None:
    """Refuses what is given in the place of a session or of a SQL text.

    Raises:
        UsageError: It is no session, or no text, or the name of a file.
    """
    require_session(session)
    if not isinstance(text, str) or re.fullmatch(r"\s*\S+\.(sql|txt)\s*", text):
        hint = f'from pathlib import Path, and pass Path("{text}").read_text()'
        raise UsageError(f"{called(text)} is not a SQL text", hint=hint)


def require_known(options: Mapping[str, Any]) -> None:
    """Refuses unknown options, with the nearest known name as hint.

    Raises:
        UsageError: An option is unknown.
    """
    for name in options:
        if name not in RunOptions.__annotations__:
            names = [*RunOptions.__annotations__, "output", "checkpoint", "sink", "follow"]
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            hint = _OF_SPARK.get(name, hint)
            raise UsageError(f"a run has no option {name}", hint=hint)


def settings_of(targets: Sequence[Target], checkpoint: str | Path | None, *, follow: bool, **options: Any) -> Settings:
    """The runner's settings for several results."""
    metrics, work = options.pop("metrics", None), options.pop("work", None)
    if (monitor := options.pop("monitor", False)) is not False:
        options["watcher"] = extension("monitor")("0" if monitor is True else str(monitor))
    if (on_slice := options.pop("on_slice", None)) is not None:
        options["on_slice"] = lambda report: on_slice(report.json())
    options["picture"] = partial(extension("picture of a run"), follow=follow)
    for which_plan in ("as_written", "allow_unsafe", "strict", "continues", "incomplete"):
        options.pop(which_plan, None)  # these choose the plan, and are no settings
    return Settings(
        targets=tuple(targets),
        checkpoint=None if checkpoint is None else str(checkpoint),
        follow=follow,
        metrics=None if metrics is None else str(metrics),
        work=None if work is None else str(work),
        **options,
    )


def require_safe(root: Node, options: CommonOptions, *, follow: bool) -> None:
    """Refuses an unsafe query: over inputs without an end unless `allow_unsafe`, else only if `strict`.

    Raises:
        UnsafeQuery: Over inputs without an end the query would never answer, or keep tuples without bound.
    """
    if options.get("strict") and not follow and (refusal := unsafe(root, strict=True)) is not None:
        raise refusal
    has_no_end = follow or any(map(is_endless, topological(root)))
    if has_no_end and not options.get("allow_unsafe") and (refusal := unsafe(root, follow=follow)) is not None:
        raise refusal
