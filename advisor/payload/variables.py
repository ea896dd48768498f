"""Which variables the script asks for and does not get: their names, since their values are not here."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from .protocol import Notice, Warned, notice

_MOST = 20
_OWN = str(Path(__file__).parent)
_STANDARD = sysconfig.get_paths()["stdlib"]
_PACKAGES = ("site-packages", "dist-packages")


class Variables:
    """Looks on while ``os.environ`` is read.

    Attributes:
        asked: names that the script's own code asked for in vain, in order.
    """

    def __init__(self) -> None:
        self.asked: dict[str, None] = {}

    def watch(self, withheld: Iterable[str]) -> None:
        """From now on, for these names. Libraries ask for tokens of their own accord: they do not count."""
        names, asked = frozenset(withheld), self.asked
        kind: type = type(os.environ)

        class Watched(kind):  # type: ignore[misc]
            """``os.environ``, whose every way of reading begins here."""

            def __getitem__(self, name: str) -> str:
                try:
                    return str(super().__getitem__(name))
                except KeyError:
                    if name in names and len(asked) < _MOST and _is_the_scripts():
                        asked[name] = None
                    raise

        if names:
            os.environ.__class__ = Watched

    def warnings(self) -> list[Notice]:
        """What the user should know of it."""
        return [notice(Warned.VARIABLES_WITHHELD, names=list(self.asked))] if self.asked else []


def _is_the_scripts() -> bool:
    """Whether neither a library nor we called ``os.environ``."""
    frame = sys._getframe(2)
    # os.getenv and Mapping.get are on the way.
    while frame.f_back is not None and (
        frame.f_globals.get("__name__") in ("os", "collections.abc", "_collections_abc")
    ):
        frame = frame.f_back
    file = frame.f_code.co_filename
    is_library = file.startswith((_OWN, _STANDARD, "<frozen")) or any(name in file for name in _PACKAGES)
    return not is_library
