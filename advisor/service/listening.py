"""Who asked: hears notes, warnings and progress while a use case runs, and has names for its arguments.

The command line listens on standard error; Python (``advisor.api``) listens through ``logging``. Values come
back as results; what is heard here is what a person wants to know before a long answer is there.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

from advisor.core.findings import Finding


class Step:
    """A long step of the work, while it lasts; this one is shown nowhere."""

    def update(self, phase: str) -> None:
        """What the step is doing now."""

    def follow(self, line: str) -> None:
        """A line of a profiling run; one that is no event changes nothing."""


class Listener:
    """What a use case asks of its caller; this one drops it, and calls arguments by their own names."""

    def note(self, message: str) -> None:
        """What is worth knowing and no warning."""

    def warn(self, messages: Iterable[str | Finding]) -> None:
        """What may make the answer wrong."""

    def step(
        self,
        name: str,  # noqa: ARG002
        *,
        limit_s: float | None = None,  # noqa: ARG002
        at_once: bool = False,  # noqa: ARG002
    ) -> AbstractContextManager[Step]:
        """Follow a step of the work as long as it lasts.

        Args:
            name: such as ``profiling train.py``.
            limit_s: seconds after which it is given up.
        """
        return nullcontext(Step())

    def count(self, name: str) -> AbstractContextManager[Callable[[int, int], None]]:  # noqa: ARG002
        """Follow a step that counts: what it gives is called with how many are done, and of how many."""
        return nullcontext(lambda done, total: None)  # noqa: ARG005

    def name_of(self, argument: str) -> str:
        """What the caller calls an argument or a setting: ``--max-price`` for ``max_usd_per_h``."""
        return argument
