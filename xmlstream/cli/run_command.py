"""The command `xmlstream run`: its options, and its last line."""

from __future__ import annotations

import errno
import inspect
import os
import re
import shutil
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from rich.console import Console
from rich.text import Text

from xmlstream.cli import interrupts
from xmlstream.cli.command_line import argument, name_values, query_text, say, token_to_operate, warn
from xmlstream.dataclasses import fields, replace
from xmlstream.punct_ns.errors import UsageError, XmlStreamError, format_error
from xmlstream.runtime.options import CommandOptions

if TYPE_CHECKING:
    from xmlstream.cli.run import Environment
    from xmlstream.monitor.monitor import Monitor
    from xmlstream.runtime.settings import Settings
    from xmlstream.sql.script import Script

_GROUPS = {
    "Result": "output row_tag root_tag xml overwrite",
    "Query": "define as_written",
    "Input and state": "follow trigger checkpoint work continues incomplete keep_open moved change undo adapt",
    "Safety": "allow_unsafe strict purge_after",
    "Engine": "engine master conf name",
    "Watching the run": "verbose monitor operate alert alert_command metrics warn_after traceback",
}
"""The groups of the help, with their options in order."""


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command that takes `**given` a parameter for each option."""
    own, _ = inspect.signature(command, eval_str=True).parameters.values()
    types, declared = get_type_hints(CommandOptions), {each.name: each for each in fields(CommandOptions)}
    parameters = [own]
    for group, names in _GROUPS.items():
        for name in names.split():
            default, data = declared[name].default, declared[name].metadata
            spelled = filter(None, (f"--{name.replace('_', '-')}", data["short"]))
            made = typer.Option(default, *spelled, help=data["meaning"], metavar=data["value"], rich_help_panel=group)
            parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=made, annotation=types[name]))
    vars(command)["__signature__"] = Signature(parameters)
    return command


@_with_options
def run(
    query: Annotated[
        str, argument("QUERY.sql", "File with the query, whose paths may be s3://…; - for standard input.")
    ],
    **given: Any,
) -> None:
    """Run a query over punctuated XML streams, to the end of its input or until interrupted."""
    from xmlstream.cli.run import Environment
    from xmlstream.runtime.alerts import Alerts
    from xmlstream.runtime.settings import Settings
    from xmlstream.session.engines import chosen_engine
    from xmlstream.session.spark_errors import first_cause
    from xmlstream.sql import script as scripts

    options = CommandOptions(**given)
    variables, conf = name_values(options.define, "-D", "NAME=VALUE"), name_values(options.conf, "--conf", "KEY=VALUE")
    text, name_in_messages = query_text(query)
    if options.operate is not None and options.monitor is None:
        raise UsageError("--operate needs --monitor", hint="add --monitor 0, whose page takes what is declared")
    if bool(options.alert) != (options.alert_command is not None):
        hint = "--alert 'in4 silent 10m' --alert-command 'notify-send \"$XMLSTREAM_ALERT $XMLSTREAM_STATE\"'"
        raise UsageError("--alert and --alert-command need each other", hint=hint)
    try:
        script = scripts.read(text, variables, name_in_messages)
        warn(script.warnings)
        _require_safe(script, options)
        targets = script.targets(options.output, options.row_tag, options.root_tag, options.xml or ())
        alerts = None if not options.alert else Alerts(options.alert, options.alert_command or "")
        settings = Settings(targets, **options.of_a_run(), alerts=alerts)
        engine = chosen_engine(options.engine, options.master)
        environment = Environment(options.master, conf, options.verbose, not options.traceback, engine)
        serve = None if options.monitor is None else partial(_served, options.monitor, options.operate, query)
        _run(script, settings, environment, serve)
    except XmlStreamError:
        if options.traceback:
            traceback.print_exc()
        raise
    except Exception as error:  # noqa: BLE001 - the last resort: an unforeseen error gets one line, too
        if options.traceback:
            traceback.print_exc()
        cause = first_cause(error)
        written = [options.checkpoint, options.work, options.output, options.metrics, tempfile.gettempdir()]
        for number in _REMEDIES:
            if getattr(error, "errno", None) == number or os.strerror(number) in cause:
                raise _of_system(error, cause, number, written, options.checkpoint) from None
        where = "; ".join(getattr(error, "__notes__", ())) or None
        raise XmlStreamError(f"{type(error).__name__}: {cause}", where=where, hint="--traceback shows more") from None


_FULL = {errno.ENOSPC: "make room", errno.EDQUOT: "make room, or have the quota raised"}
_REMEDIES = {
    **_FULL,
    errno.EACCES: "give the user of this process the right to read and write there",
    errno.EPERM: "give the user of this process the right to read and write there",
    errno.EROFS: "mount it to be written, or name another place",
    errno.ENOENT: "it may have been removed or renamed during the run: put it back",
    errno.ENOTDIR: "it may have been replaced during the run: put it back",
    errno.EMFILE: "let the process open more files: ulimit -n",
    errno.EIO: "see the system's log: the disk may be damaged, or a network file system away",
    errno.ESTALE: "see the system's log: the network file system may be away, or the directory removed",
}
"""What helps if the operating system refuses to read or to write, by the number of the error."""


def _of_system(
    error: Exception, cause: str, number: int, written: Sequence[str | None], checkpoint: str | None
) -> XmlStreamError:
    """The error of the operating system that has ended a run, whichever library met it.

    It names the file; if that of a full disk is unknown, the fullest place that is written.
    """
    place = getattr(error, "filename", None)
    if number in _FULL:
        there = [path for path in written if path and Path(path).exists()]
        what = f"the disk of {place or min(there, key=lambda path: shutil.disk_usage(path).free)} is full"
    else:
        what = (
            f"{place}: {os.strerror(number).lower()}"
            if place
            else re.sub(r"\[errno \d+\] ", "", cause, flags=re.IGNORECASE)
        )
    goes_on = f"the same command then goes on from the checkpoint {checkpoint}"
    restart = "then run the same command again; with --checkpoint it would go on from its last commit"
    return XmlStreamError(what, hint=f"{_REMEDIES[number]}; {goes_on if checkpoint else restart}")


def _require_safe(script: Script, options: CommandOptions) -> None:
    """Refuses a query that would wait or grow for ever; prints one line if the run does not need that."""
    from xmlstream.builder.run_options import require_safe
    from xmlstream.optimizer.rules import optimized
    from xmlstream.runtime.preflight import read_once, require_stream
    from xmlstream.safety.words import caution

    if options.strict and options.allow_unsafe:
        raise UsageError("--strict and --allow-unsafe exclude each other", hint="use one of them")
    root = script.sketch() if options.as_written else optimized(script.sketch())
    require_stream(root)
    if options.follow or options.keep_open:
        warn(read_once(root))
    if (allowed := require_safe(root, options)) is not None:
        say(f"unsafe: {allowed.what}\n  {allowed.where}")
    elif options.follow or options.strict or options.allow_unsafe:
        return
    elif (line := caution(root, keep_open=options.keep_open)) is not None:
        say(line)


def _served(address: str, operate: str | None, query: str) -> Monitor:
    """The monitor of a run, whose page has the name of the query's file as its title."""
    from xmlstream.monitor.monitor import Monitor
    from xmlstream.monitor.run_view import RunView

    return Monitor(address, RunView("" if query == "-" else Path(query).name), token_to_operate(operate))


def _run(script: Script, settings: Settings, environment: Environment, serve: Callable[[], Monitor] | None) -> None:
    from xmlstream.cli.progress import seconds_since_start
    from xmlstream.cli.run import run_script
    from xmlstream.punct_ns.errors import counted
    from xmlstream.runtime.watching import reporting_failure

    # A file of its own: standard error is redirected while Java starts and ends.
    with os.fdopen(os.dup(2), "w", encoding="utf-8") as stderr:
        console = Console(file=stderr)
        try:
            with ExitStack() as stack:
                watcher = None if serve is None else stack.enter_context(closing(serve()))
                if watcher is not None:
                    console.print(Text(f"monitor: {watcher.where}"), soft_wrap=True)
                stack.enter_context(reporting_failure(watcher))
                summary = run_script(script, replace(settings, watcher=watcher), environment, console)
        except interrupts.Interrupted as interrupted:
            hint = "a run with the same --checkpoint resumes from here" if settings.checkpoint else None
            before = "the end of the input" if interrupted.code else "the first slice"
            line = format_error(XmlStreamError(f"interrupted before {before}", hint=hint))
            console.print(Text(line), soft_wrap=True)
            interrupts.leave(interrupted.code)
        if summary.closed_before:
            closed = f"the query of checkpoint {settings.checkpoint} is closed: its input has ended for good"
            line = f"nothing to do: {closed}\n  Hint: for new input begin anew, with another checkpoint and output"
        else:
            line = (
                f"done: {summary.counts} in {seconds_since_start():.1f} s"
                + ("" if summary.closed else "; the query is open")
                + (f"; {counted(summary.left_out, 'tuple')} left out, final before" if summary.left_out else "")
                + ("" if summary.exact else "; the result is not exact: overdue tuples were purged")
            )
        console.print(Text(line), highlight=False, soft_wrap=True)
