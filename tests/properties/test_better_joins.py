"""The plan that is chosen at measured rates has no better one at these rates, whatever is joined.

So a start that adapts changes nothing the second time: the choice is made for the query as it is written, and what is
better is found in the plan that runs.

Joins of three to five streams are drawn, with conditions and columns, and the rates of their sources.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.properties.drawn_expressions import join_conditions
from xmlstream.optimizer.choose_joins import with_rates
from xmlstream.optimizer.rules import optimized
from xmlstream.runtime.better_joins import better_plans
from xmlstream.sql.script import read

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

NAMES = "rstuv"
TABLE = (
    "CREATE TABLE {0} (a INT, b INT, c INT) USING punctuated_xml OPTIONS (path '{0}.xml', rowTag 'x', schemes '{1}');\n"
)


@st.composite
def written(draw: st.DrawFn) -> tuple[str, dict[str, float]]:
    """A query, and the rates of its sources."""
    tables = "".join(
        TABLE.format(
            name, "; ".join(draw(st.lists(st.sampled_from(["a", "b", "c", "a prefix"]), min_size=1, max_size=3)))
        )
        for name in NAMES
    )
    count = draw(st.integers(3, 5))
    conditions = join_conditions(draw, count, ["=", "<=", "<>", "= 1 +"], most=3)
    selected = draw(st.lists(st.tuples(st.integers(0, count - 1), st.sampled_from("abc")), max_size=2))
    conditions += [f"p{i}.{name} > 1" for i, name in selected]
    froms = ", ".join(f"{draw(st.sampled_from(NAMES))} AS p{i}" for i in range(count))
    every = [f"p{i}.{name} AS {name}{i}" for i in range(count) for name in "abc"]
    columns = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    query = f"SELECT {', '.join(columns)} FROM {froms} WHERE {' AND '.join(conditions)}"
    if draw(st.booleans()):
        name = columns[0].partition(" AS ")[2]
        query = f"SELECT {name}, count(*) AS n FROM ({query}) GROUP BY {name}"
    rates = {name: draw(st.sampled_from([0.01, 0.5, 1.0, 2.0, 7.0, 100.0, 5000.0])) for name in NAMES}
    return tables + query, rates


@settings(max_examples=600 if AT_NIGHT else 25)
@given(written())
def test_the_plan_that_is_chosen_at_measured_rates_has_no_better_one(drawn: tuple[str, dict[str, float]]) -> None:
    root, rates = read(drawn[0]).sketch(), drawn[1]
    assert better_plans(optimized(with_rates(root, rates)), rates) == []
