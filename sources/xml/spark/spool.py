"""The spool of a stream: the batches of a streaming DataFrame as documents, each batch exactly once.

Tasks write the documents of a batch into the folder `pending`. The driver adds one for the punctuations, syncs all,
and records the batch in one rename; that is when it counts. Then the documents are renamed, in order, to where the
source reads them, and removes them once it has committed them. A start renames what a killed process has left; what no
record names is removed. Spark gives a batch again if it was killed before its own commit: such a batch is known by its
number, and compared by its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

import pyarrow as pa
import pyarrow.parquet as pq

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.durable import sync
from xmlstream.operators.storage.records import Record
from xmlstream.operators.storage.store import Folder, sealed, unseal
from xmlstream.punct_ns.errors import InputError, StateError
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.spark.batch_documents import WrittenPartition, metadata_of, tuple_schema

SHOWN, PENDING, SPARKS, PUBLISHED = "documents", "pending", "spark", "published.json"

MOST_SORTED = 1 << 17
"""The most rows of a batch that the driver sorts."""

_CLOSINGS, _LATE = 500_000, 500_001
"""The places of documents within a batch: partitions, then its punctuations, then tuples that come after those."""


@dataclass(frozen=True, slots=True)
class Batch(Record):
    """A batch that was published.

    Attributes:
        number: The number that Spark gives it.
        rows: The number of its rows.
        checksum: The sum of their hashes.
        documents: The names of its documents, in order, each after the name under which it was written.
    """

    number: int
    rows: int
    checksum: int
    documents: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(number: int, parts: Sequence[WrittenPartition]) -> Batch:
        """A batch by its partitions, without documents."""
        return Batch(number, sum(part.rows for part in parts), sum(part.checksum for part in parts) % (1 << 64))

    def is_again(self, other: Batch) -> bool:
        """Whether the other has the same rows, in any order."""
        return (self.rows, self.checksum) == (other.rows, other.checksum)


class BatchSpool:
    """The documents of one stream; `last` is the last batch that was published, None before the first."""

    def __init__(self, folder: Folder, options: SourceOptions) -> None:
        """Restores the spool in a folder, which is made if it is not there.

        Raises:
            StateError: It is damaged.
        """
        self._folder, self._options = folder, options
        self.pending, self._shown = folder.below(PENDING), folder.below(SHOWN)
        for each in (folder, self.pending, self._shown):
            each.make()
        self.last = Batch.from_json(unseal(folder, PUBLISHED)) if folder.size(PUBLISHED) is not None else None
        if self.last is not None:
            self._show(self.last)
        self.pending.delete(*self.pending.names())

    @property
    def path(self) -> str:
        """The directory that the source reads."""
        return self._shown.address()

    def sparks(self) -> str:
        """The directory of Spark's own record of the stream.

        A process that was killed while Spark recorded the first batch has left it so that Spark cannot go on: it is
        removed, since nothing was read.
        """
        offsets = self._folder.names(f"{SPARKS}/offsets")
        if self.last is None and not any(name.isdigit() for name in offsets):
            self._folder.delete(f"{SPARKS}/")
        return self._folder.address(SPARKS)

    def publish(self, number: int, parts: Sequence[WrittenPartition], order: Sequence[str] = ()) -> None:
        """Shows a batch to the source, by what its tasks have written into `pending`.

        The tuples are sorted by the attributes `order`, unless they are many: those the tasks have sorted.
        """
        parts = sorted(parts, key=attrgetter("number"))
        drafts = [(part.number, part.tuples) for part in parts if part.tuples is not None]
        if order and drafts and sum(part.rows for part in parts) <= MOST_SORTED:
            drafts = [(0, self._sorted(number, [draft for _, draft in drafts], order))]
        if any(part.punctuations or part.aside or part.void for part in parts):
            drafts.append((_CLOSINGS, self._closings(number, parts)))
        drafts += [(_LATE + part.number, part.late) for part in parts if part.late is not None]
        documents = tuple((draft, f"slice-{number:09d}-{place:06d}.parquet") for place, draft in drafts)
        sync([*(self.pending.path(draft) for draft, _ in documents), self.pending.path()])
        batch = replace(Batch.of(number, parts), documents=documents)
        self._folder.replace(PUBLISHED, sealed(batch.json()))
        self._show(batch)
        self.last = batch
        self.pending.delete(*self.pending.names())  # what the driver, or tasks, have sorted

    def is_interrupted(self) -> bool:
        """Whether Spark has begun a batch that it has not committed."""
        begun, committed = (
            max((int(name) for name in self._folder.names(f"{SPARKS}/{log}") if name.isdigit()), default=-1)
            for log in ("offsets", "commits")
        )
        return begun > committed

    def require_again(self, batch: Batch, name: str, *, replays: bool) -> None:
        """Makes sure that a batch that comes again has the rows that were published under its number.

        Raises:
            StateError: An earlier one comes, or one that follows none.
            InputError: It has other rows.
        """
        known = -1 if self.last is None else self.last.number
        if self.last is None or batch.number != known:
            raise StateError(
                f"Spark gives batch {batch.number} of stream {name}, and the checkpoint has those up to {known}",
                hint="Spark's record of the stream is in the same checkpoint: restore it whole, or begin anew",
            )
        if replays and not self.last.is_again(batch):
            raise InputError(
                f"batch {batch.number} of stream {name} comes again with other rows: {batch.rows}, and {self.last.rows}"
                " were read",
                hint="the source does not replay what it gave: with the option replay 'none' what was read stands",
            )

    def unread(self) -> set[int]:
        """The numbers of the batches that have documents which no commit has read."""
        return {int(name.split("-")[1]) for name in self._shown.names()}

    def _sorted(self, number: int, drafts: Sequence[str], order: Sequence[str]) -> str:
        """Writes the tuples of several documents into one, in order."""
        tables = [pq.ParquetFile(self.pending.path(draft)).read() for draft in drafts]
        table = pa.concat_tables(tables).sort_by([(name, "ascending") for name in order])
        name = f"{number}-sorted.parquet"
        pq.write_table(table, self.pending.path(name), compression="none")
        self.pending.delete(*drafts)
        return name

    def _closings(self, number: int, parts: Sequence[WrittenPartition]) -> str:
        """Writes the document of a batch's punctuations and of what was set aside."""
        said = dict.fromkeys(text for part in parts for text in part.punctuations)
        aside = [
            letter
            if letter.document is not None
            else replace(
                letter, document=f"batch {number}, partition {part.number}, row {letter.position + 1}", position=-1
            )
            for part in parts
            for letter in part.aside
        ]
        void = sum((Counter(part.void) for part in parts), Counter[str]())
        schema = tuple_schema(self._options).with_metadata(metadata_of(self._options, list(said), aside, void))
        name = f"{number}-closings.parquet"
        pq.write_table(schema.empty_table(), self.pending.path(name))
        return name

    def _show(self, batch: Batch) -> None:
        """Renames the documents of a batch to where the source reads them; those that are there already stay."""
        for draft, name in batch.documents:
            self._folder.publish(f"{PENDING}/{draft}", f"{SHOWN}/{name}")
        sync([self._shown.path(), self.pending.path()])
