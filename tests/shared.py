"""The reference data beside the checkout, for tests that need it."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"no reference data at {SHARED}: it lies beside the checkout on CI"
)
