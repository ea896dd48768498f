"""An open database."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An open database of the newest schema; used in a ``with`` statement, it closes its connections."""

    engine: Engine = field(repr=False)
    place: str
    """The file, or the server without any password; this is what messages show."""

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.engine.dispose()
