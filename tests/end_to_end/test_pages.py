"""Pages in a real browser: nothing leaves them or runs in them; they can be pointed at, sorted and read."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest

from advisor.report.document import Document
from advisor.report.printing import write_page
from advisor.report.review import review_document
from tests.browser import DESKTOP, PAPER, PHONE, Visit, axe, chromium, playwright
from tests.machine import needs
from tests.pages import EVIL, answer_page, estimates_page, history_page, team_page
from tests.team import make_bill, make_charge
from tests.unit.report.test_review import whole

pytestmark = needs("chromium")

DOCUMENTS: Mapping[str, Callable[[], Document]] = {
    "answer": answer_page,
    "history": history_page,
    "estimates": estimates_page,
    "team": team_page,
    "evil": lambda: team_page(EVIL),
    "many runs": lambda: team_page(num_runs=2000),
    "report": lambda: review_document(whole(bills=(make_bill(make_charge(usd="60"), make_charge(usd="9")),))),
}
TOOLTIP = "#vg-tooltip-element.visible"
NUM_CHARTS = {"answer": 1, "history": 1, "estimates": 1, "team": 3, "evil": 3, "many runs": 3, "report": 4}


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Each document written as a user's command writes it."""
    folder = tmp_path_factory.mktemp("pages")
    written = {name: folder / f"{name}.html" for name in DOCUMENTS}
    for name, path in written.items():
        write_page(DOCUMENTS[name](), path)
    return written


@pytest.fixture(scope="module")
def window(browser, files):
    """For tests that do to a page what others must not see."""
    with Visit(browser, files["history"]) as visit:
        yield visit


@pytest.fixture(scope="module")
def shown(browser, files):
    """Each document in a window of a desktop, with all charts: opened once, as long as nobody scripts it."""
    with ExitStack() as open_windows:

        @cache
        def visit(name: str) -> Visit:
            return open_windows.enter_context(Visit(browser, files[name])).drawn(NUM_CHARTS[name])

        yield visit


@pytest.mark.parametrize("name", DOCUMENTS)
def test_nothing_is_asked_for_nothing_complains_and_nothing_is_too_wide(shown, files, name):
    assert files[name].stat().st_size < 1_500_000
    visit = shown(name)
    for size in (PHONE, DESKTOP):
        visit.resize(size)
        wide = "[...document.querySelectorAll('.chart svg')].every(e => e.clientWidth <= innerWidth)"
        visit.page.wait_for_function(wide)
        assert visit.page.evaluate("document.documentElement.scrollWidth") == size[0]
    assert visit.page.evaluate("window.pwned") is None
    assert visit.asked == [visit.url]
    assert visit.complaints == []


def test_names_are_text(shown):
    visible = EVIL.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    page = shown("evil").page
    text = page.inner_text("body")
    assert page.title() == f"Cost of {visible}"
    assert visible in text.splitlines()
    assert f"{visible}: $620.00 were billed." in text
    assert page.locator("main img").count() == 0
    # A bar has the name, as much of it as there is room for.
    assert "<script>window.pwned=1</script" in page.locator(".chart svg").nth(1).text_content()


def test_the_policy_stops_what_slips_through(window, files):
    inject = """code => {
        const script = document.createElement('script');
        script.textContent = code;
        document.body.append(script);
    }"""
    page = window.go(files["team"], size=DESKTOP).drawn(3).page
    page.evaluate(inject, "window.pwned = 1")
    assert page.evaluate("window.pwned") is None
    with pytest.raises(playwright.Error):
        page.evaluate("fetch('http://127.0.0.1:9/')")
    assert all("Content Security Policy" in line or "CSP" in line for line in window.complaints)
    assert len(window.complaints) >= 2
    assert window.asked == [window.url]


def unpointed(visit: Visit) -> None:
    """Nothing is pointed at, nor still told of."""
    visit.page.mouse.move(0, 0)
    visit.page.locator(TOOLTIP).wait_for(state="hidden")


def tooltip(visit: Visit) -> str:
    element = visit.page.locator(TOOLTIP)
    element.wait_for()
    return element.inner_text()


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_pointing_at_an_option_tells_what_it_is(shown, size):
    visit = shown("answer")
    visit.resize(size)
    options = visit.page.locator(".chart svg .mark-symbol path")
    # The cheapest and the fastest stand at the edges.
    for option in (options.first, options.last):
        unpointed(visit)
        option.hover(force=True)
        lines = tooltip(visit).splitlines()
        assert lines[0].startswith("8 x ")
        box = visit.page.locator("#vg-tooltip-element").bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= size[0]
        assert 0 <= box["y"] <= box["y"] + box["height"] <= size[1]
    assert lines[1] in ("recommended", "frontier")
    assert lines[2].startswith("time ")
    assert lines[3].startswith("cost $")
    visit.resize(DESKTOP)
    assert visit.complaints == []


@pytest.mark.parametrize(
    ("name", "place", "mark", "words"),
    [
        ("history", 0, ".mark-symbol path", "zones (aws)"),
        ("estimates", 0, ".mark-rect path", "does not fit in memory"),
        ("team", 0, ".mark-symbol path", "2026-11-"),
        ("team", 1, ".mark-rect path", "credits"),
        ("team", 2, ".mark-symbol path", "run 0 on H100"),
    ],
)
def test_every_kind_of_chart_can_be_pointed_at(shown, name, place, mark, words):
    visit = shown(name)
    shapes = visit.page.locator(".chart svg").nth(place).locator(mark)
    told = []
    for i in {0, shapes.count() // 2, shapes.count() - 1}:
        unpointed(visit)
        shapes.nth(i).hover(force=True)
        told.append(tooltip(visit))
    assert any(words in one for one in told), told
    assert visit.complaints == []


def column(visit: Visit, place: int) -> list[str]:
    cells = visit.page.locator("main > .scroll tbody tr").all()
    return [row.locator("td").nth(place).inner_text() for row in cells]


def test_tables_are_sorted_by_value_with_mouse_and_keyboard(shown):
    visit = shown("team")
    headings = visit.page.locator("main > .scroll th")
    button = headings.nth(1).locator("button")
    button.click()
    assert column(visit, 1) == ["$9.50", "$20.25", "$1,000", "-"]
    assert headings.nth(1).get_attribute("aria-sort") == "ascending"
    button.press("Enter")
    assert column(visit, 1) == ["$1,000", "$20.25", "$9.50", "-"]
    assert headings.nth(1).get_attribute("aria-sort") == "descending"
    visit.page.keyboard.press("Shift+Tab")
    visit.page.keyboard.press("Space")
    assert column(visit, 0) == ["vision 1", "vision 9", "vision 10", "vision 100"]
    assert [heading.get_attribute("aria-sort") for heading in headings.all()] == ["ascending", None, None]


def test_options_are_sorted_by_the_price_of_an_hour(shown):
    page = shown("answer").page
    # Behind the short list.
    page.get_by_role("button", name="Cost (p90)").last.click()
    rows = page.locator("main > .scroll").last.locator("tbody td:nth-child(6)")
    values = rows.evaluate_all("cells => cells.map(cell => cell.dataset.value ?? '')")
    usd = [float(value) for value in values if value]
    assert len(values) == 15
    # What has no price stands behind what has one.
    assert values[: len(usd)] == [value for value in values if value]
    assert usd == sorted(usd)


@pytest.mark.parametrize("name", ["answer", "team", "report"])
def test_nothing_serious_stands_in_the_way_of_anybody(window, files, name):
    page = window.go(files[name], size=DESKTOP).drawn(NUM_CHARTS[name]).page
    page.locator("summary").first.click()
    for scheme, size in (("light", DESKTOP), ("dark", PHONE)):
        page.emulate_media(color_scheme=scheme)
        window.resize(size)
        found = axe.Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_dark_pages_are_dark_and_so_are_their_charts(window, files):
    colours = """() => [getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector('.chart svg .role-axis-label text')).fill]"""
    seen = {}
    page = window.go(files["team"], size=DESKTOP).drawn(3).page
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        seen[scheme] = page.evaluate(colours)
    page.emulate_media(color_scheme="dark", media="print")
    on_paper = page.evaluate(colours)
    assert seen["light"] == ["rgb(255, 255, 255)", "rgb(89, 99, 110)"]
    assert seen["dark"] == ["rgb(17, 22, 28)", "rgb(160, 171, 184)"]
    assert on_paper[0] == "rgb(255, 255, 255)"


def test_on_paper_no_table_is_cut(window, files):
    for name in ("answer", "history"):
        page = window.go(files[name], size=PAPER).drawn(NUM_CHARTS[name]).page
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth") == PAPER[0]
        row = page.locator("tbody tr").first
        assert row.evaluate("row => getComputedStyle(row).breakInside") == "avoid"


def test_without_scripts_charts_are_pictures(browser, files):
    with Visit(browser, files["team"], java_script_enabled=False) as visit:
        pictures = visit.page.locator(".still svg")
        assert pictures.count() == 3
        assert pictures.first.is_visible()
        assert "$1,000" in pictures.first.text_content()
        assert visit.complaints == []


def tab(visit: Visit, name: str) -> Any:
    visit.page.get_by_role("tab", name=name, exact=True).click()
    return visit.page.get_by_role("tabpanel")


def test_a_report_has_four_figures_then_a_chart_then_what_to_do_then_tabs(window, files):
    page = window.go(files["report"], size=DESKTOP).drawn(4).page
    assert page.locator(".tiles .name").all_inner_texts() == [
        "Spent", "Billed", "November, everybody", "Could be saved",
    ]  # fmt: skip
    tops = [page.locator(one).first.bounding_box()["y"] for one in (".tiles", "figure", ".cards", ".tabs")]
    assert tops == sorted(tops)
    button = page.locator(".cards button").first
    button.click()
    command = page.locator(".cards code").first.inner_text()
    selected = page.evaluate("getSelection().toString()")
    assert button.inner_text() == "Copied" or selected == command
    assert command.startswith("advisor recommend train.py")
    bills = tab(window, "Bills")
    assert bills.count() == 1
    assert "aws g5.xlarge" in bills.inner_text()
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("tabpanel").locator(".chart svg").first.is_visible()
    assert window.complaints == []


def test_on_a_phone_a_row_is_labels_and_values(window, files):
    page = window.go(files["report"], size=PHONE).drawn(4).page
    for one in page.get_by_role("tab").all():
        one.click()
        over = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
        assert max(page.evaluate(over)) <= 0, one.inner_text()
    cell = tab(window, "Summary").locator("td[data-label='Limit']").first
    shown = cell.evaluate("e => getComputedStyle(e, '::before').content")
    assert shown == '"Limit"'


def test_without_scripts_and_on_paper_all_tabs_are_there(browser, window, files):
    with Visit(browser, files["report"], java_script_enabled=False) as visit:
        assert all(one.is_visible() for one in visit.page.locator(".tab").all())
    page = window.go(files["report"], size=PAPER).drawn(4).page
    page.emulate_media(media="print")
    page.wait_for_selector(".tabs.live", state="attached")
    assert all(one.is_visible() for one in page.locator(".tab").all())
