"""Inserts: queries that run together, each into a place of its own; what they share is computed once.

xs.run([prices.insert_into("out/prices", row_tag="price"), counts.insert_into("out/counts")], checkpoint="state")
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from punct_ns.errors import UsageError
from xmlstream.builder.run_options import CommonOptions, require_known, require_safe, settings_of
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, results, together
from xmlstream.runtime import runner
from xmlstream.runtime.measured import loads_of
from xmlstream.runtime.tally import Summary
from xmlstream.sink.target import Target
from xmlstream.sql import script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True, slots=True, repr=False)
class Insert:
    """A query and where its result goes; made by `Query.insert_into` and `inserts_from_sql`."""

    spark: SparkSession = field(repr=False, compare=False)
    root: Node
    target: Target

    def __repr__(self) -> str:
        return f"Insert[{', '.join(self.root.schema.names)}] into {self.target.shown}"


def run(inserts: Sequence[Insert], checkpoint: str | Path | None = None, **options: Unpack[CommonOptions]) -> Summary:
    """Runs queries together to the end of their input, which closes them for good unless `keep_open`.

    Args:
        inserts: The queries, each with the place of its result.
        checkpoint: Where their state lives, so that a later run goes on; None for a state that ends with the run.
        options: See `CommonOptions`.

    Raises:
        InputError: The input is malformed or ungrammatical.
        StateError: The checkpoint or an output belongs to other queries.
        UsageError: There is no query, or two results go to one place.
    """
    targets = [insert.target for insert in inserts]
    require_known(options)
    root = _plan(inserts, checkpoint, as_written=options.get("as_written", False))
    return runner.run(_session(inserts), root, settings_of(targets, checkpoint, follow=False, **options))


def start(inserts: Sequence[Insert], checkpoint: str | Path, **options: Unpack[CommonOptions]) -> StreamingQuery:
    """Starts queries together and returns Spark's own handle; they wait for more input until they are stopped.

    The arguments are those of `run`.

    Raises:
        UnsafeQuery: One would never answer, or keep tuples without bound, and `allow_unsafe` is not given.
        StateError: The checkpoint or an output belongs to other queries, or the queries were closed.
    """
    targets = [insert.target for insert in inserts]
    require_known(options)
    root = _plan(inserts, checkpoint, as_written=options.get("as_written", False))
    require_safe(root, options)
    return runner.start(_session(inserts), root, settings_of(targets, checkpoint, follow=True, **options))


def inserts_from_sql(spark: SparkSession, text: str, variables: Mapping[str, str] | None = None) -> list[Insert]:
    """The INSERT INTO statements of SQL text, in order.

    Raises:
        QueryError: It is no SQL, or does not fit its tables; or a query of it is without INSERT INTO.
    """
    read = script.read(text, variables)
    for warning in read.warnings:
        warnings.warn(warning, stacklevel=2)
    roots = results(read.plan(spark))
    found = []
    for root, answer in zip(roots, read.answers, strict=True):
        if answer.sink is None:
            hint = "write INSERT INTO before it, or take it by from_sql"
            raise answer.query.text.error("nothing says where the result goes", answer.query.start, hint)
        found.append(Insert(spark, root, answer.sink.target))
    return found


def _plan(inserts: Sequence[Insert], checkpoint: str | Path | None, *, as_written: bool) -> Node:
    root = together([insert.root for insert in inserts], [insert.target.shown for insert in inserts])
    return root if as_written else optimized(root, partial(loads_of, checkpoint))


def _session(inserts: Sequence[Insert]) -> SparkSession:
    if not inserts:
        raise UsageError("nothing to run", hint="name queries, each with insert_into")
    return inserts[0].spark
