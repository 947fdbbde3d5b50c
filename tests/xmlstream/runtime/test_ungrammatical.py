"""An ungrammatical tuple in a running query: found whatever is read, told in one way, and kept to be fed again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.nights import IN_PROCESS_BY_DAY
from xmlstream.punct_ns.errors import UngrammaticalStream
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.options.source import SourceOptions

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

SCHEMA = "a INT, b INT, note STRING"
ROOT = f'<s xmlns:p="{PUNCT_NS}" xmlns="urn:s" of="here">'
LATE = "<t><a>5</a><b>10</b><!-- as\nit stood --><note>&lt;late&gt;</note></t>"
SAID = "<p:t><a>5</a><b>(,30]</b></p:t>"


def document(path: Path, between: int) -> Path:
    """A late tuple so many tuples after what it breaks."""
    others = [f"<t><a>6</a><b>{number}</b></t>" for number in range(between)]
    path.write_text("\n".join([ROOT, "<t><a>5</a><b>1</b></t>", SAID, *others, LATE, "<t><a>6</a></t>", "</s>"]))
    return path


def counted(session: Session, path: Path, **options: Any) -> xs.Query:
    """Counts by `a`, so that `b`, which the punctuation restricts beyond what is promised, is not read."""
    source = xs.read(session, path, SCHEMA, name="source", rowTag="t", schemes="a", maxBytesPerSlice="3k", **options)
    return source.group_by("a").agg("count(*) AS n")


@pytest.mark.parametrize("between", [0, 300], ids=["in its slice", "slices later"])
def test_a_late_tuple_is_told_in_one_way_wherever_it_is_found(session: Session, tmp_path: Path, between: int) -> None:
    path = document(tmp_path / "s.xml", between)
    said = "the tuple (5, 10, <late>) comes after the punctuation <5, (,30], *>, which matches it"
    where = f"{path}, line {between + 4}, column 1, item at position "
    for as_written in (False, True):
        with pytest.raises(UngrammaticalStream) as told:
            counted(session, path).run(tmp_path / f"out-{as_written}", as_written=as_written)
        assert told.value.what == said
        assert (told.value.where or "").startswith(f"source source, {where}")
    offence = check_grammar(SourceOptions.parse({"path": str(path), "rowTag": "t"}, SCHEMA)).violation
    assert offence is not None
    assert (offence.error().what, (offence.error().where or "").startswith(where)) == (said, True)
    assert offence.error().hint == told.value.hint


def test_what_is_set_aside_is_kept_whole_with_its_place_and_can_be_fed_again(session: Session, tmp_path: Path) -> None:
    bad = "<t><a>7</a><b>ten</b><note>" + "long " * 4000 + "</note></t>"
    path = tmp_path / "s.xml"
    others = "\n".join(f"<t><a>6</a><b>{number}</b></t>" for number in range(300))
    path.write_text("\n".join([ROOT, SAID, LATE, bad, others, LATE, "</s>"]))
    counted(session, path, ungrammatical="divert", mode="PERMISSIVE").run(tmp_path / "out")
    files = sorted((tmp_path / "out" / "_dead_letters").iterdir())
    letters = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert [(one["kind"], one["line"], one["column"], one["raw"]) for one in letters] == [
        ("ungrammatical", 3, 1, LATE),
        ("tuple", 5, 1, bad),
        ("ungrammatical", 306, 1, LATE),
    ]
    assert {(one["document"], one["source"], one["within"]) for one in letters} == {(str(path), "source", ROOT)}
    fed = tmp_path / "fed.xml"
    fed.write_text(letters[0]["within"] + "".join(one["raw"].replace("ten", "10") for one in letters) + "</s>")
    again = (
        xs.read(session, fed, SCHEMA, rowTag="t", schemes="a").group_by("a").agg("count(*) AS n").run(tmp_path / "fed")
    )
    assert (again.items_in, again.tuples_out) == (4, 2)


@IN_PROCESS_BY_DAY
@pytest.mark.parametrize("slices", ["one", "each"])
@pytest.mark.parametrize("ungrammatical", ["fail", "divert"])
def test_documents_whose_numbers_are_not_their_order_are_named(
    session: Session, tmp_path: Path, ungrammatical: str, slices: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "in").mkdir()
    for number in (8, 9, 10):
        (tmp_path / "in" / f"log.{number}").write_text(f"<s><t><n>{number}</n></t></s>")
    more = ", maxFilesPerSlice 1" if slices == "each" else ""
    text = f"""CREATE TABLE s (n INT NOT NULL) USING punctuated_xml OPTIONS (path '{tmp_path}/in', rowTag 't',
        punctuate 'order of n', ungrammatical '{ungrammatical}'{more}); SELECT n FROM s"""
    query = xs.from_sql(session, text)
    what = r"log\.10 was read before \S*log\.8, since documents are read by name: .* as in log\.08"
    if ungrammatical == "fail":
        with pytest.raises(UngrammaticalStream) as raised:
            query.run(output=tmp_path / "out", checkpoint=tmp_path / "state")
        assert re.search(what, raised.value.hint or "")
    else:
        with caplog.at_level("WARNING"):
            query.run(output=tmp_path / "out", checkpoint=tmp_path / "state")
        assert re.search(what, caplog.text)
