"""Columns with the name of a document, or a part of it, and what the end of a document closes, however it is cut."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.xml_reading import FINE, WHOLE, Cuts, any_cuts, read_cut
from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.xml.options.leaf_paths import LeafPath
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.options.text_column import TextColumn

DAYS = {
    "rowTag": "t",
    "schema": "n INT, day DATE, file STRING, of DATE",
    "path.day": "document([0-9]{4}-[0-9]{2}-[0-9]{2})",
    "path.file": "document()",
    "path.of": "../@day",
    "sectionEnds": "document() day; document() day, file; days of",
}
NOISE = {
    "regular": [""],
    "irregular": ["", "", "<!-- <t> -->", "<u/>", "<?p t?>", "<t n='x'><n>7</n><v>x<i/></v></t>"],
    "malformed": ["", "", "<t><n>many</n></t>"],
    "punctuated": ["", "<p:t xmlns:p='http://www.cse.ogi.edu/dot/niagara/punct'><n>-1</n></p:t>"],
}


def written(directory: Path, random: Random, kind: str) -> dict[str, int]:
    """Some days' documents in a directory, each as a file of its own kind: the number of tuples of each."""
    found = {}
    for day in range(1, random.randint(2, 5)):
        noise = random.choices(NOISE[kind], k=random.randint(0, 30))
        text = f"<days day='2026-11-0{day}'>{''.join(f'{one}<t><n>{i}</n></t>' for i, one in enumerate(noise))}</days>"
        path = directory / f"in-2026-11-0{day}.xml"
        content = text.encode(random.choice(["utf-8", "utf-8", "utf-16"]))
        path.write_bytes(random.choice([content, gzip.compress(content), bz2.compress(content)]))
        found[str(path)] = sum("<n>" in one for one in noise if "p:t" not in one) * (kind != "malformed") + len(noise)
    return found


@pytest.mark.parametrize("kind", NOISE)
@given(seed=st.integers(0, 1 << 32))
def test_each_tuple_has_its_document_and_the_end_of_that_closes_what_its_name_has(
    tmp_path_factory: pytest.TempPathFactory, kind: str, seed: int
) -> None:
    random, directory = Random(seed), tmp_path_factory.mktemp("days")
    expected = written(directory, random, kind)
    came, closed = dict.fromkeys(expected, 0), dict.fromkeys(expected, 0)
    for item in read_cut(directory, random.choice([WHOLE, FINE, any_cuts(random)]), **DAYS).items:
        if item.kind == "tuple":
            _, day, file, of = item.texts
            assert file is not None
            assert str(day) == str(of) == Path(str(file)).stem.removeprefix("in-")
            assert not closed[str(file)], "nothing comes behind the end of its document"
            came[str(file)] += 1
        elif item.kind == "punctuation" and item.texts[0] is None:
            _, day, file, of = item.texts
            (path,) = [path for path in expected if str(day or of) in path]
            assert file is None or str(file).strip('"') == path
            closed[path] += 1
    assert came == expected
    assert set(closed.values()) <= {3}, "the day, the day with the file, and what the root has"


@pytest.mark.parametrize("cuts", [WHOLE, FINE, Cuts(50, 20, 1, "1", 1)])
def test_a_name_without_a_value_closes_nothing_and_its_tuples_have_none(tmp_path: Path, cuts: Cuts) -> None:
    (tmp_path / "a.xml").write_text("<days><t><n>1</n></t></days>")
    (tmp_path / "b-2026-99-01.xml").write_text("<days><t><n>1</n></t></days>")
    found = read_cut(tmp_path, cuts, **{**DAYS, "sectionEnds": "document() day"})
    assert [(item.kind, item.texts[1:2]) for item in found.items] == [("tuple", (None,)), ("malformed", ())]
    assert found.malformed[0].reason == "day: '2026-99-01' is not a valid DATE: month must be in 1..12"


def test_the_last_part_of_a_name_that_is_like_the_expression_counts() -> None:
    for path, where, text in (
        ("document()", "s3://b/in/a.xml", "s3://b/in/a.xml"),
        ("document([0-9]+)", "/17/in/3-4.xml", "4"),
        ("document(/([a-z]+)/[^/]*$)", "/in/north/1.xml", "north"),
        ("document(day=([0-9]+)|x)", "/in/1.xml", None),
    ):
        assert LeafPath.parse(path).of_document(where) == text
        assert str(LeafPath.parse(path)) == path


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"path.file": "document([0-9)"}, "unterminated character set"),
        ({"sectionEnds": "days day"}, "the end of days cannot close day"),
        ({"sectionEnds": "document() of"}, r"the end of document\(\) cannot close of, at \.\./@day"),
        ({"sectionEnds": "document() *"}, "is not a section's end"),
        ({"schema": "n INT, day DATE, file ARRAY<STRING>, of DATE", "sectionEnds": ""}, "is one text, and file a ARR"),
        ({"path": "in/*", "sectionEnds": "days *"}, "the end of days in one document closes everything"),
    ],
)  # fmt: skip
def test_what_a_name_cannot_be_is_refused(options: dict[str, str], refusal: str) -> None:
    with pytest.raises(UsageError, match=refusal):
        SourceOptions.parse({"path": "in", **DAYS, **options})


def test_a_column_of_texts_has_no_documents() -> None:
    with pytest.raises(UsageError, match=r"has no documents, and so no path document\(\)"):
        TextColumn.of({"rowTag": "t", "schema": "f STRING", "path.f": "document()"}, "value")
