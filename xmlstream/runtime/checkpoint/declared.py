"""Declared punctuations: what somebody states in the place of a silent source, such as a dead sensor.

    declared/001764222310123456-9f3c2a.json    a note, sealed: a source, a punctuation, who declared it, when

A note is made by one rename, by any process, while the query runs or not. The loop of a run lists the notes before it
looks for input, and a slice takes one in once it reads everything of the source that was there then. So a declared
punctuation stands behind all that had arrived when it was declared: nothing that is kept or waits to be read breaks
it, and what comes later is treated as `ungrammatical` says, as behind a punctuation that the source has sent itself.

The record of the slice has the note (`Commit.declared`), and counts as for all else: behind it the note is removed, and
a start removes notes that a record has. So each counts once, whichever process is killed at whatever moment.
"""

from __future__ import annotations

import getpass
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from xmlstream.dataclasses import replace
from xmlstream.operators.punctuate import Punctuate, Streams
from xmlstream.operators.punctuators.roster import ByRoster, members_after
from xmlstream.operators.storage.store import Folder, LocalPlace, folder_at, sealed, unsealed
from xmlstream.plan.nodes import Node, Scan, names, topological
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.errors import NotationError, StateError, UsageError, did_you_mean, few
from xmlstream.punct_ns.pattern import EMPTY, Constant, Pattern
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import STREAM
from xmlstream.runtime.checkpoint.commit_log import Commit, Declared
from xmlstream.sources.xml.splits.slice_planner import Offset

NOTES = "declared"
"""The folder of a checkpoint with the notes that no slice has taken in yet."""


_DRAFT_SECONDS = 60
"""The age in seconds from which a draft of a note was left by a process that is gone."""


class DeclaredNotes:
    """The notes of a checkpoint that wait to be taken in by a slice."""

    def __init__(self, checkpoint: LocalPlace) -> None:
        self._store = folder_at(checkpoint)

    def waiting(self) -> list[Declared]:
        """The notes, in the order in which they were made.

        Raises:
            StateError: A note is damaged.
        """
        found = []
        for name in self._store.names(NOTES):
            with suppress(FileNotFoundError):  # a run has just taken it in
                content = unsealed(self._store.read(f"{NOTES}/{name}"))
                if content is None:
                    raise self._store.damaged(f"{NOTES}/{name}")
                found.append(Declared.from_json(content))
        return found

    def add(self, declared: Declared) -> None:
        """Makes a note, durably."""
        self._store.replace(f"{NOTES}/{declared.key}", sealed(declared.json()))

    def remove_leavings(self) -> None:
        """Removes the drafts of notes that processes have left, which were killed as they wrote them."""
        for draft in self._store.path(NOTES).glob(".*.tmp"):
            with suppress(FileNotFoundError):
                if time.time() - draft.stat().st_mtime > _DRAFT_SECONDS:
                    self._store.delete(f"{NOTES}/{draft.name}")

    def forget(self, declared: Iterable[Declared]) -> None:
        """Removes the notes that a commit has."""
        self._store.delete(*(f"{NOTES}/{each.key}" for each in declared))


def declare(
    checkpoint: LocalPlace,
    root: Node,
    last: Commit | None,
    source: str,
    punctuation: str | None = None,
    where: str | None = None,
    by: str | None = None,
) -> list[Declared]:
    """Declares that a source sends no more of some tuples, by default of any; returns the notes that were made.

    Args:
        checkpoint: The directory of the checkpoint.
        root: The plan that runs.
        last: The record of its last commit, made whole; None before the first.
        source: The name of the source; `source/document` is one stream of a source of many.
        punctuation: The punctuation that matches these tuples, in notation.
        where: A condition that is true for them, such as `hour <= 20`.
        by: Who declares it; None for the user of this process.

    Raises:
        UsageError: There is no such source or stream, or its punctuation cannot be read, or matches nothing.
        StateError: The query is closed.
    """
    store = folder_at(checkpoint)
    # All are read before one is noted.
    source, _, stream = source.partition("/")
    made = [
        (name, _of_stream(each, _number(name, stream, last), node.schema))
        for name, node in _scans(root, source).items()
        for each in _punctuations(punctuation, where, _said_of(node), name)
    ]
    if last is not None and last.report.closed:
        raise StateError(
            f"the query of checkpoint {store.where()} is closed: its input has ended for good",
            hint="there is nothing left to close",
        )
    return _noted(store, [(name, str(each), (), (), stream.rstrip("/"), "") for name, each in made], by)


def change_rosters(
    checkpoint: LocalPlace,
    root: Node,
    last: Commit | None,
    source: str,
    added: Sequence[str],
    removed: Sequence[str],
    by: str | None = None,
) -> list[Declared]:
    """Declares which senders are added to the rosters of a source, and which are taken from them; returns the notes.

    They are judged together with the changes that wait to be taken in.

    Raises:
        UsageError: There is no such source, or it has no roster; a sender is not a value, or not on the roster; or none
            is left.
    """
    store = folder_at(checkpoint)
    waiting = _waiting(store, last)
    changes = []
    for name in _scans(root, source):
        found = _rosters(root, name)
        if from_table := [rule.listed.name for _, _, rule in found if rule.listed is not None]:
            hint = f"change {from_table[0]}, and have it read again: xmlstream say {store.where()} {source} --read"
            if len(from_table) == len(found):
                raise UsageError(f"the roster of {name} is the table {from_table[0]}", hint=hint)
        for called, node, rule in (each for each in found if each[2].listed is None):
            domain = node.schema.attribute(rule.member).domain
            now = _members(rule, called, domain, last, (each for each in waiting if each.source == name))
            try:
                more, fewer = (list(map(domain.read, texts)) for texts in (added, removed))
                replace(rule, roster=(*now, *more)).require(node.schema)
            except ValueError as error:
                raise UsageError(f"{error}: {rule.member} is {domain.type}") from None
            on_it = ", ".join(map(domain.write, now))
            if strange := [domain.write(member) for member in fewer if member not in now]:
                raise UsageError(f"{', '.join(strange)} is not on the roster of {rule.member}", hint=f"it has {on_it}")
            if not members_after(now, more, fewer):
                raise UsageError(
                    f"no sender would be left on the roster of {rule.member}", hint=f"leave out {name} instead"
                )
        changes.append((name, "", tuple(added), tuple(removed), "", ""))
    return _noted(store, changes, by)


def read_lists(
    checkpoint: LocalPlace,
    root: Node,
    last: Commit | None,
    read: Callable[[ByRoster, Domain], Sequence[Value]],
    source: str | None = None,
    by: str | None = None,
) -> list[Declared]:
    """Declares the changes of the tables that list the rosters of a source, or of all; returns the notes made.

    A roster is compared with its table once its members are known: the first slice of a query has them.

    Args:
        checkpoint: The directory of the checkpoint.
        root: The plan that runs.
        last: The record of its last commit, made whole; None before the first.
        read: Gives the members that the table of a roster lists now.
        source: The name of the source; None for all.
        by: Who has it read; None for the user of this process.

    Raises:
        UsageError: There is no such source, or no table lists a roster of it.
    """
    store = folder_at(checkpoint)
    waiting, changes, is_listed = _waiting(store, last), [], False
    for name in _scans(root, source):
        for called, node, rule in rosters(root, name) if source is None else _rosters(root, name):
            if rule.listed is None:
                continue
            is_listed, domain = True, node.schema.attribute(rule.member).domain
            if last is None or not rule.has_begun(last.state(called).notes):
                continue
            mine = (each for each in waiting if (each.source, each.table) == (name, rule.listed.name))
            now, then = read(rule, domain), _members(rule, called, domain, last, mine)
            added, removed = (
                tuple(domain.write(one) for one in some if one not in others)
                for some, others in ((now, then), (then, now))
            )
            if added or removed:
                changes.append((name, "", added, removed, "", rule.listed.name))
    if source is not None and not is_listed:
        hint = "it is read from one with punctuate 'roster of sid from senders'; --add and --remove change one"
        raise UsageError(f"no table lists the roster of {source}", hint=hint)
    return _noted(store, changes, by)


def _waiting(store: Folder, last: Commit | None) -> list[Declared]:
    """The notes that no slice up to the last one has taken in."""
    taken_in = set() if last is None else {each.key for each in last.declared}
    return [each for each in DeclaredNotes(store).waiting() if each.key not in taken_in]


def _rosters(root: Node, source: str) -> list[tuple[str, Node, ByRoster]]:
    """The rosters of a source (`rosters`); UsageError if it has none."""
    if not (found := list(rosters(root, source))):
        hint = "declare one: punctuate 'roster of sid (S1, S2)'"
        raise UsageError(f"no rule of {source} has a roster", hint=hint)
    return found


def _members(
    rule: ByRoster, called: str, domain: Domain, last: Commit | None, waiting: Iterable[Declared]
) -> list[Value]:
    """The members of a roster once the changes that wait have been taken in."""
    now = rule.members({} if last is None else last.state(called).notes, domain)
    for each in waiting:
        now = members_after(now, *each.senders(domain)) or now
    return now


def _noted(
    store: Folder, made: Sequence[tuple[str, str, tuple[str, ...], tuple[str, ...], str, str]], by: str | None
) -> list[Declared]:
    now, who = datetime.now(UTC), by or signature()
    keys = (f"{time.time_ns() // 1000:018}-{uuid.uuid4().hex[:6]}.json" for _ in made)
    notes = [
        Declared(key, name, text, who, now, added, removed, stream, table)
        for key, (name, text, added, removed, stream, table) in zip(keys, made, strict=True)
    ]
    for note in notes:
        DeclaredNotes(store).add(note)
    return notes


def rosters(root: Node, source: str) -> Iterator[tuple[str, Node, ByRoster]]:
    """The nodes of a plan that punctuate a source by a roster: their names, themselves, and their rules."""
    called = names(root)
    for node in topological(root):
        if isinstance(node.operator, Punctuate) and isinstance(rule := node.operator.rule, ByRoster):
            below = node
            while len(below.inputs) == 1:
                (below,) = below.inputs
            if called[below] == source:
                yield called[node], node, rule


def signature() -> str:
    """The user of this process and its machine, as `ann@example`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # the user of a container may have no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def _scans(root: Node, source: str | None) -> dict[str, Node]:
    """The scans of a source by their names in the plan: that of this name, or all of a table of this name.

    None is for all sources.
    """
    scans = {name: node for node, name in names(root).items() if isinstance(node.operator, Scan)}
    if source is None:
        return scans
    if alike := {name: node for name, node in scans.items() if _label(node) == source.lower()}:
        return alike
    if alike := {name: node for name, node in scans.items() if name.lower() == source.lower()}:
        return alike
    has_streams = any(isinstance(node.operator, Streams) for node in topological(root))
    streams = "; a stream of one is named with it, as SOURCE/FILE.xml" if has_streams else ""
    raise UsageError(f"the query has no source {source}", hint=f"it has {', '.join(scans)}{streams}")


def _said_of(scan: Node) -> Schema:
    """The attributes of a source that its user has declared."""
    assert isinstance(scan.operator, Scan)
    return scan.operator.options.schema


def _number(source: str, stream: str, last: Commit | None) -> int | None:
    """The number of a stream that is open, by its document's name; None if no name is given.

    Raises:
        UsageError: There is no such stream.
    """
    if not stream:
        return None
    ends = {} if last is None else last.end
    there = {
        one.name: one.number
        for end in ([ends[source]] if source in ends else ends.values())
        for one in Offset.from_json(end).streams
    }
    if stream.rstrip("/") not in there:
        hint = (
            f"open are {few([f'{source}/{name}' for name in there])}"
            if there
            else "a source of documents 'files' or 'directories' has some"
        )
        raise UsageError(f"{source} has no open stream {stream}", hint=hint)
    return there[stream.rstrip("/")]


def _of_stream(p: Punctuation, number: int | None, schema: Schema) -> Punctuation:
    """The punctuation, which restricts no stream, over the attributes of the source's items, and of one stream."""
    patterns: dict[int, Pattern] = {i: p.patterns[i] for i in p.restricted}
    return Punctuation.at(schema, patterns if number is None else {**patterns, schema.index(STREAM): Constant(number)})


def _label(scan: Node) -> str:
    assert isinstance(scan.operator, Scan)
    return scan.operator.name.lower()


def _punctuations(text: str | None, where: str | None, schema: Schema, source: str) -> Sequence[Punctuation]:
    """The punctuations over a source's schema that match what a text in notation or a condition describes."""
    hint = f"{source} has the attributes {', '.join(f'{a.name} {a.domain.type}' for a in schema)}"
    if where is not None:
        from xmlstream.operators.expressions.dialect import attributes_in, parsed
        from xmlstream.operators.expressions.predicate_domain import included

        if found := included(where, schema):
            return found
        such = f"compare attributes with constants, such as hour <= 20; {hint}"
        if (tree := parsed(where)) is None:
            raise UsageError(f"'{where}' cannot be read as a condition", hint=such)
        known = [a.name.lower() for a in schema]
        for name in (name for name in attributes_in(tree) if name.lower() not in known):
            meant = did_you_mean(name, schema.names, f"if {name} is a text, write it in quotes: '{name}'; {hint}")
            raise UsageError(f"{source} has no attribute {name}", hint=meant)
        raise UsageError(f"no punctuation follows from '{where}'", hint=such)
    if text is None:
        return [Punctuation.all(schema)]
    try:
        made = Punctuation.parse(text, schema)
    except NotationError as error:
        raise UsageError(error.what, hint=hint) from None
    if made.lifespan is not None:
        raise UsageError("a declared punctuation holds for ever", hint=f"leave out '{made.lifespan}'")
    if EMPTY in made.patterns:
        raise UsageError(f"{made} matches no tuple of {source}", hint=hint)
    return [made]


def declared_of(declared: Sequence[Declared], source: str, schema: Schema) -> list[Punctuation]:
    return [
        Punctuation.parse(each.punctuation, schema) for each in declared if each.source == source and each.punctuation
    ]
