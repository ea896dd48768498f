"""What the table shows, in which order, and what a program reads."""

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core import values
from advisor.core.findings import Removal
from advisor.core.findings.about_options import Alike
from advisor.core.units import format_duration_short, format_usd
from advisor.core.values import Recommendation
from advisor.report.document import NARROW, Column, Document
from advisor.report.option_facts import find_option, ranked, selection, status, where
from advisor.report.options_table import OPTION_COLUMNS, Form, OptionColumn, options_table
from advisor.report.printing import Format, text_of
from advisor.report.recommendation import recommendation_document
from advisor.workloads.script_versions import as_written
from recommender.ranking.value import total_usd, worth_for
from tests.builders import ONE_GPU, make_estimate, make_gpu, make_job, make_offer, make_plan, make_trace
from tests.findings import sample, texts
from tests.recommendations import many_options, removed
from tests.recommending import recommend
from tests.unit.report.printed import json_of, of, on_screen

OPTION_FIELDS = {
    "id", "tier", "provider", "instance_type", "region", "zone", "gpu", "num_gpus", "num_nodes", "market",
    "usd_per_h", "price_retrieved_at", "iteration_s", "wait_s", "train_s", "time_s", "cost_usd",
    "samples_per_s", "mfu",
    "list_usd_per_h", "contracted_usd_per_h", "effective_usd_per_h", "storage_usd_per_h", "egress_usd",
    "transfer", "rates", "cost_breakdown",
    "p_within_budget", "p_within_deadline", "memory_bytes", "fits_memory", "risk",
    "feasible", "removed_by", "script_changes", "on_frontier", "recommended", "reasons",
    "removed_by_codes", "reason_findings", "risk_finding", "script_change_findings",
    "what_if", "binds", "input_s", "vcpus_per_gpu", "expected", "tie_with", "folded_into",
}  # fmt: skip


@pytest.fixture(scope="module")
def answer():
    plans = [
        make_plan("FAST", 3.0, wait_s=None),
        make_plan("CHEAP", 0.9, market=values.Market.SPOT),
        make_plan("DEAR", 50.0),
        make_plan("WORSE", 3.2),
        make_plan("SMALL", 0.1),
        make_plan("LAB", None, tier=values.Tier.CLUSTER, wait_s=values.Quantiles(p50=3600.0, p90=7200.0)),
    ]
    seconds = {"FAST": 0.1, "CHEAP": 0.25, "DEAR": 0.09, "WORSE": 0.2, "SMALL": 0.3, "LAB": 0.2}
    estimates = {
        (name, ONE_GPU): make_estimate(
            name,
            values.Interval(p10=s / 1.1, p50=s, p90=s * 1.1),
            memory_limit_bytes=1 if name == "SMALL" else 16 * 2**30,
            assumptions=texts("an assumption"),
        )
        for name, s in seconds.items()
    }
    return recommend(
        make_trace(),
        estimates,
        {name: make_gpu(name) for name in seconds},
        plans,
        make_job(budget_usd=20.0),
        rng=np.random.default_rng(0),
    )


def answered(recommendation: values.Recommendation) -> Document:
    return recommendation_document(recommendation, top=None)


def test_the_recommended_comes_first_then_the_feasible_as_the_choice_compares_them(answer):
    by_id = {option.plan.id: option for option in ranked(answer)}
    assert {name: status(option, answer) for name, option in by_id.items()} == {
        "LAB": "recommended", "FAST": "frontier", "WORSE": "", "CHEAP": "", "SMALL": "does not fit",
        "DEAR": "over budget",
    }  # fmt: skip
    assert list(by_id) == ["LAB", "FAST", "WORSE", "CHEAP", "SMALL", "DEAR"]
    totals = [total_usd(option, worth_for(answer.job)) for option in by_id.values()][:4]
    assert totals == sorted(totals)


@pytest.mark.parametrize("top", [1, 3, 5, None])
def test_a_short_table_keeps_one_row_of_each_kind_and_own_machines(answer, top):
    chosen = selection(answer, top)
    states = {status(option, answer) for _, option in chosen}
    assert states == {"recommended", "frontier", "", "over budget", "does not fit"}
    assert "LAB" in {option.plan.id for _, option in chosen}


def test_the_table_is_readable(answer):
    lines = on_screen(answered(answer), 160).splitlines()
    row = next(line for line in lines if "frontier" in line)
    for text in ("aws fast.xlarge us-east-1 on-demand", "1 x FAST", "100 ms", "2.8 h", "$8.33"):
        assert text in row


def test_other_formats(answer):
    assert len(text_of(answered(answer), Format.CSV).splitlines()) == len(answer.options) + 1
    text = text_of(answered(answer), Format.MARKDOWN)
    assert len([line for line in text.splitlines() if line.startswith("|")]) == len(answer.options) + 2
    assert text.startswith("### Where to run")
    assert "Use 1 x LAB" in text
    assert "What would change this advice: " in text


def test_json_by_contract(answer):
    document = json_of(answered(answer))
    assert {"schema_version", "job", "options", "frontier", "recommended", "warnings"} <= set(document)
    for option in document["options"]:
        assert set(option) >= OPTION_FIELDS
        assert set(option["iteration_s"]) == {"p10", "p50", "p90"}
        assert set(option["time_s"]) == set(option["cost_usd"]) == {"p50", "p90"}
    by_id = {option["id"]: option for option in document["options"]}
    assert by_id["LAB"]["recommended"] is True
    assert by_id["FAST"]["recommended"] is False
    assert by_id["FAST"]["wait_s"] is None
    assert by_id["LAB"]["usd_per_h"] is None
    assert by_id["LAB"]["instance_type"] is None
    assert by_id["DEAR"]["removed_by"] == "budget"
    assert by_id["DEAR"]["removed_by_codes"] == ["budget"]
    assert by_id["LAB"]["removed_by_codes"] == []
    assert document["frontier"] == list(answer.frontier)
    assert document["job"]["budget_usd"] == 20.0


def test_a_program_reads_how_the_script_scales_and_where_its_data_is(answer):
    job = json_of(answered(answer))["job"]
    assert job["scaling"] == {"mode": "weak", "source": "assumed", "num_gpus": 1, "global_batch_size": 64}
    assert job["data"] is None
    place = values.DataPlace(name="s3://photos", provider="aws", region="us-east-1")
    asked = replace(answer.job, scaling=values.Scaling.STRONG, data=values.DataSet(gib=150.0, place=place))
    script = as_written(make_trace(), {}, asked).script
    job = json_of(answered(replace(answer, script=script, job=asked)))["job"]
    assert (job["scaling"]["mode"], job["scaling"]["source"]) == ("strong", "given")
    assert job["data"] == {
        "gib": 150.0,
        "place": {"name": "s3://photos", "provider": "aws", "region": "us-east-1"},
    }


def test_a_program_reads_each_price_and_rate_apart(answer):
    offer = make_offer("FAST", 3.0, contracted_usd_per_h=2.5, effective_usd_per_h=2.0)
    rates = {"storage": "100 GiB at 0.08 USD per GiB-month; a list, 2025-01-01"}
    extras = {"storage_usd_per_h": 0.011, "transfer_usd": 6.0, "rates": rates}
    plan = make_plan("FAST", offer.usd_per_h, offer=offer, **extras)
    changed = [replace(o, plan=plan) if o.plan.id == "FAST" else o for o in answer.options]
    document = json_of(answered(replace(answer, options=tuple(changed))))
    by_id = {option["id"]: option for option in document["options"]}
    fast, lab = by_id["FAST"], by_id["LAB"]
    prices = ("usd_per_h", "list_usd_per_h", "contracted_usd_per_h", "effective_usd_per_h")
    assert [fast[name] for name in prices] == [2.0, 3.0, 2.5, 2.0]
    assert (fast["storage_usd_per_h"], fast["egress_usd"], fast["rates"]) == (0.011, 0, rates)
    assert fast["transfer"] == {"gib": 0, "usd": 6.0, "time_s": 0}
    assert [lab[name] for name in prices] == [None] * 4
    assert (lab["storage_usd_per_h"], lab["egress_usd"], lab["rates"]) == (0, 0, {})


def test_find_by_id_and_by_number(answer):
    first = ranked(answer)[0]
    for wanted in (first.plan.id, "1", "#1"):
        assert find_option(answer, wanted) is first
    assert not isinstance(find_option(answer, "99"), values.Option)


# --- What-ifs ---------------------------------------------------------------------------------------


@pytest.fixture
def with_what_ifs(answer):
    """The recommended plan changed, and a cheaper one."""
    by_id = {option.plan.id: option for option in answer.options}
    changed = [
        replace(
            by_id[name],
            plan=replace(by_id[name].plan, id=f"{name}+bf16"),
            what_if="bf16",
            cost_usd=values.Quantiles(p50=usd, p90=usd),
        )
        for name, usd in ((answer.recommended or "", 2.0), ("DEAR", 1.0))
    ]
    return replace(answer, what_ifs=tuple(changed))


def test_what_ifs_come_last_and_say_what_they_are(answer, with_what_ifs):
    options = ranked(with_what_ifs)
    assert options[:-2] == ranked(answer)
    assert [o.plan.id for o in options[-2:]] == ["DEAR+bf16", f"{answer.recommended}+bf16"]
    assert [status(o, with_what_ifs) for o in options[-2:]] == ["what if bf16"] * 2


def test_a_short_table_shows_the_recommended_plan_changed_and_another_is_found_by_its_id(with_what_ifs):
    shown = [option.plan.id for _, option in selection(with_what_ifs, 3)]
    assert f"{with_what_ifs.recommended}+bf16" in shown
    option = find_option(with_what_ifs, "DEAR+bf16")
    assert isinstance(option, values.Option)
    assert option.what_if == "bf16"


def test_what_ifs_in_json_are_on_no_frontier(with_what_ifs):
    document = json_of(answered(with_what_ifs))
    changed = [option for option in document["options"] if option["what_if"]]
    assert len(changed) == 2
    assert not any(option["on_frontier"] or option["recommended"] for option in changed)
    assert {option["what_if"] for option in document["options"]} == {None, "bf16"}


def test_a_row_is_named_by_plain_digits():
    recommendation = many_options(3, num_frontier=2)
    assert find_option(recommendation, "#2") == ranked(recommendation)[1]
    for wanted in ("¹", "9" * 5000, "0", "4"):
        assert find_option(recommendation, wanted) == [o.plan.id for o in ranked(recommendation)]


# --- Rows that speak for others ----------------------------------------------------------------------


@pytest.fixture
def folded(answer):
    """WORSE is folded into FAST, whose row says so."""
    options = {option.plan.id: option for option in answer.options}
    options["WORSE"] = replace(options["WORSE"], folded_into="FAST")
    reasons = (*options["FAST"].reasons, sample(Alike))
    options["FAST"] = replace(options["FAST"], reasons=reasons)
    return replace(answer, options=tuple(options.values()))


@pytest.mark.parametrize("top", [1, 5, 99])
def test_what_is_folded_has_no_row_and_keeps_its_number(folded, top):
    assert "WORSE" not in [option.plan.id for _, option in selection(folded, top)]
    rows = [row.cells for row in options_table(folded, top).rows]
    assert [cells[1] for cells in rows] == [number for number, _ in selection(folded, top)]


def test_a_number_is_that_of_the_row_that_is_shown(folded):
    assert [option for _, option in selection(folded, None)] == ranked(folded)
    for top in (1, 5, None):
        for number, option in selection(folded, top):
            assert find_option(folded, str(number)) is option
    assert find_option(folded, "WORSE") in folded.options


@pytest.mark.parametrize("width", [80, 160])
def test_a_row_says_of_how_many_it_speaks(folded, width):
    text = " ".join(on_screen(of(options_table(folded, 5)), width).split())
    assert text.count(" like it") == 1
    assert ", +2 like it" in text


def test_a_program_reads_what_is_folded_into_what(folded):
    document = recommendation_document(folded, top=3)
    by_id = {option["id"]: option["folded_into"] for option in json_of(document)["options"]}
    assert by_id == {"FAST": None, "CHEAP": None, "DEAR": None, "WORSE": "FAST", "SMALL": None, "LAB": None}
    assert "folded_into" in text_of(document, Format.CSV).splitlines()[0]


MANY = many_options(3000)


def table(recommendation: Recommendation, *, width: int, top: int | None) -> list[str]:
    text = on_screen(of(options_table(recommendation, top)), width)
    return [line.rstrip() for line in text.splitlines()]


def test_eighty_columns_show_gpus_above_their_place():
    lines = table(many_options(40), width=80, top=8)
    assert lines == [
        "",
        " Status          #  GPUs, and where                         Time (p90)     Cost",
        " " + "─" * 78,
        " recommended     1  8 x V100-PCIE-32GB on-demand         3.4 h (6.8 h)  $13,121",
        "                    aws Standard_ND96isr_H100_v5",
        "                    us-east-1 europe-central2",
        " frontier        2  8 x H100-SXM-80GB spot                 11 h (23 h)   $1,913",
        "                    aws p6-b200.48xlarge us-east-1",
        "                    apse3-az3",
        " frontier        3  8 x RTX-PRO-6000-Server on-demand     7.6 h (15 h)   $3,635",
        "                    aws a2-ultragpu-8g us-east-1",
        "                    northamerica-northeast1-a",
        " frontier        4  8 x L40S spot                         5.1 h (10 h)   $6,906",
        "                    aws g6e.48xlarge us-east-1",
        "                 8  8 x V100-PCIE-32GB on-demand           21 h (42 h)  $95,261",
        "                    aws Standard_ND96isr_H100_v5",
        "                    us-east-1 europe-central2",
        " another world  30  8 x RTX-PRO-6000-Server on-demand                -        -",
        "                    aws a2-ultragpu-8g us-east-1",
        "                    northamerica-northeast1-a",
        " does not fit   31  8 x L40S spot                          22 h (43 h)  $95,448",
        "                    aws g6e.48xlarge us-east-1",
        " over budget    32  8 x V100-PCIE-32GB on-demand           22 h (44 h)  $95,560",
        "                    aws Standard_ND96isr_H100_v5",
        "                    us-east-1 europe-central2",
        "",
    ]


def test_forty_columns_show_an_option_below_each_other():
    assert table(many_options(40), width=40, top=3)[:10] == [
        "",
        "  #  GPUs, where, time (p90), cost",
        " " + "─" * 38,
        "  1  8 x V100-PCIE-32GB on-demand",
        "     aws Standard_ND96isr_H100_v5",
        "     us-east-1 europe-central2",
        "     3.4 h (6.8 h), $13,121,",
        "     recommended",
        "  2  8 x H100-SXM-80GB spot",
        "     aws p6-b200.48xlarge us-east-1",
    ]


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_every_row_has_its_whole_price_and_time_in_its_first_line(width):
    lines = table(MANY, width=width, top=None)
    assert max(map(len, lines)) <= width
    rows = [line for line in lines if "$" in line or line.startswith(" another world")]
    assert len(rows) == 3000
    for number, (row, option) in enumerate(zip(rows, ranked(MANY), strict=True), start=1):
        state = status(option, MANY)
        assert row.removeprefix(f" {state}").split()[0] == str(number)
        if state == "another world":
            assert "$" not in row
            assert row.endswith("-")
            continue
        assert format_usd(option.cost_usd.p50) in row
        assert format_duration_short(option.time_s.p50) in row
        assert f"({format_duration_short(option.time_s.p90)})" in row
        assert "…" not in row


@pytest.mark.parametrize("width", [36, 40, 60, 80, NARROW])
def test_names_are_broken_between_words_alone(width):
    text = " ".join("\n".join(table(MANY, width=width, top=60)).split())
    for _, option in selection(MANY, 60):
        for word in where(option).split():
            assert word in text


def test_the_whole_frontier_is_among_fifteen_of_three_thousand():
    lines = table(MANY, width=120, top=15)
    states = [line[1:13].strip() for line in lines if "$" in line]
    assert states[0] == "recommended"
    assert states.count("frontier") == len(MANY.frontier) - (MANY.recommended in MANY.frontier)


@given(st.integers(8, 200), st.integers(1, 220))
def test_a_selection_keeps_the_order_and_the_recommended_and_the_numbers_of_the_ranking(num_options, top):
    recommendation = many_options(num_options)
    chosen = selection(recommendation, top)
    everything = list(enumerate(ranked(recommendation), start=1))
    assert chosen == [numbered for numbered in everything if numbered in chosen]
    assert recommendation.recommended in {option.plan.id for _, option in chosen}
    assert len(chosen) >= min(top, num_options)
    numbers = [row.cells[1] for row in options_table(recommendation, top).rows]
    assert numbers == [number for number, _ in chosen]


def test_json_of_three_thousand_options_is_complete():
    document = json_of(recommendation_document(MANY, top=None))
    assert [option["id"] for option in document["options"]] == [o.plan.id for o in ranked(MANY)]
    assert len({option["id"] for option in document["options"]}) == 3000
    assert document["frontier"] == list(MANY.frontier)
    assert sum(option["on_frontier"] for option in document["options"]) == 7


def calls_of(write: Callable[[Recommendation], object], recommendation: Recommendation) -> int:
    """How many functions run, a measure of work that no busy machine disturbs."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        write(recommendation)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    "write",
    [
        lambda recommendation: recommendation_document(recommendation, top=None),
        lambda recommendation: selection(recommendation, 15),
    ],
)
def test_the_work_grows_no_faster_than_the_options(write):
    few, many = many_options(300, num_frontier=40), many_options(3000, num_frontier=400)
    assert calls_of(write, many) < 12 * calls_of(write, few)


@pytest.mark.parametrize("kind", Removal.__subclasses__())
def test_whatever_removes_an_option_has_a_status(kind):
    assert status(removed(MANY.options[0], kind), replace(MANY, frontier=(), recommended=None))


def test_a_sheet_has_no_figures_of_another_number_of_ranks():
    few = many_options(40)
    document = recommendation_document(few, top=None)
    assert document.sheet is not None
    sheet = document.sheet()
    names = [column.name for column in sheet.columns]
    rows = [dict(zip(names, row.cells, strict=True)) for row in sheet.rows]
    for row in rows:
        figures = {row[name] for name in ("iteration_s_p50", "time_s_p50", "time_s_p90", "cost_usd_p50")}
        assert ("" in figures) == (row["status"] == "another world")
        assert figures == {""} or "" not in figures
    assert {"another world", "does not fit"} <= {row["status"] for row in rows}


def test_a_new_column_is_one_entry(monkeypatch):
    """Every table that it names, the page and CSV have it; the others are as before."""
    entry = OptionColumn(
        heading=Column("MFU"),
        cell=lambda row: row.option.estimate.mfu,
        forms=Form.WIDE | Form.NARROW,
        keys=("mfu",),
        is_outcome=True,
    )
    monkeypatch.setattr("advisor.report.options_table.OPTION_COLUMNS", (*OPTION_COLUMNS, entry))
    recommendation = many_options(3)
    document = recommendation_document(recommendation, top=3)
    wide = options_table(recommendation, 3)
    middle, narrow = wide.narrow[0], wide.narrow[0].narrow[0]
    for table in (wide, narrow):
        assert table.columns[-1].name == "MFU"
        assert {len(row.cells) for row in table.rows} == {len(table.columns)}
    assert "MFU" not in [column.name for column in middle.columns]
    assert text_of(document, Format.CSV).splitlines()[0].endswith(",work_usd,mfu")
    assert "MFU" in text_of(document, Format.MARKDOWN)
    assert "MFU" in text_of(document, Format.HTML)
