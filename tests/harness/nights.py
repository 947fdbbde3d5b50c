"""What is left to nights, when HYPOTHESIS_PROFILE=long searches afresh: more of what CI has examples of."""

from __future__ import annotations

from hypothesis import settings

AT_NIGHT = settings().max_examples > 1000
