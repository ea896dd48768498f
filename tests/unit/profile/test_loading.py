"""What the current span took from DataLoaders; the clock is a counter here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from advisor.profile.fake import loading as module  # noqa: E402 - needs torch
from advisor.profile.fake.loading import Loading  # noqa: E402

pytestmark = pytest.mark.torch


class Loader:
    """The parts of a DataLoader that are asked for, without its checks."""

    def __init__(self, batches: Any = (), *, batch_size: int | None = 4, **parts: Any) -> None:
        self.batches, self.batch_size = batches, batch_size
        facts = {"dataset": range(10), "sampler": range(10), "batch_sampler": None} | parts
        self.dataset, self.sampler, self.batch_sampler = (
            facts[name] for name in ("dataset", "sampler", "batch_sampler")
        )

    def __len__(self) -> int:
        return len(self.batches)


class Endless(torch.utils.data.IterableDataset):
    def __iter__(self) -> Any:
        return iter(())


class Sized(Endless):
    def __len__(self) -> int:
        return 77


def samples(count: int) -> Any:
    return torch.zeros(count, 3)


def take(found: Loading, loader: Loader, count: int | None = None) -> None:
    batches = found.watch(loader, iter(loader.batches))
    for _, _ in zip(range(len(loader.batches) if count is None else count), batches, strict=False):
        pass


@pytest.fixture
def found(monkeypatch) -> Loading:
    """Every look at the clock is one second later than the one before, twice as much at each."""
    ticks = iter(2.0**power for power in range(60))
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(ticks))
    return Loading()


def test_without_a_loader_there_is_nothing_to_say(found):
    assert found.usage() is None
    found.register(Loader(), 4)
    assert found.usage() is None


def test_batches_pass_through_unchanged(found):
    batches = [samples(2), {"a": samples(1)}, "text"]
    assert list(found.watch(Loader(batches), iter(batches))) == batches


def test_an_empty_loader_is_none(found):
    assert list(found.watch(Loader(), iter(()))) == []
    assert found.usage() is None


def test_batches_samples_and_seconds_add_up(found):
    take(found, Loader([samples(4), samples(4), samples(2)]), 2)
    # The clock says 1, 2 around the first batch and 4, 8 around the second.
    usage = found.usage()
    assert (usage["fetches"], usage["samples"], usage["seconds"]) == (2, 8, (2 - 1) + (8 - 4))
    assert (usage["num_batches"], usage["num_samples"], usage["num_workers"]) == (3, 10, None)


def test_the_last_batch_counts_and_the_end_does_not(found):
    take(found, Loader([samples(4), samples(4), samples(2)]))
    usage = found.usage()
    assert (usage["fetches"], usage["samples"]) == (3, 10)


def test_a_new_span_starts_at_zero_and_knows_the_loader(found):
    loader = Loader([samples(4)] * 3)
    found.register(loader, 6)
    take(found, loader, 2)
    found.start_span()
    usage = found.usage()
    assert (usage["fetches"], usage["samples"], usage["seconds"]) == (0, None, 0.0)
    assert (usage["num_workers"], usage["num_batches"]) == (6, 3)
    take(found, loader, 1)
    assert (found.usage()["fetches"], found.usage()["samples"]) == (1, 4)


@pytest.mark.parametrize("num_workers", [0, 3])
def test_workers_are_those_that_the_script_asked_for(found, num_workers):
    loader = Loader([samples(4)])
    found.register(loader, num_workers)
    take(found, loader)
    assert found.usage()["num_workers"] == num_workers


def test_the_loader_that_gave_the_last_batch_counts_alone(found):
    train, check = Loader([samples(4)] * 3), Loader([samples(1)], sampler=range(5))
    take(found, check)
    take(found, train)
    assert (found.usage()["fetches"], found.usage()["samples"], found.usage()["num_samples"]) == (3, 12, 10)
    take(found, check)
    assert (found.usage()["fetches"], found.usage()["samples"], found.usage()["num_samples"]) == (2, 2, 5)


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (samples(7), 7),
        (torch.zeros(7), 7),
        ([samples(7), samples(9)], 7),
        ((torch.tensor(1.0), samples(6)), 6),
        ({"x": samples(5), "y": samples(9)}, 5),
        ({"meta": "text", "x": [samples(3)]}, 3),
        ([[], {"x": samples(2)}], 2),
        (samples(0), None),
        # Nothing in it has a leading dimension: the loader's own batch size.
        (torch.tensor(1.0), 4),
        ("text", 4),
        ([], 4),
        (None, 4),
    ],
)
def test_the_size_of_a_batch(found, batch, expected):
    take(found, Loader([batch]))
    assert found.usage()["samples"] == expected


def test_a_mapping_need_not_be_a_dict(found):
    batch = SimpleNamespace(keys=lambda: ["x"], values=lambda: [samples(8)])
    take(found, Loader([batch]))
    assert found.usage()["samples"] == 8


def test_samples_stay_unknown_where_nothing_tells_them(found):
    take(found, Loader(["text", "text"], batch_size=None))
    usage = found.usage()
    assert (usage["fetches"], usage["samples"]) == (2, None)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"sampler": range(3)}, 3),
        ({"sampler": range(3), "batch_sampler": SimpleNamespace(sampler=range(6))}, 6),
        ({"sampler": range(3), "batch_sampler": SimpleNamespace()}, 3),
        ({"sampler": iter(()), "dataset": range(8)}, 8),
        ({"sampler": iter(()), "dataset": object()}, None),
        ({"sampler": range(3), "dataset": Endless()}, None),
        ({"sampler": range(3), "dataset": Sized()}, 77),
    ],
)
def test_an_epoch_is_what_the_sampler_takes(found, parts, expected):
    take(found, Loader([samples(1)], **parts))
    assert found.usage()["num_samples"] == expected


def test_a_real_loader_with_a_sampler_of_its_own(found):
    data = torch.utils.data.TensorDataset(samples(10))
    sampler = torch.utils.data.SubsetRandomSampler(range(6))
    loader = torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler)
    list(found.watch(loader, iter(loader)))
    usage = found.usage()
    assert (usage["num_batches"], usage["num_samples"]) == (2, 6)
    assert (usage["fetches"], usage["samples"]) == (2, 6)


def test_a_real_loader_of_endless_data(found):
    loader = torch.utils.data.DataLoader(Endless(), batch_size=4)
    batches = found.watch(loader, iter([samples(4)]))
    next(batches)
    assert (found.usage()["num_batches"], found.usage()["num_samples"]) == (None, None)


class Share:
    """A sampler of one rank's share, as DistributedSampler is; the other kind is accelerate's."""

    def __init__(self, size: int, **names: Any) -> None:
        self.size = size
        self.__dict__.update(names)

    def __len__(self) -> int:
        return self.size


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        # 3 batches are the rank's own; 103 samples, padded to 104, are all ranks'.
        ({"sampler": Share(26, num_replicas=4), "dataset": range(103)}, (12, 103)),
        ({"sampler": Share(26, num_replicas=4, dataset=range(99)), "dataset": range(103)}, (12, 99)),
        (
            {"sampler": range(103), "batch_sampler": Share(3, num_processes=4), "dataset": range(103)},
            (12, 103),
        ),
        ({"sampler": Share(26, num_replicas=4), "dataset": object()}, (12, None)),
        ({"sampler": Share(26, num_replicas=1), "dataset": range(103)}, (3, 26)),
        ({"sampler": Share(26, num_replicas=None), "dataset": range(103)}, (3, 26)),
    ],
)
def test_an_epoch_is_that_of_all_ranks(found, parts, expected):
    take(found, Loader([samples(8)] * 3, **parts))
    usage = found.usage()
    assert (usage["num_batches"], usage["num_samples"]) == expected


@pytest.mark.parametrize("drop_last", [False, True])
def test_a_real_distributed_sampler(found, drop_last):
    data = torch.utils.data.TensorDataset(samples(103))
    sampler = torch.utils.data.DistributedSampler(data, num_replicas=4, rank=0, drop_last=drop_last)
    loader = torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler)
    list(found.watch(loader, iter(loader)))
    usage = found.usage()
    assert (len(loader), usage["num_batches"], usage["num_samples"]) == (4, 16, 103)
    assert usage["samples"] == len(sampler)
