"""Estimates as rows and as JSON."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core import values
from advisor.core.findings.about_estimates import AttentionUnfused, DataParallel, OtherWorld
from advisor.core.units import GIB
from advisor.core.values import Interval, IterationEstimate, Method, StepWork
from advisor.predict.largest_batch import CHANGES
from advisor.report.document import Block, Chart, Fact, Section, Tone
from advisor.report.estimates import (
    COLUMNS,
    by_gpus,
    estimate_json,
    estimates_document,
    iterations_chart,
    memory_facts,
    memory_json,
    throughput_facts,
)
from advisor.report.explain import iteration
from advisor.report.printing import Format, text_of
from advisor.report.words.estimate_notes import remedy_text
from tests.builders import make_estimate, make_trace
from tests.findings import sample, texts
from tests.recommendations import make_option
from tests.unit.report.printed import json_of, on_screen, rows_of

FULL = make_estimate(
    "X",
    Interval(p10=0.1, p50=0.2, p90=0.4),
    num_gpus=4,
    by_family={"gemm": 0.1, "optimizer": 0.05, "embedding": 0.02},
    by_method={Method.ROOFLINE: 0.17},
    by_operator={"mm (roofline)": 0.1},
    communication_s=0.03,
    memory_bytes=5 * GIB,
    memory_limit_bytes=16 * GIB,
    assumptions=texts("an assumption"),
    work=StepWork(num_samples=256.0, model_flops=5e12, peak_flops_per_s=100e12),
)


def printed_rows(*estimates: IterationEstimate) -> list[dict[str, str]]:
    return rows_of(estimates_document(make_trace(), estimates))


def test_a_row_in_every_column():
    (row,) = printed_rows(FULL)
    assert list(row.values()) == [
        "X", "4", "100 ms .. 200 ms .. 400 ms", "5 GiB", "yes", "gemm 50%, optimizer 25%", "85% roofline",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("memory_bytes", "memory", "fits"),
    [(16 * GIB, "16 GiB", "yes"), (16 * GIB + 1, "16 GiB", "no"), (None, "unknown", "?")],
)
def test_whether_it_fits(memory_bytes, memory, fits):
    (row,) = printed_rows(make_estimate(memory_bytes=memory_bytes))
    assert (row["Memory"], row["Fits"]) == (memory, fits)


def test_the_order_given_is_kept_and_nothing_to_print_is_a_header():
    rows = printed_rows(make_estimate("B", 0.2), make_estimate("A", 0.1), make_estimate("C", 0.3))
    assert [row["GPU"] for row in rows] == ["B", "A", "C"]
    header = text_of(estimates_document(make_trace(), []), Format.CSV)
    assert header == ",".join(column.name for column in COLUMNS)


def test_the_table_shows_the_same():
    out = on_screen(
        estimates_document(make_trace(), [FULL, make_estimate("TINY", memory_limit_bytes=1)]), 120
    )
    assert all(text in out for text in ("200 ms", "gemm 50%", "TINY", "no"))


def test_json_holds_plain_numbers():
    document = json_of(estimates_document(make_trace(warnings=texts("mind this")), [FULL]))
    assert document["warnings"] == ["mind this"]
    assert [one["code"] for one in document["warning_findings"]] == ["text"]
    assert document["trace"]["script"] == "train.py"
    assert document["estimates"] == [
        {
            "gpu": "X",
            "num_gpus": 4,
            "split": None,
            "num_nodes": 1,
            "gpus_per_node": 4,
            "iteration_s": {"p10": 0.1, "p50": 0.2, "p90": 0.4},
            "samples_per_s": 1280.0,
            "mfu": 0.25,
            "communication_s": 0.03,
            "loading_s": 0.0,
            "input_s": None,
            "binds": "compute",
            "memory_bytes": 5 * GIB,
            "memory_limit_bytes": 16 * GIB,
            "fits_memory": True,
            "memory": {
                "parts": {"weights_bytes": 5 * GIB},
                "need_bytes": {"p10": 5 * GIB, "p50": 5 * GIB, "p90": 5 * GIB},
                "fit": "certain",
                "largest_batch": None,
                "remedies": [],
            },
            "by_family": {"gemm": 0.1, "optimizer": 0.05, "embedding": 0.02},
            "by_method": {"roofline": 0.17},
            "by_operator": {"mm (roofline)": 0.1},
            "assumptions": ["an assumption"],
            "assumption_findings": [{"code": "text", "severity": "note", "facts": {"text": "an assumption"}}],
        }
    ]


def test_methods_are_named_by_their_share_of_the_iteration():
    methods = {Method.WAVE: 0.3, Method.LEARNED: 0.624, Method.ROOFLINE: 0.004}
    (row,) = printed_rows(make_estimate("X", 1.0, by_method=methods))
    assert row["How"] == "62% learned, 30% wave"


# --- The table and what is below it --------------------------------------------------------------------


def printed_table(columns: int, *estimates: IterationEstimate) -> list[str]:
    return on_screen(estimates_document(make_trace(), estimates), columns).splitlines()


WORDY = (
    make_estimate(
        "A100-PCIE-40GB",
        Interval(p10=0.101, p50=0.2, p90=0.404),
        num_gpus=8,
        by_family={"waiting for the host": 0.11, "norm and softmax": 0.09},
        by_method={Method.LEARNED: 0.12, Method.ROOFLINE: 0.06, Method.WAVE: 0.02},
        assumptions=texts("of both", "of one " + "and more words " * 12),
    ),
    make_estimate("T4", by_method={Method.LEARNED: 0.1}, assumptions=texts("of both")),
)


@pytest.mark.parametrize("columns", [80, 100, 120, 160])
def test_it_fits_the_terminal_and_tells_how(columns):
    lines = printed_table(columns, *WORDY)
    assert max(map(len, lines)) <= columns
    table = lines[: lines.index("What the estimates rest on")]
    # A line for each GPU where there is no room for more: how comes after the share of the first method.
    assert len([line for line in table if line.strip()]) == 4 or columns > 100
    text = " ".join(" ".join(table).split())
    for word in ("A100-PCIE-40GB", "How", "60% learned", "100% learned", "101"):
        assert word in text, text
    assert ("30%" in text) == (columns > 80)
    # On a narrow terminal the shares give way.
    assert ("Largest shares" in text) == (columns > 100)


@pytest.mark.parametrize(
    ("columns", "told"), [(80, "57.9 .. 87.3 .. 110 s"), (160, "57.9 s .. 87.3 s .. 110 s")]
)
def test_a_step_of_minutes_is_in_seconds(columns, told):
    slow = make_estimate("X", Interval(p10=57.9, p50=87.3, p90=110.0))
    assert told in "\n".join(printed_table(columns, slow))


def test_a_long_name_leaves_no_room_for_how():
    long = make_estimate(
        "RTX-PRO-6000-Workstation-of-a-long-name", num_gpus=16, by_method={Method.LEARNED: 0.1}
    )
    heading, _, row = printed_table(80, long)[1:4]
    assert heading.split()[-2:] == ["Memory", "Fits"]
    assert row.split()[0] == "RTX-PRO-6000-Workstation-of-a-long-name:16"


def test_what_differs_in_the_gpu_alone_is_told_once():
    names = [f"T{number}" for number in range(9)]
    estimates = [
        make_estimate(name, assumptions=(AttentionUnfused(gpu=name, dtype="bfloat16", head_size=128),))
        for name in names
    ]
    text = " ".join(" ".join(printed_table(100, *estimates)).split())
    assert text.count("no fused kernel runs the script's attention on these GPUs (bfloat16") == 1
    assert text.endswith("[T0, T1, T2, T3, T4, T5, 3 more]")
    alone = " ".join(printed_table(100, *estimates[:1]))
    assert "attention on T0 (bfloat16" in alone


def test_assumptions_are_below_the_table_once_and_not_for_programs():
    lines = printed_table(100, *WORDY)
    below = lines[lines.index("What the estimates rest on") + 1 :]
    assert below[0] == "  of both"
    assert below[1].startswith("  of one and more")
    assert " ".join(" ".join(below).split()).endswith("words [A100-PCIE-40GB:8]")
    assert sum("of both" in line for line in lines) == 1
    assert "rest on" not in " ".join(printed_table(100, make_estimate("T4")))
    for output in (Format.CSV, Format.MARKDOWN):
        assert "of both" not in text_of(estimates_document(make_trace(), WORDY), output)


def test_unknown_memory_is_null_and_not_false():
    document = estimate_json(make_estimate(memory_bytes=None))
    assert (document["memory_bytes"], document["fits_memory"]) == (None, None)


def test_of_another_number_of_ranks_the_time_is_unknown():
    other = replace(FULL, gpu="Y", assumptions=(sample(OtherWorld),))
    known, unknown = printed_rows(FULL, other)
    assert known["Iteration p10 .. p50 .. p90"] == "100 ms .. 200 ms .. 400 ms"
    assert unknown["Iteration p10 .. p50 .. p90"] == "unknown"
    assert (unknown["Largest shares"], unknown["How"]) == ("", "")
    (chart,) = [block for block in page_of(FULL, other) if isinstance(block, Chart)]
    assert chart.bars == ("4 x X",)
    assert not [block for block in page_of(other) if isinstance(block, Chart)]
    assert "Throughput" in titles_of(FULL)
    assert "Throughput" not in titles_of(other)


def page_of(*estimates: IterationEstimate) -> tuple[Block, ...]:
    page = estimates_document(make_trace(), estimates).page
    assert page is not None
    return page()


def titles_of(estimate: IterationEstimate) -> list[str]:
    blocks = estimates_document(make_trace(), [estimate]).blocks
    return [block.title for block in blocks if isinstance(block, Section)]


SLOW = make_estimate("T4", iteration_s=Interval(p10=1.0, p50=2.0, p90=3.0))
FAST = make_estimate("L4", num_gpus=2, iteration_s=Interval(p10=0.5, p50=1.0, p90=1.5))
SMALL = make_estimate("V100", iteration_s=Interval(p10=1.0, p50=1.5, p90=2.0), memory_limit_bytes=1)
UNSURE = make_estimate("A100", iteration_s=Interval(p10=0.1, p50=0.2, p90=0.3), memory_bytes=None)


def test_the_fastest_comes_first_whether_it_fits_or_not():
    (chart,) = iterations_chart([SLOW, SMALL, FAST, UNSURE])
    assert chart.bars == ("1 x A100", "2 x L4", "1 x V100", "1 x T4")
    assert [(one.label, one.points) for one in chart.series] == [
        ("fits in memory", ((1, 1.0), (3, 2.0))),
        ("unknown whether it fits in memory", ((0, 0.2),)),
        ("does not fit in memory", ((2, 1.5),)),
    ]
    assert [one.tone for one in chart.series] == [None, Tone.DOUBTFUL, Tone.FAINT]


def test_an_interval_is_an_error_bar_and_a_hover_text():
    (chart,) = iterations_chart([SLOW])
    (detail,) = chart.series[0].details
    assert detail.y_range == (1.0, 3.0)
    assert detail.label == "1 x T4\n1 s .. 2 s .. 3 s\nfits in memory"


def test_no_estimate_has_no_chart():
    assert list(iterations_chart([])) == []


WORK = StepWork(num_samples=256.0, model_flops=5e12, peak_flops_per_s=100e12)
FOUR = make_estimate(iteration=0.2, num_gpus=4, work=WORK)
FACTS = [
    Fact("samples per second", "1,280", "of all 4 GPUs"),
    Fact("MFU", "25.0%", "model FLOPs utilization, of 100 TFLOP/s a GPU"),
]


def test_both_are_told():
    assert list(throughput_facts(FOUR)) == FACTS


def test_what_is_unknown_is_not_told():
    assert list(throughput_facts(make_estimate())) == []
    slow = make_estimate(iteration=2.0, work=StepWork(num_samples=3.0))
    assert list(throughput_facts(slow)) == [Fact("samples per second", "1.5")]


def test_an_option_in_full_tells_them():
    assert list(iteration(make_option("X", 1, 20, estimate=FOUR)))[-2:] == FACTS


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(("estimates", "is_told"), [([FOUR], True), ([FOUR, FOUR], False)])
def test_a_prediction_tells_them_of_one_gpu_that_is_asked_about(estimates, is_told, width):
    text = on_screen(estimates_document(make_trace(), estimates), width)
    assert ("1,280" in text) is ("25.0%" in text) is is_told
    assert max(map(len, text.splitlines())) <= width


OWN, SHARED = texts("own", "shared")


def test_those_of_all_come_first_and_name_nobody():
    groups = by_gpus(
        [make_estimate("T4", assumptions=(OWN, SHARED)), make_estimate("L4", assumptions=(SHARED,))]
    )
    assert list(groups) == [(SHARED, ""), (OWN, "T4")]


def test_counts_tell_estimates_of_one_gpu_apart():
    parallel = sample(DataParallel)
    groups = by_gpus([make_estimate("T4"), make_estimate("T4", num_gpus=8, assumptions=(parallel,))])
    assert list(groups) == [(parallel, "T4:8")]


def test_the_shorter_list_is_named():
    estimates = [make_estimate(name, assumptions=(SHARED,)) for name in ("A", "B", "C")]
    estimates += [make_estimate("D", assumptions=(OWN,))]
    assert list(by_gpus(estimates)) == [(SHARED, "all but D"), (OWN, "D")]


def test_no_estimates_rest_on_nothing():
    assert list(by_gpus([])) == []


ASSUMPTIONS = st.lists(st.sampled_from(texts("a", "b", "c", "d")), max_size=6).map(tuple)


@given(st.lists(ASSUMPTIONS, max_size=6))
def test_each_is_told_once_and_whose_it_is_can_be_read_back(rest_on):
    estimates = [make_estimate(f"GPU-{i}", assumptions=groups) for i, groups in enumerate(rest_on)]
    groups = list(by_gpus(estimates))
    assert len({assumption for assumption, _ in groups}) == len(groups)
    assert {assumption for assumption, _ in groups} == {one for several in rest_on for one in several}
    for assumption, gpus in groups:
        holders = {estimate.gpu for estimate in estimates if assumption in estimate.assumptions}
        named = set(gpus.removeprefix("all but ").split(", ")) - {""}
        everybody = {estimate.gpu for estimate in estimates}
        assert holders == (named if gpus and not gpus.startswith("all but ") else everybody - named)


NEED = values.Interval(p10=15.0 * GIB, p50=17.0 * GIB, p90=20.0 * GIB)
MEMORY = values.MemoryEstimate(
    parts={values.MemoryPart.WEIGHTS: 7 * GIB, values.MemoryPart.ACTIVATIONS: 10 * GIB}, need_bytes=NEED
)
REMEDY = values.Remedy(
    changes=("checkpointing", "zero-3"),
    batch_size=64,
    need_bytes=values.Interval(p10=5.0 * GIB, p50=6.0 * GIB, p90=7.0 * GIB),
    fit=values.Fit.LIKELY,
    slower=values.Interval(p10=1.2, p50=1.3, p90=1.4),
)
LARGEST = values.LargestBatch(share=0.5, certain=24, likely=32)
TIGHT: values.IterationEstimate = make_estimate(memory=MEMORY, largest_batch=LARGEST, remedies=(REMEDY,))


def lines(estimate: values.IterationEstimate, **changes: object) -> dict[str, str]:
    return {fact.name: fact.value for fact in memory_facts(estimate, make_trace(**changes))}


def test_parts_the_need_and_what_would_fit():
    assert lines(TIGHT) == {
        "weights": "7 GiB",
        "activations": "10 GiB",
        "needed": "17 GiB (15 GiB .. 20 GiB)",
        "available": "16 GiB, not enough",
        "largest batch": "24, and likely up to 32; 64 was profiled",
        "would fit": "activation checkpointing and sharding the model (FSDP, ZeRO-3)"
        " (6 GiB, 1.30 times as long), likely",
    }


def test_how_surely_it_fits_and_a_part_of_nothing_has_no_line():
    for limit_gib, words in ((16, "16 GiB, not enough"), (18, "18 GiB, likely"), (24, "24 GiB")):
        assert lines(replace(TIGHT, memory_limit_bytes=limit_gib * GIB))["available"] == words
    parts = MEMORY.parts | {values.MemoryPart.TEMPORARY: 0}
    assert "temporary" not in lines(replace(TIGHT, memory=replace(MEMORY, parts=parts)))


def test_one_figure_where_certain_and_likely_agree():
    same = replace(TIGHT, largest_batch=replace(LARGEST, certain=32))
    assert lines(same)["largest batch"] == "32; 64 was profiled"
    unknown = replace(TIGHT, largest_batch=values.LargestBatch(share=0.5, certain=None, likely=None))
    assert lines(unknown)["largest batch"] == "0.5 of the profiled one"
    assert {fact.name: fact.value for fact in memory_facts(same)}["largest batch"] == "32"


def test_the_command_that_confirms_it_changes_the_batch_alone():
    arguments = ("--lr", "64", "--batch-size", "64", "x y")
    facts = lines(TIGHT, script="a script.py", arguments=arguments)
    assert facts["to confirm"] == "advisor predict 'a script.py' --gpu X -- --lr 64 --batch-size 32 'x y'"
    # Samples of a pass are what the script takes.
    assert lines(TIGHT, arguments=("--batch", "16"), accumulation=4)["to confirm"].endswith("-- --batch 8")
    none = replace(TIGHT, largest_batch=values.LargestBatch(share=0.0, certain=0, likely=0))
    assert "to confirm" not in lines(none, arguments=arguments)


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        ((), {}),
        (("--lr", "64"), {}),
        (("--batch-size", "32"), {}),
        (("--batch-size", "64", "--eval-batch", "64"), {}),
        (("--batch-size", "64"), {"batch_size": None}),
    ],
)
def test_no_command_where_nobody_knows_which_argument_it_is(arguments, changes):
    assert "to confirm" not in lines(TIGHT, arguments=arguments, **changes)


def test_an_unknown_need_is_told():
    unknown = make_estimate(memory=None)
    assert lines(unknown) == {"needed": "unknown", "available": "16 GiB"}
    assert memory_json(unknown) is None


def test_json_has_all_of_it():
    document = memory_json(TIGHT)
    assert document is not None
    assert document["parts"] == {"weights_bytes": 7 * GIB, "activations_bytes": 10 * GIB}
    assert document["need_bytes"] == {"p10": 15 * GIB, "p50": 17 * GIB, "p90": 20 * GIB}
    assert (document["fit"], document["largest_batch"]) == ("no", {"share": 0.5, "certain": 24, "likely": 32})
    (remedy,) = document["remedies"]  # type: ignore[misc]
    assert remedy["changes"] == ("checkpointing", "zero-3")
    assert remedy["slower"] == {"p10": 1.2, "p50": 1.3, "p90": 1.4}


def test_every_change_has_words():
    for name in CHANGES:
        assert remedy_text({"changes": [name], "needed_bytes": GIB, "slower": 1.0})
