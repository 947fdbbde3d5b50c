"""Each hint on data leads where it says: what it proposes is done, and the error goes.

A hint names several ways. What is declared, written in OPTIONS or in the query, or set as an option is taken from the
text of the hint; a change of the document is that of the case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import xmlstream as xs
from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.xml.parser import malformed


@dataclass(frozen=True)
class Run:
    """A document, and how it is read."""

    document: bytes
    columns: str
    options: dict[str, str] = field(default_factory=dict)
    select: str = "*"

    def error(self, directory: Path) -> XmlStreamError | None:
        """What the run ends with; None if it ends well."""
        directory.mkdir()
        (directory / "x.xml").write_bytes(self.document)
        given = {"path": str(directory / "x.xml"), "rowTag": "r", **self.options}
        options = ", ".join(f"`{name}` {_quoted(value)}" for name, value in given.items())
        query = f"CREATE TABLE t ({self.columns}) USING punctuated_xml OPTIONS ({options}); SELECT {self.select} FROM t"
        try:
            xs.from_sql(xs.open_session(engine="duckdb"), query).run(output=str(directory / "out"))
        except XmlStreamError as error:
            return error
        return None


def _quoted(value: str) -> str:
    return '"' + value + '"' if "'" in value else f"'{value}'"


TEXT = r"""(?:'[^']*'|"[^"]*")"""
OPTION = re.compile(rf"\b((?:path\.)?[a-z]\w*) ({TEXT})")
DECLARED = re.compile(r"declare (\w+) ([A-Z]+(?:\(\d+, \d+\))?)(?=$|,| |:)")


def followed(run: Run, hint: str) -> Iterator[tuple[str, Run]]:
    """Each way that a hint names, and the run that takes it."""
    for way in re.split(r", or (?=write |declare |divert |correct |leave )|, (?=divert )| or (?=path\.)", hint):
        columns, select = run.columns, run.select
        options = {name: text[1:-1] for name, text in OPTION.findall(way)}
        if declared := DECLARED.search(way):
            columns = re.sub(rf"\b{declared[1]} [A-Z]+(\([^)]*\))?", f"{declared[1]} {declared[2]}", columns)
        if computed := re.search(r"write (.+) in the query$", way):
            options, select = {}, f"{computed[1]} AS computed"
        if array := re.search(r"declare (\w+) as an array", way):
            columns = re.sub(rf"\b{array[1]} ([A-Z]+)", rf"{array[1]} ARRAY<\1>", columns)
        if left_out := re.search(r"leave (\w+Format) out", way):
            options = {name: value for name, value in run.options.items() if name != left_out[1]}
            yield way, replace(run, options=options)
            continue
        if "leave NOT NULL out" in way:
            columns = columns.replace(" NOT NULL", "")
        if "with the option ungrammatical" in way:
            options = {"ungrammatical": "divert"}
        changed = replace(run, columns=columns, select=select, options={**run.options, **options})
        if changed != run:
            yield way, changed


V = "a STRING, v INT"
ROWS = "<s>{}<r><a>x</a><v>1</v></r></s>"


def _of(type_: str, text: str) -> tuple[str, Run]:
    return f"{type_} {text}", Run(f"<s><r><a>x</a><v>{text}</v></r></s>".encode(), f"a STRING, v {type_}")


VALUES = dict(
    [
        *(_of("INT", text) for text in ("1.5", "99999999999", "99999999999999999999", "1e3", "n/a", "1 000", "7 kg")),
        *(_of("DOUBLE", text) for text in ("1,5", "1.234,5", "15%")),
        *(_of("DECIMAL(5,2)", text) for text in ("1.555", "12,5", "1234.5")),
        *(_of("DATE", text) for text in ("27.11.2026", "2026-11-27T01:02:03", "20261127")),
        *(
            _of("TIMESTAMP", text)
            for text in ("27.11.2026 05:00:10", "1764201600", "1764201600123", "2026-11-27 10:00:00 CET")
        ),
        *(_of("TIMESTAMP", f"2026-11-27T{time}") for time in ("24:00:00", "24:00", "23:59:60", "23:59:60Z")),
        *(_of("TIMESTAMP", f"2026-11-27T01:02:03.{'1' * n}") for n in (7, 8, 9)),
        _of("BOOLEAN", "ja"),
        (
            "a format",
            Run(
                b"<s><r><a>x</a><v>2026-11-27T10:00:00</v></r></s>",
                "a STRING, v TIMESTAMP",
                {"timestampFormat": "dd.MM.yyyy HH:mm"},
            ),
        ),
        ("two", Run(b"<s><r><a>x</a><a>y</a><v>1</v></r></s>", V)),
        ("two namespaces", Run(b"<s xmlns:p='p' xmlns:q='q'><r><p:a>x</p:a><q:a>y</q:a><v>1</v></r></s>", V)),
        ("a namespace", Run(b"<s xmlns:q='q'><r><a>x</a><q:a>y</q:a><v>1</v></r></s>", V)),
        ("null", Run(b"<s><r><a>x</a></r></s>", "a STRING, v INT NOT NULL")),
        ("elsewhere", Run(b"<s><r><a>x</a><b><v>1</v></b></r></s>", "a STRING, v INT NOT NULL")),
        (
            "ungrammatical",
            Run(f"<s xmlns:p='{PUNCT_NS}'><p:r><v>1</v></p:r><r><a>x</a><v>1</v></r></s>".encode(), V),
        ),
        ("order", Run(b"<s><r><a>x</a><v>2</v></r><r><a>x</a><v>1</v></r></s>", V, {"punctuate": "order of v"})),
    ]
)


@pytest.mark.parametrize("name", VALUES)
def test_each_way_that_a_hint_on_a_value_names_ends_the_error(name: str, tmp_path: Path) -> None:
    run = VALUES[name]
    if (error := run.error(tmp_path / "as it is")) is None:
        pytest.fail("it is read as it is")
    assert error.hint
    ways = dict(followed(run, error.hint))
    assert len(ways) > (name not in {"ungrammatical", "order"}), "a mode, and what to declare"
    for number, changed in enumerate(ways.values()):
        again = changed.error(tmp_path / str(number))
        assert again is None, (list(ways)[number], changed, again)


FLAWS = {
    "ampersand": (b"<s><r><a>A&B</a></r></s>", b"&", b"&amp;"),
    "ampersand at the end": (b"<s><r><a>A & B</a></r></s>", b"&", b"&amp;"),
    "less": (b"<s><r><a>1 < 2</a></r></s>", b"1 <", b"1 &lt;"),
    "less before a name": (b"<s><r><a>a<b</a></r></s>", b"a<b", b"a&lt;b"),
    "a digit": (b"<s><r><1x>a</1x></r></s>", b"1x>a</1x", b"x1>a</x1"),
    "cut off": (b"<s><r><a>x</a></r", b"</r", b"</r></s>"),
    "cut off in a section": (b"<s><r><a><![CDATA[x", b"x", b"x]]></a></r></s>"),
    "cut off in a comment": (b"<s><!-- x", b"x", b"x --></s>"),
    "cut off in a tag": (b"<s><r id='1'", b"'1'", b"'1'/></s>"),
    "cut off in an attribute": (b"<s><r id", b"id", b"id='1'/></s>"),
    "NUL": (b"<s><r><a>x\x00</a></r></s>", b"\x00", b""),
    "UTF-16 without a mark": ("<s><r><a>x</a></r></s>".encode("utf-16-le"), b"", b""),
    "curly quotes": ("<s><r id=“1”/></s>".encode(), "=“1”".encode(), b"='1'"),
    "a blank": (b"< s><r><a>x</a></r></s>", b"< s", b"<s"),
    "a text behind the root": (b"<s/>x", b"x", b""),
    "tag": (b"<s><r><a>x</v></r></s>", b"</v>", b"</a>"),
    "tag before another": (b"<s><r><a>x<v>1</v></r></s>", b"</r>", b"</a></r>"),
    "tag of the root": (b"<s><r><a>x</a></r></t>", b"</t>", b"</s>"),
    "prefix": (b"<s><r><x:a>b</x:a></r></s>", b"<s>", b"<s xmlns:x='urn:x'>"),
    "prefix of an attribute": (b"<s><r x:b='1'><a>b</a></r></s>", b"<s>", b"<s xmlns:x='urn:x'>"),
    "prefix of the root": (b"<x:s><r><a>b</a></r></x:s>", b"<x:s>", b"<x:s xmlns:x='urn:x'>"),
    "attribute": (b"<s><r a='1' a='2'/></s>", b" a='2'", b""),
    "no quotes": (b"<s><r a=1/></s>", b"=1", b"='1'"),
    "control": (b"<s><r><a>\x01</a></r></s>", b"\x01", b""),
    "reference to a control": (b"<s><r><a>&#1;</a></r></s>", b"&#1;", b""),
    "comment": (b"<s><!-- a -- b --><r><a>x</a></r></s>", b" -- ", b" - "),
    "version": (b"<?xml version='2.0'?><s><r><a>x</a></r></s>", b"2.0", b"1.0"),
    "empty": (b"", b"", b"<s/>"),
    "end": (b"<s><r><a>x</a></r>", b"</r>", b"</r></s>"),
    "not XML": (b"hello", b"hello", b"<s/>"),
    "declaration": (b"\n<?xml version='1.0'?><s/>", b"\n", b""),
    "encoding": (b"<?xml version='1.0' encoding='foo'?><s><r><a>x</a></r></s>", b"", b""),
    "another encoding": (b"<?xml version='1.0' encoding='UTF-16'?><s><r><a>x</a></r></s>", b"", b""),
    "bytes": ("<s><r><a>ü</a></r></s>".encode("latin-1"), b"", b""),
    "two roots": (b"<r><a>x</a></r><r><a>x</a></r>", b"<r><a>x</a></r>", b""),
}
"""Documents that are not well-formed; what to write in place of what, or nothing where the hint names an option."""


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
@pytest.mark.parametrize("name", FLAWS)
def test_what_a_hint_on_a_document_names_ends_the_error(name: str, mode: str, tmp_path: Path) -> None:
    document, old, new = FLAWS[name]
    run = Run(document, "a STRING", {"mode": mode})
    error = run.error(tmp_path / "as it is")
    assert error is not None
    assert error.hint, error
    assert "PERMISSIVE" not in error.hint, "no mode reads a document that is not well-formed"
    if old == new:
        ways = [changed for _, changed in followed(run, error.hint)]
        assert ways
    else:
        ways = [replace(run, document=document.replace(old, new, 1))]
        written = re.findall(r"(?:write|declare .*:|as|of) (</?[^ >]+>|xmlns:[^ ,;]+|[a-z]+='1'|&\w+;)", error.hint)
        is_written = [each.encode() in ways[0].document for each in written]
        assert any(is_written) or not written or "cut off" in error.hint or "a name begins" in error.hint, (
            "as the hint says"
        )
    for number, way in enumerate(ways):
        after = way.error(tmp_path / str(number))
        assert after is None or "no item in t" in after.what, after


def test_there_is_a_document_for_each_hint(tmp_path: Path) -> None:
    seen = set()
    for number, (document, _, _) in enumerate(FLAWS.values()):
        error = Run(document, "a STRING").error(tmp_path / str(number))
        assert error is not None
        seen |= {flaw for flaw in malformed._FLAWS if re.match(flaw, error.what)}
    assert seen == {*malformed._FLAWS}


def test_a_result_on_standard_output_has_no_end_where_the_query_fails(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The end of its root would close the result for whoever reads it, as if nothing followed."""
    rows = "".join(f"<r><a>x</a><v>{n}</v></r>" for n in (1, 2))
    (tmp_path / "1.xml").write_text(f"<s>{rows}</s>")
    (tmp_path / "2.xml").write_text(f"<s>{rows}<r><v>x</v></r></s>")
    options = f"path '{tmp_path}/*.xml', rowTag 'r', maxFilesPerSlice '1'"
    query = f"CREATE TABLE t ({V}) USING punctuated_xml OPTIONS ({options}); SELECT * FROM t"
    with pytest.raises(XmlStreamError, match="'x' is not a valid INT"):
        xs.from_sql(xs.open_session(engine="duckdb"), query).run(output="-")
    printed = capfdbinary.readouterr().out
    assert printed.count(b"<row>") == 2
    assert b"</rows>" not in printed
    (tmp_path / "2.xml").write_text(f"<s>{rows}</s>")
    xs.from_sql(xs.open_session(engine="duckdb"), query).run(output="-")
    assert capfdbinary.readouterr().out.endswith(b"</rows>\n")
