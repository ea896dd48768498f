"""Live bytes, the peak and what it is made of, by storages that need no torch."""

import itertools
import sys
from typing import Any

import pytest

from advisor.payload.recording.memory import MemoryTracker


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
    shape = (1,)

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


def play(tracker: MemoryTracker, story: list[Any]) -> Any:
    """Usage after a story: tensors are made of so many bytes, perhaps of a kind, and ended by ``-name``."""
    alive = {}
    acts = {"span": tracker.start_span, "step": tracker.begin_step, "end": tracker.end_step}
    for word in story:
        if isinstance(word, tuple):
            name, *facts = word
            alive[name] = tracked(tracker, *facts)
        elif word in acts:
            acts[word]()
        else:
            del alive[word.removeprefix("-")]
    return tracker.usage()


P, G, S = "parameter", "gradient", "optimizer"
STORIES = {
    "kinds and activations add up to the peak": (
        ["span", ("w", 512, P), ("g", 1024, G), ("o", 2048, S), ("a", 4096)],
        {"parameter": 512, "gradient": 1024, "optimizer": 2048, "activation": 4096, "peak": 7680},
    ),
    # Activations are the most before the gradient is there.
    "passes have a peak of their own": (
        [
            ("w", 2048, P), "span", ("a", 4096), "-a", ("g", 2048, G), ("late", 2560), "-late",
            "step", ("copies", 8192), "end",
        ],
        {"peak": 2 * 2048 + 8192, "activation": 8192, "pass_peak": 2 * 2048 + 2560, "pass_activation": 2560,
         "most_activation": 4096},
    ),
    "what was alive before the span counts": (
        [("w", 2048, P), "span", ("a", 512)], {"parameter": 2048, "activation": 512, "peak": 2560},
    ),
    "a span without events has the memory of its start": (
        [("w", 2048, P), ("other", 512), "span"], {"parameter": 2048, "activation": 512, "peak": 2560},
    ),
    "a span forgets a higher peak": ([("setup", 8192), "-setup", "span", ("a", 512)], {"peak": 512}),
    "the start of a span can be its peak": (
        [("rest", 4096), "span", "-rest", ("late", 512)], {"peak": 4096, "activation": 4096},
    ),
    "what ended before the peak is no part of it": (
        ["span", ("early", 1024), "-early", ("late", 2048)], {"peak": 2048, "activation": 2048},
    ),
    "of two equal peaks the first counts": (
        ["span", ("a", 1024), "-a", ("w", 1024, P)], {"activation": 1024, "parameter": 1024, "peak": 1024},
    ),
    "of a freed gradient and a new one the new one counts": (
        [("old", 1024, G), "span", "-old", ("new", 1024, G)], {"gradient": 1024},
    ),
    "freed gradients are no total": ([("a", 1024, G), "span", "-a", ("g", 1024, G), "-g"], {"gradient": 0}),
    "freed parameters are totals": (["span", ("w", 1024, P), "-w"], {"parameter": 1024}),
    "freed state is a total": (["span", ("o", 1024, S), "-o"], {"optimizer": 1024}),
    "gradients born after the peak exceed it": (
        ["span", ("a", 4096), "-a", ("g", 1024, G)], {"gradient": 1024, "activation": 4096, "peak": 4096},
    ),
    "kinds survive spans as long as their storage": (
        [("w", 512, P), ("gone", 1024, P), "-gone", "span", "span"], {"parameter": 512},
    ),
    "a step inside of another is a part of it": (
        [("w", 2048, P), "span", "step", ("cast", 4096), "step", "end", ("gathered", 8192), "end"],
        {"pass_peak": 2048, "peak": 2048 + 4096 + 8192},
    ),
    "what is kept is no activation and part of no state": (
        [("w", 2048, P), ("buffer", 8192, "kept"), "span", ("a", 512)],
        {"parameter": 2048, "gradient": 0, "optimizer": 0, "activation": 512, "peak": 2048 + 8192 + 512,
         "most_activation": 512},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_bytes_by_kind_and_at_the_peak(tracker, name):
    story, expected = STORIES[name]
    usage = play(tracker, story)
    assert {kind: usage[f"{kind}_bytes"] for kind in expected} == expected


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
