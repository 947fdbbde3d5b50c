"""A page of its own: one HTML file without a script, a font or an image from elsewhere, light and dark."""

from __future__ import annotations

from html import escape

from xmlstream.drawing.text_width import MONO, SANS
from xmlstream.drawing.theme import COLOURS

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
"""What the elements of a page look like, as a style sheet."""


def page(title: str, body: str) -> str:
    """The page with a title, whose text is escaped here, and a body, which is HTML."""
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
