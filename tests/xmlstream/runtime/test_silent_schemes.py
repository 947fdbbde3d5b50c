"""Promises of which nothing comes: told once they have lasted, in slices and in time, and once they have ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

import xmlstream as xs
from xmlstream.operators.state.ages import PurgeAfter
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.likely_mistakes import Noticed
from xmlstream.runtime.settings import Settings
from xmlstream.runtime.silent_schemes import Patience, SourceRecord
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.findings_collector import Findings

BEGIN = datetime(2026, 11, 22, 19, tzinfo=UTC)
OPTIONS = SourceOptions.parse({"path": "s.xml", "rowTag": "t", "schemes": "hour; ts prefix"}, "hour INT, ts TIMESTAMP")


class Watched:
    """What is noticed of one source, slice by slice."""

    def __init__(self, tmp_path: Path, limit: str | None = None, *, follow: bool = True) -> None:
        patience = Patience(None if limit is None else PurgeAfter.parse(limit), follow)
        self._slice, self._tmp_path = 0, tmp_path
        self.noticed = Noticed({"s": OPTIONS}, {}, tmp_path, patience=patience)

    def slices(self, count: int, *said: str, seconds: float = 3, tuples: int = 300, kept: int = 12_300) -> list[str]:
        """After so many slices, what there is to say of silences."""
        for _ in range(count):
            self._slice += 1
            now = BEGIN + timedelta(seconds=seconds * self._slice)
            found = Findings(tuples=tuples, said=dict.fromkeys(said, 1))
            self.noticed = self.noticed.plus({"s": found}, now, {"s": kept})
            record = self.noticed.record()
            assert SourceRecord.from_json(record["s"].json()) == record["s"]
        return [f"{one.kind}: {one.what}" for one in self.noticed.findings() if one.kind != "no value"]


def test_a_promise_is_told_once_slices_and_time_have_passed_and_again_once_it_is_kept(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    assert watched.slices(1, "hour", "ts prefix") == []
    assert watched.slices(39, "ts prefix") == []
    silent = "silent: the scheme 'hour' was promised, and no punctuation of it has come for"
    assert watched.slices(1, "ts prefix") == [
        f"{silent} 40 slices, 2 min: 12,000 tuples have come since, 12,300 tuples wait"
    ]
    assert watched.slices(10, "ts prefix", tuples=0) == [
        f"{silent} 40 slices, 2 min: 12,000 tuples have come since, 12,300 tuples wait"
    ]
    assert watched.slices(1, "ts prefix", kept=0) == []
    spoke = ["sends again: punctuations of the scheme 'hour' come again, after 41 slices without"]
    assert watched.slices(1, "hour") == spoke
    assert watched.slices(38) == spoke
    assert [line.split("'")[1] for line in watched.slices(2)] == ["hour", "ts prefix"]


def test_slices_alone_or_time_alone_can_be_asked_for(tmp_path: Path) -> None:
    by_slices, by_time = Watched(tmp_path, "3 slices"), Watched(tmp_path, "1 minute")
    assert (by_slices.slices(2, "hour", seconds=0), len(by_slices.slices(1, "hour", seconds=0))) == ([], 1)
    assert (by_time.slices(20, "hour"), len(by_time.slices(1, "hour"))) == ([], 1)


def test_nothing_is_told_where_nothing_waits_nor_before_a_tuple_has_come(tmp_path: Path) -> None:
    assert Watched(tmp_path).slices(100, kept=0) == []
    assert Watched(tmp_path, "1 second").slices(100, tuples=0) == []


def test_what_is_read_to_its_end_is_told_at_once_of_a_promise_that_was_never_kept(tmp_path: Path) -> None:
    told = Watched(tmp_path, follow=False).slices(1, "hour")
    assert told == ["broken promise: the scheme 'ts prefix' was promised, and no punctuation of it has come"]
    lasting = Watched(tmp_path, follow=False).slices(50, "hour")
    assert [line.partition(":")[0] for line in lasting] == ["silent"]


def test_it_lasts_over_restarts(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "5 slices")
    watched.slices(3, "hour")
    silences = watched.noticed.record()["s"].silences
    assert silences["ts prefix"].slices == 3


def test_a_time_that_cannot_be_read_is_refused() -> None:
    for text, refusal in (("soon", "warn_after 'soon' is neither"), ("0 slices", "warn_after '0 slices' is zero")):
        with pytest.raises(UsageError, match=refusal):
            print(Settings((), warn_after=text).patience)


def test_a_punctuation_that_subsumes_those_of_a_promise_keeps_it(tmp_path: Path) -> None:
    """Each scheme of two attributes beside each form of a punctuation, as sets of values below 4."""
    sets = {"each": {1}, "prefix": {0, 1, 2}, None: {0, 1, 2, 3}}
    forms = [(one, other) for one in sets for other in sets]

    def written(form: tuple[str | None, str | None]) -> str:
        ends = {"each": "", "prefix": " prefix"}
        return ", ".join(name + ends[kind] for name, kind in zip("ab", form, strict=True) if kind is not None)

    for promised, came in product(forms[:-1], forms):
        options = SourceOptions.parse({"path": "s.xml", "rowTag": "t", "schemes": written(promised)}, "a INT, b INT")
        noticed = Noticed({"s": options}, {}, tmp_path)
        noticed = noticed.plus({"s": Findings(tuples=1, said={written(came): 1})}, BEGIN, {})
        broken = any(one.kind == "broken promise" for one in noticed.findings())
        subsumes = all(sets[kind] >= sets[of] for kind, of in zip(came, promised, strict=True))
        assert broken is not subsumes, (promised, came)


def test_a_written_punctuation_of_wildcards_keeps_every_promise_and_the_end_of_a_document_none(tmp_path: Path) -> None:
    """Tucker et al. 2007, footnote 1: what closes the stream subsumes what its schemes promise."""
    session = xs.open_session(engine="duckdb")
    for number, (more, broken) in enumerate((("", 2), ("<p:t><a>*</a></p:t>", 0), ("<p:t><a>1</a></p:t>", 1))):
        document = tmp_path / f"{number}.xml"
        document.write_text(f"<r xmlns:p='{PUNCT_NS}'><t><a>1</a><b>2</b></t>{more}</r>")
        query = xs.read(session, document, "a INT, b INT", rowTag="t", schemes="a; b prefix")
        found = query.run(tmp_path / f"out-{number}").findings
        assert [finding.kind for finding in found] == ["broken promise"] * broken
