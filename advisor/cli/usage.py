"""What a command line got wrong, in one line as any other error: file names in it may be anybody's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from advisor.cli.help_lines import Click, WholeLines
from advisor.core.errors import InputError
from advisor.report.plain import shown


class PlainGroup(WholeLines):
    """Commands whose usage errors are those of our tree."""

    def make_context(self, *args: Click, **extra: Click) -> Click:
        """Parse what stands before the command."""
        with _plain_errors():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Click) -> Click:
        """Parse and run the command."""
        with _plain_errors():
            return super().invoke(ctx)


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except Exception as raised:
        # Which package a usage error comes from depends on typer's version.
        error: Click = raised
        is_of_usage = hasattr(error, "format_message") and error.exit_code == InputError.exit_code
        if not is_of_usage or type(error).__name__ == "NoArgsIsHelpError":
            raise
        raise InputError(_in_one_line(error)) from None


def _in_one_line(error: Click) -> str:
    """Without what pydantic says of itself, and with the help of the command."""
    message = str(shown(error.format_message()))
    message, _, _ = message.partition(", unable to parse")
    for words, plain in (("Value error, ", ""), ("Input should", "it must")):
        message = message.replace(words, plain)
    end = "" if message.endswith((".", "?", "!")) else "."
    command = "advisor" if error.ctx is None else error.ctx.command_path
    return f"{message}{end} See {command} --help."
