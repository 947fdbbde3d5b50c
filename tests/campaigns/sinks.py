"""The sinks' campaign: a run into XML, Parquet, Delta and PostgreSQL at once is killed at random moments.

    .ci/java .venv/bin/python -m tests.campaigns.sinks [--kills 20]

Each tuple is in each sink once. `tests/xmlstream/sink/test_transaction_runs.py` does the same with one kill.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.xmlstream.sink import test_transaction_runs as runs
from xmlstream.session.spark_session import open_spark_session


def main() -> int:
    """Runs it; whether there was a fault."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=20)
    runs.KILLS = arguments.parse_args().kills
    runs.SLICES = 4 * runs.KILLS
    with tempfile.TemporaryDirectory() as directory:
        try:
            runs.test_sinks_lose_nothing_and_repeat_nothing(open_spark_session("local[2]"), Path(directory))
        except AssertionError as error:
            print(f"sinks: {error}")
            return 1
    print(f"sinks: killed {runs.KILLS} times, nothing lost, nothing twice in XML, Parquet, Delta and PostgreSQL")
    return 0


if __name__ == "__main__":
    sys.exit(main())
