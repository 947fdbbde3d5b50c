from __future__ import annotations

from pathlib import Path

import pytest

from xmlstream.punct_ns.errors import MalformedInput
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.generators.sensors import write_sensors
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.options.source import SourceOptions

SENSOR = "sid STRING, hour INT, min INT, currtmp DOUBLE"


def source(path: Path, schema: str = SENSOR, row_tag: str = "tempdata", **options: str) -> SourceOptions:
    return SourceOptions.parse({"path": str(path), "rowTag": row_tag, **options}, schema)


@pytest.mark.parametrize("per_hour", [0, 1, 7, 30])
def test_every_generated_stream_is_grammatical(tmp_path: Path, per_hour: int) -> None:
    for path in write_sensors(
        tmp_path, sensors=2, hours=6, punctuations_per_hour=per_hour, reports_per_hour=90, seed=per_hour
    ):
        assert check_grammar(source(path)).violation is None


@pytest.mark.parametrize("window", [1, 3, 1000])
def test_the_first_violation_is_named_with_the_first_punctuation_that_it_breaks(
    tmp_path: Path, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xmlstream.sources.xml.grammar.check.CHECK_WINDOW", window)
    items = "<t><h>1</h></t><p:t><h>{1,2}</h></p:t><p:t><h>2</h></p:t><t><h>3</h></t><t><h>2</h></t><t><h>1</h></t>"
    path = tmp_path / "a.xml"
    path.write_text(f"<s xmlns:p='{PUNCT_NS}'>{items}</s>")
    violation = check_grammar(source(path, "h INT", "t")).violation
    assert violation is not None
    assert (violation.tuple, str(violation.punctuation)) == ((2,), "<[1,2]>")
    assert violation.punctuation_position < violation.tuple_position


def test_what_follows_in_another_document_is_bound_too(tmp_path: Path) -> None:
    for name, items in (("a", "<p:t><h>1</h></p:t>"), ("b", "<t><h>1</h></t>")):
        (tmp_path / f"{name}.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'>{items}</s>")
    assert check_grammar(source(tmp_path, "h INT", "t")).violation is not None
    assert check_grammar(source(tmp_path / "b.xml", "h INT", "t")).violation is None


@pytest.mark.parametrize("text", ["(,5]", "[,5]", "[, 5]", " ( ,6)"])
def test_all_up_to_a_value_is_a_prefix_however_it_is_written(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(f"<s xmlns:p='{PUNCT_NS}'><t><h>1</h></t><p:t><h>{text}</h></p:t></s>")
    assert check_grammar(source(path, "h INT", "t")).findings.said == {"h prefix": 1}


def test_what_cannot_be_read_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<s>\n<t><h>1</h></t>\n<t><h>one</h></t></s>")
    with pytest.raises(MalformedInput, match="line 3") as raised:
        check_grammar(source(path, "h INT", "t"))
    assert "mode 'PERMISSIVE'" in (raised.value.hint or "")
    assert check_grammar(source(path, "h INT", "t", mode="DROPMALFORMED")).violation is None
