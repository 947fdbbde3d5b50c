"""The page of a run: one document with its scripts and looks in it, and nothing from elsewhere."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

from xmlstream.drawing.page import PAGE_LOOKS
from xmlstream.drawing.theme import COLOURS, SHAPES
from xmlstream.monitor.run_view import RunView


def page(view: RunView, nonce: str) -> str:
    """The page as HTML; `nonce` is what its policy knows its scripts and style sheets by."""
    drawing = view.drawing()
    wide = re.search(r'width="([\d.]+)"', drawing)
    looks = [COLOURS, f".xs{{--wide:{wide[1] if wide else 900}px}}", SHAPES, PAGE_LOOKS, _asset("uPlot.min.css")]
    return Template(_asset("page.html")).substitute(
        nonce=nonce,
        title=escape(view.name),
        looks="\n".join([*looks, _asset("monitor.css")]),
        drawing=drawing or "<p>The plan comes once Spark has started. This page shows it then.</p>",
        scripts=f"{_asset('uPlot.iife.min.js')}\n{_asset('monitor.js')}",
    )


@cache
def _asset(name: str) -> str:
    return (files("xmlstream.monitor") / "static" / name).read_text(encoding="utf-8")
