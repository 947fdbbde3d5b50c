"""A headless browser that looks at pages as a person's would."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str | None:
    """Where a browser is; None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser; one for a test run, since each takes a second to begin."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium has no sandbox for root.
        arguments = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=executable(), args=arguments)
        yield browser
        browser.close()


def overlapping_texts(page: Page) -> list[Any]:
    """Pairs of texts in pictures that lie over each other, by more than what glyphs leave free."""
    return list(page.evaluate(_OVERLAPPING))


def texts_beside_their_cards(page: Page) -> list[Any]:
    """Texts in pictures that stick out of the card that they belong to."""
    return list(page.evaluate(_STICKING_OUT))


_OVERLAPPING = """() => {
    const all = [...document.querySelectorAll("svg text")].filter(t => t.textContent.trim());
    const boxes = all.map(t => [t.lastChild.textContent, t.getBBox()]);
    const found = [];
    boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
        const across = Math.min(p.x + p.width, q.x + q.width) - Math.max(p.x, q.x);
        const down = Math.min(p.y + p.height, q.y + q.height) - Math.max(p.y, q.y);
        if (across > 0.5 && down > 3) found.push([a, b, across, down]);
    }));
    return found;
}"""

_STICKING_OUT = """() => [...document.querySelectorAll("svg .operator")].flatMap(card => {
    const box = card.querySelector("rect.card").getBBox();
    return [...card.querySelectorAll("text")].filter(text => {
        const own = text.getBBox();
        return own.x < box.x || own.x + own.width > box.x + box.width || own.y + own.height > box.y + box.height;
    }).map(text => [card.dataset.operator, text.lastChild.textContent]);
})"""
