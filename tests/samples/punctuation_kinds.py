"""Punctuations of every kind, as many as wanted: what closes one attribute, or several, in each way of the notation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

SCHEMA = Schema.parse("a INT, b INT, s STRING, d DOUBLE, t TIMESTAMP")

Texts = Mapping[str, str]


def _moment(k: int) -> str:
    return f"2003-05-{1 + k // 86400 % 28:02}T{k // 3600 % 24:02}:{k // 60 % 60:02}:{k % 60:02}Z"


KINDS: dict[str, Callable[[int], Texts]] = {
    "constant": lambda k: {"a": f"{2 * k}"},
    "constants that become one range": lambda k: {"a": f"{k}"},
    "string": lambda k: {"s": f"u{k:06}"},
    "double": lambda k: {"d": f"{k}.5"},
    "list": lambda k: {"a": f"{{{10 * k},{10 * k + 2}}}"},
    "list of strings": lambda k: {"s": f"{{u{k:06},v{k:06}}}"},
    "list with null": lambda k: {"a": f"{{{10 * k},null}}"},
    "prefix": lambda k: {"a": f"(,{k}]"},
    "suffix": lambda k: {"a": f"[{-k},)"},
    "prefix of moments": lambda k: {"t": f"(,{_moment(k)})"},
    "range": lambda k: {"a": f"[{10 * k},{10 * k + 4}]"},
    "ranges that touch": lambda k: {"a": f"[{10 * k},{10 * k + 9}]"},
    "ranges that overlap": lambda k: {"a": f"[{10 * k},{10 * k + 15}]"},
    "range of moments": lambda k: {"t": f"[{_moment(k)},{_moment(k + 1)})"},
    "range of doubles": lambda k: {"d": f"({10 * k},{10 * k + 4})"},
    "range of strings": lambda k: {"s": f"[u{k:06},u{k:06}b)"},
    "null and constant": lambda k: {"a": "null", "b": f"{2 * k}"},
    "not null and constant": lambda k: {"a": "(,)", "b": f"{2 * k}"},
    "two ranges": lambda k: {"a": f"[{10 * k},{10 * k + 4}]", "b": f"[{10 * k},{10 * k + 4}]"},
    "two ranges of strings": lambda k: {"s": f"[u{k:06},u{k:06}b)", "b": f"[{10 * k},{10 * k + 4}]"},
    "two ranges that overlap": lambda k: {"a": f"[{10 * k},{10 * k + 25}]", "b": f"[{7 * k},{7 * k + 15}]"},
    "range and prefix": lambda k: {"a": f"[{10 * k},{10 * k + 4}]", "b": f"(,{k}]"},
    "three ranges": lambda k: {"a": f"[{10 * k},{10 * k + 4}]", "b": f"[{k},{k + 2}]", "d": f"[{2 * k},{2 * k + 1})"},
    "range and constant": lambda k: {"a": f"{2 * k}", "b": f"[{k},{k + 10}]"},
    "range and one constant": lambda k: {"a": "5", "b": f"[{10 * k},{10 * k + 4}]"},
    "range and some constants": lambda k: {"a": f"{2 * (k % 20)}", "b": f"[{10 * k},{10 * k + 4}]"},
    "prefix and constant": lambda k: {"s": f"u{k:06}", "b": f"(,{k}]"},
    "prefix and some constants": lambda k: {"s": f"u{k % 20:06}", "b": f"(,{k}]"},
    "two constants": lambda k: {"a": f"{2 * k}", "b": f"{k * 7 % 1000}"},
    "two constants of a grid": lambda k: {"a": f"{2 * (k % 50)}", "s": f"u{k // 50:06}"},
    "list and range": lambda k: {"s": f"{{u{k:06},v{k:06}}}", "b": f"[{k},{k + 10}]"},
    "list and list": lambda k: {"s": f"{{u{k:06},v{k:06}}}", "a": f"{{{10 * k},{10 * k + 2}}}"},
}
"""Of each kind the texts of the k-th, by attribute. None of them meets all others: those must be compared with all."""


def punctuation(kind: str, k: int) -> Punctuation:
    """Returns the k-th punctuation of a kind."""
    return Punctuation.of(SCHEMA, KINDS[kind](k))
