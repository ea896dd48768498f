"""A finding of every code, as engines make them, and sentences as findings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from advisor.core.findings import (
    Fact,
    Finding,
    Text,
    about_answers,
    about_estimates,
    about_options,
    about_spending,
    about_traces,
    quoted,
)
from advisor.formats.trace_files import known_warning, warning_of
from advisor.payload.protocol import Notice
from advisor.report.words import in_names, sentences

_TRACES: Mapping[str, Fact] = {"basis": "fitted", "num_traces": 47, "source": "traces", "as_of": "2026-11-22"}
_LOADING: Mapping[str, Fact] = {
    "by": "workers",
    "is_bound": True,
    "loading_s": 0.5,
    "samples_per_s": 128.0,
    "num_workers": 4,
    "vcpus_per_gpu": 8.0,
    "cpu_s": 2.0,
    "gpu_s": 0.1,
}
_MACHINE = about_answers.Machine(
    plan_id="aws/g6.xlarge/us-east-1/spot",
    gpu="L4",
    num_gpus=1,
    num_nodes=1,
    tier="cloud",
    provider="aws",
    instance_type="g6.xlarge",
    place="us-east-1",
    market="spot",
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

_LEAK: Mapping[str, Fact] = {
    "usd": 12.5,
    "num_runs": 3,
    "num_unknown": 1,
    "scripts": ["train.py", "a.py"],
    "provider": "aws",
    "instance_type": "g5.xlarge",
    "amortised_usd": 20.0,
    "share_of_commitments": 0.83,
    "num_commitments": 1,
    "commitments": ["ml plan"],
}

_FASTER: Mapping[str, Fact] = {
    "faster": "A",
    "slower": "B",
    "times_faster": 2.1,
    "less_s": 3600.0,
    "p_sooner": 0.97,
}

FACTS: Mapping[type[Finding], Mapping[str, Fact]] = {
    about_answers.Compared: {
        **_FASTER,
        "times_in_cost": 1.4,
        "cost_differs_by_usd": 12.0,
        "change_usd": 25.0,
        "even_usd_per_h": 12.0,
        "value_usd_per_h": 2.0,
        "take": "B",
        "unpriced": ["B"],
    },
    about_answers.ComparedNeither: {"why_a": quoted("does not fit"), "why_b": quoted("too late")},
    about_answers.ComparedOne: {"take": "A", "other": "B", "why": quoted("does not fit")},
    about_answers.ComparedSame: {"usd": 12.5, "time_s": 7200.0},
    about_answers.CurveOfNone: {},
    about_answers.CurveStops: {
        "machine": _MACHINE,
        "next_num_gpus": 8,
        "usd_per_h_saved": 31.0,
        "change_usd": 25.0,
        "value_usd_per_h": 2.0,
    },
    about_spending.SavingFound: {
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
    about_spending.SpendJump: {
        "project": "resnet",
        "day": "2026-11-05",
        "usd": 400.0,
        "usual_usd": 20.0,
        "maker": "9018c2b2",
        "maker_usd": 380.0,
        "is_run": True,
    },
    about_spending.LeftOut: {
        "where": "a.csv",
        "num_left_out": 2,
        "num_read": 40,
        "usd": 12.5,
        "num_unknown": 1,
        "first": ["line 7: BilledCost is empty"],
    },
    about_spending.ReportGap: {"num": 4, "names": ["L4"]},
    about_options.WaitUnsure: {"enough_jobs": 40, "size_unit": "nodes", "size": 1.0, "times": 3.0},
    about_spending.ChargesDoubtful: {
        "usd": 4.2,
        "currency": "EUR",
        "amount": 12.5,
        "num_charges": 1,
        "bills": ["a.csv", "b.csv"],
        "provider": "aws",
        "num_days": 3,
    },
    about_spending.RunCostsUnknown: {"num_runs": 4, "runs": ["run-1", "run-2", "run-3"]},
    Text: {"text": "a sentence of somebody else"},
    about_options.RemovedByMemory: {
        "needed_bytes": 20 * 2**30,
        "available_bytes": 16 * 2**30,
        "fitting_share": 0.5,
        "batch_size": 64,
        "fitting_batch_size": 32,
        "remedies": [{"changes": ["checkpointing"], "needed_bytes": 12 * 2**30, "slower": 1.3}],
    },
    about_options.RemovedBySharding: {"num_ranks": 8, "num_gpus": 1},
    about_options.RemovedBySoftware: {"compute_capability": "3.7"},
    about_options.RemovedByAttention: {
        "gpu": "T4",
        "backends": ["flash"],
        "dtype": "float16",
        "head_size": 64,
    },
    about_estimates.TimeOfUnsupportedGpu: {
        "gpu": "K80",
        "why": about_options.RemovedBySoftware(compute_capability="3.7"),
    },
    about_options.RemovedByQuota: {
        "num_vcpus": 192,
        "most_vcpus": 96,
        "instance_types": ("p*",),
        "region": "us-east-1",
        "provider": "aws",
    },
    about_options.RemovedBySpot: {
        "training_h": 73.5,
        "cost_usd": 80.0,
        "checkpoint_interval_h": None,
        "on_demand_h": 12.0,
        "best": {"checkpoint_interval_h": 0.5, "training_h": 14.0, "cost_usd": 15.0},
    },
    about_options.RemovedByBudget: {"cost_usd": 30.0, "budget_usd": 20.0, "p": 0.25},
    about_options.RemovedByDeadline: {"time_s": 7200.0, "deadline_s": 3600.0, "p": 0.25},
    about_options.RemovedByPolicy: {
        "rule": "deny.regions: us-*",
        "file": "org.yaml:7",
        "detail": "region us-1 is among them",
    },
    about_options.Alike: {
        "num_options": 2,
        "num_of_other_gpus": 1,
        "other_gpus": ["8 x H200-SXM-141GB"],
        "faster_s": 18.0,
        "slower_s": 90.0,
        "cheaper_usd": 0.02,
        "dearer_usd": 9.48,
    },
    about_options.ApprovalNeeded: {
        "by": "team lead",
        "file": "org.yaml:9",
        "detail": "the job costs $120.00 at p90",
    },
    about_options.PlaceContended: {"is_taken_back": False},
    about_options.QueueAssumed: {"num_jobs": 9000, "num_logs": 5, "size": "2..8", "walltime": None},
    about_options.QuotaNeeded: {
        "provider": "aws",
        "quota": "L-417A185B",
        "name": "Running On-Demand P instances",
        "count": 96,
        "unit": "vCPU",
        "region": "us-east-1",
    },
    about_options.Reading: {
        "gib": 3000.0,
        "time_s": 515.0,
        "read_s": 0.2,
        "bytes_per_s": 6.25e9,
        "bits_per_s": 100e9,
        "by_storage": True,
    },
    about_options.DataMoved: {"place": "s3://bucket", "gib": 3000.0, "usd": 60.0, "time_s": 4800.0},
    about_options.GlobalBatchHeld: {"source": "seen", "global_batch_size": 256, "batch_size": 64},
    about_options.ScalingAssumed: {"batch_size": None, "num_gpus": 8},
    about_estimates.CorrectedByReceipts: {"num_runs": 12, "num_jobs": 3, "factor": 1.07, "band": 0.82},
    about_estimates.Drift: {"gpu": "L4", "num_runs": 5, "num_outside": 4, "ratio": 1.18},
    about_estimates.BatchVariation: {"variation": 0.38, "waits": True},
    about_estimates.Supposed: {"split": "zero-3"},
    about_estimates.ShardModel: {"sharding": "zero-3"},
    about_estimates.DivideLayers: {"tensor": 8, "pipeline": 2},
    about_estimates.AttentionUnfused: {"gpu": "T4", "dtype": "bfloat16", "head_size": 64},
    about_estimates.BatchNotProfiled: {"share": 0.25, "batch": 0.5, "exponent": 0.73},
    about_options.GpuInUse: {
        "gpu_index": 1,
        "busy_share": 0.92,
        "used_bytes": 40 * 2**30,
        "memory_bytes": 80 * 2**30,
    },
    about_options.RemovedByHostMemory: {"needed_bytes": 18e9, "available_bytes": 16 * 2**30},
    about_options.MemoryTight: {
        "needed_bytes": 15 * 2**30,
        "needed_p90_bytes": 17 * 2**30,
        "available_bytes": 16 * 2**30,
    },
    about_options.InputAssumed: {
        "kind": "image",
        "cpu_s_per_sample": {"p10": 0.003, "p50": 0.006, "p90": 0.01},
    },
    about_options.InputBound: _LOADING,
    about_options.MoreVcpus: {
        "instance_type": "g5.16xlarge",
        "vcpus_per_gpu": 64.0,
        "time_s": 7200.0,
        "cost_usd": 8.0,
        "instead_of_time_s": 14400.0,
        "instead_of_cost_usd": 9.0,
    },
    about_options.LaterStart: {
        "delay_h": 8,
        "start_at": "2026-11-01T20:00:00+00:00",
        "saving_usd": 4.0,
        "spread_usd": 1.0,
        "usd": 20.0,
        "num_days": 29,
    },
    about_options.NearTie: {"plan_id": "X", "p_slower": 0.75, "is_on_frontier": True},
    about_options.CommunityHost: {"provider": "vast"},
    about_options.PriceDerived: {"source": "derived from x"},
    about_options.TimedOnCpu: {"cpu": "AMD EPYC 7B13", "num_vcpus": 4, "num_steps": 8},
    about_options.RateUnknown: {
        "line": "storage",
        "provider": "aws",
        "region": "ap-southeast-3",
        "usd": 0.152,
        "unit": "GiB-month",
        "dearest_provider": "aws",
        "dearest_region": "sa-east-1",
    },
    about_options.RentOrWait: {
        "own_id": "cluster/lab/1xT4",
        "rented_id": "X",
        "value_usd_per_h": 10.0,
        "break_even_wait_s": 3600.0,
        "mean_wait_s": None,
    },
    about_options.Tie: {"plan_id": "X", "within_share": 0.05},
    about_options.GangAssumed: {"num_nodes": 2, "p_at_once": 0.6, "times_of_one": 1.19},
    about_estimates.StartOnNodes: {"num_nodes": 2, "gpus_per_node": 8, "is_rented": True},
    about_options.WaitAssumed: {
        "p_at_once": 0.63,
        "later_p50_s": 4090.0,
        "later_p90_s": 40500.0,
        "basis": "fitted",
        "num_traces": 47,
        "source": "traces",
        "as_of": "2026-11-22",
    },
    about_options.WaitOfStarts: {"p_at_once": 0.8, "watched_h": 340.0},
    about_options.WaitOfLog: {
        "num_jobs": 1812,
        "size": "4..7",
        "size_unit": "gpus",
        "walltime": "<=12h",
        "queue": "gpu",
    },
    about_options.RemovedByQueue: {
        "of": "QOS normal",
        "name": "MaxWall",
        "what": "time",
        "most": 43200.0,
        "asked": 100000.0,
    },
    about_options.QueueShared: {
        "of": "QOS normal",
        "name": "MaxTRESPU",
        "what": "gpus",
        "most": 4.0,
        "asked": 2.0,
        "in_use": 3.0,
    },
    about_options.Risk: {
        "of": "preemption",
        "num_nodes": 1,
        "preemptions_per_h": 0.1,
        "times_of_one": 1.0,
        "rate_source": about_options.PreemptionRate(of="assumed", **_TRACES),
        "price_rise": 1.25,
        "recovery": "move-or-on-demand",
        "num_zones": 2,
    },
    about_options.PreemptionRate: {
        **_TRACES,
        "num_preemptions": 12,
        "up_h": 340.0,
        "is_floor": False,
        "low_pct": 5,
        "high_pct": 10,
        "least_preemptions_per_h": 7e-5,
    },
    about_estimates.StartWithTorchrun: {"library": "transformers"},
    about_estimates.RetuneLearningRate: {"global_batch_size": 256, "batch_size": 64},
    about_estimates.SaveCheckpoints: {"interval_s": 1800.0, "best_interval_s": 3600.0, "assumed_of": None},
    about_estimates.AddCheckpoints: {
        "interval_s": 1800.0,
        "best_interval_s": 3600.0,
        "script": "train.py",
        "saves": False,
        "saved_at": None,
    },
    about_options.RestartsFromZero: {"script": "train.py", "saves": False},
    about_estimates.CalibratedRates: {"reached_share": {"gemm": 0.9}},
    about_estimates.RooflineConstants: {
        "source": about_estimates.Constant(of="assumed", architecture=None),
        "rates_by_constant": {"gemm": ["bf16", "fp16"], "streaming": []},
    },
    about_estimates.DataParallel: {"bucket_bytes": 25 * 2**20, "slowdown": 0.3, "spread": 0.04},
    about_estimates.HostLaunches: {
        "kernel_s": 2e-6,
        "operator_s": 5e-6,
        "launching_s": {"p10": 0.014, "p50": 0.023, "p90": 0.038},
    },
    about_estimates.MemoryByPart: {"fragmentation_p50": 0.05, "fragmentation_p90": 0.12},
    about_estimates.NotLearned: {"families": ["conv", "norm"], "partly": ["norm"]},
    about_estimates.OtherWorld: {"num_ranks": 8, "num_gpus": 1},
    about_estimates.RecurrentOfUnknownSize: {"share_of_rate": 0.25},
    about_estimates.Sharded: {"num_gpus": 8},
    about_estimates.StepCompiled: {"mode": "default"},
    about_estimates.PowerLimited: {"limit_w": 500.0, "tdp_w": 700.0, "slowdown": 1.1},
    about_estimates.KernelsDoubtful: {"constant": "gemm_fraction.fp16", "num_kernels": 3, "spread": 0.69},
    about_answers.BestOfTotal: {
        "value_usd_per_h": 10.0,
        "cost_usd": 20.0,
        "time_s": 3600.0,
        "change_s": 1800.0,
        "change_usd": 25.0,
        "work": ["ddp"],
        "is_price_derived": True,
    },
    about_answers.Cheapest: {
        "is_cost_known": True,
        "is_guess_below": False,
        "is_rent_below": True,
        "work": [],
        "change_usd": 0.0,
    },
    about_answers.Fastest: {"work": []},
    about_answers.CostOfPickUnknown: {"rule": about_answers.Fastest(work=[])},
    about_answers.ObjectiveOfPolicy: {"reason": about_answers.Fastest(work=[])},
    about_answers.DataRegionUnknown: {"place": "s3://bucket", "provider": "aws"},
    about_answers.OptInRegions: {"num_offers": 12, "regions": ["ap-east-1", "me-south-1"]},
    about_answers.AssumedOfOptions: {"num_assumed": 230, "num_options": 232},
    about_answers.Safest: {
        "limits": ["budget"],
        "p_met": 0.95,
        "is_preemptible": False,
        "cost_p90_usd": 15.0,
        "is_cost_known": True,
    },
    about_answers.Machine: _MACHINE.facts,
    about_answers.ChangeCosts: {"machine": _MACHINE, **_BEFORE_AND_AFTER, **_AFTER},
    about_answers.ChangeEndsAll: {"machine": _MACHINE},
    about_answers.ChangeMoves: {"was_possible": True, "machine": _MACHINE, **_AFTER},
    about_answers.ChangeOfMemory: {
        "base_bytes": 71 * 2**30,
        "head_bytes": 83 * 2**30,
        "no_longer": ("A100-SXM-80GB",),
        "newly": (),
    },
    about_answers.ChangeRulesOut: {
        "machine": _MACHINE,
        "why": quoted("too large"),
        "instead": _MACHINE,
        **_BEFORE_AND_AFTER,
        **_AFTER,
    },
    about_answers.SummaryChoice: {"machine": _MACHINE, "is_rented": True, "priced_on": "2026-11-20"},
    about_answers.SummaryCostAndTime: {
        "cost_p50_usd": 8.0,
        "cost_p90_usd": 12.0,
        "time_p50_s": 7200.0,
        "time_p90_s": 9000.0,
        "num_iterations": 12_500,
        "iteration_s": 0.508,
        "is_cost_known": True,
        "is_whole": True,
        "restarts": False,
    },
    about_answers.SummaryDoubt: {"tipped_by": None},
    about_answers.Tipping: {"work": ["ddp"]},
    about_answers.SummaryWork: {
        "work": ["ddp", "checkpoints"],
        "work_usd": 50.0,
        "work_s": 3600.0,
        "script": "train.py",
        "saves": False,
    },
    about_spending.GpuFamily: {"name": "A100", "gpus": ["A100-PCIE-40GB", "A100-SXM-40GB"]},
    about_spending.PricesComputed: {"num_computed": 1, "num_prices": 2, "source_begins": "derived from"},
    about_spending.PricesImplausible: {
        "num_prices": 1,
        "source": "aws",
        "examples": "p5.48xlarge use1-az1 spot 0.01 USD/h",
        "is_kept": False,
    },
    about_spending.PricesNotLive: {
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
    about_spending.PricesStale: {
        "examples": ["aws p5 on-demand in us-east-1"],
        "num_machines": 2,
        "num_prices": 3,
        "sources": ["snapshot"],
        "is_kept": True,
    },
    about_answers.EpochLengthUnknown: {"script": "train.py", "is_of_profiler": False, "has_loader": True},
    about_answers.TooManyEpochs: {"epochs": 1e9, "iterations_per_epoch": 1000, "most_iterations": 10**10},
    about_traces.BatchesDiffer: {"smallest": 12, "largest": 64, "batch_size": 64},
    about_traces.BatchesWarmUp: {
        "first_size": 16,
        "nominal_size": 64,
        "num_batches": 4,
        "batch_size": 16,
        "factor": 4,
    },
    about_traces.CredentialsInSight: {"path": "/home/me/.aws"},
    about_traces.FakeData: {"data_set": "ImageNet", "error": "OSError: no such folder", "num_samples": None},
    about_traces.IterationSeen: {"num": 5, "names": ["Adam", "SGD"]},
    about_traces.LengthAssumed: {
        "num_samples": 10**8,
        "num_batches": 10**6,
        "num_iterations": 20019,
        "others": [5, None],
    },
    about_traces.OffloadUncounted: {"parts": ["optimizer", "parameters"]},
    about_traces.ProfiledWithoutGpu: {"reason": "the GPU has no memory left"},
    about_traces.StepsDiffer: {"num_steps": 16, "lightest": 0.8, "heaviest": 1.15},
    about_traces.TorchUntested: {"version": "2.14.0", "tested": "2.13", "is_newer": True},
    about_traces.VariablesWithheld: {"names": ["DB_PASS", "SLACK_WEBHOOK"]},
}
"""By class; one that is not here has no facts."""

F = TypeVar("F", bound=Finding)


def sample(kind: type[F], **facts: Fact) -> F:
    """A finding of this kind, with these facts; others are made up by their types."""
    hints = get_type_hints(kind)
    made = {name: _fact(name, hints[name]) for name in kind.fact_names}
    return kind(**{**made, **FACTS.get(kind, {}), **facts})


def samples(kind: type[F]) -> Iterator[F]:
    """A finding of this kind for each value of its first fact."""
    hint = get_type_hints(kind)[kind.fact_names[0]] if kind.fact_names else None
    for value in get_args(hint) if get_origin(hint) is Literal else ():
        yield sample(kind, **{kind.fact_names[0]: value})
    yield sample(kind)


def _fact(name: str, hint: Any) -> Any:
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    if get_origin(hint) is UnionType:
        return _fact(name, get_args(hint)[0])
    if get_origin(hint) is Sequence:
        return [_fact(name, get_args(hint)[0])]
    if get_origin(hint) is Mapping:
        return {name: _fact(name, get_args(hint)[1])}
    return {str: name, Any: {name: name}, int: 2, float: 0.5, bool: True, Finding: quoted(name)}[hint]


def of_child(notices: Iterable[Notice]) -> list[str]:
    """The sentences of what a child warns of."""
    return named(warning_of(known_warning(one["code"]), one["facts"]) for one in notices)


def among(findings: Iterable[Finding]) -> set[object]:
    """These findings, and their classes."""
    found = tuple(findings)
    return {*found, *map(type, found)}


def named(findings: Iterable[Finding]) -> list[str]:
    """The sentences, with names of arguments in backquotes."""
    return list(map(in_names, findings))


def texts(*findings: str) -> tuple[Finding, ...]:
    """Sentences that no engine makes."""
    return tuple(map(quoted, findings))


def said(findings: Iterable[Finding]) -> str:
    """The sentences, a line each."""
    return "\n".join(sentences(findings))
