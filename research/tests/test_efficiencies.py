"""Published efficiencies of several GPUs: which rows are compared, what is fitted, and how far off it is."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Z90, Layout, Trace
from advisor.predict.exchange.collective_time import ScalingConstants
from research import speedups
from research.chosen.fit import of_one_more
from research.scaling import replicated
from research.scaling.cases import Case, judged
from research.scaling.fitting import coverage, fitted, mean_error
from research.scaling.replicated import dlperf_cases, nvidia_cases
from research.scaling.sharded import fsdp_cases, mosaic_jobs
from research.scaling.tables import row_table, summary_table
from research.speedups import Network
from tests.builders import make_trace
from tests.published import recorded_network
from tests.shared import SHARED, needs_shared

GPU = resolve_gpu("A100-SXM-80GB")
MEASUREMENTS = SHARED / "measurements"
THIRD_PARTY, PUBLISHED = MEASUREMENTS / "third_party", MEASUREMENTS / "published"
NVIDIA = ("model", "variant", "gpu", "n_gpus", "precision", "batch_per_gpu", "throughput")


def law(slowdown: float, spread: float) -> float:
    """The made-up truth: efficiency 0.8 without constants, worse with either."""
    return 1.25 + 2 * slowdown + 3 * spread


def made_up(group: str, published: float, *, base: int = 1, num_nodes: int = 1) -> Case:
    def seconds(layout: Layout, scaling: ScalingConstants) -> tuple[float, float]:
        if layout.num_gpus == base:
            return 1.0, 0.0
        return law(scaling.slowdown, scaling.spread), scaling.sigma

    return Case(
        source="made up", group=group, gpu=GPU, base=Layout(gpus_per_node=base),
        layout=Layout(gpus_per_node=8, num_nodes=num_nodes), published=published, seconds=seconds,
    )  # fmt: skip


GROUPS = [f"group {number}" for number in range(30)]


def test_a_group_fits_or_judges_whole_and_a_third_of_them_fit() -> None:
    fit = [group for group in GROUPS if made_up(group, 1.0).is_fitted]
    assert fit == [group for group in GROUPS if made_up(group, 0.5, num_nodes=2).is_fitted]
    assert 5 <= len(fit) <= 15


def test_constants_are_fitted_to_the_rows_that_fit_alone() -> None:
    truth = 1 / law(0.3, 0.02)
    cases = [made_up(group, truth) for group in GROUPS]
    scaling = fitted([case if case.is_fitted else replace(case, published=0.1) for case in cases])
    assert law(scaling.slowdown, scaling.spread) == pytest.approx(law(0.3, 0.02), rel=1e-6)
    assert scaling.sigma == 0


def test_what_is_left_is_as_wide_as_four_of_five_rows_ask() -> None:
    truth = 1 / law(0.3, 0.02)
    fit = [made_up(group, truth) for group in GROUPS if made_up(group, 1.0).is_fitted]
    off = [replace(case, published=truth * math.exp(0.01 * (i + 1))) for i, case in enumerate(fit)]
    # Rows beside several GPUs share most of the error, so they say nothing of it.
    beside_many = [made_up(case.group, truth * 2, base=4) for case in fit]
    scaling = fitted(off)
    assert scaling.sigma > 0
    held = coverage([judged(case, scaling) for case in off])
    assert held is not None
    assert held >= 0.8
    assert coverage([judged(case, scaling) for case in beside_many]) is None


def test_few_groups_make_what_is_left_wider_however_many_rows_they_have() -> None:
    truth = 1 / law(0.3, 0.02)
    groups = [group for group in GROUPS if made_up(group, 1.0).is_fitted]
    rows = [made_up(group, truth * math.exp(sign * 0.05)) for group in groups for sign in (-1, 0, 1)]
    wanted = 0.05 / Z90 * of_one_more(len(groups))
    assert fitted(rows).sigma == fitted(rows * 5).sigma == pytest.approx(wanted, abs=1e-3)
    assert of_one_more(5) > of_one_more(20) > of_one_more(10**6) == pytest.approx(1, abs=1e-3)
    assert of_one_more(20) == pytest.approx(math.sqrt(1.05) * 1.328 / 1.2816, rel=2e-3)


def test_an_error_is_positive_where_the_prediction_is_too_good() -> None:
    row = judged(made_up("one", 0.5), ScalingConstants(slowdown=0.0, spread=0.0, sigma=0.1))
    assert row.predicted == pytest.approx(0.8)
    assert row.error == pytest.approx(0.3)
    assert coverage([row]) == 0
    inside = judged(
        made_up("one", 0.8 * math.exp(0.09 * Z90)), ScalingConstants(slowdown=0.0, spread=0.0, sigma=0.1)
    )
    assert coverage([inside]) == 1


def test_tables_name_sources_nodes_and_use() -> None:
    rows = [
        judged(made_up(group, 0.7, num_nodes=n), ScalingConstants(sigma=0.1))
        for group in GROUPS
        for n in (1, 2)
    ]
    text = summary_table(rows)
    assert text.count("\n") == 1 + 8
    assert "| made up | several |" in text
    assert "| all | one |" in text
    assert row_table(rows).count("| 8 x 2 |") == len(GROUPS)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(amp: bool, batch_size: int) -> Trace:
        return make_trace(batch_size=batch_size)

    network = Network(name="Tiny", published="Tiny", build=build, batch_sizes={"TF32": 4})
    monkeypatch.setattr(speedups, "NETWORKS", (network,))
    replicated._in_container.cache_clear()


@pytest.mark.usefixtures("built")
def test_rows_of_one_node_are_beside_the_same_on_one_gpu(tmp_path: Path) -> None:
    rows = [
        ("Tiny", "", "A100 SXM4 80GB", "1", "TF32", "", "100"),
        ("Tiny", "", "A100 SXM4 80GB", "8", "TF32", "", "720"),
        # Two nodes, another batch than on one GPU, a network that nobody builds.
        ("Tiny", "", "A100 SXM4 80GB", "16", "TF32", "", "1400"),
        ("Tiny", "", "A100 SXM4 80GB", "8", "TF32", "8", "720"),
        ("Other", "", "A100 SXM4 80GB", "8", "TF32", "", "720"),
    ]
    with (tmp_path / speedups.FILE).open("w", newline="") as file:
        csv.writer(file).writerows([NVIDIA, *rows])
    (case,) = nvidia_cases(tmp_path)
    assert (case.layout.num_gpus, case.published) == (8, pytest.approx(0.9))
    assert case.gpu.name == "A100-SXM-80GB"
    assert 0.5 < judged(case, ScalingConstants()).predicted < 1


def test_a_step_of_several_passes_accumulates_them() -> None:
    trace = replicated._in_container(lambda amp, size: make_trace(batch_size=size), False, 4, 16)  # noqa: ARG005
    assert trace.accumulation == 16
    assert [op.count for op in trace.ops] == [16, 16, 1]


@needs_shared
def test_full_sharding_gathers_twice_and_accumulation_in_each_pass() -> None:
    jobs = [job for _, job in mosaic_jobs(THIRD_PARTY)]
    for strategy, gathers in (("FULL_SHARD, 1", 2), ("FULL_SHARD, 3", 6), ("SHARD_GRAD_OP, 1", 1)):
        assert {job.gathers for job in jobs if job.group.endswith(f" {strategy}")} == {gathers}


@needs_shared
def test_sharded_models_scale_as_published_to_512_gpus() -> None:
    rows = [judged(case, ScalingConstants()) for case in fsdp_cases(THIRD_PARTY, PUBLISHED)]
    assert len(rows) >= 40
    assert mean_error([row for row in rows if not row.case.is_fitted]) <= 0.04
    assert max(abs(row.error) for row in rows) <= 0.15


@needs_shared
def test_recorded_networks_scale_as_nvidia_published(monkeypatch: pytest.MonkeyPatch) -> None:
    networks = [recorded_network(network) for network in speedups.NETWORKS if "ResNeXt" not in network.name]
    monkeypatch.setattr(speedups, "NETWORKS", networks)
    rows = []
    for case in nvidia_cases(THIRD_PARTY):
        try:
            rows.append(judged(case, ScalingConstants()))
        except (RuntimeError, StopIteration):
            continue  # a row whose trace is not recorded
    assert len(rows) >= 40
    assert mean_error(rows) <= 0.055
    perfect = sum(abs(1 - row.case.published) for row in rows) / len(rows)
    assert mean_error(rows) < perfect / 2


@needs_shared
def test_dlperf_has_nodes_of_eight_behind_infiniband() -> None:
    cases = list(dlperf_cases(PUBLISHED))
    assert {(case.layout.gpus_per_node, case.layout.num_nodes) for case in cases} == {(8, 1), (8, 2), (8, 4)}
    assert len(cases) == 21
