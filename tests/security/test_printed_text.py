"""Whatever scripts, traces, clouds and settings call things: what is printed is text, in every format."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from advisor.api import html_of
from advisor.cli.answer import show
from advisor.cli.listening import TERMINAL
from advisor.cli.options import ViewOptions
from advisor.core.files import as_text
from advisor.core.findings import quoted
from advisor.core.values import Market, PricePoint
from advisor.pricing.price_checks import Doubt, DoubtfulPrice
from advisor.pricing.price_history import series_of
from advisor.pricing.source_registry import SourceState
from advisor.pricing.sources.protocol import Credentials
from advisor.report.config_tables import checks_document
from advisor.report.document import Fact, Section
from advisor.report.estimates import estimates_document, trace_document
from advisor.report.logs import queue_fit_document as fit_document
from advisor.report.logs import wait_document
from advisor.report.option_charts import time_over_cost
from advisor.report.plain import (
    HEAD,
    MOST,
    MOST_LINES,
    MOST_MESSAGES,
    print_error,
    shown,
    shown_lines,
    status_text,
)
from advisor.report.prices import findings_document, history_document, offers_document, sources_document
from advisor.report.printing import Format, print_document
from advisor.report.runs import runs_document
from advisor.report.writers import html as pages_of_their_own
from advisor.report.writers.html import to_html
from advisor.report.writers.text_formats import to_csv, to_json, to_markdown
from advisor.service.health import Check
from advisor.service.recommend.recommending import RecommendAnswer
from recommender.queue.fitted import WaitBin
from tests.builders import make_price
from tests.cpu_time import at_most
from tests.security.hostile import ATTACK, assert_is_text, option_with, recommendation_with, texts, trace_with
from tests.unit.report.printed import of, on_screen, table
from tests.unit.report.test_queue import fitted, wait_of
from tests.unit.store.test_ledger import make_run

UNTIL = datetime(2026, 11, 21, tzinfo=UTC)
EXAMPLES = settings(max_examples=30)


def examples_of(output: Format) -> settings:
    """Few where charts are drawn: each takes a tenth of a second."""
    return settings(max_examples=4) if output is Format.HTML else EXAMPLES


@pytest.fixture(autouse=True)
def no_runtime(monkeypatch):
    """Vega's own script is not a text of ours."""
    monkeypatch.setattr(pages_of_their_own, "vega_runtime", str)


def printed(print_it: Callable[[], object]) -> str:
    """What goes to stdout and stderr."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
        print_it()
    return out.getvalue()


def answers(text: str, output: Format) -> Iterator[Callable[[], object]]:
    recommendation, trace = recommendation_with(text), trace_with(text)
    answer = RecommendAnswer(recommendation=recommendation, best_what_if=None, entry_id=None)
    explained = text if output in (Format.TABLE, Format.JSON) else None
    hand_out = partial(print_document, output=output)
    yield lambda: show(answer, ViewOptions(), hand_out)
    yield lambda: show(answer, ViewOptions(explain=explained, all_=True), hand_out)
    yield lambda: print_document(
        estimates_document(trace, [option.estimate for option in recommendation.options]), output
    )
    yield lambda: print_document(trace_document(trace, trace_path(text)), output)


def trace_path(text: str) -> object:
    return type("Named", (), {"__str__": lambda _: text})()


def lists(text: str, output: Format) -> Iterator[Callable[[], object]]:
    offer = option_with(text).plan.offer
    assert offer is not None
    series = series_of(
        [
            PricePoint(
                provider=text, instance_type=text, region=text, zone=None, market=Market.SPOT, source=text,
                usd_per_h=1.0, observed_at=UNTIL,
            )
        ]
    )  # fmt: skip
    wait = WaitBin(size=text, walltime=text, queue=text, num_jobs=9, p50_s=1.0, p90_s=2.0, waits_s=(1.0,))
    state = SourceState(
        name=text, is_live=True, providers=(text,), num_offers=1, oldest=UNTIL, newest=UNTIL,
        gaps=(text, text * 99), credentials=Credentials.MISSING,
    )  # fmt: skip
    finding = DoubtfulPrice(
        doubt=next(iter(Doubt)), provider=text, place=text, instance_type=text, detail=text
    )
    run = make_run(0, project=text, script=text, note=text, provider=text, gpu=text)
    yield lambda: print_document(offers_document([offer], [make_price()], [quoted(text)]), output)
    yield lambda: print_document(history_document(series, UNTIL), output)
    yield lambda: print_document(history_document(series, UNTIL, plot=True), Format.TABLE)
    yield lambda: print_document(fit_document(fitted(wait)), output)
    yield lambda: print_document(
        wait_document(wait_of(wait, size_unit=text, warnings=[quoted(text)])), output
    )
    yield lambda: print_document(sources_document([state], [text]), output)
    yield lambda: print_document(findings_document([finding]), output)
    yield lambda: print_document(runs_document([run]), output)
    yield lambda: print_document(checks_document([Check(name=text, state="ok", detail=text)]), output)


@pytest.mark.parametrize("columns", ["70", "200"])
@pytest.mark.parametrize("output", list(Format))
def test_answers_are_text(output, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)

    @examples_of(output)
    @example(ATTACK)
    @given(texts)
    def law(text: str) -> None:
        for print_it in answers(text, output):
            assert_is_text(printed(print_it))

    law()


@pytest.mark.parametrize("columns", ["70", "200"])
@pytest.mark.parametrize("output", list(Format))
def test_lists_are_text(output, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)

    @examples_of(output)
    @example(ATTACK)
    @given(texts)
    def law(text: str) -> None:
        for print_it in lists(text, output):
            assert_is_text(printed(print_it))

    law()


@EXAMPLES
@example(ATTACK)
@given(texts)
def test_what_a_notebook_shows_and_a_plot_are_text(text):
    recommendation = recommendation_with(text)
    chart = time_over_cost(recommendation, None)
    drawing = to_html(of(chart, Section(text, (text, Fact(text, text, text)))))
    pages = html_of(recommendation), html_of(trace_with(text)), drawing, on_screen(of(chart), 100)
    for page in pages:
        assert page
        assert_is_text(page)


@given(texts)
def test_messages_are_text(text):
    for tell in (lambda: TERMINAL.warn([text]), lambda: TERMINAL.note(text), lambda: print_error(text)):
        assert_is_text(printed(tell))
    assert_is_text(status_text(text).plain)


@given(texts)
def test_programs_read_back_what_was_there(text):
    document = to_json({"name": text})
    assert document.isascii()
    assert_is_text(document)
    assert json.loads(document)["name"] == as_text(text)


@given(texts)
def test_one_text_is_one_line_and_shown_once(text):
    line = shown(text)
    assert "\n" not in line
    assert shown(str(line)) == line
    assert shown_lines(str(shown_lines(text))) == shown_lines(text)


@pytest.mark.parametrize(
    "text",
    ["train_ddp.py", "größe 3 µs", "データ 訓練", "100\u00a0%", "🙂 ok", "❤️", "a\\b", "us-*", "<=12h", ""],
)
def test_ordinary_words_stay(text):
    assert shown(text) == shown_lines(text) == text


def test_a_warning_cannot_pass_for_two():
    assert printed(lambda: TERMINAL.warn(["x\nerror: y"])) == "warning: x\n  error: y\n"


def test_a_terminal_gets_no_markup(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    with redirect_stdout(terminal):
        print_document(
            table(["a"], [["[link=http://evil.test]x[/link] :smile: \x1b]8;;y\x07"]]), Format.TABLE
        )
    assert "[link=http://evil.test]x[/link] :smile: \\x1b]8;;y\\x07" in terminal.getvalue()
    assert "\x1b]" not in terminal.getvalue()
    assert status_text("[red]:smile:").plain == "[red]:smile:"


# --- spreadsheets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["=1+1", "+cmd|' /C calc'!A0", "-2+cmd|x", "@SUM(1)", "\uff1d1", "--lr 0.1"])
def test_a_spreadsheet_takes_no_text_for_a_formula(cell):
    assert to_csv(table(["a"], [[cell]])) == f"a\n'{cell}"


@pytest.mark.parametrize(("lead", "escaped"), [("\t", "\\t"), ("\r", "\\r"), ("\n", "\\n")])
def test_blank_leads_do_not_hide_a_formula(lead, escaped):
    assert to_csv(table(["a"], [[f"{lead}=1"]])) == f"a\n'{escaped}=1"


@pytest.mark.parametrize("cell", ["-1", "-0.25", "-1,234.5", "-1e-07", "-3.5 %", "-inf", "-", "", "a-b"])
def test_numbers_stay_numbers(cell):
    assert list(csv.reader(io.StringIO(to_csv(table(["a", "b"], [[cell, "x"]])))))[1] == [cell, "x"]


# --- Markdown ------------------------------------------------------------------------------------------


@example("<script>alert(1)</script>|`x`[a](javascript:b)\\|**c**<!--&lt;")
@example("a\\")
@example("__0__")
@given(st.one_of(texts, st.text("|\\`[]()<>!&;#xalt*_~ \n", max_size=20)))
def test_a_cell_of_markdown_is_its_text(text):
    rows = to_markdown(table(["a", "b"], [[text, "end"]]))
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(rows)
    cells = page.split("<tbody>")[1].split("<td>")[1:]
    assert len(cells) == 2
    words = cells[0].split("</td>")[0]
    assert "<" not in words
    for entity, letter in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        words = words.replace(entity, letter)
    # The renderer leaves out spaces at the ends, those of all alphabets.
    assert words.strip() == shown(text).strip()


# --- length ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["x", "\x1b", "\t", "\n", "\U000e0041"])
def test_a_message_of_fifty_megabytes_is_a_few_kilobytes(letter):
    message = f"it began {letter * 50_000_000} and ended"
    with at_most(cpu_s=10):
        for tell in (lambda: print_error(message), lambda: TERMINAL.warn([message])):
            output = printed(tell)
            assert output.split(": ", 1)[1].startswith("it began")
            assert output.endswith("and ended\n")
            assert len(output) < MOST + 4 * MOST_LINES
            assert output.count("\n") < MOST_LINES + 2
            assert "are left out" in output


@given(st.text(min_size=1), st.integers(0, 3 * MOST))
@example("a\u034f", MOST)
@settings(max_examples=50)
def test_a_short_text_stays_and_a_long_one_loses_its_middle(piece, num_pieces):
    text = (piece * num_pieces)[: 3 * MOST]
    line = shown(text)
    assert len(line) <= MOST + 60
    # What Unicode calls printable may be invisible, and is escaped.
    if len(text) > MOST and all(shown(letter) == letter for letter in set(text)):
        assert line.startswith(text[:HEAD])
        assert line.endswith(text[HEAD - MOST :])


def test_of_very_many_warnings_the_first_are_printed():
    lines = printed(lambda: TERMINAL.warn(f"number {n}" for n in range(1_000_000))).splitlines()
    assert len(lines) == MOST_MESSAGES + 1
    assert lines[-1] == "warning: and 999,900 more"
