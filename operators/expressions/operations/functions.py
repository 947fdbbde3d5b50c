"""The functions of one row that are proven to be equal to Spark's, each with its types: the table that users see.

A function is given its arguments as parts and returns the part of its result; it refuses types that are not proven.
Names are Spark's, in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.operations.arithmetic import OF_NUMBERS
from xmlstream.operators.expressions.operations.casts import cast, common_type, same_type
from xmlstream.operators.expressions.operations.moments import MOMENTS
from xmlstream.operators.expressions.operations.part import (
    VOID,
    Function,
    Part,
    Rises,
    Scalar,
    chained,
    combined,
    error,
    joined,
    null,
    number,
    refused,
    require,
    require_silent,
    text,
)
from xmlstream.operators.expressions.operations.spark_type import (
    NotDefined,
    NotProven,
    has_floating,
    in_duckdb,
    name_in_duckdb,
    read_type,
    unlike,
)
from xmlstream.punct_ns.sql_type import (
    FLOATING,
    INTEGERS,
    NESTED,
    NUMBERS,
    TEMPORAL,
    ArrayType,
    Field,
    SqlType,
    StructType,
)

BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP = map(
    read_type, ("BIGINT", "BOOLEAN", "DATE", "DOUBLE", "INT", "STRING", "TIMESTAMP")
)


def call(name: str, parts: Sequence[Part], zone: str) -> Part:
    """The result of a function.

    Raises:
        NotProven: The function is not in the table, or not with these types.
    """
    function = FUNCTIONS.get(name)
    if function is None:
        raise NotProven(f"the function {name}")
    return function.part(name, parts, zone)


def _coalesce(name: str, parts: Sequence[Part], zone: str) -> Part:
    if not parts or (name != "coalesce" and len(parts) != 2):
        raise NotProven(f"{name} of {len(parts)} arguments")
    sides = same_type(parts, "coalesce", zone)
    sql = f"coalesce({', '.join(part.sql for part in sides)})"
    type_ = sides[0].type if len(sides) == 1 else common_type([side.type for side in sides]) or sides[0].type
    return joined(sql, type_, sides, **_unless_one(sides))


def _unless_one(parts: Sequence[Part]) -> dict[str, bool]:
    """What is null only if all its arguments are."""
    return {"nullable": all(part.nullable for part in parts), "null": all(part.null for part in parts)}


def if_(name: str, parts: Sequence[Part], zone: str) -> Part:
    """IF(condition, one, other)."""
    if len(parts) != 3 or parts[0].type.name not in ("BOOLEAN", "VOID"):
        raise NotProven(f"if({', '.join(part.type.name for part in parts)})")
    one, other = same_type(parts[1:], "if", zone)
    nullable, seems = one.nullable or other.nullable, not (one.null or other.null)
    return replace(choice([(parts[0], one)], other, zone), nullable=nullable, seems=nullable and seems)


def _nvl2(name: str, parts: Sequence[Part], zone: str) -> Part:
    if len(parts) != 3:
        raise NotProven(f"nvl2 of {len(parts)} arguments")
    return if_(name, [_null_test(name, parts[:1], zone), *parts[1:]], zone)


def choice(branches: Sequence[tuple[Part, Part]], default: Part | None, zone: str) -> Part:
    """CASE WHEN … THEN … ELSE … END."""
    results = [result for _, result in branches] + ([default] if default is not None else [])
    sides = same_type(results, "CASE", zone)
    if any(test.type.name not in ("BOOLEAN", "VOID") for test, _ in branches):
        raise NotDefined("CASE with a condition that is not a BOOLEAN")
    tests = [test for test, _ in branches]
    whens = " ".join(f"WHEN {t.sql} THEN {r.sql}" for t, r in zip(tests, sides, strict=False))
    otherwise = f" ELSE {sides[-1].sql}" if default is not None else ""
    type_ = common_type([side.type for side in sides]) or sides[0].type
    sql = f"CASE {whens}{otherwise} END"
    if type_.same(VOID):
        sql = "NULL"
    nullable, null = (
        _may_be_null(tests, [getattr(side, of) for side in sides], has_default=default is not None)
        for of in ("nullable", "null")
    )
    return joined(sql, type_, [*tests, *sides], nullable=nullable, null=null)


def _may_be_null(tests: Sequence[Part], results: Sequence[bool], *, has_default: bool) -> bool:
    """Whether a CASE may be null: behind a branch that is always taken, Spark looks at none."""
    always = next((i for i, test in enumerate(tests) if test.sql == "true"), None)
    if always is not None:
        return any(results[: always + 1])
    return not has_default or any(results)


def _nullif(name: str, parts: Sequence[Part], zone: str) -> Part:
    if len(parts) != 2 or parts[0].raises:
        raise NotProven("nullif with an operand that can raise an error")
    one, other = same_type(parts, "nullif", zone)
    sql = f"CASE WHEN {one.sql} = {other.sql} THEN {null(parts[0].type)} ELSE {parts[0].sql} END"
    return combined(sql, parts[0].type, parts, nullable=True)


def _extreme(name: str, parts: Sequence[Part], zone: str) -> Part:
    if len(parts) < 2 or 0 < sum(part.type.name == "STRING" for part in parts) < len(parts):
        raise NotProven(f"{name}({', '.join(part.type.name for part in parts)})")
    sides = same_type(parts, name, zone)
    if sides[0].type.kind not in (*INTEGERS, "DECIMAL", "DOUBLE", "FLOAT", "STRING", *TEMPORAL, "BOOLEAN"):
        raise NotProven(f"{name} of {sides[0].type.name}")
    if sides[0].type.kind in FLOATING:
        raise NotProven(f"{name} of {sides[0].type.name}, of whose zeros either may be chosen,")
    sql = f"{name}({', '.join(part.sql for part in sides)})"
    return joined(sql, sides[0].type, sides, **_unless_one(sides))


def _named_struct(name: str, parts: Sequence[Part], zone: str) -> Part:
    if len(parts) % 2 or not parts:
        raise NotProven("named_struct of an odd number of arguments")
    fields, texts = [], []
    for key, value in zip(parts[::2], parts[1::2], strict=True):
        if not key.word or value.type.same(VOID):
            raise NotProven(f"named_struct with a field of {value.type.name} or a computed name")
        fields.append(Field(key.word, value.type, value.nullable))
        texts.append(f"{name_in_duckdb(key.word)} := {value.sql}")
    if len({field.name.lower() for field in fields}) < len(fields):
        raise NotProven("named_struct with two fields of one name")
    sql = f"struct_pack({', '.join(texts)})"
    return joined(sql, StructType(tuple(fields)), parts, nullable=False)


def field(of: Part, name: str) -> Part:
    """A field of a structure; of an array of structures, the array of their fields.

    Raises:
        NotProven: There is none of the name, or there are several.
    """
    if of.type.element is not None and of.type.element.fields:
        inner = field(Part("x", of.type.element, of.type.has_nulls), name)
        type_ = ArrayType(inner.type, has_nulls=inner.nullable)
        return of.computed(f"list_transform({of.sql}, lambda x: {inner.sql})", type_)
    found = [field for field in of.type.fields if field.name.lower() == name.lower()]
    if len(found) != 1:
        raise (NotProven if found else NotDefined)(f"field {name} of {of.type.name}")
    sql = f"struct_extract({of.sql}, {text(found[0].name)})"
    nullable, null = (has or found[0].nullable for has in (of.nullable, of.null))
    return joined(sql, found[0].type, [of], nullable=nullable, null=null)


def _array(name: str, parts: Sequence[Part], zone: str) -> Part:
    if not parts:
        return Part("[]", ArrayType(VOID, has_nulls=False), False)
    sides = same_type(parts, "array", zone)
    element = common_type([side.type for side in sides]) or sides[0].type
    if element.same(VOID):
        raise NotProven("array of nulls")
    type_ = ArrayType(element, has_nulls=any(side.nullable for side in sides))
    sql = f"[{', '.join(side.sql for side in sides)}]"
    return joined(sql, type_, sides, nullable=False)


def _get(name: str, parts: Sequence[Part], zone: str) -> Part:
    require("get", parts, ("ARRAY",), ("TINYINT", "SMALLINT", "INT"))
    array, index = parts
    assert array.type.element is not None
    inside = f"CAST(list_extract({array.sql}, CAST({index.sql} AS BIGINT) + 1) AS {in_duckdb(array.type.element)})"
    sql = inside if index.whole is not None else f"CASE WHEN {index.sql} >= 0 THEN {inside} END"
    return combined(sql, array.type.element, parts, nullable=True)


def element(array: Part, index: Part, *, first: int) -> Part:
    """`array[index]`, which counts from 0, or `element_at(array, index)`, which counts from 1, or from the end.

    Raises:
        NotProven: It is not an array, or the index is not an integer.
    """
    require("an element", [array, index], ("ARRAY",), INTEGERS)
    assert array.type.element is not None
    at, length = f"CAST({index.sql} AS BIGINT)", f"len({array.sql})"
    outside, message = f"{at} NOT BETWEEN 0 AND {length} - 1", error("INVALID_ARRAY_INDEX", "No such index.")
    if first:
        outside = f"{at} = 0 THEN {error('INVALID_INDEX_OF_ZERO', 'The index 0 is invalid.')} WHEN abs({at}) > {length}"
        message = error("INVALID_ARRAY_INDEX_IN_ELEMENT_AT", "No such index.")
    inside = f"CAST(list_extract({array.sql}, {at} + {1 - first}) AS {in_duckdb(array.type.element)})"
    if index.nullable:  # Spark's analyser forgets that.
        raise NotProven("an element by an index that may be null")
    sql = f"CASE WHEN {array.sql} IS NULL THEN NULL WHEN {outside} THEN {message} ELSE {inside} END"
    inner = True if array.type.has_nulls else None
    seems = index.constant is not None
    return combined(sql, array.type.element, [array, index], nullable=inner, seems=seems, raises=True)


def _array_contains(name: str, parts: Sequence[Part], zone: str) -> Part:
    if len(parts) != 2 or parts[0].type.element is None or parts[1].type.kind in (*FLOATING, "VOID"):
        types = ", ".join(part.type.name for part in parts)
        raise unlike(f"{name}({types})", [part.type.kind for part in parts], ["ARRAY"])
    array, value = parts
    if not parts[0].type.element.same(value.type) or has_floating(value.type):
        raise NotProven(f"{name}({array.type.name}, {value.type.name})")
    unknown = f"{array.sql} IS NULL OR {value.sql} IS NULL OR list_count({array.sql}) < len({array.sql})"
    sql = f"CASE WHEN list_contains({array.sql}, {value.sql}) THEN true WHEN {unknown} THEN NULL ELSE false END"
    return combined(sql, BOOLEAN, parts, nullable=array.nullable or value.nullable or array.type.has_nulls)


def _array_extreme(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, ("ARRAY",))
    element = parts[0].type.element
    if element is None or element.kind not in (*INTEGERS, "DECIMAL", "STRING", "BOOLEAN", *TEMPORAL):
        raise NotProven(f"{name}({parts[0].type.name})")
    return parts[0].computed(f"list_{name.removeprefix('array_')}({parts[0].sql})", element, nullable=True)


def _element_at(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, ("ARRAY",), ("INT",))
    return element(*parts, first=1)


def _sequence(name: str, parts: Sequence[Part], zone: str) -> Part:
    if goes_down := len(parts) == 2:
        parts = [*parts, Part("1", INT, False, constant="1")]
    require("sequence", parts, INTEGERS, INTEGERS, INTEGERS)
    type_ = common_type([part.type for part in parts[:2]]) or BIGINT
    if type_.name not in ("INT", "BIGINT"):
        raise NotProven(f"sequence of {type_.name}")
    first, last, step = (cast(part, type_, zone) for part in parts)
    if not parts[2].whole:
        raise NotProven("sequence with a step that is not a positive literal")
    # Down from the first to the last, Spark refuses a positive step, and goes by -1 where none is given.
    if goes_down:
        by = f"CASE WHEN {first.sql} > {last.sql} THEN -1 ELSE 1 END"
        sql = f"CAST(generate_series({first.sql}, {last.sql}, {by}) AS {in_duckdb(ArrayType(type_))})"
        return combined(sql, ArrayType(type_, has_nulls=False), [first, last], raises=True)
    down = error("ILLEGAL_SEQUENCE_BOUNDARIES", "Illegal sequence boundaries.")
    name = in_duckdb(ArrayType(type_))
    given = f"CAST(generate_series({first.sql}, {last.sql}, {step.sql}) AS {name})"
    sql = f"CASE WHEN {first.sql} > {last.sql} THEN {down} ELSE {given} END"
    return combined(sql, ArrayType(type_, has_nulls=False), [first, last, step], raises=True)


def _lower_or_upper(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, ("STRING",))
    of = parts[0].sql
    does = {"lcase": "lower", "ucase": "upper"}.get(name, name)
    sql = (
        f"CASE WHEN regexp_full_match({of}, '[\\x01-\\x7e\\s]*') THEN {does}({of}) WHEN {of} IS NULL THEN NULL"
        f" ELSE {refused(name + ' of letters beyond ASCII')} END"
    )
    # Spark raises none, but no text that a join leaves out may stop a query in process.
    return parts[0].computed(sql, raises=True)


def _concat(name: str, parts: Sequence[Part], zone: str) -> Part:
    if not any(part.type.name == "STRING" for part in parts) or any(part.type.kind in NESTED for part in parts):
        kinds, types = [part.type.kind for part in parts], ", ".join(part.type.name for part in parts)
        raise unlike(f"concat({types})", kinds, *[["ARRAY"] if kinds[:1] == ["ARRAY"] else ["STRING"]] * len(parts))
    parts = [part if part.type.same(VOID) else cast(part, STRING, zone) for part in parts]
    if any(part.raises for part in parts) and any(part.nullable for part in parts):
        raise NotProven("concat of an operand that can raise an error and of one that can be null")
    # Of constants DuckDB may find no type, where they are null.
    return combined(f"CAST(({chained(' || ', [part.sql for part in parts])}) AS VARCHAR)", STRING, parts)


def _concat_ws(name: str, parts: Sequence[Part], zone: str) -> Part:
    if len(parts) < 2 or any(part.type.name != "STRING" or part.raises for part in parts):
        raise NotProven(f"{name}({', '.join(part.type.name for part in parts)})")
    sql = f"concat_ws({', '.join(part.sql for part in parts)})"
    return joined(sql, STRING, parts, nullable=parts[0].nullable)


def _split_part(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, ("STRING",), ("STRING",), ("INT",))
    if not parts[1].word or not parts[2].whole:
        raise NotProven(f"{name} at a computed text, or of a computed place")
    return parts[0].computed(f"split_part({parts[0].sql}, {parts[1].sql}, {parts[2].whole})", seems=True)


def _sha2(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, ("STRING",), ("INT",))
    if parts[1].whole not in (0, 256):
        raise NotProven(f"{name} of other lengths than 256")
    return parts[0].computed(f"sha256({parts[0].sql})", STRING, seems=True)


def _zero(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, NUMBERS)
    return FUNCTIONS["nvl" if name == "zeroifnull" else "nullif"].part(name, [*parts, number("0")], zone)


_ONE = r"(?:\\[^\w\s]|&(?!&)|[^\\\[\]^&-])"  # in Java && is an intersection
_ATOM = rf"\\[dDsSwW]|\\[^\w\s]|[^\\\[\](){{}}^$.|?*+]|\.|\[\^?-?(?:\\[dsw]|{_ONE}-{_ONE}|{_ONE})+-?\]"
_TIMES = r"(?:(?:[*+?]|\{[0-9]{1,2}(?:,(?:[0-9]{1,2})?)?\})\??(?![*+?{]))?"
_TOKEN = re.compile(rf"(?P<atom>{_ATOM}|(?P<end>\)))(?P<times>{_TIMES})|\((?:\?:)?|\||\^|\$\Z")
_WRITTEN = {".": r"[^\n\r\x{85}\x{2028}\x{2029}]", r"\s": r"[ \t-\r]", r"\S": r"[^ \t-\r]"}


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A regular expression that Java and RE2 read alike: characters, sets, repetitions, groups, anchors at both ends.

    Attributes:
        re2: How RE2 writes it, without the `$` at its end.
        groups: The number of its groups.
        is_empty: Whether it may match nothing.
        ends: Whether it ends with `$`, which Java also finds before a last end of line.
        begins: Whether it has `^`, which what looks at the rest of a text by itself finds there again.
    """

    re2: str
    groups: int
    is_empty: bool
    ends: bool
    begins: bool

    def searched(self, of: str, form: str) -> str:
        """DuckDB SQL of a form with the pattern, whose first group is what matches."""
        if not self.ends:
            return form.format(text(f"({self.re2})"))
        ends = (form.format(text(rf"({self.re2})(?:{end})?\z")) for end in (r"\r\n", r"[\n\r\x{85}\x{2028}\x{2029}]"))
        return "CASE WHEN ends_with({}, chr(13) || chr(10)) THEN {} ELSE {} END".format(of, *ends)


def _pattern(name: str, part: Part) -> _Pattern:
    """A literal pattern.

    Raises:
        NotProven: Java and RE2 may read it differently.
    """
    word = part.word
    tokens = list(_TOKEN.finditer(word or ""))
    try:
        if word is None or "".join(token[0] for token in tokens) != word:
            raise ValueError(word)
        read, opened = re.compile(word), [0]
        for token in tokens:
            if token[0][0] == "(":
                opened.append(token.start())
            if token["end"]:
                group = word[opened.pop() : token.end("atom")]
                if token["times"] and (re.search(group, "") or ("{" in token["times"] and "{" in group)):
                    raise ValueError(group)
            if token[0] == "|" and len(opened) == 1 and word.endswith("$"):
                raise ValueError(word)
    except (ValueError, re.error):
        raise NotProven(
            f"{name} by a pattern with more than characters, sets, groups, repetitions and anchors"
        ) from None
    written = "".join(
        (_WRITTEN.get(token["atom"]) or token["atom"].replace(r"\s", r" \t-\r")) + token["times"]
        if token["atom"]
        else token[0]
        for token in tokens
    )
    ends = tokens[-1:] != [] and tokens[-1][0] == "$"
    return _Pattern(
        written.removesuffix("$") if ends else written,
        read.groups,
        bool(read.search("")),
        ends,
        any(token[0] == "^" for token in tokens),
    )


def _regexp_like(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, ("STRING",), ("STRING",))
    of = parts[0].sql
    return parts[0].computed(_pattern(name, parts[1]).searched(of, f"regexp_matches({of}, {{}})"), BOOLEAN)


def _regexp_replace(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, ("STRING",), ("STRING",), ("STRING",))
    of, pattern, by = parts[0].sql, _pattern(name, parts[1]), parts[2].word
    if by is None or not re.fullmatch(rf"(?:[^$\\]|\$[0-{pattern.groups}](?![0-9]))*", by) or pattern.is_empty:
        raise NotProven(f"{name} of nothing, or by a computed text")  # of empty matches, RE2 has fewer
    searched, put = pattern.re2 + (r"\z" if pattern.ends else ""), re.sub(r"\$(\d)", r"\\\1", by)
    sql = f"regexp_replace({of}, {text(searched)}, {text(put)}, 'g')"
    if pattern.ends:
        odd = rf"regexp_matches({of}, '[\n\r\x{{85}}\x{{2028}}\x{{2029}}]\z')"
        sql = f"CASE WHEN {odd} THEN {refused(name + ' before a last end of line')} ELSE {sql} END"
    return parts[0].computed(sql, refuses=pattern.ends)


def _regexp_extract(name: str, parts: Sequence[Part], zone: str) -> Part:
    if len(parts) == 2:
        parts = [*parts, Part("1", INT, False, constant="1")]
    require("regexp_extract", parts, ("STRING",), ("STRING",), ("INT",))
    pattern, group = _pattern(name, parts[1]), parts[2].whole
    if group is None or group > min(pattern.groups, 8):
        raise NotProven(f"regexp_extract of group {group} of {pattern.groups}")
    of = parts[0].sql
    return parts[0].computed(pattern.searched(of, f"regexp_extract({of}, {{}}, {group + 1})"))


def _split(name: str, parts: Sequence[Part], zone: str) -> Part:
    require("split", parts, ("STRING",), ("STRING",))
    pattern = _pattern(name, parts[1])
    if pattern.is_empty or pattern.begins or pattern.ends:
        raise NotProven("split by nothing, or at the beginning or the end")
    sql = f"string_split_regex({parts[0].sql}, {text(pattern.re2)})"
    if re.fullmatch(r"[\w /,;:&=#@!%~-]", parts[1].word or "", re.ASCII):
        sql = f"string_split({parts[0].sql}, {text(parts[1].word or '')})"
    return parts[0].computed(sql, ArrayType(STRING, has_nulls=False))


def _null_test(name: str, parts: Sequence[Part], zone: str) -> Part:
    if len(parts) != 1:
        raise NotProven(f"{name} of {len(parts)} arguments")
    require_silent(name, parts[0])
    sql = f"({parts[0].sql} IS {'NULL' if name == 'isnull' else 'NOT NULL'})"
    return parts[0].computed(sql, BOOLEAN, nullable=False)


@dataclass(frozen=True, slots=True)
class Plain:
    """A function of fixed types that never fails, and that DuckDB has in one text.

    Attributes:
        takes: The kinds of types of each argument.
        gives: The type of its result.
        sql: DuckDB SQL, with the arguments by number.
        nullable: Whether Spark's analyser takes it to be null somewhere, if not just where an argument is.
        seems: Whether the analyser takes it to be null somewhere, although it is only where an argument is.
        rises: How it rises with its argument; see `Scalar`.
    """

    takes: tuple[Sequence[str], ...]
    gives: SqlType
    sql: str
    nullable: bool | None = None
    seems: bool = False
    rises: Rises | None = None

    def part(self, name: str, parts: Sequence[Part], zone: str) -> Part:
        """The result for some arguments."""
        require(name, parts, *self.takes)
        sql = self.sql.format(*(part.sql for part in parts))
        return combined(sql, self.gives, parts, nullable=self.nullable, seems=self.seems)


_TEXT, _DAY, _SMALL = ("STRING",), ("DATE",), ("TINYINT", "SMALLINT", "INT")
_SIGN = "CASE WHEN isnan(CAST({0} AS DOUBLE)) OR {0} = 0 THEN CAST({0} AS DOUBLE) ELSE CAST(sign({0}) AS DOUBLE) END"
_AT_LEAST_0 = "{0}, CASE WHEN {1} < 0 THEN 0 ELSE {1} END"

PLAIN: Mapping[str, Plain] = {
    "ascii": Plain((_TEXT,), INT, "CAST(ascii({0}) AS INTEGER)"),
    "bit_count": Plain((INTEGERS,), INT, "CAST(bit_count(CAST({0} AS BIGINT)) AS INTEGER)"),
    "btrim": Plain((_TEXT,), STRING, "trim({0}, ' ')"),
    **{name: Plain((_TEXT,), INT, "CAST(length({0}) AS INTEGER)")
       for name in ("char_length", "character_length", "len", "length")},
    "contains": Plain((_TEXT, _TEXT), BOOLEAN, "contains({0}, {1})"),
    "datediff": Plain((_DAY, _DAY), INT, "CAST(({0} - {1}) AS INTEGER)"),
    "endswith": Plain((_TEXT, _TEXT), BOOLEAN, "ends_with({0}, {1})"),
    "instr": Plain((_TEXT, _TEXT), INT, "CAST(instr({0}, {1}) AS INTEGER)"),
    "isnan": Plain((FLOATING,), BOOLEAN, "coalesce(isnan({0}), false)", nullable=False),
    "last_day": Plain((_DAY,), DATE, "last_day({0})", rises="coarsely"),
    "left": Plain((_TEXT, _SMALL), STRING, f"left({_AT_LEAST_0})"),
    "ltrim": Plain((_TEXT,), STRING, "ltrim({0}, ' ')"),
    "md5": Plain((_TEXT,), STRING, "md5({0})"),
    "repeat": Plain((_TEXT, _SMALL), STRING, "repeat({0}, {1})"),
    "replace": Plain((_TEXT, _TEXT, _TEXT), STRING, "replace({0}, {1}, {2})"),
    "right": Plain((_TEXT, _SMALL), STRING, f"right({_AT_LEAST_0})", seems=True),
    "rtrim": Plain((_TEXT,), STRING, "rtrim({0}, ' ')"),
    **dict.fromkeys(("sign", "signum"), Plain((NUMBERS,), DOUBLE, _SIGN, seems=True)),
    **dict.fromkeys(("array_size", "cardinality", "size"), Plain((("ARRAY",),), INT, "CAST(len({0}) AS INTEGER)")),
    "dayname": Plain((_DAY,), STRING, "strftime({0}, '%a')"),
    "monthname": Plain((_DAY,), STRING, "strftime({0}, '%b')"),
    "translate": Plain((_TEXT, _TEXT, _TEXT), STRING, "translate({0}, {1}, {2})"),
    "startswith": Plain((_TEXT, _TEXT), BOOLEAN, "starts_with({0}, {1})"),
    "unix_date": Plain((_DAY,), INT, "CAST(({0} - DATE '1970-01-01') AS INTEGER)", rises="exactly"),
}  # fmt: skip
"""The proven functions of fixed types, by name."""

_OTHERS: Mapping[str, Function] = {
    "array": _array, "concat": _concat, "element_at": _element_at, "get": _get,
    "if": if_, "named_struct": _named_struct, "nullif": _nullif, "nvl2": _nvl2,
    "array_contains": _array_contains, "concat_ws": _concat_ws, "regexp_extract": _regexp_extract,
    "regexp_replace": _regexp_replace, "split_part": _split_part, "sha2": _sha2,
    **dict.fromkeys(("regexp", "regexp_like", "rlike"), _regexp_like),
    **dict.fromkeys(("coalesce", "ifnull", "nvl"), _coalesce),
    **dict.fromkeys(("array_max", "array_min"), _array_extreme),
    **dict.fromkeys(("nullifzero", "zeroifnull"), _zero),
    "sequence": _sequence, "split": _split,
    **dict.fromkeys(("isnotnull", "isnull"), _null_test),
    **dict.fromkeys(("lcase", "lower", "ucase", "upper"), _lower_or_upper),
}  # fmt: skip

CASTS = {
    **{name: name.upper() for name in ("bigint", "boolean", "double", "float", "int", "smallint", "string")},
    "timestamp": "TIMESTAMP",
    "tinyint": "TINYINT",
    "decimal": "DECIMAL(10,0)",
}
"""Types whose names Spark calls like functions: int(x) is CAST(x AS INT)."""


def _cast(name: str, parts: Sequence[Part], zone: str) -> Part:
    if len(parts) != 1 or parts[0].constant is not None:
        raise NotProven(f"{name} of a literal")
    return cast(parts[0], read_type(CASTS[name]), zone)


FUNCTIONS: Mapping[str, Scalar] = {
    **{name: Scalar(plain.part, plain.rises) for name, plain in PLAIN.items()},
    **{name: Scalar(part) for name, part in _OTHERS.items()},
    **MOMENTS,
    **OF_NUMBERS,
    **dict.fromkeys(CASTS, Scalar(_cast)),
    **dict.fromkeys(("greatest", "least"), Scalar(_extreme, "bounded")),
}
"""The proven functions of one row, by name."""
