"""Lambda's machines of several boards: which rows are compared, and what their spread asks for."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Link
from advisor.predict.exchange.collective_time import ScalingConstants
from research.networks import GNMT_TOKENS
from research.scaling import lambda_boards
from research.scaling.cases import Judged, judged
from research.scaling.fitting import coverage, mean_error
from research.scaling.lambda_boards import FILE, Machine, lambda_cases
from tests.published import recorded_lambda
from tests.shared import SHARED, needs_shared

PUBLISHED = SHARED / "measurements" / "published"
COLUMNS = (
    "system", "gpu", "num_gpus", "model", "precision", "batch_per_gpu", "memory_format", "amp_level", "note",
    "throughput",
)  # fmt: skip


@pytest.fixture
def _recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lambda_boards, "NETWORKS", recorded_lambda())


@pytest.mark.parametrize(
    ("system", "gpu", "link"),
    [
        ("8xA100_SXM4", "A100-SXM-40GB", Link.NVSWITCH),
        ("8xA100_80GB_SXM4_v1", "A100-SXM-80GB", Link.HOST),
        ("LambdaCloud_4xA6000", "RTX-A6000", Link.HOST),
        ("4xA6000", "RTX-A6000", Link.PCIE),
        ("8xA40", "A40", Link.PCIE),
        ("2x3090", "RTX-3090", Link.HOST),
    ],
)
def test_a_machine_has_a_link_by_its_name(system: str, gpu: str, link: Link) -> None:
    fabric = Machine(name=system, gpu=resolve_gpu(gpu), num_gpus=2).layout.fabric
    assert fabric is not None
    assert fabric.link is link
    assert fabric.is_granted


@pytest.mark.usefixtures("_recorded")
def test_rows_are_beside_one_board_of_the_same_machine_with_the_same_work(tmp_path: Path) -> None:
    work = ("bert_base_squad", "fp16", "32", "", "O2", "")
    rows = [
        ("A6000", "RTX-A6000", "1", *work, "100"),
        ("4xA6000", "RTX-A6000", "4", *work, "360"),
        # Another batch, another machine, and a network that exchanges nothing.
        ("2xA6000", "RTX-A6000", "2", "bert_base_squad", "fp16", "16", "", "O2", "", "180"),
        ("LambdaCloud_2xA6000", "RTX-A6000", "2", *work, "190"),
        ("2xA6000", "RTX-A6000", "2", "transformerxlbase", "fp16", "32", "", "O2", "", "200"),
    ]
    with (tmp_path / FILE).open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    (case,) = lambda_cases(tmp_path)
    assert (case.layout.num_gpus, case.published, case.is_known) == (4, pytest.approx(0.9), True)
    alone_s, _ = case.seconds(case.base, ScalingConstants())
    assert alone_s == pytest.approx(32 / 100)


@pytest.mark.usefixtures("_recorded")
@pytest.mark.parametrize(
    ("num_gpus", "gpu", "kept", "link"),
    [
        # 322 MB of gradients take 10 ms of 25.5 GB/s in a step of 365 ms.
        (2, "RTX-A6000", 0.95, Link.PCIE), (2, "RTX-A6000", 0.98, Link.NVLINK_PAIRS),
        (4, "RTX-A6000", 0.98, Link.PCIE),
        (2, "RTX-3090", 0.93, Link.HOST), (2, "RTX-3090", 0.96, Link.NVLINK_PAIRS),
    ],
)  # fmt: skip
def test_boards_that_exchange_faster_than_over_pcie_have_bridges(
    tmp_path: Path, num_gpus: int, gpu: str, kept: float, link: Link
) -> None:
    work = ("gnmt", "fp16", "256", "", "O2", "")
    rate = 256 * GNMT_TOKENS / 0.365
    several = str(num_gpus * kept * rate)
    rows = [("board", gpu, "1", *work, str(rate)), (f"{num_gpus}xboard", gpu, str(num_gpus), *work, several)]
    with (tmp_path / FILE).open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    (case,) = lambda_cases(tmp_path)
    fabric = case.layout.fabric
    assert fabric is not None
    assert fabric.link is link
    assert (fabric.link_bytes_per_s > case.gpu.pcie_bytes_per_s) == (kept >= 0.96)


@needs_shared
@pytest.mark.usefixtures("_recorded")
def test_boards_of_one_node_differ_as_little_as_their_efficiencies_say() -> None:
    cases = [case for case in lambda_cases(PUBLISHED) if case.is_known]

    def rows(spread_of_steps: float) -> list[Judged]:
        scaling = replace(ScalingConstants(), spread_of_steps=spread_of_steps)
        return [judged(case, scaling) for case in cases]

    shipped = rows(ScalingConstants().spread_of_steps)
    errors = [mean_error(rows(spread)) for spread in (0.0, 0.005, 0.01, 0.02, 0.03, 0.06)]
    assert mean_error(shipped) <= min(errors) + 0.001
    # What eight processes with loaders were fitted to before.
    assert mean_error(shipped) < 0.5 * errors[-1]
    assert mean_error(shipped) <= 0.015
    assert max(abs(row.error) for row in shipped) <= 0.14
    as_over_networks = replace(ScalingConstants(), slowdown_in_node=ScalingConstants().slowdown)
    assert mean_error(shipped) < 0.75 * mean_error([judged(case, as_over_networks) for case in cases])
    switched = [row for row in shipped if row.case.layout.fabric.link is Link.NVSWITCH]  # type: ignore[union-attr]
    assert len(switched) >= 60
    assert mean_error(switched) <= 0.02
    held = coverage(shipped)
    assert held is not None
    assert held >= 0.74
