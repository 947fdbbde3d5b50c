"""`USING stream` without a session of Spark's: what can be known of a stream, and what is refused."""

from __future__ import annotations

import pytest

import xmlstream as xs
from xmlstream.punct_ns.errors import QueryError
from xmlstream.safety.verdicts import judged
from xmlstream.session.engines import InProcessSession
from xmlstream.sql import script

COLUMNS = "(auction BIGINT, at TIMESTAMP)"


def stream(options: str, columns: str = COLUMNS) -> str:
    """A query over a stream."""
    table = f"CREATE TABLE bids {columns} USING stream OPTIONS ({options})"
    return f"{table}; SELECT auction, count(*) AS n FROM bids GROUP BY auction"


def test_a_stream_does_not_end_with_the_run() -> None:
    endless = judged(script.read(stream("view 'v'")).sketch())
    assert not endless.is_safe
    assert judged(script.read(stream("view 'v', schemes 'auction'")).sketch()).is_safe


@pytest.mark.parametrize(
    ("options", "columns", "words"),
    [
        ("view 'v'", "", "the columns of the view v are not known without its session"),
        ("schemes 'auction'", COLUMNS, "the stream has no view"),
        ("view 'v', rowTag 'bid'", COLUMNS, "a stream of Spark's has no option rowTag"),
        ("view 'v', partitionedBy 'auction'", COLUMNS, "cannot be partitionedBy"),
        ("view 'v', replay 'twice'", COLUMNS, "replay"),
    ],
)
def test_what_a_stream_cannot_have_is_refused_by_name(options: str, columns: str, words: str) -> None:
    with pytest.raises(QueryError, match=words) as refused:
        script.read(stream(options, columns))
    assert "line 1" in str(refused.value)


def test_a_session_in_process_has_no_streams_of_sparks(in_process: InProcessSession) -> None:
    with pytest.raises(QueryError, match="needs a session of Spark's") as refused:
        xs.from_sql(in_process, stream("view 'v', schemes 'auction'"))
    assert "have the stream write files" in str(refused.value)
