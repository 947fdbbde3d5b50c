"""Verdicts against runs: of random plans under random schemes, what was said is what happens.

Sources promise of endless domains. A run has tuples of some values, and every promised punctuation on these and on more
to either side. A query that is said to answer has put out all then, while its inputs go on; an operator that is said to
be cleansed keeps nothing. A query that is said not to be keeps something of one of some inputs, if anything comes to
what keeps it: all tuples of one source beside some of the other, so that there are those with partners and those whose
partners may still come (as in the proof of Theorem 1 of Li et al. 2006).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from tests.harness.nights import AT_NIGHT, SPARK_IN_THE_REST
from tests.harness.refused_in_process import is_refusal
from tests.harness.running import view
from tests.harness.walking import Walk
from tests.properties.verdict_cases import PINNED, TABLE, Inputs, Judged, promising
from xmlstream.operators.difference import Difference
from xmlstream.operators.intersect import Intersect
from xmlstream.operators.join import Join
from xmlstream.operators.look_ahead import LookAhead
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.operators.session import Session
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, Scan, topological
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.pattern import Constant, Pattern, Range, canonical
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, Term, is_compact
from xmlstream.safety.verdicts import Kept, OperatorVerdict, When, judged
from xmlstream.session.engines import is_in_process
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import Session as AnySession

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

SAID = (-50, 50)
"""The values that punctuations speak of: those of tuples, and what expressions make of them."""

PLANS = settings().max_examples // (5 if AT_NIGHT else 6)
"""How many are drawn: two hundred by night; by day none under Spark, where the pinned ones run."""


@SPARK_IN_THE_REST
def test_what_is_said_of_a_query_is_what_happens(session: AnySession) -> None:
    said: Counter[str] = Counter()
    draws = AT_NIGHT or is_in_process(session)

    @settings(
        max_examples=PLANS,
        deadline=None,
        phases=[Phase.explicit, *([Phase.reuse, Phase.generate] if draws else [])],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(promising())
    def holds(drawn: Judged) -> None:
        tables = "".join(TABLE.format(name, name, said) for name, said in zip("rs", drawn.schemes, strict=True))
        runs = Runs(session)
        try:
            written = read(tables + drawn.query).plan(session)
            root = written if drawn.as_written else optimized(written)
            _, kept, out = runs.of(root, drawn.tuples)
        except QueryError as error:
            if not is_refusal(error):
                raise
            said["refused"] += 1
            return
        verdict = judged(root, follow=True)
        told = f"{drawn.query} under {drawn.schemes}"
        said["plans"] += 1
        said["answer"] += verdict.is_enabled
        said["are cleansed"] += verdict.is_cleansed
        if said["plans"] % 50 == 0:
            print(told_so_far(said), flush=True)
        unended = {one.node for one in verdict.operators if waits_for_more(one)}
        if verdict.is_enabled and not unended:
            assert Counter(out) == answered(session, written, drawn), told
        growing = {one.node: one for one in verdict.operators if not one.is_cleansed}
        left = {node for node, left in kept.items() if left and node not in growing}
        assert not {node.label for node in left if unended.isdisjoint(topological(node))}, told
        if not growing:
            return
        if any(kept[node] for node in growing) or any(keeps_any(runs, root, growing, drawn.schemes)):
            said["keep something"] += 1
            return
        # What is asked can be contradictory, so that nothing ever comes to be kept; nor to hold back promises of what
        # is above.
        said["keep nothing, since nothing comes"] += 1
        idle: set[Node] = set()
        for node, one in growing.items():
            if idle.isdisjoint(topological(node)):
                logs = [log for log in one.keeps if log.until.when is When.NEVER]
                assert not any(comes(runs, node, log, drawn.schemes) for log in logs), f"{one.name} in {told}"
            idle.add(node)

    for pinned in PINNED:
        holds = example(pinned)(holds)
    holds()
    print(told_so_far(said))
    if draws:
        assert said["plans"] + said["refused"] >= PLANS
        assert said["refused"] <= said["plans"] / 5


def waits_for_more(verdict: OperatorVerdict) -> bool:
    """Whether the last rows of groups wait for others behind them, which never come here."""
    return isinstance(verdict.node.operator, LookAhead) and not verdict.is_cleansed


def told_so_far(said: Counter[str]) -> str:
    """How many plans there were, and what was said of them."""
    return ", ".join(f"{count} {what}" for what, count in said.items())


def keeps_any(runs: Runs, root: Node, growing: Collection[Node], schemes: tuple[str, str]) -> Iterator[bool]:
    """Of one fuller input after the other, whether one of these operators keeps anything of it.

    What their inputs put out on the way is known then, so that `comes` needs no further runs.
    """
    inputs = {below for node in growing for below in node.inputs}
    for tuples in grown(schemes):
        _, after, _ = runs.of(root, tuples, inputs)
        yield any(after[node] for node in growing)


def comes(runs: Runs, node: Node, log: Kept, schemes: tuple[str, str]) -> bool:
    """Whether anything comes that an operator would keep in a log, and from its other side what it would wait for.

    What has no moment is in no session; what has no key, or is bounded by null, joins nothing; where all partners are
    so, their predicates say at once that none comes. Of a semi join or an intersection with what has the same source
    nobody knows: both sides come together, so that each tuple has a partner. What is promised but of null is waited
    for by null alone.
    """
    operator, side = node.operator, log.model.input
    scans = [{each for each in topological(below) if isinstance(each.operator, Scan)} for below in node.inputs]
    if isinstance(operator, SemiJoin | Intersect | Difference) and scans[side] <= scans[1 - side]:
        return False
    if isinstance(operator, Join | SemiJoin):
        key = operator.equi_join.bounded_keys[side]
        ends = [bound.plain for bound in key.bounds if bound.plain is not None]
        own, others = (*operator.equi_join.on[side], *ends), (*key.others, *key.bounded)
        return any_has(runs, node.inputs[side], own, schemes) and any_has(runs, node.inputs[1 - side], others, schemes)
    keys = tuple(operator.graph.keys(side).values()) if isinstance(operator, MultiwayJoin) else ()
    if isinstance(operator, Session):
        keys = (operator.of,)
    return any_has(runs, node.inputs[side], keys, schemes, promised_but_of_null(node, log))


def promised_but_of_null(node: Node, log: Kept) -> list[tuple[str, ...]]:
    """Attributes such that a tuple of a log is forgotten in the end unless one of them is null in it."""
    found: list[tuple[str, ...]] = []
    own = node.inputs[log.model.input].schema
    for grouping in log.until.groupings:
        # Of set operations, whose attributes correspond by place, an input may wait for the other one.
        if grouping.input == log.model.input or isinstance(node.operator, Difference | Intersect):
            schema, schemes = log.until.promises[grouping.input]
            for scheme in schemes:
                whole = Scheme(tuple(replace(term, null=True) for term in scheme.terms))
                if is_compact(grouping.attributes, whole, schema, null=grouping.null):
                    places = [schema.index(term.attribute) for term in scheme.terms if not term.null]
                    found.append(tuple(own[at].name for at in places))
    return found


def any_has(
    runs: Runs,
    part: Node,
    names: Sequence[str],
    schemes: tuple[str, str],
    with_null: Sequence[Sequence[str]] = (),
) -> bool:
    """Whether a tuple that a part of a plan puts out has values of these attributes, and null in one of each of others.

    All of the former have values; of the latter's groups there is a null in each.
    """
    places = [part.schema.index(name) for name in names]
    nulls = [[part.schema.index(name) for name in group] for group in with_null]
    out = (whole for tuples in grown(schemes) for whole in runs.put_out(part, tuples))
    return any(
        all(whole[at] is not None for at in places) and all(any(whole[at] is None for at in group) for group in nulls)
        for whole in out
    )


SOME: Sequence[Callable[[tuple[Any, ...]], bool]] = (
    lambda _: False,
    lambda _: True,
    lambda whole: whole[0] == whole[1],
    lambda whole: whole[2] == 2,
    lambda whole: whole[1] == 1,
    lambda whole: whole[0] == 0,
    lambda whole: whole[0] == whole[2],
    lambda whole: whole[0] == whole[2] or whole[1:] == (3, 2),
    lambda whole: (3 * (whole[0] or 0) + whole[1] + (whole[2] or 1)) % 4 == 0,
)


def grown(schemes: tuple[str, str]) -> Iterator[Inputs]:
    """Inputs in which tuples of one source, or of both, find no partner, or some, or all."""
    every: list[list[tuple[Any, ...]]] = []
    for said in schemes:
        a = (0, 1, 3) if "a prefix" in said else (0, 1, 3, None)
        every.append([tuple(whole) for whole in product(a, (1, 3), (0, 2, None))])
    for these in SOME:
        beside = [[whole for whole in all_ if these(whole)] for all_ in every]
        yield every[0], beside[1]
        yield beside[0], every[1]


Ran: TypeAlias = tuple[dict[Node, int], dict[Node, int], list[Any]]


class Runs:
    """Plans, each of which runs once over the same tuples of its sources, and what parts of them put out."""

    def __init__(self, session: AnySession) -> None:
        self._session = session
        self._done: dict[Any, Ran] = {}
        self._put_out: dict[Any, list[Any]] = {}

    def of(self, root: Node, tuples: Inputs, parts: Collection[Node] = ()) -> Ran:
        """What each operator keeps of the tuples, what once all promised of their values is said, and what is out.

        Both come in a slice of their own. What each of the parts puts out is kept for `put_out`.
        """
        key = self._key(root, tuples)
        if key not in self._done or any(self._key(part, tuples) not in self._put_out for part in parts):
            self._done[key], out = self._ran(root, dict(key[1]), parts)
            self._put_out |= {self._key(part, tuples): rows for part, rows in out.items()}
        return self._done[key]

    def put_out(self, part: Node, tuples: Inputs) -> list[Any]:
        """What a part of a plan that ran over the tuples put out of them."""
        return self._put_out[self._key(part, tuples)]

    @staticmethod
    def _key(root: Node, tuples: Inputs) -> tuple[Node, tuple[tuple[str, tuple[tuple[Any, ...], ...]], ...]]:
        read = {node.operator.name for node in topological(root) if isinstance(node.operator, Scan)}
        return root, tuple((name, tuple(rows)) for name, rows in zip("rs", tuples, strict=True) if name in read)

    def _ran(
        self, root: Node, whole: Mapping[str, Sequence[tuple[Any, ...]]], parts: Collection[Node]
    ) -> tuple[Ran, dict[Node, list[Any]]]:
        options = {n.operator.name: n.operator.options for n in topological(root) if isinstance(n.operator, Scan)}
        said = {
            name: PunctuationSet(each.schema).add_all(
                p for scheme in each.schemes for p in promised(scheme, each.schema)
            )
            for name, each in options.items()
        }
        with tempfile.TemporaryDirectory() as directory:
            walk = Walk(self._session, Path(directory), root, watched=parts)
            out = walk.slice({name: (rows, []) for name, rows in whole.items()}).tuples
            before, put_out = walk.sizes, walk.put_out
            out = [*out, *walk.slice({name: ([], ps) for name, ps in said.items()}).tuples]
            both = {part: [*put_out[part], *walk.put_out[part]] for part in parts}
            return (before, walk.sizes, out), both


def promised(scheme: Scheme, schema: Schema) -> list[Punctuation]:
    """All punctuations of a scheme on the values that are spoken of, coalesced."""
    places = [schema.index(term.attribute) for term in scheme.terms]
    patterns = [of_term(term, schema) for term in scheme.terms]
    return [Punctuation.at(schema, dict(zip(places, chosen, strict=True))) for chosen in product(*patterns)]


def of_term(term: Term, schema: Schema) -> list[Pattern]:
    domain = schema.attribute(term.attribute).domain
    low, high = SAID
    if term.kind == "prefix":
        return [canonical(Range(None, high, high_closed=True), domain)]
    values = canonical(Range(low, high, True, True), domain)
    return [values, Constant(None)] if domain.nullable else [values]


def answered(session: AnySession, written: Node, drawn: Judged) -> Counter[tuple[Any, ...]]:
    """The whole answer over the tuples: Spark's own; in process, the plan's own once its input has ended."""
    schema = Schema.parse("a INT, b INT NOT NULL, c INT")
    if is_in_process(session):
        with tempfile.TemporaryDirectory() as directory:
            walk = Walk(session, Path(directory), written)
            ended = {name: (rows, [Punctuation.all(schema)]) for name, rows in zip("rs", drawn.tuples, strict=True)}
            return Counter(walk.slice(ended).tuples)

    for name, rows in zip("rs", drawn.tuples, strict=True):
        view(session, name, rows, schema)
    return Counter(tuple(row) for row in session.sql(drawn.query).collect())
