"""Documents in object stores: found, read and told apart as files are, with few requests."""

from __future__ import annotations

import gzip
import io
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import xmlstream as xs
from tests.harness.fault_proxy import fault_proxy
from tests.harness.seaweed import ObjectServer
from tests.harness.xml_reading import in_slices, read
from xmlstream.cli.concatenation import concatenate
from xmlstream.operators.storage.object_requests import requests
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.punct_ns.errors import InputError, MalformedInput, StateError, UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.preflight import require_disjoint, require_found
from xmlstream.session.engines import InProcessSession
from xmlstream.sources import places
from xmlstream.sources.parquet_table import partition_texts
from xmlstream.sources.places import is_glob, located, split_place
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.inference.proposal import proposal
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser, read_through
from xmlstream.sources.xml.slices.micro_batches import MicroBatches
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset


def document(first: int, rows: int = 4) -> bytes:
    items = "".join(f"<r><a>{number}</a></r>" for number in range(first, first + rows))
    end = f'<p:r xmlns:p="{PUNCT_NS}"><a>[{first},{first + rows - 1}]</a></p:r>'
    return f"<s>{items}{end}</s>".encode()


@pytest.fixture
def url() -> str:
    """A place in this process."""
    return f"memory://{uuid.uuid4().hex}/here"


@pytest.fixture(params=["memory", "server"])
def place(request: pytest.FixtureRequest, url: str) -> str:
    """A place in this process, and one on the server."""
    return url if request.param == "memory" else str(request.getfixturevalue("bucket"))


def source(path: str, **options: str) -> SourceOptions:
    return SourceOptions.parse({"path": path, "rowTag": "r", "schema": "a INT", "schemes": "a", **options})


def found(path: str, root: str) -> list[str]:
    return [each.where.removeprefix(f"{root}/") for each in Documents(source(path), log=False).find()]


def counted(action: Callable[[], object]) -> dict[str, int]:
    """The requests of an action, by kind."""
    before = requests.copy()
    action()
    return dict(requests - before)


class Slices:
    """A source that is followed slice by slice; after `restart` by another process."""

    def __init__(self, path: str, log: Path, **options: str) -> None:
        self.options = source(path, **{"follow": "true", "documentLog": str(log), **options})
        self.at = Offset()
        self.restart()

    def restart(self) -> None:
        self.batches = MicroBatches(self.options)

    def planned(self, budget: int | None = None) -> Offset:
        self.batches.waiting(self.at)
        return self.batches.end(self.at, budget)

    def rows(self, end: Offset) -> list[int]:
        """The values of the slice up to an offset, which is committed then."""
        tasks = self.batches.tasks(self.at, end)
        parsed = [one for task in tasks for range_ in task.ranges for one in RangeParser(self.options).parse(range_)]
        self.at = Offset.from_json(end.json())
        return [int(value) for one in parsed for value in one.tuples["a"].to_pylist() if value is not None]

    def next(self, budget: int | None = None) -> list[int]:
        return self.rows(self.planned(budget))


def test_objects_are_found_as_files_are(place: str, tmp_path: Path) -> None:
    store = ObjectStore(place).below("in")
    names = ["b.xml", "a.xml", "c#1 %.xml", ".h.xml", "_h.xml", "c.tmp", "day-1/bid-1.xml", "day-2/bid-2.xml"]
    for name in [*names, "day-2/ask.xml", "day-2/deep/er.xml", "days"]:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(b"<s/>")
        store.write(name, [b"<s/>"])
    for path in ("in", "in/", "in/a.xml", "in/day-*/bid-*.xml", "in/*", "in/**/*.xml", "in/day-[2]", "in/[ab].xml"):
        there = found(f"{tmp_path}/{path}", str(tmp_path))
        assert there
        assert found(f"{place}/{path}", place) == there, path
    assert found(f"{place}/empty/", place) == []
    with pytest.raises(InputError, match=r"there is no object or folder .*/in/nowhere"):
        found(f"{place}/in/nowhere", place)


@pytest.fixture
def strange(bucket: str, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A place with two documents in `in`, beside objects that are none: markers of folders, and strange names."""
    from pyarrow.fs import S3FileSystem

    store, client = ObjectStore(bucket), S3FileSystem(endpoint_override=object_server.endpoint)
    for name in ("in/b.xml", "in/y.xml"):
        store.write(name, [document(1 if name == "in/b.xml" else 5)])
    for name in ("in/x_$folder$", "out/x_$folder$"):
        store.write(name, [b""])
    for name in ("in/TWO/y.xml", "in/UP/y.xml", "in/DOT/y.xml", "out/TWO/slice-000000000.xml"):
        store.write(name, [document(100)])
    for name in ("in/a\tb.xml", "in/z\x7f.xml", "out/a\nb.xml"):
        with client.open_output_stream(f"{bucket.removeprefix('s3://')}/{name}") as out:
            out.write(document(200))
    client.create_dir(f"{bucket.removeprefix('s3://')}/in/sub")
    with fault_proxy(object_server.endpoint) as proxy:
        proxy.renamed = {b"/TWO/": b"//", b"/UP/": b"/../", b"/DOT/": b"/./"}
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield bucket


def test_objects_that_are_no_documents_are_passed_over_with_a_finding(
    strange: str, in_process: InProcessSession, tmp_path: Path
) -> None:
    query = xs.read(in_process, f"{strange}/in/", "a INT", rowTag="r", schemes="a")
    summary = query.run(f"{strange}/out", tmp_path / "state")
    assert summary.tuples_out == 8
    (finding,) = (each.what for each in summary.findings if each.kind == "no documents")
    for name in (r"a\tb.xml", "//y.xml", "/../y.xml", "/./y.xml", "x_$folder$", r"z\x7f.xml"):
        assert name in finding
    out = io.BytesIO()
    assert concatenate(f"{strange}/out", out) == 1
    assert out.getvalue().count(b"<row>") == 8
    assert ObjectStore(f"{strange}/in").names() == ["b.xml", "sub/", "x_$folder$", "y.xml"]
    with pytest.raises(StateError, match="holds 1 document of an earlier query"):
        query.run(f"{strange}/out", tmp_path / "other")
    assert query.run(f"{strange}/out", tmp_path / "other", overwrite=True).tuples_out == 8
    assert proposal(f"{strange}/in/", None).schema is not None
    assert check_grammar(source(f"{strange}/in/")).findings.tuples == 8
    assert proposal(f"{strange}/in/*.xml", None).schema is not None


def test_a_name_that_a_user_gives_and_the_client_cannot_say_is_refused_in_words(bucket: str) -> None:
    for name in ("in//a.xml", "in/../a.xml", "in/a\tb.xml"):
        with pytest.raises(UsageError, match="has an empty part, a part"):
            Documents(source(f"{bucket}/{name}"), log=False).find()


def test_an_empty_object_with_the_name_of_a_folder_stands_for_it(url: str) -> None:
    store = ObjectStore(url)
    store.write("in", [b""])
    store.write("in/a.xml", [document(1)])
    assert found(f"{url}/in", url) == ["in/a.xml"]


def test_what_is_in_a_url() -> None:
    given = {"path": "s3://bucket/in/day-*/a.xml", "ENDPOINT": "http://127.0.0.1:1", "region": "r", "rowTag": "r"}
    assert located(given) == {"path": "s3://bucket/in/day-*/a.xml?endpoint=http://127.0.0.1:1&region=r", "rowTag": "r"}
    assert located({"path": "in", "region": "r"}) == {"path": "in", "region": "r"}
    assert split_place(located(given)["path"]) == ("s3://bucket/in", ("day-*", "a.xml"))
    assert source(given["path"], region="r").path == "s3://bucket/in/day-*/a.xml?region=r"
    assert is_glob("s3://bucket/day-*/a.xml")
    assert not is_glob("s3://bucket/day-1/a.xml?region=*")
    with pytest.raises(UsageError, match="a question mark begins the options"):
        is_glob("s3://bucket/bid-?.xml")
    with pytest.raises(UsageError, match="no option region"):
        source("in", region="r")
    for path, archive in (("s3://bucket/in/", "old"), ("in", "s3://bucket/old")):
        with pytest.raises(UsageError, match="moves files"):
            source(path, cleanSource="archive", sourceArchiveDir=archive)


@pytest.mark.parametrize("form", [bytes, gzip.compress])
def test_however_it_is_cut_an_object_says_what_the_file_says(
    place: str, tmp_path: Path, form: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xmlstream.sources.xml.splits.split_scan.SMALLEST_WINDOW", 1)
    monkeypatch.setattr("xmlstream.operators.storage.object_files.CHUNK", 1 << 10)
    for name, first in {"a.xml": 0, "b 100%.xml": 300, "c.xml": 600}.items():
        content = form(document(first, 300))
        (tmp_path / name).write_bytes(content)
        ObjectStore(place).write(name, [content])
    for budget, partition in ((None, "16m"), (None, "2000"), (5000, "1000"), (700, "16m")):
        local, there = (source(path, maxBytesPerPartition=partition) for path in (str(tmp_path), f"{place}/"))
        ranges = in_slices(local, budget)
        assert len(ranges) >= 3
        items = read(local, ranges).items
        assert len(items) >= 903
        assert read(there, in_slices(there, budget)).items == items


def test_a_source_goes_on_where_it_was_and_finds_what_sorts_before(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObjectStore(place)
    store.write("b.xml", [document(10)])
    store.write("c.xml", [document(20)])
    slices = Slices(f"{place}/", tmp_path)
    assert slices.next() == [10, 11, 12, 13, 20, 21, 22, 23]
    store.write("d.xml", [document(30, 100)])
    end = slices.planned(500)
    assert 0 < end.byte < len(document(30, 100))
    slices.restart()
    began = slices.rows(end)
    slices.restart()
    store.write("a.xml", [document(0)])
    monkeypatch.setattr(places, "LIST_ALL", 3600)
    assert began + slices.next() == [*range(30, 130), 0, 1, 2, 3]
    store.write("aa.xml", [document(5)])
    store.write("e.xml", [document(40)])
    assert slices.next() == [40, 41, 42, 43]
    assert slices.next() == []
    monkeypatch.setattr(places, "LIST_ALL", 0)
    assert slices.next() == [5, 6, 7, 8]
    slices.restart()
    assert slices.next() == []


def test_another_object_in_the_place_of_one_that_was_read_is_an_error_by_name(place: str, tmp_path: Path) -> None:
    store = ObjectStore(place)
    store.write("a.xml", [document(10)])
    store.write("b.xml", [document(20)])
    slices = Slices(f"{place}/", tmp_path)
    slices.next()
    if place.startswith("s3:"):
        # The ETag is made of the bytes there: they may be written again.
        store.write("a.xml", [document(10)])
        slices.restart()
        assert slices.next() == []
    store.write("a.xml", [document(50)])
    slices.restart()
    with pytest.raises(InputError, match=r"/a\.xml was replaced by another object after it was read") as raised:
        slices.next()
    assert "etag" not in raised.value.what
    slices.options = slices.options.replace(onReplaced="new")
    slices.restart()
    assert slices.next() == [50, 51, 52, 53]
    slices.restart()
    assert slices.next() == []


def test_an_object_that_is_replaced_while_it_is_read(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xmlstream.operators.storage.object_files.CHUNK", 16)  # of which the first sixteenth is kept
    store = ObjectStore(place)
    store.write("a.xml", [document(10)])
    slices = Slices(f"{place}/", tmp_path)
    end = slices.planned()
    store.write("a.xml", [document(50)])
    with pytest.raises(InputError, match=r"/a\.xml was replaced while it was read"):
        slices.rows(end)
    store.delete("a.xml")
    with pytest.raises(InputError, match=r"/a\.xml was removed before it was completely read"):
        slices.rows(end)


def test_an_object_that_was_read_in_part_is_not_read_on_in_another(place: str, tmp_path: Path) -> None:
    store = ObjectStore(place)
    store.write("a.xml", [document(10, 100)])
    slices = Slices(f"{place}/", tmp_path)
    end = slices.planned(500)
    assert end.byte
    store.write("a.xml", [document(500, 100)])
    slices.restart()
    with pytest.raises(InputError, match=r"/a\.xml was replaced"):
        slices.rows(end)
    slices.at = end
    with pytest.raises(InputError, match=r"/a\.xml was replaced"):
        slices.planned()
    slices.options = slices.options.replace(onReplaced="new")
    slices.restart()
    assert slices.next() == list(range(500, 600))


def test_an_object_that_is_not_read_yet_may_be_replaced(place: str, tmp_path: Path) -> None:
    store = ObjectStore(place)
    store.write("a.xml", [document(10)])
    store.write("b.xml", [document(20)])
    slices = Slices(f"{place}/", tmp_path, maxFilesPerSlice="1")
    assert slices.next(1 << 20) == [10, 11, 12, 13]
    store.write("b.xml", [document(60)])
    slices.restart()
    assert slices.next() == [60, 61, 62, 63]
    slices.restart()
    assert slices.next() == []


def test_one_object_is_the_whole_input(place: str, tmp_path: Path) -> None:
    ObjectStore(place).write("a.xml", [document(10)])
    slices = Slices(f"{place}/a.xml", tmp_path)
    assert slices.next() == [10, 11, 12, 13]
    assert slices.at.closed
    assert slices.next() == []


def test_an_object_is_not_waited_for(place: str, tmp_path: Path) -> None:
    store = ObjectStore(place)
    store.write("a.xml", [document(10)[:-20]])
    store.write("b.xml", [document(20)])
    slices = Slices(f"{place}/", tmp_path / "1")
    end = slices.planned()
    tasks = slices.batches.tasks(slices.at, end)
    (malformed,) = [
        bad
        for task in tasks
        for range_ in task.ranges
        for one in RangeParser(slices.options).parse(range_)
        for bad in one.malformed
    ]
    assert malformed.kind == "document"
    with pytest.raises(MalformedInput, match="Premature end") as raised:
        list(read_through(slices.options))
    assert "unfinished 'skip'" in (raised.value.hint or "")
    skipping = Slices(f"{place}/", tmp_path / "2", unfinished="skip", unfinishedAge="1h")
    assert skipping.next() == [10, 11, 12, 13, 20, 21, 22, 23]


def test_requests_are_few(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore(url)
    for number in range(5):
        store.write(f"{number}.xml", [document(10 * number)])
    slices = Slices(f"{url}/", tmp_path)
    # Whether the store can be read; the listing; each document where the slice is planned.
    assert counted(slices.restart) == {"list": 1}
    assert counted(slices.next) == {"list": 1, "get": 5}
    for _ in range(3):
        assert counted(slices.next) == {"list": 1}
    store.write("5.xml", [document(50)])
    assert counted(slices.next) == {"list": 1, "get": 1}
    assert counted(slices.restart) == {"list": 1}
    assert counted(slices.next) == {"list": 1}
    assert counted(lambda: require_found(source(f"{url}/"))) == {"list": 2}
    assert counted(lambda: Documents(source(f"{url}/5.xml"), log=False).find()) == {"head": 2}
    # 1,000 objects a request; later ones take as many as are new.
    for number in range(1100):
        store.write(f"x{number:04}.xml", [b"<s/>"])
    slices.restart()
    slices.planned()
    assert counted(slices.batches.documents.find) == {"list": 1}


def test_small_objects_are_fetched_ahead(bucket: str, object_server: ObjectServer, tmp_path: Path) -> None:
    store = ObjectStore(bucket)
    for number in range(24):
        store.write(f"{number:02}.xml", [document(10 * number)])
    with fault_proxy(object_server.endpoint) as proxy:
        slices = Slices(f"{bucket}/?endpoint={proxy.endpoint}", tmp_path)
        proxy.seconds = 0.2
        rows: list[int] = []
        assert counted(lambda: rows.extend(slices.next(1 << 20))) == {"list": 1, "get": 24}
        assert len(rows) == 24 * 4
        assert proxy.at_once[1] > 1


def test_a_large_object_is_read_in_chunks_that_a_task_needs(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xmlstream.operators.storage.object_files.CHUNK", 1 << 18)
    ObjectStore(url).write("a.xml", [document(0, 100_000)])
    options = source(f"{url}/a.xml", maxBytesPerPartition="500000")
    ranges = in_slices(options, None)
    assert len(ranges) >= 3
    size = ranges[-1].end
    parser = RangeParser(options)
    for range_ in ranges:
        took = counted(lambda range_=range_: list(parser.parse(range_)))  # type: ignore[misc]
        assert took["get"] <= 3 + range_.length / (1 << 18) + 1, (range_, size)


def test_what_reads_a_document_reads_an_object(place: str) -> None:
    store = ObjectStore(place)
    store.write("in/a.xml", [document(10)])
    store.write("in/b.xml", [document(20)])
    inferred = proposal(f"{place}/in/")
    assert (inferred.options["rowTag"], inferred.schema) == ("r", "`a` BIGINT")
    assert check_grammar(source(f"{place}/in/")).violation is None

    def streams(path: str, what: str) -> list[str]:
        return [one.path for one in Documents(source(path, documents=what), log=False, streams=True).find()]

    merged = streams(f"{place}/in/", "files")
    assert merged == [f"{place}/in/a.xml", f"{place}/in/b.xml"]
    assert sum(one.tuples.num_rows for path in merged for one in read_through(source(path, documents="one"))) == 8
    directories = streams(f"{place}/", "directories")
    assert directories == [f"{place}/in/"]
    assert streams(f"{place}/i*", "directories") == directories
    store.write("in/c.xml", [b"<s><r><a>x</a></r></s>"])
    with pytest.raises(MalformedInput) as raised:
        list(read_through(source(f"{place}/in/c.xml")))
    assert str(raised.value).count(f"{place}/in/c.xml") == 1
    assert "etag" not in str(raised.value)


def test_documents_of_a_table_are_found_in_its_partitions(url: str, tmp_path: Path) -> None:
    files = ["_closed/slice-000000001.closed", "_closed/slice-000000000.closed", "_other/a.parquet", "deep/a.parquet"]
    parts = ("hour=1/what=a%2Fb/slice-000000001.parquet", "hour=1/slice-000000000.parquet", "hour=2/_closed/x.closed")
    for name in (*files, *parts, "a.parquet", "hour=3/.hidden.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"-")
        ObjectStore(url).write(name, [b"-"])
    there, local = (
        [each.where.removeprefix(f"{root}/") for each in Documents(source(root, format="parquet"), log=False).find()]
        for root in (url, str(tmp_path))
    )
    assert len(local) == 6
    assert there == local
    (partition,) = [
        each for each in Documents(source(url, format="parquet"), log=False).find() if "what=" in each.where
    ]
    assert partition_texts(partition.where) == {"hour": "1", "what": "a/b"}


def test_a_query_does_not_read_what_it_writes() -> None:
    for path, output in [("in/", "in"), ("in", "in/out"), ("in/**/*.xml", "in/out"), ("in/*/*.xml", "in/out")]:
        with pytest.raises(UsageError, match="lies in the input"):
            require_disjoint([f"s3://bucket/{path}?region=r"], [f"s3a://bucket/{output}"])
    with pytest.raises(UsageError, match="the checkpoint"):
        require_disjoint(["s3://bucket/in"], [], "s3://bucket/in/state")
    with pytest.raises(UsageError, match="the metrics file"):
        require_disjoint(["s3://bucket/in"], [], metrics="s3://bucket/in/metrics.jsonl")
    require_disjoint(["s3://bucket/in", "/in"], ["s3://bucket/out", "s3://other/in", "s3://bucket/inner"], "in")


def test_a_store_that_cannot_be_read(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="there is no bucket s3://nowhere-at-all"):
        require_found(source("s3://nowhere-at-all/in/"))
    with pytest.raises(UsageError, match="no object or folder"):
        require_found(source(f"{bucket}/nowhere.xml"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    for path in ("in/", "a.xml", "in/*.xml"):
        with pytest.raises(UsageError, match=f"access to {bucket}.* is denied") as raised:
            require_found(source(f"{bucket}/{path}"))
        assert "AWS_ACCESS_KEY_ID" in (raised.value.hint or "")
