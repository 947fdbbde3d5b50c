"""The option `punctuate` of a stream, parsed from text: rules that add punctuations to the source.

The rules are those of `xmlstream.operators.punctuators`:

    order of ts, per sid, slack 10s, max_ahead 5m
    clock of ts, delay 2m
    roster of sid (S01, S02), order of hour, slack 1
    roster of sid (S01, S02)
    roster of sid from senders, order of hour
    end of auction, end of region, when status = 'closed'
    end of sid, when kind = 'logout', or after 30m of ts
    end of tx after n, counting kind = 'row'

`;` separates rules, `,` separates their parts. A distance for a timestamp has a unit, as in `30s`, `10m`, `2h`; a
distance for a date is a number of days.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from xmlstream.dataclasses import replace
from xmlstream.operators.expressions.type_rules import lossless_cast
from xmlstream.operators.punctuate import Punctuate, Streams, Ungrammatical
from xmlstream.operators.punctuators.count import ByCount
from xmlstream.operators.punctuators.distance import Distance
from xmlstream.operators.punctuators.order import ByClock, ByOrder
from xmlstream.operators.punctuators.predicate import ByPredicate
from xmlstream.operators.punctuators.roster import ByRoster, Listed
from xmlstream.operators.punctuators.rule import Rule
from xmlstream.plan.nodes import Node, Scan, Static, leaf
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.notation import parse_pattern
from xmlstream.punct_ns.numeric_type import DecimalType, FloatType
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.schema import Schema, split_name
from xmlstream.punct_ns.slices import STREAM
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.punct_ns.temporal_type import TimestampType
from xmlstream.punct_ns.type_names import split_outside
from xmlstream.sources.xml.options.formats import seconds

PUNCTUATE = "punctuate"

_RULE_HINT = (
    "a rule is `order of ts, per sid, slack 10s, max_ahead 5m`, `clock of ts, delay 2m`, "
    "`roster of sid (S01, S02), order of hour, slack 1`, `roster of sid from senders`, "
    "`end of sid, when kind = 'logout', or after 30m of ts` or `end of tx after n, counting kind = 'row'`"
)


def punctuated(node: Node, text: str) -> Node:
    """A source, punctuated by rules; its option `ungrammatical` decides how to treat tuples that violate them.

    Raises:
        UsageError, QueryError: A rule cannot be read, or does not fit the source.
    """
    # Counts stand above what may close their groups earlier, which they then forget.
    rules = sorted(rules_of(text, node.schema), key=lambda rule: isinstance(rule, ByCount))
    return ruled(node, rules, _ungrammatical(node))


def _ungrammatical(node: Node) -> Ungrammatical:
    scan = leaf(node).operator
    assert isinstance(scan, Scan)
    return scan.options.ungrammatical


def ruled(node: Node, rules: Sequence[Rule], ungrammatical: Ungrammatical) -> Node:
    """A source, or any other node, punctuated by rules; a source of many document streams in each of these.

    Raises:
        UsageError, QueryError: A rule does not fit it.
    """
    if isinstance(node.operator, Streams):
        return _each_punctuated(node, rules, ungrammatical)
    below, is_source = node, True
    while len(below.inputs) == 1 and not isinstance(below.operator, Streams):
        is_source, (below,) = is_source and isinstance(below.operator, Punctuate), below.inputs
    if not isinstance(below.operator, Streams):
        return _ruled(node, rules, ungrammatical)
    if not is_source:
        raise QueryError(
            "a rule needs the order of a source, which many document streams together have not",
            hint="punctuate the source itself, by its option punctuate: the rule holds in each stream",
        )
    return Node(node.operator, (ruled(node.inputs[0], rules, ungrammatical),), node.label)


def _ruled(node: Node, rules: Iterable[Rule], ungrammatical: Ungrammatical) -> Node:
    for rule in rules:
        node = Node(Punctuate(rule, ungrammatical), (node,), "punctuate")
    return node


def _each_punctuated(node: Node, rules: Sequence[Rule], ungrammatical: Ungrammatical) -> Node:
    """A source of many document streams: a rule holds in each of them, a roster above all.

    With a roster, each member is in order by itself, and what it closes in its stream is closed for it everywhere.
    """
    streams, below = node.operator, node.inputs[0]
    assert isinstance(streams, Streams)
    rosters = [rule for rule in rules if isinstance(rule, ByRoster)]
    orders = [ByOrder(each.attribute, each.slack, None, each.member) for each in rosters if each.attribute is not None]
    others = [rule for rule in rules if not isinstance(rule, ByRoster)]
    below = _ruled(below, (rule.of_each(STREAM) for rule in (*orders, *others)), ungrammatical)
    keys = tuple(dict.fromkeys([*streams.rule.keys, *((each.member,) for each in rosters)]))
    joined = replace(streams, rule=replace(streams.rule, keys=keys), positions=streams.positions or bool(rosters))
    whole = Node(joined, (below,), node.label)
    return _ruled(whole, (replace(each, attribute=None, slack=None) for each in rosters), ungrammatical)


def with_domains(node: Node, text: str) -> Node:
    """A source with what static tables list as the domains of some attributes: `sid from senders`.

    Raises:
        UsageError: There is no such attribute.
    """
    rules = []
    for part in split_outside(text, ",", quotes=_QUOTES):
        name, listed = split_name(part)
        table = _FROM.fullmatch(listed)
        assert table is not None
        attribute = node.schema.attribute(name)
        column = (table["column"] or attribute.name).strip("`")
        rules.append(
            ByRoster(None, attribute.name, (), listed=Listed(table["table"].strip("`"), column), is_domain=True)
        )
    return ruled(node, rules, _ungrammatical(node))


def parted_domains(text: str) -> tuple[str, str]:
    """The domains of an option that are written out, and those that tables list: `sid from senders`.

    >>> parted_domains("hour 0.., sid from senders, hall {1, 2}")
    ('hour 0.., hall {1, 2}', 'sid from senders')
    """
    written, listed = list[str](), list[str]()
    for part in split_outside(text, ",", quotes=_QUOTES):
        is_listed = bool(part.strip()) and _FROM.fullmatch(split_name(part)[1]) is not None
        (listed if is_listed else written).append(part.strip())
    return ", ".join(written), ", ".join(listed)


def rules_of(text: str, schema: Schema) -> Iterator[Rule]:
    """The rules that a text declares for a source with this schema.

    >>> schema = Schema.parse("sid STRING, ts TIMESTAMP")
    >>> [rule.name for rule in rules_of("order of ts, per sid, slack 10s; clock of ts, delay 2m", schema)]
    ['order of ts per sid', 'clock of ts']

    Raises:
        UsageError: The text cannot be read.
    """
    for written in written_rules(text):
        parts = _Parts(written)
        # A roster also has `order of`, so it is tried first.
        read = next((one for kind, one in _KINDS.items() if kind in parts.unread), None)
        if read is None:
            raise UsageError(f"the rule '{written.text}' cannot be read", hint=_RULE_HINT)
        yield read(parts, schema)
        for word, (value, *_) in parts.unread.items():
            raise UsageError(f"'{word} {value}' has no meaning in the rule '{written.text}'", hint=_RULE_HINT)


class WrittenRule(NamedTuple):
    """A rule as text, and its condition with its place in the text of the option; None without one.

    The condition follows the `word`, which is `when` or `counting`.
    """

    text: str
    head: str
    word: str
    condition: str | None
    at: int


def written_rules(text: str) -> Iterator[WrittenRule]:
    """The rules of a text, not read yet. A single quote begins a string only in a condition.

    >>> [rule.condition for rule in written_rules("roster of sid (O'Brien), order of n; end of a, when b = ';'")]
    [None, "b = ';'"]

    Raises:
        UsageError: A bracket or a quote of the text has no end.
    """
    done = 0
    while done < len(text):
        found = _RULE.match(text, done)
        if asked := _OF_A_QUERY.search(text[done:] if found is None else found["head"]):
            raise _no_roster(asked["member"], asked["listed"], "a query")
        if found is None:
            what = f"a bracket or a quote in the rule '{text[done:].strip()}' does not end"
            raise UsageError(what, hint=_RULE_HINT)
        done, written = found.end(), found[0].removesuffix(";").strip()
        if written:
            head, condition = _with_head(found["head"], found["condition"])
            word = (found["word"] or "").lower()
            yield WrittenRule(written, head, word, condition and condition.strip(), found.start("condition"))


def _with_head(head: str, condition: str | None) -> tuple[str, str | None]:
    """Moves what follows the condition, and is not a condition, to the other parts of its rule."""
    *conditions, last = split_outside(condition or "", ",")
    if conditions and last.strip().lower().startswith(f"{_AFTER} "):
        return f"{head},{last}", ",".join(conditions)
    return head, condition


_RULE = re.compile(
    r"""(?P<head> (?: "[^"]*" | `[^`]*` | \( (?: "[^"]*" | [^()"] )* \) | [^;"`()] )*? )
        (?: ,\s*(?P<word> when | counting )\s+
            (?P<condition> (?: '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*` | [^;'"`] )* ) )?
        (?: ; | \Z)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


class _Parts:
    """The unread parts of a rule, by their first words."""

    def __init__(self, rule: WrittenRule) -> None:
        self.text = rule.text
        self.unread: dict[str, list[str]] = {}
        for part in split_outside(rule.head, ",", quotes=_QUOTES):
            word = next((word for word in _RULE_WORDS if part.strip().lower().startswith(f"{word} ")), None)
            if word is None:
                raise UsageError(f"'{part.strip()}' in the rule '{rule.text}' cannot be read", hint=_RULE_HINT)
            self.unread.setdefault(word, []).append(part.strip()[len(word) :].strip())
        if rule.condition is not None:
            self.unread[rule.word] = [rule.condition]

    def all(self, word: str) -> list[str]:
        """Takes the values of all parts with that word."""
        return self.unread.pop(word, [])

    def one(self, word: str) -> str:
        """Takes the value of the only part with that word."""
        found = self.all(word)
        if len(found) != 1:
            raise UsageError(
                f"the rule '{self.text}' has '{word}' {len(found)} times, and needs it once", hint=_RULE_HINT
            )
        return found[0]


def _order(parts: _Parts, schema: Schema) -> Rule:
    name = _name(parts.one("order of"))
    domain = schema.attribute(name).domain
    slack, ahead = ((_distance(word, parts.one(word), domain) if word in parts.unread else None) for word in _DISTANCES)
    return ByOrder(name, slack, ahead, tuple(map(_name, parts.all("per"))))


def _clock(parts: _Parts, schema: Schema) -> Rule:
    delay = timedelta(seconds=seconds("delay", parts.one("delay"))) if "delay" in parts.unread else timedelta()
    return ByClock(_name(parts.one("clock of")), delay)


def _roster(parts: _Parts, schema: Schema) -> Rule:
    member, listed = split_name(parts.one("roster of"))
    domain = schema.attribute(member).domain
    if (table := _FROM.fullmatch(listed)) is not None:
        name, column = (text and text.strip("`") for text in (table["table"], table["column"]))
        of = Listed(name, column or schema.attribute(member).name)
        return _in_order(ByRoster(None, member, (), listed=of), parts, schema)
    is_list = listed.startswith("(") and listed.endswith(")")
    try:
        names = split_outside(listed[1:-1], ",", quotes=_QUOTES) if is_list else []
        members = [parse_pattern(each, domain) for each in names]
    except ValueError:
        members = []
    roster = [one.value for one in members if isinstance(one, Constant) and one.value is not None]
    if not roster or len(roster) < len(members):
        what = f"'roster of {member}' needs a list of {domain.type} values in parentheses, not '{listed}'"
        raise UsageError(what, hint=_RULE_HINT)
    for each in map(str.strip, names):
        if len(each) > 1 and each[0] == each[-1] == "'":
            hint = f"write {each[1:-1] or 'the name'}; a name with a comma stands in double quotes"
            raise UsageError(f"{each} on the roster of {member} has single quotes around it", hint=hint)
    return _in_order(ByRoster(None, member, tuple(roster)), parts, schema)


def _in_order(roster: ByRoster, parts: _Parts, schema: Schema) -> Rule:
    """The roster, whose members also close values by an order if the rule has one."""
    if "order of" not in parts.unread:
        return roster
    order = _name(parts.one("order of"))
    slack = _distance("slack", parts.one("slack"), schema.attribute(order).domain) if "slack" in parts.unread else None
    return replace(roster, attribute=order, slack=slack)


def _no_roster(member: str, listed: str, what: str, table: str = "senders") -> UsageError:
    hint = (
        f"write the names, as in roster of {member} (S01, S02), or roster of {member} from {table}, a static table; "
        "a member of that name stands in double quotes"
    )
    return UsageError(f"'roster of {member} {listed}' names {what}, and a roster is a list of its members", hint=hint)


def with_lists(node: Node, table_of: Callable[[str], Node | None]) -> Node:
    """A table whose rosters know the leaf that reads their list, as far as a static table has it.

    Raises:
        QueryError: There is no such table, it is not static, has no such column, or one of another type.
    """
    below = tuple(with_lists(each, table_of) for each in node.inputs)
    operator = node.operator
    if isinstance(operator, Punctuate) and isinstance(rule := operator.rule, ByRoster) and rule.listed is not None:
        found = _list_of(rule, rule.listed, table_of(rule.listed.name), node.schema.attribute(rule.member).domain)
        operator = replace(operator, rule=replace(rule, listed=found))
    elif below == node.inputs:
        return node
    return Node(operator, below, node.label)


def _list_of(rule: ByRoster, listed: Listed, table: Node | None, domain: Domain) -> Listed:
    """The list with the leaf that reads it; `domain` is that of the members."""
    of = f"'{rule.name}'"
    if table is None:
        hint = (
            f"CREATE TABLE {listed.name} ({listed.column} {domain.type}) USING csv OPTIONS (path '…') declares it; in"
            f" Python .punctuate('{rule.name}', tables={{'{listed.name}': frame}}) gives it"
        )
        raise QueryError(f"{of}: there is no static table {listed.name}", hint=hint)
    if not isinstance(table.operator, Static):
        hint = f"a static table is USING csv, parquet or another; or write roster of {rule.member} (S01, S02)"
        raise QueryError(f"{of}: {listed.name} is a stream, and no list", hint=hint)
    there = table.operator.schema
    if listed.column.lower() not in map(str.lower, there.names):
        hint = f"name the column: roster of {rule.member} from {listed.name}.{there.names[0]}"
        raise QueryError(f"{of}: {listed.name} has no column {listed.column}", hint=hint)
    column = there.attribute(listed.column)
    if column.domain.type != domain.type and lossless_cast(column.domain, domain.type) is None:
        what = f"{of}: {column.name} of {listed.name} is {column.domain.type}, and {rule.member} is {domain.type}"
        raise QueryError(what, hint=f"declare {column.name} {domain.type} in {listed.name}")
    return replace(listed, column=column.name, table=table.operator)


def require_no_table(text: str, tables: Container[str]) -> None:
    """Refuses a roster whose only member is the name of a table or a view, in lower case, perhaps with a column.

    Raises:
        UsageError: There is one.
    """
    for rule in written_rules(text):
        for part in split_outside(rule.head, ",", quotes=_QUOTES):
            found = _ONE_NAME.fullmatch(part)
            if found and found["table"].strip("`").lower() in tables:
                raise _no_roster(found["member"], found["listed"], f"the table {found['table']}", found["table"])


_ROSTER = r"\broster\s+of\s+(?P<member>`[^`]+`|[^\s(]+)\s*"

_FROM = re.compile(r"from\s+(?P<table>\w+|`[^`]+`)(\s*\.\s*(?P<column>\w+|`[^`]+`))?\s*", re.IGNORECASE)
"""The table, and perhaps its column, that lists the members of a roster."""

_ONE_NAME = re.compile(rf"\s*{_ROSTER}(?P<listed>\(\s*(?P<table>\w+|`[^`]+`)(\.(\w+|`[^`]+`))?\s*\))\s*", re.IGNORECASE)
"""A roster of one name without double quotes, which may be that of a table."""

_OF_A_QUERY = re.compile(
    rf"{_ROSTER}(?P<listed>[\s(]*(SELECT\s|WITH\s.*\bAS\s*\(|FROM\s.*\bSELECT\s|VALUES\s*\(|TABLE\s+\w+\s*\)).*)",
    re.IGNORECASE | re.DOTALL,
)
"""A roster that is a query; a name that reads so is written in double quotes."""


def _end(parts: _Parts, schema: Schema) -> Rule:
    ended = [split_name(each) for each in parts.all("end of")]
    counts = [rest[len("after ") :] for _, rest in ended if rest.lower().startswith("after ")] + parts.all("after")
    if counts:
        return _count(tuple(name for name, _ in ended), counts, parts)
    group = tuple(_alone(name, rest) for name, rest in ended)
    if _AFTER not in parts.unread:
        return ByPredicate(parts.one("when"), group)
    when = parts.one("when") if "when" in parts.unread else None
    idle, of, time = parts.one(_AFTER).partition(" of ")
    if not of:
        raise UsageError(f"'{_AFTER} {idle}' names no time", hint=f"write whose it is: {_AFTER} {idle} of ts")
    time = _name(time.strip())
    return ByPredicate(when, group, _distance(_AFTER, idle, schema.attribute(time).domain), time)


def _count(group: tuple[str, ...], counts: Sequence[str], parts: _Parts) -> Rule:
    if len(counts) > 1:
        raise UsageError(f"the rule '{parts.text}' has 'after' {len(counts)} times, and needs it once", hint=_RULE_HINT)
    text = counts[0].strip()
    if text.lstrip("+-").replace(".", "", 1).isdecimal():
        if "." in text:
            raise UsageError(f"after {text}: no number of tuples has a fraction", hint=_RULE_HINT)
        count: int | str = int(text)
    else:
        count = _name(text)
    return ByCount(group, count, parts.one("counting") if "counting" in parts.unread else None)


_KINDS: Mapping[str, Callable[[_Parts, Schema], Rule]] = {
    "roster of": _roster,
    "clock of": _clock,
    "end of": _end,
    "order of": _order,
}
_QUOTES = '`"'
"""What quotes within a rule, but for its condition: a single quote is a letter of a name."""

_DISTANCES = ("slack", "max_ahead")
_AFTER = "or after"
_RULE_WORDS = (*_KINDS, *_DISTANCES, "per", "delay", _AFTER, "after")


def _name(text: str) -> str:
    return _alone(*split_name(text))


def _alone(name: str, rest: str) -> str:
    """A name behind which nothing else stands."""
    if rest:
        raise UsageError(f"'{rest}' after {name} cannot be read", hint=_RULE_HINT)
    return name


def _distance(word: str, text: str, domain: Domain) -> Distance:
    """A distance in the attribute's units."""
    if isinstance(domain.sql, TimestampType):
        return timedelta(seconds=seconds(word, text))
    if isinstance(domain.sql, StringType):
        raise UsageError(
            f"{word} '{text}': a STRING has no distances", hint="name an attribute that is a time or a number"
        )
    try:
        number = Decimal(text)
    except InvalidOperation:
        what = f"{word} '{text}' is not a number, which an attribute of type {domain.type} needs"
        raise UsageError(what, hint=f"write a number without a unit, as in {word} 10") from None
    match domain.sql:
        case DecimalType():
            return number
        case FloatType():
            return float(number)
    return int(number) if number == int(number) else number
