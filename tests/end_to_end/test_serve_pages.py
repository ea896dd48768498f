"""The pages of ``advisor serve`` in a real browser, wide and narrow, light and dark."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.browser import DESKTOP, PHONE, Visit, axe, chromium
from tests.machine import needs
from tests.pages import EVIL
from tests.serving import TOKEN, fill, served

pytestmark = needs("chromium")
# Each page, and how many charts it has.
PAGES = {
    "/jobs": 0, "/jobs/two": 1, "/jobs/evil": 1, "/runs": 0, "/report": 0, "/queue": 0, "/sweeps": 0,
    "/schedules": 0, "/nowhere": 0,
}  # fmt: skip
USER = {"username": "me", "password": TOKEN}


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('serve')}/s.db"
    fill(url, at=datetime.now(UTC) - timedelta(days=1))
    with served(url, token="env:T") as site:
        yield f"http://127.0.0.1:{site.port}"


@pytest.fixture(scope="module")
def window(browser, address):
    with Visit(browser, f"{address}/nowhere", http_credentials=USER) as visit:
        yield visit


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_clean_at_any_width_and_in_the_dark(window, address, path):
    for scheme, size in (("light", DESKTOP), ("dark", PHONE)):
        window.go(f"{address}{path}", size=size, color_scheme=scheme)
        num_charts = window.page.locator("script.spec").count()
        assert num_charts >= PAGES[path]
        window.drawn(num_charts)
        assert window.page.evaluate("document.documentElement.scrollWidth") == size[0]
        assert window.page.evaluate("window.pwned") is None
        # Chromium reports a page of status 404 as such.
        assert [line for line in window.complaints if "404" not in line] == []
        # Vega comes once for all pages.
        scripts = window.page.eval_on_selector_all("script[src]", "all => all.map(one => one.src)")
        assert len(scripts) == bool(num_charts)
        assert set(window.asked) == {window.url, *scripts}
        assert len(window.page.content()) < 400_000
        found = axe.Axe().run(window.page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        colour = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert colour == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(17, 22, 28)")


def test_from_the_list_to_a_job_to_an_option_of_its_frontier(window, address):
    page = window.go(f"{address}/", size=DESKTOP).page
    assert page.title() == "Jobs"
    assert page.locator("nav [aria-current]").inner_text() == "Jobs"
    page.get_by_role("link", name="tune.py").click()
    page.locator(".chart svg").wait_for()
    assert page.url == f"{address}/jobs/two"
    page.locator(".chart svg .mark-symbol path").last.hover(force=True)
    hover = page.locator("#vg-tooltip-element.visible")
    hover.wait_for()
    assert "an hour" in hover.inner_text()
    page.get_by_role("link", name="Spending and predictions").click()
    page.wait_for_url("**/report")
    assert page.get_by_role("tab", name="Who spent it").is_visible()
    page.go_back()
    assert window.complaints == []


def test_names_of_the_store_are_text(window, address):
    visible = EVIL.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    page = window.go(f"{address}/jobs/evil", size=DESKTOP).drawn(1).page
    assert visible in page.inner_text("h1")
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.pwned") is None


def test_without_the_token_nothing_is_shown(browser, address):
    with Visit(
        browser, f"{address}/api/jobs", http_credentials={"username": "me", "password": "wrong"}
    ) as visit:
        assert "give the token" in visit.page.inner_text("body")
        assert "train.py" not in visit.page.content()
