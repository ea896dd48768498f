"""A stand-in for ``torch._dynamo``, which takes over a second to import and is hardly ever needed.

Optimizers, FakeTensorMode and process groups touch it for ``disable``, ``graph_break``, ``config``, a name
and an empty cache, torchvision for a function that it may call later, Hugging Face's models for decorators
and one class. Anyone who asks for more (``torch.compile`` does) gets the real package, loaded then.
"""

from __future__ import annotations

import importlib
import importlib.abc
import sys
from pathlib import Path
from types import ModuleType

_NAME = "torch._dynamo"
# Submodules that are cheap and complete without the package.
_LIGHT = {_NAME + ".config", _NAME + "._trace_wrapped_higher_order_op"}


def _identity(function: object = None, *_: object, **__: object) -> object:
    return function if function is not None else _identity


def _nothing(*_: object, **__: object) -> None:
    return None


class _LazyTraceRules:
    """A new process group clears its cache wherever there is a ``torch._dynamo``; here there is none."""

    clear_lru_cache = staticmethod(_nothing)

    def __getattr__(self, name: str) -> object:
        return getattr(load_real().trace_rules, name)


class _LazyEvalFrame:
    """Accelerate asks of each model whether it was compiled; nothing was, as long as this is asked."""

    OptimizedModule = type("OptimizedModule", (), {})

    def __getattr__(self, name: str) -> object:
        return getattr(load_real().eval_frame, name)


class _LazyDynamo(ModuleType):
    """Answers the few harmless questions itself and turns into the real package at any other."""

    disable = staticmethod(_identity)
    allow_in_graph = staticmethod(_identity)
    assume_constant_result = staticmethod(_identity)
    graph_break = staticmethod(_nothing)
    mark_static_address = staticmethod(_nothing)
    reset = staticmethod(_nothing)
    is_compiling = staticmethod(lambda *_, **__: False)
    trace_rules = _LazyTraceRules()
    eval_frame = _LazyEvalFrame()

    def __getattr__(self, name: str) -> object:
        # Dunder look-ups come from inspect and pickle, which ask every module.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(load_real(), name)


class _LazyPart(ModuleType):
    """A submodule that asks the real one for all that it has not."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        load_real()
        return getattr(importlib.import_module(self.__name__), name)


class _LazyUtils(_LazyPart):
    """``torch._dynamo.utils`` to anyone who imports by name what torchvision does, and to DDP."""

    @staticmethod
    def get_optimize_ddp_mode() -> object:
        # DDP asks whether a compiled model reduces in Python, and until someone says so none does.
        if importlib.import_module(_NAME + ".config").optimize_ddp is True:
            return "ddp_optimizer"
        return load_real().utils.get_optimize_ddp_mode()

    @staticmethod
    def is_compile_supported(*arguments: object) -> object:
        return load_real().utils.is_compile_supported(*arguments)


class _LazySource(_LazyPart):
    """``torch._dynamo.source`` to anyone who makes a tensor a fake one and has no name for it."""

    class ConstantSource:
        """Handed on, and looked at by the compiler alone."""

        def __init__(self, source_name: str) -> None:
            self.source_name = self.name = source_name

    # Which kind a source is not.
    RandomValueSource = type("RandomValueSource", (), {})


_PARTS = {_NAME + ".utils": _LazyUtils, _NAME + ".source": _LazySource}


class _Finder(importlib.abc.MetaPathFinder):
    """Loads the real package before any of its heavy submodules."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        if fullname.startswith(_NAME + ".") and fullname not in _LIGHT:
            load_real()


def install() -> None:
    """Put the stand-in in place unless the real package is loaded already."""
    import torch

    if _NAME in sys.modules:
        return
    stub = _LazyDynamo(_NAME)
    stub.__path__ = [str(Path(torch.__file__).parent / "_dynamo")]
    sys.modules[_NAME] = stub
    for name, part in _PARTS.items():
        sys.modules[name] = part(name)
        setattr(stub, name.rpartition(".")[2], sys.modules[name])
    torch._dynamo = stub
    sys.meta_path.insert(0, _Finder())


def load_real() -> ModuleType:
    """Import the real package in the stand-in's place."""
    import torch

    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    if isinstance(sys.modules.get(_NAME), _LazyDynamo):
        del sys.modules[_NAME]
        for part in _PARTS:
            sys.modules.pop(part, None)
        torch._dynamo = importlib.import_module(_NAME)
    return sys.modules[_NAME]
