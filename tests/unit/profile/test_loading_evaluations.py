"""Evaluations take batches, too: before the first step they are ended early, and never feed the training."""

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from advisor.payload.recording.loading import MOST_EVALUATED, Batches, Hooks, ScriptLoaders  # noqa: E402
from tests.unit.profile.loaders import Loader, fresh, real, samples, take  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture
def loading():
    return ScriptLoaders()


def hooked(loading: ScriptLoaders, num_batches: int, passes: Any = lambda: 0) -> tuple[Batches, list[Any]]:
    """The batches of a loader, and where an evaluation was cut."""
    cuts: list[Any] = []
    loader = Loader([samples(4)] * num_batches)
    hooks = Hooks(backward_passes=passes, cut=lambda *n: cuts.append(n))
    return Batches(loading, loader, iter(loader.batches), hooks=hooks), cuts


def evaluate(loading: ScriptLoaders, num_batches: int, *, passes: Any = lambda: 0, grad: bool = False) -> Any:
    with torch.set_grad_enabled(grad):
        batches, cuts = hooked(loading, num_batches, passes)
        return len(list(batches)), cuts


@pytest.mark.parametrize(
    ("num_batches", "options", "expected"),
    [
        (500, {}, (MOST_EVALUATED, [(MOST_EVALUATED, 500)])),
        # A short one comes to its own end, training is never cut, and with backward passes it is none.
        (MOST_EVALUATED, {}, (MOST_EVALUATED, [])),
        (25, {"grad": True}, (25, [])),
        (25, {"passes": itertools.count().__next__}, (25, [])),
    ],
)
def test_a_long_evaluation_is_ended_early_and_told(loading, num_batches, options, expected):
    assert evaluate(loading, num_batches, **options) == expected


def test_an_evaluation_goes_on_to_its_end_or_to_the_next_batch_of_the_training(loading):
    seen = []
    with torch.no_grad():
        batches = fresh(loading, Loader([samples(4)] * 2))
        seen += [loading.is_evaluating for _ in batches] + [loading.is_evaluating]
        next(fresh(loading, Loader([samples(4)] * 2)))
    seen.append(loading.is_evaluating)
    take(loading, Loader([samples(4)]))
    assert [*seen, loading.is_evaluating] == [True, True, False, True, False]


def test_the_last_batch_of_a_prefetcher_is_part_of_the_evaluation(loading):
    def one_ahead(batches):
        held = next(batches)
        for following in batches:
            yield held
            held = following
        yield held

    with torch.no_grad():
        seen = [loading.is_evaluating for _ in one_ahead(fresh(loading, Loader([samples(4)] * 3)))]
    assert seen == [True, True, True]
    assert not loading.evaluates()  # with the first operator of the training


def test_the_iterator_is_still_the_loaders(loading):
    loader = real([0] * 10, batch_size=4)
    batches = Batches(loading, loader, iter(loader))
    assert (len(batches), batches._num_yielded) == (3, 0)
    assert iter(batches) is batches


def test_an_evaluation_in_a_generator_that_asks_for_the_next_one_is_not_ended(loading):
    batches, cuts = hooked(loading, 500)

    def asks() -> Any:
        for _ in range(20):
            yield next(batches)

    def loops() -> Any:
        for batch in batches:
            yield [batch]

    with torch.no_grad():
        assert (len(list(asks())), cuts) == (20, [])  # else: RuntimeError, generator raised StopIteration
        assert (len(list(loops())), cuts) == (0, [(20, 500)])


def test_batches_of_an_evaluation_are_counted_where_others_train(loading):
    with torch.no_grad():
        take(loading, Loader([samples(4)] * 3))
    assert loading.num_evaluated == 0  # they are all there is, so they feed the training
    take(loading, Loader([samples(4)]))
    assert loading.num_evaluated == 3
    loading.start_span()
    assert loading.num_evaluated == 0


def test_gradients_end_an_evaluation_that_was_left_early(loading):
    with torch.no_grad():
        next(fresh(loading, Loader([samples(4)] * 2)))
        assert loading.evaluates()
    assert not loading.evaluates()
    with torch.no_grad():
        assert not loading.evaluates()
