"""A plan that adapts: at a start, the joins of a query are chosen by the rates that its checkpoint has.

A query record has the rates by which the joins of its query were chosen, once a run has measured them. The query is
planned with these from then on, so that its plan is the same in every run. With `--adapt` a start compares the plan
that runs with others at the rates that were measured up to now (`xmlstream.runtime.better_joins`), and plans with these
if another one keeps clearly less. What is kept is moved between both plans as by `--change`, in one step before the
first slice: a process that is killed leaves the one plan or the other, with its rates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xmlstream.operators.storage.store import Folder, unseal
from xmlstream.optimizer.choose_joins import choose_joins, regions_of, with_rates
from xmlstream.optimizer.join_plans import JoinRegion
from xmlstream.plan.nodes import Node, Scan, names, topological
from xmlstream.punct_ns.errors import StateError
from xmlstream.runtime.better_joins import better_plans, too_few
from xmlstream.runtime.change.changed_checkpoint import planned_change, way_on
from xmlstream.runtime.change.plan_comparison import Comparison
from xmlstream.runtime.checkpoint.checkpoint import COUNTS, FORMER
from xmlstream.runtime.checkpoint.commit_log import CommitLog
from xmlstream.runtime.checkpoint.remote_checkpoint import readable
from xmlstream.runtime.checkpoint.same_query import QUERY, OtherQuery, QueryRecord, SameQuery, canonical_path
from xmlstream.runtime.settings import Settings


def planned_by_rates(
    root: Node, settings: Settings, planned: Callable[[Node], Node], say: Callable[[str], None]
) -> Node:
    """The plan that runs: its joins are chosen by the rates in the checkpoint, if that has rates.

    Args:
        root: The plan as written.
        settings: The settings of the run; with `adapt` by what was measured since, if that is better.
        planned: Makes the plan that runs of one as written.
        say: Gets a line about what `adapt` has changed, or why it has changed nothing.

    Raises:
        StateError: With `adapt`, the checkpoint belongs to another query.
    """
    plan = planned(root)
    if settings.as_written or settings.checkpoint is None:
        return plan
    if not (regions := regions_of(plan)):
        return _stays(plan, settings, say, "it joins no more than two streams at a time")
    sources = {node for region in regions for node in topological(region.root) if isinstance(node.operator, Scan)}
    declared = sorted(node.operator.name for node in sources if node.operator.declares_rate)  # type: ignore[union-attr]
    if declared:
        return _stays(plan, settings, say, f"it follows the declared rate of {', '.join(declared)}")
    if not settings.has_begun:
        return _stays(plan, settings, say, "nothing is measured yet")
    with readable(settings.checkpoint, whole=settings.adapt, changing=True) as (directory, _):
        try:
            record = _that_counts(directory, undo=settings.undo)
        except (OSError, StateError):
            return plan  # the run says what is wrong
        rates = _of_sources(record, record.rates, plan)
        plan = planned(with_rates(root, rates)) if rates else plan
        if not settings.adapt or directory.size(COUNTS) is not None:
            return plan
        return _Adapting(directory, record, settings, say).plan(plan, lambda rates: planned(with_rates(root, rates)))


def lacking(root: Node, region: JoinRegion) -> str:
    """The joined tuples of a region of a plan that lack what the plan with the best joins needs of them, and what."""
    for of in Comparison(root, choose_joins(root)).rejoined.values():
        for join, side in of.old.blocks if of.old.root is region.root else ():
            if lacks := of.lacking(join, side):
                return f"{of.old.written(join.inputs[side])} without {', '.join(lacks)}"
    return ""


class _Adapting:
    """Chooses the plan by what was measured."""

    def __init__(self, directory: Folder, record: QueryRecord, settings: Settings, say: Callable[[str], None]) -> None:
        self._directory, self._record, self._settings, self._say = directory, record, settings, say

    def plan(self, runs: Node, planned: Callable[[Mapping[str, float]], Node]) -> Node:
        """The plan that is better than the one that runs; this one if none is, or what is kept cannot be moved."""
        self._require_same(runs)
        records = CommitLog(self._directory.below("commits")).records()
        measured = records[-1].measured if records else None
        if measured is None or (why := too_few(measured)):
            return self._stays(runs, why if measured else "nothing is measured yet")
        rates = _of_sources(self._record, measured.rates, runs)
        if not (better := better_plans(runs, rates)):
            return self._stays(runs, "at the measured rates no other keeps clearly less")
        new = planned(rates)
        change = planned_change(
            self._directory, new, self._settings.targets, self._record.timeZone, moved=self._settings.moved
        )
        if change.is_same:
            return self._stays(runs, "at the measured rates it is chosen again")
        if refused := change.refusals:
            return self._stays(runs, f"what is kept cannot be moved: {refused[0]}")
        for one in better:
            self._say(f"adapting {one.at}: {one.words}")
        return new

    def _stays(self, plan: Node, why: str) -> Node:
        return _stays(plan, self._settings, self._say, why)

    def _require_same(self, plan: Node) -> None:
        """Refuses another query before anything is taken over from a run that goes on."""
        settings, zone = self._settings, self._record.timeZone
        if settings.change:
            return
        try:
            SameQuery(self._directory, plan, zone, settings.targets).require_found(self._record, moved=settings.moved)
        except OtherQuery as other:
            raise StateError(other.what, hint=way_on(self._directory, plan, settings.targets, zone)) from None


def _stays(plan: Node, settings: Settings, say: Callable[[str], None], why: str) -> Node:
    if settings.adapt:
        say(f"adapting nothing, the plan stays: {why}")
    return plan


def _that_counts(directory: Folder, *, undo: bool) -> QueryRecord:
    """The record of the query that a start goes on with, also if a change of it was killed or is to be undone."""
    if directory.size(COUNTS) is not None:
        ((new, old),) = unseal(directory, COUNTS).items()
        which = old if undo and old == FORMER else new
        directory = directory.below(which) if directory.has(f"{which}/{QUERY}") else directory
    elif undo and directory.has(f"{FORMER}/{QUERY}"):
        directory = directory.below(FORMER)
    return QueryRecord.of(directory)


def _of_sources(record: QueryRecord, rates: Mapping[str, float], plan: Node) -> dict[str, float]:
    """The rates of a record's sources by the names in a plan; one that was renamed is known by its path."""
    paths = [part.path for part in record.plan if part.name in rates]
    of_path = {
        part.path: rates[part.name] for part in record.plan if part.name in rates and paths.count(part.path) == 1
    }
    found: dict[str, float] = {}
    for node, name in names(plan).items():
        if isinstance(node.operator, Scan):
            rate = rates.get(name, of_path.get(canonical_path(node.operator.options.path)))
            found |= {} if rate is None else {name: rate}
    return found
