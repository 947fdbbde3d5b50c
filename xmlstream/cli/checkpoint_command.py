"""`xmlstream checkpoint`: shows what is in a checkpoint, and verifies that it is as it was written."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from xmlstream.cli.command_line import argument, flag, option
from xmlstream.punct_ns.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xmlstream.diagnosis.checkpoint_contents import CheckpointContents
    from xmlstream.punct_ns.errors import StateError


class ContentsFormat(StrEnum):
    """How the contents are written."""

    TEXT = "text"
    JSON = "json"


def checkpoint(
    place: Annotated[str, argument("DIR", "The checkpoint, a directory or s3://….")],
    verify: Annotated[
        bool,
        flag("Compare all seals and checksums, also of published documents; exit code 1 for a damage.", "--verify"),
    ] = False,
    operator: Annotated[str | None, option("NAME", "Show the rows that this operator keeps.", "--operator")] = None,
    log: Annotated[
        str | None, option("NAME", "Of an operator that keeps several kinds of rows, which: side-0.", "--log")
    ] = None,
    rows: Annotated[int, option("N", "The most rows of an operator that are shown as a table.", "--rows")] = 20,
    format_: Annotated[ContentsFormat, flag("For people or for programs.", "--format")] = ContentsFormat.TEXT,
) -> None:
    """Show what is in a checkpoint: operators, rows, bytes, slices, format, results; it reads and never writes.

    The query may run, or have been stopped or killed.
    """
    if operator is not None or log is not None:
        if operator is None or verify:
            what = "--log and --verify" if operator is None else "--operator and --verify"
            raise UsageError(f"{what} do not go together", hint="name the operator: --operator join --log side-0")
        _show_kept(place, operator, log, rows, format_)
        return
    from xmlstream.diagnosis.checkpoint_contents import contents_of, damages
    from xmlstream.punct_ns.errors import StateError
    from xmlstream.runtime.checkpoint.remote_checkpoint import readable

    found: CheckpointContents | None = None
    damaged: Sequence[StateError] = ()
    try:
        with readable(place) as (directory, _):
            damaged = damages(directory) if verify else ()
            if not damaged:
                found = contents_of(directory)
    except StateError as error:
        # From an object store a damaged checkpoint cannot even be brought here.
        if not verify or "damaged" not in error.what:
            raise
        damaged = [error]
    if format_ is ContentsFormat.JSON:
        verified = {"damaged": [error.what for error in damaged]} if verify else {}
        typer.echo(json.dumps({**(found.json() if found is not None else {"checkpoint": place}), **verified}, indent=2))
    elif found is not None:
        typer.echo("\n".join([*_lines(found), *(["verified: all seals and checksums"] if verify else [])]))
    else:
        typer.echo("\n".join(error.what for error in damaged))
    if damaged:
        raise typer.Exit(1)


def _show_kept(place: str, operator: str, log: str | None, most: int, format_: ContentsFormat) -> None:
    """Prints the rows that an operator keeps, and which commit has them."""
    import pyarrow as pa

    from xmlstream.cli.so_far_command import in_columns
    from xmlstream.diagnosis.kept_state import kept, origin
    from xmlstream.diagnosis.so_far import objects_in

    table = kept(place, operator, log)
    if format_ is ContentsFormat.JSON:
        typer.echo("".join(f"{line}\n" for line in objects_in(table)), nl=False)
        return
    columns = []
    for name in table.column_names:
        column = table[name].slice(0, most)
        numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        texts = ["null" if value is None else str(value) for value in column.to_pylist()]
        columns.append(([name, *texts], numeric or pa.types.is_decimal(column.type)))
    typer.echo(
        "\n".join([f"{origin(table)}: {_counted(table.num_rows, 'row')}", *in_columns(columns, table.num_rows, most)])
    )


def _lines(found: CheckpointContents) -> Iterator[str]:
    """The contents for people."""
    earlier = [f"slices up to {last} in format {number}" for number, last in found.earlier.items()]
    version = f"xmlstream {found.version}" if found.version else "a version of xmlstream that did not note itself"
    yield f"{found.checkpoint}: {found.state}; format {found.format}, by {version}{''.join(f'; {e}' for e in earlier)}"
    if found.slice is None:
        yield "no slice is committed"
    else:
        yield f"slice {found.slice} is the last one, committed at {found.time}"
    width = max((len(each.name) for each in found.operators), default=0)
    for each in found.operators:
        read = f", {_counted(each.document, 'document')} read" if each.document is not None else ""
        kept = f"{_counted(each.rows, 'row')}, {_counted(each.punctuations, 'punctuation')}, {_size(each.bytes)}"
        yield f"  {each.name:<{width}}  {kept}{read}: {each.what}"
    for result in found.results:
        documents = "a table" if result.documents is None else _counted(result.documents, "document")
        yield f"to {result.output}: {documents}, {result.form}"
    for name, size in found.streams.items():
        yield f"stream {name}: {_size(size)} not read yet"
    folders = [f"{name or 'files'} {_size(size)}" for name, size in found.bytes.items()]
    yield f"{_size(sum(found.bytes.values()))} in all: {', '.join(folders)}"


def _counted(count: int, what: str) -> str:
    """The count with its noun.

    >>> _counted(1, "row"), _counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _size(size: int) -> str:
    """A number of bytes for people.

    >>> _size(708), _size(13_035), _size(5_200_000_000)
    ('708 bytes', '13.0 kB', '5.2 GB')
    """
    if size < 1000:
        return f"{size} bytes"
    exponent = min((len(str(size)) - 1) // 3, 4)
    return f"{size / 1000**exponent:.1f} {'kMGT'[exponent - 1]}B"
