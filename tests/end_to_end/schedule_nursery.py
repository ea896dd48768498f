"""Makes services of schedules as processes, one for each name on stdin, each a fork of what is imported here.

Their clock is a number in a file, which the test sets. Their commands write a line, and their channel is a
file that gets a line for each sending. Each says on stdout where it is, so that it can be killed there.

    python -m tests.end_to_end.schedule_nursery FOLDER
"""

import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from advisor.cli.schedule import in_words
from advisor.delivery.channel import Message, Parcel, Secrets
from advisor.delivery.posting import Clock, Post
from advisor.service.schedule.child_commands import Command, Ending, Ran
from advisor.service.schedule.running import Inline, Outgoing, ScheduleService, Surroundings
from advisor.store.database import open_store

LIMITS = {"catch_up_s": 86_400, "timeout_s": 3600, "remember_s": 400 * 86_400}
STOPPED = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A channel that cannot tell repeats: a file with a line for each time."""

    file: Path
    say: Callable[[str], None]
    secrets: Secrets = field(default_factory=lambda: Secrets({}))
    target: str = "a file"
    drops_repeats: bool = False

    def preview(self, parcel: Parcel) -> str:
        """Its line."""
        return f"{parcel.key}\n"

    def send(self, parcel: Parcel, begin: Callable[[], None]) -> None:
        """Write it, and say so before and after."""
        self.say(f"sending {parcel.key}")
        begin()
        self.say(f"begun {parcel.key}")
        _append(self.file, self.preview(parcel))
        self.say(f"written {parcel.key}")


def _append(file: Path, line: str) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, line.encode())
    os.close(handle)


def serve(folder: Path, name: str) -> None:
    """One service, until the clock says that it is over."""
    with (folder / "clock").open("rb") as file:
        clock = mmap.mmap(file.fileno(), 16, prot=mmap.PROT_READ)

    def shown() -> float:
        return float(struct.unpack_from("d", clock)[0])

    def now() -> datetime:
        return datetime.fromtimestamp(shown(), UTC)

    def is_stopping() -> bool:
        return bool(struct.unpack_from("d", clock, 8)[0] == STOPPED)

    def wait(seconds: float) -> None:
        end = shown() + seconds
        said = 0.0
        while (at := shown()) < end and not is_stopping():
            if at != said:
                # Time goes on only when all have said that they wait for it.
                say(f"waits {at}")
                said = at
            time.sleep(0.002)

    def say(what: str) -> None:
        os.write(1, f"{name} {what}\n".encode())

    def run(command: Command, may_go_on: Callable[[], bool]) -> Ran:
        say(f"running {command.key}")
        may_go_on()
        _append(folder / "ran", f"{command.key}\n")
        say(f"ran {command.key}")
        return Ran(ending=Ending.BY_ITSELF, exit_code=0, output="words", output_sha256="ab" * 32)

    def deliver(outgoing: Outgoing) -> str:
        with open_store(f"sqlite:///{folder}/advisor.db") as store:
            post = Post(store=store, total_s=60, clock=Clock(now=now))
            channel = Line(file=folder / "sent", say=say)
            message = Message(subject=outgoing.schedule.name, text=outgoing.ended.output)
            words = in_words(post.send("line", channel, message, outgoing.key))
        say(f"delivered {outgoing.key}")
        return words

    with open_store(f"sqlite:///{folder}/advisor.db") as store:
        world = Surroundings(
            store=store,
            **LIMITS,
            name=name,
            now=now,
            wait=wait,
            is_stopping=is_stopping,
            is_hurried=lambda: False,
            run=run,
            deliver=deliver,
            log=lambda line: say(f"log {line}"),
        )
        ScheduleService(world, Inline()).run()
    say("ended")


def main(folder: Path) -> None:
    """Fork a service for each line of stdin, and say its number."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    for line in sys.stdin:
        name = line.strip()
        pid = os.fork()
        if pid == 0:
            serve(folder, name)
            os._exit(0)
        os.write(1, f"{name} pid {pid}\n".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
