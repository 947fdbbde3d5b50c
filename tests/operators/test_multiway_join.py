from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness import notation
from tests.harness.running import Done, Items, Running
from tests.oracles import multiway_invariants
from xmlstream.operators.joins.punctuation_graph import Equality
from xmlstream.operators.joins.purge_strategy import strategy_named
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import format_schemes, parse_schemes

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

S1, S2, S3 = INPUTS = (
    Schema.parse("a1 INT, b1 INT"),
    Schema.parse("b2 INT, c2 INT"),
    Schema.parse("c3 INT, a3 INT"),
)
B: Equality = ((0, "b1"), (1, "b2"))
C: Equality = ((1, "c2"), (2, "c3"))
A: Equality = ((2, "a3"), (0, "a1"))
PATH, TRIANGLE = MultiwayJoin(3, (B, C)), MultiwayJoin(3, (B, C, A))


ALL_ONES = "(1, 1, 1, 1, 1, 1)"


def texts(punctuations: Sequence[Punctuation]) -> set[str]:
    return {str(p) for p in punctuations}


def test_the_chain_of_example_2_purges_a_tuple_once_all_that_joins_it_is_covered(
    session: Session, tmp_path: Path
) -> None:
    """Li et al. 2006, Example 2: t(a₁, b₁) needs (b₁, *) of S₂, and (c₁, *), …, (cₘ, *) of S₃."""
    running = Running(session, tmp_path, PATH, *INPUTS)
    ones = "(1, 1, 1, 1, 1, 7)"
    running.shows(
        "(1, 1) (9, null)        |        |       ",
        "(1, 1) (1, 2) (null, 1) | <1, *> |       ",
        "(1, 7) (1, 7)           |        | <1, *>",
        out=f"{ones} {ones}      |        |       ",
        kept="5                       | 5      | 5     ",
        tuples_alone=True,
    )  # fmt: skip
    running.restart()
    running.shows("", "", "(2, 8) <2, *>", out="(1, 1, 1, 2, 2, 8)", kept="5", purged="1", tuples_alone=True)
    # Nothing kept of S₁ is matched by what S₁ says; of S₂ nothing more can join it, nor S₃ then.
    (slice_,) = notation.inputs(["<*, 1>", "<*, [1,2]>", ""], INPUTS)
    done = running.slice(*slice_)
    assert done.kept == 0
    assert {"<*, 1, *, *, *, *>", "<*, *, 1, *, *, *>", "<*, *, *, *, [1,2], *>"} <= texts(done.punctuations)


def test_the_cycle_of_figure_5_is_purged_by_one_attribute_of_each_and_not_by_two(
    session: Session, tmp_path: Path
) -> None:
    """Li et al. 2006, Fig. 5: S₁ punctuates b, S₂ c, S₃ a; no tree of two-way joins would be safe.

    At first, of c = 1, S₃ is through S₂ to S₁; the others need S₃.
    """
    Running(session, tmp_path, TRIANGLE, *INPUTS).shows(
        "(1, 1) (2, 2) <*, 1> |        | <*, 2> |            ",
        "(1, 1) (2, 2) <*, 1> |        | <*, 2> |            ",
        "(1, 1) (2, 2)        | <*, 1> |        | <*, {2, 5}>",
        out=f"{ALL_ONES} (2, 2, 2, 2, 2, 2) | | |            ",
        kept="5                    | 3      | 2      | 0          ",
        tuples_alone=True,
    )  # fmt: skip


def test_a_scheme_of_two_attributes_purges_by_all_the_combinations_it_is_asked_for(
    session: Session, tmp_path: Path
) -> None:
    """Li et al. 2006, Fig. 8: S₁ and S₂ punctuate b, S₃ a and c together. Differs: S₃ itself is not purgeable.

    (1, 1) of S₁ asks for (1, 1) and (2, 1), (1, 2) of S₂ for (2, 1) and (2, 2); the others ask for (1, 2), too. In the
    end two punctuations together cover (b, 9) for every b: the tuple of S₃ that asks for c alone is told so.
    """
    Running(session, tmp_path, TRIANGLE, *INPUTS).shows(
        "(1, 1) (2, 1) <*, 1> |               |                      |        |          ",
        "(1, 1) (1, 2) <1, *> |               | <(,5], 9>            |        | <[6,), 9>",
        "(1, 1)               | <1, 1> <2, 2> | (2, 1) (9, 5) <2, 1> | <1, 2> |          ",
        out=f"{ALL_ONES}      |               | (1, 1, 1, 2, 2, 1)   |        |          ",
        kept="                     | 5             | 5                    | 3      | 2        ",
        purged="                   |               | 2                    |        |          ",
        tuples_alone=True,
    )  # fmt: skip


def test_a_punctuation_of_another_kind_that_comes_once_does_not_mislead_the_chain(
    session: Session, tmp_path: Path
) -> None:
    """S₂ speaks of b once, and of c ever after; S₃ speaks of a.

    What is dead needs no more punctuations: S₃ is covered for a = 4, and holds no tuple of it.
    """
    Running(session, tmp_path, TRIANGLE, *INPUTS).shows(
        "(1, 1) (3, 3)        |            | (4, 4)",
        "              <8, *> | <*, 1>     |       ",
        "(1, 1) (3, 3) <*, 8> | <*, [1,3]> | <*, 4>",
        out="                 |            |       ",
        kept="                    | 2          | 2     ",
        tuples_alone=True,
    )  # fmt: skip


def test_lazy_purge_puts_out_the_same_and_keeps_nothing_in_the_end(session: Session, tmp_path: Path) -> None:
    """Li et al. 2006, §5.2; with a further condition on combinations, and a restart between two purges."""
    residual = "a1 + a3 < 9"
    lines = (
        "(1, 1) (8, 1) <*, 1> |                      | (2, 2)        | <*, *>",
        "(1, 1)               | (1, 2) <1, *>        | (2, 2) <*, 2> | <*, *>",
        "(1, 2)               | (2, 8) (2, 0) <1, *> | <2, *>        | <*, *>",
    )
    slices = notation.inputs(lines, INPUTS)
    found: dict[str, list[Done]] = {}
    for operator in (MultiwayJoin(3, (B, C), residual), MultiwayJoin(3, (B, C), residual, strategy_named("lazy", 3))):
        way = "eager" if operator.purge.is_eager else "lazy"
        running = Running(session, tmp_path / way, operator, *INPUTS)
        done = found[way] = []
        for at, slice_ in enumerate(slices):
            done.append(running.slice(*slice_))
            if at == 1:
                running.restart()
    expected = multiway_invariants.joined(
        ({0: 1, 1: 0}, {1: 1, 2: 0}),
        lambda chosen: bool(chosen[0][0] + chosen[2][1] < 9),
        [[row for slice_ in slices for row in slice_[i][0]] for i in range(3)],
    )
    bare = sorted(tuple(v for at, v in enumerate(row) if at % 3) for row in expected)
    for done in found.values():
        assert sorted(row for each in done for row in each.tuples) == bare
        assert texts(done[-1].punctuations) == {"<*, *, *, *, *, *>"}
    assert [each.kept for each in found["eager"]] == [4, 6, 5, 0]
    assert [each.kept for each in found["lazy"]] == [4, 7, 5, 0]


def test_a_seven_way_join_that_is_punctuated_on_all_keys_keeps_nothing(session: Session, tmp_path: Path) -> None:
    inputs = [Schema.parse(f"k{i} INT, n{i} INT") for i in range(7)]
    along: tuple[Equality, ...] = tuple(((i, f"n{i}"), (i + 1, f"k{i + 1}")) for i in range(6))
    running = Running(session, tmp_path, MultiwayJoin(7, along), *inputs)
    rows = [(1, 1), (2, 2), (3, 4)]
    first = running.slice(*([(rows, [])] * 7))
    assert sorted(first.tuples) == [(1,) * 14, (2,) * 14]
    assert first.kept == 21
    # (3, 4) of the first input asks for a 4 that is not covered yet; of the others it is dead.
    every: list[Items] = [([], [Punctuation.parse(t, s) for t in ("<[1,3], *>", "<*, [1,4]>")]) for s in inputs]
    assert running.slice(*every).kept == 1
    every[1] = ([], [Punctuation.parse("<4, *>", inputs[1])])
    assert running.slice(*every).kept == 0


def test_schemes_are_kept_where_the_others_purge_and_are_moved_to_equal_attributes() -> None:
    given = ["b1", "b2; c2", "c3"]
    schemes = [parse_schemes(text, schema) for text, schema in zip(given, INPUTS, strict=True)]
    assert format_schemes(PATH.schemes(*schemes)) == "b1; b2; c2; c3"
    # Without S₃'s, what S₃ itself promises is all that is certain to come out: nothing.
    assert format_schemes(PATH.schemes(schemes[0], schemes[1], ())) == ""
    wide = [parse_schemes("a1, b1 prefix", S1), parse_schemes("b2; c2", S2), parse_schemes("a3; c3", S3)]
    assert set(format_schemes(TRIANGLE.schemes(*wide)).split("; ")) == {
        *(f"{a}, {b} prefix" for a, b in product(("a1", "a3"), ("b1", "b2"))),
        *("b1", "b2", "c2", "c3", "a1", "a3"),
    }


def test_what_cannot_be_joined_is_refused() -> None:
    with pytest.raises(QueryError, match="no equality leads"):
        MultiwayJoin(3, (B,))
    with pytest.raises(QueryError, match="of types BIGINT, INT"):
        MultiwayJoin(2, (B,)).schema(S1, Schema.parse("b2 BIGINT"))
    with pytest.raises(QueryError, match="needs an interval"):
        MultiwayJoin(3, (B, C), None, strategy_named("lazy", 0))


def test_a_key_closed_by_several_punctuations_together_is_closed_for_what_tells_no_more_than_the_key(
    session: Session, tmp_path: Path
) -> None:
    """Of (1, 1) of S₁ nothing is known but b: that c is closed by two pieces, one after the other, is all of it."""
    present = [Schema.parse(text) for text in ("a1 INT, b1 INT", "b2 INT, c2 INT NOT NULL", "c3 INT, a3 INT")]
    running = Running(session, tmp_path, PATH, *present)
    running.shows("(1, 1)", "<*, (,0]>", "", out="<*, *, *, (,0], *, *> <*, *, *, *, (,0], *>", kept="1")
    running.shows("", "<1, [1,)>", "", kept="0", tuples_alone=True, out="")


@pytest.mark.parametrize(("null", "parts"), [(" NOT NULL", ["[0,4]", "[5,9]"]), ("", ["[0,4]", "{5,6,7,8,9,null}"])])
def test_a_value_that_all_close_by_parts_of_what_is_bounded_is_forgotten(
    session: Session, tmp_path: Path, null: str, parts: list[str]
) -> None:
    inputs = [Schema.parse(f"k{i} STRING, t{i} INT{null}", f"t{i} 0..9") for i in range(3)]
    join = MultiwayJoin(3, (((0, "k0"), (1, "k1")), ((1, "k1"), (2, "k2"))), "t1 < t0 AND t2 <= t1").bounded(*inputs)
    running = Running(session, tmp_path, join, *inputs)
    for n in range(3):
        halves = [[Punctuation.parse(f"<s{n}, {half}>", each) for each in inputs] for half in parts]
        for closing in halves:
            running.slice(*(([], [p]) for p in closing))
        assert running.punctuations_held == 0
