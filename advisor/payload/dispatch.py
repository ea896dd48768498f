"""What torch's dispatcher hands on, by its type."""

from __future__ import annotations

from collections.abc import Sequence

Args = Sequence[object]
Kwargs = dict[str, object]
Types = Sequence[type]
