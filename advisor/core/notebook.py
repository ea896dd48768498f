"""How values show themselves in a notebook: they ask here for the function that draws them.

Values know no renderer. The public face of advisor, which is imported before any of them, names one.
"""

from collections.abc import Callable

_render: Callable[[object], str | None] | None = None


def show_with(render: Callable[[object], str | None]) -> None:
    """Let values be shown by ``render`` from now on."""
    global _render
    _render = render


def html_of(value: object) -> str | None:
    """HTML of a value; None where nothing draws it, and the notebook shows its text."""
    return None if _render is None else _render(value)
