"""A guard decides by numbers alone and signals those that listen; what first steps say of a whole job."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Interval, Quantiles
from advisor.receipt import guard as guarding
from advisor.receipt.command import run_command
from advisor.receipt.guard import (
    LEAST_STEPS,
    Expected,
    Guard,
    GuardPhase,
    Process,
    RunLimits,
    pace_of,
    processes,
    tree_of,
)

USR1, TERM, KILL = signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL
TIMES = st.lists(st.floats(0, 1e6), max_size=30).map(sorted)


def mask(*numbers: int) -> int:
    return sum(1 << (number - 1) for number in numbers)


@pytest.fixture
def sent(monkeypatch):
    """Signals in place of processes that get them."""
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: signals.append((pid, number)))
    return signals


def alive(monkeypatch: pytest.MonkeyPatch, *known: Process) -> None:
    monkeypatch.setattr(guarding, "processes", lambda: {process.pid: process for process in known})


def guard_of(usd_per_h: float | None = None, **limits: float) -> tuple[Guard, list[str]]:
    said: list[str] = []
    return Guard(limits=RunLimits(**limits), usd_per_h=lambda: usd_per_h, say=said.append), said


@given(TIMES, st.floats(1, 1e5), st.floats(1, 1e5), st.floats(0.01, 1e3), st.floats(1, 1e4))
def test_more_time_or_rent_is_never_an_earlier_phase(times, max_s, max_usd, usd_per_h, grace_s):
    limits = RunLimits(max_s=max_s, max_usd=max_usd, grace_s=grace_s)
    phases = [max(one.phase for one in limits.used(s, s * usd_per_h / 3600, usd_per_h)) for s in times]
    assert phases == sorted(phases)
    for s, phase in zip(times, phases, strict=True):
        over = s >= max_s or s * usd_per_h / 3600 >= max_usd
        assert (phase is GuardPhase.KILLED) == over
        if max(s / max_s, s * usd_per_h / 3600 / max_usd) < 0.8:
            assert phase is GuardPhase.FREE


def test_no_limit_is_no_reason_to_end():
    assert RunLimits().used(1e9, 1e9, 1e9) == []


@given(TIMES, st.lists(st.one_of(st.none(), st.floats(0, 100)), min_size=1, max_size=5))
def test_rent_is_price_times_time_of_each_price(times, prices):
    """The slow sum beside it: a stretch costs the price known in it, the first ones the first price."""
    left = iter(prices)
    guard = Guard(limits=RunLimits(max_usd=1e12), usd_per_h=lambda: next(left, None), say=lambda _: None)
    price, priced_s, due = None, 0.0, iter(prices)
    paid: list[tuple[float, float]] = []
    unpaid, seen = 0.0, 0.0
    for s in times:
        guard.look(s, 1)
        unpaid, seen = unpaid + s - seen, s
        for reads_price in (False, True):
            if reads_price and (price is None or s - priced_s >= 600):
                priced_s, found = s, next(due, None)
                price = price if found is None else found
            if price is not None:
                paid.append((unpaid, price))
                unpaid = 0.0
    assert guard.spent_usd == pytest.approx(sum(stretch * at / 3600 for stretch, at in paid))


@pytest.mark.parametrize("fault", [KeyError("price"), RuntimeError("catalog"), None], ids=str)
def test_a_price_that_cannot_be_read_ends_no_limit(fault, monkeypatch, sent):
    """It is said once, and read again: at once where no price is known, else after ten minutes."""
    alive(monkeypatch)
    told: list[float | Exception | None] = [fault, fault, 3.6, fault, 7.2]

    def price() -> float | None:
        answer = told.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    said: list[str] = []
    guard = Guard(limits=RunLimits(max_usd=1.0, max_s=5000.0), usd_per_h=price, say=said.append)
    for s, spent in ((10.0, 0.0), (20.0, 0.0), (30.0, 0.03), (630.0, 0.63), (1240.0, 1.24)):
        guard.look(s, 1)
        assert guard.spent_usd == pytest.approx(spent)
    assert sum("the price cannot be read now" in line for line in said) == 1
    assert sent[-1] == (1, KILL)
    assert guard.stopped_by == "its limit of $1.00"


def test_who_saves_on_a_signal_gets_it_first_and_once(monkeypatch, sent):
    """A shell, a training that saves, and its data loader, which is its own to end."""
    alive(
        monkeypatch,
        Process(1, 0, 0, "bash"),
        Process(2, 1, mask(USR1, TERM)),
        Process(3, 2, mask(USR1, TERM)),
        Process(9, 0, mask(USR1)),
    )
    guard, said = guard_of(max_s=1000.0)
    for s in (0.0, 799.0, 800.0, 899.0):
        guard.look(s, 1)
    assert (sent, said) == (
        [],
        ["13 min of 17 min used: the command goes on until 15 min, when it is asked to end"],
    )
    for s in (900.0, 950.0):
        guard.look(s, 1)
    assert sent == [(2, USR1)]
    assert said[1].endswith("the command is asked for a checkpoint and to end (SIGUSR1)")
    assert guard.stopped_by == "its limit of 17 min"
    guard.look(975.0, 1)
    assert sent[1:] == [(2, TERM)]
    guard.look(1000.0, 1)
    guard.look(1001.0, 1)
    assert sent[2:] == [(1, KILL), (2, KILL), (3, KILL)]
    assert len(said) == 4


def test_what_does_not_listen_is_told_to_end_at_once(monkeypatch, sent):
    """A training without handlers, in two shells; its loaders have handlers and are its own."""
    loader = Process(4, 3, mask(TERM), "python")
    alive(monkeypatch, Process(1, 0, 0, "bash"), Process(2, 1, 0, "sh"), Process(3, 2, 0, "python"), loader)
    guard, said = guard_of(max_s=1000.0)
    guard.look(950.0, 1)
    assert sent == [(3, TERM)]
    assert said == ["16 min of 17 min used: the command is asked to end (SIGTERM)"]
    alive(monkeypatch, Process(1, 0, 0, "bash"))
    guard.look(951.0, 1)
    assert sent[1:] == [(1, TERM)]


def test_stopping_without_a_limit_takes_the_grace(monkeypatch, sent):
    alive(monkeypatch, Process(1, 0, mask(USR1)))
    guard, said = guard_of(grace_s=100.0)
    guard.look(5.0, 1)
    guard.stop(5.0, "its canary")
    assert guard.stopped_by is None
    for s in (5.2, 79.0, 81.0, 105.0):
        guard.look(s, 1)
    assert sent == [(1, USR1), (1, TERM), (1, KILL)]
    assert said[0] == "the command is asked for a checkpoint and to end (SIGUSR1)"
    assert guard.stopped_by == "its canary"


def test_where_nothing_tells_of_processes_the_command_itself_gets_signals(monkeypatch, sent):
    """As on macOS."""
    alive(monkeypatch)
    guard, _ = guard_of(max_s=10.0)
    guard.look(9.5, 77)
    assert sent == [(77, TERM)]


def test_a_process_that_has_just_ended_is_no_fault(monkeypatch):
    alive(monkeypatch)
    guard, _ = guard_of(max_s=1.0)
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    guard.look(2.0, process.pid)
    assert guard.stopped_by == "its limit of 1 s"


@pytest.fixture
def listens():
    """A real process with a handler for SIGUSR1."""
    code = "import signal; signal.signal(signal.SIGUSR1, print); print(1, flush=True); signal.pause()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.kill()


def is_alive(pid: int) -> bool:
    """Not yet a process that has ended, or whose end somebody still has to hear of."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_all_that_a_command_started_ends_with_it(tmp_path):
    """A shell and its training, both deaf: the guard's clock runs on when they are ready, not before."""
    ready = tmp_path / "ready"
    deaf = "import signal, sys; [signal.signal(n, print) for n in (10, 15)]"
    code = f"{deaf}; open(sys.argv[1], 'w').write(str(__import__('os').getpid())); signal.pause()"
    guard, _ = guard_of(max_s=100.0)
    pids: list[int] = []

    def look(_: float, pid: int) -> None:
        if ready.exists() and ready.read_text():
            pids.append(int(ready.read_text()))
            guard.look(100.0, pid)

    command = ["sh", "-c", f'"{sys.executable}" -c "{code}" {ready}; true']
    ending, _ = run_command(command, os.environ, str, look)
    assert ending.returncode == -KILL
    while is_alive(pids[0]):
        time.sleep(0.01)


def test_a_clock_that_jumps_is_no_time(tmp_path, monkeypatch):
    """Neither summer time nor a clock that is set ends a job."""
    os.mkfifo(tmp_path / "end")
    now = iter(range(0, 10**9, 10**7))
    monkeypatch.setattr(time, "time", lambda: float(next(now)))
    guard, said = guard_of(usd_per_h=1.0, max_s=1e6, max_usd=1e3)
    looks = []

    def look(elapsed_s, pid):
        guard.look(elapsed_s, pid)
        looks.append(time.time())
        if len(looks) == 2:
            (tmp_path / "end").write_text("")

    ending, _ = run_command(["sh", "-c", f"read line < {tmp_path}/end; exit 3"], os.environ, str, look)
    assert (ending.returncode, guard.phase, said) == (3, GuardPhase.FREE, [])
    assert ending.duration_s < looks[1] - looks[0]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system has no /proc")
def test_handlers_of_a_real_process_are_seen(listens):
    (seen,) = tree_of(listens.pid, processes())
    assert seen.catches(USR1)
    assert not seen.catches(TERM)


def test_files_of_processes_may_be_cut_off_or_gone(tmp_path):
    for pid, status in {"1": "PPid:\t0\nSigCgt:\t0000000000000200\n", "2": "PPid:\t1\n", "3": ""}.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "status").write_text(status)
    (tmp_path / "4").mkdir()
    assert processes(tmp_path) == {1: Process(1, 0, mask(USR1))}
    assert processes(tmp_path / "nowhere") == {}


EXPECTED = Expected(
    step_s=Interval(p10=0.9, p50=1.0, p90=1.2),
    time_s=Quantiles(p50=4600.0, p90=6000.0),
    cost_usd=Quantiles(p50=2.0, p90=3.0),
    num_steps=3600,
    usd_per_h=1.5,
)


def steps(p50: float) -> Interval:
    return Interval(p10=p50 * 0.9, p50=p50, p90=p50 * 1.1)


def test_few_steps_say_nothing():
    assert pace_of(EXPECTED, steps(1.0), LEAST_STEPS - 1) is None
    assert pace_of(EXPECTED, None, LEAST_STEPS) is None


@pytest.mark.parametrize(
    ("step_s", "held", "is_slower"), [(0.5, False, False), (1.2, True, False), (1.3, False, True)]
)
def test_only_slower_than_p90_is_slower(step_s, held, is_slower):
    pace = pace_of(EXPECTED, steps(step_s), 100)
    assert (pace.held, pace.is_slower) == (held, is_slower)


@given(st.floats(0.01, 100))
def test_the_job_differs_by_its_steps_alone(step_s):
    pace = pace_of(EXPECTED, steps(step_s), 100)
    # Waiting and start-up stay: 1,000 s of the 4,600.
    assert pace.job_s == pytest.approx(1000 + 3600 * step_s)
    assert pace.job_usd == pytest.approx(2.0 + 1.5 * (step_s - 1))


def test_what_is_unknown_stays_unknown():
    pace = pace_of(replace(EXPECTED, usd_per_h=None), steps(2.0), 100)
    assert (pace.job_s, pace.job_usd) == (8200.0, None)
