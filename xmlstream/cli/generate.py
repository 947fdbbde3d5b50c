"""`xmlstream generate …`: commands that write punctuated example streams."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xmlstream.cli.command_line import Command, Commands, flag, option
from xmlstream.punct_ns.errors import UsageError

generators = typer.Typer(cls=Commands, help="Write punctuated example streams: reports of sensors, or an auction.")


@generators.command("sensors", cls=Command, epilog="xmlstream generate sensors --sensors 2 --hours 6 --out sensors")
def generate_sensors(
    out: Annotated[Path | None, option("DIR", "Directory for sensor1.xml, sensor2.xml, …")] = None,
    to: Annotated[
        str | None,
        option(
            "ADDRESS",
            "Send the reports live instead, one message per line, to sensor1, sensor2, … below mqtt://HOST/TOPIC "
            "or http://HOST:PORT/PATH.",
        ),
    ] = None,
    sensors: Annotated[int, flag("Number of sensors.")] = 2,
    hours: Annotated[int, flag("Hours that each sensor reports.")] = 60,
    punctuations_per_hour: Annotated[
        int, flag("Punctuations in each hour, the last one for the whole hour; 0 for none.")
    ] = 1,
    reports_per_hour: Annotated[int, flag("Reports per sensor and hour.")] = 60,
    seed: Annotated[int, flag("Seed of the temperatures: the same seed gives the same bytes.")] = 0,
    rate: Annotated[float | None, option("REPORTS", "Write live, at so many reports per second; 60 with --to.")] = None,
) -> None:
    """Write the reports of warehouse sensors: temperatures (Tucker et al. 2003, §7)."""
    from xmlstream.sources.generators.sensors import publish_sensors, write_sensors

    numbers = {
        "sensors": sensors,
        "hours": hours,
        "punctuations_per_hour": punctuations_per_hour,
        "reports_per_hour": reports_per_hour,
        "seed": seed,
    }
    if to is not None and out is None:
        publish_sensors(to, **numbers, rate=60.0 if rate is None else rate)
    elif out is not None and to is None:
        for path in write_sensors(out, **numbers, rate=rate):
            typer.echo(path)
    else:
        raise UsageError(
            "generate sensors takes either --out or --to", hint="--out DIR writes files, --to ADDRESS sends messages"
        )


@generators.command("auctions", cls=Command, epilog="xmlstream generate auctions --events 2000 --out auctions")
def generate_auctions(  # noqa: PLR0913, PLR0917 - one parameter for each option
    out: Annotated[Path, option("DIR", "Directory for person.xml, auction.xml, bid.xml and tables.sql.")],
    events: Annotated[int, flag("Number of people, auctions and bids together, 1 : 3 : 46.")] = 100_000,
    seed: Annotated[int, flag("Seed of all random values: the same seed gives the same bytes.")] = 0,
    xml: Annotated[str, option("FORM", "flat: one element per attribute; nested: as XMark nests them.")] = "flat",
    schemes: Annotated[
        str,
        option(
            "SCHEMES",
            "Punctuated attributes: all, none, dateTime (heartbeats in all streams), or any of person.id, "
            "auction.id, bid.auction (expired), bid.bidder, auction.seller (retired), person.dateTime, "
            "auction.dateTime, bid.dateTime; separated by ; or ,.",
        ),
    ] = "all",
    bid_streams: Annotated[int, flag("Number of documents that the bids are spread over.")] = 1,
    out_of_order: Annotated[float, option("SECONDS", "Largest delay of tuples; a tenth of them is late.")] = 0,
    pace: Annotated[int, flag("Events per second of the tuples' own time.")] = 10,
    heartbeat: Annotated[float, option("SECONDS", "Seconds of the tuples' own time between heartbeats.")] = 10,
    in_flight: Annotated[int, flag("Approximate number of auctions that are open at once.")] = 100,
    active: Annotated[int, flag("Number of people who bid and sell: the newest ones.")] = 1000,
    lifespan: Annotated[
        str,
        option(
            "DURATION",
            "How long the punctuation of an id holds after its auction has expired or its person has retired "
            "(PT1H); then the id is used again.",
        ),
    ] = "",
    rate: Annotated[float | None, option("EVENTS", "Write live, at so many events per second.")] = None,
) -> None:
    """Write an online auction: people, auctions, bids, like the NEXMark benchmark."""
    from xmlstream.sources.generators.auction_documents import write_auctions
    from xmlstream.sources.generators.auction_house import House, read_form

    house = House(
        seed=seed,
        form=read_form(xml),
        schemes=schemes,
        bid_streams=bid_streams,
        out_of_order=out_of_order,
        pace=pace,
        heartbeat=heartbeat,
        in_flight=in_flight,
        active=active,
        lifespan=lifespan,
    )
    for path in write_auctions(out, events, house, rate):
        typer.echo(path)
