"""How much a DataLoader holds: samples and batches of an epoch on one GPU."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sized
from types import FrameType
from typing import TypeVar, cast

import torch

from ..protocol import Iteration, Loading, Notice, Operator, OperatorFlow, Warned, notice


def length(value: object) -> int | None:
    """``len``, None where there is none."""
    try:
        return len(cast("Sized", value))
    except (TypeError, NotImplementedError):
        return None


def samples_of_epoch(loader: torch.utils.data.DataLoader[object]) -> int | None:
    """Samples of an epoch of the whole data set, however many ranks share it."""
    # A sampler may take a part of the data set or some samples twice.
    if isinstance(loader.dataset, torch.utils.data.IterableDataset):
        return length(loader.dataset)
    sampler: object = getattr(loader.batch_sampler, "sampler", None) or loader.sampler
    # Ultralytics' loader never ends because its batch sampler repeats another one.
    while isinstance(sampler, torch.utils.data.BatchSampler):
        sampler = getattr(sampler, "sampler", None)
    if _num_ranks(loader) > 1:
        # A rank's share is rounded up, so the data set knows better than all shares together.
        return length(getattr(sampler, "dataset", loader.dataset))
    return length(sampler) or length(loader.dataset)


def batches_of_epoch(loader: torch.utils.data.DataLoader[object]) -> int | None:
    """Batches of an epoch on one GPU: a rank's share times the ranks."""
    own = length(loader)
    return None if own is None else own * _num_ranks(loader)


def _num_ranks(loader: torch.utils.data.DataLoader[object]) -> int:
    """Among how many ranks the loader's samplers divide an epoch."""
    batch_sampler = loader.batch_sampler
    # DistributedSampler and its kind, and the batch samplers of Hugging Face's accelerate.
    for sampler in (getattr(batch_sampler, "sampler", None), loader.sampler, batch_sampler):
        for name in ("num_replicas", "num_processes"):
            count = getattr(sampler, name, None)
            if isinstance(count, int) and count > 1:
                return count
    return 1


def leading_dimension(batch: object) -> int | None:
    """The first dimension of the first tensor in a batch."""
    return next((tensor.shape[0] for tensor in _tensors(batch) if tensor.dim() > 0), None)


def num_elements(batch: object) -> int:
    """Elements of the largest tensor in a batch: padded tokens, pixels; 0 without one."""
    return max((tensor.numel() for tensor in _tensors(batch)), default=0)


def _tensors(batch: object) -> Iterator[torch.Tensor]:
    if isinstance(batch, torch.Tensor):
        yield batch
        return
    # Mappings first: Hugging Face's BatchEncoding is one without being a dict.
    if hasattr(batch, "values") and hasattr(batch, "keys"):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        for item in batch:
            yield from _tensors(item)


def samples_of(span: Iteration) -> int:
    """What the DataLoader gave in an iteration; 0 where there is none or it is unknown."""
    loading = span["loading"]
    return (loading["samples"] or 0) if loading is not None else 0


# The batch that a YOLO script steps at once its warm-up is over.
#
# YOLO begins with one batch a step and accumulates more over thousands of iterations, up to its nominal batch
# size (``nbs``). What the first steps hold is then known to be less than what training holds.

Number = TypeVar("Number", int, float)
_BATCH = "advisor::h2d_copy"
_NOMINAL, _ACCUMULATED = "nbs", "accumulate"


def nominal_batch(frame: FrameType | None) -> int | None:
    """The nominal batch size of the script whose frames led here; None if it names none."""
    while frame is not None:
        code = frame.f_code
        if {_NOMINAL, _ACCUMULATED} <= {
            *code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars
        }:  # fmt: skip
            variables = dict(frame.f_locals)
            # Until Python 3.13 a function's frame keeps what was read of it: a batch of the GPU's memory.
            if code.co_flags & inspect.CO_OPTIMIZED and isinstance(frame.f_locals, dict):
                frame.f_locals.clear()
            nominal = _named(variables)
            if nominal is not None:
                return nominal
        frame = frame.f_back
    return None


def _named(names: Mapping[str, object]) -> int | None:
    # YOLOv5 to v7 have local variables, Ultralytics a trainer with its settings in `args`.
    trainer = getattr(names.get("self"), "__dict__", {})  # not by getattr, which would run the script's code
    scopes = [names, trainer, getattr(trainer.get("args"), "__dict__", {})]
    if not any(_count(scope.get(_ACCUMULATED)) for scope in scopes):
        return None  # `nbs` may as well be a number of batches
    return next((size for scope in scopes if (size := _count(scope.get(_NOMINAL)))), None)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def at_nominal_batch(span: Iteration, nominal: int | None, num_ranks: int) -> tuple[Iteration, list[Notice]]:
    """The iteration as it is after the warm-up, and a warning; as it was if it holds that much already.

    Forward and backward passes, what they load and what ranks send are counted as often as they will run.
    From the second of them on the gradients are in memory, too.
    """
    loading = span["loading"]
    if nominal is None or not loading or not loading["batch_sizes"] or not loading["fetches"]:
        return span, []
    batch = loading["batch_sizes"][1]
    passes = max(1, loading["fetches"] // max(1, span["most_steps"]))
    wanted = max(1, round(nominal / (batch * num_ranks)))
    factor = wanted // passes
    if factor < 2:
        return span, []
    is_measured = "iteration_s" in span
    warning = notice(
        Warned.BATCHES_WARM_UP,
        first_size=passes * batch,
        nominal_size=nominal,
        num_batches=wanted,
        batch_size=batch,
        factor=None if is_measured else factor,
    )
    return span if is_measured else _grown(span, loading, factor), [warning]


def _grown(span: Iteration, loading: Loading, factor: int) -> Iteration:
    pairs = list(zip(span["operators"], span["calls"], strict=True))
    begin = min((n for entry, own in pairs if entry["name"] == _BATCH for n in own), default=0)
    end = max((n for entry, own in pairs if entry["phase"] == "backward" for n in own), default=begin)

    def more(entry: Operator, own: list[int]) -> int:
        is_passed = entry["phase"] != "optimizer"
        return (factor - 1) * sum(begin <= number <= end for number in own) if is_passed else 0

    operators: list[Operator] = [
        {**entry, "count": entry["count"] + more(entry, own)} for entry, own in pairs
    ]
    memory = span["memory"]
    gradient_bytes, pass_peak_bytes = memory["gradient_bytes"], memory["pass_peak_bytes"]
    return {
        **span,
        "operators": operators,
        "flows": [
            _followed(own, after["count"]) for own, after in zip(span["flows"], operators, strict=True)
        ],
        "collectives": [{**entry, "count": entry["count"] * factor} for entry in span["collectives"]],
        "loading": {
            **loading,
            "fetches": loading["fetches"] * factor,
            "samples": _times(loading["samples"], factor),
            "seconds": _times(loading["seconds"], factor),
            "cpu_seconds": _times(loading["cpu_seconds"], factor),
        },
        "num_backward_passes": span["num_backward_passes"] * factor,
        "memory": {
            **memory,
            "peak_bytes": memory["peak_bytes"] + gradient_bytes,
            "pass_peak_bytes": None if pass_peak_bytes is None else pass_peak_bytes + gradient_bytes,
        },
    }


def _followed(flows: list[OperatorFlow], count: int) -> list[OperatorFlow]:
    """The flows of so many calls; where some calls are not of a pass, it is unknown which are more."""
    before = sum(flow["count"] for flow in flows)
    if not before or count % before:
        return []
    return [{**flow, "count": flow["count"] * (count // before)} for flow in flows]


def _times(value: Number | None, factor: int) -> Number | None:
    return None if value is None else value * factor


# Which library steps the optimizer, if it trains on several GPUs by itself once it is started on them.
#
# transformers' Trainer, accelerate and Lightning wrap the model, share out the data and hold back the
# exchange while gradients accumulate. A script of theirs needs no change for that, only another start.

# Whose code stands between the script and the optimizer: a module, or all below it.
_LIBRARIES = {
    "transformers.trainer": "transformers", "accelerate": "accelerate", "lightning": "lightning",
    "lightning_fabric": "lightning", "pytorch_lightning": "lightning",
}  # fmt: skip


def parallel_by(frame: FrameType | None) -> str | None:
    """The library among the callers of this frame, the outermost of several; None without one."""
    found = None
    while frame is not None:
        module = f"{frame.f_globals.get('__name__')}."
        found = next((name for top, name in _LIBRARIES.items() if module.startswith(f"{top}.")), found)
        frame = frame.f_back
    return found


# Functions that try learning rates or batch sizes before the training, of libraries and of scripts.
_TRIAL = re.compile(
    r"_*((lr|learning_rate)_?(find|finder|range_test)|find_(best_|optimal_)?(lr|learning_rate)|range_test"
    r"|scale_batch_size)"
)


def is_trial(frame: FrameType | None) -> bool:
    """Whether the step that this frame belongs to is one of a trial."""
    while frame is not None:
        if _TRIAL.fullmatch(frame.f_code.co_name.lower()):
            return True
        frame = frame.f_back
    return False


# Parameters of which DeepSpeed's ZeRO-3 leaves each rank a part, by the marks that it puts on them.
#
# The parameter itself is empty, or all of it for as long as it is gathered. Its gradients are in a buffer of
# their own, and not where torch keeps them: there is a piece of what is being exchanged.


def part_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """What this rank keeps of the parameter; None of one that is not partitioned."""
    part = getattr(tensor, "ds_tensor", None)
    return part if isinstance(part, torch.Tensor) else None


def gradient_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The parameter's gradient, where torch keeps it."""
    return None if hasattr(tensor, "ds_id") else tensor.grad
