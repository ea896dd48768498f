"""A finding of every code, as engines make them, and sentences as findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.core.findings import Code, Fact, Finding, quoted
from advisor.payload.protocol import Notice
from advisor.report.words import in_names, sentences

_TRACES: Mapping[str, Fact] = {
    "basis": "fitted",
    "num_traces": 47,
    "source": "traces",
    "as_of": "2026-11-22",
}
_LOADING: Mapping[str, Fact] = {
    "loading_s": 0.5,
    "samples_per_s": 128.0,
    "num_workers": 4,
    "vcpus_per_gpu": 8.0,
    "cpu_s": 2.0,
    "gpu_s": 0.1,
}
_MACHINE = Finding(
    Code.MACHINE,
    {
        "plan_id": "aws/g6.xlarge/us-east-1/spot",
        "gpu": "L4",
        "num_gpus": 1,
        "tier": "cloud",
        "provider": "aws",
        "instance_type": "g6.xlarge",
        "place": "us-east-1",
        "market": "spot",
    },
)
_AFTER: Mapping[str, Fact] = {"head_usd": 219.0, "head_p90_usd": 280.0, "head_s": 331200.0}
_BEFORE_AND_AFTER: Mapping[str, Fact] = {
    "measure": "cost",
    "relative": 41 / 178,
    "base_usd": 178.0,
    "base_p90_usd": 230.0,
    "base_s": 266400.0,
}
_INSTEAD: Mapping[str, Fact] = {"instead": _MACHINE, "time_s": 3600.0, "cost_usd": 10.0}

_LEAK: Mapping[str, Fact] = {"usd": 12.5, "num_runs": 3, "num_unknown": 1, "scripts": ["train.py", "a.py"]}

FACTS: Mapping[Code, Mapping[str, Fact]] = {
    Code.SAVING: {
        "script": "train.py",
        "project": "detr",
        "rhythm": "weekly",
        "share": 0.38,
        "num_gpus": 1,
        "gpu": "L4",
        "place": "gcp us-west4",
        "market": "spot",
        "usd": 6.2,
        "now_usd": 10.0,
        "time_p90_s": 36_000.0,
        "deadline_s": 86_400.0,
    },
    Code.LEAK_ABOVE_P90: _LEAK,
    Code.LEAK_FAILED: _LEAK,
    Code.LEAK_INTERRUPTED: _LEAK,
    Code.LEAK_LOST: _LEAK,
    Code.LEAK_UNADVISED: _LEAK,
    Code.LEAK_IDLE: {
        "provider": "aws",
        "instance_type": "g5.xlarge",
        "usd": 3.5,
        "billed_usd": 20.0,
        "num_runs": 4,
    },
    Code.BILL_ROWS_LEFT_OUT: {
        "bill": "aws.csv",
        "num_left_out": 2,
        "num_read": 40,
        "first": ["line 7: BilledCost is empty"],
    },
    Code.BILLS_OVERLAP: {"bills": ["a.csv", "b.csv"], "provider": "aws", "num_days": 3},
    Code.CHARGES_UNTAGGED: {"usd": 4.2},
    Code.FORECAST_UNKNOWN: {"least_weeks": 4},
    Code.JOBS_UNPRICED: {"num_jobs": 2, "scripts": ["train.py"]},
    Code.LONG_CHARGES: {"num_charges": 2},
    Code.NO_RUNS_IN_PERIOD: {},
    Code.OTHER_CURRENCY: {"currency": "EUR", "amount": 12.5, "num_charges": 1},
    Code.PRICES_NOT_REMEMBERED: {"gpus": ["L4"]},
    Code.RUN_COSTS_ESTIMATED: {"num_runs": 3},
    Code.RUN_COSTS_UNKNOWN: {"num_runs": 4, "runs": ["run-1", "run-2", "run-3"]},
    Code.RUN_MACHINES_UNKNOWN: {"num_runs": 1},
    Code.TAX_APART: {"usd": 1.9},
    Code.TEXT: {"text": "a sentence of somebody else"},
    Code.MEMORY: {
        "needed_bytes": 20 * 2**30,
        "available_bytes": 16 * 2**30,
        "fitting_share": 0.5,
        "batch_size": 64,
        "fitting_batch_size": 32,
    },
    Code.SHARDING: {"num_ranks": 8, "num_gpus": 1},
    Code.SOFTWARE: {"compute_capability": "3.7"},
    Code.TIME_OF_UNSUPPORTED_GPU: {
        "gpu": "K80",
        "why": Finding(Code.SOFTWARE, {"compute_capability": "3.7"}),
    },
    Code.QUOTA: {
        "num_vcpus": 192,
        "most_vcpus": 96,
        "instance_types": ("p*",),
        "region": "us-east-1",
        "provider": "aws",
    },
    Code.SPOT: {
        "training_h": 73.5,
        "cost_usd": 80.0,
        "checkpoint_interval_h": None,
        "on_demand_h": 12.0,
        "best": {"checkpoint_interval_h": 0.5, "training_h": 14.0, "cost_usd": 15.0},
    },
    Code.BUDGET: {"cost_usd": 30.0, "budget_usd": 20.0, "p": 0.25},
    Code.DEADLINE: {"time_s": 7200.0, "deadline_s": 3600.0, "p": 0.25},
    Code.POLICY: {"rule": "deny.regions: us-*", "file": "org.yaml:7", "detail": "region us-1 is among them"},
    Code.ALIKE: {
        "num_options": 2,
        "num_of_other_gpus": 1,
        "other_gpus": ["8 x H200-SXM-141GB"],
        "faster_s": 18.0,
        "slower_s": 90.0,
        "cheaper_usd": 0.02,
        "dearer_usd": 9.48,
    },
    Code.APPROVAL_NEEDED: {
        "by": "team lead",
        "file": "org.yaml:9",
        "detail": "the job costs $120.00 at p90",
    },
    Code.DATA_IN_PLACE: {"place": "us-east-1", "gib": 3000.0},
    Code.READING: {"gib": 3000.0, "read_s": 0.2, "bytes_per_s": 6.25e9, "fits_local_disks": True},
    Code.READING_UNKNOWN: {},
    Code.DATA_MOVED: {"place": "s3://bucket", "gib": 3000.0, "usd": 60.0, "time_s": 4800.0},
    Code.GLOBAL_BATCH_HELD: {"source": "seen", "global_batch_size": 256, "batch_size": 64},
    Code.SCALING_ASSUMED: {"batch_size": None, "num_gpus": 8},
    Code.CORRECTED_BY_RECEIPTS: {"num_runs": 12, "num_jobs": 3, "factor": 1.07, "band": 0.82},
    Code.DRIFT: {"gpu": "L4", "num_runs": 5, "num_outside": 4, "ratio": 1.18},
    Code.BATCH_SHARE: {"share": 0.25, "batch": 0.5, "exponent": 0.73},
    Code.GPU_BUSY: {"gpu_index": 1, "busy_share": 0.92},
    Code.GPU_MEMORY_TAKEN: {"gpu_index": 1, "used_bytes": 40 * 2**30, "memory_bytes": 80 * 2**30},
    Code.INPUT_ASSUMED: {
        "kind": "image",
        "cpu_s_per_sample": {"p10": 0.003, "p50": 0.006, "p90": 0.01},
    },
    Code.INPUT_BOUND: _LOADING,
    Code.MORE_VCPUS: {
        "instance_type": "g5.16xlarge",
        "vcpus_per_gpu": 64.0,
        "time_s": 7200.0,
        "cost_usd": 8.0,
        "instead_of_time_s": 14400.0,
        "instead_of_cost_usd": 9.0,
    },
    Code.INPUT_BOUND_ALONE: {"loading_s": 0.5, "gpu_s": 0.1},
    Code.INPUT_IN_TURN: {"loading_s": 0.5, "gpu_s": None},
    Code.INPUT_NEARLY_BOUND: _LOADING,
    Code.LATER_START: {
        "delay_h": 8,
        "start_at": "2026-11-01T20:00:00+00:00",
        "saving_usd": 4.0,
        "spread_usd": 1.0,
        "usd": 20.0,
        "num_days": 29,
    },
    Code.NEAR_TIE: {"plan_id": "X", "p_slower": 0.75, "is_on_frontier": True},
    Code.COMMUNITY_HOST: {"provider": "vast"},
    Code.PRICE_DERIVED: {"source": "derived from x"},
    Code.RATE_UNKNOWN: {
        "line": "storage",
        "provider": "aws",
        "region": "ap-southeast-3",
        "usd": 0.152,
        "unit": "GiB-month",
        "dearest_provider": "aws",
        "dearest_region": "sa-east-1",
    },
    Code.RENT_OR_WAIT: {
        "own_id": "cluster/lab/1xT4",
        "rented_id": "X",
        "value_usd_per_h": 10.0,
        "break_even_wait_s": 3600.0,
        "mean_wait_s": None,
    },
    Code.TIE: {"plan_id": "X", "within_share": 0.05},
    Code.WAIT_ASSUMED: {
        "p_at_once": 0.63,
        "later_p50_s": 4090.0,
        "later_p90_s": 40500.0,
        "basis": "fitted",
        "num_traces": 47,
        "source": "traces",
        "as_of": "2026-11-22",
    },
    Code.WAIT_OF_STARTS: {"p_at_once": 0.8, "watched_h": 340.0},
    Code.WAIT_OF_ANY_SIZE: {"enough_jobs": 40},
    Code.WAIT_OF_LOG: {
        "num_jobs": 1812,
        "size": "4..7",
        "size_unit": "gpus",
        "walltime": "<=12h",
        "queue": "gpu",
    },
    Code.WAIT_OF_OTHER_UNIT: {"size_unit": "nodes", "size": 1.0},
    Code.RISK_PREEMPTION: {
        "num_nodes": 1,
        "preemptions_per_h": 0.1,
        "rate_source": Finding(Code.RATE_ASSUMED, _TRACES),
        "price_rise": 1.25,
    },
    Code.RATE_ASSUMED: _TRACES,
    Code.RATE_OF_LOG: {"num_preemptions": 12, "up_h": 340.0},
    Code.RATE_PUBLISHED: {
        "is_floor": False,
        "source": "AWS",
        "as_of": "2026-08-01",
        "low_pct": 5,
        "high_pct": 10,
        "least_preemptions_per_h": 7e-5,
    },
    Code.INSTALL_FOR_CUDA_12: {"architecture": "Volta"},
    Code.INSTALL_FOR_VENDOR: {"vendor": "AMD"},
    Code.RETUNE_LEARNING_RATE: {"global_batch_size": 256, "batch_size": 64},
    Code.SAVE_CHECKPOINTS: {"interval_s": 1800.0, "best_interval_s": 3600.0},
    Code.ACCUMULATE: {"passes": 4},
    Code.ENLARGE_BATCH: {"factor": 2},
    Code.USE_AUTOCAST: {"dtype": "bfloat16"},
    Code.CALIBRATED_RATES: {"reached_share": {"gemm": 0.9}},
    Code.CONSTANTS: {
        "source": Finding(Code.CONSTANT_ASSUMED, {"architecture": None}),
        "rates_by_constant": {"gemm": ["bf16", "fp16"], "streaming": []},
    },
    Code.CUSTOM_OPERATORS: {"names": ["frobnicate"]},
    Code.DATA_PARALLEL: {"bucket_bytes": 25 * 2**20, "hidden_share_of_backward": 0.7},
    Code.EMULATED_RATE: {"rate": "bf16"},
    Code.KERNEL_FLOOR: {"kernel_s": 2e-6, "operator_s": 5e-6},
    Code.MEMORY_COUNTED: {
        "fragmentation_factor": 1.04,
        "workspace_bytes": 2**28,
        "context_bytes": 2**29,
    },
    Code.NOT_LEARNED: {"families": ["conv", "norm"], "partly": ["norm"]},
    Code.OTHER_WORLD: {"num_ranks": 8, "num_gpus": 1},
    Code.RECURRENT_OF_UNKNOWN_SIZE: {"share_of_rate": 0.25},
    Code.SHARDED: {"num_ranks": 8},
    Code.WHAT_IF_AUTOCAST: {"dtype": "bfloat16"},
    Code.WHAT_IF_BF16_INSTEAD: {"gpu": "A100-SXM-80GB"},
    Code.WHAT_IF_NO_RATE: {"gpu": "P100-PCIE-16GB", "rate": "bf16"},
    Code.WHAT_IF_NOT_FEASIBLE: {"gpu": "T4", "removed_by": ["memory"]},
    Code.WHAT_IF_NOTHING: {"lacking": "products in FP32"},
    Code.WHAT_IF_REWRITTEN: {"change": "batch"},
    Code.CONSTANT_ASSUMED: {"architecture": "Ampere"},
    Code.CONSTANT_CALIBRATED: {"source": "calibrated on this machine, today"},
    Code.CLOCKS_DRIFTED: {"drift": 0.2},
    Code.KERNELS_DISAGREE: {"constant": "gemm_fraction.fp16", "num_kernels": 3, "spread": 0.69},
    Code.CONSTANT_MEDIAN: {"architecture": "Volta", "is_on_slot_power": False, "slot_power_w": 75.0},
    Code.BEST_OF_TOTAL: {
        "value_usd_per_h": 10.0,
        "cost_usd": 20.0,
        "time_s": 3600.0,
        "change_s": 1800.0,
        "change_usd": 25.0,
        "is_price_derived": True,
    },
    Code.CHEAPEST: {"is_cost_known": True},
    Code.COST_OF_PICK_UNKNOWN: {"rule": Finding(Code.FASTEST)},
    Code.OBJECTIVE_OF_POLICY: {"reason": Finding(Code.FASTEST)},
    Code.DATA_REGION_UNKNOWN: {"place": "s3://bucket", "provider": "aws"},
    Code.OPT_IN_REGIONS: {"num_offers": 12, "regions": ["ap-east-1", "me-south-1"]},
    Code.CLOUD_WAIT_ASSUMED: {"num_assumed": 230, "num_rented": 232},
    Code.SAFEST: {
        "limits": ["budget"],
        "p_met": 0.95,
        "is_preemptible": False,
        "cost_p90_usd": 15.0,
        "is_cost_known": True,
    },
    Code.MACHINE: _MACHINE.facts,
    Code.CHANGE_COSTS: {"machine": _MACHINE, **_BEFORE_AND_AFTER, **_AFTER},
    Code.CHANGE_ENABLES: {"machine": _MACHINE, **_AFTER},
    Code.CHANGE_ENDS_ALL: {"machine": _MACHINE},
    Code.CHANGE_MOVES: {"machine": _MACHINE, **_AFTER},
    Code.CHANGE_OF_MEMORY: {
        "base_bytes": 71 * 2**30,
        "head_bytes": 83 * 2**30,
        "no_longer": ("A100-SXM-80GB",),
        "newly": (),
    },
    Code.CHANGE_RULES_OUT: {
        "machine": _MACHINE,
        "why": quoted("too large"),
        "instead": _MACHINE,
        **_BEFORE_AND_AFTER,
        **_AFTER,
    },
    Code.SUMMARY_CHOICE: {"machine": _MACHINE, "is_rented": True, "must_change": True},
    Code.SUMMARY_COST_AND_TIME: {
        "cost_p50_usd": 8.0,
        "cost_p90_usd": 12.0,
        "time_p50_s": 7200.0,
        "time_p90_s": 9000.0,
        "is_cost_known": True,
    },
    Code.SUMMARY_DOUBT: {"risk": "risk-capacity", "tipped_by": Finding(Code.NOTHING_TIPS)},
    Code.TIPPED_BY_DATA_PLACE: {**_INSTEAD, "data_provider": "aws", "data_region": "us-east-1"},
    Code.TIPPED_BY_DEADLINE: {**_INSTEAD, "below_s": 69_000.0},
    Code.TIPPED_BY_LATER_DEADLINE: {**_INSTEAD, "from_s": 69_000.0},
    Code.TIPPED_BY_OBJECTIVE: _INSTEAD,
    Code.TIPPED_BY_PRICE: {**_INSTEAD, "usd_per_h": 1.25},
    Code.TIPPED_BY_QUOTE: {**_INSTEAD, "usd_per_h": 1.25},
    Code.TIPPED_BY_STEP: {**_INSTEAD, "step_s": 0.02921, "expected_s": 0.02919},
    Code.TIPPED_BY_VALUE: {**_INSTEAD, "value_usd_per_h": 7.0, "is_above": True},
    Code.TIPPED_BY_WAIT: {**_INSTEAD, "wait_s": 1800.0, "is_known": False},
    Code.CLUSTER_WAIT_UNKNOWN: {"clusters": ["lab"]},
    Code.HOURLY_COST_UNKNOWN: {"providers": ["lab", "local"]},
    Code.GPU_FAMILY: {"name": "A100", "gpus": ["A100-PCIE-40GB", "A100-SXM-40GB"]},
    Code.GPUS_NOT_IN_CATALOG: {"gpus": ["X9"]},
    Code.PRICES_AHEAD: {"providers": ["aws"]},
    Code.PRICES_COMPUTED: {"num_computed": 1, "num_prices": 2, "source_begins": "derived from"},
    Code.PRICES_IMPLAUSIBLE: {
        "num_prices": 1,
        "source": "aws",
        "examples": "p5.48xlarge use1-az1 spot 0.01 USD/h",
        "is_kept": False,
    },
    Code.PRICES_NOT_LIVE: {
        "num_dated": 1,
        "num_prices": 2,
        "ages": [
            {
                "provider": "aws",
                "newest_days": 124,
                "oldest_days": 511,
                "newest_on": "2026-07-20",
                "oldest_on": "2025-06-28",
            }
        ],
        "is_public": True,
    },
    Code.PRICES_STALE: {
        "examples": ["aws p5 on-demand in us-east-1"],
        "num_machines": 2,
        "num_prices": 3,
        "sources": ["snapshot"],
        "is_kept": True,
    },
    Code.EPOCH_LENGTH_UNKNOWN: {"script": "train.py", "is_of_profiler": False, "has_loader": True},
    Code.TOO_MANY_EPOCHS: {"epochs": 1e9, "iterations_per_epoch": 1000, "most_iterations": 10**10},
    Code.BATCHES_DIFFER: {"smallest": 12, "largest": 64, "batch_size": 64},
    Code.BATCHES_WARM_UP: {
        "first_size": 16,
        "nominal_size": 64,
        "num_batches": 4,
        "batch_size": 16,
        "factor": 4,
    },
    Code.CALLS_DROPPED: {"function": "push_to_hub"},
    Code.CLOSURE_REPEATED: {"num_evaluations": 20},
    Code.CREDENTIALS_IN_SIGHT: {"path": "/home/me/.aws"},
    Code.DATA_SET_REPLACED: {"name": "ImageNet", "error": "OSError: no such folder", "num_samples": None},
    Code.DATA_WITHOUT_END: {"num_samples": 10**8, "num_batches": 10**6},
    Code.ENDED_EARLY: {"num_iterations": 2},
    Code.EVALUATION_CUT: {"num_given": 4, "num_batches": 100},
    Code.EVALUATION_INSIDE: {"num_passes": 3, "num_calls": 300, "num_calls_of_all": 1000},
    Code.EVALUATION_LEFT_OUT: {"num_batches": 100},
    Code.EXCHANGE_LEFT_OUT: {"num_kernels": 3, "time_s": 0.01},
    Code.EXPORT_FAILED: {"error": "RuntimeError"},
    Code.EXPORT_PUT_OFF: {"function": "torch.jit.trace"},
    Code.FAKE_DATA_FED: {"num_loaders": 2},
    Code.FILES_THROWN_AWAY: {"library": "torch.save"},
    Code.KERNELS_UNJOINED: {"share_of_kernels": 0.5, "share_of_time": 0.25},
    Code.KERNELS_UNMARKED: {"num_kernels": 3, "share_of_time": 0.25},
    Code.NO_FLOP_FORMULA: {"operator": "mine::conv"},
    Code.NO_SHAPE_RULE: {"operator": "mine::conv", "error": "NotImplementedError"},
    Code.NO_STEP: {"has_updates": True},
    Code.NOT_DOWNLOADED: {"name": "https://host/resnet50.pth"},
    Code.OPTIMIZER_IDLE: {"optimizers": ["Adam", "SGD"], "num_steps": 5},
    Code.PROFILED_WITHOUT_GPU: {"reason": "the GPU has no memory left"},
    Code.ROLLOUTS_LEFT_OUT: {"num_passes": 1025},
    Code.SAMPLER_WITHOUT_LENGTH: {"num_iterations": 20019},
    Code.SEVERAL_LOADERS: {"num_batches": 100, "others": [5, None]},
    Code.SIZES_ASSUMED: {"assumptions": ["all elements are unique", "half of a mask is true"]},
    Code.STEP_TAKEN: {"step": "ProfilerStep#2", "num_steps": 3},
    Code.TORCH_UNTESTED: {"version": "2.14.0", "tested": "2.13", "is_newer": True},
    Code.TRACKER_SILENT: {"tracker": "wandb"},
    Code.WORLD_OF_SCRIPT: {"num_ranks": 2, "world_size": 8},
    Code.WORLD_UNUSED: {"world_size": 8},
    Code.RATES_UNKNOWN: {"num_unknown": 2, "num_options": 9},
}
"""By code; one that is not here has no facts."""


def sample(code: Code) -> Finding:
    """A finding of this code."""
    return Finding(code, FACTS.get(code, {}))


def of_child(notices: Iterable[Notice]) -> list[str]:
    """The sentences of what a child warns of."""
    return named(Finding(Code(one["code"]), one["facts"]) for one in notices)


def named(findings: Iterable[Finding]) -> list[str]:
    """The sentences, with names of arguments in backquotes."""
    return list(map(in_names, findings))


def texts(*findings: str) -> tuple[Finding, ...]:
    """Sentences that no engine makes."""
    return tuple(map(quoted, findings))


def said(findings: Iterable[Finding]) -> str:
    """The sentences, a line each."""
    return "\n".join(sentences(findings))
