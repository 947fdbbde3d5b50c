from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.samples import strategies
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import NotationError
from xmlstream.punct_ns.notation import format_pattern, parse_pattern, split_patterns
from xmlstream.punct_ns.pattern import EMPTY, NOT_NULL, NULL, WILDCARD, Constant, List, Pattern, Range
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

STRING, INT = Domain("STRING"), Domain("INT")


@given(st.data(), strategies.domains())
def test_parse_and_format_are_inverse(data: st.DataObject, domain: Domain) -> None:
    pattern = data.draw(strategies.patterns(domain))
    assert parse_pattern(format_pattern(pattern, domain), domain) == pattern


@strategies.fewer(3)
@given(st.data(), strategies.schemas())
def test_a_punctuation_is_read_back_from_its_text(data: st.DataObject, schema: Schema) -> None:
    p = data.draw(strategies.punctuations(schema))
    assert Punctuation.parse(str(p), schema) == p


@example('{""}')
@example('"')
@given(st.text(strategies._LETTERS))
def test_a_text_is_a_pattern_or_refused_and_nothing_else(text: str) -> None:
    for domain in (STRING, INT):
        try:
            pattern = parse_pattern(text, domain)
        except NotationError:
            continue
        assert parse_pattern(format_pattern(pattern, domain), domain) == pattern


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("*", WILDCARD),
        (' "*" ', Constant("*")),
        ("null", NULL),
        ('"null"', Constant("null")),
        ("{}", EMPTY),
        ("{ }", EMPTY),
        ('"{}"', Constant("{}")),
        ("", Constant("")),
        ("  ", Constant("")),
        ('""', Constant("")),
        ('" S01 "', Constant(" S01 ")),
        (" S01\n", Constant("S01")),
        ("New  York", Constant("New  York")),
        ("Portland, OR", Constant("Portland, OR")),
        ('5" pipe', Constant('5" pipe')),
        ('"5"" pipe"', Constant('5" pipe')),
        ('{"a,b",c}', List(("a,b", "c"))),
        ("{ b , a, b }", List(("a", "b"))),
        ('{null,"null"}', List(("null", None))),
        ('["a,b",)', Range("a,b", None, True)),
        ('["",b)', Range(None, "b")),
        ("(,)", NOT_NULL),
        ('["a",]', Range("a", None, True)),
        ("[a,a]", Constant("a")),
        ("(b,a)", EMPTY),
    ],
)
def test_strings(text: str, pattern: Pattern) -> None:
    assert parse_pattern(text, STRING) == pattern


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("17", Constant(17)),
        ("+17", Constant(17)),
        ('"17"', Constant(17)),
        ("[17.5,20)", Range(18, 19, True, True)),
        ("(,20)", Range(None, 19, False, True)),
        ("[ 5 , )", Range(5, None, True)),
        ("[0,3000000000]", Range(0, None, True)),
        ("[0,1e999999999]", Range(0, None, True)),
        ("{2004,1001,1001}", List((1001, 2004))),
        ("{1,2,null}", List((1, 2, None))),
        ("{1,2}", Range(1, 2, True, True)),
    ],
)
def test_integers(text: str, pattern: Pattern) -> None:
    assert parse_pattern(text, INT) == pattern


@pytest.mark.parametrize(
    "text",
    ["", "17.5", "3000000000", "x", "1_000", "٣", "[1,2", "1,2]", "[1,2,3]", "[1]", "{1,,2}", "{1,2", "{*}", "[null,3]",
     '"17', '"1"7', "[a,b]", "{1,[2,3]}", "null null", "{}{}", "[*,3]", "0x11", '{1"2}'],
)  # fmt: skip
def test_an_integers_pattern_is_refused_where_it_makes_no_sense(text: str) -> None:
    with pytest.raises(NotationError, match="is not a valid pattern of INT"):
        parse_pattern(text, INT)


@pytest.mark.parametrize("text", ["(503) 555-1234", "[x", '"a" b', '{a"b}', '{"a"b}', "{a,}"[:2]])
def test_a_string_that_begins_like_another_pattern_wants_quotes(text: str) -> None:
    with pytest.raises(NotationError):
        parse_pattern(text, STRING)


@pytest.mark.parametrize(
    ("type_", "text", "shown"),
    [
        ("DOUBLE", "[-INF, 5]", "(,5.0]"),
        ("DOUBLE", "nan", "NaN"),
        ("DOUBLE", "-0.0", "0.0"),
        ("FLOAT", "0.1", "0.1"),
        ("DECIMAL(5,2)", "{1.5,1.50,2}", "{1.50,2.00}"),
        ("BOOLEAN", "{true,0}", "(,)"),
        ("DATE", "(2003-05-15,2003-05-18)", "[2003-05-16,2003-05-17]"),
        ("DATE", "[2003-05-15T12:00,2003-05-17T12:00]", "[2003-05-16,2003-05-17]"),
        ("TIMESTAMP", "[2003-05-15 17:20, 2003-05-15T19:21+02)", "[2003-05-15T17:20:00Z,2003-05-15T17:20:59.999999Z]"),
        ("TIMESTAMP", "[2003-05-15T17:20:00.0000005Z,2003-05-15T17:20:00.0000015Z]", "2003-05-15T17:20:00.000001Z"),
        ("TIMESTAMP_NTZ", "2003-05-15 17:20", "2003-05-15T17:20:00"),
    ],
)  # fmt: skip
def test_other_types(type_: str, text: str, shown: str) -> None:
    domain = Domain(type_)
    assert format_pattern(parse_pattern(text, domain), domain) == shown


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("DECIMAL(5,2)", "1.555"),
        ("DECIMAL(5,2)", "1000"),
        ("DECIMAL(5,2)", "NaN"),
        ("BOOLEAN", "yes"),
        ("DATE", "2003-02-29"),
        ("DATE", "2003-5-1"),
        ("TIMESTAMP", "2003-05-15T17:20:00.1234567Z"),
        ("TIMESTAMP", "2003-05-15T24:00:00Z"),
        ("TIMESTAMP", "0001-01-01T00:00:00+01:00"),
        ("TIMESTAMP_NTZ", "2003-05-15T17:20:00Z"),
        ("DOUBLE", "1e"),
        ("DOUBLE", "0x1p3"),
    ],
)
def test_what_is_not_of_its_type_is_refused(type_: str, text: str) -> None:
    with pytest.raises(NotationError):
        parse_pattern(text, Domain(type_))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<>", [""]),
        ("<*>", ["*"]),
        (" < *, 5 > ", ["*", "5"]),
        ("<a>b, *>", ["a>b", "*"]),
        ('<"a,b>", {"x,}",y}, (,"]"]>', ['"a,b>"', '{"x,}",y}', '(,"]"]']),
        ("<,[1,2],>", ["", "[1,2]", ""]),
        ('<"a""b",*>', ['"a""b"', "*"]),
    ],
)
def test_the_patterns_of_a_punctuation_are_told_apart(text: str, parts: list[str]) -> None:
    assert split_patterns(text) == parts


@pytest.mark.parametrize("text", ["", "<", "*", "<[1,2>", '<"a>', "<[1,2]x>", "<{1,2>", "<[1,2][3,4]>"])
def test_what_is_no_punctuation_is_refused(text: str) -> None:
    with pytest.raises(NotationError):
        split_patterns(text)


def test_a_long_list_is_read_in_no_time() -> None:
    text = "<{" + ",".join(f'"{n}"' for n in range(0, 200_000, 2)) + "}, *>"
    schema = Schema.parse("n INT, s STRING")
    p = Punctuation.parse(text, schema)
    assert p.matches((199_998, None))
    assert not p.matches((199_999, None))
