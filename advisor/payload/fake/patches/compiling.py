"""``torch.compile`` gives back what it is given.

Compilation needs real tensors (and a GPU for Triton); under a dispatch mode torch skips it anyway.
Fusion is therefore not seen, which the trace says.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ...protocol import Warned
from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Replace ``torch.compile`` and ``Module.compile``; on a real GPU both work, and are told."""
    if session.backend == "cuda":
        replace(torch, compile=_told(session, torch.compile))
        replace(torch.nn.Module, compile=_told(session, torch.nn.Module.compile))
        return

    def compile_(model: object = None, **_: object) -> object:
        session.warn(Warned.COMPILE_IGNORED)
        return model if model is not None else lambda function: function

    def compile_module(module: Any, *_: object, **__: object) -> None:  # noqa: ARG001
        session.warn(Warned.COMPILE_IGNORED)

    replace(torch, compile=compile_)
    replace(torch.nn.Module, compile=compile_module)


def _told(session: Session, original: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(original)
    def compile_(*args: object, **kwargs: object) -> object:
        session.warn(Warned.COMPILE_MEASURED)
        return original(*args, **kwargs)

    return compile_
