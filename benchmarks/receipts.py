"""What counting steps costs a training: the hook's own time beside that of a small step on this CPU."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from advisor.payload.receipt.steps import StepClock
from advisor.receipt.receipt_files import steps_environment
from benchmarks.timing import ratio

CALLS, ROUNDS = 20_000, 15
AIM = 0.01


class Optimizer:
    """Stands for one of torch: the hook looks at none of its attributes."""


def seconds_each(call: Callable[[], object]) -> float:
    """Least time of a call over some rounds."""
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - begin) / CALLS)
    return min(times)


def hook_s() -> float:
    """Seconds that the hook adds to a step."""
    with tempfile.TemporaryDirectory() as folder:
        clock, optimizer = StepClock(folder), Optimizer()
        counted = seconds_each(lambda: clock.after_step(optimizer, (), {}))
        assert clock.num_steps == CALLS * ROUNDS, clock.failure
        return counted - seconds_each(lambda: None)


def step_s() -> float:
    """Median seconds of an iteration of a small network, which is shorter than anybody's."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = torch.randn(32, 64)
    times = []
    for _ in range(300):
        begin = time.perf_counter()
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    """Print both ratios."""
    own_s, small_s = hook_s(), step_s()
    print(
        f"{'counting a step':<34}{own_s / small_s:6.2%} of a step of {small_s * 1e6:.0f} us"
        f"  {own_s * 1e6:6.2f} us  (aim: under {AIM:.0%} and 10 us)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = steps_environment({}, Path(folder))
        watched = [
            "env",
            *(f"{name}={value}" for name, value in environment.items()),
            sys.executable,
            "-c",
            "",
        ]
        times, seconds = ratio(watched, ["env", sys.executable, "-c", ""])
    print(f"{'starting a watched Python':<34}{times:6.2f} x an unwatched one  {seconds:6.3f} s")


if __name__ == "__main__":
    main()
