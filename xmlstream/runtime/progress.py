"""Progress of a run's sources: which of them has sent a punctuation last, and how long each has been silent since.

The page (`behind`) and the alerts take both from here, so that they count from the same moment and leave out the same
sources:

- A source is silent since its last punctuation; without one, since the run has begun. A punctuation of a rule
  (`punctuate`) counts as its own: the next tuple, or the next moment, closes more. A declared one does not.
- A source that has closed everything is never silent: it has ended, was left out, or has sent a punctuation of
  wildcards.
- A source that rules punctuate is late only while tuples wait and another source has passed it (`Behind`): its next
  tuple closes more, whenever that comes.

How long it may be silent differs: an alert has a time of its own, the page `is_late`. A finding is about one scheme of
a source, for which tuples wait, and counts over the slices of all runs, from the last punctuation of the scheme or the
source's first tuple on (`silent_schemes`). Sources in step (`loop.in_step`) judge no silence: whether closed values
grow as a source is read does not depend on the time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from xmlstream.operators.punctuate import Streams
from xmlstream.plan.nodes import Node, Scan, leaf, names, topological
from xmlstream.punct_ns.schema import Schema
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.silent_schemes import PAUSES, SPAN, Behind

LAGS_AFTER = timedelta(seconds=10)
"""Silence of a source after which it is late, if other sources have closed what it has not."""


class SourceProgress:
    """What the sources of a run have sent last, fed with its commits.

    Args:
        sources: The schemas of the sources, by name.
        rules: For each operator that punctuates a source by a rule, the source.
        begun: When the run began; None if that is not known, for a run in another process.
        many: The sources of many document streams: what one stream sends is not sent by the source.
    """

    def __init__(
        self,
        sources: Mapping[str, Schema],
        rules: Mapping[str, str],
        begun: datetime | None = None,
        many: Collection[str] = (),
    ) -> None:
        self._begun, self._many = begun, many
        self._all = {name: f"<{', '.join('*' * len(schema))}>" for name, schema in sources.items()}
        self._rules = {name: {rule for rule, of in rules.items() if of == name} for name in sources}
        self._sent: dict[str, tuple[int, datetime]] = {}
        self._pauses: dict[str, timedelta] = {}
        self._closed, self._declared = set[str](), set[str]()
        self._behind: dict[str, Behind | None] = {}

    @staticmethod
    def of(root: Node, begun: datetime | None = None) -> SourceProgress:
        """The progress of the sources of a plan, before its first commit."""
        sources = {name: node.schema for node, name in names(root).items() if isinstance(node.operator, Scan)}
        return SourceProgress(sources, closing_rules(root), begun, sources_of_streams(root))

    def add(self, record: Commit) -> None:
        """Adds the record of a commit, also of one from which the run goes on."""
        closing = {one.name for one in record.report.operators if one.punctuations_out}
        # A rule hands on what somebody has declared for its source.
        declared = {each.source for each in record.declared if each.key not in self._declared}
        self._declared.update(each.key for each in record.declared)
        for name, rules in self._rules.items():
            activity = record.last_activity.get(name)
            last = activity.last_sent if activity is not None and name not in self._many else None
            if name not in declared and not closing.isdisjoint(rules):
                last = record.slice, record.time
            if last is not None:
                before = self._sent.get(name, last)
                self._sent[name] = max(before, last)
                self._pauses[name] = max(self._pauses.get(name, timedelta()), last[1] - before[1])
            if name in record.noticed:
                self._behind[name] = record.noticed[name].behind
            if record.end.get(name, {}).get("closed") or self._all[name] in record.state(name).sets.get("added", ()):
                self._closed.add(name)

    def last_sent(self, source: str) -> tuple[int, datetime] | None:
        """The slice, and its recorded time, in which a source sent its last punctuation; None if it has sent none."""
        return self._sent.get(source)

    def open_since(self) -> dict[str, datetime]:
        """For each source that has not closed everything, since when it is silent, as far as that is known."""
        since = {name: sent[1] if (sent := self._sent.get(name)) else self._begun for name in self._all}
        return {name: time for name, time in since.items() if time is not None and name not in self._closed}

    def silent(self, source: str, now: datetime, otherwise: datetime | None = None) -> timedelta:
        """How long a source has been silent; no time if it has closed everything.

        Args:
            source: Its name.
            now: The present time.
            otherwise: Since when, if it has sent nothing and the beginning of the run is not known.
        """
        sent = self._sent.get(source)
        since = sent[1] if sent is not None else self._begun or otherwise
        return timedelta() if since is None or source in self._closed else now - since

    def is_late(self, source: str, now: datetime, otherwise: datetime | None = None, *, lags: bool) -> bool:
        """Whether a source has been `silent` for too long; `lags` if the others have closed what it has not."""
        usual = max(SPAN, PAUSES * self._pauses.get(source, timedelta()))
        return source not in self._closed and self.silent(source, now, otherwise) >= (LAGS_AFTER if lags else usual)

    def is_passed(self, source: str, now: datetime) -> bool:
        """Whether tuples have waited for too long for a source that rules punctuate and that another has passed."""
        behind = self._behind.get(source)
        return source not in self._closed and behind is not None and behind.is_late(now)


def closing_rules(root: Node) -> dict[str, str]:
    """Those operators of `punctuated_sources` that close for the whole source: of many document streams, the last."""
    rules, many = punctuated_sources(root), sources_of_streams(root)
    last = {source: rule for rule, source in rules.items()}
    return {rule: source for rule, source in rules.items() if source not in many or rule == last[source]}


def sources_of_streams(root: Node) -> set[str]:
    """The names of the sources of many document streams."""
    name_of = names(root)
    return {name_of[leaf(node)] for node in topological(root) if isinstance(node.operator, Streams)}


def punctuated_sources(root: Node) -> dict[str, str]:
    """For each operator that punctuates a source by a rule, the name of the source; those nearest to it first."""
    name_of, found = names(root), dict[str, str]()
    for node in topological(root):
        if node.inputs and node.operator.declared_in is not None:
            below = name_of[node.inputs[0]]
            found[name_of[node]] = found.get(below, below)
    return found
