"""The receivers' campaign: each way in is killed at random moments while messages come.

    .venv/bin/python -m tests.campaigns.receivers [--kills 20]

Each message is in the documents once, and each document is well-formed. `tests/sources/receivers/test_servers.py` does
the same with two kills each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.sources.receivers import test_servers as ways

WAYS = {
    "http": ways.test_http_loses_nothing_and_repeats_nothing,
    "tcp": ways.test_tcp_loses_nothing_and_repeats_nothing,
    "mqtt": ways.test_mqtt_loses_nothing_and_repeats_nothing,
    "kafka": ways.test_kafka_loses_nothing_and_repeats_nothing_without_ids,
}


def main() -> int:
    """Runs all; the number of ways with a fault."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=20)
    ways.KILLS = arguments.parse_args().kills
    faults = 0
    for name, lose_nothing in WAYS.items():
        with tempfile.TemporaryDirectory() as directory:
            try:
                lose_nothing(Path(directory))
            except AssertionError as error:
                faults += 1
                print(f"{name}: {error}")
            else:
                print(f"{name}: killed {ways.KILLS} times, nothing lost, nothing twice")
    return faults


if __name__ == "__main__":
    sys.exit(main())
