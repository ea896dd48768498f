"""``torch.compile``, ``torch.export``, ``torch.jit.trace`` and ``torch.onnx``."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.export.exported_program import ExportedProgram
from torch.utils._python_dispatch import _disable_current_modes

from ...protocol import Warned
from ...recording.compiled_calls import mode_of
from ...replacing import Original, replace, when_imported, wrap
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


_EXPORTS = ("export", "export_for_training", "draft_export")


class _Later(ExportedProgram):
    """An exported program that is made when one of its parts is asked for."""

    def __init__(self, model: object, export: Callable[[], object], warn: Callable[..., None]) -> None:
        self.__dict__.update(_model=model, _export=export, _warn=warn, _program=None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # inspect and pickle ask for those
        return getattr(self._made(), name)

    def module(self, *args: Any, **kwargs: Any) -> Any:
        """The graph as a module; the model itself where no graph can be made of it here."""
        try:
            return self._made().module(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - torch.export raises of all kinds
            self._warn(Warned.NOT_DONE, what="export-failed", name=type(error).__name__)
            return self._model

    def run_decompositions(self, *_: object, **__: object) -> object:
        """Itself: the operators are recorded where the model runs."""
        return self

    def _made(self) -> Any:
        if self._program is None:
            with _disable_current_modes():
                self.__dict__["_program"] = self._export()
        return self._program


class _NoFile:
    """What ``torch.onnx.export`` gives back: it can be saved, to nowhere."""

    def save(self, *_: object, **__: object) -> None:
        pass

    def optimize(self) -> None:
        pass


def install_exporting(session: Session) -> None:
    """``torch.export``, ``torch.jit.trace`` and ``torch.onnx`` of a model on the pretended GPU.

    They run the model on fake or traced tensors of their own, which our dispatch mode would take for the
    script's. What they give is no part of training: a graph is made when the script looks into it, and a file
    is written nowhere.

    Replace what exports, saves and loads.
    """
    for name in _EXPORTS:
        if hasattr(torch.export, name):
            wrap(torch.export, name, functools.partial(_put_off, session, name))
    saved: dict[str, object] = {}

    @functools.wraps(torch.export.save)
    def save(ep: object, f: object, **_: object) -> None:
        if isinstance(f, (str, os.PathLike)):
            # The script may look whether the file is there.
            Path(session.saved.place(f)).touch()
            saved[os.path.abspath(f)] = ep

    def load(load_original: Original, f: object, **kwargs: object) -> object:
        kept = saved.get(os.path.abspath(f)) if isinstance(f, (str, os.PathLike)) else None
        return load_original(f, **kwargs) if kept is None else kept

    replace(torch.export, save=save)
    wrap(torch.export, "load", load)
    _install_trace(session)
    when_imported("torch.onnx", functools.partial(_install_onnx, session))


def _put_off(
    session: Session, name: str, original: Original, mod: object, *args: object, **kwargs: object
) -> object:
    session.warn(Warned.NOT_DONE, what="export", name=f"torch.export.{name}")
    return _Later(mod, functools.partial(original, mod, *args, **kwargs), session.warn)


def _install_trace(session: Session) -> None:

    def trace(original: Original, func: object, *args: object, **kwargs: object) -> object:
        weights = func.parameters() if isinstance(func, torch.nn.Module) else ()
        given = torch.utils._pytree.tree_leaves((args, kwargs))
        if not any(session.is_fake(value) for value in (*weights, *given)):
            return original(func, *args, **kwargs)
        session.warn(Warned.NOT_DONE, what="export", name="torch.jit.trace")
        with contextlib.suppress(AttributeError):  # a function of C++ takes none
            replace(func, save=lambda *_, **__: None)
        return func

    def save(keep: Original, m: object, *args: object, **kwargs: object) -> None:
        if isinstance(m, torch.jit.ScriptModule):
            keep(m, *args, **kwargs)

    wrap(torch.jit, "trace", trace)
    wrap(torch.jit, "save", save)


def _install_onnx(session: Session, module: ModuleType) -> None:
    def export(*_: object, **__: object) -> _NoFile:
        session.warn(Warned.NOT_DONE, what="export", name="torch.onnx.export")
        return _NoFile()

    replace(module, export=export)
