"""Schemas: the attributes of a stream in order, with their names and domains.

A punctuation restricts attributes, but Spark's windows are structures of two moments. So a window is represented here
by two adjacent attributes, its start and its end, `w.start` and `w.end`; in XML they are two elements in one, `w`.
Both stand for one structure, as in `window.start`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.punct_ns.domain import BLANKS, Domain
from xmlstream.punct_ns.errors import UsageError, did_you_mean, nearest
from xmlstream.punct_ns.temporal_type import TimestampType
from xmlstream.punct_ns.type_names import ALIASES, TYPES, split_outside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from xmlstream.punct_ns.sql_type import SqlType, Value


_NAME = re.compile(r"[ \t\r\n]*(?:`((?:[^`]|``)+)`|([^\s`:,]+))(?:[ \t\r\n]*:|[ \t\r\n]+|\Z)")
_TAIL = re.compile(
    r"(?is)(?P<type>.*?)(?P<not_null>\s+NOT\s+NULL)?(?:\s+COMMENT\s+(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"))?\s*"
)
_TYPE = re.compile(
    rf"""(?isx) {"|".join([*TYPES, *ALIASES])}
    | (?: DECIMAL | DEC | NUMERIC ) (?: \s* \( [\d\s,]* \) )?
    | (?: CHAR | VARCHAR | TIME | GEOMETRY | GEOGRAPHY ) (?: \s* \( .* \) )?
    | BINARY | VOID | VARIANT | INTERVAL \b [\w\s]* | STRING \s+ COLLATE \s+ \w+
    | (?: ARRAY | MAP | STRUCT ) \s* < .* >"""
)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: its name and its domain."""

    name: str
    domain: Domain


@dataclass(frozen=True, slots=True)
class Schema:
    """A sequence of attributes with distinct `names`; like Spark, names are compared without regard to case.

    >>> schema = Schema.parse("sid STRING, hour INT NOT NULL, min INT", domains="hour 0.., min 0..59")
    >>> schema.names, schema.index("HOUR"), schema[2].domain.high
    (('sid', 'hour', 'min'), 1, 59)
    """

    attributes: tuple[Attribute, ...]
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _places: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(attribute.name for attribute in self.attributes))
        places: dict[str, int] = {}
        object.__setattr__(self, "_places", places)
        for place, name in enumerate(self.names):
            if places.setdefault(name.lower(), place) != place:
                raise UsageError(f"two attributes are named {name}", hint="rename one; case does not count")

    def __hash__(self) -> int:
        # Of the names alone: it is asked for each expression over the schema.
        return hash(self.names)

    @staticmethod
    def of(**domains: Domain | str) -> Schema:
        """Returns the schema of these attributes, given as domains or type names.

        >>> Schema.of(hour="INT", value=Domain("DOUBLE", nullable=False)).ddl()
        '`hour` INT, `value` DOUBLE NOT NULL'
        """
        return Schema(tuple(Attribute(n, Domain(d) if isinstance(d, str) else d) for n, d in domains.items()))

    @staticmethod
    def parse(ddl: str, domains: str = "") -> Schema:
        """Parses Spark DDL, with bounds declared by `domains`; UsageError if unreadable.

        Bounds are inclusive and do not imply NOT NULL.

        >>> Schema.parse("`a b` DECIMAL(10,2) COMMENT 'x, y', l ARRAY<STRUCT<x: INT>>").names
        ('a b', 'l')
        """
        attributes = tuple(_attribute(column) for column in split_outside(ddl, ",") if column.strip())
        if not attributes:
            raise UsageError("a schema without attributes", hint='for example "sid STRING, hour INT NOT NULL"')
        return Schema(attributes).bounded(domains)

    def bounded(self, domains: str, written: Callable[[str, Domain], str] = lambda text, domain: text) -> Schema:
        """Returns this schema with declared bounds or lists, as in `hour 0.., min 0..59, sid {S1,S2}`.

        Null is a value of a list only if it is listed. Raises UsageError if the text is unreadable. `written` maps a
        text to what an attribute's domain reads.

        >>> Schema.of(min="INT").bounded("min 0..59")["min"].domain
        Domain(type='INT', nullable=True, low=0, high=59, listed=None)
        >>> Schema.of(sid="STRING").bounded("sid {S1, S2}").ddl()
        '`sid` STRING NOT NULL'
        """
        declared: dict[int, Attribute] = {}
        for text in split_outside(domains, ",", quotes='`"'):
            if not text.strip():
                continue
            name, bounds = split_name(text)
            index = self.index(name)
            if index in declared:
                raise UsageError(f"the domain of {name} is declared twice")
            known = self[index]
            try:
                bounds = written(bounds, known.domain)
                if bounds.startswith("{"):
                    declared[index] = Attribute(known.name, _listed(bounds, known.domain))
                    continue
                low, high = parsed_bounds(bounds, known)
                declared[index] = Attribute(known.name, Domain(known.domain.type, known.domain.nullable, low, high))
            except ValueError as reason:
                raise UsageError(f"'{text.strip()}' is not a valid domain: {reason}") from None
        return Schema(tuple(declared.get(i, a) for i, a in enumerate(self.attributes)))

    def place(self, name: str) -> int | None:
        """Returns the index of the attribute of that name; None if there is none.

        >>> Schema.of(sid="STRING", hour="INT").place("minute")
        """
        return self._places.get(name.lower())

    def index(self, name: str) -> int:
        """Returns the index of the attribute of that name; UsageError if there is none.

        >>> Schema.of(sid="STRING", hour="INT").index("Hour")
        1
        """
        place = self.place(name)
        if place is not None:
            return place
        what = f"there is no attribute {name}; there are {', '.join(self.names)}"
        raise UsageError(what, hint=did_you_mean(name, self.names) or None)

    def attribute(self, name: str) -> Attribute:
        """Returns the attribute of that name; UsageError if there is none.

        >>> Schema.of(hour="INT").attribute("hour").domain.type
        'INT'
        """
        return self.attributes[self.index(name)]

    def only(self, names: Iterable[str]) -> Schema:
        """Returns the schema of the attributes of these names, in this order; UsageError if there is none of a name.

        >>> Schema.of(sid="STRING", hour="INT", min="INT").only(["Min", "sid"]).names
        ('min', 'sid')
        """
        return Schema(tuple(map(self.attribute, names)))

    def never_null_of(self, *others: Schema) -> Schema:
        """Returns this schema with each attribute NOT NULL that is NOT NULL in one of the others, by position.

        >>> Schema.of(a="INT", b="INT").never_null_of(Schema.parse("x INT NOT NULL, y INT")).ddl()
        '`a` INT NOT NULL, `b` INT'
        """
        never = [any(not other[i].domain.nullable for other in others) for i in range(len(self))]
        pairs = zip(self, never, strict=True)
        return Schema(tuple(Attribute(a.name, replace(a.domain, nullable=False)) if no else a for a, no in pairs))

    def ddl(self) -> str:
        """Writes the schema as Spark DDL with quoted names; Spark does not know declared bounds.

        >>> Schema.parse("hour INT NOT NULL, b BIGINT").ddl()
        '`hour` INT NOT NULL, `b` BIGINT'
        """
        return ", ".join(
            f"`{a.name.replace('`', '``')}` {a.domain.type}{'' if a.domain.nullable else ' NOT NULL'}" for a in self
        )

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def __getitem__(self, which: int | str) -> Attribute:
        return self.attributes[which] if isinstance(which, int) else self.attribute(which)


def split_name(text: str) -> tuple[str, str]:
    """Splits off a leading name, perhaps in back quotes; UsageError if there is none.

    >>> split_name(" `a b` 0..59 ")
    ('a b', '0..59')
    """
    found = _NAME.match(text)
    if not found:
        raise UsageError(f"'{text.strip()}' does not begin with the name of an attribute")
    name = found[1].replace("``", "`") if found[1] else found[2]
    return name, text[found.end() :].strip(BLANKS)


def written_name(name: str) -> str:
    """The name as `split_name` reads it, in back quotes where it needs them.

    >>> written_name("hour"), written_name("a b")
    ('hour', '`a b`')
    """
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name.replace('`', '``')}`"


def parsed_bounds(text: str, attribute: Attribute) -> tuple[Value | None, Value | None]:
    """Parses inclusive bounds `low..high`, either absent; UsageError if unreadable.

    >>> parsed_bounds("0..", Attribute("hour", Domain("INT")))
    (0, None)
    """
    low, dots, high = text.partition("..")
    try:
        if not dots:
            raise ValueError(f"bounds are written low..high, a list as {attribute.name} {{a, b}}")
        domain = attribute.domain
        return domain.read(low.strip(BLANKS)) if low.strip(BLANKS) else None, (
            domain.read(high.strip(BLANKS)) if high.strip(BLANKS) else None
        )
    except ValueError as reason:
        raise UsageError(f"'{text}' are no bounds of {attribute.name}: {reason}") from None


def _listed(text: str, domain: Domain) -> Domain:
    """Returns the domain of the values in a list, written as in a pattern; ValueError if it cannot be read."""
    if not text.endswith("}"):
        raise ValueError("a list ends with }")
    texts = [part.strip(BLANKS) for part in split_outside(text[1:-1], ",", quotes='"')]
    plain = [part for part in texts if part and part != "null"]
    if quoted := next((part for part in plain if len(part) > 1 and part[0] == part[-1] == "'"), None):
        raise ValueError(f"{quoted} has single quotes around it; a value with a comma stands in double quotes")
    values = (part[1:-1].replace('""', '"') if len(part) > 1 and part[0] == part[-1] == '"' else part for part in plain)
    if "null" in texts and not domain.nullable:
        raise ValueError("null is listed, but the attribute is NOT NULL")
    return Domain(domain.type, nullable="null" in texts, listed=tuple(map(domain.read, values)))


def _attribute(column: str) -> Attribute:
    name, rest = split_name(column)
    tail = _TAIL.fullmatch(rest)
    if not tail or not tail["type"].strip():
        raise UsageError(f"'{column.strip()}' declares no attribute", hint="a name, then a type, then perhaps NOT NULL")
    if not _TYPE.fullmatch(tail["type"].strip()):
        written = tail["type"].strip().upper()
        meant = "TIMESTAMP" if written == "DATETIME" else nearest(written, [*TYPES, "DECIMAL"])
        hint = f"did you mean {meant}?" if meant and " " not in written else "commas separate columns"
        raise UsageError(f"{tail['type'].strip()} in '{column.strip()}' is not a type", hint=hint)
    try:
        return Attribute(name, Domain(tail["type"], nullable=not tail["not_null"]))
    except ValueError as reason:
        raise UsageError(f"'{column.strip()}' declares no attribute: {reason}") from None


def schema_within(type_: SqlType) -> Schema | None:
    """Returns the schema of a structure's fields; None for another type. UsageError if a field is unreadable.

    >>> schema_within(Domain("STRUCT<a: INT, b: ARRAY<STRING> NOT NULL>").sql).ddl()
    '`a` INT, `b` ARRAY<STRING> NOT NULL'
    """
    return Schema.parse(type_.name.partition("<")[2].rpartition(">")[0]) if type_.kind == "STRUCT" else None


START, END = ".start", ".end"

_DECLARED = re.compile(r"(?i)struct<\s*start\s*:?\s*(timestamp(?:_ntz)?)\s*,\s*end\s*:?\s*\1\s*>")


def windows(schema: Schema) -> dict[int, str]:
    """Maps the index of each window's start to the window's name: two adjacent attributes of one timestamp type.

    >>> windows(Schema.parse("a INT, `w.start` TIMESTAMP, `w.end` TIMESTAMP, `v.start` TIMESTAMP"))
    {1: 'w'}
    """
    found = {}
    for i, (start, end) in enumerate(zip(schema.attributes, schema.attributes[1:], strict=False)):
        name = start.name.removesuffix(START)
        is_pair = name and f"{name}{START}" == start.name and f"{name}{END}" == end.name
        if is_pair and start.domain.type == end.domain.type and isinstance(start.domain.sql, TimestampType):
            found[i] = name
    return found


def flattened(schema: Schema) -> Schema:
    """Returns the schema with two attributes for each one declared as a window structure.

    >>> flattened(Schema.parse("w STRUCT<start: TIMESTAMP, end: TIMESTAMP> NOT NULL, a INT")).ddl()
    '`w.start` TIMESTAMP NOT NULL, `w.end` TIMESTAMP NOT NULL, `a` INT'
    """
    found: list[Attribute] = []
    for attribute in schema:
        declared = _DECLARED.fullmatch(attribute.domain.type)
        if declared is None:
            found.append(attribute)
        else:
            domain = Domain(declared[1], attribute.domain.nullable)
            found += (Attribute(f"{attribute.name}{end}", domain) for end in (START, END))
    return Schema(tuple(found))


def structured(schema: Schema) -> list[tuple[str, str]]:
    """Returns the names and types that Spark uses for a schema: a window is the structure that it stands for.

    >>> structured(Schema.parse("a INT, `w.start` TIMESTAMP, `w.end` TIMESTAMP"))
    [('a', 'INT'), ('w', 'struct<start:TIMESTAMP,end:TIMESTAMP>')]
    """
    begins = windows(schema)
    shown = []
    for i, attribute in enumerate(schema):
        if i in begins:
            type_ = attribute.domain.type
            shown.append((begins[i], f"struct<start:{type_},end:{type_}>"))
        elif i - 1 not in begins:
            shown.append((attribute.name, _with_null(attribute)))
    return shown


def leaves(schema: Schema) -> list[str]:
    """Returns the XML path of each attribute: its own name, or one of two elements inside that of a window.

    >>> leaves(Schema.parse("a INT, `w.start` TIMESTAMP, `w.end` TIMESTAMP"))
    ['a', 'w/start', 'w/end']
    """
    begins = windows(schema)
    places = list(schema.names)
    for i, name in begins.items():
        places[i], places[i + 1] = f"{name}/start", f"{name}/end"
    return places


def _with_null(attribute: Attribute) -> str:
    return f"{attribute.domain.type}{'' if attribute.domain.nullable else ' NOT NULL'}"
