"""Constants of collectives that come closest to measured times."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from advisor.predict.exchange import collective_time
from research.training import collective_parameters
from research.training.collective_tables import MeasuredCollective
from research.training.least_squares import least_squares

# What all priors weigh against the rows: each as much as one of fifty, at a tenth of its error.
_ROWS_PER_PRIOR = 50
_PRIOR_ERROR = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Parameters by name."""

    values: Mapping[str, float]

    def constants(
        self, spread: collective_parameters.Spread = collective_parameters.NO_SPREAD
    ) -> collective_time.CollectiveConstants:
        """As the answer reads them from the file."""
        return collective_time.constants_from(collective_parameters.table_of(self.values, spread))

    def in_one_process(
        self, architecture: str, spread: collective_parameters.Spread = collective_parameters.NO_SPREAD
    ) -> collective_time.CollectiveConstants:
        """As `constants`, for threads that drive GPUs of an architecture."""
        constants = self.constants(spread)
        pace = self.values[collective_parameters.IN_ONE_PROCESS] * constants.pace.get(architecture, 1.0)
        return replace(constants, pace={architecture: pace})

    def off(self, rows: Sequence[MeasuredCollective]) -> collective_parameters.Floats:
        """Log(predicted / measured), [N]."""
        grouped = Grouped(rows)
        return np.log(grouped.times(self).seconds) - grouped.log_s


class Grouped:
    """Rows by what they have in common but the size, so that each law is made once."""

    def __init__(self, rows: Sequence[MeasuredCollective]) -> None:
        index = defaultdict(list)
        for i, row in enumerate(rows):
            index[row.group, row.in_one_process].append(i)
        self._index = {key: np.array(own) for key, own in index.items()}
        self._num_bytes = np.array([row.num_bytes for row in rows])
        self.log_s = np.log([row.time_s for row in rows])

    def times(
        self, fit: Fit, spread: collective_parameters.Spread = collective_parameters.NO_SPREAD
    ) -> collective_time.CollectiveTimes:
        """Of each row, [N]."""
        constants = fit.constants(spread)
        seconds, sigma = np.empty(len(self.log_s)), np.empty(len(self.log_s))
        for (group, in_one_process), own in self._index.items():
            if in_one_process:
                law = collective_time.law_of(group, fit.in_one_process(group.architecture, spread))
            else:
                law = collective_time.law_of(group, constants)
            times = law.times(self._num_bytes[own])
            seconds[own], sigma[own] = times.seconds, times.sigma
        return collective_time.CollectiveTimes(seconds=seconds, sigma=sigma)


def weights_of(rows: Sequence[MeasuredCollective]) -> collective_parameters.Floats:
    """Each table of sizes weighs as much as another, however many it has; one on average."""
    counts = Counter(row.setting for row in rows)
    weights: collective_parameters.Floats = 1 / np.array([counts[row.setting] for row in rows])
    return np.asarray(weights / weights.mean())


def fit_of(rows: Sequence[MeasuredCollective]) -> Fit:
    """The parameters that come closest."""
    wanted = collective_parameters.parameters(frozenset(row.group.architecture for row in rows))
    start = np.log([parameter.start for parameter in wanted.values()])
    held = np.array([1 / parameter.sigma if parameter.sigma else 0.0 for parameter in wanted.values()])
    held *= _PRIOR_ERROR * math.sqrt(len(rows) / _ROWS_PER_PRIOR)
    weights, grouped = np.sqrt(weights_of(rows)), Grouped(rows)

    def residuals(logs: collective_parameters.Floats) -> collective_parameters.Floats:
        values = dict(zip(wanted, np.exp(logs).tolist(), strict=True))
        seconds = grouped.times(Fit(values=values)).seconds
        return np.concatenate([weights * (np.log(seconds) - grouped.log_s), held * (logs - start)])

    answer = np.exp(least_squares(residuals, start)).tolist()
    return Fit(values=dict(zip(wanted, answer, strict=True)))
