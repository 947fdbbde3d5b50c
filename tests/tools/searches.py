"""Searches of a user in the built site, and what comes first for each.

    python -m tests.tools.searches [SITE]        by default out/docs, which `make docs` builds

Opens the site's own search in a headless browser, from a server on this machine that ends with the program. The exit
code is 1 if one of the first three hits of a search is not the page that answers it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from tests.harness.browser import launched
from tests.harness.pages import ROOT

ANSWERS: Mapping[str, tuple[str, ...]] = {
    "watermark": ("xmlstream/manual/concepts", "xmlstream/manual/coming_from"),
    "dead letter": ("xmlstream/runtime/README#dead-letters",),
    "exactly once": ("xmlstream/manual/concepts", "xmlstream/runtime/README"),
    "deduplicate": ("xmlstream/manual/cookbook", "operators/README"),
    "kafka": ("sources/receivers/README",),
    "cron": ("xmlstream/manual/operations", "xmlstream/manual/cookbook"),
    "memory": ("xmlstream/manual/operations", "xmlstream/runtime/README"),
    "xml namespace": ("sources/README",),
    "top n": ("xmlstream/manual/cookbook", "operators/README"),
    "session window": ("xmlstream/manual/cookbook", "xmlstream/sql/README", "operators/README"),
    "grows for ever": (
        "xmlstream/manual/warehouse",
        "xmlstream/manual/operations",
        "xmlstream/manual/limits",
        "xmlstream/runtime/README",
    ),
    "checkpoint backup": ("xmlstream/manual/operations",),
}
"""What a user types, and the pages that answer it."""

_IS_OVER = """() => /finished|did not match/.test(document.querySelector("#search-results")?.textContent)"""
_HITS = (
    """() => [...document.querySelectorAll("ul.search > li > a")].map(a => [a.getAttribute("href"), a.textContent])"""
)


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The site's address while a server of this process runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests are no result."""


def hits(page: Any, address: str, words: str) -> list[tuple[str, str]]:
    """The pages that the search lists, in order, each with its title."""
    page.goto(f"{address}/search.html?q={quote(words)}")
    page.wait_for_function(_IS_OVER)
    return [(_path(link), title) for link, title in page.evaluate(_HITS)]


def _path(link: str) -> str:
    parts = urlsplit(link)
    return parts.path.removesuffix(".html") + (f"#{parts.fragment}" if parts.fragment else "")


def main(site: Path) -> int:
    """Prints the first three hits of each search; the exit code."""
    missed = 0
    with served(site) as address, launched() as browser:
        page = browser.new_page()
        for words, answers in ANSWERS.items():
            found = hits(page, address, words)
            place = next((n for n, (path, _) in enumerate(found, 1) if path.startswith(answers)), 0)
            missed += not 0 < place <= 3
            print(f"{words}: {len(found)} hits, an answer is number {place or '-'}")
            for path, title in found[:3]:
                print(f"    {path:40} {title}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "out" / "docs").absolute()))
