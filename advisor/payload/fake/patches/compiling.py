"""``torch.compile``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ...protocol import Warned
from ...recording.compiled_calls import mode_of
from ...replacing import Original, replace, wrap

if TYPE_CHECKING:
    from ...session import Session


Function = Callable[..., object]


def install_compiling(session: Session) -> None:
    """``torch.compile`` gives back what runs as what it is given.

    Compilation needs real tensors (and a GPU for Triton); under a dispatch mode torch skips it anyway. What
    it would compile is remembered, so the trace says whether the step is compiled; the prediction then fuses
    it.

    Replace ``torch.compile`` and ``Module.compile``; on a real GPU both work, and are reported.
    """
    if session.backend == "cuda":
        for owner in (torch, torch.nn.Module):
            wrap(owner, "compile", functools.partial(_tell, session))
        return

    def compile_(model: Function | None = None, *, disable: bool = False, **settings: object) -> object:
        if disable:
            return model if model is not None else lambda function: function
        mode = _mode(settings)
        return (
            _marked(session, model, mode)
            if model is not None
            else lambda given: _marked(session, given, mode)
        )

    def compile_module(
        module: torch.nn.Module, *_: object, disable: bool = False, **settings: object
    ) -> None:
        if not disable:
            _marked(session, module, _mode(settings))

    replace(torch, compile=compile_)
    replace(torch.nn.Module, compile=compile_module)


def _mode(settings: dict[str, Any]) -> str | None:
    return mode_of(**{name: settings[name] for name in ("mode", "backend", "options") if name in settings})


def _marked(session: Session, given: Function, mode: str | None) -> object:
    """What is given, remembered if it is a module; else a function that tells when it runs."""
    if mode is None or isinstance(given, torch.nn.Module):
        session.compiled.is_asked = True
    if mode is None:
        return given
    if isinstance(given, torch.nn.Module):
        session.compiled.add(given, mode)
        return given

    # Libraries compile helpers when they are imported, of which a script may need none.
    @functools.wraps(given)
    def run(*args: object, **kwargs: object) -> object:
        session.compiled.is_asked = True
        with session.compiled.region(mode):
            return given(*args, **kwargs)

    return run


def _tell(
    session: Session, original: Original, *args: object, disable: bool = False, **kwargs: Any
) -> object:
    if not disable:
        session.warn(Warned.COMPILE_SEEN, how="measured")
        session.compiled.everywhere = _mode(kwargs)
    return original(*args, disable=disable, **kwargs)
