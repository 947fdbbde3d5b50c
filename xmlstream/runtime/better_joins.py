"""Joins that would keep less: the rates that a run measures, compared with those by which its joins were chosen.

A run counts the tuples of each source as they reach its first join of many inputs, behind the selects below it. At
these rates the plan that runs is compared with the other safe plans of its region (Li et al. 2006, §5.2). If one keeps
clearly less, a finding says so; nothing changes by itself: `xmlstream.runtime.change.adapted` does it at a start with
`--adapt`.

**Long enough** is `ENOUGH` slices with tuples, whatever time they take: a rate is a mean over slices. **Clearly** is by
`CLEARLY`. Plans for three inputs, one of them fast, differ by less than 2; and less than a half may be the fault of
the model, which takes a join's result to be as fast as its fastest input. A plan that was taken is left for another
only when their relation has changed by the square of that, more than twofold: rates that waver do not move it back and
forth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from xmlstream.dataclasses import dataclass
from xmlstream.optimizer.choose_joins import choice_of, regions_of, with_rates
from xmlstream.optimizer.join_plans import JoinPlan, JoinRegion, inputs_of
from xmlstream.plan.nodes import Node, Scan, names, topological
from xmlstream.punct_ns.errors import UsageError, counted, in_callers_words
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog
from xmlstream.runtime.checkpoint.remote_checkpoint import readable
from xmlstream.runtime.checkpoint.slice_report import Measured, SliceReport
from xmlstream.runtime.likely_mistakes import Finding
from xmlstream.runtime.metrics import read_metrics

ENOUGH = 32
"""The slices with tuples after which rates are known; plans are compared then, and whenever they have doubled."""

CLEARLY = 1.5
"""How many times as much as another plan the one that runs must keep, at least."""

BETTER = "better plan"
"""The kind of finding."""


@dataclass(frozen=True, slots=True)
class BetterPlan:
    """A safe plan for a region of joins that keeps clearly less than the one that runs.

    Attributes:
        at: The name of the topmost join of the region that runs.
        joins: The names of all its joins.
        runs: The plan that runs, with what it keeps at the measured rates.
        better: The better plan.
        rates: The measured rates of the region's inputs, in words.
        declared: The sources of the region that declare a rate, each with the measured one.
        lacking: What keeps its tuples from going over to the better plan: joined tuples, and what they lack.
    """

    at: str
    joins: tuple[str, ...]
    runs: JoinPlan
    better: JoinPlan
    rates: str
    declared: Mapping[str, float]
    lacking: str = ""

    @property
    def words(self) -> str:
        """Both plans, and what they keep."""
        measured = f"at the measured rates ({self.rates} tuples a slice)"
        keeps = f"{self.runs.text} keeps {_number(self.runs.kept)} tuples for each slice that a value stays open"
        return f"{measured} {keeps}, and {self.better.text} would keep {_number(self.better.kept)}"

    def finding(self, rows: int) -> Finding:
        """The finding; `rows` are those that the region's joins keep."""
        cost = f"which reads the {counted(rows, 'row')} that its joins keep, and joins them anew"
        if self.lacking:
            way = f"while rows of {self.lacking} are kept, which that needs, --adapt stays"
            more = "a query that selects these, with a checkpoint of its own, can go over to it"
            return Finding(self.at, BETTER, f"{self.words}; {in_callers_words(way)}: {more}", BETTER)
        if self.declared:
            given = ", ".join(f"{name} '{rate:.3g}'" for name, rate in self.declared.items())
            way = f"it follows the option rate: declare {given}, as measured, and start with --change"
        else:
            way = "a start with --adapt goes over to it"
        return Finding(self.at, BETTER, f"{self.words}; {in_callers_words(way)}, {cost}", BETTER)


Lacking: TypeAlias = Callable[[Node, JoinRegion], str]
"""What joined tuples of a region lack that the plan with the best joins needs of them, in words; empty for nothing."""


def better_plans(root: Node, rates: Mapping[str, float], lacking: Lacking | None = None) -> list[BetterPlan]:
    """For each region of a plan that runs, the safe plan that keeps clearly less at measured rates, if there is one.

    A region whose purge the query sets stays as it is.

    Args:
        root: The plan that runs.
        rates: Tuples a slice, by source.
        lacking: Tells what keeps tuples from going over.
    """
    root = with_rates(root, rates, over_declared=True)
    called, found = names(root), list[BetterPlan]()
    for region in regions_of(root):
        choice = choice_of(region)
        if choice.requested is None and choice.safe and choice.written.kept >= CLEARLY * choice.safe[0].kept:
            rated = ", ".join(f"{leaf.text} {_number(leaf.rate)}" for leaf in inputs_of(region))
            joins = tuple(called[node] for node in region.joins)
            below = (node for node in topological(region.root) if isinstance(node.operator, Scan))
            declared = {called[n]: rates[called[n]] for n in below if n.operator.declares_rate and called[n] in rates}  # type: ignore[union-attr]
            lacks = "" if lacking is None else lacking(root, region)
            found.append(BetterPlan(joins[0], joins, choice.written, choice.safe[0], rated, declared, lacks))
    return found


def too_few(measured: Measured | None) -> str:
    """That rates are not known yet, in words; empty if they are."""
    slices = 0 if measured is None else measured.slices
    known = f"{counted(slices, 'slice')} with tuples {'is' if slices == 1 else 'are'} measured, of {ENOUGH}"
    return "" if slices >= ENOUGH else known


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


class MeasuredJoins:
    """What reaches the joins of a plan that runs, slice by slice.

    Attributes:
        advises: What tells `better_plans` what is lacking, if a plan that keeps less is a finding; else None.
    """

    advises: Lacking | None = None

    def __init__(self, root: Node, before: Measured | None) -> None:
        """Goes on from what an earlier run has `measured`, if that was of the same sources."""
        self._root, called = root, names(root)
        self._at: dict[str, Node] = {}
        for region in regions_of(root):
            for node in region.written:
                scans = (below for below in topological(node) if isinstance(below.operator, Scan))
                self._at = dict.fromkeys((called[scan] for scan in scans), node) | self._at
        is_same = before is not None and before.tuples.keys() == self._at.keys()
        self.measured = before if is_same else Measured() if self._at else None
        self._found: list[BetterPlan] | None = None

    def after(
        self, outs: Callable[[Node], int], kept: Callable[[str], int]
    ) -> tuple[Measured | None, tuple[Finding, ...]]:
        """What is measured after one more slice, which is not committed yet, and the findings from it.

        Args:
            outs: The tuples that a node has emitted in it.
            kept: The rows that an operator keeps after it.
        """
        if self.measured is None:
            return None, ()
        measured = self.measured.after({name: outs(node) for name, node in self._at.items()})
        if self.advises and not too_few(measured):
            is_due = measured is not self.measured and measured.slices.bit_count() == 1
            if is_due or self._found is None:
                self._found = better_plans(self._root, measured.rates, self.advises)
        findings = (one.finding(sum(map(kept, one.joins))) for one in self._found or ())
        return measured.halved, tuple(findings)


def measured_rates(path: str, *, per_second: bool = False) -> dict[str, float]:
    """The average number of tuples that each source and operator of a run emitted in a slice, or in a second, by name.

    Of a source whose tuples reach joins of many inputs these are the tuples that do, if its checkpoint has them. Slices
    without items only wait for input, and do not count.

    Args:
        path: The run's metrics file, or its checkpoint: a directory or a URL.
        per_second: Whether the rates are by time, which only a checkpoint has.

    Raises:
        UsageError: It is neither, or has no slice with tuples; or its slices took no time.
    """
    with readable(path) as (directory, _):
        records = CommitLog(directory.below("commits")).records()
    if per_second:
        return _per_second(path, records)
    reports: Sequence[SliceReport] = [each.report for each in records] or read_metrics(path)
    found = [report for report in reports if report.items_in]
    if not found:
        raise UsageError(f"{path} has no slice with tuples", hint="name a file that --metrics wrote")
    measured = records[-1].measured if records else None
    return _sums(found, len(found)) | (measured.rates if measured is not None else {})


def _per_second(path: str, records: Sequence[Commit]) -> dict[str, float]:
    if not records:
        raise UsageError(f"there is no checkpoint in {path}", hint="name the directory that --checkpoint named")
    elapsed = (records[-1].time - records[0].time).total_seconds()
    if not elapsed:
        hint = "name the checkpoint of a run with several slices; or state them, as in --rates 'bid 500/s'"
        raise UsageError(f"{path} has no slices between which time has passed", hint=hint)
    return _sums((record.report for record in records[1:]), elapsed)


def _sums(reports: Iterable[SliceReport], of: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in (one for report in reports for one in report.operators):
        found[one.name] = found.get(one.name, 0) + one.tuples_out / of
    return found
