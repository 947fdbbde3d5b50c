"""Shared scans: sources over the same documents are read in one pass if their elements differ."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sources.xml.options.source import SourceOptions


def shared_scans(sources: Sequence[SourceOptions]) -> list[SourceOptions]:
    """Returns the readers that are needed for these sources, in order; sources read in the same pass are beside one.

    Only what a query's plan fixes decides which sources share a pass: limits may change from run to run, and those of
    a reader are the strictest of its sources'. Sources with the same elements are not combined: separate passes are
    faster.
    """
    groups: dict[tuple[str, str | None], list[SourceOptions]] = {}
    for source in sources:
        groups.setdefault((source.path, source.encoding), []).append(source)
    readers: list[SourceOptions] = []
    for group in groups.values():
        if len({source.row_tag for source in group}) == 1:
            readers += group
        else:
            readers.append(_together(group))
    return readers


def _together(group: Sequence[SourceOptions]) -> SourceOptions:
    first, *others = group
    slices = [source.max_bytes_per_slice for source in group if source.max_bytes_per_slice is not None]
    files = [source.max_files_per_slice for source in group if source.max_files_per_slice is not None]
    return first.replace(
        beside=json.dumps([dict(other.given) for other in others]),
        maxBytesPerSlice=str(min(slices)) if slices else None,
        maxBytesPerPartition=str(min(source.max_bytes_per_partition for source in group)),
        maxFilesPerSlice=str(min(files)) if files else None,
        maxItemBytes=str(max(source.max_item_bytes for source in group)),
        clock=next((source.clock for source in group if source.clock is not None), None),
    )
