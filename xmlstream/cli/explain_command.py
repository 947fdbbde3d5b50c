"""`xmlstream explain`: judges a query before it runs, and shows which punctuations a running query waits for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from xmlstream.cli.command_line import argument, flag, name_values, option, query_text, say, warn
from xmlstream.punct_ns.errors import UsageError

if TYPE_CHECKING:
    from xmlstream.cli.run import Engines
    from xmlstream.plan.nodes import Node
    from xmlstream.punct_ns.domain import Domain
    from xmlstream.punct_ns.image import Function
    from xmlstream.punct_ns.schema import Attribute
    from xmlstream.sql.script import Script


class Format(StrEnum):
    """How an explanation is written."""

    TEXT = "text"
    JSON = "json"
    SVG = "svg"
    HTML = "html"


def explain(  # noqa: PLR0913, PLR0917 - one for each option
    query: Annotated[
        str | None, argument("QUERY.sql", "File with the query, whose paths may be s3://…; - for standard input.")
    ] = None,
    define: Annotated[
        list[str] | None, option("NAME=VALUE", "Value of a variable ${NAME} of the query.", "--define", "-D")
    ] = None,
    follow: Annotated[bool, flag("Judge a run that waits for more input, without an end.", "--follow")] = False,
    as_written: Annotated[
        bool, flag("Show the plan as written, without the optimizer's rules.", "--as-written")
    ] = False,
    plans: Annotated[
        bool, flag("List the ways to join three streams or more, and what each keeps.", "--plans")
    ] = False,
    promises: Annotated[
        bool, flag("List the smallest sets of schemes that suffice, and what each costs.", "--promises")
    ] = False,
    rates: Annotated[
        str | None,
        option("RATES", "With --promises, how fast tuples come: 'bid 500/s; bid.auction 20/s, open 10m'.", "--rates"),
    ] = None,
    metrics: Annotated[
        str | None,
        option(
            "PATH",
            "With --plans, metrics or checkpoint of an earlier run, for the rates of its sources; with --promises, its"
            " checkpoint.",
            "--metrics",
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        option(
            "DIR",
            "Show which punctuations the query of this checkpoint, a directory or s3://…, waits for.",
            "--checkpoint",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        option(
            "NAME=PATTERN",
            "With --checkpoint, show whether these results are out, and which punctuations are missing.",
            "--key",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        option("NAME", "Also check the query as spark, duckdb or auto would, which computes it then.", "--engine"),
    ] = None,
    format_: Annotated[Format, flag("For people, for programs, as a picture, or as a page.", "--format")] = Format.TEXT,
) -> None:
    """Show, before a query runs, when it answers, what it keeps until when, and which promises it lacks.

    With --checkpoint: show, for a query that runs, was stopped or was killed, which punctuations it waits for, and
    which source must send them.
    """
    if (query is None) == (checkpoint is None):
        raise UsageError(
            "explain takes a query or a checkpoint, and not both",
            hint="xmlstream explain QUERY.sql, or xmlstream explain --checkpoint DIR",
        )
    if checkpoint is not None:
        if define or follow or as_written or plans or promises or rates or metrics or engine:
            raise UsageError(
                "--define, --follow, --as-written, --plans, --promises, --rates, --metrics and --engine do not apply to"
                " a checkpoint"
            )
        if format_ not in (Format.TEXT, Format.JSON):
            raise UsageError(f"--checkpoint has no format {format_.value}", hint="--format text or json")
        typer.echo(_waiting(checkpoint, name_values(key, "--key", "NAME=PATTERN"), as_json=format_ is Format.JSON))
        return
    _require_needed(key, metrics, rates, plans=plans, promises=promises)
    from xmlstream.optimizer.rules import optimized
    from xmlstream.runtime.preflight import read_once, require_stream
    from xmlstream.safety.explanation import explained
    from xmlstream.sql import script as scripts

    assert query is not None
    text, title = query_text(query)
    script = scripts.read(text, name_values(define, "-D", "NAME=VALUE"), title)
    warn(script.warnings)
    root = script.sketch()
    require_stream(root)
    if engine is not None:
        _require_planned(script, engine)
    if follow:
        warn(read_once(root))
    if plans or promises:
        if format_ not in (Format.TEXT, Format.JSON):
            listed = "plans" if plans else "promises"
            raise UsageError(f"--{listed} has no format {format_.value}", hint="--format text or json")
        as_json = format_ is Format.JSON
        typer.echo(
            _plans(root, metrics, as_json=as_json) if plans else _promises(root, rates, metrics, as_json=as_json)
        )
        return
    root = _with_members(root if as_written else optimized(root))
    typer.echo(explained(root, follow=follow, format_=format_.value, title=title, query=text))


def _require_needed(
    key: Sequence[str] | None, metrics: str | None, rates: str | None, *, plans: bool, promises: bool
) -> None:
    """Refuses options without those that they belong to."""
    if key:
        raise UsageError("--key needs --checkpoint", hint="name the checkpoint of the query that has begun")
    if metrics is not None and not (plans or promises):
        hint = "add --plans, which compares ways to join by the measured rates, or --promises"
        raise UsageError("--metrics needs --plans or --promises", hint=hint)
    if rates is not None and not promises:
        hint = "add --promises; with --plans the option rate of a table counts"
        raise UsageError("--rates needs --promises", hint=hint)


def _with_members(root: Node) -> Node:
    """The plan with the members that tables list of its rosters, as far as DuckDB reads them."""
    from xmlstream.plan.nodes import topological

    rules = (getattr(node.operator, "rule", None) for node in topological(root))
    if not any(getattr(rule, "listed", None) for rule in rules) or not find_spec("duckdb"):
        return root
    from xmlstream.runtime.loop.query_inputs import with_members
    from xmlstream.session.engines import engine_of, open_session

    return with_members(root, engine_of(open_session(engine="duckdb")))


def _require_planned(script: Script, engine: str) -> None:
    """Plans the query with the types that an engine knows, as a run does; QueryError for what the engine refuses."""
    from xmlstream.cli.run import Engines
    from xmlstream.operators.frames.auto_engine import AutoEngine
    from xmlstream.session.engines import engine_of

    with Engines() as engines:
        session = engines.session(engine)
        script.plan(session)
        if isinstance(chosen := engine_of(session), AutoEngine):
            say(f"engine auto: {chosen.choice}")


def _plans(root: Node, metrics: str | None, *, as_json: bool) -> str:
    """The ways to join, compared at declared or measured rates."""
    from xmlstream.optimizer.choose_joins import with_rates
    from xmlstream.optimizer.rules import join_choices
    from xmlstream.plan.nodes import Scan, topological

    if metrics is not None:
        from xmlstream.runtime.better_joins import measured_rates

        root = with_rates(root, measured_rates(metrics))
    choices = join_choices(root)
    rates = {node.operator.name: node.operator.rate for node in topological(root) if isinstance(node.operator, Scan)}
    if as_json:
        content = {"rates": rates, "choices": [choice.as_json() for choice in choices]}
        return json.dumps(content, ensure_ascii=False, indent=2)
    lines = [str(choice) for choice in choices] or ["It joins no more than two streams at a time."]
    if choices and metrics is None:
        lines.append(f"{_COMPARED}.")
    if metrics is not None:
        lines.append(f"Rates, in tuples a slice: {', '.join(f'{name} {rate:g}' for name, rate in rates.items())}.")
    return "\n\n".join(lines)


def _promises(root: Node, rates: str | None, metrics: str | None, *, as_json: bool) -> str:
    """The smallest sets of schemes that suffice, at given or measured rates; what is given counts."""
    from xmlstream.optimizer.rules import optimized
    from xmlstream.runtime.better_joins import measured_rates
    from xmlstream.safety.promises import Rate, promise_sets, rates_of, sets_in_words

    measured = {} if metrics is None else measured_rates(metrics, per_second=True)
    known = {name: Rate(rate) for name, rate in measured.items()}
    found = promise_sets(root, optimized, {**known, **rates_of(rates or "", root)})
    if as_json:
        return json.dumps([each.json() for each in found], ensure_ascii=False, indent=2)
    return sets_in_words(found)


_COMPARED = (
    "The numbers compare kept tuples if each source sends one tuple per slice, or the number that its option rate or"
    " --metrics gives"
)


def _waiting(checkpoint: str, key: dict[str, str], *, as_json: bool) -> str:
    from xmlstream.cli.run import Engines
    from xmlstream.diagnosis.inspection import inspect, plan_of
    from xmlstream.diagnosis.report import in_words
    from xmlstream.diagnosis.so_far import with_value_so_far
    from xmlstream.runtime.checkpoint.remote_checkpoint import readable
    from xmlstream.runtime.checkpoint.same_query import QueryRecord

    with readable(checkpoint) as (directory, _):
        plan_of(directory)
        zone = QueryRecord.of(directory).timeZone
        with Engines(conf={"spark.sql.session.timeZone": zone}) as engines:
            report = with_value_so_far(inspect(directory, key, functions=_Computed(zone, engines)), directory, key)
    return json.dumps(report.json(), ensure_ascii=False, indent=2) if as_json else in_words(report)


class _Computed:
    """Computes expressions: in process what is proven there, all others by Spark, which starts with the first one."""

    def __init__(self, zone: str, engines: Engines) -> None:
        self._zone, self._engines = zone, engines

    def __call__(self, expression: str, x: Attribute, y: Domain, local: bool) -> Function | None:
        from xmlstream.operators.expressions.constant_evaluation import evaluated
        from xmlstream.operators.in_process.expressions import is_proven
        from xmlstream.session.engines import engine_of

        name = "duckdb" if find_spec("duckdb") and is_proven(expression, x, self._zone) else "spark"
        return evaluated(expression, x, y, engine_of(self._engines.session(name)), local=local)
