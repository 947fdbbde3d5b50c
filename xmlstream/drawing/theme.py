"""Style sheets of pictures and pages, light or dark as the reader's system is.

A page is one HTML file that loads no script, font or image. Colour is never the only sign: text always has the same
information.
"""

from __future__ import annotations

from html import escape
from typing import Literal

from xmlstream.drawing.canvas import MONO, SANS

Tone = Literal["plain", "good", "late", "bad", "mend"]
"""Meaning of a colour: neutral, good, waits for the end of the input, trouble, remedy."""

_LIGHT = (
    "--ink:#1d2935;--pale:#5a6875;--edge:#c3ccd5;--paper:#ffffff;--card:#f7f9fb;"
    "--good:#17734a;--late:#8a5a00;--bad:#b3261e;--mend:#6a3fb5;--tuple:#1f63b5"
)
_DARK = (
    "--ink:#e6ebf0;--pale:#9aa7b4;--edge:#3d4854;--paper:#12171d;--card:#1b222a;"
    "--good:#56c28a;--late:#e0ab4a;--bad:#ff8a80;--mend:#b79cf2;--tuple:#6ea8ec"
)

COLOURS = f".xs{{{_LIGHT}}}\n@media(prefers-color-scheme:dark){{.xs{{{_DARK}}}}}"
"""Style sheet with the colours by name."""

SHAPES = f"""\
.xs text{{font-family:{SANS};fill:var(--ink)}}
.xs .mono{{font-family:{MONO}}}
.xs .strong{{font-weight:bold}}
.xs .paper{{fill:var(--paper)}}
.xs .card{{fill:var(--card);stroke:var(--edge);stroke-width:1.2}}
.xs .arrow{{fill:none;stroke:var(--tuple);stroke-width:1.8}}
.xs .thin{{fill:none;stroke:var(--pale);stroke-width:1.2}}
.xs .head{{fill:var(--tuple)}}
.xs .small-head{{fill:var(--pale)}}
.xs text.pale{{fill:var(--pale)}}
.xs text.good{{fill:var(--good)}}
.xs text.late{{fill:var(--late)}}
.xs text.bad{{fill:var(--bad)}}
.xs text.mend{{fill:var(--mend)}}
.xs rect.good,.xs circle.good{{fill:var(--good)}}
.xs rect.late,.xs circle.late{{fill:var(--late)}}
.xs rect.bad,.xs circle.bad{{fill:var(--bad)}}
.xs rect.mend,.xs circle.mend{{fill:var(--mend)}}
.xs rect.plain{{fill:var(--edge)}}
.xs .card.bad-edge{{stroke:var(--bad);stroke-width:1.8}}
.xs .card.late-edge{{stroke:var(--late);stroke-width:1.8}}"""
"""Style sheet of the classes of shapes and texts."""


PAGE_LOOKS = f"""\
html{{background:var(--paper);color:var(--ink);color-scheme:light dark}}
body{{font:15px/1.5 {SANS};margin:0 auto;max-width:110rem;padding:1.2rem 1.4rem 3rem}}
h1{{font-size:1.5rem;margin:.2rem 0 .6rem}}
h2{{font-size:1.1rem;margin:1.8rem 0 .5rem}}
code,pre{{font-family:{MONO};font-size:.86rem}}
pre{{background:var(--card);border:1px solid var(--edge);border-radius:8px;overflow:auto;padding:.8rem 1rem}}
ul{{list-style:none;margin:.4rem 0;padding:0}}
li::before{{content:"●";margin-right:.5rem}}
summary{{cursor:pointer}}
.good{{color:var(--good)}}.late{{color:var(--late)}}.bad{{color:var(--bad)}}.mend{{color:var(--mend)}}
.picture{{border:1px solid var(--edge);border-radius:10px;overflow:auto}}
.picture svg{{display:block;height:auto;width:clamp(calc(.72*var(--wide)),100%,var(--wide))}}
:focus-visible{{outline:2px solid var(--tuple);outline-offset:2px}}"""
"""Style sheet of the elements of a page."""


def page(title: str, body: str) -> str:
    """An HTML page; `title` is text and is escaped, `body` is HTML."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return f"""\
<!DOCTYPE html>
<html lang="en" class="xs">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)}</title>
<style>
{COLOURS}
{PAGE_LOOKS}
</style>
</head>
<body>
{body}
</body>
</html>
"""
