"""The values that flow through the house, frozen once made; standard library only.

``script -> Trace -> IterationEstimate -> Workload -> Offer -> Plan -> Option -> Recommendation``. Each stage
makes a new value from the ones before it; no value is filled in later. Units end the names. Everybody imports
them from here; a file of ``advisor/core/values`` holds what changes together.
"""

from advisor.core.values.ending import CostKind, RunStatus
from advisor.core.values.estimate import (
    Bound,
    Confirmation,
    EmpiricalWait,
    InputWork,
    IterationEstimate,
    Method,
    StartWait,
    StepWork,
)
from advisor.core.values.gpu import FittedConstants, GpuSpec, OccupancyLimits
from advisor.core.values.interval import Interval, Quantiles
from advisor.core.values.layout import Fabric, Layout, Link, Network
from advisor.core.values.memory import (
    Fit,
    LargestBatch,
    MemoryEstimate,
    MemoryPart,
    Remedy,
    Sharding,
)
from advisor.core.values.option import (
    ChangeGain,
    Job,
    Means,
    Option,
    Pick,
    PickName,
    Plan,
    Recommendation,
    Tier,
)
from advisor.core.values.place import DataPlace, DataSet
from advisor.core.values.price import Market, Offer, Price, PricePoint, QuoteKind
from advisor.core.values.schedule import DeliverWhen, Occurrence, OccurrenceState, Schedule, Scheduler
from advisor.core.values.split import WHOLE, Split
from advisor.core.values.trace import (
    AttributeValue,
    Collective,
    Flow,
    Kernel,
    Launch,
    MemoryUse,
    Op,
    Phase,
    Precision,
    RankWork,
    Role,
    TensorSpec,
    Trace,
)
from advisor.core.values.workload import (
    AS_WRITTEN,
    Scaling,
    ScalingSource,
    Script,
    ScriptWork,
    Steps,
    Variant,
    Workload,
)

__all__ = [
    "AS_WRITTEN",
    "WHOLE",
    "AttributeValue",
    "Bound",
    "ChangeGain",
    "Collective",
    "Confirmation",
    "CostKind",
    "DataPlace",
    "DataSet",
    "DeliverWhen",
    "EmpiricalWait",
    "Fabric",
    "Fit",
    "FittedConstants",
    "Flow",
    "GpuSpec",
    "InputWork",
    "Interval",
    "IterationEstimate",
    "Job",
    "Kernel",
    "LargestBatch",
    "Launch",
    "Layout",
    "Link",
    "Market",
    "Means",
    "MemoryEstimate",
    "MemoryPart",
    "MemoryUse",
    "Method",
    "Network",
    "OccupancyLimits",
    "Occurrence",
    "OccurrenceState",
    "Offer",
    "Op",
    "Option",
    "Phase",
    "Pick",
    "PickName",
    "Plan",
    "Precision",
    "Price",
    "PricePoint",
    "Quantiles",
    "QuoteKind",
    "RankWork",
    "Recommendation",
    "Remedy",
    "Role",
    "RunStatus",
    "Scaling",
    "ScalingSource",
    "Schedule",
    "Scheduler",
    "Script",
    "ScriptWork",
    "Sharding",
    "Split",
    "StartWait",
    "StepWork",
    "Steps",
    "TensorSpec",
    "Tier",
    "Trace",
    "Variant",
    "Workload",
]
