"""What the settings say of an input pipeline, put in the place of what the trace knows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.core.errors import InputError
from advisor.core.values import Trace
from advisor.service.listening import Listener

if TYPE_CHECKING:
    from advisor.config.settings import InputSettings


def with_input(trace: Trace, settings: InputSettings, listener: Listener) -> Trace:
    """The trace with the workers and loader seconds of the settings.

    Raises InputError: seconds for one sample are given, and how many an iteration has is unknown.
    """
    if settings.num_workers is not None:
        trace = replace(trace, num_workers=settings.num_workers)
    if settings.loader_s_per_sample is not None:
        return _given(trace, settings.loader_s_per_sample, listener)
    return _at_speed(trace, settings.vcpu_speed)


def _given(trace: Trace, seconds: float, listener: Listener) -> Trace:
    from advisor.predict.loading import num_copied

    if trace.batch_size is None and num_copied(trace) is None:
        name = listener.name_of("input.loader_s_per_sample")
        raise InputError(
            f"{name} is of one sample, and {trace.script!r} does not tell how many an iteration has:"
            " leave it out."
        )
    return replace(trace, loader_cpu_s_per_sample=seconds, data_loading_s=None)


def _at_speed(trace: Trace, speed: float) -> Trace:
    """The measured CPU seconds on vCPUs of that speed; disks and networks take what they took."""
    each_s, whole_s, count = trace.loader_cpu_s_per_sample, trace.data_loading_s, trace.batch_size
    if each_s is None or count is None:
        return replace(trace, data_loading_s=None if whole_s is None else whole_s / speed)
    saved_s = each_s * count * (1 - 1 / speed)
    return replace(
        trace,
        loader_cpu_s_per_sample=each_s / speed,
        data_loading_s=None if whole_s is None else max(0.0, whole_s - saved_s),
    )
