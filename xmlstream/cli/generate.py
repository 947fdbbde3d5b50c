"""`xmlstream generate …`: commands that write punctuated example streams."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xmlstream.cli.command_line import Command, Commands
from xmlstream.punct_ns.errors import UsageError

generators = typer.Typer(cls=Commands, help="Write punctuated example streams: reports of sensors, or an auction.")


@generators.command("sensors", cls=Command, epilog="xmlstream generate sensors --sensors 2 --hours 6 --out sensors")
def generate_sensors(
    out: Annotated[Path | None, typer.Option(help="Directory for sensor1.xml, sensor2.xml, …", metavar="DIR")] = None,
    to: Annotated[
        str | None,
        typer.Option(
            help="Send the reports live instead, one message per line, to sensor1, sensor2, … below mqtt://HOST/TOPIC "
            "or http://HOST:PORT/PATH.",
            metavar="ADDRESS",
        ),
    ] = None,
    sensors: Annotated[int, typer.Option(help="Number of sensors.")] = 2,
    hours: Annotated[int, typer.Option(help="Hours that each sensor reports.")] = 60,
    punctuations_per_hour: Annotated[
        int, typer.Option(help="Punctuations in each hour, the last one for the whole hour; 0 for none.")
    ] = 1,
    reports_per_hour: Annotated[int, typer.Option(help="Reports per sensor and hour.")] = 60,
    seed: Annotated[int, typer.Option(help="Seed of the temperatures: the same seed gives the same bytes.")] = 0,
    rate: Annotated[
        float | None, typer.Option(help="Write live, at so many reports per second; 60 with --to.", metavar="REPORTS")
    ] = None,
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
    out: Annotated[
        Path, typer.Option(help="Directory for person.xml, auction.xml, bid.xml and tables.sql.", metavar="DIR")
    ],
    events: Annotated[int, typer.Option(help="Number of people, auctions and bids together, 1 : 3 : 46.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of all random values: the same seed gives the same bytes.")] = 0,
    xml: Annotated[
        str, typer.Option(help="flat: one element per attribute; nested: as XMark nests them.", metavar="FORM")
    ] = "flat",
    schemes: Annotated[
        str,
        typer.Option(
            help="Punctuated attributes: all, none, dateTime (heartbeats in all streams), or any of person.id, "
            "auction.id, bid.auction (expired), bid.bidder, auction.seller (retired), person.dateTime, "
            "auction.dateTime, bid.dateTime; separated by ; or ,.",
            metavar="SCHEMES",
        ),
    ] = "all",
    bid_streams: Annotated[int, typer.Option(help="Number of documents that the bids are spread over.")] = 1,
    out_of_order: Annotated[
        float, typer.Option(help="Largest delay of tuples; a tenth of them is late.", metavar="SECONDS")
    ] = 0,
    pace: Annotated[int, typer.Option(help="Events per second of the tuples' own time.")] = 10,
    heartbeat: Annotated[
        float, typer.Option(help="Seconds of the tuples' own time between heartbeats.", metavar="SECONDS")
    ] = 10,
    in_flight: Annotated[int, typer.Option(help="Approximate number of auctions that are open at once.")] = 100,
    active: Annotated[int, typer.Option(help="Number of people who bid and sell: the newest ones.")] = 1000,
    lifespan: Annotated[
        str,
        typer.Option(
            help="How long the punctuation of an id holds after its auction has expired or its person has retired "
            "(PT1H); then the id is used again.",
            metavar="DURATION",
        ),
    ] = "",
    rate: Annotated[
        float | None, typer.Option(help="Write live, at so many events per second.", metavar="EVENTS")
    ] = None,
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
