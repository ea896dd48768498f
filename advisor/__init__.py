"""Where should a PyTorch training script run? Importing this package imports nothing heavy."""

from importlib import import_module

from advisor.core.notebook import show_with

__version__ = "0.1.0"


def _html_of(value: object) -> str | None:
    html: str | None = import_module("advisor.report.notebook").html_of(value)
    return html


# Values cannot import who draws them; this package is above both and is imported before either.
show_with(_html_of)
