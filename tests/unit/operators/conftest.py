"""The child of the profiling tests, whose FLOPs are compared with torch's."""

from tests.unit.profile.conftest import probe, probe_results

__all__ = ["probe", "probe_results"]
