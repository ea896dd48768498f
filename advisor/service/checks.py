"""What a check of the installation comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One part of the installation; ``note`` works but could be better."""

    name: str
    state: State
    detail: str
