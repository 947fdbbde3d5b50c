"""Verdicts are monotone in schemes: a promise more never makes a query answer later, nor keep more."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.properties.test_random_plans import queries
from xmlstream.optimizer.rules import optimized
from xmlstream.safety.verdicts import QueryVerdict, judged
from xmlstream.sql.script import read

TABLE = (
    "CREATE TABLE {} (a INT, b INT NOT NULL, c INT) USING punctuated_xml"
    " OPTIONS (path '{}.xml', rowTag 'r', domains 'c 0..3', schemes '{}');\n"
)
PROMISES = ["a", "b", "c", "a, b", "b, c", "b prefix", "a, b prefix", "c 0..3 by 2", "b, c 0..3 by 1"]

of_both = st.tuples(*[st.lists(st.sampled_from(PROMISES), max_size=2, unique=True)] * 2)


def verdict(query: str, schemes: Sequence[list[str]], *, follow: bool, as_written: bool) -> QueryVerdict:
    tables = "".join(TABLE.format(name, name, "; ".join(said)) for name, said in zip("rs", schemes, strict=True))
    root = read(tables + query).sketch()
    return judged(root if as_written else optimized(root), follow=follow)


@settings(max_examples=settings().max_examples // 3, suppress_health_check=[HealthCheck.too_slow])
@given(queries(2), of_both, of_both, st.booleans())
def test_a_promise_more_never_makes_it_worse(
    query: str, fewer: Sequence[list[str]], more: Sequence[list[str]], as_written: bool
) -> None:
    both = [[*dict.fromkeys([*one, *other])] for one, other in zip(fewer, more, strict=True)]
    for follow in (True, False):
        before = verdict(query, fewer, follow=follow, as_written=as_written)
        after = verdict(query, both, follow=follow, as_written=as_written)
        assert after.answers <= before.answers
        assert after.is_enabled >= before.is_enabled
        assert after.is_safe >= before.is_safe
        assert after.is_cleansed >= before.is_cleansed
