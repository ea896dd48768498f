"""Estimates as rows and as JSON."""

from dataclasses import replace

import pytest

from advisor.core.findings.about_estimates import AttentionUnfused, OtherWorld
from advisor.core.units import GIB
from advisor.core.values import Interval, IterationEstimate, Method, StepWork
from advisor.report.document import Block, Chart, Section
from advisor.report.estimates import COLUMNS, estimate_json, estimates_document
from advisor.report.printing import Format, text_of
from tests.builders import make_estimate, make_trace
from tests.findings import sample, texts
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
