"""Pages of the site: those of the root among them, and links that lead somewhere."""

from types import SimpleNamespace

import pytest
import yaml

from tests.test_docs import ROOT
from tools.docs_site import PAGES, on_config, on_page_markdown


class Site:
    """Knows which pages there are."""

    def __init__(self, *pages):
        self.pages = {*pages, *PAGES.values()}

    def get_file_from_path(self, path):
        return path if path in self.pages else None


def rewritten(page, text, *pages):
    return on_page_markdown(text, SimpleNamespace(file=SimpleNamespace(src_uri=page)), None, Site(*pages))


@pytest.mark.parametrize(
    ("page", "text", "shown"),
    [
        ("prices.md", "[a](recommend.md#odds)", "[a](recommend.md#odds)"),
        ("prices.md", "[a](../README.md)", "[a](index.md)"),
        ("methods/spot.md", "[a](../prices.md)", "[a](../prices.md)"),
        ("methods/spot.md", "[a](../../CHANGELOG.md)", "[a](../changelog.md)"),
        ("index.md", "[a](docs/prices.md)", "[a](prices.md)"),
        ("index.md", "[decisions](docs/decisions)", "decisions (`docs/decisions`)"),
        ("prices.md", "[half](../examples/github/x.yml)", "half (`examples/github/x.yml`)"),
        ("prices.md", "[`examples/x.py`](../examples/x.py)", "`examples/x.py`"),
        ("prices.md", "[a](https://example.com/x)", "[a](https://example.com/x)"),
        ("prices.md", "[a](#here)", "[a](#here)"),
        ("prices.md", "![a](prices.svg)", "![a](prices.svg)"),
    ],
)
def test_links_lead_somewhere(page, text, shown):
    assert rewritten(page, text, "prices.md", "recommend.md", "methods/spot.md") == shown


def test_a_folder_of_the_navigation_is_its_pages(tmp_path):
    for name in ("0002-b.md", "0001-a.md", "figure.svg"):
        (tmp_path / "decisions").mkdir(exist_ok=True)
        (tmp_path / "decisions" / name).write_text("")
    config = SimpleNamespace(nav=["index.md", {"Why": "decisions/"}], docs_dir=str(tmp_path))
    assert on_config(config).nav == ["index.md", {"Why": ["decisions/0001-a.md", "decisions/0002-b.md"]}]


def test_nothing_is_fetched_from_elsewhere():
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert config["theme"]["font"] is False
    assert not {"extra_javascript", "extra_css", "extra"} & set(config)
