"""Keeping a claim while its command runs or its output is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError
from advisor.service.schedule_world import Surroundings

if TYPE_CHECKING:
    from advisor.store.occurrences import Claim

_RENEW_S = 20.0


class ClaimKeeper:
    """Keeps a claim while its command runs, and says when the command must end."""

    def __init__(self, claim: Claim, world: Surroundings, is_cut_short: Callable[[], bool]) -> None:
        self._claim = claim
        self._world = world
        self._is_cut_short = is_cut_short
        self._renewed_at = world.now()
        self.is_lost = False

    def __call__(self) -> bool:
        """Whether the command may go on."""
        if self._is_cut_short():
            return False
        if (self._world.now() - self._renewed_at).total_seconds() >= _RENEW_S:
            self.renew()
        return not self.is_lost

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Keep the claim while something runs that asks nobody, such as a channel that is tried for long."""
        is_over = Event()

        def renew() -> None:
            while not is_over.wait(_RENEW_S):
                self.renew()

        thread = Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def renew(self) -> None:
        """Keep the claim for a while from now on."""
        from advisor.store.occurrences import renew

        self._renewed_at = self._world.now()
        try:
            self.is_lost = not renew(self._world.store, self._claim, self._world.claimant())
        except AdvisorError as error:
            # The command need not suffer: the claim lasts for several renewals.
            self._world.log(f"{self._claim.schedule.name}: {error}")
