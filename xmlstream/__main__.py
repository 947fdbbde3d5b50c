"""`python -m xmlstream` is `xmlstream`; the command begins here, with what must be so before anything is imported."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from xmlstream import interrupts


def main() -> NoReturn:
    """The command."""
    interrupts.deadly()
    _have_standard_streams()
    from xmlstream.cli import main as command

    command()


def _have_standard_streams() -> None:
    """What was closed by `>&-` leads nowhere instead, or the next file to be opened would be taken for it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


if __name__ == "__main__":
    # `python -m` looks into the current directory first.
    if sys.path and not sys.flags.safe_path:
        del sys.path[0]
    main()
