"""The largest batch that fits, confirmed: the script is profiled again with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.core.errors import InputError
from advisor.core.values import Confirmation, IterationEstimate, Trace
from advisor.service.traces import TraceRequest, holds_data, trace_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.config.layers import TracingSettings
    from advisor.service.listening import Listener


def check_confirmable(request: TraceRequest, num_gpus: int, listener: Listener) -> None:
    """Refuse what cannot be profiled again.

    Args:
        request: the script.
        num_gpus: GPUs and numbers of them that are asked about.
        listener: knows what its caller names an argument.

    Raises:
        InputError: there is no script, or more than one GPU is asked about.
    """
    name = listener.name_of("confirm")
    if holds_data(request.source):
        raise InputError(f"{name} profiles the script again, and {str(request.source)!r} is a saved trace.")
    if num_gpus != 1:
        raise InputError(f"{name} is for one GPU, whose largest batch it profiles: name one, such as L4.")


def confirmation_of(
    request: TraceRequest,
    trace: Trace,
    estimate: IterationEstimate,
    predicted: Callable[[Trace], IterationEstimate],
    tracing: TracingSettings,
    listener: Listener,
) -> Confirmation:
    """What the script needs with the largest batch that is likely to fit.

    Args:
        request: the script as it was profiled.
        trace: of it.
        estimate: of it on the GPU in question.
        predicted: the estimate of another trace there.
        tracing: how scripts are profiled.
        listener: hears progress.

    Raises:
        InputError: nothing fits, or the script does not take its batch as an argument.
        ProfileError: the script yields no iteration with that batch.
    """
    from advisor.predict.fitting import arguments_of_largest

    arguments = (
        None if estimate.largest_batch is None else arguments_of_largest(trace, estimate.largest_batch)
    )
    if arguments is None:
        raise InputError(
            f"{listener.name_of('confirm')}: the batch of {trace.script!r} cannot be set: no argument has its"
            " size and a name with 'batch', or not even a batch of one fits."
        )
    again = trace_of(replace(request, arguments=tuple(arguments)), tracing, listener)
    return Confirmation(arguments=tuple(arguments), batch_size=again.batch_size, estimate=predicted(again))
