"""What the current span took from DataLoaders; the clock is a counter here."""

import itertools
import statistics
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from advisor.payload.recording import loading as module  # noqa: E402 - needs torch
from advisor.payload.recording.loading import Batches, Hooks, ScriptLoaders  # noqa: E402
from tests.unit.profile.loaders import Loader, fresh, real, samples, take  # noqa: E402

pytestmark = pytest.mark.torch


class Endless(torch.utils.data.IterableDataset):
    def __iter__(self) -> Any:
        return iter(())


class Sized(Endless):
    def __len__(self) -> int:
        return 77


class Ticking:
    """A stopwatch that shows 1 s, then 3, 9, 27 and so on, each time that one is read; half is the CPU's."""

    reads = 0

    def cpu_s(self) -> float:
        return float(3**Ticking.reads) / 2

    def elapsed_s(self) -> float:
        Ticking.reads += 1
        return float(3 ** (Ticking.reads - 1))


@pytest.fixture
def loading(monkeypatch):
    monkeypatch.setattr(Ticking, "reads", 0)
    monkeypatch.setattr(module, "Stopwatch", Ticking)
    return ScriptLoaders()


def test_without_a_batch_there_is_nothing_to_say(loading):
    assert loading.usage() is None
    loading.register(Loader(), 4)
    assert list(Batches(loading, Loader(), iter(()))) == []
    assert loading.usage() is None


def test_batches_pass_through_unchanged(loading):
    batches = [samples(2), {"a": samples(1)}, "text"]
    assert list(Batches(loading, Loader(batches), iter(batches))) == batches


def test_batches_and_samples_add_up_and_the_median_batch_is_timed(loading):
    take(loading, Loader([samples(4)] * 4 + [samples(2)]), 4)
    # The first batch does not count: of 1.5, 4.5 and 13.5 s the CPU's least, and the median of the waits.
    usage = loading.usage()
    assert (usage["fetches"], usage["samples"], usage["seconds"]) == (4, 16, 4 * (1.5 + 4.5))
    assert usage["cpu_seconds"] == 4 * 1.5
    assert (usage["num_batches"], usage["num_samples"], usage["num_workers"]) == (5, 10, None)


@pytest.mark.parametrize(
    ("loader", "expected"),
    [
        (Loader([samples(4)]), {"seconds": 1}),
        # The last batch counts and the end does not.
        (Loader([samples(4), samples(4), samples(2)]), {"fetches": 3, "samples": 10}),
        (Loader(["text", "text"], batch_size=None), {"fetches": 2, "samples": None}),
    ],
)
def test_what_a_loader_gave(loading, loader, expected):
    take(loading, loader)
    assert loading.usage().items() >= expected.items()


def test_a_new_span_starts_at_zero_and_knows_the_loader(loading):
    loader = Loader([samples(4)] * 3)
    loading.register(loader, 6)
    take(loading, loader, 2)
    loading.start_span()
    usage = loading.usage()
    assert (usage["fetches"], usage["samples"], usage["seconds"]) == (0, None, 0.0)
    assert (usage["num_workers"], usage["num_batches"]) == (6, 3)
    take(loading, loader, 1)
    assert (loading.usage()["fetches"], loading.usage()["samples"]) == (1, 4)


@pytest.mark.parametrize("num_workers", [0, 3])
def test_workers_are_those_that_the_script_asked_for(loading, num_workers):
    loader = Loader([samples(4)])
    loading.register(loader, num_workers)
    take(loading, loader)
    assert loading.usage()["num_workers"] == num_workers


def test_an_inner_loop_that_came_to_its_end_does_not_count(loading):
    train, check = Loader([samples(4)] * 3), Loader([samples(1)], sampler=range(5))
    for _ in range(2):
        list(fresh(loading, check))
        take(loading, train)
        assert (loading.usage()["samples"] % 12, loading.usage()["num_samples"]) == (0, 10)


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
        # A mapping need not be a dict.
        (SimpleNamespace(keys=lambda: ["x"], values=lambda: [samples(8)]), 8),
        (None, 4),
    ],
)
def test_the_size_of_a_batch(loading, batch, expected):
    take(loading, Loader([batch]))
    assert loading.usage()["samples"] == expected


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
def test_an_epoch_is_what_the_sampler_takes(loading, parts, expected):
    take(loading, Loader([samples(1)], **parts))
    assert loading.usage()["num_samples"] == expected


def test_a_real_loader_with_a_sampler_of_its_own(loading):
    data = torch.utils.data.TensorDataset(samples(10))
    sampler = torch.utils.data.SubsetRandomSampler(range(6))
    loader = torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler)
    list(Batches(loading, loader, iter(loader)))
    usage = loading.usage()
    assert (usage["num_batches"], usage["num_samples"]) == (2, 6)
    assert (usage["fetches"], usage["samples"]) == (2, 6)


def test_a_real_loader_of_endless_data(loading):
    loader = torch.utils.data.DataLoader(Endless(), batch_size=4)
    batches = Batches(loading, loader, iter([samples(4)]))
    next(batches)
    assert (loading.usage()["num_batches"], loading.usage()["num_samples"]) == (None, None)


class Opaque:
    """A batch of somebody's own: nothing about it tells its size but what was drawn for it."""

    def __init__(self, items: Any) -> None:
        self.items = items


def run(loading: ScriptLoaders, loader: Any, **arguments: Any) -> list[Any]:
    return list(Batches(loading, loader, iter(loader), **arguments))


@pytest.mark.parametrize("collate", [Opaque, list, lambda items: {"text": [str(item) for item in items]}])
def test_the_size_of_a_batch_is_what_was_drawn_for_it(loading, collate):
    loader = real([("a", "b")] * 10, batch_size=4, collate_fn=collate)
    assert len(run(loading, loader)) == 3
    assert loading.usage()["samples"] == 10


class Stream(Sized):
    def __iter__(self) -> Any:
        return iter([samples(1)[0]] * 77)


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        # Batches of tokens differ in size.
        ([0] * 10, {"batch_sampler": [[0, 1, 2], [3], [4, 5, 6, 7, 8, 9]]},
         {"samples": 10, "num_batches": 3, "batch_sizes": [1, 6], "is_dynamic": True}),
        # The short batch at the end is not dynamic.
        ([0] * 10, {"batch_size": 4}, {"batch_sizes": [2, 4], "is_dynamic": False}),
        ([0] * 10, {"batch_size": 4, "drop_last": True}, {"num_batches": 2, "samples": 8}),
        # A data set of whole batches, and one without an index but with a length.
        ([samples(32)] * 5, {"batch_size": None}, {"fetches": 5, "samples": 160, "num_samples": 160}),
        (Stream(), {"batch_size": 10}, {"num_batches": 8, "num_samples": 77, "samples": 77}),
    ],
)  # fmt: skip
def test_what_a_real_loader_gave(loading, data, options, expected):
    run(loading, real(data, **options))
    assert loading.usage().items() >= expected.items()


def padded(items: list[int]) -> Any:
    """Sentences of these lengths as one tensor, beside their labels."""
    return {"labels": torch.zeros(len(items)), "tokens": [torch.zeros(len(items), max(items))]}


LENGTHS = [3, 9, 4, 20, 7, 7, 30, 1, 2, 12, 5]


def test_what_batches_hold_is_their_padded_tokens(loading):
    # The last batch has three sentences, on every GPU.
    run(loading, real(LENGTHS, batch_size=2, collate_fn=padded))
    held = [2 * n for n in (9, 20, 7, 30, 12)]
    assert loading.usage()["batch_variation"] == pytest.approx(statistics.stdev(held) / statistics.mean(held))


def test_batches_of_as_many_tokens_do_not_vary(loading):
    run(
        loading,
        real([6] * 6 + [2] * 9, batch_sampler=[[0, 1, 2], [3, 4, 5], list(range(6, 15))], collate_fn=padded),
    )
    assert loading.usage()["is_dynamic"]
    assert loading.usage()["batch_variation"] == 0


@pytest.mark.parametrize(("num_images", "variation"), [(4, None), (5, None), (6, 0.0), (7, 0.0)])
def test_images_do_not_vary_and_two_batches_tell_nothing(loading, num_images, variation):
    run(loading, real([0] * num_images, batch_size=2, collate_fn=lambda items: samples(len(items))))
    assert loading.usage()["batch_variation"] == variation


@pytest.mark.parametrize("is_timed", [True, False])
def test_batches_without_a_tensor_and_made_up_ones_tell_nothing(loading, is_timed):
    loading.is_timed = is_timed
    collate = (lambda items: [str(item) for item in items]) if is_timed else padded
    run(loading, real(LENGTHS, batch_size=2, collate_fn=collate))
    assert loading.usage()["batch_variation"] is None


def test_batches_that_nobody_gets_tell_how_they_differ(loading):
    loader = real(LENGTHS, batch_size=2, collate_fn=padded)
    batches = Batches(loading, loader, iter(loader))
    next(batches), next(batches)
    usage = loading.usage()
    assert usage["batch_variation"] is None
    held = [2 * n for n in (9, 20, 7, 30, 12)]
    assert loading.retimed(usage)["batch_variation"] == pytest.approx(
        statistics.stdev(held) / statistics.mean(held)
    )
    assert usage["batch_variation"] is None


def test_an_evaluation_does_not_feed_the_training(loading):
    train, check = Loader([samples(4)] * 3), Loader([samples(1)])
    take(loading, train)
    with torch.no_grad():
        take(loading, check)
    assert loading.usage()["samples"] == 12


@pytest.mark.parametrize(("num_workers", "expected"), [(0, 9 + 3 + 1), (2, 1)])
def test_loaders_side_by_side_take_turns_in_the_main_process(loading, num_workers, expected):
    labelled, unlabelled, check = (Loader([samples(4)]) for _ in range(3))
    for loader in (labelled, unlabelled):
        loading.register(loader, num_workers)
    take(loading, labelled)
    take(loading, Loader([samples(4)]))
    take(loading, unlabelled)
    with torch.no_grad():
        take(loading, check)
    assert loading.usage()["seconds"] == expected
    assert loading.usage()["cpu_seconds"] == expected / 2


def endless(loading: ScriptLoaders, loader: Loader) -> Any:
    while True:
        yield from fresh(loading, loader)


def restarted(loading: ScriptLoaders, big: Loader, small: Loader) -> Any:
    inner = fresh(loading, small)
    for _ in fresh(loading, big):
        try:
            next(inner)
        except StopIteration:
            inner = fresh(loading, small)
            next(inner)
        yield


def renewed(loading: ScriptLoaders, big: Loader, small: Loader) -> Any:
    batches = fresh(loading, big)
    while True:
        next(fresh(loading, small))
        next(batches)
        yield


def endless_inside(loading: ScriptLoaders, big: Loader, small: Loader) -> Any:
    inner = endless(loading, small)
    for _ in fresh(loading, big):
        next(inner)
        yield


def zipped_with_a_cycle(loading: ScriptLoaders, big: Loader, small: Loader) -> Any:
    yield from zip(fresh(loading, big), itertools.cycle(fresh(loading, small)), strict=False)


def a_cycle_zipped(loading: ScriptLoaders, big: Loader, small: Loader) -> Any:
    yield from zip(itertools.cycle(fresh(loading, small)), fresh(loading, big), strict=False)


def zipped_with_a_generator(loading: ScriptLoaders, big: Loader, small: Loader) -> Any:
    yield from zip(endless(loading, small), fresh(loading, big), strict=False)


def zipped(loading: ScriptLoaders, big: Loader, small: Loader) -> Any:
    yield from zip(fresh(loading, big), fresh(loading, small), strict=False)


def small_outside(loading: ScriptLoaders, big: Loader, small: Loader) -> Any:
    return endless_inside(loading, small, big)


@pytest.mark.parametrize(
    ("loop", "batch", "rivals"),
    [
        (restarted, 8, [5]),
        (renewed, 8, []),
        (endless_inside, 8, [5]),
        (zipped_with_a_cycle, 8, [5]),
        (a_cycle_zipped, 8, [5]),
        (zipped_with_a_generator, 8, [5]),
        (zipped, 2, [30]),
        (small_outside, 2, [30]),
    ],
)
def test_of_several_loaders_the_one_that_drives_the_loop_counts(loading, loop, batch, rivals):
    iterations = loop(loading, Loader([samples(8)] * 30), Loader([samples(2)] * 5))
    for _ in range(4):
        loading.start_span()
        next(iterations)
    usage = loading.usage()
    assert (usage["samples"], usage["rivals"]) == (batch, rivals)
    assert usage["num_batches"] == {8: 30, 2: 5}[batch]


def test_loaders_of_one_length_leave_nothing_to_guess(loading):
    next(zipped(loading, Loader([samples(8)] * 5), Loader([samples(2)] * 5)))
    assert loading.usage()["rivals"] == []


class Spying(torch.utils.data.Dataset):
    """Notes under which conditions its items are asked for."""

    def __init__(self) -> None:
        self.modes: list[int] = []
        self.threads: list[int] = []

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        self.modes.append(torch._C._len_torch_dispatch_stack())
        self.threads.append(torch.get_num_threads())
        return torch.zeros(2)


class AnyMode(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def conditions(loading: ScriptLoaders, num_workers: int, work: Any = lambda: 0) -> Spying:
    data = Spying()
    loader = real(data, batch_size=1)
    loading.register(loader, num_workers)
    with AnyMode():
        list(loading.watch(loader, iter, Hooks(gpu_work=work)))
        assert torch._C._len_torch_dispatch_stack() == 1
    return data


@pytest.mark.parametrize(
    ("device", "works", "modes"),
    [("cpu", False, [1, 0, 0, 0, 0, 0]), ("cpu", True, [1] * 6), ("cuda", False, [1] * 6)],
)
def test_loading_leaves_our_mode_where_it_uses_no_gpu(loading, monkeypatch, device, works, modes):
    monkeypatch.setattr(torch, "get_default_device", lambda: torch.device(device))
    work = iter(range(100))
    assert conditions(loading, 0, lambda: next(work) if works else 0).modes == modes


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("num_workers", [0, 4])
def test_samples_are_made_in_one_thread_and_the_script_keeps_its_own(loading, two_threads, num_workers):
    assert set(conditions(loading, num_workers).threads) == {1}
    assert torch.get_num_threads() == 2


def test_a_measured_iteration_loads_in_as_many_threads_as_the_script_has(two_threads):
    assert set(conditions(ScriptLoaders("cuda"), 0).threads) == {2}


class Broken(torch.utils.data.Dataset):
    """Sets its own threads, and dies."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        torch.set_num_threads(3)
        raise ValueError("no such file")


@pytest.mark.parametrize("num_workers", [0, 4])
def test_the_script_keeps_its_threads_where_a_sample_fails(loading, two_threads, num_workers):
    loader = real(Broken(), batch_size=1)
    loading.register(loader, num_workers)
    with pytest.raises(ValueError, match="no such file"):
        list(loading.watch(loader, iter))
    assert torch.get_num_threads() == 2


def know(worker_id: int) -> None:
    """A ``worker_init_fn`` that leaves a random generator where the data set finds it."""
    torch.set_num_threads(1)
    torch.utils.data.get_worker_info().first = worker_id + 40


class Knowing(torch.utils.data.Dataset):
    """Its items are what its worker knows."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        worker = torch.utils.data.get_worker_info()
        return (worker.id, worker.num_workers, worker.first + index, worker.dataset is self)


class Sharded(torch.utils.data.IterableDataset):
    """Every worker its share, told when the iterator is made."""

    def __iter__(self) -> Any:
        worker = torch.utils.data.get_worker_info()
        return iter(range(worker.id, 6, worker.num_workers))


def test_the_only_worker_is_begun_and_known(loading):
    loader = real(Knowing(), batch_size=None, worker_init_fn=know)
    loading.register(loader, 4)
    before = torch.get_num_threads()
    for _ in range(2):
        assert list(loading.watch(loader, iter)) == [[0, 1, 40, True], [0, 1, 41, True]]
        assert torch.utils.data.get_worker_info() is None
        assert torch.get_num_threads() == before


def test_the_only_worker_has_all_shards(loading):
    loader = real(Sharded(), batch_size=None)
    loading.register(loader, 2)
    assert list(loading.watch(loader, iter)) == list(range(6))


def test_without_workers_there_is_none_to_begin(loading):
    def fail(worker_id: int) -> None:
        raise AssertionError(worker_id)

    loader = real([1, 2], batch_size=None, worker_init_fn=fail)
    loading.register(loader, 0)
    assert list(loading.watch(loader, iter)) == [1, 2]


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
def test_an_epoch_is_that_of_all_ranks(loading, parts, expected):
    take(loading, Loader([samples(8)] * 3, **parts))
    usage = loading.usage()
    assert (usage["num_batches"], usage["num_samples"]) == expected


@pytest.mark.parametrize("drop_last", [False, True])
def test_a_real_distributed_sampler(loading, drop_last):
    data = torch.utils.data.TensorDataset(samples(103))
    sampler = torch.utils.data.DistributedSampler(data, num_replicas=4, rank=0, drop_last=drop_last)
    loader = torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler)
    list(loading.watch(loader, iter))
    usage = loading.usage()
    assert (len(loader), usage["num_batches"], usage["num_samples"]) == (4, 16, 103)
    assert usage["samples"] == len(sampler)


class Repeat:
    """Ultralytics' batch sampler, which begins again for ever."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __iter__(self) -> Any:
        while True:
            yield from self.sampler


def test_a_batch_sampler_that_repeats_another_counts_the_samples_of_that(loading):
    batches = torch.utils.data.BatchSampler(torch.utils.data.SequentialSampler(range(1000)), 16, False)
    loader = Loader([samples(16)] * 63, batch_sampler=Repeat(batches))
    take(loading, loader, 1)
    assert loading.usage()["num_samples"] == 1000
