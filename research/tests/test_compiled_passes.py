"""Compiled over eager passes of a made-up table."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.predict.what_if.compiled import CHAIN_OVERHEAD
from research.compiled_passes import OVERHEADS, Compared, compared, ratios, table
from research.tests.training.test_forward_passes import recorded, row, write
from research.training.drawn import fraction_of
from research.training.whole_steps import family_of_model

RATIOS = dict.fromkeys({*OVERHEADS, CHAIN_OVERHEAD}, 0.5)


def test_a_model_is_compared_where_a_release_measured_both(tmp_path: Path) -> None:
    figures = write(
        tmp_path,
        row(),
        row(torch_compile="1", samples_per_s="4000"),
        row(framework_version="2.9.1"),
        row(torch_compile="1", samples_per_s="9000", device="RTX 3090"),
        row(torch_compile="1", samples_per_s="9000", memory_format="channels_last"),
    )
    (one,) = compared(figures, recorded(tmp_path))
    assert (one.model, one.release, one.measured) == ("net_a", "2.4.0", 0.5)
    assert one.predicted.keys() == {*OVERHEADS, CHAIN_OVERHEAD}
    assert one.off() == pytest.approx(one.predicted[CHAIN_OVERHEAD] / 0.5 - 1)


def test_joined_kernels_that_take_longer_are_never_faster(tmp_path: Path) -> None:
    from advisor.formats.trace_files import read_trace

    trace = read_trace(Path(__file__).parents[2] / "tests" / "compiled_steps" / "resnet50.json.gz")
    found = ratios(trace, resolve_gpu("RTX-4090"))
    in_order = [found[overhead] for overhead in sorted(found)]
    assert in_order == sorted(in_order)
    assert 0.3 < in_order[0] < 1


def test_the_table_has_those_that_chose_apart_from_those_that_judge() -> None:
    rows = [
        Compared(model=name, release="2.4.0", measured=0.4, predicted=RATIOS)
        for name in ("resnet50", "vit_base", "regnetx_040", "visformer_small")
    ]
    judges = [row.model for row in rows if row.only_judges]
    assert judges == [row.model for row in rows if fraction_of(family_of_model(row.model)) < 1 / 3]
    assert judges == ["vit_base", "regnetx_040", "visformer_small"]
    text = table(rows)
    assert "| 1 | 2.4.0 | 1, 25.0%, 25.0% (bias +25.0%) | 3, 25.0%, 25.0% (bias +25.0%) |" in text
    assert "That compiling changes nothing: 3, 150.0%, 150.0% (bias +150.0%) off." in text
