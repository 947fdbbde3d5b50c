"""Builds the site of the documentation: the READMEs where they lie, and a reference from docstrings and from `--help`.

    python -m tests.tools.site [OUT]        by default out/docs

Sphinx gets copies of the pages at their own paths, so that addresses follow the paths and relative links hold. They
differ from what a forge shows in three points: headings have entries of the index, `<picture>` is an image for each of
Furo's themes, and a link to a folder leads to its README. The landing page, `index.md` beside this file, has the
navigation. Beside the pages come `reference/commands`, written from the command line's own help, and for machines
`llms.txt` and `llms-full.txt` (https://llmstxt.org).

A warning is an error: a link that leads nowhere, a heading that is gone, a page without a place in the navigation.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import typer.main
from sphinx.cmd.build import main as sphinx_build

from tests.harness.pages import PAGES, ROOT, text
from xmlstream.cli.command_line import in_panels
from xmlstream.cli.commands import app

HERE = Path(__file__).parent
LANDING = "index.md"
COMMANDS = "reference/commands.md"
REFERENCE = ("reference/python.md", "reference/query.md", "reference/punctuations.md", "reference/testing.md", COMMANDS)

NAVIGATION = {
    "Getting started": (
        "README.md",
        "xmlstream/manual/tutorial.md",
        "xmlstream/manual/warehouse.md",
        "xmlstream/manual/concepts.md",
        "xmlstream/manual/closing.md",
        "xmlstream/manual/coming_from.md",
        "xmlstream/manual/limits.md",
        "xmlstream/manual/papers.md",
        "xmlstream/manual/glossary.md",
    ),
    "Guides": (
        "xmlstream/manual/cookbook.md",
        "xmlstream/manual/spark_jobs.md",
        "xmlstream/manual/sinks.md",
        "xmlstream/manual/operations.md",
        "xmlstream/manual/personal_data.md",
        "xmlstream/manual/changing.md",
        "xmlstream/manual/clusters.md",
        "xmlstream/manual/checkpoints.md",
        "sources/README.md",
        "sources/receivers/README.md",
        "xmlstream/sql/README.md",
        "xmlstream/runtime/README.md",
        "xmlstream/monitor/README.md",
        "data/README.md",
        "data/auctions/README.md",
    ),
    "Reference": ("punct_ns/README.md", "operators/README.md", "operators/in_process/README.md", *REFERENCE),
    "How it is built": (
        "xmlstream/README.md",
        ".github/FIRST_CHANGE.md",
        ".github/CONTRIBUTING.md",
        "tests/benchmarks/README.md",
        "CHANGELOG.md",
    ),
}
"""The pages of the site in the order in which its navigation lists them."""

INDEX = {
    ("xmlstream/manual/warehouse.md", "Will it answer"): "grows for ever, unbounded state",
    ("sources/README.md", "From elements to columns"): "xml namespace, namespaces, xpath, nested xml",
    ("xmlstream/sql/README.md", "Windows in time"): "tumbling window, hopping window, sliding window, session window",
    ("xmlstream/runtime/README.md", "Slices and checkpoints"): "exactly once, recovery, fault tolerance, offsets",
    ("xmlstream/runtime/README.md", "Dead letters"): "bad records, late data",
    ("xmlstream/manual/concepts.md", "watermark"): "watermarks, event time, allowed lateness",
    ("xmlstream/manual/operations.md", "Every night"): "cron, crontab, flock, exit codes",
    ("xmlstream/manual/personal_data.md", "What is kept where"): "GDPR, privacy, pseudonym, erase, retention",
    ("xmlstream/manual/operations.md", "Memory"): "out of memory, heap, spark.driver.memory",
    ("xmlstream/manual/operations.md", "Backup"): "checkpoint backup, restore",
    ("xmlstream/manual/operations.md", "A dead source"): "idle source, stuck, no output",
    ("xmlstream/manual/operations.md", "A service"): "systemd, daemon",
    ("xmlstream/manual/clusters.md", "URLs and credentials"): "s3, minio, gcs, azure, blob storage, s3a, abfss",
    ("xmlstream/manual/clusters.md", "On a cluster"): "spark-submit, kubernetes, yarn, emr, databricks",
    ("xmlstream/manual/cookbook.md", "de-duplication"): "deduplicate, deduplication, drop duplicates",
    ("xmlstream/manual/sinks.md", "A function of each slice"): "foreachBatch, idempotent writes",
    ("xmlstream/manual/sinks.md", "A table of the session"): "toTable, unity catalog, append",
    (
        "xmlstream/manual/spark_jobs.md",
        "Punctuations in the messages",
    ): "kafka, readStream, read_column, structured streaming",
    ("xmlstream/manual/spark_jobs.md", "Killed"): "checkpointLocation, availableNow, trigger, StreamingQuery",
    ("xmlstream/manual/cookbook.md", "Absence"): "missing events, timeout, anti join",
    ("xmlstream/manual/cookbook.md", "top n"): "top n, top k, ranking",
    ("xmlstream/manual/cookbook.md", "lookup table"): "static table, dimension table, enrichment",
    ("xmlstream/manual/cookbook.md", "as of"): "as-of join, temporal join",
}
"""Words that users type for what a heading says in others, by page and a part of the heading: the site's index."""

_LINK = re.compile(r"\]\((?!https?://|#)([^)\s#]+)(#[^)\s]*)?\)")
_PICTURE = re.compile(r'<picture>.*?srcset="([^"]*)".*?alt="([^"]*)".*?src="([^"]*)".*?</picture>', re.DOTALL)


def listed() -> dict[str, list[str]]:
    """The pages that there are, by the headings of the navigation."""
    there = {*PAGES, *REFERENCE}
    return {heading: [page for page in pages if page in there] for heading, pages in NAVIGATION.items()}


def staged(sources: Path) -> None:
    """Writes the pages for Sphinx, with the pictures and files that they lead to."""
    shutil.rmtree(sources, ignore_errors=True)
    for page in PAGES:
        _staged(sources, page, indexed(page, text(page)))
    for path in (HERE / "reference").iterdir():
        _copied(path, sources / "reference" / path.name)
    _write(sources / COMMANDS, "\n".join(commands()))
    _staged(sources, LANDING, (HERE / LANDING).read_text(encoding="utf-8"))
    with (sources / LANDING).open("a", encoding="utf-8") as front:
        for heading, pages in listed().items():
            entries = ["Overview <README>" if page == "README.md" else page for page in pages]
            front.write("\n".join([f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n", *entries, "```\n"]))


def _staged(sources: Path, page: str, written: str) -> None:
    """Writes a page, whose links start at its own place, and what it shows."""
    folder = (ROOT / page).parent
    for target in {*(found[1] for found in _LINK.finditer(written)), *re.findall(r'src(?:set)?="([^"]+)"', written)}:
        path = (folder / target).resolve()
        if path.is_file() and path.suffix != ".md":
            _copied(path, sources / path.relative_to(ROOT))
    _write(sources / page, _PICTURE.sub(_images, _LINK.sub(partial(_to_page, folder), written)))


def indexed(page: str, written: str) -> str:
    """The page with the entries of `INDEX` before its headings.

    Raises:
        ValueError: A heading of the index is not there.
    """
    for (place, heading), words in INDEX.items():
        if place == page:
            # With ! an entry is a main one, which the search lists first.
            entry = f"```{{index}} {', '.join(f'! {word}' for word in words.split(', '))}\n```\n\n"
            written, found = re.subn(rf"^(?=##+ .*{re.escape(heading)})", entry, written, count=1, flags=re.MULTILINE)
            if not found:
                raise ValueError(f"{page} has no heading with '{heading}' for the index: {words}")
    return written


def _write(path: Path, written: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(written, encoding="utf-8")


def _copied(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, to)


def _to_page(folder: Path, found: re.Match[str]) -> str:
    """A link; one to a folder leads to the folder's README."""
    is_folder = (folder / found[1]).is_dir()
    return f"]({found[1].rstrip('/')}/README.md{found[2] or ''})" if is_folder else found[0]


def _images(found: re.Match[str]) -> str:
    dark, alt, light = found.groups()
    both = (("light", light), ("dark", dark))
    return "\n".join(f"```{{image}} {path}\n:class: only-{theme}\n:alt: {alt}\n```" for theme, path in both)


def commands() -> Iterator[str]:
    """The page of the command line, as lines of Markdown: each command with its usage, example and options."""
    root: Any = typer.main.get_command(app)
    yield from ("# Commands and their options", "", "What `xmlstream COMMAND --help` prints.", "")
    for group, members in in_panels(root.commands.values(), "Commands"):
        yield from (f"## {group}", "")
        for command in members:
            yield from _command(f"xmlstream {command.name}", command, 3)


def _command(name: str, command: Any, level: int) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield from (
        f"{'#' * level} {name}",
        "",
        f"```{{program}} {name}\n```",
        "",
        inspect.cleandoc(command.help or ""),
        "",
    )
    yield f"```text\n{usage}\n```\n"
    if command.epilog:
        yield f"```console\n$ {command.epilog}\n```\n"
    for group, members in in_panels(command.params, "Options"):
        if group not in ("Arguments", "Options"):
            yield f"**{group}**\n"
        for spelled, meaning in filter(None, (member.get_help_record(context) for member in members)):
            word = spelled if spelled.startswith("-") else spelled.partition(" <")[0]
            yield f"```{{option}} {word}\n{_escaped(meaning)}\n```\n"
    for below, one in getattr(command, "commands", {}).items():
        yield from _command(f"{name} {below}", one, level + 1)


def _escaped(written: str) -> str:
    return re.sub(r"([\\*_<$\[])", r"\\\1", written)


def for_machines(out: Path, sources: Path) -> None:
    """Writes `llms.txt`, the pages with a line each, and `llms-full.txt`, all their text."""
    lines, full = list[str](), list[str]()
    summary = re.search(r"^\*\*(.*)\*\*$", text("README.md"), re.MULTILINE)
    for heading, pages in listed().items():
        lines += ["", f"## {heading}", ""]
        for page in pages:
            written = (sources / page).read_text(encoding="utf-8")
            title = re.search(r"^# (.*)$", written, re.MULTILINE)
            assert title
            lines.append(f"- [{title[1]}]({page.removesuffix('.md')}.html): {_first_sentence(written)}")
            full.append(re.sub(r"^```\{eval-rst\}\n(.*?)^```$", _docstrings, written, flags=re.MULTILINE | re.DOTALL))
    (out / "llms.txt").write_text("\n".join([f"# xmlstream\n\n> {summary[1] if summary else ''}", *lines, ""]), "utf-8")
    (out / "llms-full.txt").write_text("\n\n".join(full), encoding="utf-8")


def _first_sentence(written: str) -> str:
    prose = re.sub(r"^```.*?^```$", "", written, flags=re.MULTILINE | re.DOTALL)
    paragraph = next(part for part in prose.split("\n\n") if re.match(r"\s*[`\w]", part))
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
    return re.split(r"(?<=[.?:])\s(?=[A-Z`])", plain)[0].rstrip(":")


def _docstrings(found: re.Match[str]) -> str:
    return "\n\n".join(map(_docstring, re.findall(r"^\.\. auto\w+:: ([\w.]+)", found[1], re.MULTILINE)))


def _docstring(path: str) -> str:
    module, _, name = path.rpartition(".")
    thing = getattr(import_module(module), name)
    parts = [f"## {path}\n\n{inspect.getdoc(thing)}"]
    for member, value in inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else ():
        if not member.startswith("_") and value.__name__ == member and value.__doc__:
            parts.append(f"### {name}.{member}{inspect.signature(value)}\n\n{inspect.getdoc(value)}")
    return "\n\n".join(parts)


def html(sources: Path, out: Path, scratch: Path) -> int:
    """Makes the site of staged pages; the exit code, which is not 0 after a warning."""
    options = ["-W", "--keep-going", "-q", "-b", "html", "-c", str(HERE), "-d", str(scratch / "doctrees")]
    return int(sphinx_build([*options, str(sources), str(out)]))


def built(out: Path) -> int:
    """Builds the site; the exit code."""
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="xmlstream-site-") as scratch:
        sources = Path(scratch, "sources")
        staged(sources)
        if code := html(sources, out, Path(scratch)):
            return code
        for_machines(out, sources)
    return 0


if __name__ == "__main__":
    sys.exit(built(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "out" / "docs").absolute()))
