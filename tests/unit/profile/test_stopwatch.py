"""The stopwatch stands still while the thread waits for a core."""

import time

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


def elapsed_s(clocks, begin, end):
    clocks(*begin)
    watch = Stopwatch()
    clocks(*end)
    return watch.elapsed_s()


def test_waiting_for_a_core_does_not_count(clocks):
    assert elapsed_s(clocks, (10.0, "5 1000000000 3"), (14.0, "7 2500000000 4")) == 4.0 - 1.5


@pytest.mark.parametrize("text", ["", "1", "a b c"])
def test_where_the_system_does_not_tell_the_wall_clock_counts(clocks, text):
    assert elapsed_s(clocks, (10.0, text), (14.0, text)) == 4.0


def test_time_never_runs_backwards(clocks):
    assert elapsed_s(clocks, (10.0, "0 0 0"), (10.5, "0 1000000000 0")) == 0.0


def test_without_the_file_the_wall_clock_counts(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_SCHEDULED", tmp_path / "none")
    watch = Stopwatch()
    time.sleep(0.01)
    assert watch.elapsed_s() >= 0.01


def test_sleeping_counts_as_the_wait_for_a_disk_would():
    watch = Stopwatch()
    time.sleep(0.02)
    assert watch.elapsed_s() >= 0.015
