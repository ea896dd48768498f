"""This machine's CPU as a place to train: what of it is known are steps that were timed there."""

import math
from dataclasses import dataclass
from datetime import date
from statistics import median

from advisor.core import values
from advisor.core.findings.about_options import TimedOnCpu
from advisor.predict.interval import spread

CPU = "CPU"
# Of few steps, and of a machine on which others may work tomorrow.
LEAST_SIGMA = 0.1
_NO_LAYOUT = values.Layout(gpus_per_node=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSteps:
    """Steps of a script on this machine's CPU."""

    cpu: str
    """As the system names it."""
    times_s: tuple[float, ...]
    memory_bytes: int
    num_vcpus: int

    @property
    def spec(self) -> values.GpuSpec:
        """The board that plans name; nothing is predicted by it."""
        return values.GpuSpec(
            name=CPU, aliases=(), families=(), vendor=CPU, architecture=self.cpu, compute_capability="",
            num_sms=0, base_clock_hz=0.0, boost_clock_hz=0.0, memory_bytes=self.memory_bytes,
            memory_bytes_per_s=0.0, l2_bytes=0, vector_flops_per_s={}, tensor_flops_per_s={}, occupancy=None,
            tdp_w=0.0, nvlink_bytes_per_s=0.0, pcie_bytes_per_s=0.0, released=date.min, source_url="",
            source_date=date.min,
        )  # fmt: skip

    @property
    def plan(self) -> values.Plan:
        """It is there, at once and for nothing."""
        return values.Plan(
            id="local/cpu",
            tier=values.Tier.LOCAL,
            provider="local",
            gpu=CPU,
            layout=_NO_LAYOUT,
            offer=None,
            usd_per_h=0.0,
            wait_s=values.Quantiles(p50=0.0, p90=0.0),
            startup_s=0.0,
            minimum_billed_s=0.0,
            num_vcpus=self.num_vcpus,
            notes=(TimedOnCpu(cpu=self.cpu, num_vcpus=self.num_vcpus, num_steps=len(self.times_s)),),
        )

    def estimate(self, trace: values.Trace, layout: values.Layout) -> values.IterationEstimate:
        """A step of the trace's script there."""
        step_s = median(self.times_s)
        logs = [math.log(time_s / step_s) for time_s in self.times_s]
        step = spread(step_s, max(LEAST_SIGMA, math.sqrt(sum(log**2 for log in logs) / len(logs))))
        return values.IterationEstimate(
            gpu=CPU,
            layout=layout,
            iteration_s=step,
            device_s=step,
            input=None,
            input_s=None,
            by_bound={values.Bound.HOST: step_s},
            by_family={"all operators": step_s},
            by_method={values.Method.MEASURED: step_s},
            by_operator={"all operators (measured)": step_s},
            communication_s=0.0,
            loading_s=0.0,
            memory=None,
            memory_limit_bytes=self.memory_bytes,
            assumptions=(),
            work=values.StepWork(num_samples=trace.batch_size),
        )
