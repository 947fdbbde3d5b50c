"""Joins on alternatives: each pair once, whatever is null; safe exactly if each tuple's partners are closed in the end.

The verdict is compared with the definition by brute force (Li et al. 2006, Definitions 1 to 3 and Theorem 4, which are
stated for conjunctions): a tuple may go once punctuations match all tuples of the other side that could be its partner.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
import xmlstream.testing as xt
from tests.harness.dying import Died, dying
from tests.harness.nights import AT_NIGHT, IN_PROCESS_BY_DAY, SEED
from xmlstream.optimizer.rules import optimized
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.checkpoint.checkpoint import Checkpoint
from xmlstream.runtime.loop.execution import Execution
from xmlstream.safety.verdicts import judged
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

TABLE = (
    "CREATE TABLE s{0} (a{0} INT, b{0} INT, c{0} INT) USING punctuated_xml"
    " OPTIONS (path 's{0}.xml', rowTag 'r', schemes '{1}');\n"
)
LETTERS = "abc"
SCHEMES = ["a{0}", "b{0}", "c{0}", "a{0}, b{0}", "b{0}, c{0}"]

Row = tuple[int | None, ...]


@dataclass(frozen=True)
class Atom:
    """A comparison of an attribute of each side, by their places."""

    left: int
    right: int
    form: str = "="

    def holds(self, t: Row, u: Row) -> bool | None:
        x, y = t[self.left], u[self.right]
        return None if x is None or y is None else (x == y) == (self.form == "=")

    def text(self) -> str:
        return f"{LETTERS[self.left]}0 {self.form} {LETTERS[self.right]}1"


@dataclass(frozen=True)
class Drawn:
    """Alternatives, each of comparisons that must all hold, beside further comparisons; and what both sides promise."""

    alternatives: tuple[tuple[Atom, ...], ...]
    beside: tuple[Atom, ...]
    schemes: tuple[tuple[str, ...], tuple[str, ...]]

    @staticmethod
    def of(random: Random) -> Drawn:
        def atoms(most: int) -> tuple[Atom, ...]:
            forms = ["=", *(random.choice(["=", "=", "<>"]) for _ in range(random.randrange(most)))]
            found = [Atom(random.randrange(3), random.randrange(3), form) for form in forms]
            random.shuffle(found)
            return tuple(found)

        form = random.choice(["<>", "<>", "="])
        beside = (Atom(random.randrange(3), random.randrange(3), form),) if random.random() < 0.3 else ()
        schemes = tuple(tuple(random.sample(SCHEMES, random.randint(0, 3))) for _ in range(2))
        while True:
            alternatives = tuple(atoms(3) for _ in range(random.randint(2, 3)))
            drawn = Drawn(alternatives, beside, schemes)  # type: ignore[arg-type]
            if drawn.can_hold():
                return drawn

    def condition(self, random: Random) -> str:
        """The condition in words of SQL; alternatives on one attribute perhaps as IN."""
        first = {each[0].left for each in self.alternatives}
        if len(first) == 1 and all(len(each) == 1 for each in self.alternatives) and random.random() < 0.7:
            listed = ", ".join(f"{LETTERS[each[0].right]}1" for each in self.alternatives)
            whole = f"{LETTERS[first.pop()]}0 IN ({listed})"
        else:
            whole = " OR ".join(f"({' AND '.join(atom.text() for atom in each)})" for each in self.alternatives)
        return " AND ".join([f"({whole})", *(atom.text() for atom in self.beside)])

    def tables(self) -> str:
        return "".join(TABLE.format(i, "; ".join(said).format(i)) for i, said in enumerate(self.schemes))

    def pairs(self, t: Row, u: Row) -> bool:
        """Whether the condition is true, and not unknown."""
        some = any(all(atom.holds(t, u) is True for atom in each) for each in self.alternatives)
        return some and all(atom.holds(t, u) is True for atom in self.beside)

    def may_go(self) -> bool:
        """Whether each tuple of either side may go in the end, by brute force.

        Values come and are closed in their order; some that have not come yet are not closed.
        """
        closed, known = range(2), range(4)
        for side, t, u in product(range(2), product(closed, repeat=3), product(known, repeat=3)):
            pair = (t, u) if side == 0 else (u, t)
            places = [[LETTERS.index(name[0]) for name in said.split(", ")] for said in self.schemes[1 - side]]
            if self.pairs(*pair) and not any(all(u[at] in closed for at in names) for names in places):
                return False
        return True

    def can_hold(self) -> bool:
        """Whether each alternative has pairs."""
        rows = list(product(range(3), repeat=3))
        alone = (Drawn((each,), self.beside, self.schemes) for each in self.alternatives)
        return all(any(one.pairs(t, u) for t in rows for u in rows) for one in alone)


FORMS = {
    "on": "SELECT a0, b0, c0, a1, b1, c1 FROM s0 JOIN s1 ON {}",
    "where": "SELECT a0, b0, c0, a1, b1, c1 FROM s1, s0 WHERE {}",
    "semi": "SELECT a0, b0, c0 FROM s0 LEFT SEMI JOIN s1 ON {}",
    "anti": "SELECT a0, b0, c0 FROM s0 LEFT ANTI JOIN s1 ON {}",
    "exists": "SELECT a0, b0, c0 FROM s0 WHERE EXISTS (SELECT 1 FROM s1 WHERE {})",
    "not exists": "SELECT a0, b0, c0 FROM s0 WHERE NOT EXISTS (SELECT 1 FROM s1 WHERE {})",
}


def expected(drawn: Drawn, form: str, left: list[Row], right: list[Row]) -> Counter[tuple[object, ...]]:
    """The rows of a query, tuple by tuple."""
    if form in ("on", "where"):
        return Counter((*t, *u) for t in left for u in right if drawn.pairs(t, u))
    wanted = form in ("semi", "exists")
    return Counter(t for t in left if any(drawn.pairs(t, u) for u in right) == wanted)


@pytest.mark.sampled(3)
@IN_PROCESS_BY_DAY
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(SEED, SEED + (60 if AT_NIGHT else 4)))
def test_each_pair_comes_once(session: Session, form: str, seed: int) -> None:
    random = Random(f"{form} {seed}")
    drawn = Drawn.of(random)
    left, right = ([tuple(random.choice([0, 1, 2, None]) for _ in range(3)) for _ in range(7)] for _ in range(2))

    def text(rows: list[Row]) -> str:
        return " ".join(f"({', '.join('null' if v is None else str(v) for v in row)})" for row in rows)

    query = drawn.tables() + FORMS[form].format(drawn.condition(random))
    with xt.case(query, session=session, allow_unsafe=True) as case:
        out: Counter[tuple[object, ...]] = Counter()
        wanted = expected(drawn, form, left, right)
        for part in range(0, 7, 3):
            came = case.slice(s0=text(left[part : part + 3]), s1=text(right[part : part + 3]))
            out += Counter(came.tuples)
            assert out <= wanted, query
            if random.random() < 0.3:
                case.restart()
        for end in random.sample(["s0", "s1"], 2):
            out += Counter(case.slice(**{end: "<*, *, *>"}).tuples)
        assert out == wanted, query


@pytest.mark.parametrize("seed", range(SEED, SEED + (500 if AT_NIGHT else 40)))
def test_a_join_on_alternatives_is_safe_if_partners_are_closed_in_the_end(seed: int) -> None:
    random = Random(seed)
    drawn = Drawn.of(random)
    query = drawn.tables() + FORMS[random.choice(["on", "where"])].format(drawn.condition(random))
    assert judged(optimized(read(query).sketch()), follow=True).is_safe == drawn.may_go(), query


@pytest.mark.parametrize(
    ("schemes", "safe"), [("a{0}, b{0}; a{0}, c{0}", True), ("a{0}", True), ("a{0}, b{0}", False), ("b{0}; c{0}", True)]
)
def test_what_alternatives_have_in_common_need_not_close_if_the_keys_of_each_do(schemes: str, safe: bool) -> None:
    tables = TABLE.format(0, schemes.format(0)) + TABLE.format(1, schemes.format(1))
    for condition in ("a0 = a1 AND (b0 = b1 OR c0 = c1)", "(a0 = a1 AND b0 = b1) OR (c0 = c1 AND a1 = a0)"):
        root = optimized(read(f"{tables}SELECT b0, c1 FROM s0 JOIN s1 ON {condition}").sketch())
        assert judged(root, follow=True).is_safe == safe


def test_a_disjunction_of_two_keys_answers_each_key_by_itself(session: Session) -> None:
    tables = TABLE.format(0, "a0; b0") + TABLE.format(1, "a1; b1")
    query = tables + "SELECT a0, b0, a1, b1, c1 FROM s0 JOIN s1 ON a0 = a1 OR b0 = b1"
    with xt.case(query, session=session) as case:
        assert case.slice(s0="(1, 1, 0) (2, null, 0)", s1="(1, 1, 5) (1, 9, 6)").tuples == [
            (1, 1, 1, 1, 5), (1, 1, 1, 9, 6),
        ]  # fmt: skip
        assert case.slice(s0="(null, 9, 0)").tuples == [(None, 9, 1, 9, 6)]
        # A row is kept in both joins until each of its keys is closed.
        kept = [case.slice(s1=said, s0=said).kept for said in ("<{1,2}, *, *>", "<*, {1,9}, *>")]
        assert kept[1] == 0 < kept[0]


RUN = """
CREATE TABLE s0 (a0 INT, b0 INT) USING punctuated_xml
OPTIONS (path '{home}/s0', rowTag 'r', schemes 'a0; b0', maxFilesPerSlice '1');
CREATE TABLE s1 (a1 INT, b1 INT) USING punctuated_xml
OPTIONS (path '{home}/s1', rowTag 'r', schemes 'a1; b1', maxFilesPerSlice '1');
CREATE TABLE pairs USING punctuated_xml OPTIONS (path '{home}/pairs', punctuations 'all');
CREATE TABLE alone USING punctuated_xml OPTIONS (path '{home}/alone');
INSERT INTO pairs SELECT * FROM s0 JOIN s1 ON a0 = a1 OR b0 = b1 WHERE a0 > 0;
INSERT INTO alone SELECT * FROM s0 WHERE NOT EXISTS (SELECT 1 FROM s1 WHERE a0 IN (a1, b1));
"""


@pytest.mark.sampled(4)
@IN_PROCESS_BY_DAY
@pytest.mark.parametrize(
    "where", [(Checkpoint, "commit"), (Execution, "_go_on"), (Execution, "_slice"), (Execution, "_drafts")]
)
@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("behind", [False, True])
def test_each_pair_comes_once_whenever_a_run_is_killed(
    session: Session, tmp_path: Path, where: tuple[type, str], at: int, behind: bool
) -> None:
    drawn = Random(f"{where[1]} {at} {behind}")
    rows: dict[str, list[Row]] = {"s0": [], "s1": []}
    for name in rows:
        (tmp_path / name).mkdir()
    text = RUN.format(home=tmp_path)
    for closed in range(4):
        for name in rows:
            some = [(drawn.randint(closed, closed + 3), drawn.randint(closed, closed + 3)) for _ in range(3)]
            rows[name] += some
            lines = [f"<r><a{name[1]}>{x}</a{name[1]}><b{name[1]}>{y}</b{name[1]}></r>" for x, y in some]
            lines += [f"<p:r><{leaf}{name[1]}>{closed}</{leaf}{name[1]}></p:r>" for leaf in "ab"]
            document = f"<all xmlns:p='{PUNCT_NS}'>{''.join(lines)}</all>"
            (tmp_path / name / f"{closed:05}.xml").write_text(document)

    def run(*, keep_open: bool) -> None:
        xs.run(xs.inserts_from_sql(session, text), checkpoint=tmp_path / "state", keep_open=keep_open)

    with pytest.raises(Died), dying(at, where, behind=behind):
        run(keep_open=True)
    run(keep_open=False)
    pairs = Counter((*t, *u) for t in rows["s0"] for u in rows["s1"] if (t[0] == u[0] or t[1] == u[1]) and t[0])
    alone = Counter(t for t in rows["s0"] if not any(t[0] in u for u in rows["s1"]))
    assert (found(tmp_path / "pairs"), found(tmp_path / "alone")) == (pairs, alone)


def found(directory: Path) -> Counter[tuple[int, ...]]:
    """The rows of the documents of a result, of whole numbers."""
    lines = [line for path in directory.glob("*.xml") for line in path.read_text().splitlines()]
    return Counter(tuple(map(int, re.findall(r">(\d+)<", line))) for line in lines if line.startswith("<row>"))
