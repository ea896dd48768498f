"""Libraries that make a script data parallel, found in the frames that lead to a step of the optimizer."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from advisor.payload.recording.batches import is_trial, parallel_by


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
