"""How well the waits of a log would have been foreseen: its last 30 %, by what came before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from advisor.core.errors import InputError
from advisor.core.units import DAY_S, HOUR_S
from recommender.queue.correction import Reading
from recommender.queue.grids import Array, to_log_minutes
from recommender.queue.jobs import JobLog, QueuedJob
from recommender.queue.scoring import Score, Tally
from recommender.queue.waits import ALL, WIDER_BIN_JOBS, Bin, Waits, bin_of, replay

TRAINED_SHARE = 0.7
WAYS = ("online", "frozen", "uncorrected", "baseline")
HORIZON_S = 7 * DAY_S
FROZEN_EVERY_S = DAY_S
# The correction remembers weeks: looking at it once an hour is enough.
CORRECTED_EVERY_S = HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCheck:
    """Four ways to foresee the same jobs.

    Attributes:
        num_frozen: moments at which a fit was frozen.
        online: by all that is known when a job is submitted.
        frozen: by fits of a moment, one a day, for the jobs of the week after it: as a fit is used.
        uncorrected: as ``online``, without the correction.
        baseline: quantiles of all recent jobs.
    """

    num_jobs: int
    num_checked: int
    num_frozen: int
    online: Score
    frozen: Score
    uncorrected: Score
    baseline: Score


def check(log: JobLog, trained_share: float = TRAINED_SHARE) -> QueueCheck:
    """All are told the same: each wait at the moment its job starts, of the last 8,000 jobs that count.

    Raises:
        InputError: too few jobs to check anything.
    """
    first = math.floor(len(log.jobs) * trained_share)
    ways, waits = _Ways(log.jobs[first:]), Waits()
    replayed = replay((*log.jobs, *log.waiting), waits)
    started = ((job, expected) for job, expected in replayed if job.start_s < math.inf)
    for index, (job, expected) in enumerate(started):
        if expected is None:
            continue
        ways.freeze(job.submit_s, waits)
        if index >= first:
            ways.foresee(index - first, expected, waits)
    if ways.num_checked < WIDER_BIN_JOBS:
        raise InputError(
            f"only {ways.num_checked} of {len(log.jobs)} jobs can be checked, which says nothing: a log for"
            f" this needs at least {math.ceil(WIDER_BIN_JOBS / (1 - TRAINED_SHARE))} jobs. Export a longer"
            " time."
        )
    return ways.scored(len(log.jobs))


class _Ways:
    """The ways to foresee, side by side; jobs come in order of submission."""

    def __init__(self, checked: Sequence[QueuedJob]) -> None:
        self._submits_s = np.array([job.submit_s for job in checked])
        self._minutes = np.array([to_log_minutes(job.wait_s) for job in checked])
        self._bins = [bin_of(job) for job in checked]
        self._tallies = {way: Tally(self._submits_s) for way in WAYS}
        # A week before them, so that fits of every age foresee each job.
        self._freeze_s = self._submits_s[0] - HORIZON_S
        self._looked_s = -math.inf
        self._reading: Reading | None = None
        self.num_checked = self.num_frozen = 0

    def freeze(self, now_s: float, waits: Waits) -> None:
        """Once a day: a fit of now, for the checked jobs of the following week."""
        if now_s < self._freeze_s:
            return
        self._freeze_s = now_s + FROZEN_EVERY_S
        first, end = np.searchsorted(self._submits_s, [now_s, now_s + HORIZON_S]).tolist()
        reading = waits.reading(now_s)

        @cache
        def grid(which: Bin) -> Array:
            expected = waits.expect(which)
            assert expected is not None, "waits of all jobs are known"  # noqa: S101
            return reading.of(expected)

        if first < end:
            self._add("frozen", slice(first, end), [grid(which) for which in self._bins[first:end]])
            self.num_frozen += 1

    def foresee(self, index: int, expected: list[float], waits: Waits) -> None:
        """The checked job of this index, by what is known at its submission."""
        submit_s = self._submits_s[index]
        if self._reading is None or submit_s - self._looked_s >= CORRECTED_EVERY_S:
            self._looked_s, self._reading = submit_s, waits.reading(submit_s)
        everything = waits.expect(ALL)
        assert everything is not None, "the bin of all jobs holds those of every other"  # noqa: S101
        job = slice(index, index + 1)
        self._add("online", job, [self._reading.of(expected)])
        self._add("uncorrected", job, [np.array(expected)])
        self._add("baseline", job, [np.array(everything)])
        self.num_checked += 1

    def scored(self, num_jobs: int) -> QueueCheck:
        """All scores."""
        return QueueCheck(
            num_jobs=num_jobs,
            num_checked=self.num_checked,
            num_frozen=self.num_frozen,
            **{way: tally.score() for way, tally in self._tallies.items()},
        )

    def _add(self, way: str, jobs: slice, grids: Sequence[Array]) -> None:
        self._tallies[way].add(self._minutes[jobs], self._submits_s[jobs], np.array(grids))
