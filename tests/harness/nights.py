"""By night tests search: many examples, new ones in each run, where by day they try few, and always the same.

`make nights` sets HYPOTHESIS_PROFILE=night, and a seed for tests that draw by `random`.
"""

from __future__ import annotations

import os

from hypothesis import settings

AT_NIGHT = settings().max_examples > 50

SEED = int(os.environ.get("NIGHT_SEED", "0"))
"""The first seed of a test that draws by `random`: 0 by day."""
