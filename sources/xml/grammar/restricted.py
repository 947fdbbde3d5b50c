"""The attributes that a source's punctuations restrict: the check of its grammar must see them, whoever reads it.

A task knows what its own punctuations restrict. What earlier ones did, it finds in a file that the query writes. That
only spares work: what it does not find there yet is read once more where it turns out to matter.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from punct_ns.slices import LIFESPAN, POSITION
from sources.xml.options.source import SourceOptions

pc: Any = pyarrow.compute

RESTRICTED_FILE = "restricted.json"
"""The name of that file."""


def also_restricted(said: pa.RecordBatch | pa.Table, columns: Collection[str]) -> frozenset[str]:
    """The attributes beside those columns that punctuations restrict; `said` has their pattern texts."""
    if not said.num_rows:
        return frozenset()
    others = (name for name in said.schema.names if name not in columns and name not in (POSITION, LIFESPAN))
    return frozenset(name for name in others if _is_restricted(said[name]))


def _is_restricted(texts: Any) -> bool:
    return texts.null_count < len(texts) and bool(pc.any(pc.not_equal(pc.cast(texts, pa.string()), "*")).as_py())


def known_restricted(options: SourceOptions) -> frozenset[str]:
    """What punctuations of a source have restricted before, as far as the file says."""
    if options.restricted is None:
        return frozenset()
    try:
        names = json.loads(Path(options.restricted).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return frozenset()
    return frozenset(names).intersection(options.schema.names) if isinstance(names, list) else frozenset()
