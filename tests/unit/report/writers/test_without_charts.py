"""An installation without the extra `charts`: pages and mail come with their tables, and name the extra."""

import html
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from advisor.report.printing import Format, text_of
from advisor.report.writers.mail import to_mail_html
from tests.pages import answer_page, estimates_page, history_page, team_page

ROOT = Path(__file__).parents[4]
EXTRA = "pip install 'gpu-advisor[charts]'"
LIBRARIES = ("altair", "vl_convert", "narwhals", "jsonschema")
PAGES = {"answer": answer_page, "estimates": estimates_page, "history": history_page, "team": team_page}


@pytest.fixture(autouse=True)
def without_charts(monkeypatch):
    for name in LIBRARIES:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_its_tables_and_a_line_on_how_to_get_charts(page):
    text = text_of(PAGES[page](), Format.HTML)
    assert html.unescape(text).count(EXTRA) == text.count("<figure>") > 0
    assert "<details open>" in text
    assert text.count("<table") >= 1
    assert "<script>" in text, "its tables can still be sorted"
    assert "vegaEmbed = vegaEmbed" not in text
    assert 'class="spec"' not in text
    assert "noscript" not in text


@pytest.mark.parametrize("page", PAGES)
def test_a_mail_has_its_tables_and_a_line_on_how_to_get_charts(page):
    mail = to_mail_html(PAGES[page](), "Costs")
    assert mail.pictures == ()
    assert EXTRA in html.unescape(mail.text)


def test_the_process_that_draws_is_not_started(monkeypatch):
    monkeypatch.setattr("advisor.report.writers.pictures._painter", lambda: 1 / 0)
    assert EXTRA in html.unescape(text_of(answer_page(), Format.HTML))


def test_modules_of_pages_and_mail_need_no_charts_to_be_imported():
    hidden = f"import sys; sys.modules.update(dict.fromkeys({LIBRARIES}))"
    code = f"{hidden}; import advisor.report.writers.mail, advisor.report.writers.html, advisor.cli"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_charts_are_an_extra_that_developers_have():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert [line.partition(">")[0] for line in extras["charts"]] == ["vl-convert-python"]
    assert not [line for line in project["dependencies"] if line.startswith("vl-convert")]
    assert any("charts" in line for line in extras["dev"])
