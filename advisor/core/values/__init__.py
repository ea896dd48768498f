"""The values that flow through the house, frozen once made; standard library only.

``script -> Trace -> IterationEstimate -> Workload -> Offer -> Plan -> Option -> Recommendation``. Each stage
makes a new value from the ones before it; no value is filled in later. Units end the names. Everybody imports
them from here; a file of ``advisor/core/values`` holds what changes together.
"""

from advisor.core.values.estimate import (
    WHOLE, Z90, AssumedWait, Bound, Confirmation, EmpiricalWait, Fabric, Fit, InputWork, Interval,
    IterationEstimate, LargestBatch, Layout, Link, MemoryEstimate, MemoryPart, Method, Network, Quantiles,
    Remedy, Sharding, Split, StartWait, StepWork,
)  # fmt: skip
from advisor.core.values.gpu import FittedConstants, GpuSpec, OccupancyLimits
from advisor.core.values.occurrence import DeliverWhen, Occurrence, OccurrenceState, Schedule, Scheduler
from advisor.core.values.option import (
    ChangeGain, CostKind, DataPlace, DataSet, Elsewhere, Job, Limited, Listed, Market, Means, Merit, Offer,
    Option, Pick, PickName, Plan, Price, PriceOrder, PricePoint, QueueLimit, QuoteKind, Recommendation,
    Recovery, RunStatus, Tier,
)  # fmt: skip
from advisor.core.values.trace import (
    ABOVE_0, AttributeValue, Bounds, Checkpoints, CheckpointUse, Collective, Depth, Flow, Kernel, Launch,
    MemoryUse, Op, Phase, Precision, RankWork, RecordedStep, Role, TensorSpec, Trace,
)  # fmt: skip
from advisor.core.values.workload import (
    AS_WRITTEN, Scaling, ScalingSource, Script, ScriptWork, Steps, Variant, Work, Workload,
)  # fmt: skip
