"""Fake samples for DataLoaders and for data sets that cannot be made, where ``--fake-data`` says so.

A script is often profiled where its data is not. Each DataLoader keeps its batch size, sampler and
collate function and gets samples of the given form; a Dataset class whose constructor fails becomes one
of such samples, since most scripts die there and not in the loader. Downloads are not begun.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Wrap the DataLoader's constructor and those of Dataset classes to come."""
    dataset = torch.utils.data.Dataset
    loader = torch.utils.data.DataLoader
    create = loader.__init__

    @functools.wraps(create)
    def init(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        if session.fake_data is not None:
            dataset = session.fake_data.instead_of(dataset)
        create(self, dataset, *args, **kwargs)

    def init_subclass(cls: Any, /, **kwargs: Any) -> None:
        super(dataset, cls).__init_subclass__(**kwargs)
        if session.fake_data is not None:
            cls.__init__ = _standing_in(session, cls)

    loader.__init__ = init
    dataset.__init_subclass__ = classmethod(init_subclass)


def _standing_in(session: Session, cls: Any) -> Any:
    create = cls.__init__

    @functools.wraps(create)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
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
