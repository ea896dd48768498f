"""The stopwatch stands still while the thread waits for a core."""

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from advisor.payload.recording import stopwatch as module
from advisor.payload.recording.stopwatch import Stopwatch


@pytest.fixture
def clocks(monkeypatch, tmp_path):
    """Sets what the system's two clocks say: the wall's seconds, and the run queue's nanoseconds."""
    path = tmp_path / "schedstat"
    monkeypatch.setattr(module, "_SCHEDULED", path)

    def set_to(wall_s, queued):
        monkeypatch.setattr(time, "perf_counter", lambda: wall_s)
        path.write_text(queued)

    return set_to


@pytest.fixture
def cpu(monkeypatch):
    """Sets what the process and its children have used of the CPU."""

    def set_to(own_s, children_s=0.0):
        used = SimpleNamespace(ru_utime=children_s, ru_stime=0.0)
        monkeypatch.setattr(time, "process_time", lambda: own_s)
        monkeypatch.setattr(module.resource, "getrusage", lambda _: used)

    return set_to


def elapsed_s(clocks, begin, end):
    clocks(*begin)
    watch = Stopwatch()
    clocks(*end)
    return watch.elapsed_s()


def test_waiting_for_a_core_does_not_count(clocks):
    assert elapsed_s(clocks, (10.0, "5 1000000000 3"), (14.0, "7 2500000000 4")) == 4.0 - 1.5


@pytest.mark.parametrize("text", ["", "1", "a b c"])
def test_where_the_system_does_not_tell_a_busy_wall_clock_does_not_count(clocks, cpu, text):
    cpu(own_s=1.0)
    clocks(10.0, text)
    watch = Stopwatch()
    clocks(14.0, text)
    cpu(own_s=1.5)
    assert watch.elapsed_s() == 0.5


def test_threads_and_children_are_work_of_the_cpu(clocks, cpu):
    clocks(10.0, "0 0 0")
    cpu(own_s=1.0, children_s=2.0)
    watch = Stopwatch()
    cpu(own_s=1.5, children_s=2.25)
    assert watch.cpu_s() == 0.75


@pytest.mark.parametrize("queued_s", [0.0, 7.0, 700.0])
def test_what_others_do_changes_neither_time(clocks, cpu, queued_s):
    """Eight busy processes beside it: the wall clock runs on, in the run queue."""
    clocks(10.0, "0 0 0")
    cpu(own_s=1.0)
    watch = Stopwatch()
    cpu(own_s=3.0)
    clocks(10.0 + 2.5 + queued_s, f"0 {int(queued_s * 1e9)} 0")
    assert (watch.cpu_s(), watch.elapsed_s()) == (2.0, 2.5)


def test_without_a_count_of_children_the_process_counts(clocks, monkeypatch):
    monkeypatch.setattr(module, "resource", None)
    clocks(10.0, "0 0 0")
    monkeypatch.setattr(time, "process_time", lambda: 1.0)
    watch = Stopwatch()
    monkeypatch.setattr(time, "process_time", lambda: 1.5)
    assert watch.cpu_s() == 0.5


def test_a_child_that_has_ended_counts():
    watch = Stopwatch()
    subprocess.run([sys.executable, "-c", "sum(range(2_000_000))"], check=True)
    assert watch.cpu_s() > 0.02


def test_time_never_runs_backwards(clocks):
    assert elapsed_s(clocks, (10.0, "0 0 0"), (10.5, "0 1000000000 0")) == 0.0


def test_without_the_file_sleep_does_not_count(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_SCHEDULED", tmp_path / "none")
    watch = Stopwatch()
    time.sleep(0.05)
    assert watch.elapsed_s() < 0.05


def test_sleeping_counts_as_the_wait_for_a_disk_would():
    watch = Stopwatch()
    time.sleep(0.02)
    assert watch.elapsed_s() >= 0.015
