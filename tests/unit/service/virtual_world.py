"""A world for the service of schedules: its clock moves when somebody waits, its commands are a function."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from advisor.core.errors import AdvisorError
from advisor.service.schedule.child_commands import Command, Ending, Ran
from advisor.service.schedule.running import Outgoing, Surroundings
from advisor.store.handle import Store
from tests.schedules import AT

LIMITS = {"catch_up_s": 86_400, "timeout_s": 3600, "remember_s": 400 * 86_400}
MayGoOn = Callable[[], bool]


def ran(exit_code: int | None = 0, **changes: object) -> Ran:
    """A command that ended by itself."""
    fields = {
        "ending": Ending.BY_ITSELF,
        "exit_code": exit_code,
        "output": "words",
        "output_sha256": "ab" * 32,
    }
    return Ran(**fields | changes)


@dataclass(slots=True)
class VirtualWorld:
    """Commands, deliveries and log lines of one service.

    Attributes:
        clock: may be shared by several services.
        until: when it is asked to end.
        act: what a command does; it may move the clock and ask whether it may go on.
    """

    clock: list[datetime] = field(default_factory=lambda: [AT])
    until: datetime = AT + timedelta(days=7)
    act: Callable[[Command, MayGoOn], Ran] = lambda command, may_go_on: ran()  # noqa: ARG005
    is_hurried: bool = False
    trouble: AdvisorError | None = None
    commands: list[Command] = field(default_factory=list)
    outgoing: list[Outgoing] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def pass_s(self, seconds: float) -> None:
        """Let time pass."""
        self.clock[0] += timedelta(seconds=seconds)

    def surroundings(self, store: Store, name: str = "ann") -> Surroundings:
        """As a service sees it."""
        return Surroundings(
            store=store,
            **LIMITS,
            name=name,
            now=lambda: self.clock[0],
            wait=self._wait,
            is_stopping=lambda: self.clock[0] >= self.until,
            is_hurried=lambda: self.is_hurried,
            run=self._run,
            deliver=self._deliver,
            log=self.log.append,
        )

    def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.pass_s(seconds)

    def _run(self, command: Command, may_go_on: MayGoOn) -> Ran:
        self.commands.append(command)
        return self.act(command, may_go_on)

    def _deliver(self, outgoing: Outgoing) -> str:
        if self.trouble is not None:
            raise self.trouble
        self.outgoing.append(outgoing)
        return f"sent to {outgoing.channel}"
