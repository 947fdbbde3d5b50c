"""Arguments that several commands take, a query and values by their names; and lines on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from xmlstream.punct_ns.errors import UsageError, reason


def query_text(query: str) -> tuple[str, str]:
    """Returns the text of a query and the name that messages use for it.

    Raises:
        UsageError: The file cannot be read.
    """
    if query == "-":
        return sys.stdin.read(), "standard input"
    try:
        return Path(query).read_text(encoding="utf-8"), query
    except OSError as error:
        raise UsageError(f"the query {query} cannot be read: {reason(error)}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the query {query} is not UTF-8 text") from None


def say(text: str) -> None:
    """Prints a line on standard error."""
    Console(stderr=True, highlight=False).print(Text(text), soft_wrap=True)


def warn(warnings: Iterable[str]) -> None:
    """Prints warnings on standard error."""
    for warning in warnings:
        say(f"warning: {warning}")


def name_values(texts: list[str] | None, option: str, form: str) -> dict[str, str]:
    """Returns the NAME=VALUE pairs of an option that may be repeated.

    Raises:
        UsageError: A pair has no name, or no equals sign.
    """
    pairs = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"{option} {text}: not NAME=VALUE", hint=f"{option} {form}")
        pairs[name.strip()] = value
    return pairs
