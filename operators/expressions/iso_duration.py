r"""ISO 8601 durations: texts such as `PT1H30M` as Spark's expressions of type INTERVAL DAY TO SECOND.

Feeds of SIRI, DATEX or ISO 20022 write delays as the type `duration` of XML Schema. Spark reads no such text. So a
regular expression writes it as text of Spark's calendar intervals, a moment without time zone is moved by that, and the
distance of both moments is the duration:

    -PT1H30M    '-0 weeks -0 days -01 hours -030 minutes -0.0 seconds'

The numbers of a text are not limited by the next unit: `PT90M` is `PT1H30M`. A day has 24 hours. Years and months have
no fixed length. Digits behind the microsecond are dropped. Source: ISO 8601-1:2019, 5.5.2; a sign before P is of XML
Schema (Part 2, 3.2.6).
"""

from __future__ import annotations

import re

from sqlglot import exp

from xmlstream.operators.expressions.dialect import call_name, expression, parsed, render

ISO_DURATIONS = frozenset({"iso_duration", "try_iso_duration"})
"""Functions of a query: the first raises an error for a text that is not a duration, the second gives null."""

OF_FIXED_LENGTH = "an ISO 8601 duration of weeks to seconds"
ISO_HINT = (
    "write for example PT1H30M, P1DT2H, -PT45S or PT0.5S: years and months have no fixed length, and only seconds have"
    " decimals; try_iso_duration(…) gives null for any other text"
)
"""Hint for a text that is not a duration."""

OWN = "iso_duration"
"""Mark on the casts of a rewritten call, whose types a query may not write itself: the name of the function."""

_PARTS = (
    r"([+-]?)P(?=.)(?:([0-9]+)W)?(?:([0-9]+)D)?"
    r"(?:T(?=.)(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:[.,]([0-9]{1,6})[0-9]*)?S)?)?"
)
_IN_WORDS = "$10$2 weeks $10$3 days $10$4 hours $10$5 minutes $10$6.$70 seconds"
"""Java reads `$10` as group 1 and a zero, since there is no group 10; the zero stands for an absent number."""


def is_iso_duration(text: str) -> bool:
    """Whether a text has the form of a duration; its length may be more than an interval holds.

    >>> [is_iso_duration(text) for text in ("PT1H30M", "P2W", "-PT0.5S", "P", "P1DT", "P1M", "PT1.5H", "1 hour")]
    [True, True, True, False, False, False, False, False]
    """
    return re.fullmatch(_PARTS, text) is not None


def iso_duration(text: exp.Expr, name: str, at: int) -> exp.Expr:
    """The expression of `iso_duration` or `try_iso_duration`, by name, of a text; null gives null.

    Args:
        text: An expression of type STRING.
        name: The function.
        at: The place of the call in the text of its query.
    """
    moment, pattern = "CAST('1970-01-01' AS TIMESTAMP_NTZ)", rf"^!{_PARTS}\\z"
    # With ! before it, only a text that the pattern matches becomes an interval; any other is null.
    interval = f"CAST(regexp_replace(concat('!', x), '{pattern}', '{_IN_WORDS}') AS INTERVAL)"
    written = f"(try_add({moment}, {interval}) - {moment})"
    if name == "iso_duration":
        # Nothing that begins with these words is an interval: the cast raises an error, which shows the text.
        written = f"coalesce({written}, CAST(concat('not {OF_FIXED_LENGTH}: ', x) AS INTERVAL DAY TO SECOND))"
    found = expression(written)
    for node in found.walk():
        node.meta["start"] = at
        if isinstance(node, exp.Cast):
            node.meta[OWN] = name
    return found.transform(lambda node: text.copy() if isinstance(node, exp.Column) else node)


def with_iso_durations(text: str) -> str:
    """A condition of a rule as Spark reads it: as written, or with its calls of these functions rewritten.

    >>> with_iso_durations("status = 'iso_duration'")
    "status = 'iso_duration'"
    """
    tree = parsed(text)
    if tree is None or not any(call_name(call) in ISO_DURATIONS for call in tree.find_all(exp.Anonymous)):
        return text
    whole = exp.Paren(this=tree.copy())
    for call in reversed([*whole.find_all(exp.Anonymous, bfs=False)]):  # an argument is rewritten before its call
        if call_name(call) in ISO_DURATIONS and len(call.expressions) == 1:
            call.replace(iso_duration(call.expressions[0], call_name(call), 0))
    return render(whole)
