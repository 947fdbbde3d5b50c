"""Functions with other results have other versions; one has the same in every process, with source or without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from itertools import combinations
from pathlib import Path

import pytest

FUNCTIONS = """
import math
import re
from decimal import Decimal
from functools import partial, wraps

RATE, NAMES = 3, frozenset({"a", "b", "c", "d"})

def helper(x):
    return x + 11

def closed(by):
    def call(x):
        return x * by
    return call

def over(call):
    return lambda x: call(x) + 1

def wrapped(call):
    @wraps(call)
    def inner(x):
        return call(x) - 1
    return inner

def plain(x):
    return x

def added(x, y, z=0):
    return x + y + z

def default(y):
    def call(x, y=y):
        return x + y
    return call

def nested(by):
    return lambda x: (lambda y: y * by)(x)

class Scale:
    def __init__(self, by):
        self.by, self.lock = by, {"x": [by]}
    def __call__(self, x):
        return x * self.by
    def method(self, x):
        return x - self.by

class Slotted:
    __slots__ = ("by",)
    def __init__(self, by):
        self.by = by
    def __call__(self, x):
        return x + 7 * self.by

class Recursive:
    def __init__(self, by):
        self.me, self.by = self, by
    def __call__(self, x):
        return self.me.by + x * 5

def distant(x):
    return x + 51

class Base:
    factor = 61
    def apart(self, x):
        return distant(x) * self.factor

class Derived(Base):
    def __call__(self, x):
        return self.apart(x) + 71

def cased(words):
    return lambda x: len(words) * x if str(x) in words else -x

def by_pattern(pattern):
    return lambda x: x if pattern.match(str(x)) else -1

def factorial(by):
    def call(x):
        return by if x < 1 else call(x - 1) * 2
    return call

CALLS = {
    "plain": plain, "closed 2": closed(2), "closed 3": closed(3), "over 2": over(closed(2)), "over 3": over(closed(3)),
    "over floor": over(math.floor), "over factorial": over(math.factorial), "wrapped": wrapped(plain),
    "wrapped 2": wrapped(closed(2)), "partial 1": partial(added, 1), "partial 2": partial(added, 2),
    "partial z": partial(added, 1, z=9), "partial of partial": partial(partial(added, 5), z=9),
    "default 1": default(31), "default 2": default(32), "nested 2": nested(21), "nested 3": nested(22),
    "scale 2": Scale(201), "scale 3": Scale(301), "method 2": Scale(2).method, "method 3": Scale(3).method,
    "slotted 2": Slotted(2), "slotted 3": Slotted(3), "recursive 2": Recursive(2), "recursive 3": Recursive(3),
    "floor": lambda x: math.floor(x + 0.5), "ceil": lambda x: math.ceil(x + 0.4 + 0.2),
    "rate": lambda x: x * 100 + RATE,
    "helper": lambda x: helper(x), "set 1": cased({"1", "2", "3"}), "set 2": cased({"1", "2", "4"}),
    "set 3": cased({"1", "2", "3", "5"}), "decimal": closed(Decimal(7)), "decimal 8": closed(Decimal(8)),
    "pattern": by_pattern(re.compile("1")), "pattern 2": by_pattern(re.compile("2")),
    "recursion": factorial(41), "recursion 2": factorial(42), "names": lambda x: x + 1000 * len(NAMES),
    "derived": Derived(),
    "inner set": lambda x: x in {1, 2, "a", "b"}, "inner set 2": lambda x: x in {1, 3, "a", "b"},
}
"""
CHANGED = {"RATE, NAMES = 3": "RATE, NAMES = 4", "x + 11": "x + 12", "math.floor(x": "math.ceil(x", "+ 7 *": "+ 8 *"}
CHANGED |= {"x + 51": "x + 52", "factor = 61": "factor = 62", "(x) * self.factor": "(x) + self.factor"}
"""Texts of the module that are changed, each beside another."""

PROGRAM = """
import importlib.util, json, sys
from xmlstream.operators.expressions.operations.function_version import function_version
if sys.argv[2] == "source":
    spec = importlib.util.spec_from_file_location("conversions", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    sys.modules["conversions"] = module
    spec.loader.exec_module(module)
    calls = module.CALLS
else:
    space = {"__name__": "conversions"}
    exec(open(sys.argv[1]).read(), space)
    calls = space["CALLS"]
print(json.dumps({name: [function_version(call), [str(call(x)) for x in range(6)]] for name, call in calls.items()}))
"""


def versions(path: Path, seed: int, how: str, text: str = FUNCTIONS) -> dict[str, tuple[str, list[str]]]:
    path.write_text(textwrap.dedent(text))
    # Without byte code: Python takes that of a text of the same length, written in the same second.
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", PROGRAM, str(path), how]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return {name: (version, results) for name, (version, results) in json.loads(done.stdout).items()}


@pytest.mark.parametrize("how", ["source", "no source"])
def test_a_version_is_that_of_the_results(tmp_path: Path, how: str) -> None:
    first = versions(tmp_path / "conversions.py", 1, how)
    for seed in (2, 3):
        assert versions(tmp_path / "conversions.py", seed, how) == first
    others = [versions(tmp_path / "conversions.py", 1, how, FUNCTIONS.replace(*pair)) for pair in CHANGED.items()]
    found = [(name, *one) for each in (first, *others) for name, one in each.items()]
    for (name, version, results), (other, its_version, its_results) in combinations(found, 2):
        assert version != its_version or results == its_results, (name, other)
    # What does not call what was changed keeps its version.
    for each in others:
        assert sum(each[name] != first[name] for name in first) in (1, 2)
