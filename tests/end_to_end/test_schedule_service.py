"""Services of schedules as processes: two at once, killed in the middle of commands and sendings."""

import mmap
import os
import queue
import random
import signal
import struct
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from advisor.core.values import Occurrence, OccurrenceState
from advisor.service.schedule.running import MOST_ATTEMPTS
from advisor.store.database import open_store
from advisor.store.schedules import add_schedule, occurrences, schedules
from tests.end_to_end.schedule_nursery import STOPPED
from tests.schedules import make_schedule

START = datetime(2026, 11, 22, 12, 58, 30, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[2]
KILLS = 30
PLACES = ("running", "ran", "sending", "begun", "written", "delivered")
# A disk that others keep busy may hold a database up for a minute.
PATIENCE_S = 240.0


class Nursery:
    """Services as processes, and the clock that they go by."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "clock").write_bytes(struct.pack("dd", START.timestamp(), 0.0))
        with (folder / "clock").open("r+b") as file:
            self._clock = mmap.mmap(file.fileno(), 16)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.end_to_end.schedule_nursery", str(folder)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            start_new_session=True,
        )  # fmt: skip
        self._heard: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.pids: dict[str, int] = {}
        self._last: dict[str, str] = {}

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._heard.put(line.strip())

    def start(self, name: str) -> None:
        """A service of this name."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        while name not in self.pids:
            self.next_line()

    def next_line(self) -> tuple[str, str]:
        """Who said what."""
        name, _, what = self._heard.get(timeout=PATIENCE_S).partition(" ")
        if what.startswith("pid "):
            self.pids[name] = int(what.split()[1])
        else:
            self._last[name] = what
        return name, what

    @property
    def is_quiet(self) -> bool:
        """Whether all services wait for the clock to go on."""
        waits = f"waits {struct.unpack_from('d', self._clock)[0]}"
        return all(self._last.get(name) == waits for name in self.pids)

    def kill(self, name: str) -> None:
        """At once, wherever it is."""
        os.kill(self.pids.pop(name), signal.SIGKILL)

    def pass_time(self, seconds: float) -> None:
        """Let the clock jump."""
        struct.pack_into("d", self._clock, 0, struct.unpack_from("d", self._clock)[0] + seconds)

    @property
    def now(self) -> datetime:
        """What the clock shows."""
        return datetime.fromtimestamp(struct.unpack_from("d", self._clock)[0], UTC)

    def close(self) -> None:
        """End all, politely."""
        struct.pack_into("d", self._clock, 8, STOPPED)
        waiting = set(self.pids)
        while waiting:
            name, what = self.next_line()
            waiting -= {name} if what == "ended" else set()
        self._process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def nursery(tmp_path):
    """Two schedules that come each minute for four hours, and nobody who runs them yet."""
    with open_store(f"sqlite:///{tmp_path}/advisor.db") as store:
        for name in ("a", "b"):
            schedule = make_schedule(
                id=name, name=name, cron="* 13-16 * * *", zone="UTC", channel="line", settled_until=START
            )
            assert add_schedule(store, schedule)
    made = Nursery(tmp_path)
    try:
        yield made
    finally:
        # With all services, those too that have not said their number: each keeps the pipe open.
        with suppress(ProcessLookupError):
            os.killpg(made._process.pid, signal.SIGKILL)
        made._process.communicate()


def kept(folder: Path) -> list[Occurrence]:
    with open_store(f"sqlite:///{folder}/advisor.db") as store:
        return [one for schedule in schedules(store) for one in occurrences(store, schedule.id, most=500)]


def counted(file: Path) -> Counter[str]:
    return Counter(file.read_text().split() if file.exists() else [])


def key(one: Occurrence) -> str:
    return f"{one.schedule_id}@{one.due_at:%Y-%m-%dT%H:%M:%S.%fZ}"


def test_two_services_that_are_killed_thirty_times_send_nothing_twice(nursery):
    chance = random.Random(16)  # noqa: S311
    names = (f"{letter}{number}" for number in range(1000) for letter in "xy")
    for _ in range(2):
        nursery.start(next(names))
    places, victims, countdown = Counter(), Counter(), 3
    # Until all that was cut off has been taken over, and nobody has anything left to do.
    while nursery.now < START + timedelta(hours=8):
        name, what = nursery.next_line()
        if nursery.is_quiet:
            nursery.pass_time(60 if victims.total() < KILLS else 600)
            continue
        place, _, victim = what.partition(" ")
        countdown -= place in PLACES
        # What is cut off each time would be given up.
        if (
            countdown <= 0
            and place in PLACES
            and name in nursery.pids
            and victims[victim] < MOST_ATTEMPTS - 2
        ):
            if victims.total() < KILLS:
                nursery.kill(name)
                nursery.start(next(names))
                places[place] += 1
                victims[victim] += 1
            countdown = chance.randint(1, 12)
    nursery.close()
    assert victims.total() == KILLS
    assert len(places) >= 4, "killed in too few places"
    known = kept(nursery.folder)
    bad = [one for one in known if one.state not in (OccurrenceState.DONE, OccurrenceState.MISSED)]
    assert bad == []
    done = [one for one in known if one.state is OccurrenceState.DONE]
    assert len(done) > KILLS
    sent, ran = counted(nursery.folder / "sent"), counted(nursery.folder / "ran")
    assert set(sent.values()) == {1}, "sent twice"
    assert set(sent) <= set(map(key, done))
    for one in done:
        if one.delivery.startswith("perhaps sent to line"):
            assert one.attempts > 1
        else:
            assert one.delivery in ("sent to line", "sent to line before")
            assert sent[key(one)] == 1
        assert 0 < ran[key(one)] <= one.attempts
    assert any(one.attempts > 1 for one in done)


def test_two_services_without_any_trouble_run_each_time_once(nursery):
    for name in ("x", "y"):
        nursery.start(name)
    while nursery.now < START + timedelta(minutes=12):
        nursery.next_line()
        if nursery.is_quiet:
            nursery.pass_time(20)
    nursery.close()
    done = kept(nursery.folder)
    minutes = int((nursery.now - START.replace(second=0)) / timedelta(minutes=1)) - 1
    assert {one.state for one in done} == {OccurrenceState.DONE}
    assert {one.attempts for one in done} == {1}
    assert len(done) == 2 * minutes
    assert counted(nursery.folder / "ran") == counted(nursery.folder / "sent") == Counter(map(key, done))
