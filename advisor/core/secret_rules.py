"""The formats of issuers' secrets: catalogs/secrets.toml, searched for by the words that they begin with."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from advisor.core.gpus import catalog_path

Span = tuple[int, int]
# An escape that a letter or digit ends: `\nghp_...` in JSON, `%20ghp_...` in an address.
_ESCAPE_BEFORE = re.compile(r"(?:\\[nrt]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2})\Z")
_ASCII_LOWER = {ord(big): ord(big.lower()) for big in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


@dataclass(frozen=True)
class Rule:
    """One format.

    Attributes:
        anchors: words, one of which it begins with, in small letters.
        written: the pattern; its groups are what is hidden, or all of it.
        is_word: no letter or digit may stand before it.
    """

    id: str
    anchors: tuple[str, ...]
    written: str
    is_word: bool

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when an anchor is seen first: most texts have none."""
        return re.compile(self.written)

    def spans(self, text: str, lowered: str) -> Iterator[Span]:
        """Where it is, in order of its anchors."""
        for anchor in self.anchors:
            start = lowered.find(anchor)
            while start >= 0:
                match = self._match(text, start)
                if match is not None:
                    yield from _hidden_of(match)
                start = lowered.find(anchor, start + 1 if match is None else max(match.end(), start + 1))

    def _match(self, text: str, start: int) -> re.Match[str] | None:
        return None if self.is_word and _is_inside_of_a_word(text, start) else self.pattern.match(text, start)


@cache
def rules() -> tuple[Rule, ...]:
    """All formats, as the catalog has them."""
    entries = tomllib.loads(catalog_path("secrets.toml").read_text(encoding="utf-8"))["rules"]
    return tuple(
        Rule(entry["id"], tuple(entry["anchors"]), entry["pattern"], entry.get("is_word", False))
        for entry in entries
    )


def spans_of_rules(text: str, lowered: str) -> Iterator[Span]:
    """Where a secret of a known format stands in a text, which comes in small letters as well."""
    for rule in rules():
        yield from rule.spans(text, lowered)


def lowered_in_place(text: str) -> str:
    """In small letters, each where it was: some letters are two when they are small."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_ASCII_LOWER)


def _hidden_of(match: re.Match[str]) -> Iterator[Span]:
    groups = [group for group in range(1, match.re.groups + 1) if match[group]]
    yield from map(match.span, groups or [0])


def _is_inside_of_a_word(text: str, start: int) -> bool:
    before = text[start - 1 : start]
    if not (before.isalnum() or before == "-"):
        return False
    return _ESCAPE_BEFORE.search(text, max(0, start - 6), start) is None
