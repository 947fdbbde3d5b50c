"""The picture of a query that is refused: NEXMark 23, whose bids do not say which bidders bid no more.

`make house` draws it anew, as `xmlstream explain --follow --format svg` does.
"""

from __future__ import annotations

from tests.harness.pages import ROOT
from xmlstream.optimizer.rules import optimized
from xmlstream.safety.explanation import explained
from xmlstream.sql.script import read

PICTURE = ROOT / "xmlstream" / "safety" / "refused.svg"


def drawn() -> str:
    """The picture, as SVG."""
    text = (ROOT / "data" / "auctions" / "nexmark_q23.sql").read_text(encoding="utf-8")
    dropped = text.replace("'auction; bidder; dateTime prefix'", "'auction; dateTime prefix'")
    assert dropped != text
    return explained(optimized(read(dropped, {"AUCTIONS": "auctions"}).sketch()), follow=True, format_="svg") + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
