"""DataLoaders, watched, and fake samples in place of their data."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...protocol import Warned
from ...recording.loading import Hooks
from ...replacing import Original, replace, wrap
from ...session import Session


def install_fake_data(session: Session) -> None:
    """Fake samples for DataLoaders and for data sets that cannot be made, where ``--fake-data`` says so.

    A script is often profiled where its data is not. Each DataLoader keeps its batch size, sampler and
    collate function and gets samples of the given form; a Dataset class whose constructor fails becomes one
    of such samples, since most scripts die there and not in the loader. Downloads are not begun.

    Wrap the DataLoader's constructor and those of Dataset classes to come.
    """
    dataset: Any = torch.utils.data.Dataset
    loader = torch.utils.data.DataLoader

    def init(create: Original, self: object, dataset: Any, *args: object, **kwargs: object) -> None:
        fake = session.fake_data
        create(self, dataset if fake is None else fake.instead_of(dataset), *args, **kwargs)

    def init_subclass(cls: Any, /, **kwargs: object) -> None:
        super(dataset, cls).__init_subclass__(**kwargs)
        if session.fake_data is not None:
            wrap(cls, "__init__", functools.partial(_stand_in, session, cls))

    wrap(loader, "__init__", init)
    replace(dataset, __init_subclass__=classmethod(init_subclass))


def _stand_in(
    session: Session, cls: Any, create: Original, self: object, *args: object, **kwargs: object
) -> None:
    # Only the outermost constructor: one that a subclass calls may fail for a reason it handles.
    if type(self) is not cls or session.fake_data is None:
        create(self, *args, **kwargs)
        return
    if "download" in kwargs:
        kwargs["download"] = False
    try:
        create(self, *args, **kwargs)
    except Exception as error:  # noqa: BLE001 - any reason for which data cannot be read
        session.fake_data.stand_in(self, error, create, args, kwargs)


Loader = torch.utils.data.DataLoader[object]
_NEED_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")


class _NoWorkers(int):
    """Zero workers in place of those asked for: a loader made from this one's attributes asks for as many."""

    asked: int

    def __new__(cls, asked: int) -> _NoWorkers:
        zero = super().__new__(cls, 0)
        zero.asked = asked
        return zero


def install_data_loader(session: Session) -> None:
    """DataLoader without worker processes and pinned memory (which a real GPU keeps), watched.

    Workers of a script that is stopped after three batches only cost time, and pinning needs CUDA. What the
    script asked for is kept: the trace says how many workers it has and how long one batch takes one, and
    ``worker_init_fn`` and the data set find themselves in the only worker of one. An evaluation over a whole
    data set before the first step is ended early, since it would take minutes.

    Wrap construction and iteration.
    """
    loader = torch.utils.data.DataLoader
    create: Callable[..., None] = loader.__init__
    signature = inspect.signature(create)

    # Lightning reads the signature to build a loader like it.
    @functools.wraps(create)
    def init(self: Loader, *args: object, **kwargs: object) -> None:
        arguments = signature.bind(self, *args, **kwargs).arguments
        num_workers = arguments.get("num_workers", 0)
        num_workers = getattr(num_workers, "asked", num_workers)
        arguments.update(num_workers=_NoWorkers(num_workers), pin_memory=False)
        for name in _NEED_WORKERS:
            arguments.pop(name, None)
        arguments.pop("self")
        create(self, **arguments)
        session.loading.register(self, num_workers)

    def gpu_work() -> object:
        # Memory, too: an empty tensor takes no operator that counts.
        return session.recorder.next_call, session.memory.num_storages

    def passes() -> object:
        return session.loading.num_spans, session.recorder.num_backward_passes

    def cut(num_given: int, num_batches: int | None) -> None:
        session.warn(Warned.EVALUATION_SEEN, where="cut", num_given=num_given, num_batches=num_batches)

    iterating: list[object] = []

    def watch(self: Loader, original: Callable[..., Iterator[object]]) -> Iterator[object]:
        session.stopper.check()
        iterating.append(self)
        try:
            hooks = Hooks(gpu_work=gpu_work, backward_passes=passes, cut=cut)
            return session.loading.watch(self, original, hooks)
        finally:
            iterating.pop()

    # Subclasses such as Ultralytics' ask for an iterator by its private name.
    def begin_watched(begin: Original, self: Loader) -> object:
        return begin(self) if self in iterating else watch(self, begin)

    wrap(loader, "__iter__", lambda iterate, self: watch(self, iterate))
    wrap(loader, "_get_iterator", begin_watched)
    if session.backend != "cuda":
        replace(loader, __init__=init)
