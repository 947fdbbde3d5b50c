"""Options of the builder's `run` and `start`, how `help()` shows them, and what wrong names and arguments are answered.

`ON_QUERIES` and the tables beside it have, for each method of PySpark that the builder lacks, what to
write instead; names are compared without case and underscores.
"""

from __future__ import annotations

import inspect
import logging
import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from inspect import Parameter
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, cast

from xmlstream.dataclasses import fields, replace
from xmlstream.extensions import extension
from xmlstream.operators.expressions.depth import at_any_depth
from xmlstream.optimizer.insertions import punctuate_results
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, is_endless, topological
from xmlstream.punct_ns.errors import UnsafeQuery, UsageError, did_you_mean, in_callers_words
from xmlstream.runtime.change.adapted import planned_by_rates
from xmlstream.runtime.change.continued import continuing
from xmlstream.runtime.options import CommandOptions, Options
from xmlstream.runtime.settings import Settings
from xmlstream.safety.words import unsafe
from xmlstream.sink.program_sink import require_function
from xmlstream.sink.target import Target
from xmlstream.sink.xml_documents import ALL

_LOG = logging.getLogger("xmlstream.plan")


class CommonOptions(TypedDict, total=False):
    """Options of a run of one or several queries: their types. `xmlstream.runtime.options` has their meaning."""

    keep_open: bool
    metrics: str | Path | None
    overwrite: bool
    moved: bool
    change: bool
    undo: bool
    adapt: bool
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
    engine: Literal["auto"] | None


class RunOptions(CommonOptions, total=False):
    """Options of a run of a query with one result."""

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


def takes(keywords: Iterable[Keyword], *, more: bool = False) -> Callable[[Function], Function]:
    """Decorates a function with `**options`: its signature and its docstring list these keywords; it takes `more`."""
    listed = list(keywords)

    def described(function: Function) -> Function:
        signature = inspect.signature(function)
        *own, rest = signature.parameters.values()
        others = [rest.replace(annotation="Any")] if more else []
        new = [Parameter(k.name, Parameter.KEYWORD_ONLY, default=k.default, annotation=k.type) for k in listed]
        vars(function)["__signature__"] = signature.replace(parameters=[*own, *new, *others])
        if function.__doc__:  # absent under `python -OO`
            section = "\n".join(["Keyword Args:", *(f"    {k.name}: {k.meaning}" for k in listed)])
            before, raises, after = inspect.cleandoc(function.__doc__).partition("\n\nRaises:\n")
            function.__doc__ = f"{before}\n\n{section}{raises}{after}"
        checked: Function = _checked(function)
        return checked

    return described


def keywords_of(kind: type, defaults: Mapping[str, Any], meanings: Mapping[str, str] | None = None) -> list[Keyword]:
    """The keys of a TypedDict as keywords; without their meanings, its docstring has them."""
    if meanings is None:
        meanings = dict(
            re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", inspect.cleandoc(kind.__doc__ or ""), re.MULTILINE)
        )
    return [
        Keyword(name, str(getattr(type_, "__forward_arg__", type_)), defaults.get(name), meanings.get(name, ""))
        for name, type_ in kind.__annotations__.items()
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


_DEFAULTS = {option.name: option.default for option in fields(CommandOptions)} | {"on_slice": None, "monitor": False}
_MEANINGS = {option.name: in_callers_words(option.metadata["meaning"]) for option in fields(CommandOptions)} | {
    "on_slice": "Called with the report of each committed slice.",
    "monitor": "Serve a live page of the run: at this port, at `HOST:PORT`, or with True at a free port. The handle's\n"
    "        `monitor` is its URL. Needs the extra `monitor`.",
}
COMMON_OPTIONS = keywords_of(CommonOptions, _DEFAULTS, _MEANINGS)
RUN_OPTIONS = keywords_of(RunOptions, _DEFAULTS, _MEANINGS)


_TAKEN = (
    "show() prints the first tuples, head(n) returns them; to_arrow() returns all as a table, to_pandas() as a frame of"
    " pandas; slices() returns one slice after the other"
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
        "take first tail toLocalIterator toDF display rows sample": _TAKEN,
        "foreach foreachBatch": "foreach_slice(f).run() calls f(tuples, punctuations, number)",
        "write writeStream save saveAsTable cache persist checkpoint": _WRITTEN,
        "awaitTermination stop trigger": 'start("out", "state") returns a handle with awaitTermination() and stop()',
        "offset": 'order_by("a DESC"), or group_by("k").top(3, "a DESC")',
        "fillna na replace": 'with_column("a", "coalesce(a, 0)")',
        "withColumns withColumnsRenamed": "with_column or with_column_renamed for each",
        "dropna": 'where("a IS NOT NULL")',
        "mapInPandas mapInArrow transform": _FUNCTION,
        "intersectAll exceptAll": "intersect and subtract, which remove duplicates, as in SQL",
        "agg cube rollup pivot max min sum mean avg": _GROUPED,
        "alias": 'select("a AS b"), or join(…, left="l", right="r")',
        "crossJoin": 'join on an equality; select("*", "1 AS k") on both sides and join(other, ["k"]) pairs all with'
        " all",
        "unionByName": "select the attributes in the other query's order, then union_all",
        "withWatermark watermark": 'punctuate("order of ts, slack 5 minutes") if the tuples come in an order',
        "printSchema describe summary": "print schema, columns or explain()",
        "dtypes": "schema has the types",
        "rdd repartition coalesce hint": _PLANNED,
        "sparkSession isStreaming": "spark is its session; run() reads to the end, start() waits for more",
        "createOrReplaceTempView createTempView sql": _IN_SQL,
    },
)
"""Methods that a query lacks, with what to write instead."""

ON_GROUPS = _table(
    'agg("count(*) AS n", "max(a) AS a")',
    {
        "first head tail nth": 'top(1, "ts"), with the order that is meant',
        "applyInPandas applyInArrow cogroup transformWithState map": 'apply(f, "k INT, v DOUBLE"), once for each group',
    },
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
    public = [each for each in known if not each.startswith("_")]
    hint = instead.get(name.replace("_", "").lower()) or did_you_mean(name, public, instead[""], 0.75)
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
    **dict.fromkeys(("extended", "mode"), 'explain("text")'),
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

_OF_RESULTS = {
    "output": 'query.insert_into("out")',
    "sink": "query.insert_into(sink=…)",
    "row_tag": 'query.insert_into("out", row_tag="hour")',
    "root_tag": 'query.insert_into("out", root_tag="hours")',
}
"""Options of one result, and where they stand for several."""


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


def require_known(options: Mapping[str, Any], *, of_several: bool = False) -> None:
    """Refuses unknown options, with the nearest known name as hint; for a run of several results, those of one, too.

    Raises:
        UsageError: An option is unknown.
    """
    for name in options:
        if of_several and name in _OF_RESULTS:
            hint = f"write it where the result is: {_OF_RESULTS[name]}"
            raise UsageError(f"{name} is an option of a result, not of a run of several", hint=hint)
        if name not in RunOptions.__annotations__:
            names = [*RunOptions.__annotations__, "output", "checkpoint", "sink", "follow"]
            hint = _OF_SPARK.get(name) or did_you_mean(name, names, f"there are {', '.join(names)}")
            raise UsageError(f"a run has no option {name}", hint=hint)


def settings_of(targets: Sequence[Target], checkpoint: str | Path | None, *, follow: bool, **options: Any) -> Settings:
    """The runner's settings for several results."""
    options.pop("monitor", None)  # `watched` serves it, once the plan is known to be safe
    if (on_slice := options.pop("on_slice", None)) is not None:
        require_function("on_slice", on_slice, "the report of a slice: f(report)", {})
        options["on_slice"] = lambda report: on_slice(report.json())
    if isinstance(incomplete := options.get("incomplete"), str):
        options["incomplete"] = [incomplete]
    for place in ("metrics", "work", "continues"):
        if (given := options.pop(place, None)) is not None:
            options[place] = str(given)
    return Settings(
        tuple(targets),
        checkpoint=None if checkpoint is None else str(checkpoint),
        follow=follow,
        picture=partial(extension("picture of a run"), follow=follow),
        **options,
    )


def watched(settings: Settings, monitor: bool | int | str = False) -> Settings:
    """The settings with the live page of the option `monitor`."""
    if monitor is False:
        return settings
    return replace(settings, watcher=extension("monitor")("0" if monitor is True else str(monitor)))


@at_any_depth
def plan_to_run(root: Node, settings: Settings, say: Callable[[str], None] | None = None) -> Node:
    """The plan that runs: what an earlier query has closed is left out, and the optimizer's rules are applied.

    Args:
        root: The plan as written.
        settings: The settings; `as_written` leaves out the rules.
        say: Gets a line with what is left out, if anything is, and one about what `adapt` changes.

    Raises:
        UsageError: The output to continue cannot be continued.
        StateError: A query that runs writes to it, or documents that it has read are gone.
    """
    earlier, targets = settings.continues, settings.targets
    continued = continuing(root, earlier, settings.checkpoint, targets, settings.incomplete)
    if say is not None and continued is not root:
        say(f"continuing {continued.operator.parameters(root.schema).removeprefix('after ')}")
    chosen = {number for number, target in enumerate(targets) if target.names.punctuations == ALL}

    def planned(written: Node) -> Node:
        return punctuate_results(written if settings.as_written else optimized(written), chosen)

    return planned_by_rates(continued, settings, planned, say or _LOG.warning)


@at_any_depth
def require_safe(root: Node, options: Options) -> UnsafeQuery | None:
    """Refuses an unsafe query: over inputs without an end unless `allow_unsafe`, else only if `strict`.

    Returns:
        The refusal that `allow_unsafe` has kept from being raised, if there is one.

    Raises:
        UnsafeQuery: Over inputs without an end the query would never answer, or keep tuples without bound.
    """
    if options.strict and not options.follow and (refusal := unsafe(root, strict=True)) is not None:
        raise refusal
    if not options.follow and not any(map(is_endless, topological(root))):
        return None
    refusal = unsafe(root, follow=options.follow)
    if refusal is not None and not options.allow_unsafe:
        raise refusal
    return refusal
