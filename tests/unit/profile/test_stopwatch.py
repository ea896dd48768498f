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


@pytest.mark.parametrize(
    ("begin", "end", "expected_s"),
    [
        # Waiting for a core does not count, for a disk it does, and time never runs backwards.
        ((10.0, "5 1000000000 3"), (14.0, "7 2500000000 4"), 4.0 - 1.5),
        ((10.0, "0 0 0"), (14.0, "0 0 0"), 4.0),
        ((10.0, "0 0 0"), (10.5, "0 1000000000 0"), 0.0),
        # Where the system does not tell, a busy wall clock does not count.
        *(((10.0, text), (14.0, text), 0.5) for text in ("", "1", "a b c")),
    ],
)
def test_what_the_wall_clock_and_the_run_queue_tell(clocks, cpu, begin, end, expected_s):
    cpu(own_s=1.0)
    clocks(*begin)
    watch = Stopwatch()
    clocks(*end)
    cpu(own_s=1.5)
    assert watch.elapsed_s() == expected_s


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
    children = module.resource.getrusage(module.resource.RUSAGE_CHILDREN)
    assert 0 < watch.cpu_s() <= time.process_time() + children.ru_utime + children.ru_stime


def test_without_the_file_the_wall_clock_does_not_count(monkeypatch, cpu, tmp_path):
    monkeypatch.setattr(module, "_SCHEDULED", tmp_path / "none")
    cpu(own_s=1.0)
    monkeypatch.setattr(time, "perf_counter", lambda: 10.0)
    watch = Stopwatch()
    monkeypatch.setattr(time, "perf_counter", lambda: 20.0)
    assert watch.elapsed_s() == 0.0


def test_a_core_lost_between_the_two_clocks_is_no_time(monkeypatch):
    """Preempted for a second just after the wall's clock was read: both are read again."""
    readings = iter([0.0, 1.0, 1.0, 1.0])
    walls = iter([10.0, 11.0])
    monkeypatch.setattr(module, "queued_s", lambda: next(readings))
    monkeypatch.setattr(time, "perf_counter", lambda: next(walls))
    assert module._instant() == (11.0, 1.0)


def test_a_machine_that_is_always_busy_still_gets_an_answer(monkeypatch):
    readings = iter(range(100))
    monkeypatch.setattr(module, "queued_s", lambda: float(next(readings)))
    monkeypatch.setattr(time, "perf_counter", lambda: 10.0)
    assert module._instant() == (10.0, float(2 * module._TRIES - 1))
