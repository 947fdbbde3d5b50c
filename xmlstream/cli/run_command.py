"""The command `xmlstream run`: its options, and its last line."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import traceback as traceback_module
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.text import Text

from xmlstream.cli import interrupts
from xmlstream.cli.command_line import argument, flag, name_values, option, query_text, say, token_to_operate, warn
from xmlstream.punct_ns.errors import UsageError, XmlStreamError, format_error

_RESULT, _QUERY, _INPUT, _SAFETY = "Result", "Query", "Input and state", "Safety"
_ENGINE, _WATCHING = "Engine", "Watching the run"


def run(  # noqa: PLR0913, PLR0917 - one parameter for each option
    query: Annotated[
        str, argument("QUERY.sql", "File with the query, whose paths may be s3://…; - for standard input.")
    ],
    output: Annotated[
        str | None,
        option(
            "OUT",
            "Where the result of a SELECT goes: a directory of documents; - for standard output; OUT.parquet,"
            " OUT.delta or postgresql://… for a table. Directories and tables may lie in an object store: s3://….",
            "--output",
            "-o",
            group=_RESULT,
        ),
    ] = None,
    row_tag: Annotated[str, option("TAG", "Tag of the result's tuples.", group=_RESULT)] = "row",
    root_tag: Annotated[str, option("TAG", "Tag of the result's documents.", group=_RESULT)] = "rows",
    xml: Annotated[
        list[str] | None,
        option("COLUMN", "Column of the result whose texts are XML elements; written unescaped.", group=_RESULT),
    ] = None,
    overwrite: Annotated[
        bool, flag("Remove the documents of an earlier query from the output first.", "--overwrite", group=_RESULT)
    ] = False,
    define: Annotated[
        list[str] | None,
        option("NAME=VALUE", "Value of a variable ${NAME} of the query.", "--define", "-D", group=_QUERY),
    ] = None,
    as_written: Annotated[
        bool, flag("Run the plan as written, without the optimizer's rules.", "--as-written", group=_QUERY)
    ] = False,
    follow: Annotated[bool, flag("Wait for more input until interrupted.", "--follow", group=_INPUT)] = False,
    trigger: Annotated[
        str | None, option("TIME", "With --follow, shortest time between two slices: 500ms, 10s, 5m.", group=_INPUT)
    ] = None,
    checkpoint: Annotated[
        str | None,
        option("DIR", "Directory or s3://… for the query's state; a later run resumes from it.", group=_INPUT),
    ] = None,
    work: Annotated[
        str | None,
        option("DIR", "Directory for the working copy of a checkpoint at s3://…; else a temporary one.", group=_INPUT),
    ] = None,
    continues: Annotated[
        str | None,
        option(
            "OUT",
            "An earlier query's checkpoint, or its output: what is closed there is final, and left out.",
            group=_INPUT,
        ),
    ] = None,
    incomplete: Annotated[
        list[str] | None,
        option(
            "PUNCTUATION",
            "With --continues, where documents are gone: what cannot be whole, and is left out; or none.",
            group=_INPUT,
        ),
    ] = None,
    keep_open: Annotated[
        bool, flag("The end of the input does not close the query: a later run resumes.", "--keep-open", group=_INPUT)
    ] = False,
    moved: Annotated[
        bool,
        flag("Accept that inputs or outputs have moved, or that published results are gone.", "--moved", group=_INPUT),
    ] = False,
    change: Annotated[
        bool, flag("Go on with the state of another query, as far as its plan allows.", "--change", group=_INPUT)
    ] = False,
    undo: Annotated[
        bool, flag("Return to the query before --change, if no slice was committed since.", "--undo", group=_INPUT)
    ] = False,
    allow_unsafe: Annotated[
        bool, flag("With --follow, also run a query that waits or grows for ever.", "--allow-unsafe", group=_SAFETY)
    ] = False,
    strict: Annotated[
        bool,
        flag(
            "Also without --follow, refuse a query that only the end of its input completes.", "--strict", group=_SAFETY
        ),
    ] = False,
    purge_after: Annotated[
        str | None,
        option(
            "TIME",
            "Purge tuples kept for longer, into dead letters; the result is then not exact: '1000 slices', PT1H.",
            group=_SAFETY,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        option(
            "NAME",
            "What computes: spark, the default where it is installed; or duckdb, without Java, what is proven equal.",
            group=_ENGINE,
        ),
    ] = None,
    master: Annotated[
        str | None, option("URL", "Spark's master; by default all cores of this machine.", group=_ENGINE)
    ] = None,
    conf: Annotated[list[str] | None, option("KEY=VALUE", "The engine's configuration.", group=_ENGINE)] = None,
    name: Annotated[str | None, option("NAME", "Name of the query in Spark's pages.", group=_ENGINE)] = None,
    verbose: Annotated[bool, flag("Print progress every few seconds.", "--verbose", "-v", group=_WATCHING)] = False,
    monitor: Annotated[
        str | None, option("[HOST:]PORT", "Serve a live page of the run; port 0 is a free one.", group=_WATCHING)
    ] = None,
    operate: Annotated[
        str | None,
        option(
            "TOKEN",
            "With --monitor, who knows it may declare punctuations of silent sources on the page.",
            "--operate",
            group=_WATCHING,
        ),
    ] = None,
    alert: Annotated[
        list[str] | None,
        option(
            "CONDITION",
            "When to run the --alert-command: 'in4 silent 10m', 'group_by kept > 1000'.",
            "--alert",
            group=_WATCHING,
        ),
    ] = None,
    alert_command: Annotated[
        str | None,
        option(
            "COMMAND",
            "For the shell: runs when an alert begins, and when it ends; see XMLSTREAM_ALERT, XMLSTREAM_STATE.",
            "--alert-command",
            group=_WATCHING,
        ),
    ] = None,
    metrics: Annotated[
        str | None, option("FILE", "File or s3://… for one JSON object per slice.", group=_WATCHING)
    ] = None,
    warn_after: Annotated[
        str | None,
        option(
            "TIME",
            "Warn if tuples wait and a promised scheme sends no punctuation for so long: '40 slices', PT10M.",
            group=_WATCHING,
        ),
    ] = None,
    traceback: Annotated[
        bool, flag("Show Python's traceback of an error, and Spark's log.", "--traceback", group=_WATCHING)
    ] = False,
) -> None:
    """Run a query over punctuated XML streams, to the end of its input or until interrupted."""
    from xmlstream.runtime.alerts import Alerts
    from xmlstream.session.engines import chosen_engine
    from xmlstream.session.spark_errors import first_cause
    from xmlstream.sql import script as scripts

    variables, configuration = name_values(define, "-D", "NAME=VALUE"), name_values(conf, "--conf", "KEY=VALUE")
    text, name_in_messages = query_text(query)
    if operate is not None and monitor is None:
        raise UsageError("--operate needs --monitor", hint="add --monitor 0, whose page takes what is declared")
    if bool(alert) != (alert_command is not None):
        hint = "--alert 'in4 silent 10m' --alert-command 'notify-send \"$XMLSTREAM_ALERT $XMLSTREAM_STATE\"'"
        raise UsageError("--alert and --alert-command need each other", hint=hint)
    try:
        script = scripts.read(text, variables, name_in_messages)
        warn(script.warnings)
        _require_safe(
            script, follow=follow, allowed=allow_unsafe, strict=strict, keep_open=keep_open, as_written=as_written
        )
        _run(
            script,
            {
                "targets": script.targets(output, row_tag, root_tag, xml or ()),
                "checkpoint": checkpoint,
                "work": work,
                "follow": follow,
                "keep_open": keep_open,
                "metrics": metrics,
                "overwrite": overwrite,
                "moved": moved,
                "change": change,
                "undo": undo,
                "trigger": trigger,
                "purge_after": purge_after,
                "warn_after": warn_after,
                "name": name,
                "alerts": Alerts(alert, alert_command) if alert and alert_command is not None else None,
            },
            {
                "master": master,
                "conf": configuration,
                "verbose": verbose,
                "keep_java_quiet": not traceback,
                "engine": chosen_engine(engine, master),
            },
            as_written=as_written,
            continues=continues,
            incomplete=incomplete or None,
            serve=None if monitor is None else partial(_served, monitor, token_to_operate(operate), query),
        )
    except XmlStreamError:
        if traceback:
            traceback_module.print_exc()
        raise
    except Exception as error:  # noqa: BLE001 - the last resort: an unforeseen error gets one line, too
        if traceback:
            traceback_module.print_exc()
        cause = first_cause(error)
        written = [checkpoint, work, output, metrics, tempfile.gettempdir()]
        for number in _REMEDIES:
            if getattr(error, "errno", None) == number or os.strerror(number) in cause:
                raise _of_system(error, cause, number, written, checkpoint) from None
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


def _require_safe(script: Any, *, follow: bool, allowed: bool, strict: bool, keep_open: bool, as_written: bool) -> None:
    """Refuses a query that would wait or grow for ever; prints one line if the run does not need that."""
    from xmlstream.optimizer.rules import optimized
    from xmlstream.runtime.preflight import read_once, require_stream
    from xmlstream.safety.words import caution, unsafe

    if strict and allowed:
        raise UsageError("--strict and --allow-unsafe exclude each other", hint="use one of them")
    root = script.sketch() if as_written else optimized(script.sketch())
    require_stream(root)
    if follow or keep_open:
        warn(read_once(root))
    if follow or strict:
        refusal = unsafe(root, strict=not follow)
        if refusal is not None and not allowed:
            raise refusal
        line = refusal and f"unsafe: {refusal.what}\n  {refusal.where}"
    else:
        line = None if allowed else caution(root, keep_open=keep_open)
    if line:
        say(line)


def _served(address: str, operate: str | None, query: str) -> Any:
    """The monitor of a run, whose page has the name of the query's file as its title."""
    from xmlstream.monitor.monitor import Monitor
    from xmlstream.monitor.run_view import RunView

    return Monitor(address, RunView("" if query == "-" else Path(query).name), operate)


def _run(
    script: Any,
    settings: dict[str, Any],
    environment: dict[str, Any],
    *,
    as_written: bool,
    continues: str | None,
    incomplete: Sequence[str] | None,
    serve: Callable[[], Any] | None,
) -> None:
    from xmlstream.cli.progress import seconds_since_start
    from xmlstream.cli.run import Environment, How, run_script
    from xmlstream.punct_ns.errors import counted
    from xmlstream.runtime.settings import Settings
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
                run_settings = Settings(**settings, watcher=watcher)
                how = How(as_written, continues, incomplete)
                summary = run_script(script, run_settings, Environment(**environment), console, how)
        except interrupts.Interrupted as interrupted:
            hint = "a run with the same --checkpoint resumes from here" if settings["checkpoint"] else None
            before = "the end of the input" if interrupted.code else "the first slice"
            line = format_error(XmlStreamError(f"interrupted before {before}", hint=hint))
            console.print(Text(line), soft_wrap=True)
            interrupts.leave(interrupted.code)
        if summary.closed_before:
            closed = f"the query of checkpoint {settings['checkpoint']} is closed: its input has ended for good"
            line = f"nothing to do: {closed}\n  Hint: for new input begin anew, with another checkpoint and output"
        else:
            line = (
                f"done: {summary.counts} in {seconds_since_start():.1f} s"
                + ("" if summary.closed else "; the query is open")
                + (f"; {counted(summary.left_out, 'tuple')} left out, final before" if summary.left_out else "")
                + ("" if summary.exact else "; the result is not exact: overdue tuples were purged")
            )
        console.print(Text(line), highlight=False, soft_wrap=True)
