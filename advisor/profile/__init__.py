"""A training script, unmodified -> a Trace of one steady iteration.

::

    trace = profile(Path("train.py"), ["--batch-size", "64"])
"""

from advisor.profile.attempt import DEFAULT_TIMEOUT_S, ScriptGpu
from advisor.profile.profiling import pretend, profile, profile_callable

__all__ = ["DEFAULT_TIMEOUT_S", "ScriptGpu", "pretend", "profile", "profile_callable"]
