"""The entry point of `xmlstream` and of `python -m xmlstream`; it handles signals before it imports anything else."""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

from xmlstream.cli import interrupts


def main() -> NoReturn:
    """Runs the command line, and exits."""
    interrupts.deadly()
    gc.disable()  # what is imported stays: a search for garbage among it is a tenth of a start
    from xmlstream.cli.commands import main as command

    command()


if __name__ == "__main__":
    # `python -m` looks into the current directory first.
    if sys.path and not sys.flags.safe_path:
        del sys.path[0]
    main()
