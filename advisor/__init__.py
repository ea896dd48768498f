"""Where should a PyTorch training script run? Importing this package imports nothing heavy.

::

    import advisor

    answer = advisor.recommend("train.py", epochs=90, budget_usd=200)

`recommend`, `compare`, `predict`, `prices` and `profile` do what the commands of these names do, `confirm`
what ``predict --confirm`` does: docs/python.md. They are functions of ``advisor.api``, imported when one is
first asked for. Two rooms of the house, ``advisor.predict`` and ``advisor.profile``, have the name of a
function; importing such a room binds the name to it, so the room can be called like the function.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from advisor.core.notebook import show_with

if TYPE_CHECKING:
    from advisor.api import compare, confirm, predict, prices, profile, recommend

__version__ = "0.1.0"
__all__ = ["__version__", "compare", "confirm", "predict", "prices", "profile", "recommend"]


def _of_api(name: str) -> Callable[..., object]:
    function: Callable[..., object] = getattr(import_module("advisor.api"), name)
    return function


class _Room(ModuleType):
    """A package that is called like the function of its name."""

    def __call__(self, *arguments: object, **named: object) -> object:
        return _of_api(self.__name__.rpartition(".")[2])(*arguments, **named)


class _Face(ModuleType):
    """This package: functions are imported when they are asked for, rooms of the same name can be called."""

    def __getattr__(self, name: str) -> object:
        if name in __all__:
            return _of_api(name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        if name in __all__ and isinstance(value, ModuleType):
            value.__class__ = _Room
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


def _html_of(value: object) -> str | None:
    html: str | None = import_module("advisor.api").html_of(value)
    return html


sys.modules[__name__].__class__ = _Face
# Values cannot import who draws them; this package is above both and is imported before either.
show_with(_html_of)
