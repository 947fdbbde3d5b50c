from __future__ import annotations

import pytest

from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.xml.options.option_table import OPTIONS, Giver
from xmlstream.sources.xml.options.source import SourceOptions

GIVEN = {"path": "bids.xml", "rowTag": "bid", "schema": "id INT, _time TIMESTAMP, price DECIMAL(9,2)"}


def test_names_of_options_are_compared_without_case_as_spark_does() -> None:
    options = SourceOptions.parse({"PATH": "bids.xml", "rowtag": "bid", "Schema": "id INT", "MAXBYTESPERSLICE": "2m"})
    assert (options.path, options.row_tag, options.max_bytes_per_slice) == ("bids.xml", "bid", 2 << 20)


def test_charset_is_sparks_other_name_of_the_encoding() -> None:
    assert SourceOptions.parse({**GIVEN, "charset": "latin1"}).encoding == "latin1"
    with pytest.raises(UsageError, match="the option encoding is given twice"):
        SourceOptions.parse({**GIVEN, "charset": "latin1", "encoding": "utf-8"})


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("samplingRatio", "xmlstream infer reads the beginning of the documents; declare the columns"),
        ("rowTags", "did you mean rowTag?"),
    ],
)
def test_an_option_that_there_is_not_is_refused_with_what_to_do(option: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"has no option {option}") as raised:
        SourceOptions.parse({**GIVEN, option: "x"})
    assert raised.value.hint == hint


def test_a_guess_at_an_option_is_near_or_none() -> None:
    with pytest.raises(UsageError) as raised:
        SourceOptions.parse({**GIVEN, "colour": "true"})
    assert str(raised.value.hint).startswith("the options are punctuate, path, rowTag")


@pytest.mark.parametrize(
    ("option", "word"),
    [
        ("inferSchema", "xmlstream infer"),
        ("ignoreNamespace", "any namespace"),
        ("columnNameOfCorruptRecord", "PERMISSIVE"),
        ("pathGlobFilter", "in/*.xml"),
        ("recursiveFileLookup", "in/**/*.xml"),
        ("excludeAttribute", "declared"),
        ("wildcardColName", "path '.'"),
    ],
)
def test_an_option_of_sparks_that_is_not_here_is_named_with_what_is(option: str, word: str) -> None:
    with pytest.raises(UsageError, match=f"no option {option}") as raised:
        SourceOptions.parse({**GIVEN, option: "x"})
    assert word in str(raised.value.hint)


def test_an_attribute_is_an_xml_attribute_by_its_prefix_or_a_path_of_its_own() -> None:
    options = SourceOptions.parse({**GIVEN, "path.ID": "head/@nr"})
    assert [str(path) for path in options.paths] == ["head/@nr", "@time", "price"]
    assert [str(path) for path in SourceOptions.parse({**GIVEN, "attributePrefix": "@"}).paths][1] == "_time"
    assert str(SourceOptions.parse({**GIVEN, "schema": "_VALUE STRING"}).paths[0]) == "."


def test_a_prefix_stands_for_the_namespace_that_it_is_declared_for() -> None:
    spaces = "dc http://purl.org/dc/elements/1.1/,a urn:a,b, c urn:c,"
    given = {"schema": "`dc:date` DATE, `_a:x` INT, c STRING, d STRING", "path.c": "c:b/a:b/@xml:lang"}
    options = SourceOptions.parse({**GIVEN, **given, "rowTag": "dc:bid", "path.d": "{a:b}d", "namespaces": spaces})
    assert options.row_tag == "{http://purl.org/dc/elements/1.1/}bid"
    xml = "http://www.w3.org/XML/1998/namespace"
    paths = ["{http://purl.org/dc/elements/1.1/}date", "@{urn:a,b}x", f"{{urn:c}}b/{{urn:a,b}}b/@{{{xml}}}lang"]
    assert list(map(str, options.paths)) == [*paths, "{a:b}d"]
    assert options.unsplit == {b"bid"}
    assert SourceOptions.parse(dict(options.given)) == options


def test_schemes_say_what_can_never_be_null() -> None:
    options = SourceOptions.parse({**GIVEN, "schemes": "id 0..9 by 5"})
    assert not options.schema["id"].domain.nullable
    assert options.schema["id"].domain.high == 9


def test_what_was_given_makes_the_same_source_again() -> None:
    options = SourceOptions.parse({**GIVEN, "schemes": "id", "columns": "price,id", "follow": "FALSE"})
    assert SourceOptions.parse(dict(options.given)) == options
    assert options.replace(follow=None).follow
    assert options.columns == ("price", "id")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rowTga": "bid"}, "rowTag"),
        ({"path": ""}, "no path"),
        ({"maxBytesPerSlice": "lots"}, "not a valid size"),
        ({"maxFilesPerSlice": "0"}, "not a valid number above 0"),
        ({"mode": "STRICT"}, "FAILFAST"),
        ({"documents": "mix"}, "one of sequence, files, directories, one"),
        ({"path.idd": "a"}, "names no attribute"),
        ({"path.id": "a///b"}, "not a valid path"),
        ({"path.id": "a//"}, "not a valid path"),
        ({"path.id": "//a//b"}, "has // twice"),
        ({"path.id": "//@a"}, "//*/@id"),
        ({"path.id": "..//a"}, "to elements in the row"),
        ({"path.id": "a|../b"}, "alternatives must be inside the row"),
        ({"path.id": "a|"}, "not a valid path"),
        ({"path.id": "p:a"}, "'p:a' uses the prefix p, which is not declared"),
        ({"path.id": "a/@p:b", "namespaces": "q urn:q"}, "declared is q; declare it as in namespaces 'p http://…'"),
        ({"path.id": "q:a:b", "namespaces": "q urn:q"}, "not a valid path"),
        ({"rowTag": "p:bid"}, "'rowTag p:bid' uses the prefix p"),
        ({"schema": "`p:id` INT"}, "'p:id' uses the prefix p"),
        ({"namespaces": "urn:q"}, "declares no prefix"),
        ({"namespaces": "q urn:q, p"}, "declares no prefix"),
        ({"namespaces": "q urn:q, q urn:r"}, "the prefix q twice"),
        ({"unitTag": "p:auction"}, "not a valid local name"),
        ({"path.id": "../a"}, "../a needs the option unitTag"),
        ({"path.id": "../.."}, "a path to an ancestor ends in a leaf, an attribute or the name"),
        ({"schema": "id ARRAY<ARRAY<INT>>"}, "ARRAY<ARRAY<INT>>"),
        ({"schema": "id MAP<INT, INT>"}, "MAP<INT,INT>"),
        ({"dateFormat": "QQ"}, "not known"),
        ({"dateFormat._time": "dd.MM.yyyy"}, "dateFormat._time of a TIMESTAMP"),
        ({"timestampFormat.idd": "dd.MM.yyyy"}, "names no attribute"),
        ({"TimestampFormat._time": "QQ"}, "not known"),
        ({"path.id": "xml(a)"}, "xml(a) is text, and id a INT"),
        ({"path.id": "xml(@a)"}, "takes an element in the row"),
        ({"path.id": "xml(../a)"}, "takes an element in the row"),
        ({"path.id": "name()"}, "not a valid path"),
        ({"path.id": "position()"}, "unitTag"),
        ({"prefix.idd": "person"}, "names no attribute"),
        ({"schema": "id STRING", "prefix.id": "person"}, "of a STRING"),
        ({"uniqueIds": "idd"}, "no attribute idd"),
        ({"sectionEnds": "people"}, "not a section's end"),
        ({"sectionEnds": "* *"}, "not a section's end"),
        ({"sectionEnds": "people id"}, "leads to no ancestor"),
        ({"path": "bids*.xml", "sectionEnds": "people *"}, "the end of people in one document closes everything"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        SourceOptions.parse({**GIVEN, **given})
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("giver", "refused"),
    [
        ("user", "follow keepOpen close documentLog columns"),
        ("reader", "columns"),
        ("query", ""),
    ],
)
def test_what_only_a_query_sets_nobody_else_gives(giver: Giver, refused: str) -> None:
    def is_refused(name: str) -> bool:
        try:
            SourceOptions.parse({**GIVEN, name.upper(): "true"}, giver=giver)
        except UsageError as error:
            return "cannot be given" in error.what
        return False

    assert [name for name in OPTIONS if is_refused(name)] == refused.split()


def test_what_lasts_is_what_may_not_change_between_runs() -> None:
    options = SourceOptions.parse({**GIVEN, "mode": "PERMISSIVE", "maxItemBytes": "1m", "path.id": "@id"})
    assert options.lasting == {**GIVEN, "path.id": "@id"}


def test_to_promise_nothing_is_a_promise() -> None:
    said: tuple[dict[str, str], ...] = ({}, {"schemes": ""}, {"uniqueIds": "id"}, {"sectionEnds": "bids *"})
    assert [SourceOptions.parse({**GIVEN, **each}).has_promise for each in said] == [False, True, True, True]


def test_what_a_document_closes_by_its_structure_is_a_promise() -> None:
    bid = {"schema": "auction INT, region STRING, id INT", "path.auction": "../@id", "path.region": "name(../..)"}
    ends = "auction auction; regions/* region; site *; auction auction"
    options = SourceOptions.parse({"path": "a.xml", "rowTag": "bid", **bid, "uniqueIds": "id", "sectionEnds": ends})
    assert [str(scheme) for scheme in options.schemes] == ["id", "auction", "region"]
    assert [end.attributes for end in options.structural.sections] == [(0,), (1,), (), (0,)]


def test_elements_of_rows_and_units_are_not_cut() -> None:
    given = {**GIVEN, "rowTag": "{urn:x}bid", "unitTag": "auction"}
    assert SourceOptions.parse(given).unsplit == {b"bid", b"auction"}
    assert SourceOptions.parse(GIVEN).unsplit == {b"bid"}
