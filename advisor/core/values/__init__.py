"""The values that flow through the house, frozen once made; standard library only.

``script -> Trace -> IterationEstimate -> Offer -> Plan -> Option -> Recommendation``. Each stage makes
a new value from the ones before it; no value is filled in later. Units end the names. Everybody imports them
from here; a file of ``advisor/core/values`` holds what changes together.
"""

from advisor.core.values.estimate import EmpiricalWait, Interval, IterationEstimate, Method, Quantiles
from advisor.core.values.gpu import FittedConstants, GpuSpec, OccupancyLimits
from advisor.core.values.option import Job, Option, Pick, PickName, Plan, Recommendation, Tier
from advisor.core.values.price import Market, Offer, PricePoint
from advisor.core.values.trace import (
    AttributeValue,
    Collective,
    Kernel,
    MemoryUse,
    Op,
    Phase,
    Precision,
    TensorSpec,
    Trace,
)

__all__ = [
    "AttributeValue",
    "Collective",
    "EmpiricalWait",
    "FittedConstants",
    "GpuSpec",
    "Interval",
    "IterationEstimate",
    "Job",
    "Kernel",
    "Market",
    "MemoryUse",
    "Method",
    "OccupancyLimits",
    "Offer",
    "Op",
    "Option",
    "Phase",
    "Pick",
    "PickName",
    "Plan",
    "Precision",
    "PricePoint",
    "Quantiles",
    "Recommendation",
    "TensorSpec",
    "Tier",
    "Trace",
]
