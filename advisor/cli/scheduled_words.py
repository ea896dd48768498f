"""Whether the words of a schedule are a command line of ours: they are parsed, and nothing runs."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.cli.help_lines import Click
from advisor.core.errors import InputError
from advisor.schedule.schedulable import schedulable


def check_command_line(root: Click, words: Sequence[str]) -> None:
    """Refuse what advisor would refuse when the time has come.

    Args:
        root: advisor's own command, as typer made it.
        words: what follows ``advisor``.

    Raises:
        InputError: there is no such command, or it may not be scheduled.
        UsageError: typer's, for an option or a value that the command does not take.
    """
    name = schedulable(words)
    command = root
    for part in name.split():
        command = getattr(command, "commands", {}).get(part)
        if command is None:
            raise InputError(f"this advisor has no command {name!r} yet.")
    context = command.make_context(f"advisor {name}", list(words[len(name.split()) :]))
    # A group parses what stands before its command, and leaves the rest.
    rest = [*getattr(context, "_protected_args", ()), *context.args]
    if rest:
        raise InputError(f"{f'{name} {rest[0]}'!r} cannot be scheduled, or options stand before {rest[0]!r}.")
