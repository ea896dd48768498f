"""A headless Chromium, and a page in it; a test that imports this is skipped where playwright is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.machine import find

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
PHONE, DESKTOP, PAPER = (375, 800), (1280, 900), (700, 1000)


@contextmanager
def chromium() -> Iterator[Any]:
    """One for all tests of a file; closed before others, whose event loops it would hold up."""
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=find("chromium"), args=list(FLAGS))
        yield started
        started.close()


class Visit:
    """A page in a window, and all that it asked for or complained about."""

    def __init__(
        self, browser: Any, place: Path | str, *, size: tuple[int, int] = DESKTOP, **options: Any
    ) -> None:
        """A file, or an address of which the site may be asked for more."""
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self._context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, offline=isinstance(place, Path), **options
        )
        self.page = self._context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.route("**/*", self._answer)
        self.url = ""
        self.go(place)

    def go(self, place: Path | str, *, size: tuple[int, int] | None = None, **media: str) -> "Visit":
        """Another page in the same window, of this size and to be seen so: a window takes longer to open."""
        self.asked.clear()
        self.complaints.clear()
        self.url = place.as_uri() if isinstance(place, Path) else place
        if size:
            self.resize(size)
            self.page.emulate_media(**{"color_scheme": "light", "media": "screen", **media})
        self.page.goto(self.url)
        return self

    def resize(self, size: tuple[int, int]) -> None:
        """Width and height of the window."""
        self.page.set_viewport_size({"width": size[0], "height": size[1]})

    def _answer(self, route: Any) -> None:
        self.asked.append(route.request.url)
        # Of a file itself alone, of a site all.
        own = self.url if self.url.startswith("file:") else self.url[: self.url.index("/", 8) + 1]
        (route.continue_ if route.request.url.startswith(own) else route.abort)()

    def drawn(self, num_charts: int) -> "Visit":
        """Once all charts are there."""
        self.page.wait_for_function(f"document.querySelectorAll('.chart svg').length == {num_charts}")
        return self

    def __enter__(self) -> "Visit":
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()
