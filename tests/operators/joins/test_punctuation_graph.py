from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.operators.joins.punctuation_graph import Equality, PunctuationGraph, Reachability, Shape
from xmlstream.punct_ns.errors import QueryError

B: Equality = ((0, "b1"), (1, "b2"))
C: Equality = ((1, "c2"), (2, "c3"))
A: Equality = ((2, "a3"), (0, "a1"))
PATH, TRIANGLE = PunctuationGraph(3, (B, C)), PunctuationGraph(3, (B, C, A))


def told(graph: PunctuationGraph, *shapes: Iterable[str]) -> dict[int, frozenset[Shape]]:
    """By input, the shapes of its punctuations: for each the first letters of the classes that it restricts."""
    numbers = {next(iter(names.values()))[0]: number for number, names in enumerate(graph.classes)}
    return {i: frozenset(frozenset(numbers[k] for k in shape) for shape in given) for i, given in enumerate(shapes)}


def reaching(graph: PunctuationGraph, *shapes: Iterable[str]) -> list[int]:
    """The inputs whose tuples can all be purged."""
    reachability = Reachability(graph, told(graph, *shapes))
    return [i for i in range(graph.inputs) if reachability.reaches_all(i)]


def test_the_strongly_connected_graph_of_figure_5_purges_every_input() -> None:
    assert reaching(TRIANGLE, "b", "c", "a") == [0, 1, 2]


def test_an_input_without_a_path_to_every_other_is_not_purged() -> None:
    """Theorem 1; S₃, which punctuates nothing, is all the same reached by none and reaches all."""
    assert reaching(TRIANGLE, "b", "c", "") == [2]
    assert reaching(TRIANGLE, "b", "", "") == []
    assert reaching(PATH, "b", "c", "") == [2]
    assert reaching(PATH, "b", "bc", "c") == [0, 1, 2]


def test_a_scheme_of_two_attributes_needs_both_known() -> None:
    """Figures 8 and 9, where Definition 7 by itself would draw edges from each of S₁ and S₂ to S₃.

    Differs: §4.2 says that S₃ is purgeable by Theorem 1. Nothing that it knows is punctuated by S₁ or S₂ there; with
    `c` from S₂ it is.
    """
    assert reaching(TRIANGLE, "b", "b", ["ac"]) == [0, 1]
    assert reaching(TRIANGLE, "b", "bc", ["ac"]) == [0, 1, 2]
    assert reaching(PATH, "b", ["bc"], "c") == [1]


def test_an_input_that_has_ended_is_reached_from_its_neighbours() -> None:
    assert reaching(PATH, [""], [""], [""]) == [0, 1, 2]
    assert [step.input for step in PATH.chain(0, told(PATH, [""], [""], [""]))] == [1, 2]


def test_an_input_is_asked_again_once_more_is_known_and_only_then() -> None:
    assert [step.input for step in TRIANGLE.chain(0, told(TRIANGLE, "ab", "bc", "ac"))] == [1, 2, 1]
    assert [step.input for step in TRIANGLE.chain(0, told(TRIANGLE, "b", "b", "a"))] == [1, 2]


def test_attributes_that_are_equal_through_others_are_one_class() -> None:
    star = PunctuationGraph(7, tuple(((0, "k0"), (i, f"k{i}")) for i in range(1, 7)))
    assert len(star.classes) == 1
    assert star.order(3) == [0, 1, 2, 4, 5, 6]
    assert reaching(star, *(["k"] * 7)) == [*range(7)]
    assert PunctuationGraph(2, (((0, "K"), (1, "x")), ((1, "X"), (0, "k")))).keys(0).keys() == {0}


def test_a_tuple_goes_on_to_what_shares_most_with_what_it_has() -> None:
    graph = PunctuationGraph(4, (B, C, ((0, "d1"), (3, "d4")), ((0, "e1"), (3, "e4"))))
    assert graph.order(0) == [3, 1, 2]


@pytest.mark.parametrize(
    ("inputs", "equalities", "said"),
    [
        (1, (), "two inputs"),
        (3, (B,), "input 3"),
        (4, (B, ((2, "x"), (3, "y"))), "input 3, input 4"),
        (2, (B, ((2, "x"), (0, "y"))), "no input 2"),
        (2, (B, ((0, "x"), (1, "b2"))), "of one input equal"),
    ],
)
def test_inputs_that_do_not_hang_together_are_refused(inputs: int, equalities: tuple[Equality, ...], said: str) -> None:
    with pytest.raises(QueryError, match=said):
        PunctuationGraph(inputs, equalities)


@st.composite
def graphs_and_shapes(draw: st.DrawFn) -> tuple[PunctuationGraph, dict[int, frozenset[Shape]]]:
    """Up to five inputs that hang together, each with shapes over its classes."""
    inputs = draw(st.integers(2, 5))
    tree = [((draw(st.integers(0, i - 1)), f"c{i}"), (i, f"c{i}")) for i in range(1, inputs)]
    more = draw(st.lists(st.tuples(st.integers(0, inputs - 1), st.integers(0, inputs - 1)), max_size=3))
    tree += [((one, f"d{n}"), (other, f"d{n}")) for n, (one, other) in enumerate(more) if one != other]
    graph = PunctuationGraph(inputs, tuple(tree))
    shapes = {
        i: frozenset(draw(st.lists(st.frozensets(st.sampled_from(sorted(graph.keys(i)))), max_size=2)))
        for i in range(inputs)
    }
    return graph, shapes


@given(graphs_and_shapes())
def test_what_the_fixpoint_reaches_is_what_chains_reach(
    case: tuple[PunctuationGraph, dict[int, frozenset[Shape]]],
) -> None:
    graph, shapes = case
    for root in range(graph.inputs):
        found = {root, *(step.input for step in graph.chain(root, shapes))}
        assert Reachability(graph, shapes).reached(root) == found


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inputs whose classes were looked up, as often as they were."""
    seen: list[int] = []
    known_from = PunctuationGraph.known_from

    def counted(graph: PunctuationGraph, input_: int) -> Sequence[int]:
        seen.append(input_)
        return known_from(graph, input_)

    monkeypatch.setattr(PunctuationGraph, "known_from", counted)
    return seen


@pytest.mark.parametrize("punctuated", [200, 199])
def test_a_ring_of_two_hundred_inputs_is_judged_without_trying_all_ways(punctuated: int, visits: list[int]) -> None:
    """Each way around leads to all inputs; where one says nothing, only it reaches every other."""
    ring = PunctuationGraph(200, tuple(((i, f"k{i}"), ((i + 1) % 200, f"k{i}")) for i in range(200)))
    shapes = {i: frozenset(frozenset([key]) for key in ring.keys(i)) for i in range(punctuated)}
    reachability = Reachability(ring, shapes)
    reaching_all = [i for i in range(200) if reachability.reaches_all(i)]
    assert reaching_all == ([*range(200)] if punctuated == 200 else [199])
    assert len(visits) <= 5 * 200


@pytest.mark.parametrize("onward", [True, False])
@pytest.mark.parametrize("silent", [None, 0, 100])
def test_what_others_reach_is_taken_over_whichever_way_around_punctuations_lead(
    onward: bool, silent: int | None, visits: list[int]
) -> None:
    ring = PunctuationGraph(200, tuple(((i, f"k{i}"), ((i + 1) % 200, f"k{i}")) for i in range(200)))
    numbers = {names[i]: number for number, names in enumerate(ring.classes) for i in names}
    asked = {i: f"k{(i - 1) % 200 if onward else i}" for i in range(200)}
    shapes = {i: frozenset([frozenset([numbers[name]])]) for i, name in asked.items() if i != silent}
    reachability = Reachability(ring, shapes)
    assert [i for i in range(200) if reachability.reaches_all(i)] == ([*range(200)] if silent is None else [silent])
    assert len(visits) <= 5 * 200
