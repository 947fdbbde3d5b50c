"""Hand-over: a query that continues another one's output answers what that has not closed (`run --continues`).

The new query reads the input again from its beginning. At its first start, the punctuations in the earlier output are
read once: they say what is final there. A `hand_over` on top of the result leaves out the tuples that they match, and
sends them, so that the new output begins where the earlier one is final. Each tuple of the result is then answered by
one of the two queries, and by which is decided by these punctuations alone.

They are a part of the plan, and so of the checkpoint: a restart does not look into the earlier output, which may have
grown since, or be gone. The new output has them too, in the file `NOTE`, for those who read both outputs.

The earlier output is read with the schema of the new result: a punctuation that restricts another attribute says
nothing about the new result, and is left out.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lxml import etree

from xmlstream.dataclasses import dataclass
from xmlstream.operators.frames.matching import condition_text
from xmlstream.operators.hand_over import HAND_OVER, HandOver
from xmlstream.operators.storage.locks import is_locked
from xmlstream.operators.storage.records import Record
from xmlstream.operators.storage.store import Folder, folder_at
from xmlstream.plan.nodes import Node, Results, Scan, StreamScan, documented, names, results
from xmlstream.punct_ns.errors import StateError, UsageError
from xmlstream.punct_ns.notation import split_patterns
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema, leaves
from xmlstream.punct_ns.sql_type import INTEGERS, StringType
from xmlstream.runtime.checkpoint.checkpoint import DOCUMENTS
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog
from xmlstream.runtime.checkpoint.same_query import QUERY, QueryRecord
from xmlstream.sink.closings import reader_of
from xmlstream.sink.output import Output
from xmlstream.sink.target import Target
from xmlstream.sink.xml_values import leaf_of
from xmlstream.sources.xml.splits.documents import Documents, missing
from xmlstream.sources.xml.splits.slice_planner import Offset

_LOG = logging.getLogger("xmlstream.continued")

NOTE = "_continues.json"
"""The file in an output that has what its query has found closed in the output that it continues."""


@dataclass(frozen=True, slots=True)
class Note(Record):
    """What is closed in the output `of` another query: punctuations over the schema here, and the same as Spark SQL.

    What `lost` matches is in neither output: it could not be whole.
    """

    of: str
    closed: tuple[str, ...]
    schema: str
    where: str
    lost: tuple[str, ...] = ()
    sparse = ("lost",)


def continuing(
    root: Node,
    continues: str | Path | None,
    checkpoint: str | Path | None,
    to: Sequence[Target],
    incomplete: str | Sequence[str] | None = None,
) -> Node:
    """The plan of a query that continues another one's output; the plan as it is if there is none.

    Args:
        root: The plan as written.
        continues: The output of the earlier query, or its checkpoint; needed at the first start only.
        checkpoint: The checkpoint of this query, which knows since its first start what is closed there.
        to: The targets of the results.
        incomplete: Punctuations of what cannot be whole, which no query answers, since documents are gone; or `none`.

    Raises:
        UsageError: The plan has several results, or the output cannot be continued.
        StateError: A query that runs writes to that output; or documents that it has read are gone, and `incomplete`
            is not given.
    """
    recorded = _recorded(checkpoint, root.schema)
    if continues is None and recorded is None:
        if incomplete is not None:
            raise UsageError("nothing is incomplete in a query that continues no other", hint="use it with --continues")
        return root
    if isinstance(root.operator, Results):
        hint = "run each result by itself, with a checkpoint of its own"
        raise UsageError("a query with several results cannot continue an output", hint=hint)
    return Node(recorded or _read(str(continues), root, to, incomplete), (root,), HAND_OVER)


def _recorded(checkpoint: str | Path | None, schema: Schema) -> HandOver | None:
    """What a query with this result has left out since its first start; None if its checkpoint has no such query."""
    # A start refuses what is damaged; there may be nothing yet.
    with suppress(OSError, StateError):
        for part in QueryRecord.of(folder_at(str(checkpoint))).plan if checkpoint is not None else ():
            match part.operator:
                case {"": "HandOver", "closed": closed, "of": of, "lost": lost} if of:
                    is_same = tuple(column[0] for column in part.schema) == schema.names
                    return HandOver(tuple(closed), True, of, tuple(lost)) if is_same else None
    return None


def _read(place: str, root: Node, targets: Iterable[Target], incomplete: str | Sequence[str] | None) -> HandOver:
    """What an earlier query has closed, as far as it concerns the result, and what is lost."""
    earlier, where, record = _earlier(place, targets)
    types = {} if record is None else {column[0].lower(): column[1] for column in record.plan[-1].schema}
    closed, others = closed_over(earlier, where, root.schema, types)
    _require_open(where, closed, others, root.schema)
    if incomplete is None:
        _require_whole(place, record, where, root)
    given_up = [] if incomplete is None else [incomplete] if isinstance(incomplete, str) else [*incomplete]
    lost = [Punctuation.parse(text, root.schema) for text in given_up if text != "none"]
    return HandOver(tuple(map(str, closed)), True, where, tuple(map(str, lost)))


def _earlier(place: str, targets: Iterable[Target]) -> tuple[Target, str, QueryRecord | None]:
    """The output at a place, or of the query whose checkpoint is there, its name, and the record of that query."""
    checkpoint = Output(place)
    has_record = checkpoint.store.size(QUERY) is not None
    record = QueryRecord.of(folder_at(place)) if has_record else None
    if record is not None:
        _require_stopped(checkpoint.drafts.path(), place)
        if len(record.outputs) > 1:
            what = f"the query of {place} has several results"
            raise UsageError(what, hint="name the output that is continued instead of the checkpoint")
    earlier = Target(place) if record is None else record.outputs[0].target
    if any(target.taken is None and target.place == earlier.place for target in targets):
        raise UsageError(f"the output {earlier.shown} cannot continue itself", hint="name another output with -o")
    output = earlier.documents()
    if output is None:
        if record is None and earlier.kind.closings is not None:
            what = f"{earlier.shown} does not show whether its query has stopped"
            raise UsageError(what, hint="name the checkpoint of that query, which does")
        return earlier, earlier.shown, record
    if not output.store.exists():
        raise UsageError(f"there is no output {earlier.shown} to continue", hint="name a directory that -o has written")
    _require_stopped(output.drafts.path(), earlier.shown)
    return earlier, output.where, record


def closed_over(
    earlier: Target, where: str, schema: Schema, types: Mapping[str, str]
) -> tuple[PunctuationSet, dict[str, None]]:
    """What an output has closed of a result of this schema, and other attributes that its punctuations restrict.

    Args:
        earlier: The output.
        where: Its name in errors.
        schema: The attributes of the result, which may be another one than the output's.
        types: The types of the output's attributes by their names in lower case; empty if it must show them itself.

    Raises:
        UsageError: It holds no punctuations, cannot be read, or has other types than the result.
    """
    given = reader_of(earlier)()
    types = types or {a.name.lower(): a.domain.type for a in (Schema.parse(given.types) if given.types else ())}
    found, others = PunctuationSet(schema), dict[str, None]()
    for _, text in given.punctuations:
        patterns = split_patterns(text)
        if len(patterns) != len(given.names):
            what = f"{where} has closed values without those of {len(patterns) - len(given.names)} attributes"
            raise UsageError(what, hint="only a result whose attributes all have an order can be continued there")
        one = _over(dict(zip(given.names, patterns, strict=True)), types, schema, where)
        if isinstance(one, Punctuation):
            found.add(one)
        else:
            others |= dict.fromkeys(one)
    return found, others


def _require_open(where: str, found: PunctuationSet, others: Mapping[str, None], schema: Schema) -> None:
    """Refuses to continue an output that has closed all, or nothing of the result."""
    if found.is_all:
        what = f"{where} is closed: all of it is final, and nothing is left to continue"
        hint = "with --follow or --keep-open an output stays open; to compute all anew, leave --continues out"
        raise UsageError(what, hint=hint)
    if not found and others:
        raise UsageError(
            f"{where} closes {', '.join(others)}, and the result has only {', '.join(schema.names)}",
            hint=f"give an attribute of the result that name: AS {next(iter(others))}",
        )
    if not found:
        hint = "without punctuations nothing is final: run the query without --continues, and use its output alone"
        raise UsageError(f"{where} has closed nothing", hint=hint)


def _require_whole(place: str, record: QueryRecord | None, where: str, root: Node) -> None:
    """Refuses to read the input again if documents are gone; warns if that is not known."""
    checkpoint = Output(place).drafts
    commits = [] if record is None else CommitLog(checkpoint.below("commits")).records()
    if not commits:
        sources = [scan.options for scan in documented(root) if not scan.options.is_many]
        if not all(Documents(each, log=False).single for each in sources):
            _LOG.warning("not known: whether documents are gone that were read for %s; its checkpoint has that", place)
    elif gone := list(_gone(checkpoint, commits[-1], root)):
        raise StateError(
            f"{'; '.join(gone)}: what {where} has not closed may have tuples in them, and would not be whole",
            hint=f"put them back; or leave out what cannot be whole, --incomplete '{Punctuation.all(root.schema)}' with"
            f" the values that `xmlstream explain --checkpoint {place}` shows as kept; or --incomplete none if all is",
        )


def _require_stopped(directory: Path, shown: str) -> None:
    """Refuses to continue a query that runs."""
    if is_locked(directory):
        hint = "stop that query first: what it closes from now on, both queries would answer"
        raise StateError(f"a query that runs writes to {shown}", hint=hint)


def _gone(checkpoint: Folder, last: Commit, root: Node) -> Iterator[str]:
    """The sources of a plan that lack documents which a query has read, each as part of a sentence."""
    for node, name in names(root).items():
        end, scan = last.end.get(name), node.operator
        if end is None or not isinstance(scan, Scan) or isinstance(scan, StreamScan) or scan.options.is_many:
            continue
        offset = Offset.from_json(end)
        read = offset.document + (offset.byte > 0)
        if number := missing(scan.options, str(checkpoint.path(f"{DOCUMENTS}/{name}")), read):
            are = "document is" if read == 1 else "documents are"
            yield f"of {name}, {number} of {read} {are} gone that the query has read"


def _over(given: Mapping[str, str], types: Mapping[str, str], schema: Schema, where: str) -> Punctuation | list[str]:
    """The punctuation over the schema; or, if it restricts attributes that the schema lacks, these."""
    mine = {name.lower(): name for name in schema.names}
    texts = {name: text for name, text in given.items() if text != "*"}
    if lacking := [name for name in texts if name.lower() not in mine]:
        return lacking
    found: dict[str, str] = {}
    for name, text in texts.items():
        attribute = schema.attribute(mine[name.lower()])
        found[attribute.name] = text
        before, now = types.get(name.lower()), attribute.domain
        if before is None and isinstance(now.sql, StringType) and _is_like_numbers(text):
            before = f"perhaps a number or a moment, {text}"
        elif before in (None, now.type) or {before, now.type} <= set(INTEGERS):
            continue
        hint = f"give it that type: CAST(… AS …) AS {attribute.name}; or its values another name"
        raise UsageError(f"{attribute.name} is {now.type}, and in {where} it is {before}", hint=hint)
    return Punctuation.of(schema, found)


"""Types whose closed values are those of each other."""


def _is_like_numbers(text: str) -> bool:
    """Whether all constants of a pattern may be numbers or moments, which have another order than strings.

    >>> _is_like_numbers("[,17]"), _is_like_numbers("{S1,17}"), _is_like_numbers("(,2024-01-01T00:00:00Z]")
    (True, False, True)
    """
    constants = [part for part in re.split(r'[\[\](){},"\s]+', text) if part]
    return bool(constants) and all(map(re.compile(r"[-+\d][\d.:TZE+-]*").fullmatch, constants))


def final_in(output: Output) -> tuple[Schema, PunctuationSet]:
    """What is final in the output that this one continues, over the attributes that are restricted there.

    Raises:
        UsageError: It continues none.
    """
    if output.store.size(NOTE) is None:
        hint = "name outputs in their order, each continued by the next one: run --continues"
        raise UsageError(f"{output.where} does not continue another output", hint=hint)
    noted = Note.from_json(json.loads(output.store.read(NOTE)))
    schema = Schema.parse(noted.schema)
    closed = [Punctuation.parse(text, schema) for text in noted.closed]
    places = sorted({i for p in closed for i in p.restricted})
    own = Schema(tuple(schema[i] for i in places))
    return own, PunctuationSet(own, (Punctuation(own, tuple(p.patterns[i] for i in places)) for p in closed))


def _leaves_of(element: etree._Element, above: str = "") -> Iterator[tuple[str, str]]:
    """The leaves in an element and their texts, by their paths, without prefixes."""
    yield from ((f"{above}@{etree.QName(name).localname}", str(text)) for name, text in element.attrib.items())
    for child in element.iterchildren(etree.Element):
        path = f"{above}{etree.QName(child).localname}"
        if len(child):
            yield from _leaves_of(child, f"{path}/")
        else:
            yield path, child.text or ""
            yield from ((f"{path}/@{etree.QName(n).localname}", str(text)) for n, text in child.attrib.items())


def is_final(element: etree._Element, schema: Schema, closed: PunctuationSet) -> bool:
    """Whether the tuple in an element of the earlier output is final there."""
    texts = {path.lower(): text for path, text in _leaves_of(element)}
    found = (texts.get(leaf_of(place).lower()) for place in leaves(schema))
    return closed.matches(
        tuple(
            None if text is None or attribute.domain.opaque else attribute.domain.read(text)
            for text, attribute in zip(found, schema, strict=True)
        )
    )


def leaving_out(root: Node) -> set[str]:
    """The names of the nodes of a plan that leave out what is closed."""
    return {name for node, name in names(root).items() if node.inputs and node.label == HAND_OVER}


def note(root: Node, targets: Sequence[Target], *, is_fresh: bool) -> None:
    """Notes in each output what its query has found closed in the output that it continues.

    Args:
        root: The plan.
        targets: The targets of its results.
        is_fresh: Whether the query begins, perhaps in the place of another one's output.
    """
    for target, node in zip(targets, results(root), strict=True):
        output, operator = target.documents(), node.operator
        if output is None:
            continue
        if isinstance(operator, HandOver) and operator.punctuates:
            closed = [Punctuation.parse(text, node.schema) for text in operator.closed]
            where = condition_text(closed)
            noted = Note(operator.of, operator.closed, node.schema.ddl(), where, operator.lost)
            output.store.replace(NOTE, [json.dumps(noted.json()).encode()])
        elif is_fresh and output.store.size(NOTE) is not None:
            output.store.delete(NOTE)
