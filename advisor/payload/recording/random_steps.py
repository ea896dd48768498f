"""How many steps are recorded before one stands for all: more where steps differ.

Layerdrop, stochastic depth and sequences of any length make each step another. Such a script is seen by two
steps that differ in the bytes they touch, or by random numbers that Python draws inside a forward pass. Then
more steps are recorded: the one nearest to their mean is the trace, and what the others did goes beside it.
"""

from __future__ import annotations

import math
import pickle
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable

import torch
from torch.utils import _python_dispatch

from ..protocol import Iteration, Operator
from .batches import samples_of

STEPS_OF_A_MEAN = 16
# After so many that are alike, what was drawn at random decided nothing.
MOST_ALIKE = 8
MOST_SPANS, MOST_S = 64, 20.0
# A result file has bounds.
MOST_OPERATORS = 20_000
# A step of so many takes ten seconds and more.
MANY_CALLS = 16_000
# Logging every few steps copies some values.
LEAST_DIFFERENCE = 0.01


class RandomDraws:
    """Whether a forward pass draws random numbers of the CPU, which may decide what it does."""

    def __init__(self) -> None:
        self.seen = False
        self._before: object = None

    def begin(self) -> None:
        if not self.seen:
            self._before = _random_states()

    def end(self) -> None:
        if self._before is not None:
            after = _random_states()
            self.seen = self.seen or (after is not None and after != self._before)
            self._before = None


def _random_states() -> tuple[object, ...] | None:
    numpy = sys.modules.get("numpy.random")
    try:
        with _python_dispatch._disable_current_modes():
            drawn = bytes(torch.default_generator.get_state().numpy())
    except RuntimeError:  # inside of torch.func no tensor has storage
        return None
    of_numpy = None if numpy is None else hash(pickle.dumps(numpy.get_state()))
    return hash(random.getstate()), hash(drawn), of_numpy


def seed_all() -> None:
    """Five runs of one script draw alike, unless the script seeds its generators itself."""
    random.seed(0)
    torch.manual_seed(0)
    if (numpy := sys.modules.get("numpy.random")) is not None:
        numpy.seed(0)


def repeats(span: Iteration, before: Iteration) -> bool:
    """Whether a long span runs nothing that the one before did not, and the very same backward passes."""
    if sum(operator["count"] for operator in span["operators"]) < MANY_CALLS:
        return False
    counts, earlier = _forms(span), _forms(before)
    is_backward_alike = all(counts[key] == earlier[key] for key in earlier if key[0] == "backward")
    return is_backward_alike and all(count <= earlier[key] for key, count in counts.items())


def _forms(span: Iteration) -> Counter[tuple[str, str]]:
    """Calls by phase and form; some attributes, such as of a bias correction, change with each step."""
    forms: Counter[tuple[str, str]] = Counter()
    for operator in span["operators"]:
        form = repr({**operator, "count": 0, "attributes": {}})
        forms[operator["phase"], form] += operator["count"]
    return forms


class SteadySteps:
    """Collects steady steps until they are enough."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.draws = RandomDraws()
        """Of the script's forward passes."""
        self._clock = clock
        self._begun_s = 0.0
        self._num_seen = 0
        self._last: tuple[int, float] | None = None
        self._differ = False
        self._kept: list[tuple[float, Iteration]] = []

    def add(self, span: Iteration, *, is_clean: bool, is_steady: bool) -> bool:
        """Take a step; whether those so far are enough.

        Args:
            is_clean: it holds no evaluation, and nothing that first steps alone do.
            is_steady: as a trace wants it, if all were alike.
        """
        samples, traffic = samples_of(span), _traffic(span)
        loading = span["loading"]
        of_any_size = loading is not None and loading["is_dynamic"]
        if is_clean and self._last is not None and (of_any_size or self._last[0] == samples):
            before = self._last[1]
            self._differ |= abs(before - traffic) > LEAST_DIFFERENCE * max(before, traffic)
        self._last = (samples, traffic) if is_clean else None
        if not is_steady and not self._kept:
            return False
        self._begun_s = self._begun_s if self._kept else self._clock()
        self._num_seen += 1
        if not self._kept or (is_clean and (of_any_size or samples == samples_of(self._kept[0][1]))):
            self._kept.append((traffic, span))
        if not self._differ and not self.draws.seen:
            return True
        num_operators = sum(len(span["operators"]) for _, span in self._kept)
        return (
            len(self._kept) >= (STEPS_OF_A_MEAN if self._differ else MOST_ALIKE)
            or self._num_seen >= MOST_SPANS
            or self._clock() - self._begun_s > MOST_S
            or num_operators > MOST_OPERATORS
        )

    def typical(self) -> Iteration | None:
        """The step nearest to the mean, with what all of them did if they differ; None where none is kept."""
        if not self._kept:
            return None
        mean = statistics.fmean(traffic for traffic, _ in self._kept)
        _, typical = min(self._kept, key=lambda kept: abs(kept[0] - mean))
        spans = [span for _, span in self._kept]
        if not self._differ or len(spans) == 1:
            return typical
        largest = max(spans, key=lambda span: span["memory"]["peak_bytes"])
        operators, counts = _counted(spans)
        return {
            **typical, "memory": largest["memory"], "step_operators": operators, "step_counts": counts,
            "typical_step": spans.index(typical),
        }  # fmt: skip


def _traffic(span: Iteration) -> float:
    return float(
        sum(
            operator["count"]
            * sum(math.prod(tensor["shape"]) for tensor in (*operator["inputs"], *operator["outputs"]))
            for operator in span["operators"]
        )
    )


def _counted(spans: list[Iteration]) -> tuple[list[Operator], list[list[int]]]:
    """All operators of the steps, each once, and how often each step calls each."""
    places: dict[str, int] = {}
    operators: list[Operator] = []
    counts: list[dict[int, int]] = []
    for span in spans:
        of_span: dict[int, int] = {}
        for operator in span["operators"]:
            key = repr({**operator, "count": 0})
            if key not in places:
                places[key] = len(operators)
                operators.append({**operator, "count": 1})
            of_span[places[key]] = of_span.get(places[key], 0) + operator["count"]
        counts.append(of_span)
    return operators, [[of_span.get(place, 0) for place in range(len(operators))] for of_span in counts]
