"""Puts something else in the place of what a library has."""

from __future__ import annotations

import functools
import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def replace(owner: object, **values: object) -> None:
    """Set attributes of a library's class or module; what was there before is the caller's to call."""
    for name, value in values.items():
        setattr(owner, name, value)


Original = Callable[..., Any]
"""A library's function, which ours calls."""


def wrap(owner: Any, name: str, ours: Callable[..., Any]) -> None:
    """Let ours run in place of a library's function, which is its first argument.

    >>> class Greeter:
    ...     def greet(self): return "hello"
    >>> wrap(Greeter, "greet", lambda original, self: original(self).upper())
    >>> Greeter().greet()
    'HELLO'
    """
    setattr(owner, name, wrapped(getattr(owner, name), ours))


def wrapped(original: Original, ours: Callable[..., Any]) -> Callable[..., Any]:
    """Ours under the name and signature of the original; a new function each time, as torch._dynamo wants."""

    @functools.wraps(original, updated=())
    def run(*args: object, **kwargs: object) -> object:
        return ours(original, *args, **kwargs)

    return run


# Changes to libraries that the script may import: made when it does, never by importing them ourselves.

Action = Callable[[ModuleType], None]


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the other finders find, and runs the actions once the module was executed."""

    def __init__(self) -> None:
        self.actions: dict[str, list[Action]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.actions:
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:

            def exec_module(execute: Original, module: ModuleType) -> None:
                execute(module)
                for action in self.actions[fullname]:
                    action(module)

            wrap(spec.loader, "exec_module", exec_module)
        return spec


_finder = _Finder()


def when_imported(name: str, action: Action) -> None:
    """Call ``action(module)`` as soon as the module is there; now if it is."""
    if name in sys.modules:
        action(sys.modules[name])
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.actions.setdefault(name, []).append(action)


def attribute(module: ModuleType, dotted: str) -> tuple[object, str, Callable[..., object] | None]:
    """The owner, name and value of ``Class.method`` in a module; the value is None if it has none."""
    *owners, name = dotted.split(".")
    owner: object = module
    for part in owners:
        owner = getattr(owner, part, None)
    return owner, name, getattr(owner, name, None)
