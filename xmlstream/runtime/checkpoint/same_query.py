"""Identity of the query that a checkpoint belongs to; describes the differences of another query as sentences.

A start compares everything that kept tuples, positions and published documents depend on: sources with their options
and schemas, operators, the time zone, outputs with their tags. The slicing of a source and the treatment of bad input
may change from run to run; with `moved`, so may the places of inputs and outputs.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.expressions.operations.python_functions import as_written, called_in
from xmlstream.operators.storage.object_urls import shown
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT, Record
from xmlstream.operators.storage.store import Folder, LocalPlace, Place, folder_at, sealed, store_at, unseal
from xmlstream.plan.nodes import Node, Results, Scan, Static, StreamScan, names, plain, topological
from xmlstream.plan.written_plan import described
from xmlstream.punct_ns.errors import StateError, few
from xmlstream.runtime.checkpoint.migrations import query_of_today
from xmlstream.sink.target import OutputRecord, Target
from xmlstream.sources.local_paths import local_path

if TYPE_CHECKING:
    from xmlstream.runtime.checkpoint.checkpoint import Mirror

_LOG = logging.getLogger("xmlstream.functions")

QUERY = "query.json"
"""The record in a checkpoint of the query that it belongs to."""

OWN = "give this query a checkpoint of its own"
"""What can be done with any other query."""


class OtherQuery(StateError):
    """A checkpoint belongs to another query, whose state this one may perhaps take over."""


def is_begun(place: Place) -> bool:
    """Whether a query has begun with the checkpoint at this place."""
    store = store_at(place)
    return bool(store.names("commits")) or store.size(QUERY) is not None


@dataclass(frozen=True, slots=True)
class NodeRecord(Record):
    """A node of a plan: what distinguishes it from others, the path that it reads, and its description."""

    name: str
    operator: Mapping[str, Any]
    inputs: tuple[str, ...]
    schema: tuple[tuple[Any, ...], ...]
    path: str | None
    says: str


@dataclass(frozen=True, slots=True)
class QueryRecord(Record):
    """What identifies a query: its plan, its outputs, and its id in outputs that others write to, too.

    The versions of its Python functions, by their names, do not; if one is another, a start says so. `earlier` has the
    formats of earlier slices (`xmlstream.runtime.checkpoint.migrations.Formats`), `rates` those by which its joins were
    chosen, by source, if a run has measured them: the query is planned with these.
    """

    format: int
    timeZone: str  # noqa: N815 - as the record has it
    plan: tuple[NodeRecord, ...]
    outputs: tuple[OutputRecord, ...]
    id: str = ""
    functions: Mapping[str, str] = field(default_factory=dict)
    earlier: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    sparse: ClassVar[Collection[str]] = ("functions", "earlier", "rates")

    @staticmethod
    def of(checkpoint: Folder) -> QueryRecord:
        """The record in a checkpoint.

        Raises:
            StateError: The record is damaged, or the checkpoint has another format.
        """
        return QueryRecord.from_json(query_of_today(unseal(checkpoint, QUERY), checkpoint.where()))


class SameQuery:
    """The record in a checkpoint that identifies its query."""

    def __init__(self, place: LocalPlace, root: Node, time_zone: str, targets: Sequence[Target]) -> None:
        self._store = folder_at(place)
        written = json.dumps(plain(root))
        parts = zip(json.loads(as_written(written)), topological(root), strict=True)
        plan = tuple(_recorded(part, node) for part, node in parts)
        outputs = tuple(target.recorded for target in targets)
        functions = {function.name: function.version for function in called_in(written)}
        identity, rates = uuid.uuid4().hex, rates_in(root)
        self._mine = QueryRecord(CHECKPOINT_FORMAT, time_zone, plan, outputs, identity, functions, rates=rates)

    @property
    def id(self) -> str:
        """The query's identifier in outputs that others write to, too; the same in all runs of the checkpoint."""
        return self._mine.id

    def outputs_before(self) -> list[str]:
        """The outputs of the query that began with the checkpoint; empty if its record is missing or unreadable."""
        try:
            return [output.output for output in QueryRecord.of(self._store).outputs]
        except StateError:
            return []

    def begin(self) -> None:
        """Writes the record: the checkpoint then belongs to this query.

        The identifier of a run that ended before its first commit stays: the tables that it has created bear it.
        """
        with suppress(StateError):
            self._mine = replace(self._mine, id=QueryRecord.of(self._store).id or self._mine.id)
        self._write()

    @property
    def record(self) -> QueryRecord:
        return self._mine

    def going_on(self, identity: str, since: Mapping[int, int]) -> QueryRecord:
        """The record of this query once it goes on from another one; `since` has the slices of outputs that stay."""
        outputs = tuple(replace(output, since=since.get(i, 0)) for i, output in enumerate(self._mine.outputs))
        return replace(self._mine, id=identity or self._mine.id, outputs=outputs)

    def is_that_of(self, found: QueryRecord, *, moved: bool) -> bool:
        """Whether a record is of this query; with `moved`, places of inputs and outputs may differ."""
        return not any(_differences(found, self._mine)) and (moved or not any(_moves(found, self._mine)))

    def require_is(self, found: QueryRecord | None) -> None:
        """Makes sure that this is the query before the last change.

        Raises:
            StateError: It is another query.
        """
        if found is not None and (others := list(_differences(found, self._mine))):
            what = f"the query before the change in {self._store.where()} is another one: {few(others, '; ')}"
            raise StateError(what, hint="name the query before the change, which --undo returns to")

    def require_found(self, found: QueryRecord, *, moved: bool) -> list[str]:
        """Makes sure that a record is of this query; returns what lies elsewhere, and raises what `require` does."""
        checkpoint = self._store.where()
        if others := list(_differences(found, self._mine)):
            raise OtherQuery(f"the checkpoint {checkpoint} belongs to another query: {few(others, '; ')}", hint=OWN)
        if (elsewhere := list(_moves(found, self._mine))) and not moved:
            raise StateError(
                f"the query of the checkpoint {checkpoint} {few(elsewhere, '; ')}",
                hint="if they were moved, use --moved; otherwise give this query a checkpoint of its own",
            )
        return elsewhere

    def require(self, *, moved: bool) -> None:
        """Makes sure that the checkpoint belongs to this query.

        Raises:
            OtherQuery: The checkpoint belongs to another query.
            StateError: It has another format or is damaged; or inputs or outputs lie in other places than before, and
                `moved` is not set.
        """
        found = QueryRecord.of(self._store)
        elsewhere = self.require_found(found, moved=moved)
        pairs = zip(self._mine.outputs, found.outputs, strict=True)
        outputs = tuple(replace(output, since=before.since) for output, before in pairs)
        identity = found.id or uuid.uuid5(uuid.NAMESPACE_URL, self._store.where()).hex
        self._mine = replace(self._mine, id=identity, outputs=outputs, earlier=found.earlier)
        changed = [name for name, version in self._mine.functions.items() if found.functions.get(name) != version]
        for name in changed:
            before, now = found.functions.get(name, "unknown"), self._mine.functions[name]
            _LOG.warning(
                "the function %s is %s, and was %s when the query began or went on last: what that has computed stays"
                " in use; to compute it again, begin anew, with another checkpoint and output",
                *(name, now, before),
            )
        if (elsewhere or changed) and found.format == CHECKPOINT_FORMAT:
            self._write()

    def migrate(self, mirror: Mirror, last: int) -> None:
        """Notes that slices up to the last one have an earlier format, if so, and keeps a copy of the checkpoint.

        From now on earlier versions refuse the checkpoint. `require` was called before.
        """
        if (number := QueryRecord.of(self._store).format) != CHECKPOINT_FORMAT:
            mirror.keep(f"before-{number}")
            self._mine = replace(self._mine, earlier={**self._mine.earlier, str(number): last})
            self._write()

    def since(self, result: int) -> int:
        """The first slice whose documents of a result must exist."""
        return self._mine.outputs[result].since

    def forget(self, result: int, before: int) -> None:
        """Records that documents of a result from before a slice may be gone."""
        outputs = list(self._mine.outputs)
        outputs[result] = replace(outputs[result], since=before)
        self._mine = replace(self._mine, outputs=tuple(outputs))
        self._write()

    def _write(self) -> None:
        self._store.replace(QUERY, sealed(self._mine.json()))


def rates_in(root: Node) -> dict[str, float]:
    """The measured rates by which the joins of a plan were chosen, by source; none if they were not."""
    scans = ((name, node.operator) for node, name in names(root).items() if isinstance(node.operator, Scan))
    return {name: scan.measured for name, scan in scans if scan.measured is not None}


def _recorded(part: Mapping[str, Any], node: Node) -> NodeRecord:
    """The record of a node; `part` has what distinguishes it."""
    # How bad input is treated may change, in a source and in `punctuate`.
    operator = {name: value for name, value in part["operator"].items() if name != "ungrammatical"}
    path = None
    match node.operator:
        case Scan(options=options):
            path = None if isinstance(node.operator, StreamScan) else canonical_path(options.path)
            # The schema contains these options.
            known = {**operator, **operator["options"]}
            operator = {name: value for name, value in known.items() if name not in _OTHERWISE}
        case Static(options=given):
            path = dict(given).get("path")
            path = path and canonical_path(path)
            operator = {"": "Static", "format": operator["format"], "frame": operator["frame"]}
            operator |= {name: text for name, text in given if name != "path"}
            operator |= {"version": node.operator.version} if node.operator.version else {}
        case Results():
            operator.pop("names")
    return NodeRecord.from_json({**part, "operator": operator, "path": path, "says": described(node)})


_OTHERWISE = {"", "name", "options", "path", "schema", "domains", "frame", "view", "replays"}


def canonical_path(path: str) -> str:
    """A path in a form that can be compared: absolute, with links resolved."""
    return shown(path) if "://" in path else os.path.realpath(local_path(path))


def _differences(found: QueryRecord, mine: QueryRecord) -> Iterator[str]:
    if found.timeZone != mine.timeZone:
        yield f"its time zone is {found.timeZone}, not {mine.timeZone}"
    old, new = ({part.name: part for part in which.plan} for which in (found, mine))
    pairs = [(part, new[name]) for name, part in old.items() if name in new]
    of_sources = [text for before, now in pairs if not now.inputs for text in _of_part(before, now)]
    yield from of_sources
    for before, now in pairs:
        if now.inputs and not (of_sources and before.operator == now.operator):
            yield from _of_part(before, now)
    yield from (f"it has {name}: {part.says}" for name, part in old.items() if name not in new)
    yield from (f"it has no {name}: {part.says}" for name, part in new.items() if name not in old)
    if len(found.outputs) != len(mine.outputs):
        yield f"it has {len(found.outputs)} results, not {len(mine.outputs)}"
    for old_, new_ in zip(found.outputs, mine.outputs, strict=False):
        yield from _of_output(old_, new_)


def _of_output(before: OutputRecord, now: OutputRecord) -> Iterator[str]:
    """The differences between an output of the checkpoint's query and the output of that number in this query."""
    for which, of in _OUTPUT_WORDS.items():
        one, other = of(before), of(now)
        if one != other:
            yield f"{before.output} {which.format(one)}, not {other}"
    for name in ("form", "row_tag", "root_tag", "namespaces", "punctuations"):
        one, other = (getattr(each, name) or "none" for each in (before, now))
        if one != other:
            yield f"the {name.replace('_', ' ')} in {before.output} is {one}, not {other}"


_OUTPUT_WORDS: Mapping[str, Callable[[OutputRecord], str]] = {
    "is partitioned by {}": lambda output: ", ".join(output.partition_by) or "nothing",
    "has {} as XML": lambda output: ", ".join(output.xml) or "no column",
    "has {}": lambda output: ", ".join(map(" ".join, output.paths)) or "no path",
}
"""What an output has, in words, by the sentence that says it."""


def _of_part(before: NodeRecord, now: NodeRecord) -> Iterator[str]:
    """The differences between a node of the checkpoint's query and the node of that name in this query."""
    name = before.name
    if now.inputs or before.operator.get("") != now.operator.get(""):
        if before.operator != now.operator:
            yield f"its {name} is {before.says}, not {now.says}"
        elif before.inputs != now.inputs:
            yield f"its {name} reads {', '.join(before.inputs)}, not {', '.join(now.inputs)}"
    else:
        for option in sorted(before.operator.keys() | now.operator.keys()):
            one, other = (as_given(part.operator.get(option, _ELSE.get(option))) for part in (before, now))
            if one != other:
                yield f"the option {option} of {name} is {one}, not {other}"
    columns, others = ({column[0]: column[1:] for column in part.schema} for part in (before, now))
    for column in {**columns, **others}:
        one, other = (_typed(which.get(column)) for which in (columns, others))
        if one != other:
            yield f"the column {column} of {name} is {one}, not {other}"
    if columns == others and [*columns] != [*others]:
        yield f"the columns of {name} are {', '.join(columns)}, not {', '.join(others)}"


_ELSE = {"timeZone": "UTC"}
"""What an option that is not recorded was, where a session may say otherwise."""


def as_given(option: Any) -> str:
    """An option in words."""
    return "not given" if option is None else f"'{option}'"


def _typed(column: Sequence[Any] | None) -> str:
    if column is None:
        return "missing"
    type_, nullable, low, high, *listed = column
    bounds = "" if low == high == "None" else f" from {low} to {high}"
    bounds = f" of {', '.join(*listed)}" if listed else bounds
    return f"{type_}{'' if nullable else ' NOT NULL'}{bounds}"


def _moves(found: QueryRecord, mine: QueryRecord) -> Iterator[str]:
    for before, now in zip(found.plan, mine.plan, strict=True):
        if before.path != now.path:
            yield f"reads {now.name} from {now.path}, before from {before.path}"
    for written, other in zip(found.outputs, mine.outputs, strict=True):
        if written.output != other.output:
            yield f"writes to {other.output}, before to {written.output}"
