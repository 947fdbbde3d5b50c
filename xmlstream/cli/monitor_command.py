"""`xmlstream monitor`: the live page of a run that is over, has died, or runs elsewhere, from its files."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer


def monitor(
    checkpoint: Annotated[Path, typer.Option(help="Where the run's state lives.", metavar="DIR")],
    address: Annotated[
        str, typer.Option("--at", help="Where to serve; port 0 is a free one.", metavar="[HOST:]PORT")
    ] = "0",
    metrics: Annotated[
        Path | None, typer.Option(help="The run's metrics file, for all of its slices.", metavar="FILE")
    ] = None,
) -> None:
    """Serve the page of a run from its checkpoint, until interrupted; it reads and never writes."""
    from xmlstream.monitor.monitor import Monitor
    from xmlstream.monitor.recorded import keep_reading, recorded

    view = recorded(checkpoint, metrics)
    server, until = Monitor(address, view), threading.Event()
    reader = threading.Thread(target=keep_reading, args=(checkpoint, view, until), name="checkpoint", daemon=True)
    reader.start()
    typer.echo(f"monitor: {server.where}", err=True)
    try:
        server.wait()
    finally:
        until.set()
        server.close()
