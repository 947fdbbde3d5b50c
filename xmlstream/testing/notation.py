"""Streams on one line, as the papers' tables have them: `(5, 77.0) <5, *> | (6, 75.5)`.

Tuples stand in parentheses, punctuations in angle brackets, a bar ends a slice; blanks do not count. Values are written
as in punctuations: `null`, `"a, b"` in double quotes (doubled inside), arrays as JSON. A lifespan follows its
punctuation: `<5, *> for PT1H`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from xmlstream.punct_ns.errors import NotationError, XmlStreamError
from xmlstream.punct_ns.notation import format_pattern, split_patterns
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema

Tuple = tuple[object, ...]
Item = Tuple | Punctuation

_ITEM = re.compile(
    r"""\s*(?: (?P<bar>\|) | \( (?P<tuple>(?:[^")]|"[^"]*")*) \)
        | (?P<punctuation> < (?:[^">]|"[^"]*")* >
            (?: \s+ (?: (?:for|until) \s+ [^\s|(<]+ | while \s+ [^|(<]+? \s* <=? \s* (?:"[^"]*"|[^\s|(<]+) ) )* ) )""",
    re.VERBOSE,
)
_SHOWN = 40


def slices(text: str, schema: Schema) -> list[list[Item]]:
    """The slices of a stream, each a list of items in order.

    Raises:
        NotationError: A part is not an item, or not one of the schema; with its place.

    >>> schema = Schema.parse("hour INT, temp DOUBLE")
    >>> [[str(item) for item in items] for items in slices("(5, 77) <5, *> | (6, null)", schema)]
    [['(5, 77.0)', '<5, *>'], ['(6, None)']]
    """
    found: list[list[Item]] = [[]]
    end = 0
    while text[end:].strip():
        item = _ITEM.match(text, end)
        where = f"slice {len(found)}, item {len(found[-1]) + 1}"
        if item is None:
            rest = text[end:].strip()
            shown = rest if len(rest) <= _SHOWN else f"{rest[:_SHOWN]}…"
            raise NotationError(
                f"neither tuple nor punctuation nor bar: '{shown}'",
                where=where,
                hint="write (…) for a tuple, <…> for a punctuation, | between two slices",
            )
        end = item.end()
        if item["bar"]:
            found.append([])
            continue
        try:
            is_tuple = item["tuple"] is not None
            found[-1].append(
                _tuple(item["tuple"], schema) if is_tuple else Punctuation.parse(item["punctuation"], schema)
            )
        except (ValueError, XmlStreamError) as error:
            what = str(getattr(error, "what", error))
            raise NotationError(what, where=f"{where}: {item[0].strip()}", hint=_in_order(schema)) from None
    return found


def shown(items: Sequence[Item], schema: Schema, *, in_order: bool = False) -> str:
    """A slice as text, tuples first, so that two can be compared: sorted, but with `in_order` tuples as they come.

    >>> schema = Schema.parse("hour INT, temp DOUBLE")
    >>> shown(slices("<5, *> (6, 77) (5, null)", schema)[0], schema)
    '(5, null) (6, 77.0) <5, *>'
    """
    tuples, punctuations = parted(items)
    texts = [tuple_text(each, schema) for each in tuples]
    return " ".join([*(texts if in_order else sorted(texts)), *sorted(map(str, punctuations))])


def tuple_text(values: Tuple, schema: Schema) -> str:
    """A tuple as text.

    >>> tuple_text((5, None), Schema.parse("hour INT, temp DOUBLE"))
    '(5, null)'
    """
    return f"({', '.join(_value(value, a) for value, a in zip(values, schema, strict=True))})"


def parted(items: Sequence[Item]) -> tuple[list[Tuple], list[Punctuation]]:
    """The tuples and the punctuations of a slice (tups and puncts of Tucker et al. 2003, §3.1).

    >>> schema = Schema.parse("hour INT")
    >>> tuples, punctuations = parted(slices("<5> (6)", schema)[0])
    >>> tuples, [str(p) for p in punctuations]
    ([(6,)], ['<5>'])
    """
    tuples = [item for item in items if not isinstance(item, Punctuation)]
    return tuples, [item for item in items if isinstance(item, Punctuation)]


def _in_order(schema: Schema) -> str:
    return f"in order: {', '.join(f'{a.name} {a.domain.type}' for a in schema)}"


def _value(value: object, attribute: Attribute) -> str:
    if attribute.domain.opaque:
        return json.dumps(value, default=str)
    return format_pattern(Constant(attribute.domain.normal(value) if value is not None else None), attribute.domain)


def _tuple(text: str, schema: Schema) -> Tuple:
    texts = _json_apart(text) if any(a.domain.opaque for a in schema) else split_patterns(f"<{text}>")
    if len(texts) != len(schema):
        raise ValueError(f"{len(texts)} value{'s' * (len(texts) != 1)} for {len(schema)} attributes")
    return tuple(_read(part, a) for part, a in zip(texts, schema, strict=True))


def _read(text: str, attribute: Attribute) -> object:
    if text == "null":
        return None
    try:
        if attribute.domain.opaque:
            return _json(text)
        bare = text[1:-1].replace('""', '"') if text.startswith('"') else text
        return attribute.domain.read(bare)
    except ValueError as error:
        raise ValueError(f"{attribute.name}: {error}") from None


def _json_apart(text: str) -> list[str]:
    """Splits at the commas outside of quotes and of the brackets of JSON, at any depth.

    >>> _json_apart('5, [{"a": [1, 2]}], "a, ]"')
    ['5', '[{"a": [1, 2]}]', '"a, ]"']
    """
    parts, depth, quoted = [""], 0, False
    for char in text:
        quoted ^= char == '"'
        depth += 0 if quoted else (char in "[{") - (char in "]}")
        if char == "," and not quoted and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        what = f"{text} is not valid JSON, {error.msg.lower()} at character {error.pos + 1}"
        raise ValueError(f'{what}: write ["a", "b"] for an array, {{"x": 1}} for a structure') from None
