"""Help pages whose lists of commands are whole: typer cuts each line at 45 characters."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

Click = Any  # a value of click, or of typer's own copy of it: which of both depends on typer's version


class WholeLines(TyperGroup):
    """A group that shows the first sentence of each command in full, wrapped at the terminal's width."""

    def format_commands(self, ctx: Click, formatter: Click) -> None:  # noqa: ARG002
        """Name and sentence of each command."""
        rows = [
            (name, command.short_help or first_sentence(command.help or ""))
            for name, command in self.commands.items()
            if not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def first_sentence(text: str) -> str:
    """The first sentence of a help text.

    >>> first_sentence("Rank where to run: AWS and GCP. Exits with 4.")
    'Rank where to run: AWS and GCP.'
    """
    paragraph = " ".join(text.split("\n\n")[0].split())
    start, stop, _ = paragraph.partition(". ")
    return start + stop.strip()
