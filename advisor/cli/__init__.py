"""The command line: parse, call, render. Each command imports what it needs when it runs."""

from advisor.cli.commands import app

__all__ = ["app"]
