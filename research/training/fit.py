"""Trains one family's ensemble: Huber loss on the log of time, and a Laplace scale for what is left.

All members learn at once, as batched matrix products; each sees the same batches from another start.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from advisor.operators.family import QUANTILE
from advisor.predict.knowledge import OUTPUTS, LearnedNetwork
from research.training.whole_steps import WholeSteps

_BATCH = 2048
_RATE, _RATE_FROM_START = 1e-2, 2e-3
_DECAY = 1e-4
_HUBER = 0.1
# max(floor, event + kernel), smooth enough to have a gradient on both sides.
_SHARPNESS = 16.0
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """N measured calls of one family.

    Attributes:
        features: [N, F], the board's included, which come last.
        num_board: how many those are.
        compute_s, memory_s: work over the data sheet's rates, [N].
        floor_s: of the measurement, [N].
        event_share: the part of it that comes with the kernel's time, [N].
        time_s: measured, [N].
        weight: of each call in the loss, [N].
    """

    features: NDArray[np.float32]
    num_board: int
    compute_s: NDArray[np.float64]
    memory_s: NDArray[np.float64]
    floor_s: NDArray[np.float64]
    event_share: NDArray[np.float64]
    time_s: NDArray[np.float64]
    weight: NDArray[np.float64]


class _Ensemble(torch.nn.Module):
    def __init__(self, num_features: int, units: int, members: int, generator: torch.Generator) -> None:
        super().__init__()

        def drawn(rows: int, columns: int, gain: float) -> torch.nn.Parameter:
            values = torch.randn(members, rows, columns, generator=generator)
            return torch.nn.Parameter(values * gain / math.sqrt(rows))

        sizes = [(num_features, units, 1.4), (units, units, 1.4), (units, OUTPUTS, 0.1)]
        self.weights = torch.nn.ParameterList([drawn(*size) for size in sizes])
        self.biases = torch.nn.ParameterList(
            [torch.nn.Parameter(0.1 * torch.randn(members, 1, n, generator=generator)) for _, n, _ in sizes]
        )

    def load(self, network: LearnedNetwork) -> None:
        """Take its weights."""
        with torch.no_grad():
            for own, given in zip(self.weights, network.weights, strict=True):
                own.copy_(torch.from_numpy(given))
            for own, given in zip(self.biases, network.biases, strict=True):
                own.copy_(torch.from_numpy(given))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        for weight, bias in list(zip(self.weights, self.biases, strict=True))[:-1]:
            values = torch.nn.functional.silu(values @ weight + bias)
        outputs: torch.Tensor = values @ self.weights[-1] + self.biases[-1]
        return outputs


def fit(
    table: Table,
    *,
    seed: int,
    steps: int,
    units: int,
    members: int,
    board_noise: float,
    say: Say,
    whole: WholeSteps | None = None,
    quantile: float = QUANTILE,
    start: LearnedNetwork | None = None,
) -> LearnedNetwork:
    """The network of one family, rounded as it ships.

    Args:
        table: what it learns from.
        seed: of the start and of the order of batches.
        steps: batches of 2,048 calls.
        units: of each of the two hidden layers.
        members: of the ensemble.
        board_noise: standard deviation of what is added to the board's features, in theirs: what is learned
            of one board then holds for boards near it.
        say: told the loss ten times.
        whole: training steps that it learns from as well.
        quantile: the part of the calls that are faster than it aims at.
        start: a network to go on from, with small steps; a random one without.
    """
    torch.set_num_threads(1)  # sums in another order would give other weights on another machine
    generator = torch.Generator().manual_seed(seed)
    seen = table.features if whole is None else np.concatenate([table.features, whole.features])
    low, high = seen.min(axis=0), seen.max(axis=0)
    mean, scale = seen.mean(axis=0), seen.std(axis=0) + np.float32(1e-6)
    ensemble = _Ensemble(table.features.shape[1], units, members, generator)
    if start is not None:
        low, high = np.minimum(low, start.low), np.maximum(high, start.high)
        mean, scale = start.mean, start.scale
        ensemble.load(start)
    inputs = torch.from_numpy((table.features - mean) / scale)
    numbers = (
        table.compute_s, table.memory_s, table.floor_s, table.event_share, table.time_s, table.weight
    )  # fmt: skip
    columns = [_tensor(column) for column in numbers]
    noise = torch.zeros(table.features.shape[1])
    noise[-table.num_board :] = board_noise
    also = None if whole is None else _of_steps(ensemble, whole, (whole.features - mean) / scale, generator)
    rate = _RATE if start is None else _RATE_FROM_START
    _train(ensemble, inputs, columns, generator, (steps, rate), (noise, quantile), say, also)
    weights = tuple(_rounded(weight) for weight in ensemble.weights)
    biases = tuple(_rounded(bias) for bias in ensemble.biases)
    return LearnedNetwork(low=low, high=high, mean=mean, scale=scale, weights=weights, biases=biases)


def _train(
    ensemble: _Ensemble,
    inputs: torch.Tensor,
    columns: list[torch.Tensor],
    generator: torch.Generator,
    pace: tuple[int, float],
    aims: tuple[torch.Tensor, float],
    say: Say,
    also: Callable[[], torch.Tensor] | None,
) -> None:
    noise, quantile = aims
    steps, rate = pace
    optimizer = torch.optim.AdamW(ensemble.parameters(), lr=rate, weight_decay=_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    order, start = torch.empty(0, dtype=torch.int64), 0
    for step in range(steps):
        if start + _BATCH > len(order):
            order, start = torch.randperm(len(inputs), generator=generator), 0
        batch = order[start : start + _BATCH]
        start += _BATCH
        features = inputs[batch]
        if num_noisy := int(noise.count_nonzero()):
            features[:, -num_noisy:] += noise[-1] * torch.randn(len(batch), num_noisy, generator=generator)
        loss = _loss(ensemble(features), quantile, *(column[batch] for column in columns))
        if also is not None:
            loss = loss + also()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (step + 1) % max(steps // 10, 1) == 0:
            say(f"step {step + 1} of {steps}: loss {float(loss.detach()):.4f}")


def _of_steps(
    ensemble: _Ensemble, whole: WholeSteps, features: NDArray[np.float32], generator: torch.Generator
) -> Callable[[], torch.Tensor]:
    inputs = torch.from_numpy(features)
    return lambda: whole.loss(ensemble, inputs, generator)


def _loss(
    outputs: torch.Tensor,
    quantile: float,
    compute_s: torch.Tensor,
    memory_s: torch.Tensor,
    floor_s: torch.Tensor,
    event_share: torch.Tensor,
    time_s: torch.Tensor,
    weight: torch.Tensor,
) -> torch.Tensor:
    kernel_s = compute_s * outputs[..., 0].exp() + memory_s * outputs[..., 1].exp()
    bounds = torch.stack([(event_share * floor_s + kernel_s).log(), floor_s.log().expand_as(kernel_s)])
    residual = torch.logsumexp(_SHARPNESS * bounds, 0) / _SHARPNESS - time_s.log()
    huber = torch.nn.functional.huber_loss(
        residual, torch.zeros_like(residual), delta=_HUBER, reduction="none"
    )
    tilted = huber * torch.where(residual < 0, 2 * quantile, 2 * (1 - quantile))
    # The scale learns from residuals, never the other way round: it must not excuse them.
    log_scale = outputs[..., 2]
    laplace = residual.detach().abs() * (-log_scale).exp() + log_scale
    return ((tilted + 0.02 * laplace) * weight).mean()


def _tensor(values: NDArray[np.float64]) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.float32))


def _rounded(parameter: torch.Tensor) -> NDArray[np.float32]:
    return np.asarray(parameter.detach().half().float().numpy())
