"""What an eager operator costs the host: a model so small that only dispatch is left. Needs torch."""

from __future__ import annotations

import time

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

BLOCKS, RUNS = 50, 50


class _Count(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN204
        self.calls += 1
        return func(*args, **(kwargs or {}))


def _block() -> nn.Module:
    return nn.Sequential(nn.Conv2d(4, 4, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU())


def main() -> None:
    """Print microseconds an operator of one training iteration."""
    torch.set_num_threads(1)
    model = nn.Sequential(*[_block() for _ in range(BLOCKS)])
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    batch = torch.randn(2, 4, 2, 2)

    def iteration() -> None:
        loss = model(batch).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for _ in range(10):
        iteration()
    begin = time.perf_counter()
    for _ in range(RUNS):
        iteration()
    seconds = (time.perf_counter() - begin) / RUNS
    with _Count() as count:
        iteration()
    print(f"{count.calls} operators, {seconds / count.calls * 1e6:.2f} us of the host each")


if __name__ == "__main__":
    main()
