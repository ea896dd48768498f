"""An open database."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Store(AbstractContextManager["Store", None]):
    """An open database of the newest schema; used in a ``with`` statement, it closes its connections."""

    engine: Engine = field(repr=False)
    place: str
    """The file, or the server without any password; this is what messages show."""

    def __exit__(self, *_ended: object) -> None:
        self.engine.dispose()
