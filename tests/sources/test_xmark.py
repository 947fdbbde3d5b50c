"""XMark's streams against a walk over the whole document, and against what the document closes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from lxml import etree

from tests.samples.xmark_documents import XMark, committed
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.slices import POSITION
from xmlstream.punct_ns.xml_form import punctuation_from_texts
from xmlstream.sources import xmark
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits import split_points
from xmlstream.sources.xml.splits import split_scan as scan_module
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner

DATA = Path(__file__).parents[2] / "data" / "xmark.xml"


def number(text: str | None) -> int | None:
    """The digits behind a prefix, or alone."""
    return None if text is None else int("".join(filter(str.isdigit, text)))


def money(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def day(text: str | None) -> Any:
    return None if text is None else datetime.strptime(text, "%m/%d/%Y").date()


def numbers(element: etree._Element, path: str, kind: str) -> list[int | None] | None:
    """Those of all elements at a path; None without any."""
    return [number(found.get(kind)) for found in element.iterfind(path)] or None


class Walk:
    """Reads a document as XMark means it, element by element."""

    def __init__(self, document: bytes) -> None:
        self.site = etree.fromstring(document)

    def text(self, element: etree._Element, path: str) -> str | None:
        found = element.find(path)
        return None if found is None else "".join(map(str, found.itertext())).strip()

    def person(self) -> Iterator[tuple[Any, ...]]:
        for one in self.site.iterfind("people/person"):
            texts = [self.text(one, path) for path in ("name", "emailaddress", "phone")]
            texts += [
                self.text(one, f"address/{part}") for part in ("street", "city", "country", "province", "zipcode")
            ]
            texts += [self.text(one, path) for path in ("homepage", "creditcard")]
            profile = one.find("profile")
            income = None if profile is None else profile.get("income")
            rest = [self.text(one, f"profile/{part}") for part in ("education", "gender", "business")]
            age = number(self.text(one, "profile/age"))
            lists = numbers(one, "profile/interest", "category"), numbers(one, "watches/watch", "open_auction")
            yield number(one.get("id")), *texts, money(income), *rest, age, *lists

    def item(self) -> Iterator[tuple[Any, ...]]:
        for region in self.site.iterfind("regions/*"):
            for one in region.iterfind("item"):
                texts = [self.text(one, path) for path in ("name", "payment", "description", "shipping")]
                quantity = number(self.text(one, "quantity"))
                location = self.text(one, "location")
                categories = numbers(one, "incategory", "category")
                yield number(one.get("id")), region.tag, location, quantity, *texts, one.get("featured"), categories

    def incategory(self) -> Iterator[tuple[Any, ...]]:
        for region in self.site.iterfind("regions/*"):
            for item in region.iterfind("item"):
                for one in item.iterfind("incategory"):
                    yield number(item.get("id")), region.tag, number(one.get("category"))

    def mail(self) -> Iterator[tuple[Any, ...]]:
        for region in self.site.iterfind("regions/*"):
            for item in region.iterfind("item"):
                for one in item.iterfind("mailbox/mail"):
                    ends = self.text(one, "from"), self.text(one, "to")
                    yield number(item.get("id")), region.tag, *ends, day(self.text(one, "date")), self.text(one, "text")

    def category(self) -> Iterator[tuple[Any, ...]]:
        for one in self.site.iterfind("categories/category"):
            yield number(one.get("id")), self.text(one, "name"), self.text(one, "description")

    def edge(self) -> Iterator[tuple[Any, ...]]:
        for one in self.site.iterfind("catgraph/edge"):
            yield number(one.get("from")), number(one.get("to"))

    def interest(self) -> Iterator[tuple[Any, ...]]:
        for person in self.site.iterfind("people/person"):
            for one in person.iterfind("profile/interest"):
                yield number(person.get("id")), number(one.get("category"))

    def watch(self) -> Iterator[tuple[Any, ...]]:
        for person in self.site.iterfind("people/person"):
            for one in person.iterfind("watches/watch"):
                yield number(person.get("id")), number(one.get("open_auction"))

    def open_auction(self) -> Iterator[tuple[Any, ...]]:
        for one in self.site.iterfind("open_auctions/open_auction"):
            amounts = [money(self.text(one, path)) for path in ("initial", "reserve", "current")]
            interval = [day(self.text(one, f"interval/{end}")) for end in ("start", "end")]
            lot = self.reference(one, "itemref", "item"), self.reference(one, "seller", "person")
            quantity, kind = number(self.text(one, "quantity")), self.text(one, "type")
            privacy = self.text(one, "privacy")
            yield number(one.get("id")), *amounts, privacy, *lot, quantity, kind, *interval, *self.annotation(one)

    def bidder(self) -> Iterator[tuple[Any, ...]]:
        for auction in self.site.iterfind("open_auctions/open_auction"):
            for position, one in enumerate(auction.iterfind("bidder"), 1):
                when = day(self.text(one, "date")), self.text(one, "time")
                increase = money(self.text(one, "increase"))
                yield number(auction.get("id")), position, *when, self.reference(one, "personref", "person"), increase

    def closed_auction(self) -> Iterator[tuple[Any, ...]]:
        for one in self.site.iterfind("closed_auctions/closed_auction"):
            who = [self.reference(one, role, "person") for role in ("seller", "buyer")]
            lot = self.reference(one, "itemref", "item")
            sale = money(self.text(one, "price")), day(self.text(one, "date"))
            quantity, kind = number(self.text(one, "quantity")), self.text(one, "type")
            yield *who, lot, *sale, quantity, kind, *self.annotation(one)

    def annotation(self, one: etree._Element) -> tuple[Any, ...]:
        author = self.reference(one, "annotation/author", "person")
        return author, self.text(one, "annotation/description"), number(self.text(one, "annotation/happiness"))

    def reference(self, element: etree._Element, path: str, kind: str) -> int | None:
        found = element.find(path)
        return None if found is None else number(found.get(kind))


def stream(path: Path, name: str, **options: str) -> SourceOptions:
    return SourceOptions.parse(xmark.source_options({"path": str(path), "stream": name, "follow": "false", **options}))


Read = tuple[list[tuple[Any, ...]], PunctuationSet]


def read_all(options: SourceOptions, budget: int | None = None) -> list[Read]:
    """Tuples and punctuations of a source and of each beside it."""
    sources = options.streams
    planner = Planner(options, Documents(options, log=False))
    tuples = [list[tuple[Any, ...]]() for _ in sources]
    said = [PunctuationSet(each.schema) for each in sources]
    at = Offset()
    while True:
        after, ranges = planner.advance(at, planner.sizes(at), budget)
        if after == at:
            return list(zip(tuples, said, strict=True))
        at = after
        parser = RangeParser(options)
        for range_ in ranges:
            for each in parser.parse_all(range_):
                for parsed, rows, closed, source in zip(each, tuples, said, sources, strict=True):
                    assert not parsed.malformed
                    rows += [tuple(row.values()) for row in parsed.tuples.drop_columns([POSITION]).to_pylist()]
                    for texts in parsed.punctuations.drop_columns([POSITION]).to_pylist():
                        closed.add(punctuation_from_texts(list(texts.values()), source.schema))


def test_the_committed_document_is_the_one_of_its_script() -> None:
    assert DATA.read_text(encoding="utf-8") == committed()


@pytest.mark.parametrize("name", xmark.XMARK_STREAMS)
def test_every_stream_has_the_values_that_the_document_has(name: str) -> None:
    ((rows, closed),) = read_all(stream(DATA, name))
    walk = Walk(DATA.read_bytes())
    expected: Callable[[], Iterator[tuple[Any, ...]]] = getattr(walk, name)
    assert rows == list(expected())
    assert len(rows) > 5
    assert closed.is_all
    assert check_grammar(stream(DATA, name)).violation is None


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(12))
def test_one_pass_feeds_all_streams_with_what_each_has_alone(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    counts = {"people": 12, "items": 10, "opened": 9, "closed": 5, "categories": 4}
    size = random.choice([0, 0.3, 1, 1])
    path = tmp_path / "site.xml"
    path.write_text(XMark(seed, **{kind: int(count * size) for kind, count in counts.items()}).document())
    names = random.sample(list(xmark.XMARK_STREAMS), random.randint(2, len(xmark.XMARK_STREAMS)))
    alone = [read_all(stream(path, name))[0] for name in names]
    monkeypatch.setattr(split_points, "CHUNK_BYTES", random.choice([1, 1000, 1 << 20]))
    monkeypatch.setattr(scan_module, "SCAN_WINDOW", random.choice([100, 5000, 1 << 20]))
    first, *others = (stream(path, name, maxBytesPerPartition=random.choice(["1", "5k"])) for name in names)
    together = Reading.of(first, beside=tuple(map(Reading.of, others)))
    for (rows, closed), (expected, all_closed) in zip(
        read_all(together, random.choice([1, 3000, None])), alone, strict=True
    ):
        assert rows == expected
        assert closed.is_all == all_closed.is_all


@pytest.mark.parametrize(
    ("name", "is_over"), [("person", True), ("item", True), ("bidder", False), ("open_auction", False)]
)
def test_a_section_is_over_before_the_document_is(tmp_path: Path, name: str, is_over: bool) -> None:
    text = DATA.read_bytes()
    path = tmp_path / "unfinished.xml"
    path.write_bytes(text[: text.index(b"<open_auction id=")])
    ((_, said),) = read_all(stream(path, name, keepOpen="true"))
    assert said.is_all == is_over


def test_each_auction_is_closed_for_its_bidders_by_its_end_tag(tmp_path: Path) -> None:
    text = DATA.read_bytes()
    path = tmp_path / "unfinished.xml"
    path.write_bytes(text[: text.index(b'<open_auction id="open_auction7"')])
    ((_, bidders),) = read_all(stream(path, "bidder", keepOpen="true"))
    ((_, auctions),) = read_all(stream(path, "open_auction", keepOpen="true"))
    ((_, items),) = read_all(stream(path, "item", keepOpen="true", sectionEnds="regions/* region"))
    assert list(map(str, bidders)) == ["<[0,6], *, *, *, *, *>"]
    assert [str(p).split(", *")[0] for p in auctions] == ["<[0,6]"]
    regions = [str(p).removeprefix("<*, ").split(", *")[0] for p in items if p.restricted == (1,)]
    assert regions == ["{africa,asia,australia,europe,namerica,samerica}"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no stream"),
        ({"stream": "bid"}, "no stream bid"),
        ({"stream": "bidder", "rowTag": "bid"}, "its own rowTag"),
        ({"stream": "bidder", "path.increase": "x"}, "its own path.increase"),
        ({"stream": "bidder", "path": "*.xml"}, "documents 'files'"),
    ],
)
def test_what_is_no_stream_of_xmark_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        SourceOptions.parse(xmark.source_options({"path": "site.xml", **given}))
    assert message in str(refusal.value)


def test_documents_in_sequence_can_be_read_if_nothing_is_closed_by_their_structure() -> None:
    options = SourceOptions.parse(
        xmark.source_options({"path": "*.xml", "STREAM": "Person", "uniqueIds": "", "sectionends": ""})
    )
    assert not options.structural
    assert not options.schemes
