"""The looks of pictures and pages, light and dark as the reader's system is.

Colours are never all that tells: whatever has a tone says in words, too, what it is.
"""

from __future__ import annotations

from typing import Literal

from xmlstream.drawing.text_width import MONO, SANS

Tone = Literal["plain", "good", "late", "bad", "mend"]
"""What is said of something: nothing, that it is well, that it waits for the end, that it is in trouble, a remedy."""

_LIGHT = (
    "--ink:#1d2935;--pale:#5a6875;--edge:#c3ccd5;--paper:#ffffff;--card:#f7f9fb;"
    "--good:#17734a;--late:#8a5a00;--bad:#b3261e;--mend:#6a3fb5;--tuple:#1f63b5"
)
_DARK = (
    "--ink:#e6ebf0;--pale:#9aa7b4;--edge:#3d4854;--paper:#12171d;--card:#1b222a;"
    "--good:#56c28a;--late:#e0ab4a;--bad:#ff8a80;--mend:#b79cf2;--tuple:#6ea8ec"
)

COLOURS = f".xs{{{_LIGHT}}}\n@media(prefers-color-scheme:dark){{.xs{{{_DARK}}}}}"
"""The colours by their names, as a style sheet."""

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
"""What the classes of shapes and texts look like, as a style sheet."""
