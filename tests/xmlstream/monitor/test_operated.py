"""On a page with a token to operate, a dead sensor is closed in its place; nobody else may do that."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.xmlstream.monitor.test_page import seen, wait_for
from xmlstream.cli.command_line import token_to_operate
from xmlstream.monitor.monitor import Monitor
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.runner import start
from xmlstream.runtime.settings import Settings
from xmlstream.sink.target import Target

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from xmlstream.session.engines import InProcessSession

TOKEN = "correct horse"

QUERY = """
CREATE TABLE in1 (hour INT, v INT) USING punctuated_xml OPTIONS (path '${HOME}/in1.xml', rowTag 'r', schemes 'hour');
CREATE TABLE in4 (hour INT, v INT) USING punctuated_xml OPTIONS (path '${HOME}/in4.xml', rowTag 'r', schemes 'hour');
SELECT hour, max(v) AS x FROM (SELECT * FROM in1 UNION ALL SELECT * FROM in4) GROUP BY hour;
"""


@contextmanager
def running(session: InProcessSession, home: Path, operate: str | None = TOKEN) -> Iterator[tuple[Any, Monitor]]:
    """The query, over a sensor that lives and one that has died in hour 2."""
    closed = "".join(f"<p:r><hour>{hour}</hour></p:r>" for hour in (1, 2))
    rows = "".join(f"<r><hour>{hour}</hour><v>{hour}</v></r>" for hour in (1, 2))
    (home / "in1.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'>{rows}{closed}")
    (home / "in4.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'>{rows}<p:r><hour>1</hour></p:r>")
    query = xs.from_sql(session, QUERY, {"HOME": str(home)})
    monitor = Monitor("0", operate=operate)
    target = Target.of(str(home / "out"))
    settings = Settings((target,), checkpoint=str(home / "state"), follow=True, watcher=monitor)
    handle = start(session, query.root, settings)
    try:
        handle.processAllAvailable()
        yield handle, monitor
    finally:
        handle.stop()
        monitor.close()


def posted(monitor: Monitor, token: str | None, text: Any = None, **body: Any) -> tuple[int, str]:
    given = {"Content-Type": "application/json", **({} if token is None else {"X-Xmlstream-Operate": token})}
    data = json.dumps(body).encode() if text is None else text
    request = urllib.request.Request(f"{monitor.where}declare", data, given, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_who_has_no_token_declares_nothing(in_process: InProcessSession, tmp_path: Path) -> None:
    good = {"source": "in4", "punctuation": "<2, *>", "by": "ann"}
    with running(in_process, tmp_path) as (_, monitor):
        for token in (None, "", "another horse", TOKEN[:-1]):
            assert posted(monitor, token, **good)[0] == 403
        strange = posted(monitor, TOKEN, **{**good, "source": "in5"})
        assert strange == (400, '{"what":"the query has no source in5; it has in1, in4"}')
        assert posted(monitor, TOKEN, **{**good, "by": " "})[0] == 400
        assert posted(monitor, TOKEN, source="in4")[0] == 400
        assert posted(monitor, TOKEN, **{**good, "by": "a" * 20_000})[0] == 413
        for nested in (b"[" * 9_000, b'{"source":' * 900, b"[[]]", b"7", b"\xff"):
            assert posted(monitor, TOKEN, nested)[0] == 400
        assert not list((tmp_path / "state").glob("declared/*"))
        assert posted(monitor, TOKEN, **good)[0] == 200
    with pytest.raises(UsageError, match="must have 8 or more"):
        Monitor("0", operate="short")


def test_without_a_token_the_page_is_read_only(in_process: InProcessSession, tmp_path: Path) -> None:
    with running(in_process, tmp_path, operate=None) as (_, monitor):
        assert posted(monitor, "", source="in4", punctuation="<2, *>", by="ann")[0] == 405


def test_a_dead_sensor_is_closed_in_its_place_on_the_page(
    browser: Browser, in_process: InProcessSession, tmp_path: Path
) -> None:
    with running(in_process, tmp_path) as (handle, monitor), seen(browser, monitor) as page:
        wait_for(page, "#operate form", "In the place of in4")
        assert page.locator("#operate form").count() == 1
        assert page.input_value("#operate [name=punctuation]") == "<2, *>"
        page.fill("#operate [name=by]", "Ann <b>")
        page.fill("#operate [name=token]", TOKEN)
        page.keyboard.press("Enter")
        wait_for(page, "#declared", "in4 <2, *>: declared by Ann <b> at ")
        handle.processAllAvailable()
        wait_for(page, "#cards", "nothing waits")
        page.locator("#operate form").wait_for(state="detached", timeout=300_000)
        assert "<x>2</x>" in "".join(path.read_text() for path in (tmp_path / "out").glob("*.xml"))


def test_a_wrong_token_is_named_on_the_page(browser: Browser, in_process: InProcessSession, tmp_path: Path) -> None:
    with running(in_process, tmp_path) as (_, monitor):
        page = browser.new_page()
        page.goto(monitor.where)
        wait_for(page, "#operate form", "In the place of in4")
        page.fill("#operate [name=by]", "ann")
        page.fill("#operate [name=token]", "wrong \u20ac")
        page.keyboard.press("Enter")
        wait_for(page, "#operate output", "the token to operate is another one")
        page.close()


def test_the_token_is_taken_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert token_to_operate(f"@{file}") == TOKEN
    assert token_to_operate(None) is None
    monkeypatch.setenv("XMLSTREAM_OPERATE", f"@{file}")
    assert (token_to_operate(None), token_to_operate("another one")) == (TOKEN, "another one")
    with pytest.raises(UsageError, match=r"cannot be read from .*missing: no such file"):
        token_to_operate(f"@{tmp_path}/missing")
