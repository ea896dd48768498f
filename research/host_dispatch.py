"""What each tensor of an optimizer's list costs the host: ``python -m research.host_dispatch``.

A fused step is one call over all parameters. Its kernel works on tensors of four numbers here; what is left
is how PyTorch collects, groups and unpacks them, on a GPU as on a CPU. Operators themselves are measured on
GPUs (``research.host_steps``): a CPU's have no launch, and fake tensors pass through Python.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

RUNS, REPEATS = 50, 5
FEW, MANY = 20, 220


def _parameters(count: int) -> list[torch.nn.Parameter]:
    parameters = [torch.nn.Parameter(torch.zeros(4)) for _ in range(count)]
    for parameter in parameters:
        parameter.grad = torch.zeros(4)
    return parameters


def cpu_s(call: Callable[[], object]) -> float:
    """Least CPU seconds of one call, whatever else the machine does."""

    def once() -> float:
        begin = time.thread_time()
        for _ in range(RUNS):
            call()
        return (time.thread_time() - begin) / RUNS

    return min(once() for _ in range(REPEATS))


def tensor_s(optimizer: Callable[[Sequence[torch.nn.Parameter]], torch.optim.Optimizer]) -> float:
    """CPU seconds that each further tensor adds to a step."""
    few, many = (cpu_s(optimizer(_parameters(count)).step) for count in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def main() -> None:
    """Print microseconds a tensor."""
    torch.set_num_threads(1)
    sgd = tensor_s(lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9, fused=True))
    adam = tensor_s(lambda parameters: torch.optim.Adam(parameters, fused=True))
    print(f"{sgd * 1e6:.2f} us a tensor of fused SGD, {adam * 1e6:.2f} us of fused Adam")


if __name__ == "__main__":
    main()
