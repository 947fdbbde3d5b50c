"""The options of a run, each declared once: its name, its default, and its meaning.

`xmlstream run` makes its parameters of them, `help()` of the builder's functions prints them, and a test holds the
table of `xmlstream/runtime/README.md` to them. The meaning is what the command's help says.
"""

from __future__ import annotations

from typing import Any

from xmlstream.dataclasses import dataclass, field, fields


def run_option(default: Any, meaning: str, value: str | None = None, short: str | None = None) -> Any:
    """An option: its default, its meaning, and on the command line the word for its value and its letter.

    A flag, which is true or false, has no word for its value.
    """
    return field(default=default, metadata={"meaning": meaning, "value": value, "short": short})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user gives for a run, by either interface."""

    as_written: bool = run_option(False, "Run the plan as written, without the optimizer's rules.")
    follow: bool = run_option(False, "Wait for more input until interrupted.")
    trigger: str | None = run_option(None, "With --follow, shortest time between two slices: 500ms, 10s, 5m.", "TIME")
    checkpoint: str | None = run_option(
        None, "Directory or s3://… for the query's state; a later run resumes from it.", "DIR"
    )
    work: str | None = run_option(
        None, "Directory for the working copy of a checkpoint at s3://…; else a temporary one.", "DIR"
    )
    continues: str | None = run_option(
        None, "An earlier query's checkpoint, or its output: what is closed there is final, and left out.", "OUT"
    )
    incomplete: list[str] | None = run_option(
        None,
        "With --continues, where documents are gone: what cannot be whole, and is left out; or none.",
        "PUNCTUATION",
    )
    keep_open: bool = run_option(False, "The end of the input does not close the query: a later run resumes.")
    moved: bool = run_option(False, "Accept that inputs or outputs have moved, or that published results are gone.")
    change: bool = run_option(False, "Go on with the state of another query, as far as its plan allows.")
    undo: bool = run_option(False, "Return to the query before --change, if no slice was committed since.")
    adapt: bool = run_option(
        False, "Choose the joins by the rates that earlier runs have measured, and move the state."
    )
    overwrite: bool = run_option(False, "Remove the documents of an earlier query from the output first.")
    allow_unsafe: bool = run_option(False, "With --follow, also run a query that waits or grows for ever.")
    strict: bool = run_option(False, "Also without --follow, refuse a query that only the end of its input completes.")
    purge_after: str | None = run_option(
        None,
        "Purge tuples kept for longer, into dead letters; the result is then not exact: '1000 slices', PT1H.",
        "TIME",
    )
    name: str | None = run_option(None, "Name of the query in Spark's pages.", "NAME")
    metrics: str | None = run_option(None, "File or s3://… for one JSON object per slice.", "FILE")
    warn_after: str | None = run_option(
        None,
        "Warn if tuples wait and a promised scheme, or a source that others passed, is silent for so long: PT10M.",
        "TIME",
    )

    engine: str | None = run_option(
        None,
        "What computes: spark, the default where it is installed; duckdb, without Java, what is proven equal; or auto, "
        "which starts Spark for what is not, and for large slices.",
        "NAME",
    )

    def of_a_run(self) -> dict[str, Any]:
        """These options by name, without those that a subclass adds."""
        return {each.name: getattr(self, each.name) for each in fields(Options)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions(Options):
    """What a user gives to `xmlstream run`."""

    output: str | None = run_option(
        None,
        "Where the result of a SELECT goes: a directory of documents; - for standard output; OUT.parquet, OUT.delta or"
        " postgresql://… for a table. Directories and tables may lie in an object store: s3://….",
        "OUT",
        "-o",
    )
    row_tag: str = run_option("row", "Tag of the result's tuples.", "TAG")
    root_tag: str = run_option("rows", "Tag of the result's documents.", "TAG")
    xml: list[str] | None = run_option(
        None, "Column of the result whose texts are XML elements; written unescaped.", "COLUMN"
    )
    define: list[str] | None = run_option(None, "Value of a variable ${NAME} of the query.", "NAME=VALUE", "-D")
    master: str | None = run_option(None, "Spark's master; by default all cores of this machine.", "URL")
    conf: list[str] | None = run_option(None, "The engine's configuration.", "KEY=VALUE")
    verbose: bool = run_option(False, "Print progress every few seconds.", short="-v")
    monitor: str | None = run_option(None, "Serve a live page of the run; port 0 is a free one.", "[HOST:]PORT")
    operate: str | None = run_option(
        None, "With --monitor, who knows it may declare punctuations of silent sources on the page.", "TOKEN"
    )
    alert: list[str] | None = run_option(
        None, "When to run the --alert-command: 'in4 silent 10m', 'group_by kept > 1000'.", "CONDITION"
    )
    alert_command: str | None = run_option(
        None,
        "For the shell: runs when an alert begins, and when it ends; see XMLSTREAM_ALERT, XMLSTREAM_STATE.",
        "COMMAND",
    )
    traceback: bool = run_option(False, "Show Python's traceback of an error, and Spark's log.")
