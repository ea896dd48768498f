"""What a notebook shows: the frontier first, and nothing that a browser would run."""

import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from advisor.api import html_of
from advisor.core import notebook
from advisor.core.findings.about_options import RemovedByBudget
from advisor.core.values import Listed, Merit, Option, Recommendation
from recommender.ranking.choice import MOST_LISTED
from tests.builders import make_plan, make_trace
from tests.findings import texts
from tests.recommendations import make_option, many_options, removed

EVIL = "<script>alert('x')</script>&\"'"


class Page(HTMLParser):
    """Cells by row and the tags there are; every tag must be closed by its own."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "br":
            return
        self.open.append(tag)
        assert {name for name, _ in attrs} <= {"style", "scope", "class", "data-value"}
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


TAGS = {"br", "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "ul", "li", "section", "h4"}


def test_a_recommendation_is_one_screen():
    recommendation = replace(many_options(40), warnings=texts("prices are old"))
    page = Page(recommendation._repr_html_())
    assert page.rows[0] == ["Why", "#", "GPUs, and where", "To do first", "Time (p90)", "Cost (p90)", "Total"]
    assert page.rows[1][0].startswith("recommended")
    assert len(page.rows) <= 1 + MOST_LISTED
    for text in ("prices are old", "Not shown: 39 options"):
        assert text in page.text
    assert page.tags <= TAGS


def of_one(option: Option, recommended: str | None) -> Recommendation:
    rows = (Listed(option=option, merits=(Merit.RECOMMENDED if recommended else Merit.NEAREST,)),)
    frontier = () if recommended is None else (recommended,)
    return replace(
        many_options(8), options=(option,), frontier=frontier, recommended=recommended, shortlist=rows
    )


def test_nothing_feasible_is_said():
    dear = removed(make_option("X", 1, 1), RemovedByBudget)
    page = Page(of_one(dear, None)._repr_html_())
    assert "Nothing is feasible" in page.text
    assert "over budget" in page.text


@pytest.mark.parametrize("where", ["warning", "provider", "gpu"])
def test_names_are_text_and_never_code(where):
    provider = EVIL if where == "provider" else "lab"
    plan = make_plan(EVIL if where == "gpu" else "X", offer=None, provider=provider, id="it")
    recommendation = replace(
        of_one(make_option("X", 1, 1, plan=plan), "it"), warnings=texts(EVIL) if where == "warning" else ()
    )
    html = recommendation._repr_html_()
    page = Page(html)
    assert "<script" not in html
    assert page.tags <= TAGS
    assert EVIL in page.text


def test_a_trace_shows_its_figures_and_a_script_name_is_text():
    trace = make_trace(script=f"{EVIL}.py", arguments=(EVIL,), warnings=texts(f"{EVIL} is odd"))
    html = trace._repr_html_()
    page = Page(html)
    assert "<script" not in html
    assert ["script", f"{EVIL}.py"] in page.rows
    assert ["batch_size", "64"] in page.rows
    assert f"{EVIL} is odd" in page.text
    assert page.tags <= TAGS


def test_values_do_not_bring_their_renderer():
    code = "import sys, advisor.core.values; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = loaded.stdout.split()
    assert "advisor.core.values" in modules
    assert not [name for name in modules if name.startswith(("advisor.report", "rich", "numpy"))]


def test_without_somebody_who_draws_a_notebook_shows_the_text_and_who_draws_can_be_replaced(monkeypatch):
    assert html_of(make_plan("X")) is None  # a value without a form of its own
    monkeypatch.setattr(notebook, "_render", None)
    assert make_trace()._repr_html_() is None
    notebook.show_with(lambda value: f"<b>{type(value).__name__}</b>")
    assert make_trace()._repr_html_() == "<b>Trace</b>"
