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
    about_answers.CurveStops: {
        "machine": _MACHINE,
        "next_num_gpus": 8,
        "usd_per_h_saved": 31.0,
        "change_usd": 25.0,
        "value_usd_per_h": 2.0,
    },
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
    about_options.RemovedBySpot: {
        "training_h": 73.5,
        "cost_usd": 80.0,
        "checkpoint_interval_h": None,
        "on_demand_h": 12.0,
        "best": {"checkpoint_interval_h": 0.5, "training_h": 14.0, "cost_usd": 15.0},
    },
    about_options.QueueAssumed: {"num_jobs": 9000, "num_logs": 5, "size": "2..8", "walltime": None},
    about_options.GlobalBatchHeld: {"source": "seen", "global_batch_size": 256, "batch_size": 64},
    about_options.ScalingAssumed: {"batch_size": None, "num_gpus": 8},
    about_estimates.ShardModel: {"sharding": "zero-3"},
    about_estimates.DivideLayers: {"tensor": 8, "pipeline": 2},
    about_options.InputAssumed: {
        "kind": "image",
        "cpu_s_per_sample": {"p10": 0.003, "p50": 0.006, "p90": 0.01},
    },
    about_options.InputBound: _LOADING,
    about_options.LaterStart: {
        "delay_h": 8,
        "start_at": "2026-11-01T20:00:00+00:00",
        "saving_usd": 4.0,
        "spread_usd": 1.0,
        "usd": 20.0,
        "num_days": 29,
    },
    about_options.RentOrWait: {
        "own_id": "cluster/lab/1xT4",
        "rented_id": "X",
        "value_usd_per_h": 10.0,
        "break_even_wait_s": 3600.0,
        "mean_wait_s": None,
    },
    about_options.Tie: {"plan_id": "X", "within_share": 0.05},
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
    about_estimates.SaveCheckpoints: {"interval_s": 1800.0, "best_interval_s": 3600.0, "assumed_of": None},
    about_estimates.AddCheckpoints: {
        "interval_s": 1800.0,
        "best_interval_s": 3600.0,
        "script": "train.py",
        "saves": False,
        "saved_at": None,
    },
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
    about_answers.Machine: _MACHINE.facts,
    about_answers.ChangeCosts: {"machine": _MACHINE, **_BEFORE_AND_AFTER, **_AFTER},
    about_answers.ChangeEndsAll: {"machine": _MACHINE},
    about_answers.ChangeMoves: {"was_possible": True, "machine": _MACHINE, **_AFTER},
    about_answers.ChangeRulesOut: {
        "machine": _MACHINE,
        "why": quoted("too large"),
        "instead": _MACHINE,
        **_BEFORE_AND_AFTER,
        **_AFTER,
    },
    about_answers.SummaryChoice: {"machine": _MACHINE, "is_rented": True, "priced_on": "2026-11-20"},
    about_answers.SummaryDoubt: {"tipped_by": None},
    about_answers.Tipping: {"work": ["ddp"]},
    about_answers.SummaryWork: {
        "work": ["ddp", "checkpoints"],
        "work_usd": 50.0,
        "work_s": 3600.0,
        "script": "train.py",
        "saves": False,
    },
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
    about_traces.FakeData: {"data_set": "ImageNet", "error": "OSError: no such folder", "num_samples": None},
}
"""By class; one that is not here has no facts."""

F = TypeVar("F", bound=Finding)


def sample(kind: type[F], **facts: Fact) -> F:
    """A finding of this kind, with these facts; others are made up by their types."""
    hints = get_type_hints(kind)
    made = {name: _fact(name, hints[name]) for name in kind.fact_names}
    return kind(**{**made, **FACTS.get(kind, {}), **facts})


def samples(kind: type[F]) -> Iterator[F]:
    """A finding of this kind, and one for each other value of a fact that has few."""
    yield sample(kind)
    for name, hint in get_type_hints(kind).items():
        others = (False,) if hint is bool else get_args(hint) if get_origin(hint) is Literal else ()
        if name in kind.fact_names:
            yield from (sample(kind, **{name: value}) for value in others)


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
