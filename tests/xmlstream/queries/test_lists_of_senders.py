"""Lists of senders: a group closes exactly when all senders that a list names have closed it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import xmlstream.testing as xt
from tests.harness.nights import AT_NIGHT, IN_PROCESS_BY_DAY, SEED
from xmlstream.operators.taking_over import Differs
from xmlstream.punct_ns.errors import QueryError, UnsafeQuery
from xmlstream.punct_ns.schema import Schema
from xmlstream.runtime.change.plan_comparison import require_wider

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

QUERY = """
CREATE TABLE report (sid {type}, hour INT) USING punctuated_xml
OPTIONS (path 'in.xml', rowTag 't', schemes 'sid, hour', {how});
SELECT hour, count(*) AS n FROM report GROUP BY hour;
"""

WAYS = {
    "roster": ("STRING", "punctuate 'roster of sid (S1, \"S,2\", S3)'", ["S1", '"S,2"', "S3"]),
    "roster, by order": ("STRING", "punctuate 'roster of sid (S1, S2), order of hour'", ["S1", "S2"]),
    "list": ("STRING", "domains 'sid {S1, \"S,2\", S3}'", ["S1", '"S,2"', "S3"]),
    "list of days": ("DATE", "domains 'sid {2026-01-01, 2026-03-01}'", ["2026-01-01", "2026-03-01"]),
    "list of prices": ("DECIMAL(4,1)", "domains 'sid {0.5, 1.5, 7.0}'", ["0.5", "1.5", "7.0"]),
    "list of doubles": ("DOUBLE", "domains 'sid {0.5, 1.5}'", ["0.5", "1.5"]),
    "list of numbers": ("INT", "domains 'sid {1, 2, 9}'", ["1", "2", "9"]),
    "bounds of numbers": ("INT NOT NULL", "domains 'sid 1..3'", ["1", "2", "3"]),
}


@IN_PROCESS_BY_DAY
@pytest.mark.parametrize("seed", range(SEED, SEED + (60 if AT_NIGHT else 2)))
@pytest.mark.parametrize("way", WAYS)
def test_a_group_closes_when_all_have_closed_it(session: Session, way: str, seed: int) -> None:
    drawn = random.Random(f"{way} {seed}")
    type_, how, senders = WAYS[way]
    left = {(sender, hour) for sender in senders for hour in range(4)}
    with xt.case(QUERY.format(type=type_, how=how), session=session) as case:
        out: dict[int, int] = {}
        came = dict.fromkeys(range(4), 0)
        while left:
            items = []
            for _ in range(drawn.randint(0, 5)):
                sender, hour = drawn.choice(sorted(left)) if left else (None, 0)
                if sender is None:
                    break
                if drawn.random() < 0.4:
                    items.append(f"<{sender}, {hour}>")
                    left.discard((sender, hour))
                elif "order" not in how:
                    items.append(f"({sender}, {hour})")
                    came[hour] += 1
            result = case.slice(report=" ".join(items))
            assert not out.keys() & {row["hour"] for row in result.rows}
            out |= {row["hour"]: row["n"] for row in result.rows}
            over = {hour for hour in range(4) if not any(hour == other for _, other in left)}
            assert out == {hour: came[hour] for hour in over if came[hour]}
            if drawn.random() < 0.3:
                case.restart()


@pytest.mark.parametrize(
    ("type_", "proposed"),
    [
        ("STRING", "domains 'sid {…}'"),
        ("INT", "domains 'sid {…}'; or, if it is NOT NULL, bound it: domains 'sid 0..99'"),
    ],
)
def test_a_list_is_proposed_where_it_is_enough(type_: str, proposed: str) -> None:
    from xmlstream.safety.changes import changes
    from xmlstream.sql import script

    root = script.read(QUERY.format(type=type_, how="mode 'FAILFAST'")).sketch()
    texts = [str(change) for change in changes(root, follow=True)]
    assert texts[0] == f"list what sid can be in the options of report, if that is known: {proposed}"
    with pytest.raises(UnsafeQuery):
        xt.case(QUERY.format(type=type_, how="mode 'FAILFAST'"))


@pytest.mark.parametrize(
    ("domains", "what"),
    [
        ("sid {}", "no value is listed"),
        ("sid {S1", "does not end|ends with"),
        ("sid {''S1''}", "has single quotes around it"),
        ("hour {one}", "'one' is not a valid INT"),
    ],
)
def test_what_is_no_list_is_refused(domains: str, what: str) -> None:
    with pytest.raises(QueryError, match=what):
        xt.case(QUERY.format(type="STRING", how=f"domains '{domains}'"))


def test_another_list_takes_no_state_over() -> None:
    few, more = (Schema.of(sid="STRING").bounded(text)["sid"] for text in ("sid {S1, S3}", "sid {S1, S2, S3}"))
    require_wider(few, few)
    for new, old in ((more, few), (few, more)):
        with pytest.raises(Differs, match="the domain of sid lists other values than before"):
            require_wider(new, old)
