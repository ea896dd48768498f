"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# A noisy machine must not fail a law, and CI must not fail by luck; at a desk, new examples each time.
settings.register_profile("advisor", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("advisor")
