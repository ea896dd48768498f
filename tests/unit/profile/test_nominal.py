"""What frames tell: the batch that a YOLO script warms up to, and libraries that train in parallel."""

import sys
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from advisor.payload.recording.batches import at_nominal_batch, is_trial, nominal_batch, parallel_by
from tests.findings import of_child


def call(function: Any) -> int | None:
    return function()


def found() -> int | None:
    return nominal_batch(sys._getframe())


def test_local_variables_of_any_caller_count():
    def train() -> int | None:
        nbs, accumulate = 64, 1
        assert (nbs, accumulate) == (64, 1)
        return call(found)

    assert train() == 64


def test_a_trainer_has_it_in_its_settings():
    class Trainer:
        def __init__(self) -> None:
            self.accumulate, self.args = 1, SimpleNamespace(nbs=48)

        def train(self) -> int | None:
            self.accumulate = max(1, self.args.nbs // 64)
            return call(found)

    assert Trainer().train() == 48


def frame_of(names: dict[str, Any]) -> Any:
    """The frame of a module with these variables."""
    code = compile("nbs, accumulate", "train.py", "exec")
    return SimpleNamespace(f_code=code, f_locals=names, f_back=None)


@pytest.mark.parametrize("names", [{"nbs": 64}, {"nbs": "64", "accumulate": 1}, {"accumulate": 4}])
def test_half_of_the_names_is_no_evidence(names):
    assert nominal_batch(frame_of(names)) is None
    assert nominal_batch(frame_of({"nbs": 64, "accumulate": 1})) == 64


def test_no_property_of_the_script_is_run():
    class Trap:
        accumulate = 1

        @property
        def args(self) -> Any:
            raise AssertionError("its code was run")

    assert nominal_batch(frame_of({"self": Trap()})) is None


class Batch:
    """Something that may be freed."""


def train_yolo() -> bool:
    nbs, accumulate, batch = 64, 1, Batch()
    kept = weakref.ref(batch)
    assert call(found) == nbs * accumulate
    batch = None
    return kept() is not None


def train_otherwise() -> bool:
    batch = Batch()
    kept = weakref.ref(batch)
    assert call(found) is None
    batch = None
    return kept() is not None


@pytest.mark.parametrize("train", [train_yolo, train_otherwise])
def test_what_a_frame_holds_can_be_freed(train):
    """Variables that were read once stayed in memory for a step longer, a batch among them."""
    assert not train()


def span(*, fetches: int = 1, batch: int = 16, **changes: Any) -> dict[str, Any]:
    def entry(name: str, phase: str, count: int) -> dict[str, Any]:
        return {"name": name, "phase": phase, "count": count}

    return {
        "operators": [
            entry("aten::lerp_", "forward", 1), entry("advisor::h2d_copy", "forward", 1),
            entry("aten::mm", "forward", 2), entry("aten::mm", "backward", 2),
            entry("aten::add_", "optimizer", 3),
        ],
        "calls": [[0], [1], [2, 8], [3, 4], [5, 6, 7]],
        "flows": [[{"count": 1}], [], [{"count": 1}, {"count": 1}], [{"count": 2}], []],
        "collectives": [{"kind": "all_reduce", "num_bytes": 4, "world_size": 2, "count": 1}],
        "loading": {"fetches": fetches, "samples": fetches * batch, "seconds": 0.5,
                    "cpu_seconds": 0.25, "num_batches": 63, "batch_sizes": [8, batch]},
        "num_backward_passes": fetches, "most_steps": 1,
        "memory": {"gradient_bytes": 10, "peak_bytes": 100, "pass_peak_bytes": 90},
    } | changes  # fmt: skip


def counts(grown: dict[str, Any]) -> list[int]:
    return [entry["count"] for entry in grown["operators"]]


def test_passes_are_counted_as_often_as_they_will_run():
    grown, (notice,) = at_nominal_batch(span(), 64, 1)
    (warning,) = of_child([notice])
    # Before the batch weights are averaged, behind the gradients they are clipped: once a step.
    assert counts(grown) == [1, 4, 1 * 4 + 1, 2 * 4, 3]
    # Of two products one is of each pass, and nobody knows which.
    assert grown["flows"] == [[{"count": 1}], [], [], [{"count": 8}], []]
    assert (grown["loading"]["fetches"], grown["loading"]["samples"]) == (4, 64)
    assert (grown["loading"]["seconds"], grown["loading"]["cpu_seconds"]) == (2.0, 1.0)
    assert grown["loading"]["num_batches"] == 63
    assert (grown["num_backward_passes"], grown["collectives"][0]["count"]) == (4, 4)
    assert grown["memory"] == {"gradient_bytes": 10, "peak_bytes": 110, "pass_peak_bytes": 100}
    assert "16 samples a step" in warning
    assert "nominal batch size of 64 (4 batches of 16)" in warning


def test_ranks_share_the_nominal_batch():
    assert at_nominal_batch(span(), 64, 2)[0]["loading"]["fetches"] == 2


@pytest.mark.parametrize(
    ("given", "nominal"),
    [(span(), None), (span(fetches=4), 64), (span(batch=64), 64), (span(loading=None), 64)],
)
def test_what_holds_as_much_stays_as_it_is(given, nominal):
    assert at_nominal_batch(given, nominal, 1) == (given, [])


def test_what_was_measured_stays_and_is_told():
    measured = span(iteration_s=0.1)
    same, (notice,) = at_nominal_batch(measured, 64, 1)
    (warning,) = of_child([notice])
    assert same == measured
    assert "the measured iteration is of the first steps" in warning


def stack(*modules: object) -> Any:
    """A frame that these modules called, the outermost first."""
    frame = None
    for module in modules:
        frame = SimpleNamespace(f_globals={"__name__": module}, f_back=frame)
    return frame


@pytest.mark.parametrize(
    ("modules", "library"),
    [
        (("__main__", "torch.optim.optimizer"), None),
        (("__main__", "transformers.trainer", "accelerate.optimizer", "torch.optim.adamw"), "transformers"),
        (("__main__", "accelerate.optimizer", "torch.optim.adamw"), "accelerate"),
        (("__main__", "lightning.pytorch.trainer.trainer", "torch.optim.sgd"), "lightning"),
        (("__main__", "pytorch_lightning.trainer.trainer"), "lightning"),
        # A model of transformers, an optimizer of theirs, a script of a like name: none drives the training.
        (("__main__", "transformers.optimization", "torch.optim.adamw"), None),
        (("lightning_talk", "acceleratex", "transformers.trainer_utils"), None),
        ((None, "__main__"), None),
    ],
)
def test_the_outermost_library_that_calls_the_step_is_named(modules, library):
    assert parallel_by(stack(*modules)) == library


@pytest.mark.parametrize(
    ("function", "tries"),
    # Lightning's tuner, torch_lr_finder, fastai, and scripts; accelerate calls the training itself so.
    [("_lr_find", True), ("range_test", True), ("lr_find", True), ("find_lr", True), ("LRFinder", True),
     ("scale_batch_size", True), ("find_best_learning_rate", True), ("train", False),
     ("find_executable_batch_size", False), ("range_test_report", False), ("get_lr", False)],
)  # fmt: skip
def test_a_step_in_a_search_for_a_learning_rate_is_a_trial(function, tries):
    inner = SimpleNamespace(f_code=SimpleNamespace(co_name="step"), f_back=None)
    inner.f_back = SimpleNamespace(f_code=SimpleNamespace(co_name=function), f_back=None)
    assert is_trial(inner) is tries


def test_a_test_is_no_such_library():
    assert parallel_by(sys._getframe()) is None
    assert parallel_by(None) is None
