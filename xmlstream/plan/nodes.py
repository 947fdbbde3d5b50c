"""A query as a plan: a directed acyclic graph of operators over sources, in which equal parts are one node.

Plans are values: the same query, from SQL or from the builder, has equal plans. A part that a query uses twice runs
once. A checkpoint identifies its plan by the result of `plain`.

The leaves are punctuated sources, tables in files, and DataFrames. The first slice reads a static table once; from then
on the table is closed:

CREATE TABLE country (name STRING, region STRING) USING csv OPTIONS (path 'countries.csv', header 'true');
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from xmlstream.dataclasses import dataclass, field, fields, is_dataclass, replace
from xmlstream.operators.behaviour import LogicalProperties, Operator, among, is_identity, promised
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.project import Project
from xmlstream.operators.punctuate import Streams
from xmlstream.operators.punctuators.streams import ByStreams
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError, UsageError, without_secrets
from xmlstream.punct_ns.schema import Attribute, Schema, written_name
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import STREAM, is_own, quoted
from xmlstream.sources.xml.options.source import SourceOptions, of_streams
from xmlstream.sources.xml.options.text_column import TextColumn

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Scan(LogicalProperties):
    """A source as a leaf of a plan.

    `options.columns` are the attributes whose values are read; punctuations have the whole schema. `measured` is the
    rate by which its joins are chosen, if a run has measured it; what is kept does not depend on it.
    """

    name: str
    options: SourceOptions
    measured: float | None = field(default=None, kw_only=True)
    declared_in: ClassVar[str] = "added"
    apart: ClassVar[Collection[str]] = ("measured",)

    def parameters(self, output: Schema) -> str:
        """Path of the source, and the attributes that are read."""
        return f"{self.options.where} ({', '.join(self.options.columns)})"

    @property
    def schema(self) -> Schema:
        """The attributes of its items: those of the options, and where its documents are many streams `STREAM`."""
        return of_streams(self.options).schema

    @property
    def rate(self) -> float:
        """How many tuples it sends, relative to other sources, as measured or declared."""
        return self.options.rate if self.measured is None else self.measured

    @property
    def declares_rate(self) -> bool:
        """Whether its option `rate` is given."""
        return "rate" in dict(self.options.given)

    def pruned(self, needed: AbstractSet[str]) -> Scan:
        """Restricts the attributes that are read to the needed ones and those in the source's schemes.

        A source without any promise is read whole: its punctuations may restrict any attribute, and may together cover
        one that no operator needs, which closes values of others. A tuple that breaks such a punctuation would go
        unnoticed if that attribute were not read. `schemes ''`, or only the end of a section, is a promise: that
        punctuations restrict no attribute.
        """
        options = self.options
        promised = {name.lower() for scheme in options.schemes for name in scheme.attributes}
        columns = [name for name in options.schema.names if name in needed or name.lower() in promised]
        columns = columns or [options.schema.names[0]]
        if not options.has_promise or tuple(columns) == options.columns:
            return self
        return replace(self, options=options.replace(columns=",".join(map(written_name, columns))))

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """The state of a source: the tuples that it has closed, and the documents that are skipped."""
        return StateSchema(from_source={"added": self.schema}, notes=[FAULTY])


@dataclass(frozen=True, slots=True)
class StreamScan(Scan):
    """A DataFrame of Spark's as a source: a stream, or a static one, which is a stream that ends.

    Attributes:
        frame: The DataFrame; None where a plan is only looked at.
        view: The name by which a session knows it; None if the program has given it.
        punctuation: The column with punctuations in the notation; None if there is none.
        texts: The column of XML texts; None if columns are attributes.
        replays: Whether its source gives a batch again as it was.
    """

    frame: DataFrame | None = None
    view: str | None = None
    punctuation: str | None = None
    texts: TextColumn | None = None
    replays: bool = True

    def parameters(self, output: Schema) -> str:
        """What it reads, and the attributes."""
        what = f"the view {self.view}" if self.view else "a DataFrame"
        inside = f", XML in {self.texts.column}" if self.texts else ""
        return f"{what}{inside} ({', '.join(self.options.columns)})"


FAULTY = "faulty"
"""The note of a source: the documents whose rest is skipped, since they have a fault, by the numbers of its streams."""

FILES, READ = "files", "read"
"""The notes of a static table: what its files were when it was read, and when that was."""


class Access:
    """The place of a table in a database with a password, which is neither compared, nor recorded, nor shown."""

    __slots__ = ("place",)

    def __init__(self, place: str) -> None:
        self.place = place


class GivenTable:
    """A table of Arrow's that a program gave; it equals only itself, as a DataFrame does."""

    def __init__(self, arrow: pa.Table) -> None:
        self.arrow = arrow


@dataclass(frozen=True, slots=True)
class Static(LogicalProperties):
    """A static table, read once: files in one of Spark's formats, a database's table, a DataFrame, or one of Arrow's.

    Under another `version` it is read again, where a run takes the query over.
    """

    name: str
    schema: Schema
    format: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    frame: DataFrame | GivenTable | None = None
    version: str = ""
    access: Access | None = field(default=None, compare=False, repr=False)
    declared_in: ClassVar[str] = "added"
    sparse: ClassVar[Collection[str]] = ("version",)

    def parameters(self, output: Schema) -> str:
        """Path of the table, and its attributes."""
        return f"{dict(self.options).get('path', 'a DataFrame')} ({', '.join(output.names)})"

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """The state of a static table: whether it has been read, when, and what its files were then."""
        return StateSchema(sets={"added": self.schema}, notes=[FILES, READ])


@dataclass(frozen=True, slots=True)
class Results(LogicalProperties):
    """The root of a plan with several results: its inputs are the results, under these names."""

    names: tuple[str, ...]

    def parameters(self, output: Schema) -> str:
        """The names of the results."""
        return ", ".join(self.names)


AnyOperator: TypeAlias = Operator | Scan | Static | Results
"""The kinds of a node: an operator, a leaf, or the root of several results."""


@dataclass(frozen=True, slots=True)
class Node:
    """An operator and its inputs, or a leaf without inputs; `label` is its name in metrics."""

    operator: AnyOperator
    inputs: tuple[Node, ...]
    label: str
    schema: Schema = field(init=False, repr=False, compare=False)
    schemes: tuple[Scheme, ...] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)
    _state: StateSchema | None = field(init=False, default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Computed once: else a shared part would be traversed twice at every level above it.
        if isinstance(self.operator, Scan):
            schema, schemes = self.operator.schema, self.operator.options.schemes
        elif isinstance(self.operator, Static):
            schema, schemes = self.operator.schema, (Scheme(()),)  # it is closed from the start
        elif isinstance(self.operator, Results):
            schema, schemes = Schema(()), ()
        else:
            schema = self.operator.schema(*self.input_schemas)
            schemes = promised(self.operator, [(node.schema, node.schemes) for node in self.inputs])
        for name in schema.names:
            if is_own(name) and name != STREAM:
                raise QueryError(f"the name {name} is reserved for internal columns", hint="rename the attribute")
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "schemes", schemes)
        object.__setattr__(self, "_hash", hash((self.operator, self.inputs, self.label)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def input_schemas(self) -> tuple[Schema, ...]:
        return tuple(below.schema for below in self.inputs)

    @property
    def state_schema(self) -> StateSchema:
        """The state that the operator, or the leaf, keeps from slice to slice; computed once."""
        if self._state is None:
            object.__setattr__(self, "_state", self.operator.state_schema(*self.input_schemas))
        assert self._state is not None
        return self._state


def leaf(node: Node) -> Node:
    """The leaf below a node that stands, through operators of one input, above one."""
    while node.inputs:
        (node,) = node.inputs
    return node


def declared_over(node: Node) -> Schema:
    """The attributes over which a source, or a rule, keeps what it has declared (`declared_in`); its own come first."""
    return node.inputs[0].schema if node.inputs else node.schema


def results(root: Node) -> tuple[Node, ...]:
    """The nodes that emit the results of a plan: the inputs of `Results`, or the root itself."""
    return root.inputs if isinstance(root.operator, Results) else (root,)


def emitters(root: Node) -> dict[str, Node]:
    """The results of a plan that has several, by the names that readers know: of a path its last part, if distinct."""
    if not isinstance(root.operator, Results):
        return {}
    short = [PurePath(name).name or name for name in root.operator.names]
    called = short if len(set(short)) == len(short) else root.operator.names
    return dict(zip(called, root.inputs, strict=True))


def results_of(root: Node) -> dict[str, set[str]]:
    """For each result of a plan that has several, by its name, the names of the nodes that take part in it."""
    name_of = names(root)
    return {result: {name_of[below] for below in topological(node)} for result, node in emitters(root).items()}


def together(roots: Sequence[Node], called: Sequence[str]) -> Node:
    """The plan with several results, under these names; for one result its root.

    Equal parts become one object, because a comparison of equal parts that are two objects traverses both as trees,
    again at every level above.
    """
    if len(roots) == 1:
        return roots[0]
    made: dict[int, Node] = {}
    known: dict[Node, Node] = {}

    def one(node: Node) -> Node:
        if id(node) not in made:
            inputs = tuple(map(one, node.inputs))
            is_same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            again = node if is_same else Node(node.operator, inputs, node.label)
            made[id(node)] = known.setdefault(again, again)
        return made[id(node)]

    return Node(Results(tuple(called)), tuple(map(one, roots)), "results")


def topological(root: Node) -> list[Node]:
    """All nodes of a plan, each once and after its inputs; equal plans have equal orders."""
    order: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in order:
            for below in node.inputs:
                visit(below)
            order[node] = None

    visit(root)
    return list(order)


def awaited(root: Node) -> dict[Node, frozenset[str]]:
    """For each node the attributes of its output, or under its inputs' names, by whose values groups above close.

    An operator waits for its own groupings (Tucker et al. 2007, §3.1), and passes on what operators above it wait for,
    under the names that these attributes have in its inputs.
    """
    found: dict[Node, set[str]] = {node: set() for node in topological(root)}
    for node in reversed(topological(root)):
        operator, schemas, names = node.operator, node.input_schemas, among(found[node], node.schema)
        nothing = [(schema, ()) for schema in schemas]
        for condition in (operator.enabled_by(*schemas), *(model.until for model in node.state_schema.models)):
            for grouping in condition.groupings(nothing):
                found[node.inputs[grouping.input]] |= among(grouping.attributes, schemas[grouping.input])
        line = operator.lineage(names, *schemas) if schemas else None
        for i, (below, schema) in enumerate(zip(node.inputs, schemas, strict=True)):
            if line is not None:
                passed = among(line[i], schema)
            elif len(schema.names) == len(node.schema.names):  # as in a set operation, by position
                passed = frozenset(schema.names[node.schema.index(name)] for name in names)
            else:
                passed = among(names, schema)
            found[below] |= passed
            found[node] |= passed
    return {node: frozenset(names) for node, names in found.items()}


_LONGEST = 48
"""Most characters of a label in a name: each may take four bytes, and file systems allow 255 bytes."""


def names(root: Node) -> dict[Node, str]:
    """A name for each node: its label, numbered from the second of that label on (`select`, `select-2`).

    Names are distinct regardless of case, and usable as names of directories and as prefixes of file names.
    """
    given: dict[Node, str] = {}
    seen: Counter[str] = Counter()
    taken: set[str] = set()
    for node in topological(root):
        label = re.sub(r"[^\w.-]+", "_", node.label.lower()).strip(".")[:_LONGEST] or "_"
        name = label
        while name in taken or seen[label] == 0:
            seen[label] += 1
            name = label if seen[label] == 1 else f"{label}-{seen[label]}"
        taken.add(name)
        given[node] = name
    return given


def plain(root: Node) -> list[dict[str, object]]:
    """The plan as JSON, one object per node, with everything on which kept state and output depend.

    It has no options that may change from run to run, such as the size of slices and the treatment of bad input.
    """
    called = names(root)
    return [
        {
            "name": called[node],
            "operator": _plain(node.operator),
            "inputs": [called[below] for below in node.inputs],
            "schema": _plain(node.schema),
        }
        for node in topological(root)
    ]


def _plain(value: Any) -> Any:
    """Converts a value to what JSON can hold."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple() | list():
            return [_plain(part) for part in value]
        case Mapping():
            return {str(name): _plain(part) for name, part in value.items()}
        case SourceOptions():
            return value.lasting
        case Schema():
            domains = [(a.name, a.domain) for a in value]
            listed = {name: [list(map(str, d.listed))] if d.listed else [] for name, d in domains}
            return [[name, d.type, d.nullable, str(d.low), str(d.high), *listed[name]] for name, d in domains]
        case _ if is_dataclass(value):
            apart, sparse = getattr(value, "apart", ()), getattr(value, "sparse", ())
            compared = {f.name: getattr(value, f.name) for f in fields(value) if f.compare and f.name not in apart}
            parts = {name: _plain(each) for name, each in compared.items() if each or name not in sparse}
            return {"": type(value).__name__, **parts}
    return str(value)


POSTGRESQL = "postgresql"

STATIC_FORMATS = ("csv", "json", "orc", "parquet", "xml", POSTGRESQL)
"""Spark's formats that a static table can have, and tables of a database."""


def source(name: str, options: SourceOptions) -> Node:
    """A plan that reads a source."""
    scan = Node(Scan(name, options), (), name)
    if not options.is_many:
        return scan
    keys = (options.partitioned_by,) if options.partitioned_by else ()
    return Node(Streams(ByStreams(keys), options.ungrammatical), (scan,), "streams")


def static_table(name: str, format_: str, options: Mapping[str, str], ddl: str | None) -> Node:
    """A plan that reads a static table; `ddl` is Spark DDL, or None if the option `schema` has it.

    Raises:
        UsageError: There is no path, there are no columns, a column is NOT NULL, which is not checked, or an option is
            not one of a database.
    """
    folded = {key.lower(): value for key, value in options.items()}
    declared, version = folded.pop("schema", ddl), folded.pop("version", "")
    access = _access(name, folded) if format_ == POSTGRESQL else None
    if access is None and not folded.get("path"):
        raise UsageError("there is no path", hint="path names a file, a directory or a glob")
    if not declared:
        raise UsageError("there are no columns", hint="declare them, as in CREATE TABLE t (a INT, b STRING) USING …")
    schema = Schema.parse(declared)
    if strict := [attribute.name for attribute in schema if not attribute.domain.nullable]:
        raise UsageError(f"NOT NULL of {', '.join(strict)} is not checked in a static table", hint="remove NOT NULL")
    table = Static(name, schema, format_, tuple(sorted(folded.items())), version=version, access=access)
    return Node(table, (), name)


def _access(name: str, options: dict[str, str]) -> Access:
    """The place of a table in a database; without a password it is the option path, in place of url and table."""
    for option in options:
        if option not in ("url", "table"):
            raise UsageError(f"a table of {POSTGRESQL} has no option {option}", hint="it has url, table, version")
    url, table = options.pop("url", ""), options.pop("table", "") or name
    if not url:
        hint = "url names a database, as in 'postgresql://user@localhost/warehouse'; PGPASSWORD has the password"
        raise UsageError("there is no url", hint=hint)
    access = Access(f"{url}#{table}")
    options |= {"path": without_secrets(access.place)}
    return access


def static_frame(name: str, frame: DataFrame) -> Node:
    """A plan that reads a DataFrame as a static table.

    Raises:
        UsageError: The DataFrame is streaming, or two of its columns have one name.
    """
    if frame.isStreaming:
        hint = "read it with from_stream, in SQL USING stream; or use spark.read for a static one"
        raise UsageError("the DataFrame is a stream, and this reads static ones", hint=hint)
    columns = frame.schema.fields
    if len({column.name.lower() for column in columns}) < len(columns):
        raise UsageError("two columns of the DataFrame have one name", hint="rename one with withColumnRenamed")
    domains = [Domain(column.dataType.simpleString(), column.nullable) for column in columns]
    named = zip((column.name for column in columns), domains, strict=True)
    return Node(Static(name, Schema(tuple(Attribute(*pair) for pair in named)), frame=frame), (), name)


def is_endless(node: Node) -> bool:
    """Whether a source has no end that a run to the end of the input could reach: a stream of Spark's."""
    scan = node.operator
    return isinstance(scan, StreamScan) and (scan.frame is None or bool(scan.frame.isStreaming))


def documented(root: Node) -> list[Scan]:
    """The sources of a plan that lie in documents."""
    scans = [node.operator for node in topological(root) if isinstance(node.operator, Scan)]
    return [scan for scan in scans if not isinstance(scan, StreamScan)]


def out_of_order(node: Node) -> Node | None:
    """The topmost node whose tuples are not in the order of one source; None if those of the given node are."""
    while not isinstance(node.operator, Scan):
        if not node.operator.keeps_order:
            return node
        (node,) = node.inputs
    return None


def unique(name: str, taken: Collection[str]) -> str:
    """The name, or a similar one if it is taken; names are compared without case.

    >>> unique("Hour", {"hour"})
    'Hour_2'
    """
    return Names(taken).take(name)


class Names:
    """Names that are taken; they are compared without case."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in taken}
        self._last: dict[str, int] = {}

    def take(self, name: str, beside: AbstractSet[str] = frozenset()) -> str:
        """Takes a name, or a similar one if it is taken, and returns it.

        Args:
            name: The name.
            beside: Names in lower case that a similar one may not be, either.
        """
        number, free = self._last.get(name, 1), name
        while free.lower() in self._taken or (number > 1 and free.lower() in beside):
            number += 1
            free = f"{name}_{number}"
        self._last[name] = number
        self._taken.add(free.lower())
        return free


def projected(node: Node, columns: Sequence[Column]) -> Node:
    """A projection of the node to these columns; the node itself if they are its attributes in order."""
    operator = Project(tuple(columns))
    return node if is_identity(operator, node.schema) else Node(operator, (node,), "project")


def narrowed(node: Node, names: Sequence[str]) -> Node:
    """A projection of the node to some of its attributes."""
    return projected(node, [Column(node.schema.attribute(name), quoted(name), name) for name in names])


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """A projection of the node to renamed attributes: `names` maps new names to old ones."""
    sources = {name: node.schema.attribute(source) for name, source in names.items()}
    return projected(
        node, [Column(Attribute(name, of.domain), quoted(of.name), of.name) for name, of in sources.items()]
    )


def copies(result: Node, names: Mapping[Node, str]) -> dict[tuple[str, str], str]:
    """The source attributes that a result copies: from (source, attribute) to the attribute's name in the result.

    Includes only attributes that reach the result through operators that pass each tuple and each punctuation in the
    slice in which it comes: values that the source has closed are then closed in the result, before later tuples.
    """
    match result.operator:
        case Scan():
            return {(names[result], name): name for name in result.schema.names}
        case Static() | Results():
            return {}
        case operator:
            if len(result.inputs) != 1:
                return {}
            (below,) = result.inputs
            if result.state_schema.logs or result.state_schema.notes:
                return {}
            known = copies(below, names)
            (terms,) = operator.predicate_terms(below.schema)
            called = {terms[name.lower()]: name for name in result.schema.names if name.lower() in terms}
            return {which: called[quoted(name)] for which, name in known.items() if quoted(name) in called}
