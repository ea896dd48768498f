"""Small values for tests: everything has a default, each test names only what it is about."""

from datetime import UTC, date, datetime
from typing import Any

from advisor.core.units import GIB
from advisor.core.values import (
    Bound,
    GpuSpec,
    Interval,
    IterationEstimate,
    Job,
    Layout,
    Market,
    MemoryEstimate,
    MemoryPart,
    MemoryUse,
    Method,
    OccupancyLimits,
    Offer,
    Op,
    Phase,
    Plan,
    Precision,
    Price,
    Quantiles,
    QuoteKind,
    TensorSpec,
    Tier,
    Trace,
)
from advisor.formats.trace_files import SCHEMA_VERSION
from recommender.outcome.draws import Array, quantiles_of_rows

HOUR_S = 3600.0
VOLTA_LIMITS = OccupancyLimits(
    max_threads=2048,
    max_blocks=32,
    max_registers=65536,
    max_registers_per_thread=255,
    max_shared_bytes=98304,
    max_shared_bytes_per_block=98304,
    reserved_shared_bytes_per_block=0,
    register_unit=256,
    shared_unit_bytes=256,
    warp_allocation_unit=4,
)


def quantiles_of(values: Array) -> Quantiles:
    """Of one row of draws."""
    return quantiles_of_rows(values[None])[0]


def make_gpu(name: str = "TEST-1", **changes: Any) -> GpuSpec:
    """A GPU of round numbers: 10 TFLOP/s fp32, 100 with tensor cores, 1 TB/s, 16 GiB."""
    facts: dict[str, Any] = {
        "name": name,
        "aliases": (),
        "families": (),
        "vendor": "NVIDIA",
        "architecture": "Volta",
        "compute_capability": "7.0",
        "num_sms": 80,
        "base_clock_hz": 1.2e9,
        "boost_clock_hz": 1.5e9,
        "memory_bytes": 16 * GIB,
        "memory_bytes_per_s": 1e12,
        "l2_bytes": 6 * 2**20,
        "vector_flops_per_s": {"fp64": 5e12, "fp32": 10e12, "fp16": 20e12},
        "tensor_flops_per_s": {"fp16": 100e12},
        "occupancy": VOLTA_LIMITS,
        "tdp_w": 250.0,
        "nvlink_bytes_per_s": 0.0,
        "pcie_bytes_per_s": 16e9,
        "released": date(2017, 6, 21),
        "source_url": "https://example.org",
        "source_date": date(2026, 1, 1),
    }
    return GpuSpec(**(facts | changes))


def make_op(
    name: str = "aten::mm",
    *,
    flops: int = 10**9,
    num_bytes: int = 10**6,
    count: int = 1,
    dtype: str = "float32",
    phase: Phase = Phase.FORWARD,
    measured_s: float | None = None,
) -> Op:
    """One operator with one input of the given dtype."""
    tensor = TensorSpec(shape=(4, 4), dtype=dtype, stride=(4, 1))
    return Op(
        name=name,
        phase=phase,
        inputs=(tensor,),
        outputs=(tensor,),
        attributes={},
        flops=flops,
        bytes=num_bytes,
        count=count,
        measured_s=measured_s,
    )


def make_trace(**changes: Any) -> Trace:
    """One product forward, one backward, one optimizer pass; 64 samples of ImageNet's 1,281,167."""
    facts: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "script": "train.py",
        "arguments": (),
        "backend": "fake",
        "origin_gpu": None,
        "versions": {"torch": "2.13.0"},
        "precision": Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=True),
        "batch_size": 64,
        "samples_per_epoch": 1_281_167,
        "iterations_per_epoch": 20_019,
        "accumulation": 1,
        "ops": (
            make_op(flops=10**12),
            make_op(flops=2 * 10**12, phase=Phase.BACKWARD),
            make_op("aten::_foreach_add_", flops=10**6, num_bytes=10**8, phase=Phase.OPTIMIZER),
        ),
        "iteration_s": None,
        "data_loading_s": None,
        "num_workers": 0,
        "memory": MemoryUse(
            parameter_bytes=10**8,
            gradient_bytes=10**8,
            optimizer_bytes=10**8,
            activation_bytes=4 * 10**9,
            peak_bytes=43 * 10**8,
        ),
        "collectives": (),
        "warnings": (),
    }
    return Trace(**(facts | changes))


def exactly(seconds: float) -> Interval:
    """A quantity without uncertainty."""
    return Interval(p10=seconds, p50=seconds, p90=seconds)


def make_estimate(
    gpu: str = "X", iteration: float | Interval = 0.1, *, num_gpus: int = 1, **changes: Any
) -> IterationEstimate:
    """An estimate of a given iteration time; one number means without uncertainty."""
    interval = exactly(iteration) if isinstance(iteration, float) else iteration
    facts: dict[str, Any] = {
        "gpu": gpu,
        "layout": Layout(gpus_per_node=num_gpus),
        "iteration_s": interval,
        "device_s": interval,
        "input": None,
        "input_s": None,
        "by_bound": {Bound.COMPUTE: interval.p50},
        "by_family": {"gemm": interval.p50},
        "by_method": {Method.ROOFLINE: interval.p50},
        "by_operator": {"mm (roofline)": interval.p50},
        "communication_s": 0.0,
        "loading_s": 0.0,
        "memory_bytes": 5 * GIB,
        "memory_limit_bytes": 16 * GIB,
        "assumptions": (),
    }
    given = facts | changes
    memory = make_memory(given.pop("memory_bytes"))
    return IterationEstimate(**{"memory": memory} | given)


def make_memory(num_bytes: int | None) -> MemoryEstimate | None:
    """A need without uncertainty, all of it weights; None if it is unknown."""
    if num_bytes is None:
        return None
    return MemoryEstimate(parts={MemoryPart.WEIGHTS: num_bytes}, need_bytes=exactly(num_bytes))


def make_offer(gpu: str = "X", usd_per_h: float = 1.0, **changes: Any) -> Offer:
    """An on-demand offer of one GPU without a billing minimum."""
    facts: dict[str, Any] = {
        "provider": "aws",
        "instance_type": f"{gpu.lower()}.xlarge",
        "region": "us-east-1",
        "zone": None,
        "gpu": gpu,
        "num_gpus": 1,
        "market": Market.ON_DEMAND,
        "list_usd_per_h": usd_per_h,
        "minimum_billed_s": 0.0,
        "retrieved_at": datetime(2026, 11, 1, tzinfo=UTC),
        "source": "a test",
    }
    return Offer(**(facts | changes))


def make_price(
    p50: float = 1.0, p90: float | None = None, kind: QuoteKind = QuoteKind.DATED, age_days: float = 30.0
) -> Price:
    """A price that is exact unless its p90 is given."""
    usd_per_h = Interval(p10=p50, p50=p50, p90=p50 if p90 is None else p90)
    return Price(usd_per_h=usd_per_h, kind=kind, age_days=age_days)


ONE_GPU = Layout(gpus_per_node=1)


def make_plan(
    gpu: str = "X",
    usd_per_h: float | None = 1.0,
    *,
    num_gpus: int = 1,
    tier: Tier = Tier.CLOUD,
    market: Market = Market.ON_DEMAND,
    **changes: Any,
) -> Plan:
    """A plan named after its GPU, without wait, start-up or billing minimum."""
    offer = (
        make_offer(gpu, usd_per_h or 0.0, num_gpus=num_gpus, market=market) if tier is Tier.CLOUD else None
    )
    facts: dict[str, Any] = {
        "id": gpu if num_gpus == 1 else f"{num_gpus}x{gpu}",
        "tier": tier,
        "provider": "aws" if offer else "lab",
        "gpu": gpu,
        "layout": Layout(gpus_per_node=num_gpus),
        "offer": offer,
        "usd_per_h": usd_per_h,
        "wait_s": Quantiles(p50=0.0, p90=0.0),
        "startup_s": 0.0,
        "minimum_billed_s": 0.0,
    }
    return Plan(**(facts | changes))


def make_job(**changes: Any) -> Job:
    """100,000 iterations without limits, unless said otherwise."""
    facts: dict[str, Any] = {"iterations": 100_000}
    if "epochs" in changes:
        facts = {}
    return Job(**(facts | changes))
