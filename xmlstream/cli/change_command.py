"""`xmlstream change`: shows what another query would take over from a checkpoint, and what refuses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from xmlstream.cli.command_line import argument, flag, name_values, option, query_text, warn

if TYPE_CHECKING:
    from xmlstream.operators.storage.store import Folder
    from xmlstream.runtime.change.query_change import QueryChange
    from xmlstream.session.engines import Session
    from xmlstream.sql.script import Script


def change(
    query: Annotated[
        str, argument("QUERY.sql", "File with the new query, whose paths may be s3://…; - for standard input.")
    ],
    checkpoint: Annotated[str, option("DIR", "The checkpoint of the query before, a directory or s3://….")],
    output: Annotated[
        str | None,
        option("OUT", "Where the result of a SELECT would go; by default where it goes now.", "--output", "-o"),
    ] = None,
    define: Annotated[
        list[str] | None, option("NAME=VALUE", "Value of a variable ${NAME} of the query.", "--define", "-D")
    ] = None,
    moved: Annotated[bool, flag("Inputs or outputs have moved, too.", "--moved")] = False,
    as_written: Annotated[bool, flag("The plan as written, without the optimizer's rules.", "--as-written")] = False,
    engine: Annotated[
        str | None, option("NAME", "What plans the query: duckdb, or spark; by default the first that can.", "--engine")
    ] = None,
) -> None:
    """Show what `run --change` would do: which operators go on with what they keep, and what refuses it."""
    from xmlstream.diagnosis.inspection import plan_of
    from xmlstream.runtime.checkpoint.remote_checkpoint import readable
    from xmlstream.sql import script as scripts

    text, title = query_text(query)
    script = scripts.read(text, name_values(define, "-D", "NAME=VALUE"), title)
    warn(script.warnings)
    with readable(checkpoint) as (directory, _):
        plan_of(directory)  # or it says that there is none
        found = _change(script, directory, output, engine, moved=moved, as_written=as_written)
        after = "before its first slice" if found.last.slice < 0 else f"after slice {found.last.slice}"
        if found.is_same:
            typer.echo(f"{title} is the query of the checkpoint {directory.where()}: it goes on as it is")
            return
        typer.echo(f"{title}, {after} of the checkpoint {directory.where()}:")
        for verdict in found.verdicts:
            typer.echo(f"  {verdict}")
        found.require()
        for line in found.closed_before():
            typer.echo(line)


def _change(
    script: Script, directory: Folder, output: str | None, engine: str | None, *, moved: bool, as_written: bool
) -> QueryChange:
    """The change, planned by an engine; without its name by DuckDB, if that computes all of the query."""
    from xmlstream.builder.run_options import plan_to_run
    from xmlstream.cli.run import Engines
    from xmlstream.runtime.change.changed_checkpoint import planned_change
    from xmlstream.runtime.checkpoint.same_query import QueryRecord
    from xmlstream.runtime.settings import Settings
    from xmlstream.session.engines import engine_of

    before = QueryRecord.of(directory)
    is_select = any(answer.sink is None for answer in script.answers)
    if output is None and is_select:
        output = before.outputs[0].output
    one = next((each for each in before.outputs if each.output == output), None)
    targets = script.targets(output, *((one.row_tag, one.root_tag, one.xml) if one is not None else ()))

    def of_engine(session: Session) -> QueryChange:
        root = plan_to_run(
            script.plan(session), Settings(targets, checkpoint=str(directory.path()), as_written=as_written)
        )
        return planned_change(directory, root, targets, engine_of(session).zone, moved=moved)

    with Engines(engine) as engines:
        return engines.first_able(of_engine)
