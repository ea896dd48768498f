"""The part of CHANGELOG.md that belongs to a version: ``python tools/release_notes.py v0.2.0``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parent.parent / "CHANGELOG.md"


def notes_of(changelog: str, tag: str) -> str:
    """What stands under the heading of the tag's version, without the heading.

    Raises:
        ValueError: the changelog has no such version; says which it has.
    """
    parts = re.split(r"^## (.+)$", changelog, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    wanted = tag.removeprefix("v")
    for heading, text in sections.items():
        if heading.split()[0].strip("[]") == wanted:
            return text.strip() + "\n"
    raise ValueError(f"CHANGELOG.md has no version {wanted}: it has {', '.join(sections)}.")


def main() -> int:
    """Print the notes; 1 where there are none."""
    try:
        print(notes_of(CHANGELOG.read_text(), sys.argv[1]), end="")
    except (ValueError, IndexError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
