"""What a table of words is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from advisor.core.findings import Code

Words: TypeAlias = Mapping[Code, str | Callable[..., str]]
"""By code: a function of the facts, or a text with their names in braces."""
