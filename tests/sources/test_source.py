from __future__ import annotations

import pytest

from punct_ns.errors import UsageError
from sources.source import SourceOptions

GIVEN = {"path": "bids.xml", "rowTag": "bid", "schema": "id INT, _time TIMESTAMP, price DECIMAL(9,2)"}


def test_names_of_options_are_compared_without_case_as_spark_does() -> None:
    options = SourceOptions.parse({"PATH": "bids.xml", "rowtag": "bid", "Schema": "id INT", "MAXBYTESPERSLICE": "2m"})
    assert (options.path, options.row_tag, options.max_bytes_per_slice) == ("bids.xml", "bid", 2 << 20)


def test_an_attribute_is_an_xml_attribute_by_its_prefix_or_a_path_of_its_own() -> None:
    options = SourceOptions.parse({**GIVEN, "path.ID": "head/@nr"})
    assert [str(path) for path in options.paths] == ["head/@nr", "@time", "price"]
    assert [str(path) for path in SourceOptions.parse({**GIVEN, "attributePrefix": "@"}).paths][1] == "_time"
    assert str(SourceOptions.parse({**GIVEN, "schema": "_VALUE STRING"}).paths[0]) == "."


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
        ({"maxBytesPerSlice": "lots"}, "no size"),
        ({"maxFilesPerSlice": "0"}, "no number above 0"),
        ({"mode": "STRICT"}, "FAILFAST"),
        ({"documents": "merge"}, "'merge' is not supported"),
        ({"path.idd": "a"}, "names no attribute"),
        ({"path.id": "a//b"}, "no path"),
        ({"path.id": "p:a"}, "names a prefix"),
        ({"path.id": "../a"}, "only an attribute"),
        ({"schema": "id ARRAY<INT>"}, "ARRAY<INT>"),
        ({"dateFormat": "QQ"}, "not known"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        SourceOptions.parse({**GIVEN, **given})
    assert message in str(refusal.value)
