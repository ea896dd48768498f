"""Fake samples for DataLoaders and for data sets that cannot be made, where ``--fake-data`` says so.

A script is often profiled where its data is not. Each DataLoader keeps its batch size, sampler and
collate function and gets samples of the given form; a Dataset class whose constructor fails becomes one
of such samples, since most scripts die there and not in the loader. Downloads are not begun.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Wrap the DataLoader's constructor and those of Dataset classes to come."""
    dataset: Any = torch.utils.data.Dataset
    loader = torch.utils.data.DataLoader
    create: Callable[..., None] = loader.__init__

    @functools.wraps(create)
    def init(
        self: object, dataset: torch.utils.data.Dataset[object], *args: object, **kwargs: object
    ) -> None:
        if session.fake_data is not None:
            create(self, session.fake_data.instead_of(dataset), *args, **kwargs)
        else:
            create(self, dataset, *args, **kwargs)

    def init_subclass(cls: Any, /, **kwargs: object) -> None:
        super(dataset, cls).__init_subclass__(**kwargs)
        if session.fake_data is not None:
            replace(cls, __init__=_standing_in(session, cls))

    replace(loader, __init__=init)
    replace(dataset, __init_subclass__=classmethod(init_subclass))


def _standing_in(session: Session, cls: Any) -> object:
    create = cls.__init__

    @functools.wraps(create)
    def init(self: object, *args: object, **kwargs: object) -> None:
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

    return init
