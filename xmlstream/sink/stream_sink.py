"""One XML document on a byte stream, grown by each slice."""

from __future__ import annotations

from collections.abc import Iterable

from xmlstream.sink.document_form import DocumentForm
from xmlstream.sink.exactness import Exactness
from xmlstream.sink.sink import Bytes, ComputedSlice, Draft, Sink
from xmlstream.sink.standard_output import Written


class StreamSink(Sink):
    """One document on a byte stream, grown by each slice; a restart cannot unsay what was printed.

    A slice is printed before its commit: what nobody got is not committed, and what was not committed is printed again.
    """

    def __init__(self, out: Written, form: DocumentForm) -> None:
        self._out, self._form = out, form
        self._items: list[Bytes] = []
        self._exactness = Exactness.EXACT
        self._open = False
        self._broken = False

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Holds the slice's elements back."""
        self._items, self._exactness = self._form.items(slice_.parts, slice_.written), slice_.exactness
        if self._open and slice_.exactness is Exactness.LOST:
            self._items.insert(0, b'<!-- from here on exact="false": kept tuples were overdue -->\n')
        return None

    def deliver(self) -> None:
        """Prints them."""
        self._print(self._items)
        self._items = []

    def publish(self, draft: Draft | None) -> None:
        """Opens the document, at the latest."""
        self._print(())

    def close(self) -> None:
        """Ends the document, unless it cannot be written."""
        if not self._broken:
            self._print((self._form.tail,))

    def _print(self, items: Iterable[Bytes]) -> None:
        # Until it has succeeded.
        self._broken = True
        if not self._open:
            self._out.write(self._form.head(self._exactness))
            self._open = True
        for item in items:
            self._out.write(item)
        self._out.flush()
        self._broken = False
