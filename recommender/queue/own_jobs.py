"""What a user's own jobs tell of how long the next one waits.

A user's limits, priority and kind of jobs are in no column of a log. But the waits of the jobs before show
them: how far up its own forecast the last one that started came, and the eldest that waits still.
"""

from bisect import bisect_left
from collections.abc import Sequence

from advisor.core.units import DAY_S
from recommender.queue import grids

RECENT_S = 7 * DAY_S
"""A start tells for so long."""
LEVEL_EDGES = (0.2, 0.4, 0.6, 0.8, 0.95)
"""The highest level of each class but the last, above one for those of whom nothing is known."""

Grid = Sequence[float] | None


class OwnJobs:
    """The jobs of each user: those that wait, and the last that started."""

    def __init__(self) -> None:
        # By number, so that the first is the eldest; with its submission and its forecast.
        self._waiting: dict[str, dict[int, tuple[float, Grid]]] = {}
        self._started: dict[str, tuple[float, float]] = {}

    def enter(self, user: str, number: int, submit_s: float, grid: Grid) -> None:
        """A job is submitted, with a number that counts them."""
        self._waiting.setdefault(user, {})[number] = submit_s, grid

    def start(self, user: str, number: int, start_s: float) -> None:
        """It starts; starts come in order of time."""
        submit_s, grid = self._waiting[user].pop(number)
        if grid is not None:
            first, last = grids.cells_of(grid, grids.to_log_minutes(start_s - submit_s))
            self._started[user] = start_s, (grids.CELL_ENDS[first] + grids.CELL_ENDS[last]) / 2

    def class_of(self, user: str, now_s: float) -> int | None:
        """The class by the higher of the two levels; None in a log without users."""
        if not user:
            return None
        start_s, level = self._started.get(user, (0.0, -1.0))
        if now_s - start_s > RECENT_S:
            level = -1.0
        for submit_s, grid in self._waiting.get(user, {}).values():
            if grid is not None:
                reached = bisect_left(grid, grids.to_log_minutes(now_s - submit_s))
                level = max(level, grids.CELL_ENDS[reached])
            break
        return 0 if level < 0 else 1 + bisect_left(LEVEL_EDGES, level)
