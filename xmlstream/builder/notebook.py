"""SQL in a notebook's cells: `%load_ext xmlstream`, then cells that begin with `%%xmlstream`.

    %%xmlstream hottest
    CREATE TABLE reading (sid STRING, hour INT, temp DOUBLE) USING punctuated_xml OPTIONS (path 'in', rowTag 'reading');
    SELECT hour, place, max(temp) AS temp FROM reading JOIN places USING (sid) GROUP BY hour, place;

The notebook's variables are at hand: tables of Arrow's, pandas' or polars' by their names in FROM, texts and numbers as
`${NAME}`. The cell shows the progress, then the plan with its numbers and the result, and names the result.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import MutableMapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from xmlstream.builder.given_tables import is_table
from xmlstream.builder.reading import from_sql
from xmlstream.builder.runnable import inserts_from_sql, run, start
from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.runtime.tally import Summary
from xmlstream.session.engines import InProcessSession, open_session
from xmlstream.sink.program_sink import Sink
from xmlstream.sink.result_tables import ResultSlice, no_rows
from xmlstream.sql import script

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

ROWS = 20
"""The rows of a result that a cell shows."""


@dataclass(frozen=True, slots=True)
class CellResult:
    """The result of a cell: its `tuples` as a table of Arrow's, and the `summary` of the run."""

    tuples: pa.Table
    schema: Schema
    summary: Summary

    def __repr__(self) -> str:
        """The first rows as lines, and the counts."""
        rows = [
            [a.domain.shown(row.get(a.name)) for a in self.schema] for row in self.tuples.slice(0, ROWS).to_pylist()
        ]
        return "\n".join(["\t".join(row) for row in [list(self.schema.names), *rows]] + [self.summary.counts])

    def _repr_html_(self) -> str:
        """The first rows as a table, and the summary with the plan."""
        head = "".join(f"<th>{escape(a.name)}</th>" for a in self.schema)
        shown = [
            [a.domain.shown(row.get(a.name)) for a in self.schema] for row in self.tuples.slice(0, ROWS).to_pylist()
        ]
        rows = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in shown)
        more = self.tuples.num_rows - len(shown)
        rest = f"<p>and {more:,} more</p>" if more else ""
        return f"<table><tr>{head}</tr>{rows}</table>{rest}{self.summary._repr_html_()}"


class _Collected(Sink):
    """All slices of a result."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []

    def write(self, slice_: ResultSlice) -> None:
        self.tables.append(slice_.tuples)

    def __str__(self) -> str:
        return "the notebook's cell"


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"`%%xmlstream`: `{message}`", hint=f"`{self.usage}`")


def _arguments() -> argparse.ArgumentParser:
    usage = "%%xmlstream [NAME] [--explain] [-o OUT] [--checkpoint DIR] [--follow] [--engine NAME]"
    made = _Arguments(prog="%%xmlstream", add_help=False, usage=usage)
    made.add_argument("name", nargs="?")
    made.add_argument("-o", dest="output")
    for name in ("output", "checkpoint", "engine"):
        made.add_argument(f"--{name}")
    for name in ("explain", "follow"):
        made.add_argument(f"--{name}", action="store_true")
    return made


class Cells:
    """The cells of a notebook whose variables are these."""

    def __init__(self, variables: MutableMapping[str, Any]) -> None:
        self._variables = variables
        self._opened: Session | None = None

    def cell(self, line: str, text: str) -> object:
        """Does what a cell says: explains its query, runs it, or starts it.

        Args:
            line: What follows `%%xmlstream`: the name of a variable for the result, and options.
            text: SQL as `xmlstream run` takes it.

        Returns:
            With `--explain` the explanation; of a SELECT a `CellResult`; with `--output`, or of INSERT INTO, a summary
            of the run; with `--follow` its handle.

        Raises:
            UsageError: The line cannot be read.
            XmlStreamError: Any other error of the query or its run.
        """
        given = _arguments().parse_args(shlex.split(line))
        if given.name is not None and not given.name.isidentifier():
            raise UsageError(f"{given.name!r} is not the name of a variable", hint="`%%xmlstream hottest`")
        if given.follow and given.checkpoint is None:
            raise UsageError(
                "a query that is followed needs a checkpoint", hint="`%%xmlstream --follow --checkpoint state -o out`"
            )
        made = self._done(text, given, self._session(given.engine))
        if given.name is not None:
            self._variables[given.name] = made.tuples if isinstance(made, CellResult) else made
        return made

    def _done(self, text: str, given: argparse.Namespace, session: Session) -> object:
        tables = {
            name: value for name, value in self._variables.items() if not name.startswith("_") and is_table(value)
        }
        texts = {
            name: str(value) for name, value in self._variables.items() if isinstance(value, str | int | float | Path)
        }
        run_ = start if given.follow else run
        if script.has_insert(text, texts) and not given.explain:
            if given.output is not None:
                raise UsageError("the text names its outputs, by INSERT INTO", hint="leave out `--output`")
            return run_(inserts_from_sql(session, text, texts, tables), given.checkpoint)
        query = from_sql(session, text, texts, tables)
        if given.explain:
            return query.explain("text", follow=given.follow)
        if given.output is not None:
            return run_([query.insert_into(given.output)], given.checkpoint)
        if given.follow:
            raise UsageError(
                "a query that is followed needs an output", hint="`%%xmlstream --follow --checkpoint state -o out`"
            )
        collected = _Collected()
        summary = run([query.insert_into(sink=collected)], given.checkpoint)
        tables_ = collected.tables or [no_rows(query.schema)]
        return CellResult(pa.concat_tables(tables_, promote_options="permissive"), query.schema, summary)

    def _session(self, engine: str | None) -> Session:
        """The session of the notebook, or one that is opened for its cells."""
        there = [value for value in self._variables.values() if _is_session(value)]
        if engine is None and there:
            found: Session = there[-1]
            return found
        if self._opened is None or engine is not None:
            chosen: Any = engine
            self._opened = open_session(engine=chosen)
        return self._opened


def _is_session(value: object) -> bool:
    return isinstance(value, InProcessSession) or (hasattr(value, "createDataFrame") and not isinstance(value, type))


def load_ipython_extension(shell: Any) -> None:
    """Adds the magic `%%xmlstream` to a shell of IPython's: `%load_ext xmlstream` calls this."""
    shell.register_magic_function(Cells(shell.user_ns).cell, "cell", "xmlstream")
