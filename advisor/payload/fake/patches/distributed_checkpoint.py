"""``torch.distributed.checkpoint`` saves shapes, as `saving` does, in place of files with every byte.

Its writer would copy the whole state to the host and write it. A load of what this run saved gives back
what is no tensor; tensors are left alone, since theirs are made-up values anyway.
"""

from __future__ import annotations

import functools
import os
from concurrent.futures import Future
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from ...importing import when_imported
from ...protocol import Warned
from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session

_PACKAGE = "torch.distributed.checkpoint"
_FILE = "state.pt"


def install(session: Session) -> None:
    """Watch for the package."""
    when_imported(_PACKAGE, functools.partial(_patch, session))


def _patch(session: Session, package: ModuleType) -> None:
    original_load = package.load

    @functools.wraps(package.save)
    def save(
        state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_writer: object = None, **_: object
    ) -> None:
        session.warn(Warned.FILES_THROWN_AWAY, library="torch.distributed.checkpoint")
        folder = session.saved.place(_path(checkpoint_id, storage_writer))
        os.makedirs(folder, exist_ok=True)
        torch.save(_plain(state_dict), os.path.join(folder, _FILE))

    @functools.wraps(package.async_save)
    def async_save(*args: Any, **kwargs: Any) -> Future[None]:
        save(*args, **kwargs)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    @functools.wraps(original_load)
    def load(
        state_dict: dict[str, Any],
        *,
        checkpoint_id: Any = None,
        storage_reader: object = None,
        **kwargs: object,
    ) -> object:
        path = _path(checkpoint_id, storage_reader)
        folder = None if path is None else session.saved.folder(path)
        if folder is None or not os.path.exists(os.path.join(folder, _FILE)):
            return original_load(
                state_dict, checkpoint_id=checkpoint_id, storage_reader=storage_reader, **kwargs
            )
        _restore(state_dict, torch.load(os.path.join(folder, _FILE), weights_only=False))
        return None

    replace(package, save=save, async_save=async_save, load=load)


def _path(checkpoint_id: Any, storage: object) -> Any:
    return checkpoint_id if checkpoint_id is not None else getattr(storage, "path", None)


def _plain(state: object) -> object:
    if hasattr(state, "state_dict"):
        return _plain(state.state_dict())
    return {key: _plain(value) for key, value in state.items()} if isinstance(state, dict) else state


def _restore(state: dict[str, Any], saved: dict[str, Any]) -> None:
    for key, value in state.items():
        if hasattr(value, "load_state_dict"):
            value.load_state_dict(saved[key])
        elif isinstance(value, dict):
            _restore(value, saved[key])
        elif not isinstance(value, torch.Tensor):
            state[key] = saved[key]
