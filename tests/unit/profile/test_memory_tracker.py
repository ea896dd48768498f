"""Live bytes, the peak and what it is made of, by storages that need no torch."""

import itertools
import sys
from typing import Any

import pytest

from advisor.payload.recording.memory import MemoryTracker

KIND_BYTES = ("parameter_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes")


class Storage:
    """What the tracker asks of a torch storage; its address stays free for reuse after its end."""

    def __init__(self, num_bytes: int, address: int) -> None:
        self._cdata = address
        self._num_bytes = num_bytes

    def nbytes(self) -> int:
        return self._num_bytes


class Tensor:
    """A tensor is its storage here."""

    addresses = 0

    def __init__(self, num_bytes: int, *, address: int | None = None) -> None:
        Tensor.addresses += 1
        self._storage = Storage(num_bytes, -Tensor.addresses if address is None else address)

    def untyped_storage(self) -> Storage:
        return self._storage

    def view(self) -> "Tensor":
        view = Tensor(0)
        view._storage = self._storage
        return view


def tracked(tracker: MemoryTracker, num_bytes: int, kind: str | None = None, **facts: Any) -> Tensor:
    tensor = Tensor(num_bytes, **facts)
    tracker.track(tensor)
    if kind is not None:
        tracker.tag(tensor, kind)
    return tensor


@pytest.fixture
def tracker():
    return MemoryTracker()


@pytest.mark.parametrize(
    ("num_bytes", "expected"), [(0, 0), (1, 512), (511, 512), (512, 512), (513, 1024), (5120, 5120)]
)
def test_storages_are_rounded_up_to_blocks(tracker, num_bytes, expected):
    tensor = tracked(tracker, num_bytes)
    assert (tracker.current_bytes, tracker.peak_bytes) == (expected, expected)
    assert tensor.untyped_storage().nbytes() == num_bytes


def test_a_storage_counts_once_however_many_views_it_has(tracker):
    tensor = tracked(tracker, 1024)
    view = tensor.view()
    tracker.track(view)
    tracker.track(tensor)
    assert tracker.current_bytes == 1024
    del tensor
    assert tracker.current_bytes == 1024
    del view
    assert tracker.current_bytes == 0


def test_the_peak_outlives_what_made_it(tracker):
    first = tracked(tracker, 1024)
    second = tracked(tracker, 2048)
    del first
    third = tracked(tracker, 512)
    assert (tracker.current_bytes, tracker.peak_bytes) == (2048 + 512, 3072)
    del second, third
    assert (tracker.current_bytes, tracker.peak_bytes) == (0, 3072)


def test_an_address_that_is_used_again_is_a_new_storage(tracker):
    tracker.start_span()
    first = tracked(tracker, 512, "parameter", address=7)
    del first
    second = tracked(tracker, 1024, address=7)
    usage = tracker.usage()
    assert tracker.current_bytes == 1024
    # The first was a parameter; the second, at the peak, is none.
    assert (usage["parameter_bytes"], usage["activation_bytes"], usage["peak_bytes"]) == (512, 1024, 1024)
    del second


def test_kinds_and_activations_add_up_to_the_peak(tracker):
    tracker.start_span()
    kept = [
        tracked(tracker, size, kind)
        for size, kind in ((512, "parameter"), (1024, "gradient"), (2048, "optimizer"), (4096, None))
    ]
    usage = tracker.usage()
    assert [usage[name] for name in KIND_BYTES] == [512, 1024, 2048, 4096]
    assert usage["peak_bytes"] == 512 + 1024 + 2048 + 4096
    assert len(kept) == 4


def test_passes_have_a_peak_of_their_own_and_activations_a_most(tracker):
    weight = tracked(tracker, 2048, "parameter")
    tracker.start_span()
    activation = tracked(tracker, 4096)
    del activation
    gradient = tracked(tracker, 2048, "gradient")
    late = tracked(tracker, 2560)
    del late
    tracker.begin_step()
    copies = tracked(tracker, 8192)
    tracker.end_step()
    usage = tracker.usage()
    assert (usage["peak_bytes"], usage["activation_bytes"]) == (2 * 2048 + 8192, 8192)
    assert (usage["pass_peak_bytes"], usage["pass_activation_bytes"]) == (2 * 2048 + 2560, 2560)
    # Before the gradient was there.
    assert usage["most_activation_bytes"] == 4096
    del weight, gradient, copies


def test_what_was_alive_before_the_span_counts(tracker):
    weight = tracked(tracker, 2048, "parameter")
    tracker.start_span()
    activation = tracked(tracker, 512)
    usage = tracker.usage()
    assert (usage["parameter_bytes"], usage["activation_bytes"], usage["peak_bytes"]) == (2048, 512, 2560)
    del weight, activation


def test_a_span_without_events_has_the_memory_of_its_start(tracker):
    weight = tracked(tracker, 2048, "parameter")
    other = tracked(tracker, 512)
    tracker.start_span()
    usage = tracker.usage()
    assert (usage["parameter_bytes"], usage["activation_bytes"], usage["peak_bytes"]) == (2048, 512, 2560)
    del weight, other


def test_the_peak_of_a_span_forgets_a_higher_one_before(tracker):
    setup = tracked(tracker, 8192)
    del setup
    tracker.start_span()
    activation = tracked(tracker, 512)
    assert tracker.usage()["peak_bytes"] == 512
    assert tracker.peak_bytes == 8192
    del activation


def test_the_start_of_a_span_can_be_its_peak(tracker):
    rest = tracked(tracker, 4096)
    tracker.start_span()
    del rest
    late = tracked(tracker, 512)
    usage = tracker.usage()
    assert (usage["peak_bytes"], usage["activation_bytes"]) == (4096, 4096)
    del late


def test_what_ended_before_the_peak_is_no_part_of_it(tracker):
    tracker.start_span()
    early = tracked(tracker, 1024)
    del early
    late = tracked(tracker, 2048)
    usage = tracker.usage()
    assert (usage["peak_bytes"], usage["activation_bytes"]) == (2048, 2048)
    del late


def test_of_two_equal_peaks_the_first_counts(tracker):
    tracker.start_span()
    activation = tracked(tracker, 1024)
    del activation
    weight = tracked(tracker, 1024, "parameter")
    usage = tracker.usage()
    assert (usage["activation_bytes"], usage["parameter_bytes"], usage["peak_bytes"]) == (1024, 1024, 1024)
    del weight


def test_a_gradient_that_was_freed_in_the_span_is_no_total(tracker):
    old = tracked(tracker, 1024, "gradient")
    tracker.start_span()
    del old
    new = tracked(tracker, 1024, "gradient")
    assert tracker.usage()["gradient_bytes"] == 1024
    del new
    assert tracker.usage()["gradient_bytes"] == 0


@pytest.mark.parametrize("kind", ["parameter", "optimizer"])
def test_freed_parameters_and_state_of_the_span_are_totals(tracker, kind):
    tracker.start_span()
    tensor = tracked(tracker, 1024, kind)
    del tensor
    assert tracker.usage()[f"{kind}_bytes"] == 1024


def test_gradients_born_after_the_peak_exceed_it(tracker):
    tracker.start_span()
    activation = tracked(tracker, 4096)
    del activation
    gradient = tracked(tracker, 1024, "gradient")
    usage = tracker.usage()
    assert (usage["gradient_bytes"], usage["activation_bytes"], usage["peak_bytes"]) == (1024, 4096, 4096)
    del gradient


def test_kinds_survive_a_new_span_as_long_as_their_storage(tracker):
    weight = tracked(tracker, 512, "parameter")
    gone = tracked(tracker, 1024, "parameter")
    del gone
    tracker.start_span()
    assert tracker.usage()["parameter_bytes"] == 512
    tracker.start_span()
    assert tracker.usage()["parameter_bytes"] == 512
    del weight


def test_the_last_kind_wins(tracker):
    tracker.start_span()
    tensor = tracked(tracker, 512, "gradient")
    tracker.tag(tensor.view(), "parameter")
    usage = tracker.usage()
    assert (usage["parameter_bytes"], usage["gradient_bytes"]) == (512, 0)


def test_a_storage_made_while_nobody_watched_counts_from_then_on(tracker):
    tracker.start_span()
    parameter = Tensor(512)
    tracker.tag(parameter, "parameter")
    usage = tracker.usage()
    assert (usage["parameter_bytes"], usage["peak_bytes"], usage["activation_bytes"]) == (512, 512, 0)


@pytest.mark.parametrize("count", [MemoryTracker.start_span, MemoryTracker.usage])
def test_storages_may_end_while_they_are_counted(tracker, count):
    tensors = [tracked(tracker, 512) for _ in range(5000)]
    tracker.start_span()
    instructions = itertools.count()

    def end_some(frame: Any, *_: Any) -> Any:
        frame.f_trace_opcodes = True
        if tensors and next(instructions) % 20 == 0:
            tensors.pop()
        return end_some

    before = sys.gettrace()
    sys.settrace(end_some)
    try:
        count(tracker)
    finally:
        sys.settrace(before)
    assert len(tensors) < 5000


def test_a_step_inside_of_another_is_a_part_of_it(tracker):
    weight = tracked(tracker, 2048, "parameter")
    tracker.start_span()
    tracker.begin_step()
    cast = tracked(tracker, 4096)
    tracker.begin_step()
    tracker.end_step()
    gathered = tracked(tracker, 8192)
    tracker.end_step()
    usage = tracker.usage()
    assert (usage["pass_peak_bytes"], usage["peak_bytes"]) == (2048, 2048 + 4096 + 8192)
    del weight, cast, gathered


def test_what_is_kept_is_no_activation_and_part_of_no_state(tracker):
    weight = tracked(tracker, 2048, "parameter")
    buffer = tracked(tracker, 8192, "kept")
    tracker.start_span()
    activation = tracked(tracker, 512)
    usage = tracker.usage()
    assert [usage[name] for name in KIND_BYTES] == [2048, 0, 0, 512]
    assert (usage["peak_bytes"], usage["most_activation_bytes"]) == (2048 + 8192 + 512, 512)
    del weight, buffer, activation
