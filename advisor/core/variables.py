"""Variables of the environment by which one process of advisor tells another what to do."""

from __future__ import annotations

ANSWER_FILE_VARIABLE = "ADVISOR_ANSWER_FILE"
"""Where a command writes its answer as JSON, beside what it prints."""
