"""Name resolution: the attributes in scope at a place in a query, and the meaning of each name there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sqlglot import exp

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.expressions.dialect import call_name, named, offset
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.errors import QueryError, did_you_mean
from xmlstream.punct_ns.schema import END, START, Attribute, Schema
from xmlstream.punct_ns.slices import own
from xmlstream.punct_ns.sql_type import OpaqueType
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.functions import (
    AGGREGATES,
    OF_DOCUMENT,
    READS_THE_CLOCK,
    READS_THE_CLOCK_ALONE,
    REFUSED,
    reason_to_refuse,
)

AS_IT_GOES_OUT = own("clock")
"""Placeholder name for the time at which a group is emitted, until the group's node exists."""

_WITHOUT_BRACKETS = frozenset({"current_date", "current_timestamp"})


@dataclass(frozen=True, slots=True)
class Item:
    """Item to select: an expression over a node's attributes, and its name; None for Spark's default name."""

    name: str | None
    tree: exp.Expr


@dataclass(frozen=True, slots=True)
class Field:
    """Attribute of a node as a query sees it: with a name, which others may share, and possibly a table.

    `*` includes only `starred` fields. A `qualified` field can only be named together with its table, such as the right
    side's attribute in JOIN … USING.
    """

    name: str
    attribute: str
    table: str | None = None
    starred: bool = True
    qualified: bool = False


@dataclass(frozen=True, slots=True)
class OpenRank:
    """Rank among a relation's attributes, without a bound on the tuples per group yet.

    Attributes:
        attribute: Attribute of the rank.
        first: Makes the relation's node with the first n tuples of each group.
        every: Makes the relation's node with all tuples.
    """

    attribute: str
    first: Callable[[int], Node]
    every: Callable[[], Node]


@dataclass(frozen=True, slots=True)
class Relation:
    """Node and its fields, in the order of `*`; with an open `rank`, the node is one of several choices."""

    node: Node
    fields: tuple[Field, ...]
    rank: OpenRank | None = None
    _named: Mapping[tuple[str | None, str], list[Field]] | None = field(
        init=False, default=None, repr=False, compare=False
    )

    @staticmethod
    def of(node: Node, names: Iterable[str] | None = None) -> Relation:
        """All attributes of a node in order, with the given names or their own."""
        attributes = node.schema.names
        pairs = zip(attributes if names is None else names, attributes, strict=True)
        return Relation(node, tuple(Field(name, attribute) for name, attribute in pairs))

    def over(self, node: Node) -> Relation:
        """The same fields over another node whose attributes they are, in order."""
        pairs = zip(self.fields, node.schema.names, strict=True)
        return Relation(node, tuple(Field(field.name, attribute, field.table) for field, attribute in pairs))

    def beside(self, *others: Relation) -> Relation:
        """The fields of this relation, then those of the others; the node is this relation's."""
        return Relation(self.node, tuple(field for each in (self, *others) for field in each.fields))

    def whole(self) -> Relation:
        """The relation with all tuples, if its rank is open."""
        return self if self.rank is None else Relation(self.rank.every(), self.fields)

    @property
    def schema(self) -> Schema:
        """The fields as attributes with the fields' names, which must differ."""
        domains = (self.node.schema.attribute(field.attribute).domain for field in self.fields)
        return Schema(tuple(Attribute(f.name, domain) for f, domain in zip(self.fields, domains, strict=True)))

    def aliased(self, table: str | None, columns: tuple[str, ...] = ()) -> Relation:
        """The same relation with a table's alias, and possibly other column names."""
        names = columns or tuple(field.name for field in self.fields)
        pairs = zip(names, self.fields, strict=True)
        return replace(self, fields=tuple(Field(name, field.attribute, table) for name, field in pairs))

    def fields_of(self, table: str | None) -> tuple[Field, ...]:
        """The fields of a table; for None, all fields that need no table's name."""
        if table is None:
            return tuple(field for field in self.fields if not field.qualified)
        return tuple(field for field in self.fields if (field.table or "").lower() == table.lower())

    def find(self, name: str, table: str | None = None) -> list[Field]:
        """The fields that a name may mean; names are compared without case."""
        if self._named is None:
            named_: dict[tuple[str | None, str], list[Field]] = {}
            for each in self.fields:
                tables = [(each.table or "").lower(), *([] if each.qualified else [None])]
                for of in tables:
                    named_.setdefault((of, each.name.lower()), []).append(each)
            object.__setattr__(self, "_named", named_)
        assert self._named is not None
        return self._named.get((None if table is None else table.lower(), name.lower()), [])


def resolve(
    tree: exp.Expr, relation: Relation, text: QueryText, *, moment: bool = False, around: Relation | None = None
) -> exp.Expr:
    """A copy of the expression over the node's own attributes; with `moment`, a window means its last moment.

    A name that the relation does not know may mean an attribute of the relation `around`.

    Raises:
        QueryError: A name is unknown or ambiguous.
    """

    def resolved(node: exp.Expr) -> exp.Expr:
        if reads_the_clock(node, relation):
            hint = "compute it in a subquery: FROM (SELECT *, current_timestamp() AS came FROM s)"
            raise text.error("the current time is not supported here", node, hint)
        if isinstance(node, exp.Column) and node.name == AS_IT_GOES_OUT:
            return node
        if isinstance(node, exp.Anonymous) and call_name(node) == "window_time":
            return _last_moment(node, relation, text)
        require_no_quoted_name(node, relation, text)
        if not isinstance(node, exp.Column):
            return node
        is_around = around is not None and not knows(node, relation) and knows(node, around)
        return _attribute(node, around if is_around and around is not None else relation, text)

    whole = tree.copy()
    if moment and isinstance(whole.unnest(), exp.Column) and window_of(whole.unnest(), relation):
        whole = exp.Anonymous(this="window_time", expressions=[whole.unnest()])
    return whole.transform(resolved, copy=False)


_STANDS_FOR_A_VALUE = (exp.Alias, exp.Binary, exp.Between, exp.In, exp.Not, exp.Neg, exp.Paren, exp.Ordered, exp.Window)
_TAKES_TEXTS = (exp.DPipe, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape)


def require_no_quoted_name(node: exp.Expr, relation: Relation, text: QueryText) -> None:
    """Refuses a string in double quotes that is the name of an attribute, as PostgreSQL writes names.

    Raises:
        QueryError: The node is such a string, in a place for a value; Spark would read it as a string.
    """
    at, above = node.meta.get("start"), node.parent
    if not (isinstance(node, exp.Literal) and node.is_string and at is not None and text.text[at] == '"'):
        return
    of_groups = call_name(above) in AGGREGATES
    is_value = isinstance(above, _STANDS_FOR_A_VALUE) and not isinstance(above, _TAKES_TEXTS)
    if (above is None or of_groups or is_value) and (found := relation.find(node.name)):
        hint = f"write `{found[0].name}` for the attribute, or '{node.name}' for the string"
        raise text.error(f'"{node.name}" is a string, not the attribute {found[0].name}', at, hint)


def reads_the_clock(node: exp.Expr, relation: Relation) -> bool:
    """Whether the node is a call of the current time, and not an attribute."""
    if isinstance(node, exp.Anonymous):
        return not node.expressions and call_name(node) in READS_THE_CLOCK | READS_THE_CLOCK_ALONE
    if not isinstance(node, exp.Column) or len(node.parts) > 1 or node.this.args.get("quoted"):
        return False
    return node.name.lower() in _WITHOUT_BRACKETS and not relation.find(node.name)


AFTER_WHERE = ("expressions", "group", "having")
"""Clauses of a SELECT that are computed after WHERE: its items, GROUP BY and HAVING."""


def trees_of(select: exp.Select, clauses: Iterable[str] = AFTER_WHERE) -> list[exp.Expr]:
    """The expressions in some clauses of a SELECT."""
    parts = (select.args.get(clause) for clause in clauses)
    return [tree for part in parts for tree in (part if isinstance(part, list) else [part]) if tree is not None]


def clock_calls(trees: Iterable[exp.Expr], relation: Relation) -> list[exp.Expr]:
    """The calls of the current time in expressions."""
    return [node for tree in trees for node in tree.walk() if reads_the_clock(node, relation)]


def window_of(column: exp.Expr, relation: Relation) -> tuple[Field, Field] | None:
    """The start and the end of the window that a name means; None if it means an attribute or nothing."""
    if not isinstance(column, exp.Column):
        return None
    parts = _parts(column)
    names = [part.name for part in parts]
    if len(parts) > 2 or relation.find(names[-1], names[0] if len(names) > 1 else None):
        return None
    found = [relation.find(f"{names[-1]}{end}", names[0] if len(names) > 1 else None) for end in (START, END)]
    return (found[0][0], found[1][0]) if [len(each) for each in found] == [1, 1] else None


def _last_moment(call: exp.Anonymous, relation: Relation, text: QueryText) -> exp.Expr:
    """The last moment of a window, like Spark's window_time."""
    argument = call.expressions[0] if len(call.expressions) == 1 else None
    if argument is None or (found := window_of(argument.unnest(), relation)) is None:
        hint = "write window_time(window) in a query around the one that groups by window(…)"
        raise text.error("window_time needs a window", call, hint)
    microsecond = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("MICROSECOND"))
    return exp.paren(exp.Sub(this=named(found[1].attribute), expression=microsecond))


def _parts(column: exp.Column) -> list[exp.Identifier]:
    return [part for part in column.parts if isinstance(part, exp.Identifier)]


def knows(column: exp.Column, relation: Relation) -> bool:
    """Whether a name means an attribute of the relation, or several; `a.b` means a field only of a nested attribute."""
    found, rest = _found(column, relation)
    if found and rest:
        return isinstance(relation.node.schema.attribute(found[0].attribute).domain.sql, OpaqueType)
    return bool(found) or window_of(column, relation) is not None


def _found(column: exp.Column, relation: Relation) -> tuple[list[Field], list[exp.Identifier]]:
    """The fields that a name may mean, and the rest of the name, which are fields of a structure."""
    parts = _parts(column)
    for table, until in [(True, 2), (False, 1), (True, 3), (False, 2)]:
        if len(parts) >= until:
            name = ".".join(part.name for part in parts[table:until])
            if found := relation.find(name, parts[0].name if table else None):
                return found, parts[until:]
    return [], parts


def _attribute(column: exp.Column, relation: Relation, text: QueryText) -> exp.Expr:
    """The meaning of a name: an attribute, possibly after its table's name, and before fields of a structure."""
    found, rest = _found(column, relation)
    if not found and (window := window_of(column, relation)) is not None:
        ends = [exp.Literal.string("start"), named(window[0].attribute)]
        ends += [exp.Literal.string("end"), named(window[1].attribute)]
        return exp.Anonymous(this="named_struct", expressions=ends)
    if len(found) != 1:
        raise _unclear(column, found, relation, text)
    attribute: exp.Expr = named(found[0].attribute)
    if (at := offset(column)) is not None:
        attribute.meta["start"] = at
    for part in rest:
        attribute = exp.Dot(this=attribute, expression=exp.to_identifier(part.name, quoted=True))
    return attribute


def _unclear(column: exp.Column, found: list[Field], relation: Relation, text: QueryText) -> QueryError:
    written = ".".join(part.name for part in column.parts)
    if found:
        tables = [f"{field.table}.{field.name}" for field in found if field.table]
        hint = f"write one of {', '.join(tables)}" if len(set(tables)) > 1 else "rename them with AS"
        return text.error(f"{written} is ambiguous: several attributes have this name", column, hint)
    is_bare = len(column.parts) == 1 and not column.this.args.get("quoted")
    if is_bare and written.lower() in REFUSED and (refused := reason_to_refuse(written)):
        return text.error(refused[0], column, refused[1])
    if any(part.name.lower() == "_metadata" for part in column.parts):
        return text.error(f"there is no attribute {written}", column, OF_DOCUMENT)
    if call_name(column.parent) in ("date_part", "date_trunc", "datepart") and column.arg_key == "expressions":
        hint = (
            f"write '{written}' in quotes"
            if "trunc" in call_name(column.parent)
            else f"write extract({written} FROM ts)"
        )
        return text.error(f"there is no attribute {written}", column, hint)
    names = list(dict.fromkeys(field.name for field in relation.fields if field.starred))
    hint = did_you_mean(written, names, f"there are {', '.join(names)}")
    if bare := written.strip("\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}“”„‚«»"):
        hint = hint if bare == written else f"write '{bare}' in straight quotes"
    return text.error(f"there is no attribute {written}", column, hint)
