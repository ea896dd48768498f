"""Measured calls: chosen, joined, and by fold."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.core.errors import InputError
from research.tests.training.values import make_samples
from research.training.folds import ALL, FIVE, HELD_OUT_SHARE, UNSEEN_DIMS, chosen, held_out
from research.training.samples import Samples
from tests.unit.predict.learned.values import add, softmax

GPUS = ("P4", "P100-PCIE-16GB", "T4", "V100-PCIE-32GB", "A100-PCIE-40GB", "A100-PCIE-80GB", "L4")
SAMPLES = make_samples([(gpu, "add", split, 1e-3) for gpu in GPUS for split in ("train", "test")])


def rows(samples: Samples) -> set[tuple[str, str]]:
    assert len(samples.ops) == len(samples.gpus) == len(samples.time_s) == len(samples.kinds)
    return set(zip(samples.gpus.tolist(), samples.splits.tolist(), strict=True))


def test_chosen_calls_keep_their_order_and_their_columns() -> None:
    ops = [add(i) for i in (1, 2, 3)]
    samples = make_samples([("T4", "a", "train", 1.0), ("P4", "b", "test", 2.0), ("L4", "c", "x", 3.0)], ops)
    joined = samples.where(np.array([True, False, True]))
    assert joined.ops == (ops[0], ops[2])
    assert (joined.gpus.tolist(), joined.kinds.tolist()) == (["T4", "L4"], ["a", "c"])
    assert (joined.splits.tolist(), joined.time_s.tolist()) == (["train", "x"], [1.0, 3.0])


def test_joined_calls_come_one_recording_after_the_other() -> None:
    first = make_samples([("T4", "add", "train", 1.0)])
    second = make_samples([("A100-PCIE-40GB", "longer", "test", 2.0)])  # longer texts must not be cut
    joined = Samples.joined([first, second])
    assert joined.gpus.tolist() == ["T4", "A100-PCIE-40GB"]
    assert joined.kinds.tolist() == ["add", "longer"]
    assert joined.time_s.tolist() == [1.0, 2.0]
    assert joined.ops == (*first.ops, *second.ops)


def test_what_ships_learns_from_every_training_split() -> None:
    assert rows(chosen(SAMPLES, ALL)) == {(gpu, "train") for gpu in GPUS}


def test_the_five_learn_from_their_training_split() -> None:
    assert rows(chosen(SAMPLES, FIVE)) == {(gpu, "train") for gpu in GPUS[:5]}


@pytest.mark.parametrize("gpu", GPUS)
def test_a_gpu_that_is_left_out_is_out(gpu: str) -> None:
    expected = {(other, "train") for other in GPUS if other != gpu}
    assert rows(chosen(SAMPLES, f"without:{gpu}")) == expected


def test_all_gpus_of_an_architecture_are_left_out_together() -> None:
    left = {gpu for gpu, _ in rows(chosen(SAMPLES, "without:Ampere"))}
    assert set(GPUS) - left == {"A100-PCIE-40GB", "A100-PCIE-80GB"}


def every_gpu_and_split(num_rows: int) -> Samples:
    """Element-wise calls and softmax of as many shapes, in another order on each GPU."""
    rng, splits = np.random.default_rng(0), []
    for gpu in GPUS:
        for split in ("train", "test"):
            ops = [build(i, 64) for build in (add, softmax) for i in rng.permutation(num_rows).tolist()]
            splits.append(make_samples([(gpu, op.name, split, 1e-3) for op in ops], ops))
    return Samples.joined(splits)


def shapes_of(samples: Samples) -> set[tuple[int, ...]]:
    return {op.outputs[0].shape for op in samples.ops}


def test_unseen_dimensions_are_seen_nowhere() -> None:
    everything = every_gpu_and_split(1000)
    seen, unseen = chosen(everything, UNSEEN_DIMS), held_out(everything)
    assert rows(seen) == rows(unseen) == {(gpu, "train") for gpu in GPUS}
    assert not shapes_of(seen) & shapes_of(unseen)
    assert len(seen.ops) + len(unseen.ops) == len(everything.ops) / 2
    assert len(shapes_of(unseen)) == pytest.approx(1000 * HELD_OUT_SHARE, rel=0.25)


def test_the_same_dimensions_are_held_out_of_every_gpu_and_operator() -> None:
    unseen = held_out(every_gpu_and_split(200))
    groups = {
        (gpu, kind): shapes_of(unseen.where((unseen.gpus == gpu) & (unseen.kinds == kind)))
        for gpu in GPUS
        for kind in ("aten::add.Tensor", "aten::_softmax")
    }
    assert len(set(map(frozenset, groups.values()))) == 1


def test_dimensions_are_drawn_by_themselves_alone() -> None:
    """The same tomorrow, on another machine, and with more measurements beside them."""
    few, many = (shapes_of(held_out(every_gpu_and_split(number))) for number in (20, 200))
    assert few == {shape for shape in many if shape[0] < 20}
    assert sorted(few) == [(3, 64), (15, 64), (18, 64), (19, 64)]


def test_a_gpu_may_be_left_out_by_any_of_its_names() -> None:
    assert rows(chosen(SAMPLES, "without:Tesla T4")) == rows(chosen(SAMPLES, "without:T4"))


def test_leaving_out_a_gpu_that_was_never_measured_leaves_the_training_split() -> None:
    assert rows(chosen(SAMPLES, "without:H100-PCIE-80GB")) == {(gpu, "train") for gpu in GPUS}


@pytest.mark.parametrize("fold", ["", "All", "six", "with:T4", "without"])
def test_an_unknown_fold_is_refused_with_those_there_are(fold: str) -> None:
    with pytest.raises(InputError, match="choose all, five, unseen-dims or without:GPU") as caught:
        chosen(SAMPLES, fold)
    assert repr(fold) in str(caught.value)


@pytest.mark.parametrize("name", ["", "Voodoo", "A100"])
def test_leaving_out_what_is_no_gpu_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        chosen(SAMPLES, f"without:{name}")


@pytest.mark.parametrize(("fold", "gpu"), [("five", "L4"), ("without:L4", "L4")])
def test_a_fold_of_nothing_is_refused(fold: str, gpu: str) -> None:
    with pytest.raises(InputError, match="nothing to train on"):
        chosen(make_samples([(gpu, "add", "train", 1.0)]), fold)
