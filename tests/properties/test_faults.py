"""The suite itself is tested: each fault that is seeded here into an operator must be caught by the contract.

The faults are those that one makes: the paper's order of the behaviours, hulls for covers, SQL's three-valued logic,
state that is dropped early or never, a table of the paper taken alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness import notation
from tests.properties.catalogue import CATALOGUE
from tests.properties.test_contract import Run, force_large_state, run
from tests.samples.strategies import Small, SmallSchema
from xmlstream.operators.distinct import Distinct
from xmlstream.operators.frames import matching
from xmlstream.operators.frames.expression import Expression, spark_sql
from xmlstream.operators.frames.frame import Frame
from xmlstream.operators.intersect import Intersect
from xmlstream.operators.joins.equi_join import BoundedKey, EquiJoin
from xmlstream.operators.look_ahead import LookAhead
from xmlstream.operators.merge import Merge
from xmlstream.operators.row_window import RowWindow
from xmlstream.operators.select import Select
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, bag_union
from xmlstream.operators.state.tuple_log import TupleLog
from xmlstream.operators.storage.records import LogRecord
from xmlstream.punct_ns import closed_intervals
from xmlstream.punct_ns.closed_intervals import End
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.image import _Edges
from xmlstream.punct_ns.pattern import Pattern, Range
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.recast import project
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class Fault:
    """A wrong operator: its case, what makes it wrong, and the smallest example in which the contract notices it."""

    case: str
    seed: Callable[[Patch], None]
    example: Run
    large: bool = False


def propagates_before_it_keeps(patch: Patch) -> None:
    """Tucker et al. 2003, §4.2, has this order; then a tuple that is purged now still holds back its punctuation."""

    def advance(operator: Any, inputs: Sequence[Slice], state: OperatorState) -> Slice:
        parts = [operator.step(inputs, state), operator.pass_(inputs, state)]
        punctuations = operator.propagate(inputs, state)
        operator.keep(inputs, state)
        return Slice(bag_union([part for part in parts if part is not None]), tuple(punctuations))

    patch.setattr("tests.harness.running.advance", advance)


def keeps_what_table_4_says_alone(patch: Patch) -> None:
    """What both inputs have is forgotten once it is out, and comes out again."""
    keep = Intersect.keep

    def forgetful(self: Intersect, inputs: Sequence[Slice], state: OperatorState) -> None:
        keep(self, inputs, state)
        state.log("emitted").purge([Punctuation.all(self.attributes)])

    patch.setattr(Intersect, "keep", forgetful)


def maps_end_points_through_the_function(patch: Patch) -> None:
    """[15,105] through `div 60` would close the hours 0 and 1."""
    right = _Edges._of

    def wrong(self: _Edges, cut: Any) -> Any:
        left, above = right(self, cut)
        return above, left

    patch.setattr(_Edges, "_of", wrong)


def drops_a_purging_punctuation_early(patch: Patch) -> None:
    """Rows that are filtered when read come back when the filter goes before they do: the dead are raised."""
    record = TupleLog.record

    def early(self: TupleLog) -> LogRecord:
        if self._kept.purging:
            self._kept.purging = []
            self._rewrite()
        return record(self)

    patch.setattr(TupleLog, "record", early)
    # Rows that punctuations on values match are looked up and removed, not filtered.
    patch.setattr("xmlstream.operators.state.tuple_log.keys_in", lambda _: None)


def forgets_which_rows_it_has_removed(patch: Patch) -> None:
    """Rows that were looked up and removed are rewritten as if they were there."""
    remove = TupleLog._purge_located

    def removed(self: TupleLog, *args: Any) -> None:
        remove(self, *args)
        self._kept.parts = [replace(part, removed=(), gone=None) for part in self._kept.parts]
        self._rewrite()

    patch.setattr(TupleLog, "_purge_located", removed)


def takes_hulls_for_covers(patch: Patch) -> None:
    """Tucker et al. 2007, Fig. 8: [0,15] and [45,59] would make an hour."""

    def hull(a: ValueSet, b: ValueSet) -> ValueSet:
        cuts = [*a.union(b).intervals()]
        pairs = [(cuts[0][0], cuts[-1][1])] if cuts else []
        return ValueSet.of_intervals(a.domain, pairs, null=a.null or b.null)

    def hulls(said: PunctuationSet, *args: Any, **kwargs: Any) -> list[Punctuation]:
        from xmlstream.punct_ns.pattern import patterns, values

        wide = PunctuationSet(said.schema, said)
        for p in said:
            for q in said:
                boxes = {i: hull(*(values(x.patterns[i], said.schema[i].domain) for x in (p, q))) for i in p.restricted}
                if p.restricted == q.restricted and p.patterns[0] == q.patterns[0] and len(boxes) > 1:
                    chosen = {i: patterns(box)[0] for i, box in boxes.items() if not box.is_empty}
                    wide.add(Punctuation.at(said.schema, {**chosen, 0: p.patterns[0]}))
        return project(wide, *args, **kwargs)

    patch.setattr("xmlstream.operators.describe.project", hulls)


def loses_null_in_a_predicate(patch: Patch) -> None:
    """`NOT (a BETWEEN 1 AND 3)` is null for null."""
    right = matching._test

    def three_valued(attribute: Attribute, pattern: Pattern) -> list[Expression]:
        first, *others = right(attribute, pattern)
        return ["true" if isinstance(pattern, Range) else first, *others]

    patch.setattr(matching, "_test", three_valued)
    patch.setattr(matching, "INLINE", 10_000)  # a table to join with knows no such trap
    patch.setattr(
        "xmlstream.operators.frames.matching.filter_of", lambda *_, **_named: None
    )  # nor does a filter of Arrow's


def closes_a_group_by_a_part_of_it(patch: Patch) -> None:
    """A punctuation that restricts another attribute, too, closes nothing by itself."""

    def careless(said: PunctuationSet, names: Sequence[str], schema: Any, new: Iterable[Punctuation]) -> Any:
        places = [said.schema.index(name) for name in names]
        return [Punctuation(schema, tuple(p.patterns[i] for i in places)) for p in new]

    patch.setattr("xmlstream.operators.state.completion.project", careless)


def takes_the_first_of_each_slice(patch: Patch) -> None:
    """The first n of every slice are more than the first n of all: what is kept must compete with what comes."""
    patch.setattr(TupleLog, "_merged", lambda self, rows: rows)
    patch.setattr("xmlstream.operators.state.tuple_log.SMALL", 0)


def takes_what_is_closed_for_a_prefix(patch: Patch) -> None:
    """A row whose group is closed there, and not before it."""
    patch.setattr(
        "xmlstream.operators.ordered_rows.covered_prefixes", lambda closed, new, groups, directions: list(new)
    )


def looks_back_at_the_last_slice_alone(patch: Patch) -> None:
    """Rows of earlier slices are forgotten."""
    right = RowWindow._numbered
    patch.setattr(RowWindow, "_numbered", lambda self, ready, before, schema: right(self, ready, None, schema))


def keeps_one_row_of_each_group(patch: Patch) -> None:
    patch.setattr(RowWindow, "looks_back", property(lambda self: 1))


def lets_the_last_row_go_at_once(patch: Patch) -> None:
    """Whatever follows it in a group that is not over: `lead` is null then, which is wrong if a row comes."""
    patch.setattr(LookAhead, "ahead", property(lambda self: 0))


def keeps_no_row_that_is_looked_back_at(patch: Patch) -> None:
    """Of a group only the rows that wait."""
    patch.setattr(LookAhead, "reach", property(lambda self: max(1, self.ahead)))


def says_what_one_input_says(patch: Patch) -> None:
    def propagate(self: Merge, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        return state.punctuations("sent").absorb([p for each in inputs for p in each.punctuations])

    patch.setattr(Merge, "propagate", propagate)


def trusts_one_view_alone(patch: Patch) -> None:
    """What is closed of x closes nothing of coalesce(x, y) where x is null."""

    def every(streams: Sequence[str], said: Sequence[Iterable[Punctuation]], state: OperatorState) -> list[Punctuation]:
        return state.punctuations("sent").absorb([p for each in said for p in each])

    patch.setattr("xmlstream.operators.project.common_to_inputs", every)


def never_purges(patch: Patch) -> None:
    patch.setattr(Distinct, "keep", lambda self, inputs, state: None)


def joins_null_with_null(patch: Patch) -> None:
    right = EquiJoin.condition.func  # type: ignore[attr-defined]
    patch.setattr(EquiJoin, "condition", property(lambda self: spark_sql(right(self)).replace(" = ", " <=> ")))


def keeps_what_can_have_no_more_partners(patch: Patch) -> None:
    """A new tuple whose key the other side closed long ago."""
    patch.setattr(BoundedKey, "still_waiting", lambda self, tuples, state: tuples)


def lets_a_tuple_without_partner_go_at_once(patch: Patch) -> None:
    patch.setattr(BoundedKey, "without_partners", lambda self, tuples, state: tuples)


def forgets_a_bound_one_step_too_early(patch: Patch) -> None:
    """A tuple that waits for 4, too, when 3 and all below are closed."""
    right = closed_intervals._within

    def early(end: End, cut: Any, x: Domain, y: Domain) -> ValueSet:
        return right(replace(end, relation=end.relation.rstrip("=")), cut, x, y)  # type: ignore[arg-type]

    patch.setattr(closed_intervals, "_within", early)


def keeps_what_its_bounds_leave_no_partner(patch: Patch) -> None:
    """A tuple whose bound is null."""
    patch.setattr(BoundedKey, "present", lambda self: "true")


def forgets_the_right_side(patch: Patch) -> None:
    patch.setattr(SemiJoin, "_kept_right", lambda self, left, state: None)


def says_what_kept_tuples_still_match(patch: Patch) -> None:
    for module in ("join", "semi_join", "difference", "intersect", "look_ahead"):
        patch.setattr(f"xmlstream.operators.{module}.emittable", lambda name, given, *rest, **kwargs: list(given))


def holds_back_the_whole_of_a_punctuation(patch: Patch) -> None:
    """Table 3 by the letter: of [1,3], with 2 kept, nothing goes out."""

    def whole(said: Any, places: Any, points: Any, schema: Any) -> Any:
        some = points if isinstance(points, list) else points.limit(1).count()
        return ([], list(said)) if some else (list(said), [])

    patch.setattr("xmlstream.operators.state.blocked_set._parted", whole)


def selects_what_is_unknown(patch: Patch) -> None:
    def step(self: Select, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        return new and Tuples(new.frame.where(f"coalesce({self.predicate}, true)"), new.at_most, exact=False)

    patch.setattr(Select, "step", step)


def takes_the_last_of_each_key(patch: Patch) -> None:
    right = matching._first_of_each
    turned = "__xs_turned"

    def last(frame: Frame, keys: Sequence[str], by: str) -> Frame:
        return right(frame.with_column(turned, f"-{by}"), keys, turned).drop(turned)

    patch.setattr(matching, "_first_of_each", last)
    # What the driver finds by itself is compared with this in `tests/operators/test_distinct_on.py`.
    patch.setattr(matching, "first_rows", lambda table, keys, order: None)


def forgets_keys_behind_each_slice(patch: Patch) -> None:
    patch.setattr("xmlstream.operators.distinct_on.anti_join", lambda rows, others, names: rows)


def of_minutes(*inputs: str, nullable: bool = False) -> Run:
    """Streams of hours and minutes, both 0 to 4, a line for each input, with bars between slices."""
    small = Small(Domain("INT", nullable, low=0, high=4), (0, 4), (*range(5), *((None,) if nullable else ())))
    space = SmallSchema(Schema(tuple(Attribute(name, small.domain) for name in "ab")), (small, small))
    return Run(space, [[notation.slices(line, space.schema) for line in inputs]], restart=9)


# The smallest example of each: streams were drawn until the contract failed, then shortened while it still failed.
FAULTS = [
    Fault("join, inner", propagates_before_it_keeps, of_minutes("(1,2) <*, *>", "")),
    Fault("intersect", keeps_what_table_4_says_alone, of_minutes("(1,0)", "(1,0)")),
    Fault("project, monotone", maps_end_points_through_the_function, of_minutes("<{0,4}, 0>")),
    Fault(
        "distinct",
        drops_a_purging_punctuation_early,
        of_minutes("(0,0) (0,1) (0,2) (1,0) (1,1) (1,2) (2,0) (2,1) <0,0> | (3,3)"),
        large=True,
    ),
    Fault(
        "distinct",
        forgets_which_rows_it_has_removed,
        of_minutes("(0,0) (0,1) (0,2) (1,0) (1,1) (1,2) (2,0) (2,1) <0,0> | (3,3)"),
        large=True,
    ),
    Fault("describe", takes_hulls_for_covers, of_minutes("<1, [0,1]> | <1, [3,4]>")),
    Fault("distinct", loses_null_in_a_predicate, of_minutes("(null,4) <[1,), {4,null}>", nullable=True)),
    Fault("group_by", closes_a_group_by_a_part_of_it, of_minutes("<4, 0>")),
    Fault("top_n", takes_the_first_of_each_slice, of_minutes("(3,0) (2,0) (1,0) | (4,0) (0,1) <*, 0>")),
    Fault("row_window", takes_what_is_closed_for_a_prefix, of_minutes("<4, 4>")),
    Fault("row_window", looks_back_at_the_last_slice_alone, of_minutes("(1,0) <1, 0> | (1,1) <1, 1>")),
    Fault("row_window, by arrival", keeps_one_row_of_each_group, of_minutes("(3,3) (0,3)")),
    Fault("look_ahead", lets_the_last_row_go_at_once, of_minutes("(0,0) | <*, 0>")),
    Fault(
        "look_ahead",
        keeps_no_row_that_is_looked_back_at,
        of_minutes("(0,0) (1,1) (2,2) <*, (,2]> | (3,3) (4,4) <*, [3,4]>"),
    ),
    Fault("look_ahead", says_what_kept_tuples_still_match, of_minutes("(0,0) | <*, 0>")),
    Fault("merge", says_what_one_input_says, of_minutes("<4, 0>", "")),
    Fault("project, coalesced", trusts_one_view_alone, of_minutes("<0, *> | (null,0)", nullable=True)),
    Fault("join, left", lets_a_tuple_without_partner_go_at_once, of_minutes("(4,0)", "")),
    Fault("join, left", keeps_what_can_have_no_more_partners, of_minutes("<*, *>", "(3,4)")),
    Fault("join, full, with a condition", forgets_a_bound_one_step_too_early, of_minutes("", "(0,2)")),
    Fault(
        "join, left, with a condition",
        keeps_what_its_bounds_leave_no_partner,
        of_minutes("(null,0)", "", nullable=True),
    ),
    Fault("intersect", holds_back_the_whole_of_a_punctuation, of_minutes("", "(1,0) <(,), *>", nullable=True)),
    Fault("distinct", never_purges, of_minutes("(4,0)")),
    Fault("distinct_on", takes_the_last_of_each_key, of_minutes("(1,0) (2,0)")),
    Fault("distinct_on", forgets_keys_behind_each_slice, of_minutes("(1,0) | (2,0)")),
    Fault("join, inner", joins_null_with_null, of_minutes("(2,null)", "(4,null)", nullable=True)),
    Fault("select", selects_what_is_unknown, of_minutes("(null,2)", nullable=True)),
    Fault("anti join", forgets_the_right_side, of_minutes(" | (1,0)", "(1,0)")),
    Fault("difference", says_what_kept_tuples_still_match, of_minutes("(1,2) <*, *>", "")),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.case} {fault.seed.__name__}")
def test_the_contract_catches_it(session: Session, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    run(session, CATALOGUE[fault.case], fault.example)
    if fault.large:
        force_large_state(monkeypatch)
    fault.seed(monkeypatch)
    with pytest.raises(AssertionError):
        run(session, CATALOGUE[fault.case], fault.example)
