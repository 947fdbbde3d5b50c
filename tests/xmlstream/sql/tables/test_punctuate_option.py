from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.count import ByCount
from xmlstream.operators.punctuators.order import ByClock, ByOrder
from xmlstream.operators.punctuators.predicate import ByPredicate
from xmlstream.operators.punctuators.roster import ByRoster, Listed
from xmlstream.operators.punctuators.rule import Rule
from xmlstream.plan.nodes import Scan
from xmlstream.punct_ns.errors import QueryError, UngrammaticalStream, UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import format_schemes
from xmlstream.safety.verdicts import judged
from xmlstream.sql import script
from xmlstream.sql.tables.stream_options import rules_of

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session

SCHEMA = Schema.parse("sid STRING, `a b` INT, n BIGINT, ts TIMESTAMP, d DATE, price DECIMAL(8,2), x DOUBLE, line INT")

OF_NAMES = ByRoster("n", "sid", ("O'Brien", "'t Hooft", "D'Arcy; 2"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("order of ts", [ByOrder("ts")]),
        ("ORDER OF ts, PER sid, slack 10s", [ByOrder("ts", timedelta(seconds=10), per="sid")]),
        (" order of `a b`,per sid,per line , max_ahead 3;", [ByOrder("a b", None, 3, ("sid", "line"))]),
        ("order of d, slack 2", [ByOrder("d", 2)]),
        ("order of price, slack 0.25", [ByOrder("price", Decimal("0.25"))]),
        ("order of x, slack 0.25", [ByOrder("x", 0.25)]),
        ("clock of ts; order of n", [ByClock("ts"), ByOrder("n")]),
        ("clock of ts, delay 2m", [ByClock("ts", timedelta(minutes=2))]),
        ("roster of sid (S01), order of n, slack 3", [ByRoster("n", "sid", ("S01",), 3)]),
        ('roster of sid (S01, "S;,2"), order of n', [ByRoster("n", "sid", ("S01", "S;,2"))]),
        ("roster of sid (O'Brien, 't Hooft, \"D'Arcy; 2\"), order of n; order of x", [OF_NAMES, ByOrder("x")]),
        ("order of n, roster of d (2026-11-25)", [ByRoster("n", "d", (date(2026, 11, 25),))]),
        (
            "order of n, roster of ts (2026-11-25T09:00:00Z)",
            [ByRoster("n", "ts", (datetime(2026, 11, 25, 9, tzinfo=UTC),))],
        ),
        ("order of n, roster of line (3,1,2)", [ByRoster("n", "line", (3, 1, 2))]),
        ("roster of SID from senders", [ByRoster(None, "SID", (), listed=Listed("senders", "sid"))]),
        (
            "roster of sid FROM `the units` . unit, order of n, slack 3",
            [ByRoster("n", "sid", (), 3, Listed("the units", "unit"))],
        ),
        (
            "end of n, end of sid, when line IN (1, 2) AND sid = 'a;b'",
            [ByPredicate("line IN (1, 2) AND sid = 'a;b'", ("n", "sid"))],
        ),
        (
            "end of sid, when line IN (1, 2) OR sid = ', or after 3', or after 30m of ts; order of n",
            [
                ByPredicate("line IN (1, 2) OR sid = ', or after 3'", ("sid",), timedelta(minutes=30), "ts"),
                ByOrder("n"),
            ],
        ),
        ("end of n after 3; END OF sid, end of n AFTER `a b`", [ByCount("n", 3), ByCount(("sid", "n"), "a b")]),
        (
            "end of n, after line, counting sid <> 'a, after; 3'; order of n",
            [ByCount("n", "line", "sid <> 'a, after; 3'"), ByOrder("n")],
        ),
        ("end of sid, or after 2 of `a b`", [ByPredicate(None, ("sid",), 2, "a b")]),
        ("end of n,\n  WHEN sid = 'it''s; )' ; order of n", [ByPredicate("sid = 'it''s; )'", ("n",)), ByOrder("n")]),
    ],
)
def test_rules_are_read(text: str, expected: list[Rule]) -> None:
    assert list(rules_of(text, SCHEMA)) == expected
    assert list(rules_of("; ".join(map(str, expected)), SCHEMA)) == expected


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("ordered by ts", "'ordered by ts' in the rule 'ordered by ts' cannot be read"),
        ("slack 3", "the rule 'slack 3' cannot be read"),
        ("order of n, order of x", "has 'order of' 2 times"),
        ("order of n, slack 1, slack 2", "has 'slack' 2 times"),
        ("order of n, delay 3s", "'delay 3s' has no meaning in the rule"),
        ("order of nn", "no attribute nn"),
        ("end of sid", "has 'when' 0 times"),
        ("end of sid, or after 30m", "'or after 30m' names no time"),
        ("end of n, or after 30m of sid", "or after '30m': a STRING has no distances"),
        ("end of sid, or after soon of ts", "or after 'soon' is not a span of time"),
        ("end of sid, or after 1m of ts of n", "'of n' after ts cannot be read"),
        ("order of ts, or after 1m of ts", "'or after 1m of ts' has no meaning in the rule"),
        ("order of n ascending", "'ascending' after n cannot be read"),
        ("order of n, slack soon", "slack 'soon' is not a number"),
        ("order of ts, slack 10", "slack '10' is not a span of time"),
        ("clock of ts, delay late", "delay 'late' is not a span of time"),
        ("roster of sid, order of n", "'roster of sid' needs a list of STRING values in parentheses, not ''"),
        ("roster of line (a), order of n", "'roster of line' needs a list of INT values in parentheses, not '(a)'"),
        ("roster of sid ('S01', 'S02'), order of n", "'S01' on the roster of sid has single quotes around it"),
        ('roster of sid (S01, "S02), order of n', "a bracket or a quote in the rule 'roster of sid (S01, \"S02), ord"),
        ("end of n", "has 'when' 0 times"),
        ("end of n after", "'after' after n cannot be read"),
        ("end of n after 2.5", "after 2.5: no number of tuples has a fraction"),
        ("end of n after 2 rows", "'rows' after 2 cannot be read"),
        ("end of n after line, after 3", "has 'after' 2 times, and needs it once"),
        ("end of n after 3, when sid = 'x'", "'when sid = 'x'' has no meaning in the rule"),
    ],
)
def test_what_cannot_be_read_is_refused_with_how_rules_are_written(text: str, refusal: str) -> None:
    with pytest.raises((UsageError, QueryError)) as told:
        list(rules_of(text, SCHEMA))
    assert refusal in str(told.value)


def query(punctuate: str, more: str = "") -> str:
    return (
        "CREATE TABLE report (sid STRING, ts TIMESTAMP, v DOUBLE) USING punctuated_xml OPTIONS "
        f"(path 'report.xml', rowTag 'r', schemes '', punctuate '{punctuate}'{more});\n"
        "SELECT sid, date_trunc('HOUR', ts) AS hour, count(*) AS n FROM report GROUP BY 1, 2"
    )


def test_a_table_that_says_too_little_is_punctuated_and_its_query_judged_by_it() -> None:
    root = script.read(query("order of ts, per sid", ", ungrammatical ''drop''".replace("''", "'"))).sketch()
    below = root
    while not isinstance(below.inputs[0].operator, Scan):
        below = below.inputs[0]
    assert below.operator == Punctuate(ByOrder("ts", per="sid"), "drop")
    assert format_schemes(below.schemes) == "sid, ts prefix"
    assert not judged(root, follow=True).troubled()


def test_documents_were_merged_before_each_was_a_stream() -> None:
    below = script.read(query("order of ts", ", documents 'merge'")).sketch()
    while not isinstance(below.operator, Scan):
        (below,) = below.inputs
    assert below.operator.options.documents == "files"


def test_a_rule_that_makes_no_sense_is_refused_where_the_table_is_declared(tmp_path: Path) -> None:
    for text, more, refusal in (
        ("order of ts", ", documents 'merged'", "table report: documents 'merged' is not known"),
        ("order of tz", "", "table report: there is no attribute tz"),
        ("clock of sid", "", "table report: the rule 'clock of sid' needs a TIMESTAMP"),
        (
            "end of sid, or after 5m of ts",
            ", documents 'files'",
            "table report: 'end of sid, or after 5m of ts' compares the times of all document streams",
        ),
    ):
        with pytest.raises(QueryError, match=refusal) as told:
            script.read(query(text, more), {}, "q.sql")
        assert told.value.where is not None
        assert "line 1" in told.value.where


def sold(condition: str) -> str:
    return (
        "CREATE TABLE bid (auction INT, price INT, status STRING) USING punctuated_xml\n"
        f"OPTIONS (path 'b.xml', rowTag 'b', punctuate 'end of auction,\n  when {condition}');\n"
        "SELECT auction, max(price) AS price FROM bid GROUP BY auction"
    )


@pytest.mark.parametrize(
    ("condition", "refusal", "column"),
    [
        ("state = 1", "there is no attribute state", 8),
        ("status = ''it''''s'' AND state", "there is no attribute state", 33),
        ("price > 1 AND nofunc(price)", "the function nofunc is not supported", 22),
        ("price +", "an expression or a name is missing", 8),
        ("price > 1)) GROUP BY ((price", "is not one condition", 8),
        ("price > 1 AND count(*) > 1", r"count(*) cannot stand in the condition of a rule", 22),
        ("price > 1 AND rank() OVER (ORDER BY price) = 1", "cannot stand in the condition of a rule", 22),
        ("EXISTS (SELECT price FROM bid)", "cannot stand in the condition of a rule", 23),
        ("price > 1 AND now() > at", "now() cannot stand in the condition of a rule", 22),
    ],
)
def test_a_condition_that_cannot_be_is_refused_at_its_place_before_anything_starts(
    condition: str, refusal: str, column: int
) -> None:
    with pytest.raises(QueryError) as told:
        script.read(sold(condition), {}, "q.sql")
    assert refusal in told.value.what
    assert told.value.where == f"q.sql, line 3, column {column}"


def test_a_condition_without_a_truth_is_refused_at_its_place_on_both_engines(session: Session) -> None:
    for condition in ("price", "status", "price + 1 -- a comment"):
        with pytest.raises(QueryError, match=r"(?i)boolean") as told:
            script.read(sold(condition), {}, "q.sql").plan(session)
        assert told.value.where == "q.sql, line 3, column 8"
    root = script.read(sold("price IS NULL -- a comment"), {}).plan(session)
    assert root.schema.names == ("auction", "price")


TRANSACTIONS = """
CREATE TABLE change (tx INT, id INT, events INT, status STRING) USING punctuated_xml OPTIONS (path '{path}',
  rowTag 'change|end', punctuate 'end of tx after events, counting id is not null; end of tx, when status = ''void''');
SELECT tx, count(*) AS changes FROM change WHERE id IS NOT NULL GROUP BY tx
"""


def test_transactions_are_answered_by_their_counts_and_those_that_lack_tuples_are_found(
    session: Session, tmp_path: Path
) -> None:
    path = tmp_path / "changes.xml"
    text = TRANSACTIONS.format(path=path)
    told = judged(script.read(text).sketch(), follow=True)
    assert not told.troubled()
    assert "keeps the number of tuples of each open tx" in xs.from_sql(session, text).explain(format="text")

    def after(more: str, *, keep_open: bool = True) -> tuple[list[str], list[str]]:
        with path.open("a") as document:
            document.write(more)
        query = xs.from_sql(session, text)
        summary = query.run(output=tmp_path / "out", checkpoint=tmp_path / "checkpoint", keep_open=keep_open)
        rows = xs.from_sql(
            session,
            f"CREATE TABLE o (tx INT, changes INT) USING punctuated_xml OPTIONS (path '{tmp_path}/out', rowTag 'row');"
            "SELECT tx, changes FROM o",
        ).to_arrow()
        answers = sorted(f"{row['tx']}: {row['changes']}" for row in rows.to_pylist())
        return answers, [one.what for one in summary.findings if one.kind == "too few"]

    change = "<change><tx>{0}</tx><id>{1}</id></change>".format
    end = "<end><tx>{0}</tx><events>{1}</events></end>".format
    first = f"<topic>{change(7, 1)}{change(8, 1)}{change(7, 2)}{end(7, 2)}{end(8, 3)}{change(9, 1)}"
    assert after(first) == (["7: 2"], [])
    assert after(change(8, 2)) == (["7: 2"], [])
    void = "<end><tx>10</tx><events>5</events><status>void</status></end>"
    found = f"tx 10 was closed with 0 of 5 tuples, from {path}, line 1, column "
    answers, (short,) = after(change(8, 3) + void)
    assert answers == ["7: 2", "8: 3"]
    assert found in short
    answers, (short,) = after("</topic>", keep_open=False)
    assert answers == ["7: 2", "8: 3", "9: 1"]
    assert short.startswith("2 groups were closed too early: tx 10 was")
    assert "tx 9 was closed with 1 tuple, none with a value of events, from item at position " in short


PAYMENTS = (
    "CREATE TABLE m (msg STRING, n INT, amount DECIMAL(9,2)) USING punctuated_xml OPTIONS (path '{path}', "
    "rowTag 'CdtTrfTxInf', unitTag 'CstmrCdtTrfInitn', path.msg '../../GrpHdr/MsgId', path.n '../../GrpHdr/NbOfTxs', "
    "path.amount 'Amt/InstdAmt', punctuate 'end of msg after n');"
    "SELECT msg, sum(amount) AS total FROM m GROUP BY msg"
)
PAYMENT = (
    "<Document><CstmrCdtTrfInitn><GrpHdr><MsgId>M</MsgId><NbOfTxs>{n}</NbOfTxs></GrpHdr>"
    "<PmtInf><CdtTrfTxInf><Amt><InstdAmt Ccy='EUR'>5.00</InstdAmt></Amt></CdtTrfTxInf></PmtInf>"
    "<PmtInf><CdtTrfTxInf><Amt><InstdAmt Ccy='EUR'>7.50</InstdAmt></Amt></CdtTrfTxInf></PmtInf>"
    "</CstmrCdtTrfInitn></Document>"
)
SEGMENTS = (
    "CREATE TABLE s (ref INT, kind STRING, qty INT, segments INT) USING punctuated_xml OPTIONS (path '{path}', "
    "rowTag 'UNH|LIN|UNT', path.kind 'name(.)', punctuate 'end of ref after segments');"
    "SELECT ref, sum(qty) AS total FROM s WHERE kind = 'LIN' GROUP BY ref"
)
SEGMENT = (
    "<edi><UNH><ref>1</ref></UNH><LIN><ref>1</ref><qty>4</qty></LIN><LIN><ref>1</ref><qty>6</qty></LIN>"
    "<UNT><ref>1</ref><segments>{n}</segments></UNT></edi>"
)


@pytest.mark.parametrize(("text", "document", "n"), [(PAYMENTS, PAYMENT, 2), (SEGMENTS, SEGMENT, 4)])
def test_a_message_that_states_its_number_is_whole_or_reported(
    in_process: InProcessSession, tmp_path: Path, text: str, document: str, n: int
) -> None:
    for stated in (n, n + 1, n - 1):
        (path := tmp_path / f"{stated}.xml").write_text(document.format(n=stated))
        query = xs.from_sql(in_process, text.format(path=path))
        assert "It answers when groups close" in query.explain(format="text", follow=True)
        if stated < n:
            with pytest.raises(UngrammaticalStream, match=r"if some do not count, such as headers, add a condition"):
                query.run(output=tmp_path / "fewer")
            continue
        summary = query.run(output=tmp_path / f"out-{stated}")
        assert summary.tuples_out == 1
        short = [one.what for one in summary.findings if one.kind == "too few"]
        assert len(short) == (stated > n)
        assert all(f"was closed with {n} of {stated} tuples" in what for what in short)


def test_the_builder_refuses_such_a_condition_when_it_is_given(in_process: InProcessSession) -> None:
    bids = xs.read(in_process, "b.xml", "auction INT, price INT", rowTag="b")
    with pytest.raises(QueryError, match="there is no attribute state"):
        bids.punctuate(ByPredicate("state = 1", ("auction",)))
    with pytest.raises(QueryError, match="there is no attribute state"):
        bids.punctuate(ByCount("auction", 3, "state = 1"))
    with pytest.raises(QueryError, match="there is no attribute state"):
        xs.read(in_process, "b.xml", "auction INT", rowTag="b", punctuate="end of auction, when state = 1")


@pytest.mark.parametrize(
    ("option", "at"),
    [
        ("punctuate 'order of ts, slack 40 parsecs'", "40"),
        ("punctuate 'order of tss'", "tss"),
        ("mode 'FAIL'", "FAIL"),
        ("maxBytesPerSlice '16 potatoes'", "16"),
        ("schemes 'sid, nowhere'", "nowhere"),
        ("domains 'hour 0,,9'", "0,,"),
        ("path.z 'x'", "x"),
        ("path.hour 'a[b'", "a[b"),
        ("schemes 'sid, hour prefx'", "hour prefx"),
        ("dateformat 'yyyy'", "yyyy"),
    ],
)
def test_a_wrong_option_is_placed_at_its_value(option: str, at: str) -> None:
    table = "CREATE TABLE t (sid STRING, hour INT, ts TIMESTAMP) USING punctuated_xml"
    text = f"{table} OPTIONS (path 'p', rowTag 'r', {option}); SELECT * FROM t"
    with pytest.raises(xs.QueryError) as told:
        script.read(text, {}, "q.sql")
    assert told.value.where == f"q.sql, line 1, column {text.index(at, text.index(option)) + 1}", told.value.what


@pytest.mark.parametrize(
    ("roster", "what"),
    [
        ("(SELECT sid FROM sensors)", "a query"),
        ("(select distinct sid, n\nfrom sensors), order of ts", "a query"),
        ("((SELECT sid FROM sensors))", "a query"),
        ("SELECT sid FROM sensors", "a query"),
        ("(WITH s AS (SELECT 1 AS sid) SELECT sid FROM s)", "a query"),
        ("(FROM sensors SELECT sid)", "a query"),
        ("(VALUES ('A'))", "a query"),
        ("(TABLE sensors)", "a query"),
        ("(sensors)", "the table sensors"),
        ("( Sensors ), order of ts", "the table Sensors"),
        ("(`sensors`)", "the table `sensors`"),
        ("(sensors.sid)", "the table sensors"),
        ("(dear)", "the table dear"),
        ("(report)", "the table report"),
    ],
)
def test_a_roster_from_a_query_or_a_table_is_refused_with_what_to_write(roster: str, what: str) -> None:
    tables = "CREATE TABLE Sensors (sid STRING) USING parquet OPTIONS (path 'sensors');\n"
    tables += "CREATE VIEW dear AS SELECT sid FROM sensors;\n"
    with pytest.raises(QueryError, match=re.escape(f"names {what}, and a roster is a list of its members")) as told:
        script.read(tables + query(f"roster of sid {roster}".replace("'", "''")))
    assert "line 3" in (told.value.where or "")
    assert "roster of sid (S01, S02)" in (told.value.hint or "")


@pytest.mark.parametrize(
    "roster", ['("sensors")', '("SELECT sid FROM sensors")', "(Selector, sensors)", "(table 5, with love)", "(sensor)"]
)
def test_a_roster_of_names_that_are_like_a_query_or_a_table_is_one(roster: str) -> None:
    tables = "CREATE TABLE sensors (sid STRING) USING parquet OPTIONS (path 'sensors');\n"
    script.read(tables + query(f"roster of sid {roster}"))
