"""``torch.export``, ``torch.jit.trace`` and ``torch.onnx`` of a model on the pretended GPU.

They run the model on fake or traced tensors of their own, which our dispatch mode would take for the
script's. What they give is no part of training: a graph is made when the script looks into it, and a file
is written nowhere.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.export.exported_program import ExportedProgram
from torch.utils._python_dispatch import _disable_current_modes

from ...importing import when_imported

if TYPE_CHECKING:
    from advisor.payload.session import Session

_EXPORTS = ("export", "export_for_training", "draft_export")
_WARNING = "{} was put off: what it makes of the model is no part of a training iteration"


class _Later(ExportedProgram):  # type: ignore[misc]
    """An exported program that is made when one of its parts is asked for."""

    def __init__(self, model: Any, export: Callable[[], Any], warn: Callable[[str], None]) -> None:
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
            self._warn(f"torch.export failed here ({type(error).__name__}): the model took its graph's place")
            return self._model

    def run_decompositions(self, *_: Any, **__: Any) -> Any:
        """Itself: the operators are recorded where the model runs."""
        return self

    def _made(self) -> Any:
        if self._program is None:
            with _disable_current_modes():
                self.__dict__["_program"] = self._export()
        return self._program


class _NoFile:
    """What ``torch.onnx.export`` gives back: it can be saved, to nowhere."""

    def save(self, *_: Any, **__: Any) -> None:
        """Write nothing."""

    def optimize(self) -> None:
        """There is nothing to optimize."""


def install(session: Session) -> None:
    """Replace what exports, saves and loads."""
    for name in _EXPORTS:
        if hasattr(torch.export, name):
            setattr(torch.export, name, _put_off(session, name, getattr(torch.export, name)))
    _keep_files(session)
    _install_trace(session)
    when_imported("torch.onnx", functools.partial(_install_onnx, session))


def _put_off(session: Session, name: str, original: Any) -> Any:
    @functools.wraps(original)
    def export(mod: Any, *args: Any, **kwargs: Any) -> Any:
        session.warn(_WARNING.format(f"torch.export.{name}"))
        return _Later(mod, functools.partial(original, mod, *args, **kwargs), session.warn)

    return export


def _keep_files(session: Session) -> None:
    saved: dict[str, Any] = {}
    load_original = torch.export.load

    @functools.wraps(torch.export.save)
    def save(ep: Any, f: Any, **_: Any) -> None:
        if isinstance(f, (str, os.PathLike)):
            # The script may look whether the file is there.
            Path(session.saved.place(f)).touch()
            saved[os.path.abspath(f)] = ep

    @functools.wraps(load_original)
    def load(f: Any, **kwargs: Any) -> Any:
        kept = saved.get(os.path.abspath(f)) if isinstance(f, (str, os.PathLike)) else None
        return load_original(f, **kwargs) if kept is None else kept

    torch.export.save, torch.export.load = save, load


def _install_trace(session: Session) -> None:
    original = torch.jit.trace

    @functools.wraps(original)
    def trace(func: Any, *args: Any, **kwargs: Any) -> Any:
        weights = func.parameters() if isinstance(func, torch.nn.Module) else ()
        given = torch.utils._pytree.tree_leaves((args, kwargs))
        if not any(session.is_fake(value) for value in (*weights, *given)):
            return original(func, *args, **kwargs)
        session.warn(_WARNING.format("torch.jit.trace"))
        with contextlib.suppress(AttributeError):  # a function of C++ takes none
            func.save = lambda *_, **__: None
        return func

    keep = torch.jit.save

    @functools.wraps(keep)
    def save(m: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(m, torch.jit.ScriptModule):
            keep(m, *args, **kwargs)

    torch.jit.trace, torch.jit.save = trace, save


def _install_onnx(session: Session, module: Any) -> None:
    def export(*_: Any, **__: Any) -> _NoFile:
        session.warn(_WARNING.format("torch.onnx.export"))
        return _NoFile()

    module.export = export
