"""Lifespans from the documents to the result: each life of an id is a group of its own, however the stream is cut."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.xmlstream.runtime.killed_run import AROUND_THE_COMMIT, POINTS, crash
from xmlstream.punct_ns.errors import MalformedInput, UngrammaticalStream
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.likely_mistakes import of_source
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.options.source import SourceOptions

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

KEYS = 5
DECLARED = {"schema": "id STRING, t INT", "rowTag": "r", "schemes": "id; t prefix"}


def write(path: Path, lives: int, early: int | None = None) -> Path:
    """Five ids, life after life: two tuples each, then closed until `t` has passed; one comes `early` again."""
    items, t = [], 0
    for life in range(lives):
        for key in range(KEYS):
            items += [f"<r><id>k{key}</id><t>{t}</t></r>"] * 2
            items.append(f'<p:r p:lifespan="t &lt; {(life + 1) * KEYS}"><id>k{key}</id></p:r>')
            t += 1
        if life == early:
            items.append(f"<r><id>k0</id><t>{t}</t></r>")
        items.append(f"<p:r><t>(,{t})</t></p:r>")
    path.write_text(f'<rs xmlns:p="{PUNCT_NS}">\n' + "\n".join(items) + "\n</rs>\n")
    return path


def rows(out: Path) -> list[tuple[str | None, ...]]:
    documents = [etree.parse(path).getroot() for path in sorted(out.glob("slice-*.xml"))]
    return sorted(tuple(leaf.text for leaf in row) for root in documents for row in root.findall("row"))


def lives(count: int) -> list[tuple[str, str, str]]:
    return sorted((f"k{key}", "2", str(life * KEYS + key)) for life in range(count) for key in range(KEYS))


def counted(session: Session, path: Path, **options: str) -> xs.Query:
    return xs.read(session, str(path), **DECLARED, **options).group_by("id").agg("count(*) AS n", "min(t) AS since")


def test_check_knows_when_lifespans_end(tmp_path: Path) -> None:
    good = SourceOptions.parse({"path": str(write(tmp_path / "good.xml", 5)), **DECLARED})
    assert check_grammar(good).violation is None
    bad = SourceOptions.parse({"path": str(write(tmp_path / "bad.xml", 5, early=2)), **DECLARED})
    found = check_grammar(bad).violation
    assert found is not None
    assert (found.tuple, str(found.punctuation)) == (("k0", 15), "<k0, *> while t < 15")


@pytest.mark.parametrize(
    ("items", "told"),
    [
        (
            '<r><id>a</id><t>1</t></r><p:r p:lifespan="t &lt; 5"><id>a</id></p:r>',
            ["1 punctuation holds until t is closed up to a bound, and no punctuation closes t by itself: none of them "
             "ends"],
        ),
        (
            '<r><id>a</id><t>7</t></r><p:r><t>(,7)</t></p:r><p:r p:lifespan="t &lt; 7"><id>a</id></p:r>'
            '<r><id>a</id><t>8</t></r>',
            ["1 punctuation had ended before it came: t was closed up to the bound; later items of the same keys "
             "belong to a new life"],
        ),
        ('<r><id>a</id><t>7</t></r><p:r p:lifespan="t &lt; 8"><id>a</id></p:r><p:r><t>(,9)</t></p:r>', []),
        ('<r><id>a</id><t>7</t></r><p:r p:lifespan="PT1H"><id>a</id></p:r><p:r><t>(,9)</t></p:r>', []),
    ],
)  # fmt: skip
def test_what_will_never_end_or_had_ended_before_is_noticed(tmp_path: Path, items: str, told: list[str]) -> None:
    path = tmp_path / "in.xml"
    path.write_text(f'<rs xmlns:p="{PUNCT_NS}">{items}</rs>')
    source = SourceOptions.parse({"path": str(path), **DECLARED, "schemes": "id"})
    found = of_source("in", check_grammar(source).findings, source)
    assert [one.what for one in found if one.kind in ("endless", "ended")] == told


@pytest.mark.parametrize(
    ("lifespan", "words"),
    [
        ("an hour", "'an hour' is not a valid duration of ISO 8601, such as PT1H"),
        ("t &gt; 5", "'t > 5' is not a valid bound, such as"),
        ("u &lt; 5", "u"),
        ("t &lt; noon", "noon"),
    ],
)
def test_a_lifespan_that_cannot_be_read_is_malformed_in_words(tmp_path: Path, lifespan: str, words: str) -> None:
    path = tmp_path / "in.xml"
    path.write_text(f'<rs xmlns:p="{PUNCT_NS}"><p:r p:lifespan="{lifespan}"><id>a</id></p:r></rs>')
    with pytest.raises(MalformedInput, match=words):
        check_grammar(SourceOptions.parse({"path": str(path), **DECLARED, "mode": "FAILFAST"}))


@pytest.mark.parametrize("slice_", ["10m", "700", "200"])
def test_each_life_is_a_group_of_its_own_however_the_stream_is_cut(
    session: Session, tmp_path: Path, slice_: str
) -> None:
    path = write(tmp_path / "in.xml", 6)
    counted(session, path, maxBytesPerSlice=slice_).run(tmp_path / "out")
    assert rows(tmp_path / "out") == lives(6)


@pytest.mark.parametrize("slice_", ["10m", "300"])
def test_a_tuple_that_comes_before_the_end_is_ungrammatical(session: Session, tmp_path: Path, slice_: str) -> None:
    path = write(tmp_path / "in.xml", 4, early=1)
    with pytest.raises(UngrammaticalStream, match=r"\(k0, 10\) comes after .*<(k0|{k0,.*}), .> while t < 10"):
        counted(session, path, maxBytesPerSlice=slice_).run(tmp_path / "out")
    counted(session, path, maxBytesPerSlice=slice_, ungrammatical="drop").run(tmp_path / "dropped")
    assert rows(tmp_path / "dropped") == lives(4)


def test_what_goes_out_is_read_again_with_its_lifespans(session: Session, tmp_path: Path) -> None:
    """A selection writes the bound by the result's name; the next query finds the same lives."""
    path = write(tmp_path / "in.xml", 5)
    xs.read(session, str(path), **DECLARED).select("id AS who", "t AS at").run(tmp_path / "out", row_tag="r")
    (document,) = (tmp_path / "out").glob("slice-*.xml")
    assert 'punct:lifespan="at &lt; 10"' in document.read_text()
    again = {"schema": "who STRING, at INT", "rowTag": "r", "schemes": "who; at prefix"}
    next_ = xs.read(session, str(document), **again).group_by("who").agg("count(*) AS n", "min(at) AS since")
    next_.run(tmp_path / "next")
    assert rows(tmp_path / "next") == lives(5)
    # Of what keeps tuples back no bound is sure to be closed in time: its promises end at once, and lives are the same.
    counted(session, path).run(tmp_path / "counts")
    assert 'punct:lifespan="PT0S"' in next(iter((tmp_path / "counts").glob("slice-*.xml"))).read_text()


def joined(session: Session, path: Path, **options: str) -> xs.Query:
    left, right = (xs.read(session, str(path), **DECLARED, **options, name=name) for name in ("left_", "right_"))
    other = right.with_column_renamed("id", "key").with_column_renamed("t", "u")
    return left.join(other, "id = key").select("id", "t", "u")


@pytest.mark.parametrize("kind", ["group by", "join"])
def test_nothing_held_grows_however_many_lives_there_are(session: Session, tmp_path: Path, kind: str) -> None:
    """Neither sets of operators and sources, nor kept tuples, nor files of the checkpoint, nor commits."""
    count = 200 if AT_NIGHT else 10
    path, checkpoint = write(tmp_path / "in.xml", count), tmp_path / "state"
    held: list[int] = []
    files: list[int] = []
    commits: list[int] = []

    def look(report: dict[str, Any]) -> None:
        held.append(sum(o["punctuations_held"] + o["kept"] for o in report["operators"]))
        files.append(sum(file.is_file() for file in (checkpoint / "state").rglob("*")))
        commits.append(max(file.stat().st_size for file in (checkpoint / "commits").glob("*.json")))

    asked = (counted if kind == "group by" else joined)(session, path, maxBytesPerSlice="700")
    asked.run(tmp_path / "out", checkpoint, on_slice=look)
    found = rows(tmp_path / "out")
    if kind == "group by":
        assert found == lives(count)
    else:
        # Of each life two tuples with two, and none of one life with any of another.
        assert found == sorted((id_, since, since) for id_, _, since in lives(count) for _ in range(4))
    assert len(held) >= count // 3
    half = len(held) // 2
    # However many lives there were before: what is open, and what is closed of one life.
    assert max(held) <= (3 if kind == "group by" else 12) * KEYS, held
    assert max(files[half:]) <= max(files[:half]) + 4, files
    assert max(commits[half:]) <= 1.5 * max(commits[:half]), commits


@pytest.mark.slow
def test_after_a_crash_at_every_point_the_lives_are_the_same(session: Session, tmp_path: Path) -> None:
    asked = counted(session, write(tmp_path / "in.xml", 12), maxBytesPerSlice="500")
    for slice_id, point in enumerate(POINTS if AT_NIGHT else AROUND_THE_COMMIT, start=2):
        crash(lambda: asked.run(tmp_path / "out", tmp_path / "state"), point, slice_id)
    asked.run(tmp_path / "out", tmp_path / "state")
    assert rows(tmp_path / "out") == lives(12)
