"""What is installed beside the code: the manual in a pager, as Markdown or HTML, and the documentation's examples.

In a checkout the pages lie beside what they describe, the examples in `data`; a wheel installs both, at the same paths,
into `share/xmlstream` of the environment.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import sys
import textwrap
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import DISTRIBUTION, UsageError, did_you_mean

if TYPE_CHECKING:
    from markdown_it.token import Token


def share() -> Path:
    """Directory with `data` and the pages of the manual: the checkout, or where the wheel has installed them.

    Raises:
        UsageError: They are not installed.
    """
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "data" / "warehouse.sql").is_file():
        return checkout
    with suppress(PackageNotFoundError):
        for file in distribution(DISTRIBUTION).files or ():
            if file.as_posix().endswith("share/xmlstream/data/warehouse.sql"):
                return Path(str(file.locate())).resolve().parents[1]
    raise UsageError(
        "the examples and the manual are not installed", hint="install the wheel, or use the files of a checkout"
    )


def examples() -> dict[str, Path]:
    """Returns the files of the examples by their paths relative to the directory of all examples.

    Raises:
        UsageError: The examples are not installed.
    """
    data = share() / "data"
    return {path.relative_to(data).as_posix(): path for path in sorted(data.rglob("*")) if path.is_file()}


def write_examples(names: list[str], out: Path) -> list[Path]:
    """Writes examples; keeps a file that already exists with the same content.

    Args:
        names: Paths as in `examples`, or file names, with or without suffix; all examples if empty.
        out: The directory to write to.

    Returns:
        The paths of the examples in `out`.

    Raises:
        UsageError: There is no such example, or a file of that name has other content.
    """
    known = examples()
    chosen = {name: path for wanted in names for name, path in _matching(wanted, known).items()} if names else known
    written = []
    for name, path in chosen.items():
        target, content = out / name, path.read_bytes()
        written.append(target)
        if target.exists():
            if target.read_bytes() != content:
                raise UsageError(f"{target} exists with other content", hint="name another directory with --out")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return written


def _matching(wanted: str, known: dict[str, Path]) -> dict[str, Path]:
    found = {name: file for name, file in known.items() if wanted in (name, PurePath(name).name, PurePath(name).stem)}
    if not found:
        stems = sorted(PurePath(name).stem for name in known if name.endswith(".sql"))
        hint = did_you_mean(wanted, stems, f"there are {', '.join(stems)}")
        raise UsageError(f"there is no example {wanted}", hint=hint)
    return found


FOLDERS = (".github", "data", "operators", "punct_ns", "sources", "tests", "xmlstream")
"""Where pages lie, besides the root."""

_NAMED = {"README.md": "readme", "xmlstream/README.md": "architecture"}
"""Topics that are called neither by their file nor by its folder."""

_LINES = {
    "readme": "what it is; your own XML in two minutes; installing",
    "tutorial": "from XML of your own to a result, in ten minutes",
    "cookbook": "how to do twenty-four tasks",
    "spark_jobs": "in a Structured Streaming job: from XML in Kafka to a table",
    "concepts": "the ideas in ten minutes",
    "warehouse": "the query of the papers, in SQL and in Python; what punctuations buy",
    "closing": "which statement about your feed closes what",
    "coming_from": "what you know from Flink, Spark or others",
    "limits": "what it cannot do, and what does",
    "papers": "what of the papers is here, statement by statement",
    "glossary": "what the words mean",
    "personal_data": "what is kept of people, where and how long; find, erase",
    "operations": "running a query for months: every night, as a service, memory, backup",
    "changing": "changing a query without starting anew",
    "clusters": "object stores and clusters",
    "checkpoints": "what a checkpoint has in it, and how an upgrade migrates it",
    "sources": "how XML is read: xmlstream infer, all options, arrays, ids and sections that close themselves",
    "receivers": "live feeds by MQTT, HTTP, TCP, Kafka: each message once",
    "sinks": "results as DataFrames, into the session's tables, by HTTP, by MQTT; a sink of your own",
    "sql": "files of several queries, static tables, windows, sinks, plans and explain",
    "operators": "what each operator does with a punctuation, in SQL and in Python",
    "in_process": "what DuckDB computes with --engine duckdb",
    "punct_ns": "what a punctuation can say, its notation, its XML form, schemes",
    "runtime": "the command line, slices, metrics, findings, dead letters, errors, tests of a query",
    "monitor": "watching a running query: the live page, closed values, Prometheus",
    "data": "the queries and inputs of these pages",
    "auctions": "49 queries over auctions: those of the papers, NEXMark, XMark",
    "benchmarks": "how fast it is, beside plain Spark and others",
    "architecture": "how it is built; how to add an operator, a source, a rule",
    "first_change": "a function, a rule or an operator in an afternoon",
    "contributing": "how to take part",
    "changelog": "what has changed",
}
"""A line on the contents of each topic, in the order of the list."""

_PICTURE = re.compile(r"<picture>.*?alt=\"([^\"]*)\".*?</picture>|!\[([^\]]*)\]\([^)]*\)", re.DOTALL)
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?!\w+:)([^)#\s]*)(?:#[^)\s]*)?\)")


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its topic, its path below the root of all pages, a line on its contents, and its file."""

    topic: str
    path: str
    line: str
    file: Path

    @property
    def text(self) -> str:
        """The page as Markdown."""
        return self.file.read_text(encoding="utf-8")


def pages() -> list[Page]:
    """Returns all pages, in the order of the list.

    Raises:
        UsageError: The pages are not installed.
    """
    root = share()
    files = [*root.glob("*.md"), *(file for folder in FOLDERS for file in sorted((root / folder).rglob("*.md")))]
    topics = {_topic(file.relative_to(root).as_posix()): file for file in files}
    return [
        Page(topic, topics[topic].relative_to(root).as_posix(), line, topics[topic])
        for topic, line in _LINES.items()
        if topic in topics
    ]


def printed(page: Page) -> str:
    """The page for a terminal: a link leads to the command that prints the page, and a picture is its description."""
    topics = {each.file.resolve(): each.topic for each in pages()}

    def command(link: re.Match[str]) -> str:
        topic = topics.get((page.file.parent / link[2]).resolve()) if link[2] else page.topic
        if topic is None or topic == page.topic:
            return link[1]
        return f"{link[1]} (`xmlstream manual {topic}`)"

    return _LINK.sub(command, _PICTURE.sub(r"(Picture: \1\2)", page.text))


def _topic(path: str) -> str:
    pure = PurePath(path)
    return _NAMED.get(path) or (pure.parent.name if pure.stem == "README" else pure.stem.lower())


def _title(file: Path) -> str:
    return file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


def page_of_topic(topic: str) -> Page:
    """Returns the page of a topic.

    Raises:
        UsageError: There is no such topic.
    """
    known = {page.topic: page for page in pages()}
    wanted = topic.lower().replace("-", "_")
    if wanted not in known:
        hint = did_you_mean(wanted, known, f"there are {', '.join(known)}")
        raise UsageError(f"the manual has no page {topic}", hint=hint)
    return known[wanted]


def contents() -> str:
    """The topics, one a line, and where the site is."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1000
    found = pages()
    longest = max(len(each.topic) for each in found)
    lines = [
        textwrap.fill(
            each.line, width, initial_indent=f"{each.topic:<{longest}}  ", subsequent_indent=" " * (longest + 2)
        )
        for each in found
    ]
    site = re.search(rf"https://{DISTRIBUTION}[^)\s]*", found[0].text)  # the README names it once it is up
    lines += ["", f"The same with a search: {site[0]}"] if site else []
    return "\n".join(["xmlstream manual TOPIC shows a page:", "", *lines])


def show(text: str) -> None:
    """Shows Markdown in a pager if standard output is a terminal; else prints it as it is written."""
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    from rich.console import Console
    from rich.markdown import Markdown

    os.environ.setdefault("LESS", "FRX")  # colours, and no pager for what fits, as git sets it
    console = Console(width=min(Console().width, 120))
    with console.pager(styles=True):
        console.print(Markdown(text, hyperlinks=False))


_STYLE = """
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui; color-scheme: light dark }
pre { overflow-x: auto; padding: .6rem; border: 1px solid #8886; border-radius: 4px }
code { font-size: .9em } table { border-collapse: collapse; display: block; overflow-x: auto }
td, th { border: 1px solid #8886; padding: .2rem .5rem; text-align: left; vertical-align: top } img { max-width: 100% }
"""


def write_html(out: Path, first: Page | None = None) -> Path:
    """Writes all pages as HTML, at their paths, with their pictures; links between them work offline.

    Returns:
        The file of the page `first`, by default of the README.

    Raises:
        UsageError: The pages are not installed.
    """
    from markdown_it import MarkdownIt  # rich requires it

    found, renderer = pages(), MarkdownIt().enable("table")
    paths = {each.file.resolve() for each in found}
    for each in found:
        target = (out / each.path).with_suffix(".html")
        target.parent.mkdir(parents=True, exist_ok=True)
        tokens = renderer.parse(each.text)
        for token, after in zip(tokens, [*tokens[1:], None], strict=True):
            if token.tag.startswith("h") and token.nesting == 1 and after is not None:
                token.attrSet("id", _anchor(after.content))
        for part in (part for token in tokens for part in (token, *(token.children or ()))):
            _relocate(part, each, paths, out)
        body = renderer.renderer.render(tokens, renderer.options, {})
        title = html.escape(f"{_title(each.file)} – xmlstream")
        target.write_text(
            f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>'
            f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>\n{body}</html>\n',
            encoding="utf-8",
        )
    return (out / (first or found[0]).path).with_suffix(".html")


def _anchor(heading: str) -> str:
    """The name of a heading in links, as forges make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _relocate(token: Token, page: Page, paths: set[Path], out: Path) -> None:
    """Lets a link to a page lead to its HTML, and copies a picture to where the HTML looks for it."""
    if token.tag == "a" and token.nesting == 1:
        path, mark, heading = str(token.attrGet("href")).partition("#")
        if (page.file.parent / path).resolve() in paths:
            token.attrSet("href", f"{path.removesuffix('.md')}.html{mark}{heading}")
    elif token.tag == "img":
        _copy(str(token.attrGet("src")), page, out)
    elif not token.tag:
        for name in re.findall(r'(?:src|srcset)="([^"]+)"', token.content):
            _copy(name, page, out)


def _copy(name: str, page: Page, out: Path) -> None:
    picture = page.file.parent / name
    if picture.is_file():
        target = out / PurePath(page.path).parent / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, target)
