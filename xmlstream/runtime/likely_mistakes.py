"""Findings in the sources of a query: likely mistakes in data and declarations that are no errors, each as a sentence.

If a tag is misspelt, or all punctuations restrict undeclared elements, a query runs and its result is right, but it
answers less than its author meant, or nothing. Findings appear in the metrics, in the summary of a run and on the
terminal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
from types import MappingProxyType
from typing import Any

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.order import ByClock
from xmlstream.operators.storage.store import Place, store_at
from xmlstream.plan.nodes import Node, Scan, names
from xmlstream.punct_ns.errors import InputError, counted, few, in_units
from xmlstream.punct_ns.scheme import Kind, Scheme, Term
from xmlstream.runtime.checkpoint.slice_report import Measured
from xmlstream.runtime.silent_schemes import Behind, Patience, Silence, SourceRecord
from xmlstream.sources.xml.options.leaf_paths import likely_leaf, local_tag
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.findings_collector import Findings
from xmlstream.sources.xml.splits.slice_planner import WaitingNote, waiting_note

OVERDUE = "overdue"
"""The kind of kept tuples that were purged by age (`xmlstream.operators.state.ages`)."""

TOO_FEW = "too few"
"""The kind of groups that were closed before all their tuples had come (`xmlstream.operators.punctuators.count`)."""

SET_ASIDE = ("malformed", "ungrammatical", "bad documents", OVERDUE, TOO_FEW)
"""The kinds that count what is final: a later run does not repeat them."""

MISREAD = ("no items", "misread", "other namespace")
"""The kinds that say that a declaration does not fit its source."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        source: The name of the source or operator.
        kind: The kind of finding, for programs.
        what: A sentence, for people.
        about: The subject of a finding whose sentence contains changing numbers, so that it is printed only once, and
            again at the end; empty if the sentence does not change.
    """

    source: str
    kind: str
    what: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.source}: {self.what}"

    @property
    def subject(self) -> tuple[str, str, str]:
        """Identifies the finding while the numbers in its sentence change."""
        return self.source, self.kind, self.about or self.what

    def json(self) -> dict[str, str]:
        """The finding as a JSON object."""
        return {"source": self.source, "kind": self.kind, "what": self.what}


_SET_BACK = timedelta(seconds=2)
"""How far a clock may be behind without a finding: time servers correct clocks by less."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """The observations of a query up to a slice, from which its findings follow.

    Attributes:
        sources: The options of the sources, by name.
        diverts: For each operator that sets tuples aside, whether these go to the dead letters.
        logs: Directory of the sources' document logs, one folder for each source.
        found: The counts by source and operator.
        silences: For each source and each scheme that it promises, the time since its last punctuation.
        behind: For each source that rules punctuate, the time since another source has passed it.
        patience: How long that time may be.
        kept: The number of tuples that the operators above each source keep.
        set_back: How far the machine's clock is behind what it has shown before.
        clocked: The operators that punctuate by the clock.
        measured: How many tuples reach joins of many inputs; None if there is no such join.
        better: What was found in that (`xmlstream.runtime.better_joins`).
    """

    sources: Mapping[str, SourceOptions]
    diverts: Mapping[str, bool]
    logs: Place
    found: Mapping[str, Findings] = field(default_factory=dict)
    silences: Mapping[str, Mapping[str, Silence]] = field(default_factory=dict)
    behind: Mapping[str, Behind] = field(default_factory=dict)
    patience: Patience = field(default_factory=Patience)
    kept: Mapping[str, int] = field(default_factory=dict)
    set_back: timedelta = timedelta()
    clocked: tuple[str, ...] = ()
    measured: Measured | None = None
    better: tuple[Finding, ...] = ()

    @staticmethod
    def of(root: Node, logs: Place, record: Mapping[str, SourceRecord], patience: Patience | None = None) -> Noticed:
        """The observations that a commit recorded for this plan."""
        name_of = names(root)
        sources = {name: node.operator.options for node, name in name_of.items() if isinstance(node.operator, Scan)}
        diverts = {
            name: node.operator.ungrammatical == "divert"
            for node, name in name_of.items()
            if isinstance(node.operator, Punctuate)
        }
        silences = {name: record[name].silences for name in sources if name in record}
        behind = {name: late for name in sources if name in record and (late := record[name].behind)}
        clocked = tuple(
            name
            for node, name in name_of.items()
            if isinstance(node.operator, Punctuate) and isinstance(node.operator.rule, ByClock)
        )
        return Noticed(sources, diverts, logs, record, silences, behind, patience or Patience(), clocked=clocked)

    def record(self) -> dict[str, SourceRecord]:
        """The record for a commit, which `of` reads."""
        behind = {name: late for name, late in self.behind.items() if late != Behind(late.until)}
        more = {name: {"silences": self.silences.get(name, {}), "behind": behind.get(name)} for name in self.found}
        return {name: SourceRecord.extending(one, **more[name]) for name, one in self.found.items()}

    def plus(
        self,
        more: Mapping[str, Findings],
        now: datetime,
        kept: Mapping[str, int],
        rules: Mapping[str, tuple[bool, str]] = MappingProxyType({}),
    ) -> Noticed:
        """Adds a slice.

        Args:
            more: Its counts, by source and operator.
            now: Its recorded time.
            kept: The number of tuples kept above each source after it.
            rules: For each source that rules punctuate, whether these have sent a punctuation in it, and who has passed
                the source: `in1 has`.
        """
        new = {name: self.found.get(name, Findings()) + one for name, one in more.items()}
        silences = {
            name: {
                str(scheme): self.silences.get(name, {})
                .get(str(scheme), Silence(now))
                .after(
                    more[name].tuples,
                    _keeps(scheme, more[name], options),
                    now,
                    self.patience,
                    kept=kept.get(name, 0),
                )
                for scheme in options.schemes
            }
            for name, options in self.sources.items()
            if name in more
        }
        behind = {
            name: self.behind.get(name, Behind(now)).after(*each, now, self.patience, kept=kept.get(name, 0))
            for name, each in rules.items()
        }
        return replace(
            self,
            found={**self.found, **new},
            silences={**self.silences, **silences},
            behind={**self.behind, **behind},
            kept=kept,
        )

    @property
    def overdue(self) -> Collection[str]:
        """The operators whose tuples were purged by age."""
        return {name for name, one in self.found.items() if one.aside.get(OVERDUE)}

    @property
    def exact(self) -> bool:
        """Whether no tuple was purged by age."""
        return not self.overdue

    def require_items(self) -> None:
        """Raises InputError for sources that had elements to their ends, and no item."""
        if all(self.found.get(name, Findings()).saw_no_item for name in self.sources):
            for one in self.findings():
                if one.kind in MISREAD:
                    raise InputError(f"no item in {one}", hint="name the tuples' elements in the option rowTag")

    def findings(self) -> list[Finding]:
        """All findings up to now."""
        findings: list[Finding] = []
        for name, options in self.sources.items():
            silent = _silent(self.silences.get(name, {}), self.kept.get(name, 0))
            reported = {one.about for one in silent}
            found = of_source(
                name, self.found.get(name, Findings()), options, waiting_note(store_at(self.logs).below(name))
            )
            reported |= {one.about for one in found if self.patience.follow}
            findings += (one for one in found if one.kind != "broken promise" or one.about not in reported)
            findings += (Finding(name, one.kind, one.what, one.about) for one in silent)
            if late := self.behind.get(name):
                findings += (Finding(name, *each) for each in _behind(late))
        for name, diverts in self.diverts.items():
            findings += (
                Finding(name, *each) for each in _set_aside(self.found.get(name, Findings()), diverts, diverts)
            )
        for name, one in self.found.items():
            if count := one.aside.get(TOO_FEW):
                groups = f"{counted(count, 'group')} {'was' if count == 1 else 'were'} closed too early"
                more = "; …" if count > len(one.short) else ""
                findings.append(Finding(name, TOO_FEW, f"{groups}: {'; '.join(sorted(one.short))}{more}", TOO_FEW))
        if self.set_back >= _SET_BACK:
            behind = (
                f"the machine's clock was set back: it is {in_units(self.set_back)} behind what it has shown before"
            )
            what = f"{behind}. Till it has come so far again it closes nothing, and tuples of its present time are late"
            findings += (Finding(name, "set back", what, "set back") for name in self.clocked)
        for name in sorted(self.overdue):
            count = self.found[name].aside[OVERDUE]
            were = f"{counted(count, 'kept tuple')} {'was' if count == 1 else 'were'} overdue"
            what = f"{were}, and diverted to the dead letters; from then on the result is not exact"
            findings.append(Finding(name, OVERDUE, what))
        return [*findings, *self.better]


def of_source(name: str, found: Findings, options: SourceOptions, waiting: WaitingNote | None = None) -> list[Finding]:
    """The findings of a source, except silences.

    Args:
        name: The name of the source.
        found: The counts of its items up to now.
        options: The options of the source.
        waiting: The state of its documents, if it has several.
    """
    findings = [*_documents(options, waiting), *_items(found, options), *_punctuations(found, options)]
    findings += _set_aside(found, options.mode == "PERMISSIVE", options.ungrammatical == "divert")
    return [Finding(name, *each) for each in findings]


def _silent(silences: Mapping[str, Silence], kept: int) -> list[Finding]:
    """The findings about a source's silences."""
    findings = []
    for scheme, silence in silences.items():
        if silence.reported and kept:
            what = f"the scheme '{scheme}' was promised, and {silence.words(kept)}"
            findings.append(Finding("", "silent", what, scheme))
        elif silence.ended:
            what = f"punctuations of the scheme '{scheme}' come again, after {counted(silence.ended, 'slice')} without"
            findings.append(Finding("", "sends again", what, scheme))
    return findings


_Sentences = Iterator[tuple[str, str] | tuple[str, str, str]]


def _behind(late: Behind) -> _Sentences:
    if late.reported:
        yield "silent", late.words, "behind"
    elif late.ended:
        yield (
            "sends again",
            f"it closes more again, after {counted(late.ended, 'slice')} in which it was behind",
            "behind",
        )


def _documents(options: SourceOptions, waiting: WaitingNote | None) -> _Sentences:
    if waiting is None:
        return
    if not waiting.documents:
        of_sparks = options.format == "stream"
        yield "no document", "no batch has come yet" if of_sparks else f"there is no document at {options.where} yet"
    if waiting.unfinished is not None and waiting.behind:
        wait = f"{counted(waiting.behind, 'document')} behind it {'waits' if waiting.behind == 1 else 'wait'}"
        hint = (
            "documents that grow side by side are read side by side with the option documents 'files'; "
            "unfinished 'skip' goes on without its rest, which is lost if it comes, and 'fail' stops the query"
        )
        yield "unfinished", f"{waiting.unfinished} is unfinished, and {wait}; {hint}"
    if waiting.passed:
        yield "passed over", f"passed over, since unfinished: {_list(waiting.passed)}"
    if waiting.none:
        yield "no documents", f"passed over, since empty or without a usable name: {_list(waiting.none)}"


def _items(found: Findings, options: SourceOptions) -> _Sentences:
    tag = options.row_tag
    if found.foreign:
        kinds = f"tuples are {tag}, punctuations are in the namespace {options.punctuation_namespace}"
        there = _list(name if name.startswith("{") else f"{{}}{name}" for name in found.foreign)
        yield "other namespace", f"elements {there} are neither tuples nor punctuations; {kinds}", tag
    elif found.is_nothing:
        are = "is" if len(found.elements) == 1 else "are"
        there = f"; there {are} {_list(found.elements)}" if found.elements else ""
        near = likely_leaf(local_tag(tag), found.elements)
        yield "no items", f"no element is a {tag}{there}{f'; rowTag {near} is meant?' if near else ''}", tag
    missing = found.missing
    for name in (a.name for a in options.schema if a.name in missing):
        path = options.paths[options.schema.index(name)]
        there = f"; leaves that no attribute reads are {_list(found.leaves)}" if found.leaves else ""
        what = f"no tuple has a value of {name}, at the path {path}{there}"
        if (leaf := likely_leaf(str(path), found.leaves)) is None:
            yield "no value", what
        else:
            yield "misread", f"{what}; path.{name} '{leaf}' would read one", name

    for less, more, element in sorted(each.split("\t") for each in found.uneven):
        what = f"entries of {less} and {more} do not belong together in all rows: some {element} has more of {more}"
        yield "uneven", f"{what}; {element} as an ARRAY<STRUCT<…>> keeps each with its own", more


def _punctuations(found: Findings, options: SourceOptions) -> _Sentences:
    for leaf, count in sorted(found.void.items()):
        closes = "closes nothing, since it restricts" if count == 1 else "close nothing, since they restrict"
        yield "void", f"{counted(count, 'punctuation')} {closes} {leaf}, which is not an attribute"
    if found.stray and not found.is_nothing:
        there = _list(map(local_tag, found.stray))
        yield "stray", f"punctuations are named {there}, but tuples {options.row_tag}: these punctuations close nothing"
    for attribute, count in sorted(found.bounds.items()):
        if not {str(Term(attribute, kind)) for kind in ("each", "prefix")} & found.said.keys():
            holds = "holds" if count == 1 else "hold"
            what = f"{counted(count, 'punctuation')} {holds} until {attribute} is closed up to a bound"
            yield "endless", f"{what}, and no punctuation closes {attribute} by itself: none of them ends", attribute
    for attribute, count in sorted(found.ended.items()):
        what = f"{counted(count, 'punctuation')} had ended before {'it' if count == 1 else 'they'} came"
        life = "later items of the same keys belong to a new life"
        yield "ended", f"{what}: {attribute} was closed up to the bound; {life}"
    if not found.tuples:
        return
    given = dict(options.given).get("punctuationNamespace")
    if given is not None and not (found.said or found.void or found.stray or found.foreign):
        yield "no punctuation", f"no element is in the namespace {given}, which was given for punctuations"
    for scheme in options.schemes:
        if not _keeps(scheme, found, options):
            what = f"the scheme '{scheme}' was promised, and no punctuation of it has come"
            yield "broken promise", what, str(scheme)
    known = {form for scheme in options.schemes for form in _forms(scheme, options)}
    for kind, count in sorted(found.said.items()):
        if kind and kind not in known:
            what = f"{counted(count, 'punctuation')} of the scheme '{kind}'"
            promise = "; ".join([*map(str, options.schemes), kind])
            yield "no promise", f"{what}, which is not promised; schemes '{promise}' would promise it", kind


_KINDS: Mapping[Kind, tuple[Kind, ...]] = {"each": ("each",), "prefix": ("prefix",), "tiles": ("each", "prefix")}
"""The kinds of patterns that a term allows."""

_WIDER: Mapping[Kind, tuple[Kind | None, ...]] = {
    kind: (None, "prefix") if kind == "prefix" else (None, "each", "prefix") for kind in _KINDS
}
"""The kinds of patterns that may subsume those of a term; None for the wildcard."""


def _forms(scheme: Scheme, options: SourceOptions, kinds: Mapping[Kind, Sequence[Kind | None]] = _KINDS) -> set[str]:
    """The forms of punctuations that a scheme allows, in the notation of the keys of `Findings.said`."""
    terms = sorted(scheme.terms, key=lambda term: options.schema.index(term.attribute))
    chosen = product(*([Term(t.attribute, kind) if kind else None for kind in kinds[t.kind]] for t in terms))
    return {", ".join(str(term) for term in form if term) for form in chosen}


def _keeps(scheme: Scheme, found: Findings, options: SourceOptions) -> bool:
    """Whether a punctuation of the scheme has come, or one that subsumes it (Tucker et al. 2007, footnote 1)."""
    return not found.said.keys().isdisjoint(_forms(scheme, options, _WIDER))


def _set_aside(found: Findings, diverts_malformed: bool, diverts_ungrammatical: bool) -> _Sentences:
    fates = {"malformed": diverts_malformed, "ungrammatical": diverts_ungrammatical}
    for kind, diverts in fates.items():
        if count := found.aside.get(kind, 0):
            items = counted(count, f"{kind} {'item' if kind == 'malformed' else 'tuple'}")
            fate = "diverted to the dead letters" if diverts else "dropped"
            why = f": {few(sorted(found.short), '; ')}" if kind == "malformed" and found.short else ""
            yield kind, f"{items} {'was' if count == 1 else 'were'} {fate}{why}", kind
    if count := found.aside.get("document", 0):
        were = f"{counted(count, 'document')} {'was' if count == 1 else 'were'} skipped from a fault on"
        yield "bad documents", f"{were}: {few(sorted(found.faulty), '; ')}", "documents"


def _list(names: Any) -> str:
    """The sorted names with commas between; only the first eight, if there are more."""
    ordered = sorted(names)
    return ", ".join(ordered[:8]) + (", …" if len(ordered) > 8 else "")
