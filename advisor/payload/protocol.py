"""What parent and child write for each other, all of it JSON: the job, lines of progress, the result.

The parent checks a result against these very types (``profile/result_schema.py``), since the script that runs
in the child can forge one. The child loads this before anything else, in the user's Python and without torch.
"""

from __future__ import annotations

from .contract.jobs import Call, Case, FakeSamples, Gpu, Job, MeasuringJob, SampleField, ScriptJob
from .contract.kinds import Length, Name, OperatorPhase, Origin, Shape, Status
from .contract.notices import Counts, Event, Fact, Notice, Phase, Warned, notice
from .contract.recordings import (
    GRADIENT,
    NUM_ROLES,
    OUTSIDE,
    PARAMETER,
    Communication,
    Details,
    Flags,
    Iteration,
    Loading,
    Memory,
    Operator,
    OperatorFlow,
    Result,
    Tensor,
)
from .contract.timings import (
    Device,
    DeviceLine,
    MeasuredLine,
    MeasuringLine,
    Precision,
    ReferenceLine,
    SkippedLine,
    Timing,
)

# Of all that is written here; a job or a result of another version is not read.
VERSION = 8
# Begins the names of the marks that a watched call leaves in a profiler's timeline: "advisor#12".
MARK = "advisor#"

__all__ = [
    "GRADIENT",
    "MARK",
    "NUM_ROLES",
    "OUTSIDE",
    "PARAMETER",
    "VERSION",
    "Call",
    "Case",
    "Communication",
    "Counts",
    "Details",
    "Device",
    "DeviceLine",
    "Event",
    "Fact",
    "FakeSamples",
    "Flags",
    "Gpu",
    "Iteration",
    "Job",
    "Length",
    "Loading",
    "MeasuredLine",
    "MeasuringJob",
    "MeasuringLine",
    "Memory",
    "Name",
    "Notice",
    "Operator",
    "OperatorFlow",
    "OperatorPhase",
    "Origin",
    "Phase",
    "Precision",
    "ReferenceLine",
    "Result",
    "SampleField",
    "ScriptJob",
    "Shape",
    "SkippedLine",
    "Status",
    "Tensor",
    "Timing",
    "Warned",
    "notice",
]
