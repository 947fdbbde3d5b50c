"""What a test claims of a query: its result, what it closes, and that the cuts of its streams do not matter."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from xmlstream.builder.query import Query
from xmlstream.builder.run_options import takes
from xmlstream.dataclasses import dataclass
from xmlstream.plan.nodes import Static, topological
from xmlstream.punct_ns.errors import UsageError, XmlStreamError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.testing.case import CASE_OPTIONS, Case, CaseOptions, Prepared, SliceResult, prepared
from xmlstream.testing.items import Given, Stream, slices_of
from xmlstream.testing.notation import Item, Tuple, parted, shown, tuple_text

_CLOSE = 1e-9
"""The relative difference up to which two DOUBLE values are equal: sums depend on the order of their terms."""

_SHOWN = 5


@takes(CASE_OPTIONS)
def assert_result(
    query: Query | str | Path,
    streams: Mapping[str, Stream],
    expected: Stream,
    *,
    end: bool = False,
    in_order: bool = False,
    **options: Unpack[CaseOptions],
) -> Case:
    """Asserts what a query makes of streams; returns the case, which can go on.

    Args:
        query: A query, as for `case`.
        streams: What comes, by the names of tables: slices of streams, and the rows of static tables.
        expected: What goes out: of one slice, the tuples of all slices together, in any order; of several, those of
            each slice. If it has punctuations, the result must close exactly what they close, up to each slice.
        end: The last slice closes all streams, as the end of the input does in a run.
        in_order: The tuples must come in this order.

    Raises:
        AssertionError: The result differs; the message says what is missing, what was not expected, and what waits.
        XmlStreamError: As `case` and `Case.slice` raise.
    """
    run = _case(query, streams, options)
    found = run.run(_streams(run, streams), end=end)
    wanted = slices_of(expected, run.schema, "the expected result")
    if len(wanted) > 1 and len(wanted) != len(found):
        what = f"{len(wanted)} slices are expected of {len(found)}"
        raise UsageError(what, hint="write a bar for each slice, or none for the result of all")
    describes = any(isinstance(item, Punctuation) for items in wanted for item in items)
    closed = PunctuationSet(run.schema)
    wholes = [[each] for each in found] if len(wanted) > 1 else [found]
    lines: list[str] = []
    for items, those in zip(wanted, wholes, strict=True):
        tuples, punctuations = parted(items)
        closed.add_all(punctuations)
        came = [each for slice_ in those for each in slice_.tuples]
        differences = _differences(tuples, came, run.schema, in_order=in_order)
        if describes:
            differences += _closed_otherwise(closed, those[-1].closed)
        if differences and len(wanted) > 1:
            lines.append(f"  in slice {those[0].number + 1}: {str(those[0]) or 'nothing'}")
        lines += differences
    if lines:
        waits = run.waiting()[:_SHOWN]
        hint = ["  Hint: end=True closes the streams, as the end of the input does"] if waits and not end else []
        raise AssertionError("\n".join(["the result is another one", *lines, *(f"  {w}" for w in waits), *hint]))
    return run


def assert_closed(result: Case | SliceResult, punctuation: Given) -> None:
    """Asserts that a result has closed all tuples that a punctuation matches, by one punctuation or several together.

    Args:
        result: A case, or one of its slices: what went out up to that slice.
        punctuation: A punctuation of the result, as `punctuation` makes it or as text: `<17, *>`.

    Raises:
        AssertionError: Some of these tuples may still come; the message says which are closed.
        UsageError: It is not a punctuation of the result.
    """
    ((wanted,),) = slices_of([punctuation], result.schema, "the punctuation")
    if not isinstance(wanted, Punctuation):
        raise UsageError(f"{punctuation!r} is a tuple", hint="write a punctuation: <…>")
    if not result.closed.covers(wanted):
        lines = [f"{wanted} is not closed", f"  closed: {_shown_set(result.closed)}"]
        raise AssertionError("\n".join([*lines, *(f"  {w}" for w in _waiting(result))]))


@takes(CASE_OPTIONS)
def assert_cut_independent(
    query: Query | str | Path,
    streams: Mapping[str, Stream],
    *,
    cuts: int = 10,
    seed: int = 0,
    restart: bool = True,
    end: bool = False,
    **options: Unpack[CaseOptions],
) -> None:
    """Asserts that a query gives the same tuples, and closes the same, however its streams are cut into slices.

    The items of each stream keep their order; the streams are cut independently of each other, and one of the cuts has
    a slice for each item. In each run no tuple may come that an earlier punctuation of the result matches. The clock
    stands still, since a query by the clock depends on when its slices come.

    Args:
        query: A query, as for `case`.
        streams: What comes, by the names of tables; the slices that they have are the first cut.
        cuts: How many random cuts.
        seed: Of the random numbers: the same cuts in each run of the test.
        restart: Each run is ended behind each slice, and goes on from its files.
        end: The last slice closes all streams.

    Raises:
        AssertionError: A cut gives another result; the message has a smallest such cut, in the notation.
        XmlStreamError: As `case` and `Case.slice` raise.
    """
    plan, static = _prepared(query, streams, options)
    given = Case(plan, static)
    parts = given.parted(_streams(given, streams))
    whole = {name: [item for part in parts for item in part.get(name, ())] for name in given.streams}
    schemas = {name: given.schema_of(name) for name in given.streams}
    cutter = _Cutter(plan, static, whole, end=end, restart=restart)
    try:
        wanted = cutter.outcome(cutter.as_given(parts))
    except _FailedError as failed:
        raise (failed.error if failed.error is not None else AssertionError(failed.what)) from None
    random_ = random.Random(seed)
    for number in range(cuts):
        cut = cutter.drawn(random_, finest=number == 0)
        if (what := cutter.failure(cut, wanted)) is not None:
            cut, what = cutter.smallest(cut, what, wanted)
            lines = [f"  {name}: {_cut_text(whole[name], cut[name], schemas[name])}" for name in whole]
            again = (
                ", restarted behind each slice"
                if restart and cutter.failure(cut, wanted, restart=False) is None
                else ""
            )
            raise AssertionError("\n".join([f"another result, cut so{again} (seed {seed}):", *lines, what]))


Cut = Mapping[str, Sequence[int]]
"""Where streams are cut: for each, how many of its items lie before the end of each slice but the last."""


class _FailedError(Exception):
    """A run that ended, or broke its own punctuations."""

    def __init__(self, what: str, error: XmlStreamError | None = None) -> None:
        super().__init__(what)
        self.what, self.error = what, error


@dataclass(frozen=True, slots=True)
class _Outcome:
    tuples: list[Tuple]
    closed: PunctuationSet


class _Cutter:
    """Runs a plan over streams cut in different ways."""

    def __init__(
        self,
        plan: Prepared,
        static: Mapping[str, Stream],
        whole: Mapping[str, Sequence[Item]],
        *,
        end: bool,
        restart: bool,
    ) -> None:
        self._plan, self._static, self._whole, self._end, self._restart = plan, static, whole, end, restart

    def as_given(self, parts: Sequence[Mapping[str, Sequence[Item]]]) -> Cut:
        """The cut that a test has written."""
        lengths = {name: [len(part.get(name, ())) for part in parts] for name in self._whole}
        return {name: [sum(each[: i + 1]) for i in range(len(each) - 1)] for name, each in lengths.items()}

    def drawn(self, random_: random.Random, *, finest: bool) -> Cut:
        """A random cut; the finest one has a slice for each item of the longest stream."""
        most = max(map(len, self._whole.values()))
        if finest:
            return {name: [min(i, len(items)) for i in range(1, most)] for name, items in self._whole.items()}
        bars = random_.randint(0, min(most, 7))
        return {name: sorted(random_.choices(range(len(items) + 1), k=bars)) for name, items in self._whole.items()}

    def outcome(self, cut: Cut, *, restart: bool | None = None) -> _Outcome:
        """What the query has made of the streams at their end."""
        with Case(self._plan, self._static) as run:
            last = max(map(len, cut.values()))
            for i in range(last + 1):
                slice_ = {
                    name: items[_begin(cut[name], i) : _stop(cut[name], i)] for name, items in self._whole.items()
                }
                before = run.closed
                try:
                    found = run.run(
                        {name: [list(items)] for name, items in slice_.items()}, end=self._end and i == last
                    )
                except XmlStreamError as error:
                    raise _FailedError(f"  in slice {i + 1}: {error}", error) from None
                if (late := next((t for t in found[0].tuples if before.matches(t)), None)) is not None:  # type: ignore[arg-type]
                    what = f"  in slice {i + 1} comes {tuple_text(late, run.schema)}, which was closed before"
                    raise _FailedError(what)
                if (self._restart if restart is None else restart) and i < last:
                    run.restart()
            return _Outcome(run.tuples, run.closed)

    def failure(self, cut: Cut, wanted: _Outcome, *, restart: bool | None = None) -> str | None:
        """How the result of a cut differs; None if it does not."""
        try:
            found = self.outcome(cut, restart=restart)
        except _FailedError as failed:
            return failed.what
        schema = wanted.closed.schema
        return (
            "\n".join(
                [*_differences(wanted.tuples, found.tuples, schema), *_closed_otherwise(wanted.closed, found.closed)]
            )
            or None
        )

    def smallest(self, cut: Cut, what: str, wanted: _Outcome) -> tuple[Cut, str]:
        """A cut that still fails, but not with any one bar less, and how its result differs."""
        i = 0
        while i < max(map(len, cut.values())):
            fewer = {name: [*bars[:i], *bars[i + 1 :]] for name, bars in cut.items()}
            if (found := self.failure(fewer, wanted)) is not None:
                cut, what = fewer, found
            else:
                i += 1
        return cut, what


def _begin(bars: Sequence[int], i: int) -> int:
    return bars[i - 1] if i else 0


def _stop(bars: Sequence[int], i: int) -> int | None:
    return bars[i] if i < len(bars) else None


def _prepared(
    query: Query | str | Path, streams: Mapping[str, Stream], options: CaseOptions
) -> tuple[Prepared, dict[str, Stream]]:
    """The plan, and those of the streams that are static tables."""
    plan = prepared(query, **options)
    tables = {node.operator.name.lower() for node in topological(plan.root) if isinstance(node.operator, Static)}
    return plan, {name: stream for name, stream in streams.items() if name.lower() in tables}


def _case(query: Query | str | Path, streams: Mapping[str, Stream], options: CaseOptions) -> Case:
    return Case(*_prepared(query, streams, options))


def _streams(case: Case, streams: Mapping[str, Stream]) -> dict[str, Stream]:
    return {name: stream for name, stream in streams.items() if name.lower() not in case.static}


def _differences(
    wanted: Sequence[Tuple], found: Sequence[Tuple], schema: Schema, *, in_order: bool = False
) -> list[str]:
    """How two bags of tuples differ, as lines."""
    if in_order:
        if len(wanted) == len(found) and all(map(_is_same, wanted, found)):
            return []
        return [f"  {what}: {_texts(each, schema)}" for what, each in (("expected", wanted), ("came", found))]
    exact: list[Counter[Any]] = [Counter(map(_frozen, each)) for each in (wanted, found)]
    missing, more = [list((one - other).elements()) for one, other in (exact, exact[::-1])]
    for each in list(missing):
        alike = next((other for other in more if _is_same(each, other)), None)
        if alike is not None:
            missing.remove(each)
            more.remove(alike)
    return [
        f"  {what}: {_texts(each, schema)}" for what, each in (("missing", missing), ("not expected", more)) if each
    ]


def _closed_otherwise(wanted: PunctuationSet, found: PunctuationSet) -> list[str]:
    """How two sets of punctuations differ in what they match, as lines."""
    missing = [str(p) for p in wanted if not found.covers(p)]
    more = [str(p) for p in found if not wanted.covers(p)]
    lines = [("not closed", missing), ("closed, and not expected", more)]
    return [f"  {what}: {' '.join(texts[:_SHOWN])}" for what, texts in lines if texts]


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal, DOUBLE values nearly."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=_CLOSE)
    return bool(one == other)


def _frozen(value: Any) -> Any:
    """A value that can be counted: lists and structures as tuples."""
    match value:
        case list() | tuple():
            return tuple(map(_frozen, value))
        case dict():
            return tuple((key, _frozen(each)) for key, each in value.items())
    return value


def _texts(tuples: Sequence[Tuple], schema: Schema) -> str:
    more = f" and {len(tuples) - _SHOWN:,} more" if len(tuples) > _SHOWN else ""
    return " ".join(tuple_text(each, schema) for each in tuples[:_SHOWN]) + more or "nothing"


def _shown_set(closed: PunctuationSet) -> str:
    return " ".join(map(str, list(closed)[:_SHOWN])) or "nothing"


def _waiting(result: Case | SliceResult) -> list[str]:
    return result.waiting()[:_SHOWN] if isinstance(result, Case) else []


def _cut_text(items: Sequence[Item], bars: Sequence[int], schema: Schema) -> str:
    slices = [items[_begin(bars, i) : _stop(bars, i)] for i in range(len(bars) + 1)]
    texts = [" ".join(shown([item], schema) for item in slice_) for slice_ in slices]
    return " | ".join(texts)
