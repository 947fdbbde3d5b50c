"""Options of the builder's `run` and `start`, and how `help()` and the reference show the options of a function."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar

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
        moved: Accept that inputs or outputs have moved since the last run, or that published documents are gone.
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
        return function

    return described


def keywords_of(defaults: Mapping[str, Any], *kinds: type) -> list[Keyword]:
    """The keys of a TypedDict, the last of `kinds`, as keywords; the docstrings of all kinds say what each means."""
    documented = "".join(inspect.cleandoc(kind.__doc__ or "") + "\n" for kind in kinds)
    meanings = dict(re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", documented, re.MULTILINE))
    return [
        Keyword(name, str(getattr(kind, "__forward_arg__", kind)), defaults.get(name), meanings.get(name, ""))
        for name, kind in kinds[-1].__annotations__.items()
    ]


_DEFAULTS = {
    **{setting.name: setting.default for setting in fields(Settings)},
    **dict.fromkeys(("as_written", "monitor", "allow_unsafe", "strict"), False),
    **dict.fromkeys(("continues", "incomplete")),
    **{name: getattr(PLAIN, name) for name in ("row_tag", "root_tag")},
}
COMMON_OPTIONS = keywords_of(_DEFAULTS, CommonOptions)
RUN_OPTIONS = keywords_of(_DEFAULTS, CommonOptions, RunOptions)


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
