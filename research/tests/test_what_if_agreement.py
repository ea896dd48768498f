"""What-ifs equal profiles of the changed scripts, of which the traces were recorded."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from research.what_if_agreement import GPUS, Agreement, agreements, table
from research.what_if_scripts import SCRIPTS, WhatIfScript

# Of the benchmark's GPUs those whose memory is slowest and whose host is: bytes and launches show there most.
SLOWEST = ("L4", "A100-SXM-80GB")
# A fused step is the worst, 0.3 % without H100s.
MOST_TIME_OFF = 0.01
# The LSTM under autocast is the worst: 2.5 %.
MOST_MEMORY_OFF = 0.03


@pytest.fixture(scope="module")
def rows() -> list[Agreement]:
    return list(agreements(gpus=SLOWEST))


@pytest.mark.parametrize("change", ["batch", "accumulate", "bf16", "tf32", "channels_last", "fused"])
def test_a_what_if_is_the_changed_script_profiled(rows: list[Agreement], change: str) -> None:
    own = [row for row in rows if row.change == change and row.refused is None]
    assert len(own) >= 4
    for row in own:
        assert row.worst_time_off <= MOST_TIME_OFF, row
        assert abs(row.memory_off) <= MOST_MEMORY_OFF, row


@pytest.mark.parametrize("change", ["batch", "bf16"])
def test_it_nearly_is_where_shapes_alone_tell(change: str) -> None:
    """GPT's launches are the worst: 3.7 % of time."""
    own = [row for row in agreements(gpus=SLOWEST, by_shapes=True) if row.change == change]
    assert len(own) == len(SCRIPTS)
    for row in own:
        assert row.worst_time_off <= 0.04, row
        assert abs(row.memory_off) <= MOST_MEMORY_OFF, row


def test_what_is_refused_makes_no_difference_to_the_real_script_either(rows: list[Agreement]) -> None:
    refused = [(row.script, row.change) for row in rows if row.refused is not None]
    # Convolutions take TF32 unasked, and there are no other products.
    assert refused == [("unet", "tf32"), ("detector", "tf32")]


def test_the_table_has_a_row_for_each(rows: list[Agreement]) -> None:
    head, rule, *lines = table([replace(row, time_off=row.time_off[:1] * len(GPUS)) for row in rows])
    assert len(lines) == len(rows)
    assert {line.count("|") for line in (head, rule, *lines)} == {len(GPUS) + 4}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_every_edit_finds_its_place_and_gives_python(script: WhatIfScript) -> None:
    for change in (None, *script.changes):
        ast.parse(script.text(change))
    assert script.command_line("batch")[1] == str(2 * script.batch_size)
