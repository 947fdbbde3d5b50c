"""What a run did, as a notebook shows it."""

from __future__ import annotations

from xmlstream.runtime.likely_mistakes import Finding
from xmlstream.runtime.tally import Summary


def test_a_notebook_shows_what_was_done_and_what_was_noticed_as_text() -> None:
    shown = Summary(
        3, 1200, 7, 1.25, closed=True, findings=(Finding("s", "x", "no <b> came"),), exact=False
    )._repr_html_()
    for words in ("<td>1,200</td>", "<td>1.2 s</td>", "ended for good", "not exact", "s: no &lt;b&gt; came"):
        assert words in shown
    assert "Noticed" not in Summary(0, 0, 0, 0.0, closed=False)._repr_html_()
