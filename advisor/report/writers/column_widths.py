"""How wide the columns of a table are, so that it breaks between words where it can."""

from __future__ import annotations

from collections.abc import Sequence


def column_widths(
    columns: Sequence[Sequence[str]], available: int, *, kept_whole: Sequence[bool]
) -> list[int]:
    """Characters of each column: what it needs, or as much as there is room for.

    A column keeps room for its longest word, one that must not break for its longest line; what is left goes
    to the columns that still need most. Where even that is too much, the widest words are broken, and at last
    what must not break.

    Args:
        columns: the texts of each, its heading among them.
        available: characters for all columns together, at least one each.
        kept_whole: columns whose lines must not break.

    Returns:
        Widths that sum to ``available`` at most.
    """
    least = least_widths(columns, kept_whole=kept_whole)
    widths = _leveled(least, available, may_shrink=[not whole for whole in kept_whole])
    return _filled(widths, list(map(_longest_line, columns)), available)


def least_widths(columns: Sequence[Sequence[str]], *, kept_whole: Sequence[bool]) -> list[int]:
    """Characters with which no word of a column breaks, and no line of one that must not break."""
    return [
        _longest_line(texts) if whole else max(map(len, " ".join(texts).split()), default=0)
        for texts, whole in zip(columns, kept_whole, strict=True)
    ]


def _longest_line(texts: Sequence[str]) -> int:
    return max((len(line) for text in texts for line in text.split("\n")), default=0)


def _leveled(widths: Sequence[int], available: int, *, may_shrink: Sequence[bool]) -> list[int]:
    """The widest columns lose a character each time until all fit, the others only after these."""
    left = list(widths)
    while sum(left) > max(available, len(left)):
        softest = [i for i, soft in enumerate(may_shrink) if soft and left[i] > 1]
        widest = max(softest or range(len(left)), key=lambda i: left[i])
        left[widest] -= 1
    return left


def _filled(widths: Sequence[int], needed: Sequence[int], available: int) -> list[int]:
    """What is left goes, character by character, to the column that lacks most."""
    filled = list(widths)
    for _ in range(max(0, available - sum(filled))):
        lacking = max(range(len(filled)), key=lambda i: needed[i] - filled[i])
        if filled[lacking] >= needed[lacking]:
            break
        filled[lacking] += 1
    return filled
