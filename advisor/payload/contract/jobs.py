"""What the parent writes: what a child is to do."""

from __future__ import annotations

from typing import TypedDict

from .kinds import OperatorPhase


class Job(TypedDict):
    """What each job has, whatever is to be done."""

    version: int
    module: str  # of the payload, whose ``run`` takes the job
    result: str


class Gpu(TypedDict):
    """The GPU that the script believes it has."""

    name: str
    compute_capability: str
    num_sms: int
    memory_bytes: int


class SampleField(TypedDict):
    """A field of a fake sample: ``class`` of ``shape[0]`` classes, or a tensor of this dtype."""

    name: str | None
    shape: list[int]
    kind: str


class FakeSamples(TypedDict):
    """What takes the place of the script's data."""

    fields: list[SampleField]
    num_samples: int | None


class ScriptJob(Job):
    """A script, or a function that is named like one."""

    script: str
    arguments: list[str]
    backend: str
    gpu: Gpu
    fake_data: FakeSamples | None
    world_size: int | None
    withheld: list[str]  # names of the user's variables that the script does not get
    skip_patches: list[str]
    shortcuts: bool
    progress: str
    timeline: str


class Call(TypedDict):
    """One call of an operator, as ``advisor/operators/case.py`` describes its arguments."""

    operator: str
    arguments: list[object]
    keywords: dict[str, object]
    results: list[str]


class Case(TypedDict):
    """A kernel to measure."""

    key: str
    dtype: str
    tf32: bool
    phase: OperatorPhase
    prepare: list[Call]
    call: Call


class MeasuringJob(Job):
    """A grid of kernels."""

    backend: str
    cases: list[Case]
    reference: Case
    progress: str
