"""Equal texts have equal verdicts and keep equally many tuples; Theorem 4 says which are safe, and what mends others.

A query of several streams is drawn as conditions between them, and written in several ways: with FROM in any order, its
conditions in ON or in WHERE, inner joins in a view that may have a computed column more, with USING, with commuted
operands, equalities and ranges in other words, and unequal types. Beside the verdicts stands
a fixpoint over the conditions as such, which knows no plan (Li et al. 2006, Theorems 2 and 4).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.harness.walking import Walk
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.safety.remedies import remedies
from xmlstream.safety.verdicts import all_promises, judged
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

TABLE = "CREATE TABLE s{0} ({1}) USING punctuated_xml OPTIONS (path 's{0}.xml', rowTag 'r', schemes '{2}');\n"
EQUALITY = "{0} = {1}"
RANGE = "{0} BETWEEN {1} AND {1} + 2"
COMPARISONS = ("{0} <= {1}", "{0} < {1} + 2", "{0} <> {1}", RANGE)
_SPELT = {
    EQUALITY: (
        EQUALITY, "{1} = {0}", "{0} IN ({1})", "NOT ({0} <> {1})",
        "{1} BETWEEN {0} AND {0}", "{0} <= {1} AND {1} <= {0}",
    ),
    "{0} <= {1}": ("{0} <= {1}", "{1} >= {0}", "NOT ({0} > {1})"),
    "{0} < {1} + 2": ("{0} < {1} + 2", "{1} + 2 > {0}", "NOT ({1} + 2 <= {0})"),
    "{0} <> {1}": ("{0} <> {1}", "{1} <> {0}", "NOT ({0} = {1})"),
    RANGE: (RANGE,),
    "{0} >= {1}": ("{0} >= {1}", "{1} <= {0}"),
    "{0} <= {1} + 2": ("{0} <= {1} + 2", "{1} + 2 >= {0}"),
}  # fmt: skip
"""The ways to write a condition."""

_UNREAD = (
    "'x'", "{0}", "-{0}", "{0} + {1}", "CAST({0} AS STRING)", "IF({0} > {1}, 1, 2)", "current_timestamp()",
    "row_number() OVER (PARTITION BY {0} ORDER BY {1})",
)  # fmt: skip
"""Columns of a view that nobody reads."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of two attributes, such as `a0` and `b1`, of two streams or of one."""

    form: str
    left: str
    right: str

    @property
    def streams(self) -> set[int]:
        return {int(self.left[1:]), int(self.right[1:])}

    def parts(self, random: Random) -> list[Condition]:
        """A range as it is, or as two comparisons; any other condition."""
        if self.form != RANGE or random.random() < 0.5:
            return [self]
        return [replace(self, form=form) for form in ("{0} >= {1}", "{0} <= {1} + 2")]

    def text(self, random: Random) -> str:
        """The condition in one of its forms."""
        return random.choice(_SPELT[self.form]).format(self.left, self.right)


@dataclass(frozen=True, slots=True)
class Joined:
    """A join of several streams, what each promises, a seed for the ways to write it, types of attributes, and columns.

    An attribute is INT, unless `types` has another type of it; `read` are the columns of SELECT, by default all.
    """

    conditions: tuple[Condition, ...]
    schemes: tuple[str, ...]
    seed: int
    types: tuple[tuple[str, str], ...] = ()
    read: tuple[str, ...] = ()

    def columns(self, stream: int) -> str:
        names = [f"{letter}{stream}" for letter in "abc"]
        return ", ".join(f"{name} {dict(self.types).get(name, 'INT')}" for name in names)

    @property
    def tables(self) -> str:
        return "".join(TABLE.format(i, self.columns(i), said) for i, said in enumerate(self.schemes))

    @property
    def classes(self) -> dict[str, set[str]]:
        """For each attribute in an equality, all that are equal to it, itself included."""
        found: dict[str, set[str]] = {}
        for c in self.conditions:
            if c.form == EQUALITY:
                both = found.get(c.left, {c.left}) | found.get(c.right, {c.right})
                found.update(dict.fromkeys(both, both))
        return found

    @property
    def select(self) -> str:
        return f"SELECT {', '.join(self.read or (f'{name}{i}' for i in range(len(self.schemes)) for name in 'abc'))}"

    def texts(self, number: int) -> Iterator[str]:
        """Several ways to write the query, drawn by the seed."""
        random = Random(self.seed)
        for _ in range(number):
            drawn = replace(self, conditions=tuple(part for c in self.conditions for part in c.parts(random)))
            yield random.choice([drawn._with_commas, drawn._with_on, drawn._with_view, drawn._with_using])(random)

    def _with_commas(self, random: Random) -> str:
        streams = random.sample(range(len(self.schemes)), len(self.schemes))
        where = self._conjoined(self.conditions, random)
        return f"{self.select} FROM {', '.join(f's{i}' for i in streams)} WHERE {where}"

    def _with_on(self, random: Random) -> str:
        return f"{self.select} FROM {self._joined({}, random)}"

    def _with_view(self, random: Random) -> str:
        """Two streams that an equality connects are joined in a subquery or a view."""
        some = random.choice([c for c in self.conditions if c.form == EQUALITY and len(c.streams) == 2])
        one, other = random.sample(sorted(some.streams), 2)
        more = random.choice(_UNREAD).format(
            *random.sample([f"{letter}{i}" for letter in "abc" for i in (one, other)], 2)
        )
        inner = f"SELECT *{f', {more} AS z' * (random.random() < 0.5)} FROM s{one} JOIN s{other} ON {some.text(random)}"
        if random.random() < 0.5:
            return f"WITH v AS ({inner}) {self.select} FROM {self._joined({one: 'v', other: 'v'}, random, some)}"
        return f"{self.select} FROM {self._joined({one: f'({inner}) AS v', other: ''}, random, some)}"

    def _with_using(self, random: Random) -> str:
        """Two streams are joined by USING, under a common name, which has one type."""
        equal = [c for c in self.conditions if c.form == EQUALITY and len(c.streams) == 2]
        types = dict(self.types)
        equal = [c for c in equal if types.get(c.left) == types.get(c.right)]
        if not equal:
            return self._with_on(random)
        some = random.choice(equal)
        sides = []
        for name in random.sample([some.left, some.right], 2):
            others = [f"{letter}{name[1:]}" for letter in "abc" if letter != name[0]]
            sides.append(f"(SELECT {name} AS k, {', '.join(others)} FROM s{name[1:]})")
        inner = f"(SELECT *, k AS {some.left}, k AS {some.right} FROM {sides[0]} AS p JOIN {sides[1]} AS q USING (k))"
        one, other = some.streams
        return f"{self.select} FROM {self._joined({one: f'{inner} AS v', other: ''}, random, some)}"

    def _joined(self, views: dict[int, str], random: Random, *done: Condition) -> str:
        """FROM with JOIN … ON, begun with the view of two streams if there is one; some conditions come in WHERE."""
        left = [c for c in self.conditions if c not in done]
        first = random.randrange(len(self.schemes))
        here = set(views) or {first}
        text = next(filter(None, views.values()), f"s{first}")
        where: list[Condition] = []
        while len(here) < len(self.schemes):
            within = [c for c in left if c.streams <= here]
            where += within
            left = [c for c in left if c not in within]
            usable = [c for c in left if c.form == EQUALITY and len(c.streams - here) == 1 and c.streams & here]
            keyed = random.choice(usable)
            (more,) = keyed.streams - here
            here |= {more}
            others = [c for c in left if c is not keyed and c.streams <= here and random.random() < 0.5]
            on = self._conjoined([keyed, *others], random)
            text += f" JOIN s{more} ON {on}"
            left = [c for c in left if c is not keyed and c not in others]
        where += left
        return text + (f" WHERE {self._conjoined(where, random)}" if where else "")

    @staticmethod
    def _conjoined(conditions: Sequence[Condition], random: Random) -> str:
        return " AND ".join(c.text(random) for c in random.sample(conditions, len(conditions)))


SCHEMES = ["", "a{0}", "b{0}", "c{0}", "a{0}; b{0}", "b{0}; c{0}", "a{0}, b{0}", "b{0}, c{0}; a{0}"]


@st.composite
def joins(draw: st.DrawFn, more: Sequence[str] = (EQUALITY, *COMPARISONS), schemes: Sequence[str] = SCHEMES) -> Joined:
    """Each stream but the first is equal to one before it; up to two further conditions stand beside."""
    count = draw(st.integers(2, 4))
    letters = st.sampled_from("abc")
    conditions = [
        Condition(EQUALITY, f"{draw(letters)}{i}", f"{draw(letters)}{draw(st.integers(0, i - 1))}")
        for i in range(1, count)
    ]
    for _ in range(draw(st.integers(0, 2))):
        one, other = draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True))
        conditions.append(Condition(draw(st.sampled_from(more)), f"{draw(letters)}{one}", f"{draw(letters)}{other}"))
    said = tuple(draw(st.sampled_from(schemes)).format(i) for i in range(count))
    names = [f"{letter}{i}" for i in range(count) for letter in "abc"]
    types = draw(st.dictionaries(st.sampled_from(names), st.sampled_from(["BIGINT", "DECIMAL(10,0)"]), max_size=3))
    joined = Joined(tuple(conditions), said, 0)
    # Two attributes of one stream that are equal by another have one type.
    types = {
        name: of
        for name, of in types.items()
        if all(o[1:] != name[1:] for o in joined.classes.get(name, ()) if o != name)
    }
    read = draw(st.just([]) | st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    seed = draw(st.integers(0, 2**16))
    return Joined(tuple(dict.fromkeys(conditions)), said, seed, tuple(sorted(types.items())), tuple(sorted(read)))


@cache
def in_process() -> InProcessSession:
    return xs.open_session(engine="duckdb")


def plan(drawn: Joined, query: str) -> Node:
    return planned(in_process(), drawn, query)


def verdict(drawn: Joined, query: str) -> tuple[Any, ...]:
    """What a user is told of a query that follows its input, and what its result promises if it is safe.

    Of two attributes of one stream that are equal by another stream, a promise may stand at either.
    """
    root = plan(drawn, query)
    found, known = judged(root, follow=True), all_promises(root, follow=True)
    equal = drawn.classes
    promises = [
        {min(equal.get(t.attribute, {t.attribute})): t.kind == "prefix" for t in scheme.terms}
        for scheme in (known[root].running if found.is_safe else ())
    ]
    strongest = {
        tuple(sorted(one.items()))
        for one in promises
        if not any(
            other != one and all(name in one and other[name] >= one[name] for name in other) for other in promises
        )
    }
    return found.is_enabled, found.is_safe, found.is_cleansed, found.answers, strongest


@settings(max_examples=settings().max_examples * (2 if AT_NIGHT else 1), suppress_health_check=[HealthCheck.too_slow])
@given(joins(schemes=[*SCHEMES, "a{0} prefix", "b{0} prefix; c{0}", "c{0} prefix, a{0}"]))
def test_equal_texts_have_equal_verdicts(drawn: Joined) -> None:
    first, *others = drawn.texts(5)
    expected = verdict(drawn, first)
    for other in others:
        assert verdict(drawn, other) == expected, f"{drawn}\n{first}\n{other}"


CYCLE = Joined((), ("b0", "c1", "a2"), 0)
"""Streams that are safe joined in a cycle, and only at once (Li et al. 2006, Fig. 5)."""

PAIR = Joined((), ("a0 prefix", "a1"), 0)


@pytest.mark.parametrize(
    ("drawn", "query"),
    [
        *(
            (CYCLE, f"SELECT a0 FROM (SELECT *, {z} AS z FROM s0 JOIN s1 ON b0 = b1) v JOIN s2 ON c1 = c2 AND a0 = a2")
            for z in ("a0", "1", "'x'", "a0 + 1", "a0 / 0", "upper(CAST(a0 AS STRING))", "CAST(a0 AS BIGINT)",
                      "IF(a0 > b0, 1, 2)", "current_timestamp()", "lead(b0) OVER (PARTITION BY a0 ORDER BY b0)")
        ),
        (CYCLE, "SELECT z FROM (SELECT *, a0 + c1 AS z FROM s0 JOIN s1 ON b0 = b1) v JOIN s2 ON c1 = c2 AND a0 = a2"),
        (CYCLE, "SELECT z FROM (SELECT *, -a0 AS z FROM s0, s1 WHERE b0 = b1), s2 WHERE c1 = c2 AND a0 = a2 AND z > 1"),
        (CYCLE, "SELECT a0 FROM (SELECT *, a0+1 z FROM s0, s1 WHERE b0 = b1), s2 WHERE c1 = c2 AND a0 = a2 AND z > 1"),
        *(
            (CYCLE, f"SELECT a0 FROM s0 JOIN s1 ON b0 = b1 JOIN s2 ON c1 = c2 AND {equal}")
            for equal in ("a0 IN (a2)", "NOT (a0 <> a2)", "NOT NOT (a0 = a2)", "a0 BETWEEN a2 AND a2",
                          "NOT (a0 < a2 OR a0 > a2)", "a0 <= a2 AND a2 <= a0")
        ),
        *(
            (PAIR, f"SELECT * FROM s0 JOIN s1 ON b0 = a1 AND {bounds}")
            for bounds in ("a1 BETWEEN a0 AND a0 + 2", "a1 >= a0 AND a1 <= a0 + 2", "b0 >= a0 AND a1 <= a0 + 2",
                           "NOT (a0 > b0 OR a0 + 2 < a1)")
        ),
        (PAIR, "SELECT c0 FROM (SELECT b0, c0 FROM s0 WHERE b0 >= a0) AS v JOIN s1 ON b0 = a1"),
    ],
)  # fmt: skip
def test_what_is_the_same_in_other_words_is_as_safe(drawn: Joined, query: str) -> None:
    assert verdict(drawn, query)[:2] == (True, True)


@pytest.mark.parametrize("order", ["s0, s1, s2", "s1, s0, s2", "s2, s1, s0"])
def test_a_range_counts_at_each_join_of_attributes_that_equal_its_own(order: str) -> None:
    drawn = Joined((), ("b0 prefix; c0", "b1; c1", "b2; c2"), 0)
    for bound in ("c2", "a1"):
        query = f"SELECT a0 FROM {order} WHERE c0 = b1 AND c2 = a1 AND b0 <= {bound}"
        assert judged(plan(drawn, query), follow=True).is_safe


def test_attributes_that_are_never_null_are_equal_by_their_null_safe_equality() -> None:
    tables = CYCLE.tables.replace("INT", "INT NOT NULL")
    for equal in ("a0 <=> a2", "a2 IS NOT DISTINCT FROM a0", "NOT (a0 IS DISTINCT FROM a2)"):
        query = f"SELECT a0 FROM s0 JOIN s1 ON b0 <=> b1 JOIN s2 ON c1 = c2 AND {equal}"
        assert judged(optimized(read(tables + query).plan(in_process())), follow=True).is_safe, query
    with pytest.raises(QueryError, match="a join without an equality"):
        read(CYCLE.tables + "SELECT a0 FROM s0 JOIN s1 ON b0 <=> b1")


def is_safe(drawn: Joined) -> bool:
    """Theorem 4: from each stream, chains of punctuations reach all others, over all equalities that follow."""
    classes = drawn.classes
    for first in range(len(drawn.schemes)):
        reached = {first}
        while True:
            known = {name for name in classes if any(int(equal[1:]) in reached for equal in classes[name])}
            more = {
                i
                for i, said in enumerate(drawn.schemes)
                if i not in reached and any(set(one.strip().split(", ")) <= known for one in said.split(";") if said)
            }
            if not more:
                break
            reached |= more
        if len(reached) < len(drawn.schemes):
            return False
    return True


@settings(max_examples=settings().max_examples * (2 if AT_NIGHT else 1), suppress_health_check=[HealthCheck.too_slow])
@given(joins(more=[EQUALITY]))
def test_a_join_is_safe_if_any_plan_for_it_can_be(drawn: Joined) -> None:
    for text in drawn.texts(2):
        assert judged(plan(drawn, text), follow=True).is_safe == is_safe(drawn), f"{drawn}\n{text}"


def mended(drawn: Joined, more: Mapping[str, str]) -> Joined:
    """The join whose sources promise more, each one scheme."""
    said = (filter(None, (old, more.get(f"s{i}", ""))) for i, old in enumerate(drawn.schemes))
    return replace(drawn, schemes=tuple(map("; ".join, said)))


@settings(max_examples=settings().max_examples * (2 if AT_NIGHT else 1), suppress_health_check=[HealthCheck.too_slow])
@given(joins(more=[EQUALITY], schemes=["", "a{0}", "b{0}", "c{0}", "a{0}; b{0}"]))
def test_remedies_are_the_smallest_sets_of_promises_that_mend(drawn: Joined) -> None:
    """Each is tried with the joins chosen again; no set for fewer sources would do, by brute force."""
    (text,) = drawn.texts(1)
    root = plan(drawn, text)
    found = remedies(root, follow=True, most=1000, kinds=["each"])
    sources = [f"s{i}" for i in range(len(drawn.schemes))]
    sets = (
        dict(zip(names, chosen, strict=True))
        for size in range(len(sources) + 1)
        for names in combinations(sources, size)
        for chosen in product(*([f"{letter}{name[1:]}" for letter in "abc"] for name in names))
    )
    first = next((more for more in sets if is_safe(mended(drawn, more))), None)
    assert bool(found) == bool(first), f"{drawn}\n{text}"
    for remedy in found:
        more = {source: str(scheme) for source, scheme in remedy.promises}
        assert first is not None
        assert len(more) == len(first), f"{drawn}\n{text}: {remedy}"
        assert judged(plan(mended(drawn, more), text), follow=True).is_safe, f"{drawn}\n{text}: {remedy}"


Slices = list[dict[str, tuple[list[Any], list[Punctuation]]]]


def value(random: Random, domain: Domain) -> Any:
    return domain.read(str(random.randrange(3)))


def streams(drawn: Joined) -> Slices:
    """Some slices of tuples with few values, and of promised punctuations on them, which later tuples do not break."""
    random, said = Random(drawn.seed), dict[int, list[Punctuation]]()
    found: Slices = []
    for _ in range(6):
        here: dict[str, tuple[list[Any], list[Punctuation]]] = {}
        for i, schemes in enumerate(drawn.schemes):
            schema = Schema.parse(drawn.columns(i))
            before = said.setdefault(i, [])
            drawn_rows = [tuple(value(random, a.domain) for a in schema) for _ in range(random.randrange(3))]
            rows = [row for row in drawn_rows if not any(p.matches(row) for p in before)]
            names = random.choice(schemes.split(";")).strip()
            new: list[Punctuation] = []
            if names and random.random() < 0.7:
                at = {schema.index(name): Constant(value(random, schema[name].domain)) for name in names.split(", ")}
                new = [Punctuation.at(schema, at)]
            before += new
            here[f"s{i}"] = (rows, new)
        found.append(here)
    return found


def kept(session: InProcessSession, root: Node, slices: Slices) -> tuple[list[int], Counter[Any]]:
    """How many tuples a plan keeps after each slice, and all that it puts out."""
    rows: Counter[Any] = Counter()
    numbers = []
    with tempfile.TemporaryDirectory() as directory:
        walk = Walk(session, Path(directory), root)
        for given_ in slices:
            done = walk.slice(given_)
            rows.update(map(tuple, done.tuples))
            numbers.append(done.kept)
    return numbers, rows


@pytest.mark.parametrize("session", ["in process"], indirect=True)
def test_equal_texts_keep_equally_many_tuples_and_have_equal_answers(session: InProcessSession) -> None:
    @settings(
        max_examples=max(5, settings().max_examples // 5),
        suppress_health_check=[HealthCheck.too_slow],
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )
    @given(joins())
    def holds(drawn: Joined) -> None:
        slices = streams(drawn)
        first, *others = dict.fromkeys(drawn.texts(3))
        expected = kept(session, planned(session, drawn, first), slices)
        as_written = kept(session, read(drawn.tables + first).plan(session), slices)
        assert as_written[1] == expected[1], f"{drawn}\n{first}"
        safe = judged(plan(drawn, first), follow=True).is_safe
        for other in others:
            numbers, rows = kept(session, planned(session, drawn, other), slices)
            assert rows == expected[1], f"{drawn}\n{first}\n{other}"
            assert numbers == expected[0] or not safe, f"{drawn}\n{first}\n{other}"

    holds()


@pytest.mark.parametrize("session", ["in process"], indirect=True)
def test_what_a_join_closes_does_not_depend_on_which_of_equal_attributes_it_compares(session: InProcessSession) -> None:
    """`a0`, `b0` and `a1` are equal, so what closes one of them closes all."""
    drawn = Joined((), ("a0 prefix; b0 prefix", "a1 prefix"), 0)
    slices: Slices = [{"s0": ([], []), "s1": ([], [])} for _ in range(3)]
    for at, (stream, text) in enumerate((("s0", "<(,3], *, *>"), ("s0", "<*, (,4], *>"), ("s1", "<(,5], *, *>"))):
        slices[at][stream][1].append(Punctuation.parse(text, Schema.parse(drawn.columns(int(stream[1])))))
    for text in (
        "SELECT a0, b0, a1 FROM s0 JOIN s1 ON a0 = a1 AND b0 = a1",
        "SELECT a0, b0, a1 FROM s1 JOIN s0 ON b0 = a1 AND a0 = a1",
        "SELECT a0, b0, a1 FROM s0 JOIN s1 ON b0 = a1 WHERE a0 = b0",
        "SELECT a0, b0, a1 FROM (SELECT * FROM s0 WHERE a0 = b0) AS v JOIN s1 ON a1 = a0",
    ):
        root = planned(session, drawn, text)
        with tempfile.TemporaryDirectory() as directory:
            walk = Walk(session, Path(directory), root)
            said = [{str(p) for p in walk.slice(given_).punctuations} for given_ in slices]
        expected = [{f"<{', '.join(['*'] * i + [f'(,{n}]'] + ['*'] * (2 - i))}>" for i in range(3)} for n in (3, 4, 5)]
        assert said == expected, text


def planned(session: InProcessSession, drawn: Joined, query: str) -> Node:
    return optimized(read(drawn.tables + query).plan(session))
