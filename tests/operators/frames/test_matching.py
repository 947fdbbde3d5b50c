"""The tuples that an engine finds for punctuations are those that each pattern matches, null and NaN among them."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.pages import PACKAGES, ROOT
from tests.samples.strategies import SMALL, Small, SmallSchema, Tuple, small_patterns, small_schemas
from xmlstream.operators.frames import matching as matched
from xmlstream.operators.frames.matching import flagged, matching, not_matching
from xmlstream.operators.in_process.engine import InProcessEngine
from xmlstream.punct_ns.pattern import EMPTY, WILDCARD, List, canonical
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import arrow_type

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame

ENGINE = InProcessEngine(threads=1)


@st.composite
def punctuated(draw: st.DrawFn) -> tuple[SmallSchema, list[Punctuation]]:
    drawn = draw(small_schemas(2))
    # What matches nothing is in no set, and what matches everything is there alone.
    patterns = st.tuples(*map(small_patterns, drawn.smalls)).filter(lambda each: EMPTY not in each)
    some = patterns.filter(lambda each: any(pattern != WILDCARD for pattern in each))
    return drawn, [Punctuation(drawn.schema, each) for each in draw(st.lists(some, min_size=1, max_size=3))]


@given(punctuated(), st.booleans())
def test_what_punctuations_match_is_what_the_engine_finds(
    given_: tuple[SmallSchema, list[Punctuation]], is_inline: bool
) -> None:
    small, punctuations = given_
    frame = framed(small)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matched, "INLINE", 10_000 if is_inline else -1)
        expected = [values for values in small.universe if any(each.matches(values) for each in punctuations)]
        rest = [values for values in small.universe if not any(each.matches(values) for each in punctuations)]
        assert rows(matching(frame, punctuations)) == in_order(expected)
        assert rows(not_matching(frame, punctuations)) == in_order(rest)
        flags = flagged(frame, punctuations, "hit").distinct()
        assert rows(flags.where("hit").drop("hit")) == in_order(expected)


@pytest.mark.parametrize("small", SMALL, ids=lambda small: f"{small.domain.type} {small.domain.nullable}")
def test_a_value_and_null_that_are_closed_together_are_found(small: Small) -> None:
    """As a key of which both have gone out at once."""
    schema = Schema((Attribute("a", small.domain),))
    frame = framed(SmallSchema(schema, (small,)))
    for value, other in product(small.universe, repeat=2):
        listed = [Punctuation(schema, (canonical(List((value, other)), small.domain),))]
        assert rows(matching(frame, listed)) == in_order({(value,), (other,)})
        assert len(rows(not_matching(frame, listed))) == len(small.universe) - len({value, other})


def framed(small: SmallSchema) -> Frame:
    columns = zip(*small.universe, strict=True)
    arrays = [pa.array(each, arrow_type(a.domain)) for each, a in zip(columns, small.schema, strict=True)]
    return ENGINE.rows(pa.table(arrays, names=[a.name for a in small.schema]), small.schema.ddl())


def rows(frame: Frame) -> list[str]:
    return in_order([tuple(row.values()) for row in frame.to_arrow().to_pylist()])


def in_order(tuples: Iterable[Tuple]) -> list[str]:
    """Each tuple as a text, in which equal numbers are equal."""
    return sorted(str([str(float(v) + 0) if isinstance(v, float | Decimal) else str(v) for v in t]) for t in tuples)


def test_the_spark_engine_alone_writes_how_spark_is_given_a_value_as_data() -> None:
    texts = {path: path.read_text(encoding="utf-8") for folder in PACKAGES for path in (ROOT / folder).rglob("*.py")}
    assert [path.stem for path, text in texts.items() if "& 0))" in text] == ["spark_engine"]
