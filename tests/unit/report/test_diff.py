"""The price tag of a change as a document."""

from dataclasses import replace

import pytest

from advisor.core.findings.about_estimates import NotPatched
from advisor.core.findings.about_options import RemovedByMemory
from advisor.core.values import Phase, Quantiles
from advisor.edits.patch import patch_of
from advisor.report.plan_comparison import diff_document
from advisor.report.printing import Format, text_of
from advisor.report.recommendation import patch_document, prints_as_it_is
from advisor.report.writers.text_formats import to_markdown
from advisor.service.recommend.comparing import DiffAnswer, PartChange
from recommender.comparison import script_change
from tests.builders import make_plan, make_trace
from tests.recommendations import make_option, removed
from tests.unit.recommender.test_comparison import answer


def markdown_of(before, after, *parts):
    change = script_change(answer(before), answer(after, make_option("Z", 1, 1)))
    trace = make_trace()
    document = diff_document(DiffAnswer(base=trace, head=trace, change=change, parts=parts, warnings=()))
    return to_markdown(document)


def part(name, base_s, head_s):
    return PartChange(name=name, phase=Phase.FORWARD, base_s=base_s, head_s=head_s)


@pytest.mark.parametrize(
    ("after", "shown"),
    [
        (make_option("A", 20, 150), "+50 %"),
        (removed(make_option("A", 20, 150), RemovedByMemory), "+100 % time"),
        (make_option("A", 20, 0, plan=make_plan("A", None)), "+100 % time"),
    ],
)
def test_a_machine_shows_its_change_in_money_or_else_in_time(after, shown):
    assert f"| {shown} |" in markdown_of(make_option("A", 10, 100), after)


def test_a_run_that_never_ends_has_no_percentage():
    never = Quantiles(p50=float("inf"), p90=float("inf"))
    endless = replace(removed(make_option("A", 1, 1), RemovedByMemory), time_s=never)
    assert "nan" not in markdown_of(make_option("A", 1, 1), endless)
    assert "inf %" not in markdown_of(make_option("A", 1, 1), endless)


def test_what_is_too_little_to_name_is_added_up():
    many = [part(f"op{i}", 1000, 1030) for i in range(10)]
    text = markdown_of(make_option("A", 1, 1), make_option("A", 1, 1), *many)
    assert "op0" not in text
    assert "| all others |" in text
    assert "+5 min (+3.0 % of the run)" in text


SCRIPT = "import torch\n\nif True:\n\tprint('Gruß')\n"


def test_tabs_and_letters_of_any_language_are_printed():
    patch = patch_of(SCRIPT, "train.py", ["tf32", "fp16"])
    assert prints_as_it_is(patch)
    assert f"{text_of(patch_document(patch), Format.TABLE)}\n" == patch.diff
    assert patch_document(patch).facts["changes"] == ("tf32",)
    (refused,) = patch.refused.values()
    assert isinstance(refused, NotPatched)
    assert refused.why == "by-hand"


@pytest.mark.parametrize("text", [SCRIPT.replace("\n", "\r\n"), SCRIPT.replace("Gruß", "\u202e")])
def test_what_could_deceive_is_escaped_and_known_to_be(text):
    patch = patch_of(text, "train.py", ["tf32"])
    assert not prints_as_it_is(patch)
    assert patch_document(patch).facts["diff"] == patch.diff


def test_without_a_change_nothing_is_printed():
    assert text_of(patch_document(patch_of(SCRIPT, "train.py", ["fp16"])), Format.TABLE) == ""
