"""Live streams sent to a receiver or a broker are those that are written to files."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from tests.harness.feeds import HOST, broker, free_port, until_acknowledged
from xmlstream.punct_ns.errors import InputError, UsageError
from xmlstream.sources.generators.sensors import publish_sensors, write_sensors
from xmlstream.sources.receivers.message import MessageReader
from xmlstream.sources.receivers.receiving import Feed, Receiving, receiver_of
from xmlstream.sources.receivers.spool import Spool

ASKED = {"sensors": 2, "hours": 3, "punctuations_per_hour": 2, "reports_per_hour": 10, "seed": 4}
AT_ONCE = 1e6


def items(*documents: Path) -> list[bytes]:
    """The elements of documents, one after the other."""
    roots = (etree.fromstring(path.read_bytes()) for path in documents)
    return [
        etree.tostring(element, with_tail=False, method="c14n", exclusive=True) for root in roots for element in root
    ]


def received(address: str, into: Path, to: str) -> dict[str, list[bytes]]:
    """What a receiver has written of what was published."""
    begun = Receiving(receiver_of(address, Feed("tempdata", apart=True)), Spool(into, MessageReader("tempdata")))
    begun.wait_until_ready()
    publish_sensors(to.replace(":0/", f":{begun.place.split(':')[2].partition('/')[0]}/"), **ASKED, rate=AT_ONCE)
    until_acknowledged(
        lambda: [path.read_bytes().count(b"tempdata>") >= 72 for path in into.glob("*sensor*/*.xml")] == [True, True]
    )
    begun.stop()
    assert begun.received.malformed == 0
    return {path.name: items(*sorted(path.glob("*.xml"))) for path in into.iterdir() if not path.name.startswith("_")}


@pytest.mark.rest
def test_sensors_that_publish_say_what_their_documents_do(tmp_path: Path) -> None:
    written = [items(path) for path in write_sensors(tmp_path / "written", **ASKED)]
    assert [len(each) for each in written] == [36, 36]
    posted = received(f"http://{HOST}:0/hall", tmp_path / "http", f"http://{HOST}:0/hall")
    assert posted == {"sensor1": written[0], "sensor2": written[1]}
    with broker(tmp_path) as port:
        address = f"mqtt://{HOST}:{port}/hall"
        published = received(f"{address}/%23", tmp_path / "mqtt", address)
    assert published == {"hall%2Fsensor1": written[0], "hall%2Fsensor2": written[1]}


def test_where_nothing_can_be_published_is_said_in_words() -> None:
    port = free_port()
    for address, error, words in (
        ("ftp://host/t", UsageError, "not a valid address to publish to"),
        (f"http://{HOST}/in", UsageError, "not a valid address to publish to"),
        (f"mqtt://{HOST}:x/t", UsageError, "not a valid address"),
        (f"mqtt://{HOST}:{port}/t", InputError, f"no broker at {HOST}:{port}: connection refused"),
        (f"http://{HOST}:{port}/in", InputError, f"no receiver at {HOST}:{port}/in/sensor1: .*refused"),
    ):
        with pytest.raises(error, match=words):
            publish_sensors(address, rate=AT_ONCE)
