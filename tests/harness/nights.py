"""By night tests search: many examples, new ones in each run, where by day they try few, and always the same.

`make nights` sets HYPOTHESIS_PROFILE=night, and a seed for tests that draw by `random`.
"""

from __future__ import annotations

import os

AT_NIGHT = os.environ.get("HYPOTHESIS_PROFILE") == "night"
"""Whether tests search; decided by the environment alone, since modules ask before the profile is loaded."""

SEED = int(os.environ.get("NIGHT_SEED", "0"))
"""The first seed of a test that draws by `random`: 0 by day."""
