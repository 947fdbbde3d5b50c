"""CREATE TABLE text for an inferred source: certain parts as SQL, guesses as comments."""

from __future__ import annotations

import re

from xmlstream.operators.expressions.dialect import literal
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.slices import quoted
from xmlstream.punct_ns.xml_form import NAME_LETTER
from xmlstream.sources.xml.inference.proposal import Proposal, quoted_if
from xmlstream.sources.xml.options.leaf_paths import local_tag
from xmlstream.sql.tables.declaration import FORMAT

_MOST_OTHERS = 12


def create_table(found: Proposal) -> str:
    """The statement, ready to run; remove the dashes before a guess to include it."""
    rows = f"{found.rows:,} element{'' if found.rows == 1 else 's'}"
    part = "in all" if found.is_whole else "at its beginning, where inference stopped"
    path = " ".join(found.options["path"].split())
    lines = [f"-- Inferred from {path}: {rows} {found.options['rowTag']} {part}."]
    if found.others:
        more = ", …" if len(found.others) > _MOST_OTHERS else ""
        lines.append(f"-- Other elements that repeat, for --row-tag: {', '.join(found.others[:_MOST_OTHERS])}{more}")
    if found.left_out:
        lines.append(f"-- {found.left_out} more leaves have no column here.")
    name = re.sub(f"[^{NAME_LETTER}]", "_", local_tag(found.options["rowTag"]).rpartition(":")[2])
    lines.append(f"CREATE TABLE {quoted_if(name)} (")
    columns = [f"  {quoted(column.name)} {column.leaf.type}" for column in found.columns]
    lines += [",\n".join(columns), f") USING {FORMAT} OPTIONS ("]
    lines += [
        f"  -- a guess, true for the inspected part ({guess.why}):\n  -- {guess.option} {_text(guess.value)},"
        for guess in found.guesses
    ]
    options = [f"  {_option(option)} {_text(value)}" for option, value in found.options.items()]
    return "\n".join([*lines, ",\n".join(options), ");"])


def _option(name: str) -> str:
    group, dot, column = name.partition(".")
    return f"{group}{dot}{quoted_if(column)}" if dot else name


def _text(value: str) -> str:
    return literal(value, Domain("STRING"))
