"""What a command line got wrong, as plain text: file names in it may be anybody's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from advisor.cli.help_lines import WholeLines
from advisor.report.plain import shown


class PlainGroup(WholeLines):
    """Commands whose usage errors show control characters as escapes; typer does so for some."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse what stands before the command."""
        with _plain_errors():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Parse and run the command."""
        with _plain_errors():
            return super().invoke(ctx)


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except Exception as raised:
        # Which package a usage error comes from depends on typer's version.
        error: Any = raised
        if hasattr(error, "format_message") and isinstance(error.message, str):
            error.message = str(shown(error.message))
        raise
