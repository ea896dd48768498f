"""The child's recording (an internal format) -> Trace."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from advisor.errors import ProfileError
from advisor.gpus import resolve_gpu
from advisor.profile.costs import cost_of
from advisor.profile.environment import redact
from advisor.profile.epoch import epoch_of
from advisor.profile.launches import kernels_of, merged
from advisor.profile.timeline import Timeline
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
_FOR_PEOPLE = ("message", "traceback", "warnings", "refused")
Recording = Mapping[str, Any]


def read_recording(path: Path) -> Recording | None:
    """What the child wrote, without secrets in what a person reads; None if it wrote nothing.

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
    return {**recording, **{key: _shown(recording[key]) for key in _FOR_PEOPLE if recording.get(key)}}


def _shown(words: str | Sequence[str]) -> str | list[str]:
    if isinstance(words, str):
        return redact(words, os.environ)
    return [redact(text, os.environ) for text in words]


def trace_of(
    recording: Recording, script: str, arguments: Sequence[str], timeline: Timeline | None = None
) -> Trace:
    """A trace of the recorded iteration, each operator with its cost.

    Args:
        recording: what the child wrote.
        script: as the user named it.
        arguments: the script's command line, without secrets.
        timeline: what the calls ran on a real GPU.

    Raises:
        UnknownGpuError: the GPU that it ran on is not in the catalog.
    """
    ops, warnings = operators_of(recording["operators"])
    if timeline is not None:
        ops = _measured(ops, recording["calls"], timeline)
        warnings += _timeline_warnings(timeline)
    device = recording.get("device_name")
    loading = epoch_of(recording)
    return Trace(
        schema_version=SCHEMA_VERSION,
        script=script,
        arguments=tuple(arguments),
        backend=recording["backend"],
        origin_gpu=None if device is None else resolve_gpu(device).name,
        versions=dict(recording["versions"]),
        precision=Precision(amp_dtype=recording["amp_dtype"], **recording["precision"]),
        batch_size=loading.batch_size,
        samples_per_epoch=loading.samples_per_epoch,
        iterations_per_epoch=loading.iterations_per_epoch,
        accumulation=loading.accumulation,
        ops=ops,
        iteration_s=recording.get("iteration_s"),
        data_loading_s=loading.seconds,
        num_workers=loading.num_workers,
        memory=MemoryUse(**recording["memory"]),
        collectives=tuple(Collective(**entry) for entry in recording["collectives"]),
        warnings=(*recording["warnings"], *loading.warnings, *warnings),
        world_size=recording["world_size"],
        is_sharded=recording["is_sharded"],
    )


def operators_of(entries: Sequence[Mapping[str, Any]]) -> tuple[tuple[Op, ...], list[str]]:
    """Recorded operators with their cost, and warnings of those whose cost is not known."""
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
                measured_s=entry.get("measured_s"),
            )
        )
    return tuple(ops), list(warnings)


def _measured(ops: Sequence[Op], calls: Sequence[Sequence[int]], timeline: Timeline) -> tuple[Op, ...]:
    """Each call with what it ran; calls that launched the same kernels are counted together."""
    single = []
    for op, numbers in zip(ops, calls, strict=True):
        for number in numbers:
            events = timeline.by_call.get(number, ())
            seconds = sum(event.duration_s for event in events)
            single.append(replace(op, count=1, measured_s=seconds, kernels=kernels_of(events)))
    return merged(single)


def _timeline_warnings(timeline: Timeline) -> list[str]:
    if not timeline.unmarked:
        return []
    found = f"{len(timeline.unmarked)} kernels ({timeline.unmarked_share:.1%} of the GPU's time)"
    return [f"{found} were launched by no operator that torch dispatches; they are left out"]
