"""Keeps what a script says from filling a terminal or a trace."""

from __future__ import annotations

from collections.abc import Sequence

MARK = " [... cut ...] "


def cut(text: str, most: int) -> str:
    """The text, or its beginning and its end with a mark between them.

    >>> cut("a" * 99, 20)
    'aaa [... cut ...] aa'
    """
    if len(text) <= most:
        return text
    kept = most - len(MARK)
    tail = kept // 2
    return text[: kept - tail] + MARK + text[len(text) - tail :]


def cut_each(texts: Sequence[str], most: int, *, most_texts: int) -> list[str]:
    """Each text as by ``cut``, and of many texts the first ones.

    >>> cut_each(["one", "two", "three"], 80, most_texts=2)
    ['one', 'two', '[... 1 more ...]']
    """
    kept = [cut(text, most) for text in texts[:most_texts]]
    left = len(texts) - len(kept)
    return [*kept, f"[... {left:,} more ...]"] if left else kept
