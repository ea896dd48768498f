"""The child's recording (an internal format) -> Trace."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.errors import ProfileError
from advisor.profile.costs import cost_of
from advisor.trace_io import SCHEMA_VERSION, attribute_from_json, tensor_from_json
from advisor.types import (
    Collective,
    MemoryUse,
    Op,
    Phase,
    Precision,
    Trace,
)

FORMAT_VERSION = 1
Recording = Mapping[str, Any]


def read_recording(path: Path) -> Recording | None:
    """What the child wrote; None if it wrote nothing.

    Raises:
        ProfileError: the file is not a recording of this version.
    """
    try:
        recording = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ProfileError(
            f"the profiling process left a damaged recording ({error}). Please report this."
        ) from error
    if recording.get("format_version") != FORMAT_VERSION:
        raise ProfileError(
            "the profiling process and this advisor are of different versions: install gpu-advisor anew."
        )
    return dict(recording)


def trace_of(recording: Recording, script: str, arguments: Sequence[str]) -> Trace:
    """A trace of the recorded iteration, each operator with its cost."""
    ops, cost_warnings = _operators(recording["operators"])
    loading = _Loading(recording)
    return Trace(
        schema_version=SCHEMA_VERSION,
        script=script,
        arguments=tuple(arguments),
        backend="fake",
        origin_gpu=None,
        versions=dict(recording["versions"]),
        precision=Precision(amp_dtype=recording["amp_dtype"], **recording["precision"]),
        batch_size=loading.batch_size,
        samples_per_epoch=loading.samples_per_epoch,
        iterations_per_epoch=loading.iterations_per_epoch,
        accumulation=loading.accumulation,
        ops=ops,
        iteration_s=None,
        data_loading_s=loading.seconds,
        num_workers=loading.num_workers,
        memory=MemoryUse(**recording["memory"]),
        collectives=tuple(Collective(**entry) for entry in recording["collectives"]),
        warnings=(*recording["warnings"], *loading.warnings, *cost_warnings),
        world_size=recording["world_size"],
    )


class _Loading:
    """What the recorded DataLoader says about an epoch."""

    def __init__(self, recording: Recording) -> None:
        self.batch_size: int | None = None
        self.samples_per_epoch: int | None = None
        self.iterations_per_epoch: int | None = None
        self.seconds: float | None = None
        self.num_workers: int | None = None
        self.warnings: list[str] = []
        # Without a DataLoader, backward passes tell; but a GAN's networks have one each.
        single = recording["num_optimizers"] <= 1
        self.accumulation = max(1, recording["num_backward_passes"]) if single else 1
        loading = recording["loading"]
        if loading is None:
            self.warnings.append(
                "the script uses no torch DataLoader: batch size and samples per epoch are unknown"
            )
        else:
            self._read(loading)

    def _read(self, loading: Mapping[str, Any]) -> None:
        self.num_workers = loading["num_workers"]
        self.samples_per_epoch = loading["num_samples"]
        if loading["fetches"] == 0:
            self.warnings.append(
                "no batch was loaded during the recorded iteration: the batch size is unknown"
            )
            return
        self.accumulation = loading["fetches"]
        self.seconds = loading["seconds"]
        self.batch_size = loading["samples"]
        if loading["num_batches"] is not None:
            self.iterations_per_epoch = math.ceil(loading["num_batches"] / self.accumulation)
        elif self.samples_per_epoch is None:
            self.warnings.append(
                "the script's data has no length: give the number of iterations, not of epochs"
            )


def _operators(entries: Sequence[Mapping[str, Any]]) -> tuple[tuple[Op, ...], list[str]]:
    warnings: dict[str, None] = {}
    ops = []
    for entry in entries:
        inputs = tuple(tensor_from_json(item) for item in entry["inputs"])
        outputs = tuple(tensor_from_json(item) for item in entry["outputs"])
        attributes = {name: attribute_from_json(value) for name, value in entry["attributes"].items()}
        cost = cost_of(entry["name"], inputs, outputs, attributes)
        if cost.warning is not None:
            warnings[cost.warning] = None
        ops.append(
            Op(
                name=entry["name"],
                phase=Phase(entry["phase"]),
                inputs=inputs,
                outputs=outputs,
                attributes=attributes,
                flops=cost.flops,
                bytes=cost.bytes,
                count=entry["count"],
            )
        )
    return tuple(ops), list(warnings)
