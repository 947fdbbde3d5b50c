"""`python -m xmlstream` is `xmlstream`; the command begins here, with what must be so before anything is imported."""

from __future__ import annotations

import sys
from typing import NoReturn

from xmlstream.cli import interrupts


def main() -> NoReturn:
    """The command."""
    interrupts.deadly()
    from xmlstream.cli.commands import main as command

    command()


if __name__ == "__main__":
    # `python -m` looks into the current directory first.
    if sys.path and not sys.flags.safe_path:
        del sys.path[0]
    main()
