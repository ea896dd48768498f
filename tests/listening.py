"""A listener that remembers what it heard."""

from collections.abc import Iterable
from contextlib import AbstractContextManager

from advisor.service.listening import Listener, Step


class Heard(Listener):
    """Notes, warnings and names of steps, in order."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self.steps: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)

    def warn(self, messages: Iterable[str]) -> None:
        self.warnings += messages

    def step(
        self, name: str, *, limit_s: float | None = None, at_once: bool = False
    ) -> AbstractContextManager[Step]:
        self.steps.append(name)
        return super().step(name, limit_s=limit_s, at_once=at_once)
