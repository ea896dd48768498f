"""What a script without a DataLoader makes between the GPU's calls; the clocks are counters here."""

import threading
import time

import pytest

pytest.importorskip("torch")
from advisor.payload import progress
from advisor.payload.recording import stopwatch as module
from advisor.payload.recording.stopwatch import Making

pytestmark = pytest.mark.torch


class Clocks:
    """Seconds of the thread on a core, in the queue for one, and waiting for anything else."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cpu_s = self.queue_s = self.idle_s = 0.0
        self.others_s: dict[int, float] = {}
        self.tells_queue = True
        monkeypatch.setattr(time, "thread_time", lambda: self.cpu_s)
        monkeypatch.setattr(time, "perf_counter", lambda: self.cpu_s + self.queue_s + self.idle_s)
        monkeypatch.setattr(module, "queued_s", lambda: self.queue_s if self.tells_queue else None)
        monkeypatch.setattr(module, "_others_s", lambda: dict(self.others_s))
        monkeypatch.setattr(module, "_dispatch_s", lambda: 0.5)


@pytest.fixture
def clocks(monkeypatch):
    with monkeypatch.context() as context:
        yield Clocks(context)


def test_what_ends_in_a_copy_was_made_and_what_ends_in_a_kernel_was_not(clocks):
    making = Making()
    clocks.cpu_s += 3
    making.copied()
    clocks.cpu_s += 100  # the copy's own work on the pretended GPU
    making.resume()
    clocks.cpu_s += 4
    making.copied()
    making.resume()
    clocks.cpu_s += 50  # Python on the way to a kernel
    making.resume()
    assert making.seconds() == 7


def test_a_new_span_begins_with_nothing(clocks):
    making = Making()
    clocks.cpu_s += 3
    making.copied()
    clocks.cpu_s += 5
    making.start_span()
    making.copied()
    assert making.seconds() == 0


@pytest.mark.parametrize(("tells_queue", "idle_s", "expected_s"), [(True, 4.0, 1 + 4), (False, 0.0, 1)])
def test_a_disk_counts_and_the_wait_for_a_core_does_not(clocks, tells_queue, idle_s, expected_s):
    """Where the queue is not told a busy wall clock does not count."""
    clocks.tells_queue = tells_queue
    making = Making()
    clocks.cpu_s, clocks.queue_s, clocks.idle_s = 1.0, 16.0, idle_s
    making.copied()
    assert making.seconds() == expected_s


def test_what_the_dispatch_mode_adds_is_taken_off_where_operators_made_a_copy(clocks):
    making = Making()
    for seconds in (3, 4):
        clocks.cpu_s += seconds
        making.add_operator()
        making.add_operator()
        making.copied()
    making.add_operator()
    making.resume()  # a kernel: neither its time nor its operators count
    assert making.seconds() == 7 - 4 * 0.5
    making.start_span()
    making.add_operator()
    making.copied()
    assert making.seconds() == 0  # never less


def test_other_threads_count_by_what_they_spent_in_this_span(clocks):
    clocks.others_s = {1: 10.0, 2: 5.0}
    making = Making()
    clocks.others_s = {1: 12.0, 3: 0.25}  # the second has ended, a third has begun
    assert making.seconds() == 2 + 0.25


def test_what_other_threads_do_does_not_disturb_the_main_one(clocks):
    making = Making()
    clocks.cpu_s += 3
    for event in (making.resume, making.add_operator, making.copied):
        thread = threading.Thread(target=event)
        thread.start()
        thread.join()
    making.copied()
    assert making.seconds() == 3


def test_a_living_thread_has_spent_something_and_this_one_is_left_out():
    begun, done = threading.Event(), threading.Event()

    def live() -> None:
        begun.set()
        done.wait()

    thread = threading.Thread(target=live)
    thread.start()
    begun.wait()
    found = module._others_s()
    done.set()
    thread.join()
    assert threading.get_native_id() not in found
    assert set(found) >= {thread.native_id}
    assert all(seconds >= 0 for seconds in found.values())
    assert thread.native_id not in module._others_s()


def test_the_thread_that_watches_the_memory_is_not_the_scripts(monkeypatch):
    done = threading.Event()
    monkeypatch.setattr(progress, "_watch", lambda *_: done.wait())
    before = set(threading.enumerate())
    progress.watch({"memory_bytes": 2**60})
    (own,) = set(threading.enumerate()) - before
    assert own.native_id not in module._others_s()
    done.set()


def test_without_a_mode_nothing_is_added_to_an_operator(monkeypatch):
    seconds = iter([3.0, 1.0, 1.0, 1.0])
    monkeypatch.setattr(module, "_operator_s", lambda: next(seconds))
    assert [module._dispatch_s(), module._dispatch_s()] == [2.0, 0.0]
