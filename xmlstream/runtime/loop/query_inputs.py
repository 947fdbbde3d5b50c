"""The inputs of a running query, streams and static tables: the tuples and punctuations of each in a slice.

A static table is read once, by the first slice, and is closed from then on; if its files are others when a later run
goes on, one line says that they are not read again.
"""

from __future__ import annotations

import codecs
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from xmlstream.dataclasses import replace
from xmlstream.extensions import extension
from xmlstream.operators.expressions.operations.spark_type import NotProven
from xmlstream.operators.frames.expression import Column
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.roster import ByRoster
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.storage.object_urls import is_object_url
from xmlstream.operators.storage.segments import COLLECTED
from xmlstream.operators.storage.store import LocalPlace, Store
from xmlstream.plan.nodes import FILES, POSTGRESQL, READ, GivenTable, Node, Scan, Static, topological
from xmlstream.punct_ns.domain import Cut, Domain, Value
from xmlstream.punct_ns.errors import InputError, UsageError, XmlStreamError, few
from xmlstream.punct_ns.lifespan import Bound
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.slices import in_utc, quoted
from xmlstream.runtime.checkpoint.commit_log import Declared
from xmlstream.runtime.loop.source_input import SourceInput
from xmlstream.session.spark_errors import first_cause
from xmlstream.sources.local_paths import absolute, split_glob
from xmlstream.sources.xml.options.leaf_paths import likely_leaf
from xmlstream.sources.xml.parser.findings_collector import Findings
from xmlstream.sources.xml.parser.plain_tables import not_plain, plain_rows
from xmlstream.sources.xml.slices.micro_batches import StagedRange

if TYPE_CHECKING:
    import pyarrow as pa

    from xmlstream.operators.frames.frame import Engine, Frame


_LOG = logging.getLogger("xmlstream.inputs")


_AGAIN = "with another text as its option version, `run --change` reads it again"
"""How a static table is read again."""


class StaticInput:
    """A static input of a running query; closed after its only slice.

    Attributes count the last slice: its `items`, and the `punctuations` among them; items are never `set_aside`.
    """

    set_aside = 0

    def __init__(self, engine: Engine, static: Static, state: OperatorState) -> None:
        self.items = self.punctuations = 0
        self._engine, self._static, self._state = engine, static, state
        # The first slice reads it; the working directory may have changed by then.
        self._path = _path_of(static)
        self._closed = state.punctuations("added")
        if self.closed and static.format == POSTGRESQL:
            _LOG.warning(
                "the static table %s was read at %s, and stays as it was then; %s",
                static.name,
                state.notes.get(READ),
                _AGAIN,
            )
        elif self.closed and state.notes.get(FILES) not in (None, found := _files(static, self._path)):
            gone = "; there are none now" if found is None else ""
            _LOG.warning(
                "the files %s of the static table %s are not as they were when the query began%s: what it read then"
                " stays in use; %s",
                self._path,
                static.name,
                gone,
                _AGAIN,
            )
        if not self.closed:
            _require_readable(engine, static, self._path)

    @property
    def closed(self) -> bool:
        """Whether the table has been read."""
        return self._closed.set.is_all

    def slice(self) -> Slice:
        """All tuples and a punctuation that closes the table, in the first slice; empty in later ones.

        Raises:
            InputError: The table cannot be read.
        """
        self.items = self.punctuations = 0
        if self.closed:
            return Slice(None)
        # The bound is too large for the driver to collect, since the number of tuples is unknown.
        with _reading(self._static):
            tuples = self._state.computed(Tuples(_frame(self._engine, self._static, self._path), COLLECTED + 1))
        if (found := _files(self._static, self._path)) is not None:
            self._state.notes[FILES] = found
        if (time := self._state.time) is not None:
            self._state.notes[READ] = f"{time:%Y-%m-%d %H:%M:%S} UTC"
        self.items, self.punctuations = tuples.at_most + 1, 1
        return Slice(tuples, tuple(self._closed.absorb([Punctuation.all(self._static.schema)])))


def _path_of(static: Static) -> str:
    return absolute(dict(static.options).get("path", ""))


def _require_readable(engine: Engine, static: Static, path: str) -> None:
    """Compares a static table with its files, before they are read."""
    if is_object_url(path):
        engine.require_files(path)
    elif (static.format or "").lower() == "csv":
        _require_columns(static, path)
    elif (static.format or "").lower() == "xml":
        _note_rows(static, path)


def _frame(engine: Engine, static: Static, path: str) -> Frame:
    """The rows of a static table."""
    if static.frame is not None:
        return engine.given(static.frame.arrow if isinstance(static.frame, GivenTable) else static.frame)
    assert static.format is not None
    if static.access is not None:
        rows = extension("rows of postgresql")(static.access.place, static.schema)
        return engine.rows(rows, static.schema.ddl())
    if static.format.lower() == "xml" and engine.name != "spark" and (rows := _plain_rows(engine, static, path)):
        return rows
    options = {"mode": "FAILFAST", **dict(static.options)}
    options.pop("path")
    return engine.files(static.format, static.schema.ddl(), options, path)


def _plain_rows(engine: Engine, static: Static, path: str) -> Frame | None:
    """The rows of a static table of plain XML, read here; None for what is left to Spark by an engine that has it.

    Raises:
        NotProven: The engine has no Spark.
    """
    options = dict(static.options)
    found: pa.Table | str = not_plain(static.schema, options) or plain_rows(
        (file for file in _there(path) if not file.name.startswith((".", "_"))), static.schema, options
    )
    if not isinstance(found, str):
        return engine.rows(found, static.schema.ddl())
    if hasattr(engine, "choice"):
        return None
    raise NotProven(found)


@contextmanager
def _reading(static: Static) -> Iterator[None]:
    """Says of what is raised that a static table cannot be read."""
    try:
        yield
    except XmlStreamError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever Spark raises, the table cannot be read
        where = dict(static.options).get("path")
        raise InputError(f"the static table {static.name} cannot be read: {first_cause(error)}", where=where) from None


def members_of(engine: Engine, rule: ByRoster, domain: Domain) -> list[Value]:
    """The members of a roster that a static table lists, as the table is now: each once, null none.

    Raises:
        InputError: The table cannot be read, or lists none.
        UsageError: A value in it is none of the attribute.
    """
    assert rule.listed is not None
    static, column = rule.listed.table, rule.listed.column
    if static is None or (static.frame is None and static.format is None):
        what = f"the table {rule.listed.name} was given by the program, which alone can read it"
        raise UsageError(what, hint="start the program again: it reads the table as it begins")
    path = _path_of(static)
    with _reading(static):
        _require_readable(engine, static, path)
        written, is_same = quoted(column), static.schema.attribute(column).domain.type == domain.type
        value = Column(column, written if is_same else f"CAST({written} AS {domain.type})")
        rows = in_utc(_frame(engine, static, path).select(value).to_arrow())
    members = [domain.normal(one) for one in rows.column(0).unique().to_pylist() if one is not None]
    if not members:
        hint = f"a roster has one sender at least; each value of {column} is one"
        raise InputError(f"the static table {static.name} lists no {column}", where=path or None, hint=hint)
    for one in members:
        if not domain.contains(one):
            what = f"{domain.write(one)} in {static.name} is not a valid value of {rule.member} {domain.type}"
            raise UsageError(what)
    return [*dict.fromkeys(members)]


def with_members(root: Node, engine: Engine) -> Node:
    """The plan with the members that tables list now of its rosters, as far as the engine can read them."""
    made, is_other = dict[Node, Node](), False
    for node in topological(root):
        operator = node.operator
        if isinstance(operator, Punctuate) and isinstance(rule := operator.rule, ByRoster) and rule.listed is not None:
            with suppress(XmlStreamError):
                members, is_other = members_of(engine, rule, node.schema.attribute(rule.member).domain), True
                operator = replace(operator, rule=replace(rule, roster=tuple(members)))
        if not is_other:
            made[node] = node
            continue
        made[node] = Node(operator, tuple(made[below] for below in node.inputs), node.label)
    return made[root]


_COMPARED = 16 << 20
"""The bytes at the beginning of a file that are compared; of the others, only the number."""


def _files(static: Static, path: str) -> str | None:
    """A text that differs if the files at a path are others; None if there are none on this file system."""
    if static.frame is not None or static.access is not None:
        return None
    found = []
    with suppress(OSError):
        for file in _there(path):
            with file.open("rb") as opened:
                checksum = crc32(opened.read(_COMPARED))
            found.append(f"{file.name}-{file.stat().st_size}-{checksum:x}")
    return f"{len(found)}-{crc32(' '.join(found).encode()):x}" if found else None


def _there(path: str) -> Iterator[Path]:
    """The files at a path or a glob, in order."""
    known, parts = split_glob(path.removeprefix("file://"))
    for place in sorted(known.glob(str(Path(*parts)))) if parts else [known]:
        yield from (file for file in (sorted(place.rglob("*")) if place.is_dir() else [place]) if file.is_file())


def _require_columns(static: Static, path: str) -> None:
    """Compares the beginnings of files of CSV with their table: encoding, separator, and the order in a header.

    Raises:
        UsageError: An option is missing, or columns are declared in another order than they have in a file.
    """
    options, names = dict(static.options), [name.casefold() for name in static.schema.names]
    encoding, separator = options.get("encoding", "UTF-8"), options.get("sep", options.get("delimiter", ","))
    for file in _there(path):
        if file.name.startswith((".", "_")) or file.suffix in _COMPRESSED:
            continue
        with file.open("rb") as opened:
            beginning = opened.read(_COMPARED)
        try:
            line, *_ = codecs.getincrementaldecoder(encoding)().decode(beginning).splitlines() or [""]
        except LookupError:
            return
        except UnicodeDecodeError:
            what = f"{file} is not in {encoding}"
            raise UsageError(what, hint="name its encoding: option encoding 'ISO-8859-1'") from None
        others = [each for each in (",", ";", "\t", "|") if line.count(each) == len(names) - 1 > 0]
        if separator not in line and others:
            raise UsageError(f"the first line of {file} has no '{separator}'", hint=f"option sep {others[0]!r}")
        if options.get("header", "").lower() == "true":
            header = [name.strip().strip('"').casefold() for name in line.split(separator)]
            if any(name in names and names.index(name) != at for at, name in enumerate(header)):
                what = f"{file} has the columns {', '.join(header)}, and {static.name} declares {', '.join(names)}"
                raise UsageError(what, hint="declare all columns of the file in their order: they are read by position")


def _note_rows(static: Static, path: str) -> None:
    """Warns of files of XML without an element of the rows' tag, as far as they are compared."""
    tag = {name.lower(): value for name, value in static.options}.get("rowtag", "ROW").rpartition(":")[2]
    there = set[str]()
    for file in _there(path):
        if not file.name.startswith((".", "_")) and file.suffix not in _COMPRESSED:
            with file.open("rb") as opened:
                names = re.findall(rb"<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)[\s/>]", opened.read(_COMPARED))
            there |= {name.decode() for name in names}
    if there and tag.isascii() and tag not in there:
        meant = f"; rowTag {near} is meant?" if (near := likely_leaf(tag, there)) else ""
        _LOG.warning("noticed in %s: no element is a %s; there are %s%s", static.name, tag, few(sorted(there)), meant)


_COMPRESSED = {".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate"}


class SourceInputs:
    """The inputs of a plan, each with its state."""

    def __init__(
        self,
        engine: Engine,
        states: Iterable[tuple[Node, OperatorState]],
        names: Mapping[Node, str],
        documents: Store,
        dead_letters: LocalPlace,
        declared: Sequence[Declared] = (),
    ) -> None:
        """Restore the inputs from their states.

        Args:
            engine: What computes tuples.
            states: The nodes of the plan, with their recorded states.
            names: The names of the nodes.
            documents: Where tasks find the names of the restricted attributes, in a folder for each source.
            dead_letters: Directory for items that are set aside.
            declared: The punctuations that were declared up to now.
        """
        self._streams: dict[Node, SourceInput] = {}
        self._static: dict[Node, StaticInput] = {}
        self._names = names
        for node, state in states:
            if isinstance(scan := node.operator, Scan):
                name = names[node]
                of_it = documents.below(name), declared
                self._streams[node] = SourceInput(engine, scan, state, dead_letters, name, *of_it)
            elif isinstance(node.operator, Static):
                self._static[node] = StaticInput(engine, node.operator, state)
        self._all: dict[Node, SourceInput | StaticInput] = {**self._streams, **self._static}
        self._by_name = {names[node]: source for node, source in self._streams.items()}

    def __contains__(self, node: Node) -> bool:
        return node in self._all

    def begin(
        self, slice_id: int, ranges: Sequence[StagedRange], declared: Sequence[Declared] = ()
    ) -> dict[Node, Slice]:
        """The slices of all inputs, or their first parts. Raises the same errors as `SourceInput.slice`."""
        came = {
            node: source.slice(slice_id, [r for r in ranges if r.source == self._names[node]], declared)
            for node, source in self._streams.items()
        }
        return {**came, **{node: source.slice() for node, source in self._static.items()}}

    @property
    def have_more(self) -> bool:
        """Whether the current slice has another part."""
        return any(source.has_more for source in self._streams.values())

    def part(self) -> dict[Node, Slice]:
        """The next parts of the current slice."""
        came = {node: source.part() for node, source in self._streams.items()}
        return {**came, **dict.fromkeys(self._static, Slice(None))}

    @property
    def closed(self) -> bool:
        """Whether all inputs are closed."""
        return all(source.closed for source in self._all.values())

    @property
    def items(self) -> int:
        """The number of items in the slice."""
        return sum(source.items for source in self._all.values())

    @property
    def set_aside(self) -> int:
        """The number of items in the slice that were set aside."""
        return sum(source.set_aside for source in self._all.values())

    def punctuations(self, node: Node) -> int:
        """The number of punctuations of an input in the slice."""
        return self._all[node].punctuations

    def is_closed(self, node: Node) -> bool:
        """Whether an input is closed."""
        return self._all[node].closed

    def found(self) -> dict[str, Findings]:
        """The findings in the streams in this slice, by name."""
        return {name: source.findings for name, source in self._by_name.items()}

    def closings(self) -> Callable[[Bound], bool]:
        """A test of whether a stream has closed all below a bound by now; False for streams that the plan lacks."""
        known: dict[tuple[str, str], Cut] = {}

        def has_closed(bound: Bound) -> bool:
            if bound.stream not in self._by_name:
                return False
            key = bound.stream, bound.attribute
            if key not in known:
                known[key] = self._by_name[bound.stream].closed_below(bound.attribute)
            return bool(bound.cut <= known[key])

        return has_closed

    def reached(self, name: str, attribute: str) -> Cut | None:
        """The end of the first values of an attribute that a stream has closed for ever; None if there are none."""
        return self._by_name[name].reached(attribute)

    def faulty(self, name: str, stream: int | None = None) -> str | None:
        """The document of a source, and a stream in it, that is skipped from a fault on; None if there is none."""
        return self._by_name[name].faulty.get(str(stream)) if name in self._by_name else None
