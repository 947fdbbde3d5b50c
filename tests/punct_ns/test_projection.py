from __future__ import annotations

import time
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.samples import strategies
from tests.samples.strategies import SmallSchema, Tuple
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.recast import project
from xmlstream.punct_ns.schema import Attribute, Schema

REPORTS = Schema.parse("sid STRING, hour INT, min INT NOT NULL, temp DOUBLE", domains="min 0..59")
HOUR = Schema.parse("hour INT")
TINY = [small for small in strategies.SMALL if len(small.universe) <= 3 or small.domain.type == "DATE"]


def hours(*texts: str, reports: Schema = REPORTS) -> list[str]:
    said = [Punctuation.parse(text, reports) for text in texts]
    return [str(p) for p in project(PunctuationSet(reports, said), ["hour"], HOUR)]


def closed(space: SmallSchema, places: list[int], ps: list[Punctuation]) -> dict[Tuple, bool]:
    """By brute force: of each choice of values at these places, whether every extension is covered."""
    found: dict[Tuple, bool] = {}
    for t in space.universe:
        kept = tuple(t[place] for place in places)
        found[kept] = found.get(kept, True) and oracle.set_match(t, ps)
    return found


def drawn_places(data: st.DataObject, space: SmallSchema) -> tuple[list[int], Schema]:
    places = data.draw(st.lists(st.sampled_from(range(len(space.smalls))), unique=True, min_size=1))
    return places, Schema(tuple(Attribute(f"out{i}", space.schema[place].domain) for i, place in enumerate(places)))


@given(st.data(), strategies.small_schemas())
def test_universal_projection_is_exact(data: st.DataObject, space: SmallSchema) -> None:
    ps = data.draw(st.lists(strategies.small_punctuations(space), max_size=8))
    places, output = drawn_places(data, space)
    found = project(PunctuationSet(space.schema, ps), [space.schema[place].name for place in places], output)
    for kept, expected in closed(space, places, ps).items():
        assert oracle.set_match(kept, found) == expected


@given(st.data(), strategies.small_schemas(among=TINY))
def test_what_is_new_is_what_the_new_ones_bring_about(data: st.DataObject, space: SmallSchema) -> None:
    old, new = (data.draw(st.lists(strategies.small_punctuations(space), max_size=5)) for _ in range(2))
    places, output = drawn_places(data, space)
    names = [space.schema[place].name for place in places]
    said = PunctuationSet(space.schema, old)
    found = project(said, names, output, new=said.add_all(new))
    before, after = closed(space, places, old), closed(space, places, old + new)
    for kept in after:
        assert before[kept] or oracle.set_match(kept, found) == after[kept]
        assert after[kept] or not oracle.set_match(kept, found)


@settings(max_examples=25)
@given(st.data(), strategies.small_schemas(4, among=[s for s in strategies.SMALL if len(s.universe) <= 6]))
def test_four_attributes_are_exact(data: st.DataObject, space: SmallSchema) -> None:
    ps = data.draw(st.lists(strategies.small_punctuations(space, wild=False), max_size=12))
    output = Schema(space.schema.attributes[:1])
    found = project(PunctuationSet(space.schema, ps), ["a"], output)
    for kept, expected in closed(space, [0], ps).items():
        assert oracle.set_match(kept, found) == expected


def test_a_punctuation_that_restricts_another_attribute_closes_nothing_by_itself() -> None:
    assert hours("<*, 3, [0,50], *>") == []
    assert hours("<*, 3, *, *>") == ["<3>"]
    assert hours("<S01, 3, *, *>", "<S02, 3, *, *>") == []


def test_several_that_cover_what_is_removed_count_as_one() -> None:
    assert hours("<*, 3, [0,30], *>", "<*, {3,4}, [31,59], *>") == ["<3>"]
    assert hours("<*, *, [0,30], *>", "<*, [5,9], [31,59], *>") == ["<[5,9]>"]
    assert hours("<*, 3, *, (,20)>", "<*, 3, *, [20,)>") == []
    assert hours("<*, 3, *, (,20)>", "<*, 3, *, [20,)>", "<*, 3, *, null>") == ["<3>"]


def test_a_nullable_attribute_wants_null_covered_too() -> None:
    nullable = Schema.parse("sid STRING, hour INT, min INT, temp DOUBLE", domains="min 0..59")
    assert hours("<*, 3, [0,59], *>", reports=nullable) == []
    assert hours("<*, 3, [0,59], *>", "<*, *, null, *>", reports=nullable) == ["<3>"]


def test_the_end_of_the_stream_is_the_end_of_its_projection() -> None:
    assert hours("<*, *, *, *>") == ["<*>"]
    assert hours("<*, *, [0,30], *>", "<*, *, [31,59], *>") == ["<*>"]
    assert hours() == []
    assert [str(p) for p in project(PunctuationSet(REPORTS, [Punctuation.all(REPORTS)]), [], Schema(()))] == ["<>"]


def test_an_attribute_named_twice_is_described_at_both_places() -> None:
    twice = Schema.parse("a INT, b INT")
    found = project(PunctuationSet(REPORTS, [Punctuation.parse("<*, 3, *, *>", REPORTS)]), ["hour", "hour"], twice)
    assert [str(p) for p in found] == ["<3, *>", "<*, 3>"]


def test_values_are_widened_with_their_attribute() -> None:
    wide = Schema((Attribute("m", Domain("DOUBLE")),))
    found = project(PunctuationSet(REPORTS, [Punctuation.parse("<*, *, [7,30], *>", REPORTS)]), ["min"], wide)
    assert [str(p) for p in found] == ["<[7.0,30.0]>"]


def test_a_slice_of_an_old_stream_costs_no_more_than_one_of_a_young_one() -> None:
    said = PunctuationSet(REPORTS)
    quarters = [f"[{low},{low + 14}]" for low in (0, 15, 30)]
    for hour, quarter in product(range(0, 4_000, 2), quarters[:2]):
        said.add(Punctuation.of(REPORTS, {"hour": Constant(hour), "min": quarter}))
    started = time.process_time()
    for hour in range(0, 200, 2):
        last = Punctuation.of(REPORTS, {"hour": Constant(hour), "min": "[30,59]"})
        assert len(project(said, ["hour"], HOUR, new=said.add_all([last]))) == 1
    seconds = time.process_time() - started
    print(f"a slice beside 2,000 half-closed hours: {seconds * 10:.2f} ms")
    assert seconds < 60


def test_of_the_two_groupings_of_figure_3_one_can_be_covered() -> None:
    """Tucker et al. 2007, Fig. 3: by bidder and hour; an hour ends with its bidders, a bidder's hours never end."""
    bids = Schema.parse("bidder INT NOT NULL, hour INT NOT NULL", domains="bidder 0..2, hour 0..")
    said = [Punctuation.parse(f"<{bidder}, {hour}>", bids) for bidder in range(3) for hour in range(10)]
    every, but_one = PunctuationSet(bids, said), PunctuationSet(bids, said[:-1])
    assert [str(p) for p in project(every, ["hour"], Schema.parse("hour INT"))] == ["<(,9]>"]  # from the first hour on
    assert [str(p) for p in project(but_one, ["hour"], Schema.parse("hour INT"))] == ["<(,8]>"]
    assert project(every, ["bidder"], Schema.parse("bidder INT")) == []
