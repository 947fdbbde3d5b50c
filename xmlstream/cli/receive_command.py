"""`xmlstream receive`: writes a live feed into documents that a query follows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xmlstream.cli import interrupts
from xmlstream.cli.command_line import argument, flag, name_values, option, say
from xmlstream.punct_ns.errors import InputError, counted, reason

if TYPE_CHECKING:
    from xmlstream.sources.receivers.receiving import Receiving
    from xmlstream.sources.receivers.spool import Received

_LOOK_SECONDS = 0.2
_SAY_SECONDS = 10.0


def receive(  # noqa: PLR0913, PLR0917 - one parameter for each option
    address: Annotated[
        str,
        argument(
            "ADDRESS",
            "mqtt://HOST/TOPIC, http://HOST:PORT/PATH, tcp://HOST:PORT, kafka://HOST/TOPIC; - for standard input.",
        ),
    ],
    into: Annotated[Path, option("DIR", "Directory for the documents; a source reads it.")],
    row_tag: Annotated[str, option("TAG", "Tag of the tuples.")],
    root_tag: Annotated[str, option("TAG", "Tag of the documents' root.")] = "stream",
    rotate_size: Annotated[str, option("SIZE", "Close a document of this size: 10m, 1g.")] = "64m",
    rotate_after: Annotated[
        str, option("TIME", "Close a document this long after its first message: 30s, 10m, 1h.")
    ] = "10m",
    key: Annotated[
        str | None, option("LEAVES", "Leaves that identify a tuple, to drop repeated messages: sid,ts or @id.")
    ] = None,
    id_property: Annotated[str | None, option("NAME", "User property that identifies an MQTT message.")] = None,
    client_id: Annotated[
        str, option("NAME", "Name of the session at an MQTT broker, which keeps messages for it.")
    ] = "xmlstream",
    remember: Annotated[
        int, typer.Option(help="How many of the newest messages are checked for repetition.", min=0)
    ] = 1_000_000,
    apart: Annotated[bool, flag("One directory for each MQTT topic, HTTP path or Kafka partition.", "--apart")] = False,
    lines: Annotated[bool, flag("Each line is a message, instead of each element.", "--lines")] = False,
    max_message: Annotated[str, option("SIZE", "Longest message that is accepted.")] = "64m",
    setting: Annotated[list[str] | None, option("NAME=VALUE", "Setting of Kafka's client (librdkafka).")] = None,
    verbose: Annotated[bool, flag("Print progress every few seconds.", "--verbose", "-v")] = False,
) -> None:
    """Write the messages of a live feed into documents, each once, and acknowledge each after it is on disk.

    A query follows the documents: CREATE TABLE … OPTIONS (path 'DIR', …), and `xmlstream run --follow`. Tuples and
    punctuations are both elements of messages. Runs until interrupted, or to the end of standard input.
    """
    from xmlstream.sources.receivers import receiving as receivers

    with interrupts.noted_signals() as signals:
        receiving = receivers.receive(
            address,
            into,
            row_tag=row_tag,
            root_tag=root_tag,
            key=key.split(",") if key else (),
            id_property=id_property,
            client_id=client_id,
            remember=remember,
            rotate_size=rotate_size,
            rotate_after=rotate_after,
            max_message=max_message,
            lines=lines,
            apart=apart,
            settings=name_values(setting, "--setting", "NAME=VALUE"),
            is_interrupted=lambda: signals.number is not None,
        )
        if address != "-":
            say(f"receiving {receiving.place} into {into}; Ctrl-C ends it")
        _watch(receiving, signals, verbose=verbose)
        received = receiving.stop()
    say(f"{into}: {_counts(received)}")
    if received.malformed:
        say(f"the first malformed message: {received.why}; all with their errors: {receiving.set_aside}")
    if address == "-" and signals.number is not None:
        raise interrupts.Interrupted(signals.number)
    if address == "-" and received.malformed and not (received.written or received.repeated):
        raise InputError("no message could be read", hint="--row-tag names the elements of the tuples")


def _watch(receiving: Receiving, signals: interrupts.Interrupts, *, verbose: bool) -> None:
    """Waits for the end; prints write errors and, if verbose, counts."""
    last_counts, last_trouble, why = time.monotonic(), None, None
    while signals.number is None and not receiving.wait(_LOOK_SECONDS) and receiving.is_running:
        trouble = receiving.trouble and reason(receiving.trouble)
        if trouble != last_trouble:
            say(
                f"documents cannot be written: {trouble}; messages are kept in the journal"
                if trouble
                else "documents are written again"
            )
            last_trouble = trouble
        if why is None and (why := receiving.received.why):
            say(f"malformed: {why}")
        if verbose and time.monotonic() - last_counts >= _SAY_SECONDS:
            say(_counts(receiving.received))
            last_counts = time.monotonic()


def _counts(received: Received) -> str:
    if not received.messages:
        return "no message came"
    others = ((received.repeated, "repeated"), (received.malformed, "malformed"))
    written = f"{received.written:,} of {counted(received.messages, 'message')} written"
    return ", ".join([written, *(f"{count:,} {what}" for count, what in others if count)])
