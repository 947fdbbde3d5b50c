"""The monitor's server: events with replay, metrics, health; it only reads, and only for whom it is meant."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from starlette.requests import Request

from xmlstream.monitor.monitor import Monitor
from xmlstream.monitor.routes import MOST_READERS, Routes
from xmlstream.monitor.run_view import MOST_EVENTS, History
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, names
from xmlstream.punct_ns.errors import UsageError
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.watching import Watched
from xmlstream.sql.script import read

WAREHOUSE = Path(__file__).parents[3] / "data" / "warehouse.sql"
ROOT = optimized(read(WAREHOUSE.read_text(encoding="utf-8"), {"SENSORS": "sensors"}).sketch())


def record(number: int, **sets: str) -> Commit:
    """What a commit of the warehouse query records."""
    fields = ("tuples_in", "tuples_out", "kept", "purged", "punctuations_in", "punctuations_out", "punctuations_held")
    operators = [{"name": name, **dict.fromkeys(fields, 2), "overdue": 0} for name in names(ROOT).values()]
    report = {"slice": number, "seconds": 0.2, "items_in": 7, "tuples_out": 1, "operators": operators, "set_aside": 0}
    time_ = "2026-01-01T00:00:00+00:00"
    json = {
        "slice": number,
        "time": time_,
        "last_activity": {name: {"last_sent": [number, time_]} for name in sets},
        "operators": {name: {"sets": {"added": text.split("; ")}} for name, text in sets.items()},
        "report": {**report, "closed": False, "exact": True, "findings": []},
    }
    return Commit.from_json(json)


@contextmanager
def served(directory: Path, address: str = "0", name: str | None = None, root: Node = ROOT) -> Iterator[Monitor]:
    """A monitor, of the warehouse query unless it is said of which."""
    monitor = Monitor(address)
    monitor.begun(Watched(root, True, directory, directory, name))
    yield monitor
    monitor.ended(None)
    monitor.wait()


def asked(monitor: Monitor, path: str, method: str = "GET", **headers: str) -> tuple[int, Any, bytes]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    url = monitor.where.partition("?")[0] + path.removeprefix("/")
    try:
        with urllib.request.urlopen(urllib.request.Request(url, None, given, method=method), timeout=300) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def events(monitor: Monitor, until: str, after: str = "") -> list[tuple[str, str, Any]]:
    """The id, kind and data of events, up to the first of a kind."""
    found: list[tuple[str, str, Any]] = []
    headers = {"Last-Event-ID": after} if after else {}
    with urllib.request.urlopen(
        urllib.request.Request(f"{monitor.where}events", headers=headers), timeout=300
    ) as answer:
        block: dict[str, str] = {}
        for line in answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                block[name] = value
            elif "event" in block:
                found.append((block["id"], block["event"], json.loads(block["data"])))
                if block["event"] == until:
                    break
                block = {}
    return found


def test_events_tell_slices_what_is_closed_and_the_state_and_a_reader_who_returns_gets_what_it_missed(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as monitor:
        monitor.committed(record(0, sensor1="<*, [,5], *, *>"))
        first = events(monitor, until="closed")
        assert [kind for _, kind, _ in first] == ["state", "slice", "findings", "closed"]
        assert first[-1][2][0]["rows"][1]["lacks"] == "≤ 5"
        monitor.committed(record(1, sensor2="<*, [,5], *, *>"))
        missed = events(monitor, until="closed", after=first[-1][0])
        assert [(kind, data.get("slice")) for _, kind, data in missed if kind == "slice"] == [("slice", 1)]
        assert missed[-1][2][0]["rows"][1]["lacks"] == ""
        assert next(kind for _, kind, _ in events(monitor, until="findings", after="another-99")) == "state"


def test_an_event_is_with_its_reader_before_the_next_slice_could_be(tmp_path: Path) -> None:
    with served(tmp_path) as monitor:
        came: list[tuple[str, str, Any]] = []
        reader = threading.Thread(target=lambda: came.extend(events(monitor, until="slice")))
        reader.start()
        time.sleep(0.3)
        monitor.committed(record(0))
        reader.join(300)
        assert came[-1][1] == "slice"


def test_the_end_is_told_and_ends_the_server(tmp_path: Path) -> None:
    with served(tmp_path) as monitor:
        monitor.ended(UsageError("the disk is full"))
        monitor.ended(None)
        monitor.wait()
        (last,) = [event for event in monitor.view.history.after(0) if event.kind == "state"]
        event = json.loads(last.data)
        assert event["stands"] == {
            "tone": "bad", "text": "failed: the disk is full", "word": "at", "time": event["at"],
        }  # fmt: skip
        assert {name: event[name] for name in ("state", "how", "what", "over", "questions")} == {
            "state": "failed", "how": "failed", "what": "the disk is full", "over": True,
            "questions": ["hour", "maxtemp"],
        }  # fmt: skip


def test_metrics_are_what_prometheus_reads_and_what_was_reported(tmp_path: Path) -> None:
    with served(tmp_path) as monitor:
        for number in range(3):
            monitor.committed(record(number))
        status, headers, text = asked(monitor, "/metrics")
        assert (status, headers["content-type"].partition(";")[0]) == (200, "application/openmetrics-text")
        found = {
            (sample.name, sample.labels.get("operator")): sample.value
            for family in text_string_to_metric_families(text.decode())  # type: ignore[no-untyped-call]
            for sample in family.samples
            if "le" not in sample.labels
        }
    assert found["xmlstream_slices_total", None] == 3
    assert found["xmlstream_items_in_total", None] == 21
    assert found["xmlstream_slice_seconds_count", None] == 3
    assert found["xmlstream_operator_kept_tuples", "group_by"] == 2
    assert found["xmlstream_operator_purged_total", "group_by"] == 6
    assert found["xmlstream_exact", None] == 1


def altered(made: Commit, *, operators: Any = None, **report: Any) -> Commit:
    """A record with other values in its report, and in the reports of all operators or of each."""
    each = [operators] * len(made.report.operators) if isinstance(operators, dict) else operators or []
    some = tuple(replace(one, **values) for one, values in zip(made.report.operators, each, strict=False))
    return replace(made, report=replace(made.report, operators=some or made.report.operators, **report))


def overdue(number: int) -> Commit:
    """What a commit records of a slice in which each operator purged one tuple that was overdue."""
    return altered(record(number), exact=False, operators={"overdue": 1})


def test_metrics_say_that_results_are_not_exact_and_whose_tuples_were_overdue(tmp_path: Path) -> None:
    with served(tmp_path) as monitor:
        monitor.committed(overdue(0))
        _, _, text = asked(monitor, "/metrics")
    assert "xmlstream_exact 0.0" in text.decode()
    assert 'xmlstream_operator_overdue_total{operator="group_by"} 1.0' in text.decode()


def test_what_an_earlier_run_left_is_shown_but_not_counted(tmp_path: Path) -> None:
    with served(tmp_path) as monitor:
        monitor.restored(record(41, sensor1="<*, [,5], *, *>"))
        assert monitor.view.totals.json()["slices"] == 0
        assert monitor.view.totals.json()["kept"] == 2 * len(names(ROOT))
        assert monitor.view.closed()[0].rows[0].closed == "≤ 5"


def test_plan_and_health(tmp_path: Path) -> None:
    with served(tmp_path) as monitor:
        plan = json.loads(asked(monitor, "/plan.json")[2])
        assert [one["name"] for one in plan["operators"]] == list(names(ROOT).values())
        assert json.loads(asked(monitor, "/healthz")[2])["state"] == "running"
        monitor.view.ended(ValueError("no"))
        assert asked(monitor, "/healthz")[0] == 503


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_written(tmp_path: Path, method: str) -> None:
    with served(tmp_path) as monitor:
        assert asked(monitor, "/", method)[0] == 405


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost:1", ""])
def test_a_request_under_another_name_is_refused(tmp_path: Path, host: str) -> None:
    with served(tmp_path) as monitor:
        assert asked(monitor, "/", Host=host)[0] in (400, 421)
        assert asked(monitor, "/events", Host=host)[0] in (400, 421)


def test_every_answer_forbids_what_it_does_not_need(tmp_path: Path) -> None:
    with served(tmp_path) as monitor:
        for path in ("/", "/metrics", "/nowhere"):
            headers = asked(monitor, path)[1]
            assert headers["content-security-policy"].startswith("default-src 'none'; ")
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
        one, other = (asked(monitor, "/")[1]["content-security-policy"] for _ in range(2))
        assert one != other


def test_where_others_reach_it_it_asks_for_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMLSTREAM_MONITOR_TOKEN", "open sesame")
    monkeypatch.setattr("xmlstream.monitor.monitor.Address.is_loopback", False)
    with served(tmp_path) as monitor:
        assert monitor.where.endswith("/?token=open sesame")
        assert asked(monitor, "/healthz")[0] == 401
        assert asked(monitor, "/healthz?token=sesame")[0] == 401
        status, headers, _ = asked(monitor, "/healthz?token=open%20sesame")
        assert status == 200
        assert "HttpOnly; SameSite=Strict" in headers["set-cookie"]
        assert asked(monitor, "/healthz", Authorization="Bearer open sesame", Host="any.example")[0] == 200
        assert asked(monitor, "/healthz", Cookie='xmlstream_monitor="open sesame"')[0] == 200


def test_a_port_in_use_and_what_is_no_address_are_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="address already in use"):
            Monitor(str(taken.getsockname()[1]))
    for text in ("here", "127.0.0.1:", "99999", "1:2:x"):
        with pytest.raises(UsageError, match="cannot serve at"):
            Monitor(text)


def test_a_slow_reader_slows_nothing_and_history_is_bounded(tmp_path: Path) -> None:
    with (
        served(tmp_path) as monitor,
        socket.create_connection(("127.0.0.1", int(monitor.where[:-1].split(":")[-1]))) as slow,
    ):
        slow.sendall(f"GET /events HTTP/1.1\r\nHost: {monitor.where[7:-1]}\r\n\r\n".encode())
        slow.recv(100)  # and then reads no more
        began = time.monotonic()
        for number in range(5 * MOST_EVENTS):
            monitor.committed(record(number))
        assert time.monotonic() - began < 300
        kept = monitor.view.history.after(0)
        assert len(kept) <= MOST_EVENTS + 3
        assert json.loads([event for event in kept if event.kind == "slice"][-1].data)["slice"] == 5 * MOST_EVENTS - 1
        assert asked(monitor, "/healthz")[0] == 200


def test_no_more_readers_are_let_in_at_once_than_may(tmp_path: Path) -> None:
    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def let_in() -> list[int]:
        answers = [await routes._events(request) for _ in range(MOST_READERS + 10)]
        for answer in answers:
            await answer(request.scope, gone, AsyncMock())
        return [answer.status_code for answer in answers]

    # In a thread of its own: a browser of another test may run a loop in this one.
    with served(tmp_path) as monitor, ThreadPoolExecutor(1) as thread:
        routes, request = Routes(monitor.view), Request({"type": "http", "headers": []})
        for _ in range(2):  # those who have left leave room for others
            assert thread.submit(lambda: asyncio.run(let_in())).result() == [200] * MOST_READERS + [503] * 10


def test_of_some_kinds_of_events_only_the_last_is_kept() -> None:
    history = History(most=2)
    for number in range(4):
        history.add("slice", number)
        history.add("closed", number, replaces=True)
    assert [(event.kind, event.data) for event in history.after(0)] == [("slice", "2"), ("slice", "3"), ("closed", "3")]
    assert history.after(8) == []


def test_the_items_set_aside_last_come_first(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"sensor1-{number:09d}.jsonl").write_text(json.dumps({"n": number}) + "\n", encoding="utf-8")
    with served(tmp_path) as monitor:
        assert json.loads(asked(monitor, "/aside.json")[2]) == [{"n": 2}, {"n": 1}]
