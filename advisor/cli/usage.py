"""What a command line got wrong, as plain text: file names in it may be anybody's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from advisor.cli.help_lines import Click, WholeLines
from advisor.report.plain import shown


class PlainGroup(WholeLines):
    """Commands whose usage errors show control characters as escapes; typer does so for some."""

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
        error: Click = raised
        if hasattr(error, "format_message") and isinstance(error.message, str):
            error.message = str(shown(error.message))
        raise
