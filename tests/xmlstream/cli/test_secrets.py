"""Secrets in addresses: nothing that is printed, logged or recorded shows them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from xmlstream.cli.commands import app
from xmlstream.operators.storage.object_urls import shown
from xmlstream.punct_ns.errors import UsageError, without_secrets
from xmlstream.sink.target import Target

SECRET = "what-she-alone-knows"
URLS = [
    f"s3://bucket/in?secret_access_key={SECRET}&access_key_id=ann",
    f"s3://bucket/in?region=r&sessionToken={SECRET}",
    f"s3://ann:{SECRET}@bucket/in",
    f"s3://bucket/in?endpoint=http://ann:{SECRET}@127.0.0.1:1",
    f"hdfs://ann:{SECRET}@host/in?token={SECRET}",
    f"https://host/in?X-Amz-Signature={SECRET}",
    f"postgresql://ann:{SECRET}@127.0.0.1:1/db?password={SECRET}#t",
]

COMMANDS: dict[str, list[str]] = {
    "infer": ["infer", "{url}"],
    "check": ["check", "{url}", "--schema", "a INT", "--row-tag", "r"],
    "cat": ["cat", "{url}"],
    "explain": ["explain", "{sql}", "-D", "IN={url}"],
    "explain --checkpoint": ["explain", "{sql}", "-D", "IN={dir}", "--checkpoint", "{url}"],
    "monitor": ["monitor", "--checkpoint", "{url}"],
    "receive": ["receive", "{url}", "--into", "{dir}/feed", "--row-tag", "r"],
    "run": ["run", "{sql}", "-D", "IN={url}", "-o", "{dir}/out"],
    "run -o": ["run", "{sql}", "-D", "IN={dir}/in", "-o", "{url}"],
    "run --checkpoint": ["run", "{sql}", "-D", "IN={dir}/in", "-o", "{dir}/out", "--checkpoint", "{url}"],
    "run --metrics": ["run", "{sql}", "-D", "IN={dir}/in", "-o", "{dir}/out", "--metrics", "{url}"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("url", URLS)
def test_no_command_shows_the_secret_of_an_address(
    url: str, command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.xml").write_text("<s><r><a>1</a></r></s>")
    text = (
        "CREATE TABLE s (a INT) USING punctuated_xml OPTIONS (path '${IN}', rowTag 'r', schemes 'a'); SELECT a FROM s"
    )
    (tmp_path / "query.sql").write_text(text)
    given = [each.format(url=url, sql=tmp_path / "query.sql", dir=tmp_path) for each in COMMANDS[command]]
    engine = ["--engine", "duckdb"] if given[0] == "run" else []
    with caplog.at_level(logging.DEBUG):
        result = CliRunner().invoke(app, [*given, *engine])
    said = [result.output, *map(str, capfd.readouterr()), caplog.text, str(result.exception)]
    written = [path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in said + written if SECRET in text]


def test_a_target_records_no_secret() -> None:
    for url in (url for url in URLS if url.startswith(("s3", "postgresql"))):
        target = Target(url)
        assert SECRET not in target.shown + str(target.recorded)


def test_an_endpoint_with_credentials_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the endpoint .* contains credentials"):
        Target(URLS[3]).require_reachable()


_PARTS = st.text("ab:@/?#&=.-% ", max_size=8)


@given(st.sampled_from(["s3", "http", "postgresql"]), st.text("ab", max_size=3), _PARTS)
def test_no_password_of_a_url_is_left(scheme: str, user: str, rest: str) -> None:
    url = f"{scheme}://{user}:{SECRET}@host/{rest}"
    assert SECRET not in without_secrets(f"{url} is refused") + shown(url)
