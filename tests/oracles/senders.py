"""Many senders, each with a document that grows: drawn, written, and what their table must answer.

The definition, over lists, from `SEMANTICS.md` alone: each document is a stream with an order and slack of its own;
what all open ones have closed is closed; one that ends holds nobody up, and while none is open what any has closed is;
one that begins has closed what is closed then. It shares no code with what it checks. Times are numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

NOTHING = -(10**9)
"""Below all times."""


@dataclass
class Row:
    """A row of a document: its number, who has sent it, and its time; None for none."""

    number: int
    who: str
    at: int | None

    def xml(self) -> str:
        at = "" if self.at is None else f"<at>{self.at}</at>"
        return f"<r><who>{self.who}</who>{at}<n>{self.number}</n></r>\n"


@dataclass
class Stream:
    """A stream: the document that is written now, or all of a directory; how far it has closed, of each sender."""

    path: Path
    is_new: bool = True
    behind: int = NOTHING
    closed: dict[str, int] = field(default_factory=dict)
    is_open: bool = True
    documents: int = 0
    files: list[Path] = field(default_factory=list)


@dataclass
class World:
    """Senders in a directory, and the oracle of what a table over their documents has taken and closed.

    Attributes:
        slack: How far a row may be behind the greatest time of its stream.
        ahead: How far it may be ahead of it; None for any distance.
        roster: The senders that must have closed; None if the streams decide.
        in_directories: Whether each sender has a directory of documents, which follow each other.
    """

    place: Path
    random: Random
    slack: int = 0
    ahead: int | None = None
    roster: tuple[str, ...] | None = None
    in_directories: bool = False
    streams: list[Stream] = field(default_factory=list)
    taken: dict[int, int | None] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)
    closed: int = NOTHING
    rows: int = 0
    waiting: list[tuple[Stream, Row]] = field(default_factory=list)
    ending: list[Stream] = field(default_factory=list)
    clock: int = 0

    def begin(self, who: str) -> Stream:
        """A sender begins another stream."""
        name = f"{who}-{len(self.streams)}"
        stream = Stream(self.place / name if self.in_directories else self.place / f"{name}.xml")
        if self.in_directories:
            stream.path.mkdir()
        self.streams.append(stream)
        self._document(stream)
        return stream

    def _document(self, stream: Stream) -> None:
        path = stream.path / f"{stream.documents:03d}.xml" if self.in_directories else stream.path
        stream.documents += 1
        stream.files.append(path)
        path.write_text("<rs>\n")

    def write(self, stream: Stream, who: str, at: int | None) -> None:
        """A sender appends a row."""
        row = Row(self.rows, who, at)
        self.rows += 1
        with stream.files[-1].open("a") as document:
            document.write(row.xml())
        self.waiting.append((stream, row))

    def end_document(self, stream: Stream, *, last: bool) -> None:
        """A document ends; the stream with it, or the next document of its directory follows."""
        with stream.files[-1].open("a") as document:
            document.write("</rs>\n")
        if not self.in_directories:
            self.ending.append(stream)
        elif not last:
            self._document(stream)

    def finish(self) -> None:
        """All documents end."""
        for stream in self.streams:
            if "</rs>" not in (text := stream.files[-1].read_text()):
                stream.files[-1].write_text(f"{text}</rs>")

    # The oracle.

    def read(self) -> None:
        """What is there now is read, in slices of whatever length."""
        for stream in self.streams:
            if stream.is_new:
                stream.is_new, stream.behind = False, max(self.closed, self._closed_of(stream))
        before = self.closed
        for stream, row in self.waiting:
            self._take(stream, row, before)
        for stream in self.ending:
            stream.is_open = False
        self.waiting, self.ending = [], []
        self.closed = max(self.closed, self._common())

    def _take(self, stream: Stream, row: Row, before: int) -> None:
        unit = row.who if self.roster is not None else ""
        closed = stream.closed.get(unit, NOTHING)
        if (
            row.at is not None
            and closed > NOTHING
            and self.ahead is not None
            and row.at > closed + self.slack + self.ahead
        ):
            self.late.add(row.number)  # set aside, and moves nothing
        elif row.at is not None and (row.at < closed or row.at < stream.behind):
            self.late.add(row.number)
            # What another stream has closed does not keep the row from moving its own.
            stream.closed[unit] = max(closed, row.at - self.slack)
        else:
            self.taken[row.number] = row.at
            if row.at is not None:
                stream.closed[unit] = max(closed, row.at - self.slack)

    def _closed_of(self, stream: Stream) -> int:
        """How far the sender of a stream has closed anywhere, if there is a roster."""
        who = stream.path.name[0]
        return max(s.closed.get(who, NOTHING) for s in self.streams) if self.roster is not None else NOTHING

    def _common(self) -> int:
        if self.roster is not None:
            return min(max((s.closed.get(who, NOTHING) for s in self.streams), default=NOTHING) for who in self.roster)
        bounds = [stream.closed.get("", NOTHING) for stream in self.streams if stream.is_open]
        if bounds:
            return min(bounds)
        return max((stream.closed.get("", NOTHING) for stream in self.streams), default=NOTHING)

    # The draw.

    def step(self) -> None:
        """Something happens to the senders between two readings."""
        random, names = self.random, ("a", "b", "c")
        self.clock += random.randint(1, 4)
        open_ = [stream for stream in self.streams if stream.is_open and stream not in self.ending]
        for who in names:
            mine = [stream for stream in open_ if stream.path.name.startswith(who)]
            if not mine:
                if random.random() < 0.4:
                    mine = [self.begin(who)]
                else:
                    continue
            elif random.random() < 0.25:
                continue  # it is silent
            for stream in mine[-1:] if self.roster is not None else mine:
                for _ in range(random.randint(0, 4)):
                    self.write(stream, who, self._time())
                kind = random.random()
                if kind < 0.2:
                    self.end_document(stream, last=False)
                elif kind < 0.3 and not self.in_directories and self.roster is None:
                    self.begin(who)  # it was restarted, and the document before has no end
        if len(self.streams) < 9 and random.random() < 0.15 and self.roster is None:
            self.begin(random.choice("de"))

    def _time(self) -> int | None:
        kind = self.random.random()
        if kind < 0.05:
            return None
        if kind < 0.1:
            return self.clock + self.random.choice([40, -30])
        return self.clock + self.random.randint(-self.slack - 1, 2)
