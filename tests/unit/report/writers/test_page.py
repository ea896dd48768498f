"""A page of its own: what it holds and what it forbids, before a browser looks at it."""

import base64
import hashlib
import re
import stat
from html.parser import HTMLParser

import platformdirs
import pytest

from advisor.core.errors import InputError
from advisor.report.document import BLANK, Document, Lines, Section
from advisor.report.printing import Format, text_of, write_page
from advisor.report.writers import html as page
from advisor.report.writers import pictures
from tests.pages import EVIL, answer_page, burn_down, estimates_page, history_page, team_page
from tests.unit.report.printed import of

WORDS = of(Section("It is so.", ()), Section("And so.", ()), Lines(("below",)), Section("Not above.", ()))


class Parsed(HTMLParser):
    """Elements with their attributes and their own text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)


def parsed(document: Document) -> Parsed:
    return Parsed(text_of(document, Format.HTML))


def policy_of(one: Parsed) -> str:
    (policy,) = [a["content"] for _, a in one.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    return policy


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("document", [WORDS, of(burn_down())])
def test_only_our_own_scripts_and_styles_are_allowed(document):
    one = parsed(document)
    rules = dict(rule.split(" ", 1) for rule in policy_of(one).split("; "))
    code = [text for text in one.texts["script"] if not text.startswith("{")]
    assert rules["default-src"] == "'none'"
    assert rules["script-src"].split() == [hash_of(text) for text in code]
    assert rules["style-src"] == hash_of("".join(one.texts["style"]))
    assert "unsafe" not in policy_of(one)


@pytest.mark.parametrize("make", [answer_page, estimates_page, history_page, lambda: team_page(EVIL)])
def test_nothing_names_a_place_to_load_from(make):
    one = parsed(make())
    for tag, attributes in one.elements:
        assert tag not in ("link", "iframe", "object", "embed", "img", "form", "base"), tag
        assert not {"src", "href", "action", "srcset", "style"} & attributes.keys(), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]
    assert "url(" not in "".join(one.texts["style"])


def test_the_sentences_on_top_lead_and_the_rest_follows():
    html = text_of(of(*WORDS.blocks, BLANK, title="So"), Format.HTML)
    assert "<title>So</title>" in html
    assert "<h1>So</h1>" in html
    assert re.findall(r'<p class="lead">(.*?)</p>', html) == ["It is so.", "And so."]
    body = html[html.index("<main>") : html.index("</main>")]
    assert re.findall("<p>(.*?)</p>", body) == ["below", "Not above."]


def test_a_page_may_show_other_blocks_than_a_terminal_and_without_charts_does_without_vega():
    html = text_of(of(Lines(("in a terminal",)), page=lambda: (Lines(("on a page",)),)), Format.HTML)
    assert "on a page" in html
    assert "in a terminal" not in html
    assert len(html) < 20_000


def test_an_answer_has_its_chart_its_table_and_its_warnings():
    html = text_of(answer_page(), Format.HTML)
    assert "<h1>Where to run train.py</h1>" in html
    chart, table, warnings = (html.index(part) for part in ("<figure>", "<caption>Options", "prices are old"))
    assert chart < table < warnings
    assert '<ol class="legend">' in html
    assert "<h1>Where to run this script</h1>" in text_of(answer_page(""), Format.HTML)


def test_names_end_neither_script_nor_title():
    one = parsed(team_page(EVIL))
    shown = EVIL.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert "".join(one.texts["title"]) == f"Cost of {shown}"
    assert [tag for tag, _ in one.elements].count("script") == 3 + 2
    assert "pwned" not in "".join(code for code in one.texts["script"] if not code.startswith("{"))


# --- the runtime -------------------------------------------------------------------------------------


@pytest.fixture
def bundles(monkeypatch, tmp_path):
    """Each time that Vega is bundled, in a home where nothing is kept."""
    made: list[str] = []

    def bundle(snippet: str) -> str:
        made.append(snippet)
        return "/* Vega */ '</script>'"

    monkeypatch.setattr(pictures, "javascript", bundle)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    return made


def test_the_runtime_is_made_once_and_ends_no_script(bundles, tmp_path):
    first, second = page.vega_runtime(), page.vega_runtime()
    assert first == second == "/* Vega */ '<\\/script>'"
    assert len(bundles) == 1
    (kept,) = (tmp_path / "cache" / "advisor").iterdir()
    assert re.fullmatch(r"vega-[\d.]+(post\d+)?\.js", kept.name)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_without_a_place_to_keep_it_the_runtime_is_made_again(bundles, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder would be")
    assert page.vega_runtime() == page.vega_runtime()
    assert len(bundles) == 2


# --- files -------------------------------------------------------------------------------------------


def test_a_page_is_written_whole_over_the_old_one_or_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="cannot write the page"):
        write_page(WORDS, tmp_path / "missing" / "x.html")
    assert list(tmp_path.iterdir()) == []
    path = tmp_path / "a page.html"
    path.write_text("old")
    write_page(WORDS, path)
    assert path.read_text("utf-8") == text_of(WORDS, Format.HTML)
    assert [one.name for one in tmp_path.iterdir()] == ["a page.html"]
